//! Means, rates and shares: ratios of sums over steps.

use crate::long_run::{Spread, FEWEST_STEPS};
use crate::{duration_text, joined, special, Cells, Estimate, Method, Population, Undecided};

/// Fewer steps that hold anything, among others that do not, are bursts.
const FEWEST_OF_MANY: usize = 8;
/// Fewer give no variance worth the name where nothing else is known of it.
const FEWEST_FOR_T: usize = 4;

/// Sums of each step.
#[derive(Clone, Copy, Debug)]
pub struct Sums<'a> {
    /// Sum of the quantity.
    pub sums: &'a [f64],
    /// Number of observations.
    pub counts: &'a [f64],
    /// Sum of the squares, where known: no mean is taken as better known than that of independent observations.
    pub squares: Option<&'a [f64]>,
}

impl Sums<'_> {
    /// Standard deviation of one observation.
    pub fn stdev(&self) -> Option<f64> {
        let n: f64 = self.counts.iter().sum();
        let sum: f64 = self.sums.iter().sum();
        let squares: f64 = self.squares?.iter().sum();
        (n >= 2.0).then(|| ((squares - sum * sum / n) / (n - 1.0)).max(0.0).sqrt())
    }
}

/// The mean; its interval is symmetric, and not below 0 where no sum is.
///
/// Where few of the steps hold anything these are bursts, whose observations are not independent of each other.
pub fn mean(sums: Sums, confidence: f64) -> Result<Estimate, Undecided> {
    let estimate = ratio(sums, sums.stdev(), confidence)?;
    let low = estimate.point - estimate.half.unwrap_or(0.0);
    let low = if sums.sums.iter().all(|sum| *sum >= 0.0) {
        low.max(0.0)
    } else {
        low
    };
    Ok(Estimate {
        point: estimate.point,
        low: estimate.half.map(|_| low),
        high: estimate.half.map(|half| estimate.point + half),
        independent: estimate.independent,
        method: estimate.method,
    })
}

/// The mean time; unfinished requests of `late` count as the mean of those that lasted longer than their age.
///
/// Where no request did, the mean has no value, and `at_least` is what it is not below. The interval is one of its
/// reciprocal, which errs about evenly: for a queue it is what capacity is left. It is open above when the capacity left may be none.
pub fn mean_time<C: Cells>(
    times: Sums,
    late: Option<&Population<C>>,
    confidence: f64,
) -> Result<Estimate, Undecided> {
    let late = late.filter(|population| population.censored > 0);
    let (mut sums, mut counts) = (joined(times.sums), joined(times.counts));
    if counts.iter().sum::<f64>() < 1.0 {
        return Err(Undecided::because("nothing finished"));
    }
    if let Some(population) = late {
        let survival = &population.survival;
        let expected = population.late_by_step(|age| survival.mean_beyond(age));
        for (step, (sum, count)) in expected.into_iter().enumerate() {
            sums[step] += sum;
            counts[step] += count;
        }
        if !survival.is_complete() {
            let n: f64 = counts.iter().sum();
            let least_s = sums.iter().sum::<f64>() / n;
            return Err(Undecided {
                reason: format!(
                    "at least {}: {} of {n} requests had not finished",
                    duration_text(least_s),
                    population.censored
                ),
                at_least: Some(least_s),
            });
        }
    }
    let all = Sums {
        sums: &sums,
        counts: &counts,
        squares: None,
    };
    // The scatter of the finished ones stands for that of all: the unfinished have no times of their own.
    let estimate = ratio(all, times.stdev(), confidence)?;
    let relative = estimate.half.map(|half| {
        if half > 0.0 {
            half / estimate.point
        } else {
            0.0
        }
    });
    Ok(Estimate {
        point: estimate.point,
        low: relative.map(|half| estimate.point / (1.0 + half)),
        high: relative
            .filter(|half| *half < 1.0)
            .map(|half| estimate.point / (1.0 - half)),
        independent: estimate.independent,
        method: estimate.method,
    })
}

/// A ratio of sums and how far it may be off.
struct Ratio {
    point: f64,
    half: Option<f64>,
    independent: f64,
    method: Method,
}

