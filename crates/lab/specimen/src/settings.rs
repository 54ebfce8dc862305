//! Settings of a specimen, as JSON: how it serves, and the operations that the requests of each path meet.
//!
//! There is no notion of a flaw here. A flaw is one operation, resource or rule too many or too small; the
//! catalogue draws a specimen and its twin as two of these, which differ in that alone.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Most paths, the one for all others included.
pub const MOST_ROUTES: usize = 8;
/// Most resources.
pub const MOST_RESOURCES: usize = 8;
/// Most pages of 4 KiB that a request stores, and that the file has.
pub const MOST_PAGES: usize = 16_384;
/// Bytes of a page of memory.
pub const PAGE: usize = 4096;

/// All settings of a specimen.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Seed of all draws.
    pub seed: u64,
    /// Port on 127.0.0.1; 0: a free one.
    pub port: u16,
    /// Processors that it may use; empty: all.
    pub cpus: Vec<usize>,
    /// Threads or processes that serve.
    pub serve: Serve,
    /// Acceptance of connections.
    pub listen: Listen,
    /// Lifetime of connections.
    pub connection: Kept,
    /// Resources that requests hold, by name.
    pub resources: BTreeMap<String, Resource>,
    /// Operations of requests by path, in order; other paths are answered 404.
    pub routes: BTreeMap<String, Vec<Op>>,
    /// Pauses of the whole specimen.
    pub pauses: Option<Pauses>,
    /// Slowness at the start.
    pub warmup: Option<Warmup>,
    /// Other clients, each with requests at fixed times.
    pub visitors: Vec<Visitor>,
    /// Naming of its own metrics; none: it has none.
    pub metrics: Option<Dialect>,
    /// Goes into the header `X-Backend` of each answer.
    pub backend: Option<String>,
    /// Folder for the files that it writes.
    pub folder: Option<String>,
}

/// Threads or processes that serve.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum Serve {
    /// Threads that take whole requests in the order in which they come, and block.
    Threads {
        /// Bound of the number of threads.
        most: usize,
    },
    /// Processes with an event loop each: waiting lets others go on, computing does not.
    Loop {
        /// Number of processes.
        processes: usize,
    },
}

impl Default for Serve {
    fn default() -> Serve {
        Serve::Threads { most: 512 }
    }
}

/// Acceptance of connections.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Listen {
    /// Connections that wait to be accepted.
    pub backlog: u32,
    /// From one accept to the next, at least.
    pub accept_every_ms: f64,
    /// True if each process of [`Serve::Loop`] has a listener of its own, among which the kernel hashes
    /// connections; else they share one, and a free process accepts.
    pub hashed: bool,
}

impl Default for Listen {
    fn default() -> Listen {
        Listen {
            backlog: 4096,
            accept_every_ms: 0.0,
            hashed: false,
        }
    }
}

/// Lifetime of connections.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Kept {
    /// Requests after which it closes one.
    pub requests: Option<u64>,
    /// Age from which on it closes one with the next answer.
    pub age_ms: Option<f64>,
    /// True if head and body of an answer leave in two writes, the second of which waits for an
    /// acknowledgement (Nagle).
    pub two_writes: bool,
}

/// A resource that requests hold; it belongs to one process.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// Holders at once; further ones wait in line.
    pub size: usize,
    /// Kind of its names in the metrics.
    pub kind: ResourceKind,
}

/// Kind of the names of a resource in the metrics.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// A lock.
    Lock,
    /// A pool of connections to something.
    Pool,
    /// In the metrics, under names that say nothing of what they count.
    Nameless,
    /// Absent from the metrics.
    Hidden,
}

