//! The server's truth: what came, what was answered, and when.
//!
//! Each thread keeps its own counts under a lock that it takes once for each batch of events; a reader takes
//! the locks in turn and adds up. Only orderly sums come out, never a half-counted request.

use std::collections::{BTreeMap, HashMap};

use derive_more::AddAssign;
use serde::Serialize;

use crate::sys::monotonic_ns;
use crate::tls::Shaken;

/// Most paths that are kept apart; what is beyond stands under `(other)`.
const MAX_PATHS: usize = 1024;
/// Most violations whose text is kept.
const MAX_SAMPLES: usize = 20;
/// Name for requests that could not be read.
pub const INVALID: &str = "(invalid)";
/// Name for paths beyond the bound.
pub const OTHER: &str = "(other)";

/// Requests of one path.
#[derive(AddAssign, Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct PathCounts {
    /// Requests whose head came whole.
    pub received: u64,
    /// Answers that were handed whole to the kernel.
    pub answered: u64,
    /// Connections whose first request was for this path.
    pub connections: u64,
    /// Bytes of answers handed to the kernel.
    pub bytes_out: u64,
    /// Bytes of the request bodies, unframed.
    pub body_bytes_in: u64,
    /// Requests that broke a rule, and bytes after the end.
    pub violations: u64,
}

/// Connections, by the side that ended them.
#[derive(AddAssign, Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct ConnectionBook {
    /// Taken off the accept queue.
    pub accepted: u64,
    /// Ended by the client first (end of its side, or reset).
    pub closed_by_client: u64,
    /// Ended by the origin first.
    pub closed_by_server: u64,
    /// Connections that the client ended with a reset.
    pub reset_by_client: u64,
    /// Ended at once because of the admission rule.
    pub turned_away: u64,
    /// Failures of `accept` (descriptors ran out).
    pub accept_errors: u64,
}

/// TLS handshakes.
#[derive(AddAssign, Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct HandshakeBook {
    /// Made anew.
    pub full: u64,
    /// Earlier sessions taken up again.
    pub resumed: u64,
    /// Not made.
    pub failed: u64,
}

impl HandshakeBook {
    pub(crate) fn note(&mut self, shaken: Shaken) {
        match shaken {
            Shaken::Full => self.full += 1,
            Shaken::Resumed => self.resumed += 1,
            Shaken::Failed => self.failed += 1,
        }
    }
}

/// One violation of the rules by the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The rule.
    pub rule: String,
    /// Path of the request before it, or of itself.
    pub path: String,
    /// The first bytes, escaped.
    pub bytes: String,
}

/// A request as the server saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Served {
    /// CLOCK_MONOTONIC when the request was whole.
    pub received_ns: u64,
    /// CLOCK_MONOTONIC when the answer had been handed to the kernel.
    pub answered_ns: u64,
    /// Index into the paths of the log.
    pub path: u32,
    /// Number of the connection, in the order of acceptance.
    pub connection: u64,
}

/// The last requests, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServedLog {
    /// Names of paths.
    pub paths: Vec<String>,
    /// In the order of their answers.
    pub rows: Vec<Served>,
    /// Older rows that were overwritten.
    pub lost: u64,
}

/// Everything since the start or the last reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Version of this layout.
    pub schema_version: u32,
    /// CLOCK_MONOTONIC of the start or the last reset.
    pub since_ns: u64,
    /// CLOCK_MONOTONIC of this reading.
    pub now_ns: u64,
    /// Requests whose head came whole.
    pub received: u64,
    /// Answers that were handed whole to the kernel.
    pub answered: u64,
    /// Requests that the client gave up before their answer was due.
    pub abandoned: u64,
    /// Requests that ended inside head or body because the client ended the connection.
    pub cut: u64,
    /// Requests that came before the answer to the one before them was out.
    pub pipelined: u64,
    /// Requests received after the origin closed without announcing it: the two may have crossed.
    pub crossed: u64,
    /// The latest that an answer or an act of a script began after its time, in ns.
    pub late_ns: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes handed to the kernel.
    pub bytes_out: u64,
    /// Connections.
    pub connections: ConnectionBook,
    /// TLS handshakes.
    pub handshakes: HandshakeBook,
    /// Connections that are open now.
    pub open: u64,
    /// Connections that the kernel has taken and the origin has not.
    pub accept_queue: u32,
    /// Requests that broke a rule, and bytes after the end.
    pub violations: u64,
    /// The first of them.
    pub violation_samples: Vec<Violation>,
    /// Freezes that have ended: from and until, CLOCK_MONOTONIC.
    pub freezes: Vec<(u64, u64)>,
    /// By path.
    pub paths: BTreeMap<String, PathCounts>,
}

impl Counts {
    /// Returns the counts of one path; zeros if it was never requested.
    pub fn path(&self, name: &str) -> PathCounts {
        self.paths.get(name).copied().unwrap_or_default()
    }

    /// Adds the counts of one thread.
    pub(crate) fn add(&mut self, thread: &ThreadCounts) {
        for (name, path) in thread.names.iter().zip(&thread.paths) {
            if *path == PathCounts::default() {
                continue;
            }
            *self.paths.entry(name.clone()).or_default() += *path;
            self.received += path.received;
            self.answered += path.answered;
            self.bytes_out += path.bytes_out;
            self.violations += path.violations;
        }
        self.abandoned += thread.abandoned;
        self.cut += thread.cut;
        self.pipelined += thread.pipelined;
        self.crossed += thread.crossed;
        self.late_ns = self.late_ns.max(thread.late_ns);
        self.bytes_in += thread.bytes_in;
        self.handshakes += thread.handshakes;
        self.connections += thread.connections;
        let room = MAX_SAMPLES - self.violation_samples.len();
        self.violation_samples
            .extend(thread.samples.iter().take(room).cloned());
        self.freezes.extend(&thread.freezes);
    }
}

