//! Moments in which nothing at all is done, as when a collector stops the world: all known from the start, a
//! function of the seed.

use std::time::Duration;

use crate::settings::Pauses;
use crate::steps::uniform;
use crate::sys;

const LONGEST_NS: u64 = 4 * 3600 * 1_000_000_000; // longer than any specimen runs
const SALT: u64 = 0xCA1E;

/// Begin and end of each pause.
pub struct Calendar {
    windows: Vec<(u64, u64)>,
}

impl Calendar {
    /// From a moment on; the first pause comes after one distance.
    pub fn new(pauses: &Pauses, seed: u64, start_ns: u64) -> Calendar {
        let (every, length) = (pauses.every_ms * 1e6, (pauses.length_ms * 1e6) as u64);
        let (mut windows, mut at) = (Vec::new(), start_ns);
        for number in 0u64.. {
            let gap = every * pauses.law.factor(uniform(seed, number, SALT));
            at += (gap as u64).max(2 * length); // else two would look like one
            if at > start_ns + LONGEST_NS {
                break;
            }
            windows.push((at, at + length));
        }
        Calendar { windows }
    }

    /// Beginning and end of the pause that is now.
    pub fn now_in(&self, now_ns: u64) -> Option<(u64, u64)> {
        let after = self.windows.partition_point(|&(begin, _)| begin <= now_ns);
        let last = self.windows[after.checked_sub(1)?];
        (now_ns < last.1).then_some(last)
    }

    /// Sleeps through the pause that is now; how long it was from its beginning to the waking.
    pub fn hold(&self) -> Option<u64> {
        let (begin, end) = self.now_in(sys::monotonic_ns())?;
        std::thread::sleep(Duration::from_nanos(
            end.saturating_sub(sys::monotonic_ns()),
        ));
        Some(sys::monotonic_ns() - begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Law;

    const MS: u64 = 1_000_000;

    fn calendar(law: Law) -> Calendar {
        let pauses = Pauses {
            every_ms: 1_000.0,
            length_ms: 200.0,
            law,
        };
        Calendar::new(&pauses, 3, 0)
    }

    #[test]
    fn regular_pauses_come_at_equal_distances() {
        let calendar = calendar(Law::Fixed);

        assert_eq!(calendar.now_in(999 * MS), None);
        assert_eq!(calendar.now_in(1_000 * MS), Some((1_000 * MS, 1_200 * MS)));
        assert_eq!(calendar.now_in(7_150 * MS), Some((7_000 * MS, 7_200 * MS)));
        assert_eq!(calendar.now_in(7_200 * MS), None);
    }

    #[test]
    fn irregular_pauses_never_overlap_and_keep_their_mean_distance() {
        let calendar = calendar(Law::Exponential);

        let gaps: Vec<u64> = calendar
            .windows
            .windows(2)
            .map(|two| two[1].0 - two[0].0)
            .collect();

        assert!(gaps.iter().all(|&gap| gap >= 400 * MS));
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64 / 1e9;
        // E max(gap, 0.4) of an exponential gap of mean 1 is 0.4 + e^-0.4 = 1.070.
        assert!((mean - 1.070).abs() < 0.03, "{mean}");
    }
}