/// One operation.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Op {
    /// Compute: processor time of the thread.
    Burn(Work),
    /// Wait for something elsewhere.
    Wait(Work),
    /// Take a place of a resource.
    Take {
        /// Name of the resource.
        resource: String,
        /// Longest wait; 0: none at all, absent: for ever.
        timeout_ms: Option<f64>,
        /// Status of the answer after that.
        #[serde(default = "default_refusal")]
        status: u16,
        /// Body of that answer.
        #[serde(default)]
        words: String,
    },
    /// Give the place back.
    Give {
        /// Name of the resource.
        resource: String,
    },
    /// Queue again behind all requests that are ready; for event loops only.
    Pass,
    /// Write to a file.
    Write {
        /// Name of the file.
        file: String,
        /// Bytes written.
        bytes: usize,
        /// True to wait until they are on the disk.
        #[serde(default)]
        sync: bool,
    },
    /// Store pages on the device, past the cache of the system, over and over in the same 64 MiB of a file; one
    /// request at a time.
    Store {
        /// Name of the file.
        file: String,
        /// Number of pages of 4 KiB.
        pages: usize,
    },
    /// Read pages of a file that is mapped into memory.
    Touch(Touch),
    /// Let the data grow.
    Grow {
        /// Number of new rows.
        rows: u64,
    },
    /// Keep memory for ever; 256 MiB at most in all.
    Leak {
        /// Bytes per request.
        bytes: usize,
    },
    /// Call another service; only threads can.
    Call(Call),
    /// Refuse what exceeds a rate (token bucket).
    Limit {
        /// Requests per second.
        rate: f64,
        /// Requests that may come at once.
        burst: f64,
        /// Status of the refusal.
        #[serde(default = "default_limit_status")]
        status: u16,
    },
    /// Delay what exceeds a rate.
    Pace {
        /// Requests per second.
        rate: f64,
        /// More that may come at once after a pause.
        #[serde(default)]
        burst: f64,
        /// Let all of a window through at its begin; 0: each at its time.
        #[serde(default)]
        window_ms: u64,
    },
    /// Set the size of the answer.
    Answer {
        /// Bytes of its body.
        bytes: usize,
        /// Up to so many more, by chance.
        #[serde(default)]
        spread: usize,
    },
    /// Answer an error.
    Fail {
        /// Share of the requests, by chance.
        share: f64,
        /// Status of the answer.
        status: u16,
    },
}

/// Duration of an operation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Mean.
    pub ms: f64,
    /// Variation around the mean.
    #[serde(default)]
    pub law: Law,
    /// More for each row of the data.
    #[serde(default)]
    pub per_row_us: f64,
    /// More time for each waiter of a resource.
    pub contended: Option<Contended>,
    /// Requests that do it; none: all.
    pub only: Option<Only>,
}

/// Distribution of a time.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// Not at all.
    #[default]
    Fixed,
    /// Between half and one and a half of the mean.
    Uniform,
    /// Memoryless.
    Exponential,
}

/// More time for each waiter of a resource.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contended {
    /// Name of the resource.
    pub resource: String,
    /// Share of the time that each waiter adds.
    pub share: f64,
}

/// Selection of requests: those that meet every condition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Only {
    /// A share of them, by chance.
    pub share: Option<f64>,
    /// Requests of one in so many connections.
    pub connection_in: Option<u64>,
    /// The first of each connection.
    pub first: bool,
}

fn default_refusal() -> u16 {
    503
}

/// Read pages of a file that is mapped into memory, each as likely as any other; those that are not in memory
/// come from storage. The file is written at the start.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Touch {
    /// Its name.
    pub file: String,
    /// Its size.
    pub bytes: usize,
    /// Pages that a request reads.
    pub pages: u64,
}

/// Ask another service; only threads can.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// Path of the request.
    pub path: String,
    /// Most tries, while the answer is an error.
    pub tries: u32,
    /// True if the thread keeps the connection for its next call; else it ends it after each answer.
    #[serde(default = "default_keep")]
    pub keep: bool,
}

fn default_keep() -> bool {
    true
}

fn default_limit_status() -> u16 {
    429
}

/// Pauses in which the whole specimen does nothing.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pauses {
    /// From the beginning of one to that of the next, on average.
    pub every_ms: f64,
    /// Length of each pause.
    pub length_ms: f64,
    /// Distribution of the times between them.
    #[serde(default)]
    pub law: Law,
}

/// Slowness at the start: times are multiplied by 1 + (factor - 1) exp(-t / time).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warmup {
    /// By how much at the first request.
    pub factor: f64,
    /// Time constant of its decay.
    pub time_s: f64,
}

/// A visitor that sends requests at fixed times, each on a new connection.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Visitor {
    /// Path of its requests.
    pub path: String,
    /// Time between two requests.
    pub every_ms: f64,
}

/// Naming of the metrics.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// As hand-written services name them.
    Plain,
    /// As Micrometer names them.
    Micrometer,
}

impl Settings {
    /// Reads them; every fault at once, as text.
    pub fn read(json: &str) -> Result<Settings, Vec<String>> {
        let settings: Settings =
            serde_json::from_str(json).map_err(|error| vec![format!("settings: {error}")])?;
        let faults = settings.faults();
        if faults.is_empty() {
            Ok(settings)
        } else {
            Err(faults)
        }
    }

