//! Laws of times: how much work a visit brings, how long a delay or a pause lasts.

use loadlens_base::{Faults, Random};
use serde::{Deserialize, Serialize};

use crate::model::is_time;

/// The most values that an empirical law may have.
pub const MOST_VALUES: usize = 100_000;

/// A law of times, in seconds.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Law {
    /// Always the same.
    Fixed {
        /// The time.
        s: f64,
    },
    /// Anything between two times, equally often.
    Uniform {
        /// Lower bound, included.
        low_s: f64,
        /// Less than.
        high_s: f64,
    },
    /// Without memory.
    Exponential {
        /// Its mean.
        mean_s: f64,
    },
    /// The sum of so many exponential ones.
    Erlang {
        /// Number of phases; the coefficient of variation is one over its root.
        shape: u32,
        /// Mean of the sum.
        mean_s: f64,
    },
    /// The logarithm is normal.
    Lognormal {
        /// Its mean.
        mean_s: f64,
        /// Standard deviation over mean.
        cv: f64,
    },
    /// One of these, each equally often: what was measured.
    Empirical {
        /// The times.
        values_s: Vec<f64>,
    },
}

impl Default for Law {
    /// No time at all.
    fn default() -> Self {
        Law::Fixed { s: 0.0 }
    }
}

impl Law {
    /// Its mean, seconds.
    pub fn mean(&self) -> f64 {
        match self {
            Law::Fixed { s } => *s,
            Law::Uniform { low_s, high_s } => (low_s + high_s) / 2.0,
            Law::Exponential { mean_s }
            | Law::Erlang { mean_s, .. }
            | Law::Lognormal { mean_s, .. } => *mean_s,
            Law::Empirical { values_s } => values_s.iter().sum::<f64>() / values_s.len() as f64,
        }
    }

    /// One time.
    pub fn draw(&self, random: &mut Random) -> f64 {
        match self {
            Law::Fixed { s } => *s,
            Law::Uniform { low_s, high_s } => low_s + (high_s - low_s) * random.unit(),
            Law::Exponential { mean_s } => mean_s * random.exponential(),
            Law::Erlang { shape, mean_s } => {
                let sum: f64 = (0..*shape).map(|_| random.exponential()).sum();
                sum * mean_s / f64::from(*shape)
            }
            Law::Lognormal { mean_s, cv } => {
                // Box and Muller (1958); the mean of exp(sigma z) is exp(sigma^2 / 2).
                let variance = (cv * cv).ln_1p();
                mean_s * (variance.sqrt() * random.normal() - variance / 2.0).exp()
            }
            Law::Empirical { values_s } => values_s[random.below(values_s.len() as u64) as usize],
        }
    }

    /// Adds the faults of this law.
    pub(crate) fn check(&self, faults: &mut Faults) {
        const TIME: &str = "a time of at least 0 is wanted";
        match self {
            Law::Fixed { s } => faults.want(is_time(*s), "s", TIME),
            Law::Uniform { low_s, high_s } => {
                faults.want(is_time(*low_s), "low_s", TIME);
                let is_above = is_time(*high_s) && high_s >= low_s;
                faults.want(is_above, "high_s", "a time of at least low_s is wanted");
            }
            Law::Exponential { mean_s } => faults.want(is_time(*mean_s), "mean_s", TIME),
            Law::Erlang { shape, mean_s } => {
                faults.want(is_time(*mean_s), "mean_s", TIME);
                let is_shape = (1..=1000).contains(shape);
                faults.want(is_shape, "shape", "1 to 1000 is wanted");
            }
            Law::Lognormal { mean_s, cv } => {
                faults.want(is_time(*mean_s), "mean_s", TIME);
                let is_ratio = is_time(*cv) && *cv <= 100.0;
                faults.want(is_ratio, "cv", "a ratio of 0 to 100 is wanted");
            }
            Law::Empirical { values_s } => {
                let is_list = (1..=MOST_VALUES).contains(&values_s.len());
                faults.want(is_list, "values_s", "1 to 100,000 times are wanted");
                let are_times = values_s.iter().all(|s| is_time(*s));
                faults.want(are_times, "values_s", "times of at least 0 are wanted");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of each law by its formula.
    #[test]
    fn draws_have_the_mean_and_the_variance_of_their_law() {
        let laws = [
            (Law::Fixed { s: 0.25 }, 0.25, 0.0),
            (
                Law::Uniform {
                    low_s: 1.0,
                    high_s: 3.0,
                },
                2.0,
                1.0 / 3.0,
            ),
            (Law::Exponential { mean_s: 0.5 }, 0.5, 0.25),
            (
                Law::Erlang {
                    shape: 4,
                    mean_s: 2.0,
                },
                2.0,
                1.0,
            ),
            (
                Law::Lognormal {
                    mean_s: 3.0,
                    cv: 0.5,
                },
                3.0,
                2.25,
            ),
            (
                Law::Empirical {
                    values_s: vec![1.0, 2.0, 6.0],
                },
                3.0,
                14.0 / 3.0,
            ),
        ];
        for (law, mean, variance) in laws {
            let mut random = Random::new(5);
            let n = 200_000;

            let draws: Vec<f64> = (0..n).map(|_| law.draw(&mut random)).collect();

            let average = draws.iter().sum::<f64>() / f64::from(n);
            let spread = draws.iter().map(|x| (x - average).powi(2)).sum::<f64>() / f64::from(n);
            let error = (variance / f64::from(n)).sqrt();
            assert!(
                (average - mean).abs() <= 5.0 * error + 1e-12,
                "{law:?}: {average}"
            );
            assert!(
                (spread - variance).abs() <= 0.05 * variance + 1e-12,
                "{law:?}: {spread}"
            );
            assert!((law.mean() - mean).abs() < 1e-12, "{law:?}");
        }
    }
}
