//! All that the generator's result says of one population of times.

use serde::Serialize;

use crate::ratios::{mean_time, Sums};
use crate::{Method, Population, Quantity, Recorded, CONFIDENCE};

/// Sums of each step, besides its cells.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// Sum of the finished requests' times, exact.
    pub sums_s: Vec<f64>,
    /// Sum of their squares, exact.
    pub squares_s2: Vec<f64>,
    /// Number of finished.
    pub counts: Vec<f64>,
}

/// A population of times, in seconds: `DIST` of the record.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Finished requests.
    pub count: u64,
    /// Unfinished ones.
    pub censored: u64,
    /// Mean, with unfinished requests counted by the finished ones that lasted longer.
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
    /// Number of independent requests that the mean amounts to.
    pub independent: f64,
    /// Method of the interval.
    pub method: Method,
    /// (upper bound in s, count) of bins with finished requests, 20 a decade, for drawings.
    pub histogram: Vec<(f64, u64)>,
}

/// The distribution of a population over the whole run; values and counts are those of the whole, steps show how much
/// they vary.
pub fn distribution(recorded: Recorded, steps: &Steps) -> Distribution {
    let method = Method::of(recorded.steps);
    let population = Population::new(recorded);
    let quantile = |p: f64| {
        let estimate = population.quantile(p, CONFIDENCE);
        let above = estimate
            .as_ref()
            .ok()
            .map(|estimate| estimate.independent * (1.0 - p));
        Quantity {
            independent_above: above,
            ..Quantity::from(estimate)
        }
    };
    let times = Sums {
        sums: &steps.sums_s,
        counts: &steps.counts,
        squares: Some(&steps.squares_s2),
    };
    let mean = mean_time(times, Some(&population), CONFIDENCE);
    let values = &population.survival.values;
    Distribution {
        count: population.count,
        censored: population.censored,
        independent: mean.as_ref().map_or(0.0, |mean| mean.independent),
        mean: mean.into(),
        stdev: times.stdev(),
        min: values.first().map(|value| population.lower(value.place)),
        max: values.last().map(|value| value.upper),
        p50: quantile(0.5),
        p75: quantile(0.75),
        p90: quantile(0.9),
        p95: quantile(0.95),
        p99: quantile(0.99),
        p999: quantile(0.999),
        method,
        histogram: coarse(values.iter().map(|value| (value.upper, value.count))),
    }
}

/// Sums counts into 20 bins a decade: (upper bound in s, count), rising; values in seconds.
pub fn coarse(values: impl Iterator<Item = (f64, u64)>) -> Vec<(f64, u64)> {
    let mut bins: Vec<(i32, u64)> = Vec::new();
    for (at_s, count) in values.filter(|(_, count)| *count > 0) {
        let bin = (20.0 * (at_s * 1e9).round().max(1.0).log10() - 1e-9).ceil() as i32;
        match bins.last_mut() {
            Some(last) if last.0 == bin => last.1 += count,
            _ => bins.push((bin, count)),
        }
    }
    bins.into_iter()
        .map(|(bin, count)| (10f64.powf(f64::from(bin) / 20.0 - 9.0), count))
        .collect()
}
