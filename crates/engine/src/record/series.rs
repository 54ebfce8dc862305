//! What is kept of each measured interval until the end: enough for estimates, bounded in memory.

use crate::estimate::{self, Distribution, Quantity};
use crate::units::seconds;

use super::histogram::bucket_high;
use super::interval::Moments;
use super::merge::{Counts, TimingSum};

/// Above this many intervals neighbours are joined: a run of any length needs a few megabytes, and the
/// error bars, which need some 60 intervals, do not suffer.
const MOST: usize = 320;

/// One population over the measured part.
#[derive(Clone, Debug, Default)]
pub struct Series {
    intervals: Vec<Piece>,
    whole: Moments,
}

#[derive(Clone, Debug, Default)]
struct Piece {
    length: u64,
    moments: Moments,
    finished: Packed,
    censored: Packed,
}

/// (bucket, count) in half the memory of [`Counts`] and without room to grow: there are many of them.
#[derive(Clone, Debug, Default)]
struct Packed(Box<[(u32, u32)]>);

impl Packed {
    fn of(counts: &Counts) -> Packed {
        // 4 billion values in one bucket of one interval are beyond any thread.
        let pack =
            |(bucket, count): &(u32, u64)| (*bucket, u32::try_from(*count).unwrap_or(u32::MAX));
        Packed(counts.iter().map(pack).collect())
    }

    fn counts(&self) -> Counts {
        self.0
            .iter()
            .map(|(bucket, count)| (*bucket, u64::from(*count)))
            .collect()
    }

    fn joined(&self, other: &Packed) -> Packed {
        let mut counts = self.counts();
        super::merge::add_counts(&mut counts, &other.counts());
        Packed::of(&counts)
    }

    /// (largest value of the bucket in ns, count), rising.
    fn values(&self) -> Vec<(u64, u64)> {
        self.0
            .iter()
            .map(|(bucket, count)| (bucket_high(*bucket as usize), u64::from(*count)))
            .collect()
    }
}

impl Series {
    /// Adds the interval that follows.
    pub fn push(&mut self, length: u64, finished: &TimingSum, censored: &Counts) {
        self.whole.merge(&finished.moments);
        self.intervals.push(Piece {
            length,
            moments: finished.moments,
            finished: Packed::of(&finished.counts),
            censored: Packed::of(censored),
        });
        if self.intervals.len() > MOST {
            let lengths = self.intervals.iter().map(|piece| piece.length);
            let mut longest = 2 * lengths.min().unwrap_or(0).max(1);
            while self.intervals.len() > MOST * 3 / 4 {
                self.join_neighbours(longest);
                longest *= 2;
            }
        }
    }

    fn join_neighbours(&mut self, longest: u64) {
        let mut joined: Vec<Piece> = Vec::with_capacity(MOST + 1);
        for piece in self.intervals.drain(..) {
            match joined.last_mut() {
                Some(last) if last.length + piece.length <= longest => {
                    last.length += piece.length;
                    last.moments.merge(&piece.moments);
                    last.finished = last.finished.joined(&piece.finished);
                    last.censored = last.censored.joined(&piece.censored);
                }
                _ => joined.push(piece),
            }
        }
        self.intervals = joined;
    }

    /// Exact moments of all finished ones.
    pub fn moments(&self) -> &Moments {
        &self.whole
    }

    /// All finished ones by bucket.
    pub fn counts(&self) -> Counts {
        let mut all = Counts::new();
        self.intervals
            .iter()
            .for_each(|piece| super::merge::add_counts(&mut all, &piece.finished.counts()));
        all
    }

    /// Its estimates.
    pub fn distribution(&self) -> Distribution {
        let interval = |piece: &Piece| estimate::Interval {
            length_s: seconds(piece.length),
            sum_s: piece.moments.sum_s(),
            sumsq_s2: piece.moments.sum_of_squares_s2(),
            values: piece.finished.values(),
            censored: piece.censored.values(),
        };
        let intervals: Vec<estimate::Interval> = self.intervals.iter().map(interval).collect();
        let mut distribution = estimate::distribution(&intervals);
        // The recorder knows the ends exactly, not only their buckets.
        distribution.min = self.moments().min().map(seconds);
        distribution.max = self.moments().min().map(|_| seconds(self.moments().max));
        distribution
    }

    /// Finished ones per second.
    pub fn throughput(&self) -> Quantity {
        let counts: Vec<(f64, u64)> = self
            .intervals
            .iter()
            .map(|piece| (seconds(piece.length), piece.moments.count))
            .collect();
        estimate::throughput(&counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::histogram::bucket_of;

    fn one(ns: u64) -> TimingSum {
        let mut sum = TimingSum {
            counts: vec![(bucket_of(ns) as u32, 1)],
            ..TimingSum::default()
        };
        sum.moments.add(ns);
        sum
    }

    #[test]
    fn a_long_run_keeps_few_intervals_and_every_count() {
        let mut series = Series::default();

        for second in 0..5_000 {
            series.push(1_000_000_000, &one(1_000 + second), &Counts::new());
        }

        let distribution = series.distribution();
        assert!(series.intervals.len() <= MOST, "{}", series.intervals.len());
        assert_eq!(distribution.count, 5_000);
        assert_eq!(
            series
                .intervals
                .iter()
                .map(|piece| piece.length)
                .sum::<u64>(),
            5_000_000_000_000
        );
        assert!((series.throughput().value.unwrap() - 1.0).abs() < 1e-9);
    }
}
