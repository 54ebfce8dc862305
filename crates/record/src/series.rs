//! Values kept of each measured interval until the end: enough for estimates, bounded in memory.
//!
//! The whole is exact: moments, and a count for each bucket. Intervals are kept for their variation, which a bounded
//! number of pieces shows as well as all of them; within a piece, counts between ranks do as well as counts of buckets
//! (compare t-digest: T. Dunning and O. Ertl 2019). So runs are kept as they are up to [`CELLS`] cells, and give what
//! their record gives to the last digit; longer ones give its values, and intervals that differ from its by a bucket or
//! two.

use loadlens_base::units::seconds;
use loadlens_estimate::{self as estimate, Buckets, Distribution, Quantity, Recorded, Steps};

use super::interval::Moments;
use super::merge::{add_counts, Counts, TimingSum};

/// Above this many intervals neighbours are joined, as the estimates would join them.
const MOST: usize = estimate::MOST_STEPS;
/// Cells that all pieces of a series hold together at most, 8 bytes each: above them every piece becomes coarse. A minute
/// of 250 ms with a thousand different times each stays below.
const CELLS: usize = 1 << 18;
/// Cells of a coarse list at most. All lists of a series, two for each piece, stay below [`CELLS`].
const COARSE: usize = 96;
/// Cells of a coarse list for each factor e by which fewer requests take longer: near the p-quantile a cell holds a tenth of
/// those above it, so what is not known within cells adds 3 % to the binomial variance at p50 and less above.
const PER_E: f64 = 10.0;

/// One population over the measured part.
#[derive(Clone, Debug, Default)]
pub struct Series {
    pieces: Vec<Piece>,
    /// Cells of all pieces.
    held: usize,
    whole: Moments,
    finished: Counts,
    censored: Counts,
}

#[derive(Clone, Debug, Default)]
struct Piece {
    length: u64,
    moments: Moments,
    finished: Cells,
    censored: Cells,
}

/// Values in a row of neighbouring buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    low: u16,
    high: u16,
    count: u32,
}

/// Cells by their low end, without room to grow: there are many of them.
#[derive(Clone, Debug, Default)]
struct Cells(Box<[Cell]>);

impl Cells {
    /// A cell for each bucket.
    fn of(counts: &[(u32, u64)]) -> Cells {
        let cell = |(bucket, count): &(u32, u64)| {
            let bucket = *bucket as u16; // there are 36,864
            Cell {
                low: bucket,
                high: bucket,
                // 4 billion values in one cell of one interval are beyond any thread.
                count: u32::try_from(*count).unwrap_or(u32::MAX),
            }
        };
        Cells(counts.iter().map(cell).collect())
    }

    fn joined(&self, other: &Cells) -> Cells {
        let mut all = [&self.0[..], &other.0[..]].concat();
        all.sort_unstable();
        let mut joined: Vec<Cell> = Vec::with_capacity(all.len());
        for cell in all {
            match joined.last_mut() {
                Some(last) if (last.low, last.high) == (cell.low, cell.high) => {
                    last.count = last.count.saturating_add(cell.count);
                }
                _ => joined.push(cell),
            }
        }
        Cells(joined.into_boxed_slice())
    }

    /// The same counts in [`COARSE`] cells at most: neighbours whose ranks lie in the same slot become one.
    fn coarse(&self) -> Cells {
        if self.0.len() <= COARSE {
            return self.clone();
        }
        let total: f64 = self.0.iter().map(|cell| f64::from(cell.count)).sum();
        let mut coarse: Vec<(usize, Cell)> = Vec::with_capacity(COARSE);
        let mut below = 0.0;
        for cell in &self.0 {
            let count = f64::from(cell.count);
            let slot = slot((below + count / 2.0) / total);
            below += count;
            match coarse.last_mut() {
                Some((of_last, last)) if *of_last == slot => {
                    last.high = last.high.max(cell.high);
                    last.count = last.count.saturating_add(cell.count);
                }
                _ => coarse.push((slot, *cell)),
            }
        }
        Cells(coarse.into_iter().map(|(_, cell)| cell).collect())
    }

    fn to_estimate(&self, step: u32) -> impl Iterator<Item = estimate::Cell> + '_ {
        self.0.iter().map(move |cell| estimate::Cell {
            step,
            low: cell.low.into(),
            high: cell.high.into(),
            count: cell.count,
        })
    }
}

/// The slot of a share of requests: equally many for each factor by which fewer are left above it.
fn slot(share: f64) -> usize {
    let left = (1.0 - share).max(f64::MIN_POSITIVE);
    ((-left.ln() * PER_E) as usize).min(COARSE - 1)
}

