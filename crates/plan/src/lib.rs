//! The plan: all that the engine needs to know, frozen, as canonical JSON.
//!
//! Nothing here touches a socket or a clock. Python writes a plan (`model/workload.py` holds the same
//! names); it is validated whole ([`validate`]) and compiled to requests, checks and extractors ([`program`]). When
//! requests are due follows from the plan alone ([`arrival`]). Times are nanoseconds.
//!
//! Here are the run and its streams; what each stream consists of is in `target`, `workload` and `scenario`.

pub mod arrival;
mod bounded;
pub mod program;
mod scenario;
mod target;
pub mod validate;
mod workload;

use serde::{Deserialize, Serialize};

pub use bounded::read_planned;
pub use scenario::{Auth, Body, Bounds, Check, Extract, Group, Scenario, Source, Step};
pub use target::{Connection, PemFile, Reuse, Target, Tls};
pub use workload::{Arrivals, Overflow, Profile, Replay, Segment, Think, Workload};

/// The version of the plan that this engine reads.
pub const SCHEMA_VERSION: u32 = 1;

/// Everything that one run of the engine does.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Always [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Every random draw of the run follows from it.
    pub seed: u64,
    /// Share of the whole load that this machine carries.
    #[serde(default)]
    pub share: Share,
    /// Engine threads; none: one per core that the process may use. Never more than the load is worth: its users, 5,000
    /// arrivals a second or 32 connections of a pool for each.
    pub threads: Option<u32>,
    /// Thread i is pinned to `cpus[i % len]`; none: not pinned.
    pub cpus: Option<Vec<u32>>,
    /// Load before the measured part.
    #[serde(default)]
    pub warmup_ns: u64,
    /// The measured part; none: until every load stream has done its requests.
    pub duration_ns: Option<u64>,
    /// Time that requests in flight have to finish after the end (nothing new is sent).
    #[serde(default)]
    pub drain_ns: u64,
    /// Measured loads and probes, all of one engine.
    pub streams: Vec<Stream>,
    /// Files of records that templates take values from, as `{{NAME.column}}`.
    #[serde(default)]
    pub feeds: Vec<Feed>,
    /// Folder for samples, connections, intervals and counters; none: kept in memory only.
    pub record: Option<RecordTo>,
}

/// A file of records; each iteration that uses it is given one.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Feed {
    /// Its name in templates; unique in the plan.
    pub name: String,
    /// Path of the file.
    pub path: String,
    /// SHA-256 of its bytes, hex.
    pub digest: String,
    /// Format of the file.
    pub format: FeedFormat,
    /// Rule that picks the record of an iteration.
    #[serde(default)]
    pub pick: Pick,
    /// Behaviour after the last record.
    #[serde(default)]
    pub end: AtEnd,
}

/// Format of a feed.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum FeedFormat {
    /// RFC 4180: the first line names the columns; all values are texts.
    Csv,
    /// The same with tabs instead of commas.
    Tsv,
    /// One JSON object on each line; values keep their type.
    Jsonl,
}

/// Rule that picks the record of an iteration.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// The next one: iterations of a stream go through the file in order, across all its users.
    #[default]
    Shared,
    /// The next one, and in the whole run none twice: one stream only, and no second round.
    Unique,
    /// Any one, equally often.
    Random,
    /// The one with the user's number, for all its iterations: a closed stream only.
    User,
}

/// Behaviour after the last record.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum AtEnd {
    /// The first one again.
    #[default]
    Loop,
    /// The user or stream that wants another one ends.
    Stop,
}

/// The parts `from` to `to` - 1 of `of` equal parts of the load.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// From 0.
    pub from: u32,
    /// At most `of`.
    pub to: u32,
    /// At least 1.
    pub of: u32,
}

impl Default for Share {
    fn default() -> Self {
        Share {
            from: 0,
            to: 1,
            of: 1,
        }
    }
}

/// Rows of each stream that the sample log keeps unless the plan says otherwise; docs/adr/0071 says why.
const MAX_SAMPLE_ROWS: u64 = 2_000_000;

/// The folder that the live files go to, and their bound.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RecordTo {
    /// An existing folder.
    pub dir: String,
    /// Beyond this many rows of a stream its sample log is thinned by a hash of the sequence number; null: never.
    #[serde(default = "default_max_sample_rows")]
    pub max_sample_rows: Option<u64>,
    /// True if `sums.bin` is written too, from which several machines' counts are merged.
    #[serde(default)]
    pub sums: bool,
}

fn default_max_sample_rows() -> Option<u64> {
    Some(MAX_SAMPLE_ROWS)
}

impl RecordTo {
    /// The same bound for connections, which are kept where no rows of requests are wanted.
    pub fn max_connection_rows(&self) -> u64 {
        match self.max_sample_rows {
            None => u64::MAX,
            Some(0) => MAX_SAMPLE_ROWS,
            Some(rows) => rows,
        }
    }
}

/// A mix of scenarios under one workload against one target, with a recorder of its own.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Unique in the plan.
    pub name: String,
    /// Measured load, or probe that watches it.
    pub role: Role,
    /// Destination of the requests.
    pub target: Target,
    /// At least one; drawn by weight for each iteration.
    pub scenarios: Vec<Scenario>,
    /// Due times of the requests.
    pub workload: Workload,
    /// Use of connections.
    #[serde(default)]
    pub connection: Connection,
    /// From issue to the last byte, connecting included.
    pub timeout_ns: u64,
    /// Lifetime of the cookies that the service sets.
    #[serde(default)]
    pub cookies: Cookies,
}

/// Lifetime of the cookies that the service sets.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Cookies {
    /// They are ignored.
    Off,
    /// For one iteration: each begins as a new user.
    #[default]
    Iteration,
    /// As long as the user is there; a closed stream only.
    Keep,
}

/// Purpose of a stream.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The measured load.
    Load,
    /// A thin stream that watches what the load does to others.
    Probe,
}
