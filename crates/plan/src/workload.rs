//! Due times of requests: users, rates, levels over time, due times from a file, and pauses.

use serde::{Deserialize, Serialize};

/// Due times of requests.
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
        pace: Option<Think>,
        /// Users start evenly spread over this time.
        #[serde(default)]
        ramp_ns: u64,
        /// Number of users over time: user i is there while the level is above i, and on to the end of its iteration.
        /// None: all of them.
        profile: Option<Profile>,
        /// Each user stops after so many iterations.
        iterations: Option<u64>,
        /// The stream stops after so many requests in all.
        requests: Option<u64>,
    },
    /// Iterations that start at due times, whatever the server does: at a rate, along a profile or from a file.
    Open {
        /// Iterations per second, total.
        rate_per_s: Option<f64>,
        /// Iterations per second, total, over time.
        profile: Option<Profile>,
        /// Due times.
        replay: Option<Replay>,
        /// Law of the gaps between due times.
        #[serde(default)]
        arrivals: Arrivals,
        /// Iterations under way at once; what is due beyond is queued or dropped.
        max_in_flight: u32,
        /// Treatment of iterations that are due while `max_in_flight` are under way.
        overflow: Overflow,
        /// The stream stops after so many requests in all.
        requests: Option<u64>,
    },
}

/// A level over time, from the start of the load, warm-up included.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Segments in order; at least one.
    pub segments: Vec<Segment>,
    /// True if it begins again after the last; if not, the last level stays.
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

    /// True if the level is the same at all moments between two.
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

    /// True if the level is zero for good from some moment on.
    pub fn ends(&self) -> bool {
        !self.repeats && self.segments.last().is_some_and(|last| last.end == 0.0)
    }
}

/// Due times from a file.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// Path of the file.
    pub path: String,
    /// SHA-256 of its bytes, hex.
    pub digest: String,
    /// Name in the first line, or number from 1, of the column of the times; none: what stands before the first comma.
    pub column: Option<String>,
    /// Speed-up factor; above 0.
    #[serde(default = "as_it_was")]
    pub speed: f64,
    /// True if the first time is the start.
    #[serde(default)]
    pub from_first: bool,
    /// Number of due times.
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

/// Treatment of an iteration that is due while all places are taken.
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
