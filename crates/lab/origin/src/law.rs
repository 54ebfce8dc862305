//! Service times of known law, and stations that queue for them.
//!
//! A station's departures follow from its arrivals by Lindley's recursion, so a late wake-up of our own
//! delays one answer and never the queue behind it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// The law of a service time; all times in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// Always the same.
    Constant {
        /// The time.
        ns: f64,
    },
    /// Memoryless.
    Exponential {
        /// Mean.
        mean_ns: f64,
    },
    /// Uniform between two bounds.
    Uniform {
        /// Shortest.
        low_ns: f64,
        /// Longest.
        high_ns: f64,
    },
    /// The logarithm is normal.
    LogNormal {
        /// Median.
        median_ns: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// P(T > t) = (scale / t)^shape from `scale` on.
    Pareto {
        /// Shortest.
        scale_ns: f64,
        /// Tail index; the mean exists above 1.
        shape: f64,
    },
    /// Some values in a fixed rotation, each with its share: no randomness at all.
    Rotation {
        /// Value and its share of the rotation.
        parts: Vec<(f64, u32)>,
    },
}

/// Draws from a law, the same ones for the same seed.
#[derive(Debug)]
pub struct Draws {
    law: Law,
    rotation: Rotation,
    random: SmallRng,
}

impl Draws {
    /// From the start of the sequence of `seed`.
    pub fn new(law: Law, seed: u64) -> Draws {
        let shares: Vec<u32> = match &law {
            Law::Rotation { parts } => parts.iter().map(|part| part.1).collect(),
            _ => vec![1],
        };
        Draws {
            law,
            rotation: Rotation::new(&shares),
            random: SmallRng::seed_from_u64(seed),
        }
    }

    /// The next service time.
    pub fn next_ns(&mut self) -> u64 {
        let random = &mut self.random;
        let ns = match &self.law {
            Law::Constant { ns } => *ns,
            Law::Exponential { mean_ns } => -positive_uniform(random).ln() * mean_ns,
            Law::Uniform { low_ns, high_ns } => {
                low_ns + random.random::<f64>() * (high_ns - low_ns)
            }
            Law::LogNormal { median_ns, sigma } => median_ns * (sigma * normal(random)).exp(),
            Law::Pareto { scale_ns, shape } => {
                scale_ns * positive_uniform(random).powf(-1.0 / shape)
            }
            Law::Rotation { parts } => parts[self.rotation.next()].0,
        };
        ns.round() as u64
    }
}

/// Uniform on (0, 1], so that its logarithm exists.
fn positive_uniform(random: &mut SmallRng) -> f64 {
    1.0 - random.random::<f64>()
}

