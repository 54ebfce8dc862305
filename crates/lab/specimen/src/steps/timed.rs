//! Duration of an operation for a request: by its law, the number of waiters and rows, and the warm-up.

use std::sync::atomic::Ordering::Relaxed;

use crate::counts::Counts;
use crate::settings::{Law, Only, Warmup, Work};
use crate::sys;

use super::Visit;

const SLICE_NS: u64 = 20_000;

/// A time that depends on who comes when.
pub struct Timed {
    mean_ns: f64,
    law: Law,
    per_row_ns: f64,
    contended: Option<(usize, f64)>,
    pub(super) only: Option<Only>,
    /// Draws of two steps of one request differ.
    salt: u64,
}

/// State on which times depend, besides the request.
pub struct World<'a> {
    /// Seed of all draws.
    pub seed: u64,
    /// Rows and waiters.
    pub counts: &'a Counts,
    /// Slowness at the start.
    pub warmup: Option<Warmup>,
}

impl Timed {
    pub(super) fn new(work: &Work, salt: u64, place: &impl Fn(&str) -> usize) -> Timed {
        Timed {
            mean_ns: work.ms * 1e6,
            law: work.law,
            per_row_ns: work.per_row_us * 1e3,
            contended: work
                .contended
                .as_ref()
                .map(|more| (place(&more.resource), more.share)),
            only: work.only.clone(),
            salt,
        }
    }

    /// Duration for one request; 0 if it skips the operation.
    pub(super) fn ns(&self, visit: &Visit, world: &World<'_>) -> u64 {
        let draw = |what: u64| uniform(world.seed, visit.number, self.salt + what);
        if let Some(only) = &self.only {
            let is_meant = only.share.is_none_or(|share| draw(0) < share)
                && only
                    .connection_in
                    .is_none_or(|n| visit.connection % n.max(1) == 0)
                && (!only.first || visit.is_first);
            if !is_meant {
                return 0;
            }
        }
        let counts = world.counts;
        let waiting = |at: usize| counts.resources[at].waiting.load(Relaxed) as f64;
        let mean = self.mean_ns + self.per_row_ns * counts.rows.load(Relaxed) as f64;
        let more = self
            .contended
            .map_or(0.0, |(at, share)| share * waiting(at));
        (mean * self.law.factor(draw(1)) * (1.0 + more) * slowness(world)) as u64
    }
}

/// Factor by which times are longer now than after the warm-up.
fn slowness(world: &World<'_>) -> f64 {
    world.warmup.map_or(1.0, |warmup| {
        let since = sys::monotonic_ns().saturating_sub(world.counts.first_ns.load(Relaxed));
        1.0 + (warmup.factor - 1.0) * (-(since as f64) / 1e9 / warmup.time_s).exp()
    })
}

impl Law {
    /// A draw with mean 1, from one that is uniform on [0, 1).
    pub fn factor(self, uniform: f64) -> f64 {
        match self {
            Law::Fixed => 1.0,
            Law::Uniform => 0.5 + uniform,
            Law::Exponential => -(1.0 - uniform).ln(),
        }
    }
}

/// Uniform on [0, 1), a function of three numbers (the finaliser of SplitMix64, Steele et al. 2014).
pub fn uniform(seed: u64, number: u64, salt: u64) -> f64 {
    let mut bits = seed
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(number.wrapping_mul(0xD1B5_4A32_D192_ED03))
        .wrapping_add(salt.wrapping_mul(0x8CB9_2BA7_2F3D_8DD7));
    for (shift, factor) in [(30, 0xBF58_476D_1CE4_E5B9), (27, 0x94D0_49BB_1331_11EB)] {
        bits = (bits ^ (bits >> shift)).wrapping_mul(factor);
    }
    (bits ^ (bits >> 31)) as f64 / 2f64.powi(64)
}

/// Computes for so much processor time of this thread: what other threads take does not count.
pub fn burn(ns: u64) {
    if ns == 0 {
        return;
    }
    let until = sys::thread_cpu_ns() + ns;
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    loop {
        let left = until.saturating_sub(sys::thread_cpu_ns());
        if left == 0 {
            return;
        }
        // About two nanoseconds a round; between two looks at the clock at most a slice of the time left.
        for _ in 0..left.min(SLICE_NS) / 2 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        std::hint::black_box(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Line;

    fn world(counts: &Counts) -> World<'_> {
        World {
            seed: 7,
            counts,
            warmup: None,
        }
    }

    fn timed(json: &str) -> Timed {
        Timed::new(&serde_json::from_str(json).unwrap(), 0, &|_: &str| 0)
    }

    #[test]
    fn burning_takes_processor_time_of_the_thread() {
        let used: Vec<u64> = (0..10)
            .map(|_| {
                let before = sys::thread_cpu_ns();
                burn(5_000_000);
                sys::thread_cpu_ns() - before
            })
            .collect();

        // A host that takes the core away, and the kernel's work on it, are booked as the thread's own time.
        let least = *used.iter().min().unwrap();
        assert!((5_000_000..6_000_000).contains(&least), "{used:?}");
    }

    #[test]
    fn a_share_of_the_requests_takes_longer_the_same_ones_each_time() {
        let counts = Counts::default();
        let slow = timed(r#"{"ms": 2, "only": {"share": 0.1}}"#);
        let times = |()| -> Vec<u64> {
            (0..10_000)
                .map(|number| {
                    let visit = Visit {
                        number,
                        ..Visit::default()
                    };
                    slow.ns(&visit, &world(&counts))
                })
                .collect()
        };

        let (first, again): (Vec<u64>, Vec<u64>) = (times(()), times(()));

        let many = first.iter().filter(|&&ns| ns == 2_000_000).count();
        assert_eq!(first, again);
        assert!((880..1120).contains(&many), "{many}"); // 4 standard deviations of a binomial
        assert_eq!(first.iter().filter(|&&ns| ns == 0).count(), 10_000 - many);
    }

    #[test]
    fn rows_and_waiters_make_it_longer() {
        let counts = Counts::default();
        counts.rows.store(1_000, Relaxed);
        let mut line = Line::new(1);
        assert!(line.take());
        (0..4).for_each(|who| line.wait(who));
        counts.stands(0, &line);
        let work =
            timed(r#"{"ms": 1, "per_row_us": 2, "contended": {"resource": "a", "share": 0.5}}"#);

        let ns = work.ns(&Visit::default(), &world(&counts));

        assert_eq!(ns, 9_000_000); // (1 ms + 1000 rows x 2 us) x (1 + 4 waiters x 0.5)
    }

    #[test]
    fn only_some_connections_and_first_requests_are_meant() {
        let counts = Counts::default();
        let work = timed(r#"{"ms": 1, "only": {"connection_in": 3, "first": true}}"#);
        let meant = |connection, is_first| {
            let visit = Visit {
                connection,
                is_first,
                ..Visit::default()
            };
            work.ns(&visit, &world(&counts)) > 0
        };

        assert!(meant(6, true));
        assert!(!meant(6, false) && !meant(7, true));
    }

    #[test]
    fn laws_have_the_mean_one() {
        for law in [Law::Fixed, Law::Uniform, Law::Exponential] {
            let sum: f64 = (0..100_000).map(|n| law.factor(uniform(1, n, 2))).sum();
            assert!((sum / 1e5 - 1.0).abs() < 0.013, "{law:?} {sum}"); // 4 standard errors
        }
    }
}
