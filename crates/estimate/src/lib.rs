//! Estimates with honest intervals, from what the recorder keeps of each interval. Pure functions.
//!
//! Requests that follow each other wait in the same queues, so they are not independent, and an interval that
//! treats them so is too narrow by a factor (coverage 5 % instead of 95 % for the p99 of M/M/1 at 90 % load).
//! Every interval here comes from the variation between time intervals, with their autocorrelation (`hac`), and
//! requests that never finished are counted as censored, not left out (`survival`).
//!
//! The one place that decides when a quantile is quoted, [`quantile`]:
//! - with fewer requests than a two-sided 95 % bound needs at best (6 for p50, 36 for p90, 368 for p99, 3,688 for
//!   p99.9) it has no value, and `undecided` says how long a run would decide it;
//! - when the requests that would decide it had not finished it has no value, and `undecided` says "more than";
//! - else it has a value. With fewer than [`FIRM_ABOVE`] independent requests above it, it is quoted with a mark:
//!   `independent_above` is there for that.

mod hac;
pub mod special;
mod survival;

use serde::Serialize;

use hac::{Series, FEWEST_INTERVALS};
use survival::{Spread, Survival};

/// So many independent requests above a quantile make it firm.
pub const FIRM_ABOVE: f64 = 20.0;
/// With fewer intervals their variation says nothing, and requests are taken as independent.
const FEWEST_TO_COMPARE: usize = 3;
/// Two-sided.
const CONFIDENCE: f64 = 0.95;

/// Requests whose times are not told apart: from the first to the last of some histogram buckets, each as its upper
/// value in ns. Mostly one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The first bucket.
    pub low: u64,
    /// The last bucket.
    pub high: u64,
    /// How many requests.
    pub count: u64,
}

impl From<(u64, u64)> for Cell {
    /// One bucket and its count.
    fn from((at, count): (u64, u64)) -> Self {
        Cell {
            low: at,
            high: at,
            count,
        }
    }
}

/// A population as a whole: (upper value of the histogram bucket in ns, count), rising.
#[derive(Clone, Debug, Default)]
pub struct Whole {
    /// Finished requests.
    pub values: Vec<(u64, u64)>,
    /// Unfinished requests by their age.
    pub censored: Vec<(u64, u64)>,
}

/// What was recorded of one population in one interval.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Its length.
    pub length_s: f64,
    /// Sum of the finished requests' times, exact.
    pub sum_s: f64,
    /// Sum of their squares, exact.
    pub sumsq_s2: f64,
    /// Finished requests, rising.
    pub values: Vec<Cell>,
    /// Unfinished requests by their age, rising.
    pub censored: Vec<Cell>,
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
    /// Why there is no value, and what would decide it.
    pub undecided: Option<String>,
    /// Of a quantile: how many independent requests are above it; firm from [`FIRM_ABOVE`].
    pub independent_above: Option<f64>,
}

/// How intervals were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// From the variation between time intervals (Newey and West 1987).
    Hac,
    /// From the variation between few time intervals, as if these were independent.
    Intervals,
    /// As if requests were independent: one or two time intervals allow nothing else.
    #[default]
    Iid,
}

/// A population of times, in seconds: `DIST` of the record.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Finished requests.
    pub count: u64,
    /// Unfinished ones.
    pub censored: u64,
    /// With unfinished requests counted by what the finished ones that lasted longer tell.
    pub mean: Quantity,
    /// Of the finished ones.
    pub stdev: Option<f64>,
    /// Of the finished ones.
    pub min: Option<f64>,
    /// Of the finished ones.
    pub max: Option<f64>,
    /// The median.
    pub p50: Quantity,
    /// 75 % take at most this.
    pub p75: Quantity,
    /// 90 %.
    pub p90: Quantity,
    /// 95 %.
    pub p95: Quantity,
    /// 99 %.
    pub p99: Quantity,
    /// 99.9 %.
    pub p999: Quantity,
    /// To how many independent requests the mean amounts.
    pub independent: f64,
    /// How the intervals were found.
    pub method: Method,
    /// (upper bound in s, count) of bins with finished requests, 20 a decade, for drawings.
    pub histogram: Vec<(f64, u64)>,
}