fn ratio(of: Sums, stdev: Option<f64>, confidence: f64) -> Result<Ratio, Undecided> {
    let n: f64 = of.counts.iter().sum();
    if n.is_nan() || n <= 0.0 {
        return Err(Undecided::because("nothing was observed"));
    }
    if n < 2.0 {
        return Err(Undecided::because(format!("{n} observed, needs 2")));
    }
    let held: Vec<usize> = (0..of.counts.len())
        .filter(|step| of.counts[*step] > 0.0)
        .collect();
    let method = match held.len() {
        _ if of.counts.len() < FEWEST_STEPS => Method::Independent,
        1 => Method::OneBurst,
        held if held < FEWEST_OF_MANY && held < of.counts.len() => Method::Clusters,
        _ => Method::LongRun,
    };
    if stdev.is_none() && held.len() < FEWEST_FOR_T {
        return Err(Undecided::because(format!(
            "{} intervals, needs {FEWEST_FOR_T}",
            held.len()
        )));
    }
    let (sums, counts) = (joined(of.sums), joined(of.counts));
    let point = sums.iter().sum::<f64>() / n;
    let deviation = |step: usize| sums[step] - point * counts[step];
    let independent_se = stdev.unwrap_or(0.0) / n.sqrt();
    let normal = special::normal_quantile(0.5 + confidence / 2.0);
    let (half, se) = match method {
        Method::OneBurst => {
            return Ok(Ratio {
                point,
                half: None,
                independent: 1.0,
                method,
            })
        }
        Method::Independent => {
            let t = special::t_quantile(0.5 + confidence / 2.0, n - 1.0);
            (t * independent_se, independent_se)
        }
        Method::Clusters | Method::LongRun => {
            let spread = if method == Method::Clusters {
                let bursts = |step: &usize| of.sums[*step] - point * of.counts[*step];
                Spread::of_clusters(&held.iter().map(bursts).collect::<Vec<f64>>())
            } else {
                Spread::of(&(0..sums.len()).map(deviation).collect::<Vec<f64>>())
            };
            (
                (spread.half(confidence) / n).max(normal * independent_se),
                (spread.sum_se / n).max(independent_se),
            )
        }
    };
    let independent = match stdev {
        Some(stdev) if se > 0.0 => (stdev * stdev / (se * se)).min(n),
        _ => n,
    };
    Ok(Ratio {
        point,
        half: Some(half),
        independent,
        method,
    })
}

/// Events per second, from the events and the length of each step.
///
/// Never known better than to one event, which the edge of a trial may cut off. With too few steps to compare the events
/// are those of a Poisson process (F. Garwood, Biometrika 28, 1936).
pub fn rate(events: &[f64], lengths_s: &[f64], confidence: f64) -> Result<Estimate, Undecided> {
    let (seconds, all): (f64, f64) = (lengths_s.iter().sum(), events.iter().sum());
    if all.is_nan() || seconds <= 0.0 {
        return Err(Undecided::because("nothing was measured"));
    }
    let point = all / seconds;
    let method = Method::of(events.len());
    let (low, high) = if method == Method::Independent {
        let (low, high) = special::poisson_bounds(all, confidence);
        (low / seconds, high / seconds)
    } else {
        let (events, lengths_s) = (joined(events), joined(lengths_s));
        let beyond = events
            .iter()
            .zip(&lengths_s)
            .map(|(events, length_s)| events - point * length_s);
        let half = Spread::of(&beyond.collect::<Vec<f64>>())
            .half(confidence)
            .max(1.0)
            / seconds;
        ((point - half).max(0.0), point + half)
    };
    Ok(Estimate {
        point,
        low: Some(low),
        high: Some(high),
        independent: all,
        method,
    })
}

/// The share of observations that are hits: hits come in bursts, so it is clustered by step.
///
/// With no hit, or with nothing but hits, one end is exact and the other that of independent observations; with too few
/// steps to compare both are (C. J. Clopper and E. S. Pearson, Biometrika 26, 1934).
pub fn share(hits: &[f64], totals: &[f64], confidence: f64) -> Result<Estimate, Undecided> {
    let (n, all): (f64, f64) = (totals.iter().sum(), hits.iter().sum());
    if n.is_nan() || n < 1.0 {
        return Err(Undecided::because("nothing was observed"));
    }
    let point = all / n;
    let tail = (1.0 - confidence) / 2.0;
    let exact = |low: f64, high: f64| Estimate {
        point,
        low: Some(low),
        high: Some(high),
        independent: n,
        method: Method::Independent,
    };
    if all <= 0.0 || all >= n {
        let edge = 1.0 - tail.powf(1.0 / n);
        return Ok(if all <= 0.0 {
            exact(0.0, edge)
        } else {
            exact(1.0 - edge, 1.0)
        });
    }
    if totals.iter().filter(|total| **total > 0.0).count() < FEWEST_STEPS {
        return Ok(exact(
            special::beta_quantile(tail, all, n - all + 1.0),
            special::beta_quantile(1.0 - tail, all + 1.0, n - all),
        ));
    }
    let (hits, totals) = (joined(hits), joined(totals));
    let beyond = hits
        .iter()
        .zip(&totals)
        .map(|(hits, total)| hits - point * total);
    let spread = Spread::of(&beyond.collect::<Vec<f64>>());
    let binomial_se = (point * (1.0 - point) / n).sqrt();
    let normal = special::normal_quantile(1.0 - tail);
    let half = (spread.half(confidence) / n).max(normal * binomial_se);
    let se = (spread.sum_se / n).max(binomial_se);
    Ok(Estimate {
        point,
        low: Some((point - half).max(0.0)),
        high: Some((point + half).min(1.0)),
        independent: point * (1.0 - point) / (se * se),
        method: Method::LongRun,
    })
}
