//! The plan: all that the engine needs to know, frozen, as canonical JSON.
//!
//! Nothing here touches a socket or a clock. Python writes a plan (`model/workload.py` holds the same
//! names), the engine validates it whole and compiles it (`program.rs`). Times are nanoseconds.

use serde::{Deserialize, Serialize};

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
    /// Which part of the whole load this machine carries.
    #[serde(default)]
    pub share: Share,
    /// Engine threads; none: one per core that the process may use. Never more than the load is worth: its users, 5,000
    /// arrivals a second or 32 connections of a pool for each.
    #[serde(default)]
    pub threads: Option<u32>,
    /// Thread i is pinned to `cpus[i % len]`; none: not pinned.
    #[serde(default)]
    pub cpus: Option<Vec<u32>>,
    /// Load before the measured part.
    #[serde(default)]
    pub warmup_ns: u64,
    /// The measured part; none: until every load stream has done its requests.
    #[serde(default)]
    pub duration_ns: Option<u64>,
    /// How long requests in flight may still finish after the end (nothing new is sent).
    #[serde(default)]
    pub drain_ns: u64,
    /// Measured loads and probes, all of one engine.
    pub streams: Vec<Stream>,
    /// Files of records that templates take values from, as `{{NAME.column}}`.
    #[serde(default)]
    pub feeds: Vec<Feed>,
    /// Where samples, connections, intervals and counters are written; none: kept in memory only.
    #[serde(default)]
    pub record: Option<RecordTo>,
}

/// A file of records; each iteration that uses it is given one.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Feed {
    /// Its name in templates; unique in the plan.
    pub name: String,
    /// Where it is.
    pub path: String,
    /// SHA-256 of its bytes, hex.
    pub digest: String,
    /// How it is written.
    pub format: FeedFormat,
    /// Which record an iteration is given.
    #[serde(default)]
    pub pick: Pick,
    /// What happens after the last record.
    #[serde(default)]
    pub end: AtEnd,
}

/// How a feed is written.
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

/// Which record an iteration is given.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// The next one: iterations of a stream go through the file in order, whoever does them.
    #[default]
    Shared,
    /// The next one, and in the whole run none twice: one stream only, and no second round.
    Unique,
    /// Any one, equally often.
    Random,
    /// The one with the user's number, for all its iterations: a closed stream only.
    User,
}

/// What happens after the last record.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum AtEnd {
    /// The first one again.
    #[default]
    Loop,
    /// The user or stream that wants another one ends.
    Stop,
}

/// Share `index` of `of` equal parts of the load.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// From 0.
    pub index: u32,
    /// At least 1.
    pub of: u32,
}

impl Default for Share {
    fn default() -> Self {
        Share { index: 0, of: 1 }
    }
}

/// The folder that the live files go to, and their bound.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RecordTo {
    /// An existing folder.
    pub dir: String,
    /// Above this many rows the sample log is thinned by a hash of the sequence number.
    #[serde(default = "default_max_sample_rows")]
    pub max_sample_rows: u64,
}

fn default_max_sample_rows() -> u64 {
    5_000_000
}

/// A mix of scenarios under one workload against one target, with a recorder of its own.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Unique in the plan.
    pub name: String,
    /// Whether it is the measured load or watches it.
    pub role: Role,
    /// Where requests go.
    pub target: Target,
    /// At least one; drawn by weight for each iteration.
    pub scenarios: Vec<Scenario>,
    /// When requests are due.
    pub workload: Workload,
    /// How connections are used.
    #[serde(default)]
    pub connection: Connection,
    /// From issue to the last byte, connecting included.
    pub timeout_ns: u64,
    /// How long users keep the cookies that the service sets.
    #[serde(default)]
    pub cookies: Cookies,
}

/// How long users keep the cookies that the service sets.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Cookies {
    /// They are ignored.
    Off,
    /// For one iteration: each begins as somebody new.
    #[default]
    Iteration,
    /// As long as the user is there; a closed stream only.
    Keep,
}

