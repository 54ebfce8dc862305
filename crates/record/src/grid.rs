//! Boundaries of intervals.
//!
//! Every phase begins a grid of its own, so the intervals of the measured part are equally long: 250 ms
//! in its first minute, then 1 s for an hour, then longer, so that a run has a few thousand at most.
//! The ends of the warm-up and of the measured part are cuts that every thread makes exactly there.

use loadlens_base::units::{MILLISECOND, SECOND};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

const FINE: u64 = 250 * MILLISECOND;
const FINE_UNTIL: u64 = 60 * SECOND;
const COARSE_UNTIL: u64 = 3_600 * SECOND;

/// The part of a run that a moment lies in.
///
/// As a text it is the name in counters.jsonl.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, IntoStaticStr, Ord, PartialEq, PartialOrd, Serialize,
)]
#[strum(serialize_all = "snake_case")]
pub enum Phase {
    /// Load before the measured part.
    Warmup,
    /// The measured part.
    Measure,
    /// Nothing new is sent; what is in flight may finish.
    Drain,
}

/// The cuts of one run. The end of the measured part may come nearer while it runs.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// End of the warm-up.
    pub warmup_end: u64,
    /// End of the measured part; `u64::MAX` while unknown.
    pub end: u64,
}

impl Grid {
    /// The phase of an interval that begins at `at`.
    pub fn phase(&self, at: u64) -> Phase {
        if at >= self.end {
            Phase::Drain
        } else if at >= self.warmup_end {
            Phase::Measure
        } else {
            Phase::Warmup
        }
    }

    /// The first cut after `at`.
    pub fn next_cut(&self, at: u64) -> u64 {
        let (from, to) = match self.phase(at) {
            Phase::Warmup => (0, self.warmup_end.min(self.end)),
            Phase::Measure => (self.warmup_end, self.end),
            Phase::Drain => (self.end, u64::MAX),
        };
        let length = step(at - from, (to < u64::MAX).then(|| to - from));
        let next = from + ((at - from) / length + 1) * length;
        // A last sliver of less than half a step would be a poor interval: it joins the one before.
        if to < u64::MAX && to - next.min(to) < length / 2 {
            to
        } else {
            next
        }
    }

    /// True if every thread must cut exactly at `cut`.
    pub fn is_hard(&self, cut: u64) -> bool {
        cut == self.warmup_end || cut == self.end
    }
}

/// Length of the interval that begins `at` into its phase.
fn step(at: u64, phase_length: Option<u64>) -> u64 {
    if at < FINE_UNTIL {
        return FINE;
    }
    let in_view = phase_length.unwrap_or(at).max(at);
    let seconds = in_view.div_ceil(COARSE_UNTIL).next_power_of_two();
    seconds * SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(grid: &Grid, from: u64, until: u64) -> Vec<u64> {
        let mut at = from;
        std::iter::from_fn(|| {
            at = grid.next_cut(at);
            (at <= until).then_some(at)
        })
        .collect()
    }

    #[test]
    fn warmup_and_measured_part_end_exactly_at_a_cut() {
        let grid = Grid {
            warmup_end: 1_100 * MILLISECOND,
            end: 1_700 * MILLISECOND,
        };

        let cuts: Vec<u64> = cuts(&grid, 0, 2_200 * MILLISECOND)
            .iter()
            .map(|c| c / MILLISECOND)
            .collect();

        assert_eq!(cuts, [250, 500, 750, 1_100, 1_350, 1_700, 1_950, 2_200]);
    }

    #[test]
    fn intervals_are_a_quarter_second_for_a_minute_and_then_a_second() {
        let grid = Grid {
            warmup_end: 0,
            end: 120 * SECOND,
        };

        let cuts = cuts(&grid, 0, 120 * SECOND);

        assert_eq!(cuts.len(), 240 + 60);
        assert_eq!(cuts[239..242], [60 * SECOND, 61 * SECOND, 62 * SECOND]);
    }

    #[test]
    fn a_day_has_a_few_thousand_intervals_at_most_whether_its_end_is_known_or_not() {
        let day = 24 * 3_600 * SECOND;

        let with_end = cuts(
            &Grid {
                warmup_end: 0,
                end: day,
            },
            0,
            day,
        )
        .len();
        let without_end = cuts(
            &Grid {
                warmup_end: 0,
                end: u64::MAX,
            },
            0,
            day,
        )
        .len();

        assert!(with_end <= 3_600, "{with_end}");
        assert!(without_end <= 3_780 + 5 * 1_800, "{without_end}");
    }
}
