//! What a specimen is made of: how it serves, and the operations that the requests of each path meet, as JSON.
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

/// Everything that a specimen is told.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Of all draws.
    pub seed: u64,
    /// Where it serves on 127.0.0.1; 0: a free one.
    pub port: u16,
    /// Processors that it may use; empty: all.
    pub cpus: Vec<usize>,
    /// Who works.
    pub serve: Serve,
    /// How connections come in.
    pub listen: Listen,
    /// How connections are kept.
    pub connection: Kept,
    /// What requests hold, by name.
    pub resources: BTreeMap<String, Resource>,
    /// What requests for a path meet, in order; other paths are answered 404.
    pub routes: BTreeMap<String, Vec<Op>>,
    /// When nothing at all is done.
    pub pauses: Option<Pauses>,
    /// How much slower it is at first.
    pub warmup: Option<Warmup>,
    /// Others who ask, too.
    pub visitors: Vec<Visitor>,
    /// What its own metrics are called; none: it has none.
    pub metrics: Option<Dialect>,
    /// Goes into the header `X-Backend` of each answer.
    pub backend: Option<String>,
    /// Where it may write files.
    pub folder: Option<String>,
}

/// Who works.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum Serve {
    /// Threads that take whole requests in the order in which they come, and block.
    Threads {
        /// At most.
        most: usize,
    },
    /// Processes with an event loop each: waiting lets others go on, computing does not.
    Loop {
        /// How many.
        processes: usize,
    },
}

impl Default for Serve {
    fn default() -> Serve {
        Serve::Threads { most: 512 }
    }
}

/// How connections come in.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Listen {
    /// Connections that wait to be accepted.
    pub backlog: u32,
    /// From one accept to the next, at least.
    pub accept_every_ms: f64,
    /// Whether each process of [`Serve::Loop`] has a listener of its own, among which the kernel hashes
    /// connections; else they share one and whoever is free accepts.
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

/// How connections are kept.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Kept {
    /// Requests after which it closes one.
    pub requests: Option<u64>,
    /// Age from which on it closes one with the next answer.
    pub age_ms: Option<f64>,
    /// Whether head and body of an answer leave in two writes, the second of which waits for an
    /// acknowledgement (Nagle).
    pub two_writes: bool,
}

/// What requests hold; a resource belongs to one process.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// Holders at once; further ones wait in line.
    pub size: usize,
    /// Under which kind of name the metrics tell of it.
    pub kind: ResourceKind,
}

/// Under which kind of name the metrics tell of a resource.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// A lock.
    Lock,
    /// A pool of connections to something.
    Pool,
    /// Nothing is told.
    Hidden,
}

/// One operation.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Op {
    /// Compute: processor time of the thread.
    Burn(Work),
    /// Wait for something elsewhere.
    Wait(Work),
    /// Take a place of a resource.
    Take(Take),
    /// Give it back.
    Give(Give),
    /// Queue again behind everybody who is ready; of an event loop.
    Pass,
    /// Write to a file.
    Write(Write),
    /// Store pages on the device, past the cache of the system.
    Store(Store),
    /// Read pages of a file that is mapped into memory.
    Touch(Touch),
    /// Let the data grow.
    Grow(Grow),
    /// Keep memory for ever.
    Leak(Leak),
    /// Ask another service.
    Call(Call),
    /// Refuse what exceeds a rate (token bucket).
    Limit(Limit),
    /// Delay what exceeds a rate.
    Pace(Pace),
    /// How large the answer is.
    Answer(Answer),
    /// Answer an error.
    Fail(Fail),
}

/// How long something takes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// Mean.
    pub ms: f64,
    /// How it varies.
    #[serde(default)]
    pub law: Law,
    /// More for each row of the data.
    #[serde(default)]
    pub per_row_us: f64,
    /// More for each who waits for a resource.
    #[serde(default)]
    pub contended: Option<Contended>,
    /// Which requests do it; none: all.
    #[serde(default)]
    pub only: Option<Only>,
}

/// How a time varies.
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

/// More time for each who waits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contended {
    /// For which resource they wait.
    pub resource: String,
    /// Of the time, for each.
    pub share: f64,
}

/// Which requests; those that meet every condition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Only {
    /// A share of them, by chance.
    pub share: Option<f64>,
    /// Those of one in so many connections.
    pub connection_in: Option<u64>,
    /// The first of each connection.
    pub first: bool,
}

/// Take a place of a resource.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Take {
    /// Which.
    pub resource: String,
    /// How long to wait at most; 0: not at all, none: for ever.
    #[serde(default)]
    pub timeout_ms: Option<f64>,
    /// What is answered then.
    #[serde(default = "default_refusal")]
    pub status: u16,
    /// With which words.
    #[serde(default)]
    pub words: String,
}

fn default_refusal() -> u16 {
    503
}

/// Give a place back.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Give {
    /// Of which resource.
    pub resource: String,
}

/// Write to a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// Its name.
    pub file: String,
    /// How much.
    pub bytes: usize,
    /// Whether to wait until it is on the disk.
    #[serde(default)]
    pub sync: bool,
}

/// Store pages on the device, over and over in the same 64 MiB of a file; one request at a time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// The file's name.
    pub file: String,
    /// How many pages of 4 KiB.
    pub pages: usize,
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
    /// How many a request reads.
    pub pages: u64,
}

/// Let the data grow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grow {
    /// By so many rows.
    pub rows: u64,
}