/// What a stream is for.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The measured load.
    Load,
    /// A thin stream that watches what the load does to others.
    Probe,
}

/// Where requests go.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Host name or address literal, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Value of the Host header.
    pub authority: String,
    /// How connections are secured; none: plain TCP.
    #[serde(default)]
    pub tls: Option<Tls>,
}

/// How connections are secured. Versions 1.2 and 1.3, http/1.1 offered by ALPN.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The name asked for (SNI) and verified; none: the target's host.
    #[serde(default)]
    pub server_name: Option<String>,
    /// Certificates of the CAs that are trusted; none: those that the operating system trusts.
    #[serde(default)]
    pub ca: Option<PemFile>,
    /// The client's certificate and its chain; none: the client has none.
    #[serde(default)]
    pub certificate: Option<PemFile>,
    /// The client's private key; none: it stands in the file of the certificate.
    #[serde(default)]
    pub key: Option<PemFile>,
    /// Takes any certificate of the server.
    #[serde(default)]
    pub insecure: bool,
    /// New connections take up earlier sessions where the server lets them.
    #[serde(default = "default_resume")]
    pub resume: bool,
}

fn default_resume() -> bool {
    true
}

/// A file in PEM form, of which the plan holds no content.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PemFile {
    /// Where it is.
    pub path: String,
    /// SHA-256 of its bytes, hex.
    pub digest: String,
}

/// How connections are used.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// When a connection ends.
    #[serde(default)]
    pub reuse: Reuse,
    /// All users share this many connections (waiting for one is response time); none: one for each user.
    #[serde(default)]
    pub pool: Option<u32>,
}

/// When a connection ends.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reuse {
    /// Kept until the run or the server ends it.
    #[default]
    Keep,
    /// A new connection for each request.
    New,
    /// Closed by us after so many requests.
    Requests {
        /// At least 1.
        requests: u32,
    },
}

/// When requests are due.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Workload {
    /// Users who wait for the answer, think, and ask again.
    Closed {
        /// Users at once.
        users: u32,
        /// Pause of a user between iterations.
        #[serde(default)]
        think: Think,
        /// An iteration of a user is due so long after its last one was due, whatever that one took; none: after the
        /// last one's end and a pause. One that begins late is measured from when it was due.
        #[serde(default)]
        pace: Option<Think>,
        /// Users start evenly spread over this time.
        #[serde(default)]
        ramp_ns: u64,
        /// How many users are there over time: user i while the level is above i, and on to the end of its iteration.
        /// None: all of them.
        #[serde(default)]
        profile: Option<Profile>,
        /// Each user stops after so many iterations.
        #[serde(default)]
        iterations: Option<u64>,
        /// The stream stops after so many requests in all.
        #[serde(default)]
        requests: Option<u64>,
    },
    /// Iterations that start at due times, whatever the server does: at a rate, along a profile or from a file.
    Open {
        /// Iterations per second, total.
        #[serde(default)]
        rate_per_s: Option<f64>,
        /// Iterations per second, total, over time.
        #[serde(default)]
        profile: Option<Profile>,
        /// Due times.
        #[serde(default)]
        replay: Option<Replay>,
        /// Law of the gaps between due times.
        #[serde(default)]
        arrivals: Arrivals,
        /// Iterations under way at once; what is due beyond is queued or dropped.
        max_in_flight: u32,
        /// What happens to iterations that are due while `max_in_flight` are under way.
        overflow: Overflow,
        /// The stream stops after so many requests in all.
        #[serde(default)]
        requests: Option<u64>,
    },
}

/// A level over time, from the start of the load, warm-up included.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// At least one, in order.
    pub segments: Vec<Segment>,
    /// Whether it begins again after the last; if not, the last level stays.
    #[serde(default)]
    pub repeats: bool,
}