/// Standard normal (Box and Muller 1958).
fn normal(random: &mut SmallRng) -> f64 {
    let radius = (-2.0 * positive_uniform(random).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

/// Positions with shares, dealt evenly and without randomness: each whole turn deals every position exactly
/// its share, spread as far apart as can be (smooth weighted round robin).
#[derive(Debug)]
pub struct Rotation {
    shares: Vec<i64>,
    credit: Vec<i64>,
}

impl Rotation {
    /// At least one share above 0 is needed.
    pub fn new(shares: &[u32]) -> Rotation {
        Rotation {
            shares: shares.iter().map(|&share| i64::from(share)).collect(),
            credit: vec![0; shares.len()],
        }
    }

    /// The position whose turn it is.
    #[allow(clippy::should_implement_trait)] // endless, so an iterator would only add an Option
    pub fn next(&mut self) -> usize {
        let mut best = 0;
        for at in 0..self.shares.len() {
            self.credit[at] += self.shares[at];
            if self.credit[at] > self.credit[best] {
                best = at;
            }
        }
        self.credit[best] -= self.shares.iter().sum::<i64>();
        best
    }
}

/// `c` servers with one queue, first come first served.
#[derive(Debug)]
pub struct Station {
    draws: Draws,
    /// Time at which each server becomes free.
    free_at: Vec<u64>,
    /// Most that may be in the station at once; none: no bound.
    places: Option<usize>,
    /// Departures to come, kept only when places are bounded.
    departures: BinaryHeap<Reverse<u64>>,
}

impl Station {
    /// An empty one with `servers` servers.
    pub fn new(draws: Draws, servers: usize, places: Option<usize>) -> Station {
        Station {
            draws,
            free_at: vec![0; servers.max(1)],
            places,
            departures: BinaryHeap::new(),
        }
    }

    /// Admits a request that arrives now and returns its departure time; none: all places are taken.
    pub fn admit(&mut self, now_ns: u64) -> Option<u64> {
        if let Some(places) = self.places {
            while self
                .departures
                .peek()
                .is_some_and(|first| first.0 <= now_ns)
            {
                self.departures.pop();
            }
            if self.departures.len() >= places {
                return None;
            }
        }
        let server = (0..self.free_at.len()).min_by_key(|&at| self.free_at[at])?;
        let done = now_ns.max(self.free_at[server]) + self.draws.next_ns();
        self.free_at[server] = done;
        if self.places.is_some() {
            self.departures.push(Reverse(done));
        }
        Some(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;

    fn sample(law: Law, count: usize) -> Vec<f64> {
        let mut draws = Draws::new(law, 7);
        (0..count).map(|_| draws.next_ns() as f64).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    fn share_above(values: &[f64], bound: f64) -> f64 {
        values.iter().filter(|&&value| value > bound).count() as f64 / values.len() as f64
    }

    /// Mean response time over a long run with Poisson arrivals, in ms.
    fn simulated_response_ms(law: Law, servers: usize, rate_per_ms: f64) -> f64 {
        let mut station = Station::new(Draws::new(law, 3), servers, None);
        let gap = Law::Exponential {
            mean_ns: MS / rate_per_ms,
        };
        let mut gaps = Draws::new(gap, 4);
        let (mut now, mut total, count) = (0u64, 0.0, 400_000);
        for _ in 0..count {
            now += gaps.next_ns();
            total += (station.admit(now).unwrap() - now) as f64;
        }
        total / f64::from(count) / MS
    }

    #[test]
    fn laws_have_the_means_and_tails_of_their_formulas() {
        let count = 200_000;
        let exponential = sample(Law::Exponential { mean_ns: MS }, count);
        let uniform = sample(
            Law::Uniform {
                low_ns: MS,
                high_ns: 3.0 * MS,
            },
            count,
        );
        let pareto = sample(
            Law::Pareto {
                scale_ns: MS,
                shape: 3.0,
            },
            count,
        );
        let normal = sample(
            Law::LogNormal {
                median_ns: MS,
                sigma: 0.5,
            },
            count,
        );

        assert!((mean(&exponential) / MS - 1.0).abs() < 0.01);
        assert!((share_above(&exponential, 2.0 * MS) - (-2.0f64).exp()).abs() < 0.003);
        assert!((mean(&uniform) / MS - 2.0).abs() < 0.01);
        assert!((mean(&pareto) / MS - 1.5).abs() < 0.02); // shape / (shape - 1)
        assert!((share_above(&pareto, 2.0 * MS) - 0.125).abs() < 0.003); // 2^-3
        assert!((share_above(&normal, MS) - 0.5).abs() < 0.005);
        assert!((mean(&normal) / MS - (0.125f64).exp()).abs() < 0.01); // exp(sigma^2 / 2)
    }

    #[test]
    fn a_rotation_deals_every_part_exactly_its_share() {
        let mut draws = Draws::new(
            Law::Rotation {
                parts: vec![(10.0 * MS, 99), (200.0 * MS, 1)],
            },
            0,
        );

        for _ in 0..5 {
            let turn: Vec<u64> = (0..100).map(|_| draws.next_ns()).collect();
            assert_eq!(turn.iter().filter(|&&ns| ns == 200_000_000).count(), 1);
        }
    }

    #[test]
    fn one_exponential_server_answers_as_m_m_1() {
        // mean response time 1 / (mu - lambda) = 1 / (1 - 0.5)
        let seen = simulated_response_ms(Law::Exponential { mean_ns: MS }, 1, 0.5);
        assert!((seen - 2.0).abs() < 0.06, "{seen}");
    }

    #[test]
    fn one_constant_server_answers_as_m_d_1() {
        // 1 + rho / (2 (1 - rho)) = 1.5 service times
        let seen = simulated_response_ms(Law::Constant { ns: MS }, 1, 0.5);
        assert!((seen - 1.5).abs() < 0.02, "{seen}");
    }

    #[test]
    fn three_exponential_servers_answer_as_m_m_3() {
        // a = 2, c = 3: Erlang C = 4/9 (hand count), wait = C / (c mu - lambda) = 4/9
        let seen = simulated_response_ms(Law::Exponential { mean_ns: MS }, 3, 2.0);
        assert!((seen - (1.0 + 4.0 / 9.0)).abs() < 0.04, "{seen}");
    }

    #[test]
    fn a_station_with_two_places_turns_the_third_away() {
        let mut station = Station::new(Draws::new(Law::Constant { ns: 10.0 }, 0), 1, Some(2));

        assert_eq!(station.admit(0), Some(10));
        assert_eq!(station.admit(1), Some(20));
        assert_eq!(station.admit(2), None);
        assert_eq!(station.admit(10), Some(30)); // the first has left
    }
}
