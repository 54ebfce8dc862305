//! Random decisions: each fault draws from a stream of its own, once for each request, so that switching
//! one fault on leaves the draws of the others as they were.

use loadlens_base::Random;

use crate::settings::{Faults, Law, Moment};

/// The streams of all faults.
pub(crate) struct Draws {
    delay_request: (Option<Law>, Random),
    delay_response: (Option<Law>, Random),
    reset: (f64, Random),
    reset_at: Moment,
    drop: (f64, Random),
    errors: (f64, Random),
}

/// Faults of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    /// Before it asks for admission.
    pub request_delay_ns: u64,
    /// Before its answer leaves.
    pub response_delay_ns: u64,
    pub reset: Option<Moment>,
    pub is_dropped: bool,
    pub is_error: bool,
}

impl Draws {
    pub fn new(faults: &Faults) -> Draws {
        let stream = |seed: u64, part: u64| Random::derived(seed, &[part]);
        Draws {
            delay_request: (faults.delay.request, stream(faults.delay.seed, 1)),
            delay_response: (faults.delay.response, stream(faults.delay.seed, 2)),
            reset: (faults.reset.share, stream(faults.reset.seed, 3)),
            reset_at: faults.reset.at,
            drop: (faults.drop.share, stream(faults.drop.seed, 4)),
            errors: (faults.errors.share, stream(faults.errors.seed, 5)),
        }
    }

    /// The next request's.
    pub fn next(&mut self) -> Fate {
        Fate {
            request_delay_ns: time(&mut self.delay_request),
            response_delay_ns: time(&mut self.delay_response),
            reset: happens(&mut self.reset).then_some(self.reset_at),
            is_dropped: happens(&mut self.drop),
            is_error: happens(&mut self.errors),
        }
    }
}

fn happens((share, random): &mut (f64, Random)) -> bool {
    *share > 0.0 && random.unit() < *share
}

fn time((law, random): &mut (Option<Law>, Random)) -> u64 {
    law.map_or(0, |law| draw(law, random))
}

/// One time of a law.
fn draw(law: Law, random: &mut Random) -> u64 {
    match law {
        Law::Fixed { ns } => ns,
        Law::Uniform { low_ns, high_ns } => {
            low_ns + (random.unit() * (high_ns - low_ns + 1) as f64) as u64
        }
        Law::Exponential { mean_ns } => (random.exponential() * mean_ns as f64) as u64,
        Law::Normal { mean_ns, sd_ns } => {
            (mean_ns as f64 + random.normal() * sd_ns as f64).max(0.0) as u64
        }
        Law::Lognormal { median_ns, sigma } => {
            (median_ns as f64 * (random.normal() * sigma).exp()) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Delay, Errors, Reset};

    const DRAWS: usize = 20_000;
    /// Kolmogorov's bound for a false alarm in a million: sqrt(-ln(alpha / 2) / 2).
    const KOLMOGOROV: f64 = 2.694;

    /// The largest distance between the draws and a distribution function.
    fn distance(law: Law, below: impl Fn(f64) -> f64) -> f64 {
        let mut random = Random::new(7);
        let mut drawn: Vec<f64> = (0..DRAWS).map(|_| draw(law, &mut random) as f64).collect();
        drawn.sort_by(f64::total_cmp);
        let n = DRAWS as f64;
        drawn
            .iter()
            .enumerate()
            .map(|(i, &at)| {
                let wanted = below(at);
                (wanted - i as f64 / n)
                    .abs()
                    .max((wanted - (i + 1) as f64 / n).abs())
            })
            .fold(0.0, f64::max)
    }

    fn assert_follows(law: Law, below: impl Fn(f64) -> f64) {
        let distance = distance(law, below);

        assert!(
            distance * (DRAWS as f64).sqrt() < KOLMOGOROV,
            "{law:?}: {distance}"
        );
    }

    /// The standard normal distribution function, by Simpson's rule on its density.
    fn phi(x: f64) -> f64 {
        let steps = 2000;
        let width = x / f64::from(steps);
        let density = |at: f64| (-at * at / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let sum: f64 = (0..=steps)
            .map(|i| {
                let weight = match i {
                    0 => 1.0,
                    _ if i == steps => 1.0,
                    _ if i % 2 == 1 => 4.0,
                    _ => 2.0,
                };
                weight * density(f64::from(i) * width)
            })
            .sum();
        0.5 + sum * width / 3.0
    }

    #[test]
    fn times_follow_their_laws() {
        let (low_ns, high_ns) = (1_000_000, 9_000_000);
        assert_follows(Law::Uniform { low_ns, high_ns }, |t| {
            ((t - low_ns as f64) / (high_ns - low_ns) as f64).clamp(0.0, 1.0)
        });
        assert_follows(Law::Exponential { mean_ns: 5_000_000 }, |t| {
            1.0 - (-t / 5e6).exp()
        });
        assert_follows(
            Law::Normal {
                mean_ns: 50_000_000,
                sd_ns: 5_000_000,
            },
            |t| phi((t - 50e6) / 5e6),
        );
        assert_follows(
            Law::Lognormal {
                median_ns: 5_000_000,
                sigma: 0.7,
            },
            |t| phi((t / 5e6).ln() / 0.7),
        );
    }

    #[test]
    fn a_normal_time_below_zero_is_zero() {
        let law = Law::Normal {
            mean_ns: 1_000,
            sd_ns: 1_000_000,
        };
        let mut random = Random::new(1);

        let zeros = (0..DRAWS).filter(|_| draw(law, &mut random) == 0).count();

        // P(Z < -0.001) is 0.4996; five standard deviations of the binomial around it.
        assert!((zeros as f64 / DRAWS as f64 - 0.4996).abs() < 5.0 * 0.5 / (DRAWS as f64).sqrt());
    }

    #[test]
    fn one_fault_leaves_the_draws_of_the_others_as_they_were() {
        let errors = Errors {
            share: 0.3,
            ..Errors::default()
        };
        let alone = Faults {
            errors,
            ..Faults::default()
        };
        let together = Faults {
            errors,
            reset: Reset {
                share: 0.5,
                ..Reset::default()
            },
            delay: Delay {
                request: Some(Law::Exponential { mean_ns: 5 }),
                ..Delay::default()
            },
            ..Faults::default()
        };
        let fates = |faults: &Faults| -> Vec<bool> {
            let mut draws = Draws::new(faults);
            (0..100).map(|_| draws.next().is_error).collect()
        };

        assert_eq!(fates(&alone), fates(&together));
    }

    #[test]
    fn a_share_of_one_is_always_and_of_zero_never() {
        let mut always = (1.0, Random::new(3));
        let mut never = (0.0, Random::new(3));

        assert!((0..1000).all(|_| happens(&mut always)));
        assert!(!(0..1000).any(|_| happens(&mut never)));
    }
}