    /// Every fault at once.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        match self.serve {
            Serve::Threads { most: 0 } => faults.push("serve.most: 0 threads cannot serve".into()),
            Serve::Loop { processes: 0 } => {
                faults.push("serve.processes: 0 processes cannot serve".into());
            }
            _ => {}
        }
        if self.routes.len() > MOST_ROUTES - 1 {
            faults.push(format!("routes: at most {}", MOST_ROUTES - 1));
        }
        if self.resources.len() > MOST_RESOURCES {
            faults.push(format!("resources: at most {MOST_RESOURCES}"));
        }
        for (name, resource) in &self.resources {
            if resource.size == 0 {
                faults.push(format!("resources.{name}.size: 0 admits no request"));
            }
        }
        for (path, ops) in &self.routes {
            self.route_faults(path, ops, &mut faults);
        }
        faults
    }

    fn route_faults(&self, path: &str, ops: &[Op], faults: &mut Vec<String>) {
        let mut held: Vec<&str> = Vec::new();
        for (at, op) in ops.iter().enumerate() {
            let mut note = |what: String| faults.push(format!("routes.{path}[{at}]: {what}"));
            let named = match op {
                Op::Take { resource, .. } | Op::Give { resource } => Some(resource),
                Op::Burn(work) | Op::Wait(work) => {
                    work.contended.as_ref().map(|more| &more.resource)
                }
                _ => None,
            };
            if let Some(name) = named.filter(|name| !self.resources.contains_key(*name)) {
                note(format!("there is no resource {name}"));
            }
            match op {
                Op::Take { resource, .. } if held.contains(&resource.as_str()) => {
                    note(format!("{resource} is held already"));
                }
                Op::Take { resource, .. } => held.push(resource),
                Op::Give { resource } => {
                    let before = held.len();
                    held.retain(|name| name != resource);
                    if held.len() == before {
                        note(format!("{resource} is not held"));
                    }
                }
                Op::Call(_) if matches!(self.serve, Serve::Loop { .. }) => {
                    note("an event loop cannot call".into());
                }
                Op::Pass if matches!(self.serve, Serve::Threads { .. }) => {
                    note("threads have no line to pass".into());
                }
                Op::Write { .. } | Op::Store { .. } | Op::Touch(_) if self.folder.is_none() => {
                    note("there is no folder".into());
                }
                Op::Store { pages, .. } if !(1..=MOST_PAGES).contains(pages) => {
                    note(format!("{pages} pages: from 1 to {MOST_PAGES}"));
                }
                Op::Touch(touch) if touch.bytes < PAGE => {
                    note(format!("{} bytes are less than a page", touch.bytes));
                }
                Op::Limit { rate, .. } | Op::Pace { rate, .. } if *rate <= 0.0 => {
                    note(format!("a rate of {rate} admits no request"));
                }
                _ => {}
            }
        }
        if !held.is_empty() {
            faults.push(format!(
                "routes.{path}: {} is never given back",
                held.join(", ")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_needed() {
        let settings = Settings::read("{}").unwrap();

        assert_eq!(settings.serve, Serve::Threads { most: 512 });
        assert!(settings.metrics.is_none());
    }

    #[test]
    fn every_fault_is_told_at_once() {
        let text = r#"{"serve": {"by": "threads", "most": 0}, "resources": {"db": {"size": 0, "kind": "lock"}},
            "routes": {"/a": [{"do": "take", "resource": "db"}, {"do": "give", "resource": "no"}, {"do": "pass"}]}}"#;

        let faults = Settings::read(text).unwrap_err();

        assert_eq!(
            faults,
            [
                "serve.most: 0 threads cannot serve",
                "resources.db.size: 0 admits no request",
                "routes./a[1]: there is no resource no",
                "routes./a[1]: no is not held",
                "routes./a[2]: threads have no line to pass",
                "routes./a: db is never given back",
            ]
        );
    }

    #[test]
    fn pages_need_a_file_that_has_one() {
        let text = r#"{"folder": "/tmp", "routes": {"/a": [{"do": "touch", "file": "f", "bytes": 4095, "pages": 1}]}}"#;

        let without = text.replace("\"folder\": \"/tmp\",", "");

        let faults = |text: &str| Settings::read(text).unwrap_err();
        assert_eq!(
            faults(text),
            ["routes./a[0]: 4095 bytes are less than a page"]
        );
        assert_eq!(faults(&without), ["routes./a[0]: there is no folder"]);
    }

    #[test]
    fn an_unknown_key_of_an_operation_is_refused() {
        let text = r#"{"routes": {"/a": [{"do": "wait", "ms": 1, "sceonds": 2}]}}"#;

        let faults = Settings::read(text).unwrap_err();

        assert!(faults[0].contains("sceonds"), "{faults:?}");
    }
}