impl Piece {
    fn held(&self) -> usize {
        self.finished.0.len() + self.censored.0.len()
    }
}

/// Treatment of the requests that were in flight at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// They count as longer than they had lasted.
    Counted,
    /// They are left out.
    LeftOut,
}

impl Series {
    /// Adds the interval that follows.
    pub fn push(&mut self, length: u64, finished: &TimingSum, censored: &[(u32, u64)]) {
        self.whole.merge(&finished.moments);
        add_counts(&mut self.finished, &finished.counts);
        add_counts(&mut self.censored, censored);
        let piece = Piece {
            length,
            moments: finished.moments,
            finished: Cells::of(&finished.counts),
            censored: Cells::of(censored),
        };
        self.held += piece.held();
        self.pieces.push(piece);
        if self.pieces.len() > MOST {
            let lengths = self.pieces.iter().map(|piece| piece.length);
            let mut longest = 2 * lengths.min().unwrap_or(0).max(1);
            while self.pieces.len() > MOST {
                self.join_neighbours(longest);
                longest *= 2;
            }
        }
        if self.held > CELLS {
            self.coarsen();
        }
    }

    fn join_neighbours(&mut self, longest: u64) {
        let mut joined: Vec<Piece> = Vec::with_capacity(MOST + 1);
        for piece in self.pieces.drain(..) {
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
        self.pieces = joined;
        self.held = self.pieces.iter().map(Piece::held).sum();
    }

    fn coarsen(&mut self) {
        for piece in &mut self.pieces {
            piece.finished = piece.finished.coarse();
            piece.censored = piece.censored.coarse();
        }
        self.held = self.pieces.iter().map(Piece::held).sum();
    }

    /// Exact moments of all finished ones.
    pub fn moments(&self) -> &Moments {
        &self.whole
    }

    /// All finished ones by bucket.
    pub fn counts(&self) -> &Counts {
        &self.finished
    }

    /// True if requests are so long that those in flight at the end are left out.
    pub fn edge_is_cut(&self, all_ended: bool) -> bool {
        let end = |counts: &Counts| counts.last().map(|(bucket, _)| *bucket);
        let (Some(longest), Some(oldest)) = (end(&self.finished), end(&self.censored)) else {
            return false;
        };
        let (_, measured_s) = self.steps();
        let (longest_s, oldest_s) = (Buckets::HDR.upper(longest), Buckets::HDR.age(oldest));
        estimate::edge_is_cut(longest_s, oldest_s, measured_s, all_ended)
    }

    /// Its estimates.
    pub fn distribution(&self, requests_in_flight: Late) -> Distribution {
        let (places, seconds_in_all) = self.steps();
        let count = places.last().map_or(0, |last| *last as usize + 1);
        let mut steps = Steps {
            sums_s: vec![0.0; count],
            squares_s2: vec![0.0; count],
            counts: vec![0.0; count],
        };
        let (mut finished, mut late) = (Vec::new(), Vec::new());
        for (piece, &step) in self.pieces.iter().zip(&places) {
            steps.sums_s[step as usize] += piece.moments.sum_s();
            steps.squares_s2[step as usize] += piece.moments.sum_of_squares_s2();
            steps.counts[step as usize] += piece.moments.count as f64;
            finished.extend(piece.finished.to_estimate(step));
            if requests_in_flight == Late::Counted {
                late.extend(piece.censored.to_estimate(step));
            }
        }
        let censored = match requests_in_flight {
            Late::Counted => self.censored.clone(),
            Late::LeftOut => Counts::new(),
        };
        let recorded = Recorded {
            buckets: Buckets::HDR,
            steps: count,
            seconds: seconds_in_all,
            finished,
            late,
            whole: Some([self.finished.clone(), censored]),
        };
        let mut distribution = estimate::distribution(recorded, &steps);
        // The recorder knows the ends exactly, not only their buckets.
        distribution.min = self.moments().min().map(seconds);
        distribution.max = self.moments().min().map(|_| seconds(self.moments().max));
        distribution
    }

    /// Finished ones per second.
    pub fn throughput(&self) -> Quantity {
        let (places, _) = self.steps();
        let count = places.last().map_or(0, |last| *last as usize + 1);
        let (mut events, mut lengths_s) = (vec![0.0; count], vec![0.0; count]);
        for (piece, &step) in self.pieces.iter().zip(&places) {
            events[step as usize] += piece.moments.count as f64;
            lengths_s[step as usize] += seconds(piece.length);
        }
        estimate::rate(&events, &lengths_s, estimate::CONFIDENCE).into()
    }

    /// The step that each piece belongs to, and the length of all.
    fn steps(&self) -> (Vec<u32>, f64) {
        let lengths: Vec<f64> = self
            .pieces
            .iter()
            .map(|piece| seconds(piece.length))
            .collect();
        (estimate::level(&lengths), lengths.iter().sum())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::grid::Grid;
    use crate::histogram::{bucket_of, HIGHEST};
    use loadlens_base::units::SECOND;
    use loadlens_base::Random;

    /// The sum of values, counted by a map.
    fn timing(values: &[u64]) -> TimingSum {
        let mut sum = TimingSum::default();
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for ns in values {
            sum.moments.add(*ns);
            *counts.entry(bucket_of(*ns) as u32).or_default() += 1;
        }
        sum.counts = counts.into_iter().collect();
        sum
    }

    /// A time around `median`, log-normal with this spread.
    fn drawn(random: &mut Random, median: f64, spread: f64) -> u64 {
        let normal: f64 = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        (median * (spread * normal).exp()) as u64
    }

    fn bytes(series: &Series) -> usize {
        let lists = |piece: &Piece| {
            let lists = [&piece.finished.0, &piece.censored.0];
            lists.map(|list| size_of_val(&**list)).iter().sum::<usize>()
        };
        let pieces = series.pieces.capacity() * size_of::<Piece>();
        let wholes = series.finished.capacity() + series.censored.capacity();
        let cells: usize = series.pieces.iter().map(lists).sum();
        pieces + cells + wholes * size_of::<(u32, u64)>()
    }

    #[test]
    fn a_long_run_keeps_few_intervals_and_every_count() {
        let mut series = Series::default();

        for second in 0..5_000 {
            series.push(SECOND, &timing(&[1_000 + second]), &Counts::new());
        }

        let distribution = series.distribution(Late::Counted);
        assert!(series.pieces.len() <= MOST, "{}", series.pieces.len());
        assert_eq!(distribution.count, 5_000);
        let lengths = series.pieces.iter().map(|piece| piece.length);
        assert_eq!(lengths.sum::<u64>(), 5_000 * SECOND);
        assert!((series.throughput().value.unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_series_stays_within_its_bound_for_a_day_of_any_times() {
        let (warmup_end, end) = (0, 24 * 3_600 * SECOND);
        let grid = Grid { warmup_end, end };
        let random = &mut Random::new(5);
        let mut series = Series::default();
        let (mut finished, mut unfinished) = (BTreeMap::new(), BTreeMap::new());
        let (mut at, mut most, mut most_bytes) = (0, 0, 0);

        while at < end {
            let next = grid.next_cut(at);
            // Worse than any service: each interval has times from nanoseconds to hours, and as many that never end.
            let mut any = |all: &mut BTreeMap<u32, u64>| {
                let value = |_| random.below(HIGHEST) >> random.below(45);
                let sum = timing(&(0..400).map(value).collect::<Vec<u64>>());
                sum.counts
                    .iter()
                    .for_each(|(bucket, count)| *all.entry(*bucket).or_default() += count);
                sum
            };
            let (ended, never) = (any(&mut finished), any(&mut unfinished));
            series.push(next - at, &ended, &never.counts);
            most = most.max(series.held);
            most_bytes = most_bytes.max(bytes(&series));
            at = next;
        }

        assert!(most <= CELLS && series.pieces.len() <= MOST, "{most} cells");
        let held: usize = series.pieces.iter().map(Piece::held).sum();
        assert_eq!(held, series.held);
        // Cells, pieces, and two wholes of 36,864 buckets that may have grown to double: as docs/adr/0010 says.
        assert!(most_bytes <= 4 << 20, "{most_bytes} bytes");
        assert_eq!(*series.counts(), finished.into_iter().collect::<Counts>());
        assert_eq!(series.censored, unfinished.into_iter().collect::<Counts>());
    }

    #[test]
    fn lists_that_are_coarse_hold_every_count_in_few_cells() {
        let random = &mut Random::new(3);
        let values: Vec<u64> = (0..50_000).map(|_| drawn(random, 1e7, 1.0)).collect();
        let exact = Cells::of(&timing(&values).counts);

        let coarse = exact.coarse();

        assert!(
            exact.0.len() > 2_000 && coarse.0.len() <= COARSE,
            "{}",
            coarse.0.len()
        );
        let count = |cells: &Cells| {
            cells
                .0
                .iter()
                .map(|cell| u64::from(cell.count))
                .sum::<u64>()
        };
        assert_eq!((count(&exact), count(&coarse)), (50_000, 50_000));
        assert!(
            coarse.0.windows(2).all(|two| two[0].high < two[1].low),
            "cells of one list overlap"
        );
        // The first slot has the most, 1 - exp(-1/10) of all, and a bucket at each end may lie across its edge.
        let largest = coarse.0.iter().map(|cell| cell.count).max();
        let of_bucket = exact.0.iter().map(|cell| cell.count).max().unwrap();
        assert!(largest <= Some(4_759 + 2 * of_bucket), "{largest:?}");
    }

    /// Number of independent requests above each quantile, and the quantile's interval.
    fn intervals(found: &Distribution) -> Vec<(f64, f64, f64, f64)> {
        let quantiles = [
            &found.p50,
            &found.p75,
            &found.p90,
            &found.p95,
            &found.p99,
            &found.p999,
        ];
        let intervals = quantiles.into_iter().map(|quantity| {
            let number = |part: Option<f64>| part.unwrap();
            let (value, low, high) = (
                number(quantity.value),
                number(quantity.low),
                number(quantity.high),
            );
            (value, low, high, number(quantity.independent_above))
        });
        intervals.collect()
    }

    /// Everything that was pushed.
    #[derive(Default)]
    struct Exact {
        steps: Steps,
        finished: Vec<estimate::Cell>,
        late: Vec<estimate::Cell>,
    }

    impl Exact {
        fn distribution(self) -> Distribution {
            let recorded = Recorded {
                buckets: Buckets::HDR,
                steps: self.steps.sums_s.len(),
                seconds: self.steps.sums_s.len() as f64,
                finished: self.finished,
                late: self.late,
                whole: None,
            };
            estimate::distribution(recorded, &self.steps)
        }
    }

    #[test]
    fn coarse_pieces_say_of_quantiles_and_means_what_exact_ones_say() {
        // Times whose level wanders (drift 0: it stays), 1 % of which are given up after some time.
        for drift in [0.0, 0.02, 0.2] {
            let random = &mut Random::new(11);
            let mut series = Series::default();
            let (mut exact, mut level) = (Exact::default(), 0.0f64);
            for _ in 0..300 {
                level = 0.9 * level + drift * (random.unit() - 0.5);
                let times: Vec<u64> = (0..3_000)
                    .map(|_| drawn(random, 1e7 * level.exp(), 0.7))
                    .collect();
                let ages: Vec<u64> = (0..30).map(|_| drawn(random, 5e6, 0.3)).collect();
                let (ended, never) = (timing(&times), timing(&ages).counts);
                let step = exact.steps.sums_s.len() as u32;
                exact.steps.sums_s.push(ended.moments.sum_s());
                exact
                    .steps
                    .squares_s2
                    .push(ended.moments.sum_of_squares_s2());
                exact.steps.counts.push(ended.moments.count as f64);
                exact
                    .finished
                    .extend(Cells::of(&ended.counts).to_estimate(step));
                exact.late.extend(Cells::of(&never).to_estimate(step));
                series.push(SECOND, &ended, &never);
            }
            let buckets = exact.finished.len();
            assert!(
                buckets > CELLS,
                "{buckets} buckets: nothing had to become coarse"
            );

            let (found, truth) = (series.distribution(Late::Counted), exact.distribution());

            assert_eq!((found.count, found.censored), (truth.count, truth.censored));
            assert_eq!(found.histogram, truth.histogram);
            for (found, truth) in intervals(&found).iter().zip(intervals(&truth)) {
                assert_eq!(found.0, truth.0, "the value is that of the whole");
                let (width, of_truth) = (found.2 - found.1, truth.2 - truth.1);
                let rounding = 2.0 * truth.0 / 1_024.0; // a bucket at each end
                let differs = (width - of_truth).abs();
                assert!(
                    differs <= 0.05 * of_truth + rounding,
                    "drift {drift}: {found:?} {truth:?}"
                );
                let independent = found.3 / truth.3;
                assert!(
                    (0.9..1.1).contains(&independent),
                    "drift {drift}: {found:?} {truth:?}"
                );
            }
            let mean = |found: &Distribution| found.mean.high.unwrap() - found.mean.value.unwrap();
            assert!((found.mean.value.unwrap() / truth.mean.value.unwrap() - 1.0).abs() < 1e-3);
            assert!((mean(&found) / mean(&truth) - 1.0).abs() < 0.03);
        }
    }

    #[test]
    fn a_run_of_a_minute_is_kept_as_it_was_recorded() {
        let mut series = Series::default();
        let random = &mut Random::new(2);
        for _ in 0..240 {
            let values: Vec<u64> = (0..250).map(|_| drawn(random, 1e6, 0.5)).collect();
            series.push(SECOND / 4, &timing(&values), &Counts::new());
        }

        let is_exact = |piece: &Piece| piece.finished.0.iter().all(|cell| cell.low == cell.high);

        assert_eq!(series.pieces.len(), 240);
        assert!(series.pieces.iter().all(is_exact)); // 250 values in 240 intervals are below CELLS
    }
}
