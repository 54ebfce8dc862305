//! Estimates with honest intervals, from what is kept of each step of time. Pure functions.
//!
//! This is the one calculator: the generator's result, reports, notebooks and live views take quantiles, means, rates
//! and shares within a trial from here.
//!
//! Requests that follow each other wait in the same queues, so they are not independent, and an interval that
//! treats them so is too narrow by a factor (coverage 5 % instead of 95 % for the p99 of M/M/1 at 90 % load).
//! Every interval here comes from the variation between steps of time, with their autocorrelation (`long_run`), and
//! requests that never finished are counted as censored, not left out (`survival`). How often the intervals hold the
//! truth is measured in `tests/coverage.rs` and printed in docs/explain/intervals.md.
//!
//! The one place that decides when a quantile is quoted, [`Population::quantile`]:
//! - when the requests that would decide it had not finished it has no value, and the reason says "more than";
//! - with fewer requests than a two-sided bound needs at best (95 %: 6 for p50, 36 for p90, 368 for p99, 3,688 for
//!   p99.9) it has no value, and the reason says how long a run would give as many;
//! - else it has a value. With fewer than [`FIRM_ABOVE`] independent requests above it, it is quoted with a mark:
//!   [`Quantity::independent_above`] is there for that.

mod buckets;
mod distribution;
mod long_run;
mod population;
mod ratios;
pub mod special;
mod survival;

pub use buckets::Buckets;
pub use distribution::{coarse, distribution, Distribution, Steps};
pub use population::{Cell, Cells, Population, Recorded};
pub use ratios::{mean, mean_time, rate, share, Sums};

use serde::Serialize;
use strum::IntoStaticStr;

/// So many independent requests above a quantile make it firm.
pub const FIRM_ABOVE: f64 = 20.0;
/// Confidence of the intervals in the result of the generator. Two-sided.
pub const CONFIDENCE: f64 = 0.95;
/// With more steps neighbours are joined; the intervals, which need some 60 steps, do not suffer.
pub const MOST_STEPS: usize = 320;

/// Method of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Method {
    /// From the variation between steps of time and the correlation of neighbours.
    LongRun,
    /// From the variation between few bursts, as if these were independent of each other.
    Clusters,
    /// As if requests were independent: one or two steps of time allow nothing else.
    #[default]
    Independent,
    /// All in one of several steps of time: no interval.
    OneBurst,
}

impl Method {
    fn of(steps: usize) -> Method {
        if steps < long_run::FEWEST_STEPS {
            Method::Independent
        } else {
            Method::LongRun
        }
    }
}

/// A point and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value.
    pub point: f64,
    /// None: open below.
    pub low: Option<f64>,
    /// None: open above.
    pub high: Option<f64>,
    /// Number of independent observations that those behind it amount to.
    pub independent: f64,
    /// Method of the interval.
    pub method: Method,
}

/// The reason for no value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Undecided {
    /// In words, and what would decide it.
    pub reason: String,
    /// A value that it surely is not below.
    pub at_least: Option<f64>,
}

impl Undecided {
    fn because(reason: impl Into<String>) -> Undecided {
        Undecided {
            reason: reason.into(),
            at_least: None,
        }
    }
}

/// A number with its 95 % interval: `Q` of the record.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Quantity {
    /// None: see `undecided`.
    pub value: Option<f64>,
    /// None: open below.
    pub low: Option<f64>,
    /// None: open above.
    pub high: Option<f64>,
    /// The reason for no value, and what would decide it.
    pub undecided: Option<String>,
    /// Of a quantile: how many independent requests are above it; firm from [`FIRM_ABOVE`].
    pub independent_above: Option<f64>,
}

impl From<Result<Estimate, Undecided>> for Quantity {
    fn from(found: Result<Estimate, Undecided>) -> Self {
        match found {
            Ok(estimate) => Quantity {
                value: Some(estimate.point),
                low: estimate.low,
                high: estimate.high,
                ..Quantity::default()
            },
            Err(undecided) => Quantity {
                low: undecided.at_least,
                undecided: Some(undecided.reason),
                ..Quantity::default()
            },
        }
    }
}

/// Joins neighbours until all are about as long as the longest: the number of the joined step of each.
///
/// The recorder's intervals are 250 ms in the first minute and longer later, and are cut where phases end. A rest is a
/// step of its own if it is at least half as long as the longest.
pub fn level(lengths_s: &[f64]) -> Vec<u32> {
    let longest = lengths_s.iter().copied().fold(0.0, f64::max);
    let mut places = Vec::with_capacity(lengths_s.len());
    let (mut place, mut length) = (0u32, 0.0);
    for &next in lengths_s {
        if length >= 0.999 * longest && longest > 0.0 {
            place += 1;
            length = 0.0;
        }
        length += next;
        places.push(place);
    }
    if place > 0 && length < 0.5 * longest {
        places.iter_mut().for_each(|at| *at = (*at).min(place - 1));
    }
    places
}

/// True if requests in flight at the end of the measured part are left out, in a steady state that was warmed up.
///
/// What ended within the measured part is unbiased there, and of requests that take a good part of it the few under way
/// would hide the mean. One far older than any that ended stays, unless all were answered after the end: it may never end.
pub fn edge_is_cut(longest_s: f64, oldest_s: f64, measured_s: f64, all_ended: bool) -> bool {
    const LONG: f64 = 0.05; // of the measured part: the edges move a count by twice as much
    const HUNG: f64 = 1.5; // times the longest that ended
    longest_s >= LONG * measured_s && (oldest_s <= HUNG * longest_s || all_ended)
}

/// Number of neighbours are joined so that at most [`MOST_STEPS`] are left, and how many are left.
fn joining(steps: usize) -> (usize, usize) {
    let mut together = 1;
    while steps.div_ceil(together) > MOST_STEPS {
        together *= 2;
    }
    let whole = steps / together;
    let rest = steps - whole * together;
    (
        together,
        whole + usize::from(2 * rest >= together && rest > 0),
    )
}

/// The sums of neighbours, so that at most [`MOST_STEPS`] are left.
fn joined(values: &[f64]) -> Vec<f64> {
    let (together, left) = joining(values.len());
    let mut sums = vec![0.0; left];
    for (index, value) in values.iter().enumerate() {
        sums[(index / together).min(left - 1)] += value;
    }
    sums
}

/// The place of the p-quantile of counts by place in an HDR histogram: as [`Population::quantile`] has it, of finished
/// requests alone.
pub fn place_at(counts: &[(u32, u64)], p: f64) -> Option<u32> {
    let survival = survival::Survival::new(&Buckets::HDR, counts, &[]);
    survival.reach(p).map(|at| at.place)
}

/// A time as reports write it.
fn duration_text(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 0.9995 => (s, "s"),
        s if s >= 0.9995e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "µs"),
    };
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests;