/// The distribution of a population over the whole run, from intervals whose cells are single buckets.
///
/// `intervals` follow each other in time; empty ones count, because silence is variation too.
pub fn distribution(intervals: &[Interval]) -> Distribution {
    let bucket = |cell: &Cell| (cell.high, cell.count);
    let of_each = |cells: fn(&Interval) -> &Vec<Cell>| {
        let all = intervals.iter().flat_map(cells);
        all.map(bucket).collect()
    };
    let whole = Whole {
        values: of_each(|interval| &interval.values),
        censored: of_each(|interval| &interval.censored),
    };
    distribution_of(whole, intervals)
}

/// The same where intervals tell less than the whole: a cell of theirs is spread as the whole is between its ends.
///
/// Values and counts are those of the whole; only how much they vary comes from the intervals.
pub fn distribution_of(whole: Whole, intervals: &[Interval]) -> Distribution {
    let levelled = levelled(intervals);
    let population = Population::new(whole, &levelled);
    let quantile = |p| quantile(&population, p);
    let (mean, independent) = mean(&population);
    let values = &population.survival.values;
    Distribution {
        count: population.count,
        censored: population.censored,
        mean,
        stdev: population.stdev(),
        min: values.first().map(|value| seconds(bucket_low(value.at))),
        max: values.last().map(|value| seconds(value.at)),
        p50: quantile(0.5),
        p75: quantile(0.75),
        p90: quantile(0.9),
        p95: quantile(0.95),
        p99: quantile(0.99),
        p999: quantile(0.999),
        independent,
        method: population.method(),
        histogram: coarse(values.iter().map(|value| (value.at, value.count))),
    }
}

/// Completions per second with its interval, from (length in s, completions) of each interval.
pub fn throughput(intervals: &[(f64, u64)]) -> Quantity {
    let pieces: Vec<Interval> = intervals
        .iter()
        .map(|(length_s, count)| Interval {
            length_s: *length_s,
            values: vec![(0, *count).into()],
            ..Interval::default()
        })
        .collect();
    let levelled = levelled(&pieces);
    let count_of = |piece: &Interval| {
        let counts = piece.values.iter().map(|cell| cell.count as f64);
        counts.sum::<f64>()
    };
    let total: f64 = levelled.iter().map(count_of).sum();
    let length_s: f64 = levelled.iter().map(|piece| piece.length_s).sum();
    if length_s <= 0.0 {
        return Quantity {
            undecided: Some("nothing was measured".to_owned()),
            ..Quantity::default()
        };
    }
    let rate = total / length_s;
    let series = Series::new(
        levelled
            .iter()
            .map(|piece| count_of(piece) - rate * piece.length_s)
            .collect(),
    );
    let half = match levelled.len() {
        1 => special::normal_quantile(0.5 + CONFIDENCE / 2.0) * total.sqrt(), // as of a Poisson process
        _ => series.sum_se() * series.t(),
    };
    Quantity {
        value: Some(rate),
        low: Some((rate - half / length_s).max(0.0)),
        high: Some(rate + half / length_s),
        ..Quantity::default()
    }
}

/// Sums counts into 20 bins a decade: (upper bound in s, count), rising.
pub fn coarse(values: impl Iterator<Item = (u64, u64)>) -> Vec<(f64, u64)> {
    let mut bins: Vec<(i32, u64)> = Vec::new();
    for (at, count) in values.filter(|(_, count)| *count > 0) {
        let bin = (20.0 * (at.max(1) as f64).log10() - 1e-9).ceil() as i32;
        match bins.last_mut() {
            Some(last) if last.0 == bin => last.1 += count,
            _ => bins.push((bin, count)),
        }
    }
    bins.into_iter()
        .map(|(bin, count)| (10f64.powf(f64::from(bin) / 20.0 - 9.0), count))
        .collect()
}

/// The intervals of one run with what is needed of them all.
struct Population<'a> {
    intervals: &'a [Interval],
    survival: Survival,
    count: u64,
    censored: u64,
    sum_s: f64,
    sumsq_s2: f64,
    length_s: f64,
}