/// A part of a profile in which the level is linear.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Its length.
    pub ns: u64,
    /// Level at its start.
    pub start: f64,
    /// Level at its end.
    pub end: f64,
}

impl Profile {
    /// The highest level.
    pub fn peak(&self) -> f64 {
        self.segments.iter().fold(0.0, |peak, segment| {
            peak.max(segment.start).max(segment.end)
        })
    }

    /// Whether the level is the same at all moments between two.
    pub fn is_level(&self, from_ns: u64, until_ns: u64) -> bool {
        let (mut begin, mut levels) = (0u64, Vec::new());
        for segment in &self.segments {
            let end = begin.saturating_add(segment.ns);
            if self.repeats || (begin < until_ns && end > from_ns) {
                levels.extend([segment.start, segment.end]);
            }
            begin = end;
        }
        if !self.repeats && until_ns > begin {
            levels.extend(self.segments.last().map(|last| last.end));
        }
        levels.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// Whether nothing is asked for any more from some moment on.
    pub fn ends(&self) -> bool {
        !self.repeats && self.segments.last().is_some_and(|last| last.end == 0.0)
    }
}

/// Due times from a file.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// Where it is.
    pub path: String,
    /// SHA-256 of its bytes, hex.
    pub digest: String,
    /// Name in the first line, or number from 1, of the column of the times; none: what stands before the first comma.
    #[serde(default)]
    pub column: Option<String>,
    /// So many times as fast; above 0.
    #[serde(default = "as_it_was")]
    pub speed: f64,
    /// Whether the first time is the start.
    #[serde(default)]
    pub from_first: bool,
    /// How many due times it has.
    pub arrivals: u64,
    /// The last one, nanoseconds since the start.
    pub last_ns: u64,
    /// The most within a second.
    pub peak_per_s: f64,
}

fn as_it_was() -> f64 {
    1.0
}

/// Law of the gaps between due times; a replay has none.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// On a fixed grid.
    #[default]
    Constant,
    /// Exponential gaps.
    Poisson,
}

/// What happens to an iteration that is due while all places are taken.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// It waits; the wait is response time.
    Queue,
    /// It is counted as dropped.
    Drop,
}

/// A pause.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Think {
    /// No pause.
    #[default]
    None,
    /// Always the same.
    Fixed {
        /// Length.
        ns: u64,
    },
    /// Uniform between two bounds.
    Uniform {
        /// Shortest.
        low_ns: u64,
        /// Longest.
        high_ns: u64,
    },
    /// Exponential.
    Exponential {
        /// Mean length.
        mean_ns: u64,
    },
}

/// Steps that one user does in order; a failed extraction ends the iteration.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Unique in the stream.
    pub name: String,
    /// Share of iterations, relative to the other scenarios; above 0.
    pub weight: f64,
    /// At least one.
    pub steps: Vec<Step>,
    /// Steps that belong together or are repeated, in the order of their first steps, outer before inner.
    #[serde(default)]
    pub groups: Vec<Group>,
}

/// Neighbouring steps of a scenario that belong together; they may be repeated.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name; empty: it only repeats.
    #[serde(default)]
    pub name: String,
    /// Index of its first step in the scenario.
    pub first: u16,
    /// How many steps, those of inner groups included; at least 1.
    pub steps: u16,
    /// How many times in a row; at least 1.
    pub repeat: u32,
}

impl Group {
    /// Whether it has a name, and with it times of its own.
    pub fn is_named(&self) -> bool {
        !self.name.is_empty()
    }
}