/// The counts of one thread.
#[derive(Debug, Default)]
pub(crate) struct ThreadCounts {
    pub paths: Vec<PathCounts>,
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    pub abandoned: u64,
    pub cut: u64,
    pub pipelined: u64,
    pub crossed: u64,
    pub late_ns: u64,
    pub bytes_in: u64,
    pub connections: ConnectionBook,
    pub handshakes: HandshakeBook,
    samples: Vec<Violation>,
    pub freezes: Vec<(u64, u64)>,
    log: Ring,
}

impl ThreadCounts {
    pub fn new(log_rows: usize) -> ThreadCounts {
        ThreadCounts {
            log: Ring {
                room: log_rows,
                ..Ring::default()
            },
            ..ThreadCounts::default()
        }
    }

    /// The index of a path, which stays the same as long as the thread lives.
    pub fn path_index(&mut self, name: &str) -> u32 {
        if let Some(&index) = self.by_name.get(name) {
            return index;
        }
        if self.names.len() >= MAX_PATHS && name != OTHER {
            return self.path_index(OTHER);
        }
        let index = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.paths.push(PathCounts::default());
        self.by_name.insert(name.to_owned(), index);
        index
    }

    pub fn path(&mut self, index: u32) -> &mut PathCounts {
        &mut self.paths[index as usize]
    }

    pub fn logs(&self) -> bool {
        self.log.room > 0
    }

    pub fn served(&mut self, row: Served) {
        self.log.push(row);
    }

    pub fn violation(&mut self, rule: &str, path: u32, bytes: &[u8]) {
        self.path(path).violations += 1;
        if self.samples.len() < MAX_SAMPLES {
            let shown = &bytes[..bytes.len().min(160)];
            self.samples.push(Violation {
                rule: rule.to_owned(),
                path: self.names[path as usize].clone(),
                bytes: shown.escape_ascii().to_string(),
            });
        }
    }

    /// Forgets counts and log; indices of paths stay.
    pub fn reset(&mut self) {
        self.paths.fill(PathCounts::default());
        self.abandoned = 0;
        self.cut = 0;
        self.pipelined = 0;
        self.crossed = 0;
        self.late_ns = 0;
        self.bytes_in = 0;
        self.connections = ConnectionBook::default();
        self.handshakes = HandshakeBook::default();
        self.samples.clear();
        self.freezes.clear();
        self.log.rows.clear();
        self.log.at = 0;
        self.log.lost = 0;
    }
}

/// The last `room` rows.
#[derive(Debug, Default)]
struct Ring {
    room: usize,
    rows: Vec<Served>,
    at: usize,
    lost: u64,
}

impl Ring {
    fn push(&mut self, row: Served) {
        if self.rows.len() < self.room {
            self.rows.push(row);
        } else if self.room > 0 {
            self.rows[self.at] = row;
            self.at = (self.at + 1) % self.room;
            self.lost += 1;
        }
    }
}

/// The logs of all threads as one, by time of answer.
pub(crate) fn merge_logs<'a>(threads: impl Iterator<Item = &'a ThreadCounts>) -> ServedLog {
    let mut merged = ServedLog::default();
    let mut by_name: HashMap<&str, u32> = HashMap::new();
    for thread in threads {
        let index: Vec<u32> = thread
            .names
            .iter()
            .map(|name| {
                *by_name.entry(name).or_insert_with(|| {
                    merged.paths.push(name.clone());
                    merged.paths.len() as u32 - 1
                })
            })
            .collect();
        merged.lost += thread.log.lost;
        merged.rows.extend(thread.log.rows.iter().map(|row| Served {
            path: index[row.path as usize],
            ..*row
        }));
    }
    merged.rows.sort_by_key(|row| row.answered_ns);
    merged
}

impl Counts {
    /// Empty counts that are being read now.
    pub(crate) fn begin(since_ns: u64) -> Counts {
        Counts {
            schema_version: 1,
            since_ns,
            now_ns: monotonic_ns(),
            ..Counts::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_beyond_the_bound_are_counted_as_other() {
        let mut counts = ThreadCounts::new(0);

        for at in 0..MAX_PATHS + 10 {
            let index = counts.path_index(&format!("/{at}"));
            counts.path(index).received += 1;
        }
        let mut sum = Counts::default();
        sum.add(&counts);

        assert_eq!(sum.received, MAX_PATHS as u64 + 10);
        assert_eq!(sum.path(OTHER).received, 10);
    }

    #[test]
    fn the_log_keeps_the_last_rows_and_says_how_many_it_lost() {
        let mut counts = ThreadCounts::new(3);
        let path = counts.path_index("/");

        for at in 0..5 {
            counts.served(Served {
                received_ns: at,
                answered_ns: at,
                path,
                connection: 0,
            });
        }
        let log = merge_logs([&counts].into_iter());

        assert_eq!(log.lost, 2);
        assert_eq!(
            log.rows
                .iter()
                .map(|row| row.answered_ns)
                .collect::<Vec<_>>(),
            [2, 3, 4]
        );
    }
}