impl<'a> Population<'a> {
    fn new(whole: Whole, intervals: &'a [Interval]) -> Self {
        let survival = Survival::new(whole.values.into_iter(), whole.censored.into_iter());
        Population {
            intervals,
            count: survival.values.iter().map(|value| value.count).sum(),
            censored: survival.ages.iter().map(|age| age.count).sum(),
            sum_s: intervals.iter().map(|interval| interval.sum_s).sum(),
            sumsq_s2: intervals.iter().map(|interval| interval.sumsq_s2).sum(),
            length_s: intervals.iter().map(|interval| interval.length_s).sum(),
            survival,
        }
    }

    /// Finished and unfinished.
    fn size(&self) -> f64 {
        (self.count + self.censored) as f64
    }

    fn method(&self) -> Method {
        match self.intervals.len() {
            0..FEWEST_TO_COMPARE => Method::Iid,
            FEWEST_TO_COMPARE..FEWEST_INTERVALS => Method::Intervals,
            _ => Method::Hac,
        }
    }

    fn stdev(&self) -> Option<f64> {
        let n = self.count as f64;
        (self.count >= 2).then(|| {
            ((self.sumsq_s2 - self.sum_s * self.sum_s / n) / (n - 1.0))
                .max(0.0)
                .sqrt()
        })
    }
}

/// The p-quantile by the inverse of the empirical distribution function: a value that was measured.
///
/// Its interval: how far the share of requests above it varies between intervals gives the standard error of the share
/// (never below the binomial one); the interval of the share, read from the distribution function, is that of
/// the quantile.
fn quantile(population: &Population, p: f64) -> Quantity {
    let survival = &population.survival;
    let n = population.size();
    if n == 0.0 {
        return Quantity {
            undecided: Some("no requests".to_owned()),
            ..Quantity::default()
        };
    }
    let Some(at) = survival.reach(p) else {
        let age_s = seconds(survival.surely_above(p));
        return Quantity {
            low: Some(age_s),
            undecided: Some(format!("more than {}", duration_text(age_s))),
            independent_above: Some(0.0),
            ..Quantity::default()
        };
    };
    let binomial_se = (p * (1.0 - p) / n).sqrt();
    let (se, low, high) = match population.method() {
        Method::Iid => {
            let (low, high) = special::binomial_ranks(n as u64, p, CONFIDENCE);
            (
                binomial_se,
                low.map(|rank| rank as f64 / n),
                high.map(|rank| rank as f64 / n),
            )
        }
        Method::Intervals | Method::Hac => {
            let series = exceedances(population, at);
            let se = (series.sum_se() / n).max(binomial_se);
            let half = series.t() * se;
            (
                se,
                Some(p - half).filter(|share| *share > 0.0),
                Some(p + half).filter(|share| *share < 1.0),
            )
        }
    };
    let independent_above = p * (1.0 - p) * (1.0 - p) / (se * se);
    let fewest = fewest_requests(p);
    if n < fewest {
        let run_s = population.length_s * (FIRM_ABOVE / independent_above).max(fewest / n);
        return Quantity {
            undecided: Some(format!(
                "{independent_above:.1} independent requests above it, needs {FIRM_ABOVE}: run {:.0} s",
                run_s.ceil()
            )),
            independent_above: Some(independent_above),
            ..Quantity::default()
        };
    }
    Quantity {
        value: Some(seconds(at)),
        low: low
            .and_then(|share| survival.reach(share))
            .map(|at| seconds(bucket_low(at))),
        high: high.and_then(|share| survival.reach(share)).map(seconds),
        undecided: None,
        independent_above: Some(independent_above),
    }
}

/// Of each interval: requests above `at`, less the share of its requests that would be there on average.
fn exceedances(population: &Population, at: u64) -> Series {
    let survival = &population.survival;
    let share = survival.above(at);
    let finished = Spread::new(&survival.values, |value| {
        f64::from(u8::from(value > at)) - share
    });
    let unfinished = Spread::new(&survival.ages, |age| {
        // Known to be above, or as likely to come above as those who lasted as long.
        let above = if age >= at {
            1.0
        } else {
            share / survival.above(age)
        };
        above - share
    });
    let excess =
        |interval: &Interval| finished.sum(&interval.values) + unfinished.sum(&interval.censored);
    Series::new(population.intervals.iter().map(excess).collect())
}