/// Keep memory for ever; 256 MiB at most in all.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leak {
    /// How much.
    pub bytes: usize,
}

/// Ask another service; only threads can.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// What is asked for.
    pub path: String,
    /// How often at most, when it answers an error.
    pub tries: u32,
    /// Whether the thread keeps the connection for its next call; else it ends it after each answer.
    #[serde(default = "default_keep")]
    pub keep: bool,
}

fn default_keep() -> bool {
    true
}

/// Refuse what exceeds a rate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Requests per second.
    pub rate: f64,
    /// Requests that may come at once.
    pub burst: f64,
    /// What is answered.
    #[serde(default = "default_limit_status")]
    pub status: u16,
}

fn default_limit_status() -> u16 {
    429
}

/// Delay what exceeds a rate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// Requests per second.
    pub rate: f64,
}

/// How large the answer is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Bytes of its body.
    pub bytes: usize,
    /// Up to so many more, by chance.
    #[serde(default)]
    pub spread: usize,
}

/// Answer an error.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    /// To a share of the requests, by chance.
    pub share: f64,
    /// Which.
    pub status: u16,
}

/// When nothing at all is done.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pauses {
    /// From the beginning of one to that of the next, on average.
    pub every_ms: f64,
    /// How long each lasts.
    pub length_ms: f64,
    /// How regular they are.
    #[serde(default)]
    pub law: Law,
}

/// How much slower it is at first: times are multiplied by 1 + (factor - 1) exp(-t / time).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warmup {
    /// By how much at the first request.
    pub factor: f64,
    /// How fast that passes.
    pub time_s: f64,
}

/// Somebody who asks at fixed times, on a connection of its own each time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Visitor {
    /// For what.
    pub path: String,
    /// How often.
    pub every_ms: f64,
}

/// What the metrics are called.
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
        let mut found = Vec::new();
        match self.serve {
            Serve::Threads { most: 0 } => found.push("serve.most: 0 threads serve nobody".into()),
            Serve::Loop { processes: 0 } => {
                found.push("serve.processes: 0 processes serve nobody".into());
            }
            _ => {}
        }
        if self.routes.len() > MOST_ROUTES - 1 {
            found.push(format!("routes: at most {}", MOST_ROUTES - 1));
        }
        if self.resources.len() > MOST_RESOURCES {
            found.push(format!("resources: at most {MOST_RESOURCES}"));
        }
        for (name, resource) in &self.resources {
            if resource.size == 0 {
                found.push(format!("resources.{name}.size: 0 lets nobody in"));
            }
        }
        for (path, ops) in &self.routes {
            self.route_faults(path, ops, &mut found);
        }
        found
    }

    fn route_faults(&self, path: &str, ops: &[Op], found: &mut Vec<String>) {
        let mut held: Vec<&str> = Vec::new();
        for (at, op) in ops.iter().enumerate() {
            let mut note = |what: String| found.push(format!("routes.{path}[{at}]: {what}"));
            let named = match op {
                Op::Take(take) => Some(&take.resource),
                Op::Give(give) => Some(&give.resource),
                Op::Burn(work) | Op::Wait(work) => {
                    work.contended.as_ref().map(|more| &more.resource)
                }
                _ => None,
            };
            if let Some(name) = named.filter(|name| !self.resources.contains_key(*name)) {
                note(format!("there is no resource {name}"));
            }
            match op {
                Op::Take(take) if held.contains(&take.resource.as_str()) => {
                    note(format!("{} is held already", take.resource));
                }
                Op::Take(take) => held.push(&take.resource),
                Op::Give(give) => {
                    let before = held.len();
                    held.retain(|name| *name != give.resource);
                    if held.len() == before {
                        note(format!("{} is not held", give.resource));
                    }
                }
                Op::Call(_) if matches!(self.serve, Serve::Loop { .. }) => {
                    note("an event loop cannot call".into());
                }
                Op::Pass if matches!(self.serve, Serve::Threads { .. }) => {
                    note("threads have no line to pass".into());
                }
                Op::Write(_) | Op::Store(_) | Op::Touch(_) if self.folder.is_none() => {
                    note("there is no folder".into());
                }
                Op::Store(Store { pages, .. }) if !(1..=MOST_PAGES).contains(pages) => {
                    note(format!("{pages} pages: from 1 to {MOST_PAGES}"));
                }
                Op::Touch(touch) if touch.bytes < PAGE => {
                    note(format!("{} bytes are less than a page", touch.bytes));
                }
                Op::Limit(Limit { rate, .. }) | Op::Pace(Pace { rate }) if *rate <= 0.0 => {
                    note(format!("a rate of {rate} lets nobody in"));
                }
                _ => {}
            }
        }
        if !held.is_empty() {
            found.push(format!(
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
                "serve.most: 0 threads serve nobody",
                "resources.db.size: 0 lets nobody in",
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

        let told = |text: &str| Settings::read(text).unwrap_err();
        assert_eq!(
            told(text),
            ["routes./a[0]: 4095 bytes are less than a page"]
        );
        assert_eq!(told(&without), ["routes./a[0]: there is no folder"]);
    }

    #[test]
    fn an_unknown_key_of_an_operation_is_refused() {
        let text = r#"{"routes": {"/a": [{"do": "wait", "ms": 1, "sceonds": 2}]}}"#;

        let faults = Settings::read(text).unwrap_err();

        assert!(faults[0].contains("sceonds"), "{faults:?}");
    }
}