/// One request of a scenario. Strings are templates: `{{...}}` is filled for each request.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Unique in the stream; the name in results.
    pub name: String,
    /// GET, POST ...
    pub method: String,
    /// Path and query, a template that begins with `/`.
    pub path: String,
    /// In the order sent; values are templates. Host, Content-Length and Connection are the engine's.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Credentials from the environment; none: none are sent.
    #[serde(default)]
    pub auth: Option<Auth>,
    /// What is sent after the head.
    #[serde(default)]
    pub body: Body,
    /// Statuses that are as expected; empty: any from 200 to 399.
    #[serde(default)]
    pub expect: Vec<u16>,
    /// Judged when the status is as expected, all of them; one that fails makes the outcome `check_failed`.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// Values for later steps of the same iteration.
    #[serde(default)]
    pub extract: Vec<Extract>,
    /// Pause after this step (before the next step of the iteration).
    #[serde(default)]
    pub think: Think,
}

/// Credentials: an Authorization header whose secret is an environment variable of the engine, read when the plan is
/// compiled and never written.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Auth {
    /// Name and password (RFC 7617).
    Basic {
        /// The name; no colon.
        user: String,
        /// Name of the variable that holds the password.
        password_env: String,
    },
    /// A token (RFC 6750).
    Bearer {
        /// Name of the variable that holds the token.
        token_env: String,
    },
}

/// What is sent after the head.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Body {
    /// Nothing.
    #[default]
    None,
    /// A template.
    Text {
        /// The template.
        text: String,
    },
    /// A JSON value; a string in it that is one `{{...}}` keeps its JSON type.
    Json {
        /// The value.
        value: serde_json::Value,
    },
    /// The bytes of a file, as they are.
    File {
        /// Where it is.
        path: String,
        /// SHA-256 of its bytes, hex.
        digest: String,
    },
}

/// One demand on the answer.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Check {
    /// A value in the JSON body equals this one.
    Json {
        /// Dotted path: `data.items[0].id`.
        path: String,
        /// The value that must be there.
        equals: serde_json::Value,
    },
    /// Something stands at this path of the JSON body, were it null.
    Exists {
        /// Dotted path.
        path: String,
    },
    /// The body is JSON, and nothing stands at this path.
    Absent {
        /// Dotted path.
        path: String,
    },
    /// A number of the JSON body lies within bounds.
    Number {
        /// Dotted path.
        path: String,
        /// Where it must lie.
        is: Bounds,
    },
    /// An array of the JSON body has so many elements, an object so many members.
    Count {
        /// Dotted path.
        path: String,
        /// How many.
        is: Bounds,
    },
    /// A header has this value.
    Header {
        /// Name, case-insensitive.
        name: String,
        /// The value that it must have.
        equals: String,
    },
    /// The body contains this text.
    Contains {
        /// The text.
        text: String,
    },
    /// Something in the body matches this regular expression.
    Regex {
        /// In the syntax of the `regex` crate.
        pattern: String,
    },
    /// The decoded body has so many bytes.
    Size {
        /// How many.
        is: Bounds,
    },
    /// The response time, from due to the last byte, is below this. Counted like every check, but an answer that is late
    /// and as expected otherwise stays `ok`: its time belongs among those of the successes.
    Latency {
        /// The bound.
        below_ns: u64,
    },
}

/// Where a number must lie; at least one of them.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// It is this one.
    #[serde(default)]
    pub equals: Option<f64>,
    /// It is larger than this.
    #[serde(default)]
    pub above: Option<f64>,
    /// It is smaller than this.
    #[serde(default)]
    pub below: Option<f64>,
}

/// One value that later steps use as `{{name}}`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Extract {
    /// Its name in templates.
    pub name: String,
    /// Where it is found.
    pub from: Source,
}

/// Where an extracted value is found.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Source {
    /// In the JSON body.
    Json {
        /// Dotted path: `data.id`.
        path: String,
    },
    /// In a header.
    Header {
        /// Name, case-insensitive.
        name: String,
    },
    /// What a regular expression matches, in the body or in a header.
    Regex {
        /// In the syntax of the `regex` crate.
        pattern: String,
        /// Number of the group; none: the first, or the whole match when there is no group.
        #[serde(default)]
        group: Option<u32>,
        /// Name of the header; none: the body.
        #[serde(default)]
        header: Option<String>,
    },
}