/// The mean with its interval, and the number of independent requests that it amounts to.
///
/// An unfinished request counts as the mean of those who lasted longer than its age. Where nobody did, the mean has
/// no value, and `low` is what it is at least.
fn mean(population: &Population) -> (Quantity, f64) {
    let survival = &population.survival;
    let n = population.size();
    if population.count == 0 {
        return (
            Quantity {
                undecided: Some("no request finished".to_owned()),
                ..Quantity::default()
            },
            0.0,
        );
    }
    let expected_s = Spread::new(&survival.ages, |age| survival.mean_beyond(age) / 1e9);
    let sums: Vec<f64> = population
        .intervals
        .iter()
        .map(|interval| interval.sum_s + expected_s.sum(&interval.censored))
        .collect();
    let mean_s = sums.iter().sum::<f64>() / n;
    if !survival.is_complete() {
        let undecided = format!(
            "at least {}: {} of {} requests had not finished",
            duration_text(mean_s),
            population.censored,
            n
        );
        return (
            Quantity {
                low: Some(mean_s),
                undecided: Some(undecided),
                ..Quantity::default()
            },
            0.0,
        );
    }
    let Some(stdev) = population.stdev() else {
        return (
            Quantity {
                value: Some(mean_s),
                ..Quantity::default()
            },
            n,
        );
    };
    let iid_se = stdev / n.sqrt();
    let (se, t) = match population.method() {
        Method::Iid => (iid_se, special::t_quantile(0.5 + CONFIDENCE / 2.0, n - 1.0)),
        Method::Intervals | Method::Hac => {
            let size = |interval: &Interval| -> f64 {
                interval
                    .values
                    .iter()
                    .chain(&interval.censored)
                    .map(|cell| cell.count as f64)
                    .sum()
            };
            let residuals = population
                .intervals
                .iter()
                .zip(&sums)
                .map(|(i, sum)| sum - mean_s * size(i));
            let series = Series::new(residuals.collect());
            ((series.sum_se() / n).max(iid_se), series.t())
        }
    };
    let independent = if se > 0.0 {
        (stdev * stdev / (se * se)).min(n)
    } else {
        n
    };
    let quantity = Quantity {
        value: Some(mean_s),
        low: Some((mean_s - t * se).max(0.0)),
        high: Some(mean_s + t * se),
        ..Quantity::default()
    };
    (quantity, independent)
}

/// The fewest requests of which one can be above the p-quantile, and one below, with 95 % confidence.
fn fewest_requests(p: f64) -> f64 {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    (tail.ln() / p.max(1.0 - p).ln()).ceil()
}

/// Neighbours joined until all are about as long as the longest: the autocorrelation is one of equal steps.
///
/// The recorder's intervals are 250 ms in the first minute and longer later, and are cut where phases end.
fn levelled(intervals: &[Interval]) -> Vec<Interval> {
    let longest = intervals
        .iter()
        .map(|interval| interval.length_s)
        .fold(0.0, f64::max);
    let mut levelled: Vec<Interval> = Vec::with_capacity(intervals.len());
    let mut open: Option<Interval> = None;
    for interval in intervals {
        let joined = match open.take() {
            None => interval.clone(),
            Some(before) => before.joined(interval),
        };
        if joined.length_s >= 0.999 * longest {
            levelled.push(joined);
        } else {
            open = Some(joined);
        }
    }
    match (open, levelled.last_mut()) {
        // A rest of its own if it is at least half as long, else part of the last one.
        (Some(rest), Some(last)) if rest.length_s < 0.5 * longest => {
            *last = std::mem::take(last).joined(&rest);
        }
        (Some(rest), _) => levelled.push(rest),
        (None, _) => {}
    }
    levelled
}

impl Interval {
    fn joined(mut self, other: &Interval) -> Interval {
        self.length_s += other.length_s;
        self.sum_s += other.sum_s;
        self.sumsq_s2 += other.sumsq_s2;
        self.values.extend_from_slice(&other.values);
        self.censored.extend_from_slice(&other.censored);
        self
    }
}

/// The lowest value that shares a bucket with `upper` in an HDR histogram of 3 digits: 2,048 buckets, each power of two
/// above that in 1,024.
fn bucket_low(upper: u64) -> u64 {
    let width = 1u64 << upper.max(1).ilog2().saturating_sub(10);
    upper - (width - 1).min(upper)
}

fn seconds(ns: u64) -> f64 {
    loadlens_base::units::seconds(ns)
}

fn duration_text(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
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
