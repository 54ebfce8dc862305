//! Interval sets as the collector keeps them: owned, sparse, added over threads and time.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::{AddAssign, Range};

use loadlens_base::units::seconds;
use loadlens_base::Class;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::grid::Phase;
use super::histogram::{bucket_high, Histogram, PagePool, BUCKETS};
use super::interval::{
    Cell, CheckCount, Flows, Gap, GroupTally, IntervalSet, LoopTally, Moments, StepPhases,
    StepTally, StreamTally, Timing, CLASSES, OUTCOMES, STATUSES,
};
use super::packed::Packed;
use super::sums::sparse;

/// (bucket, count) of what is not empty, rising.
pub type Counts = Vec<(u32, u64)>;

/// Adds sorted counts to sorted counts.
pub fn add_counts(into: &mut Counts, other: &[(u32, u64)]) {
    if other.is_empty() {
        return;
    }
    if into.is_empty() {
        into.extend_from_slice(other);
        return;
    }
    let mut merged = Vec::with_capacity(into.len() + other.len());
    let (mut left, mut right) = (
        into.iter().copied().peekable(),
        other.iter().copied().peekable(),
    );
    while let (Some(&(a, from_a)), Some(&(b, from_b))) = (left.peek(), right.peek()) {
        merged.push((
            a.min(b),
            if a <= b { from_a } else { 0 } + if b <= a { from_b } else { 0 },
        ));
        if a <= b {
            left.next();
        }
        if b <= a {
            right.next();
        }
    }
    merged.extend(left.chain(right));
    *into = merged;
}

/// Adds each count to the one of the same place.
pub(crate) fn add_each<T: Copy + AddAssign>(into: &mut [T], other: &[T]) {
    for (into, count) in into.iter_mut().zip(other) {
        *into += *count;
    }
}

fn each_pair<T>(into: &mut [T], other: &[T], add: impl Fn(&mut T, &T)) {
    into.iter_mut()
        .zip(other)
        .for_each(|(into, other)| add(into, other));
}

/// The p-quantile of counts, as the upper end of its bucket in nanoseconds.
pub fn quantile(counts: &[(u32, u64)], p: f64) -> Option<u64> {
    loadlens_estimate::place_at(counts, p).map(|bucket| bucket_high(bucket as usize))
}

/// Moments and counts of one quantity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimingSum {
    /// Exact.
    pub moments: Moments,
    /// 3 digits; of a file only what was unpacked.
    pub counts: Counts,
    /// Counts of a file, next to those in `counts`.
    packed: Packed,
}

impl Serialize for TimingSum {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (&self.moments, Packed::of(&self.unpacked())).serialize(to)
    }
}

impl<'de> Deserialize<'de> for TimingSum {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (moments, packed) = Deserialize::deserialize(from)?;
        Ok(TimingSum {
            moments,
            counts: Counts::new(),
            packed,
        })
    }
}

impl TimingSum {
    fn of(timing: &Timing, pool: &PagePool) -> Self {
        let mut counts = Counts::new();
        if timing.moments.count > 0 {
            collect(&timing.histogram, pool, &mut counts);
        }
        TimingSum {
            moments: timing.moments,
            counts,
            packed: Packed::default(),
        }
    }

    /// Adds another one.
    pub fn add(&mut self, other: &TimingSum) {
        self.moments.merge(&other.moments);
        self.unpack();
        add_counts(&mut self.counts, &other.unpacked());
    }

    /// True if all counts are in buckets that there are.
    pub(crate) fn is_sound(&self) -> bool {
        let last = self.counts.last();
        last.is_none_or(|(bucket, _)| (*bucket as usize) < BUCKETS) && self.packed.is_sound(BUCKETS)
    }

    fn unpack(&mut self) {
        if !self.packed.is_empty() {
            self.counts = self.unpacked().into_owned();
            self.packed = Packed::default();
        }
    }

    /// All counts as a list.
    fn unpacked(&self) -> Cow<'_, [(u32, u64)]> {
        if self.packed.is_empty() {
            return Cow::Borrowed(&self.counts);
        }
        let mut counts = Counts::new();
        self.packed
            .for_each(|bucket, count| counts.push((bucket, count)));
        add_counts(&mut counts, &self.counts);
        Cow::Owned(counts)
    }
}

fn collect(histogram: &Histogram, pool: &PagePool, counts: &mut Counts) {
    histogram.for_each(pool, |bucket, count| {
        counts.push((bucket as u32, u64::from(count)));
    });
}

/// Response and service time of one step and class.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CellSum {
    /// From due.
    pub response: TimingSum,
    /// From issue.
    pub service: TimingSum,
}

impl CellSum {
    fn of(cell: &Cell, pool: &PagePool) -> Self {
        CellSum {
            response: TimingSum::of(&cell.response, pool),
            service: TimingSum::of(&cell.service, pool),
        }
    }

    /// Adds another one.
    pub fn add(&mut self, other: &CellSum) {
        self.response.add(&other.response);
        self.service.add(&other.service);
    }
}

/// The parts of good answers' service times, after the connection stood.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct PhaseSums {
    /// From when the request could leave to the first byte of the answer.
    pub first_byte: TimingSum,
    /// From the first byte to the last.
    pub last_byte: TimingSum,
}

impl PhaseSums {
    fn of(phases: &StepPhases, pool: &PagePool) -> Self {
        let mut last_byte = TimingSum::of(&phases.last_byte, pool);
        last_byte.moments.add_zeros(phases.at_once);
        if phases.at_once > 0 {
            add_counts(&mut last_byte.counts, &[(0, phases.at_once)]);
        }
        PhaseSums {
            first_byte: TimingSum::of(&phases.first_byte, pool),
            last_byte,
        }
    }

    /// Adds another one.
    pub fn add(&mut self, other: &PhaseSums) {
        self.first_byte.add(&other.first_byte);
        self.last_byte.add(&other.last_byte);
    }
}

/// Counts of each stream, as in [`StreamTally`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[allow(missing_docs)] // the fields of StreamTally
pub struct StreamSum {
    pub flows: Flows,
    #[serde(with = "sparse")]
    pub failed: [u64; OUTCOMES],
    #[serde(with = "sparse")]
    pub status: Vec<u64>,
    pub in_flight: u64,
    pub in_flight_max: u64,
    pub in_flight_age: u64,
    pub waiting: u64,
    /// Stretches in which no thread completed anything.
    pub gaps: Vec<Gap>,
    pub lag: TimingSum,
    pub connect: TimingSum,
    pub tls: TimingSum,
}

impl StreamSum {
    fn of(tally: &StreamTally, pool: &PagePool) -> Self {
        StreamSum {
            flows: tally.flows,
            failed: tally.failed.map(u64::from),
            status: tally.status.iter().map(|count| u64::from(*count)).collect(),
            in_flight: u64::from(tally.in_flight),
            in_flight_max: u64::from(tally.in_flight_max),
            in_flight_age: tally.in_flight_age,
            waiting: tally.waiting,
            gaps: tally
                .gaps
                .iter()
                .copied()
                .filter(|gap| gap.length() > 0)
                .collect(),
            lag: TimingSum::of(&tally.lag, pool),
            connect: TimingSum::of(&tally.connect, pool),
            tls: TimingSum::of(&tally.tls, pool),
        }
    }

    /// Adds what only grows but times; levels and gaps are the caller's.
    fn add_flows(&mut self, other: &StreamSum) {
        self.flows += other.flows;
        add_each(&mut self.failed, &other.failed);
        add_each(&mut self.status, &other.status);
    }

    /// Adds the same time of another thread; times are the caller's.
    fn add_thread(&mut self, other: &StreamSum) {
        self.add_flows(other);
        self.in_flight += other.in_flight;
        self.in_flight_max += other.in_flight_max;
        self.in_flight_age += other.in_flight_age;
        self.waiting += other.waiting;
        self.gaps = common(&self.gaps, &other.gaps);
    }

    /// Adds the time that follows.
    pub fn add_later(&mut self, other: &StreamSum) {
        self.add_flows(other);
        self.in_flight = other.in_flight;
        self.in_flight_max = self.in_flight_max.max(other.in_flight_max);
        self.in_flight_age = other.in_flight_age;
        self.waiting = other.waiting;
        self.gaps.extend_from_slice(&other.gaps);
        self.lag.add(&other.lag);
        self.connect.add(&other.connect);
        self.tls.add(&other.tls);
    }

    /// The longest stretch without a completion.
    pub fn longest_gap(&self) -> Option<Gap> {
        self.gaps.iter().copied().max_by_key(Gap::length)
    }
}

impl Default for StreamSum {
    fn default() -> Self {
        let mut empty = StreamSum::of(&StreamTally::default(), &PagePool::new(0));
        empty.status.resize(STATUSES, 0);
        empty
    }
}

/// Overlaps of the stretches of two threads, in which neither completed anything.
///
/// Each thread keeps its longest stretches only, so short ones may be missing; the longest of the run as a whole is
/// among the longest of every thread.
fn common(left: &[Gap], right: &[Gap]) -> Vec<Gap> {
    let mut both = Vec::new();
    for a in left {
        for b in right {
            let gap = Gap {
                from: a.from.max(b.from),
                to: a.to.min(b.to).max(a.from.max(b.from)),
            };
            if gap.length() > 0 {
                both.push(gap);
            }
        }
    }
    both.sort_unstable_by_key(|gap| std::cmp::Reverse(gap.length()));
    both.truncate(super::interval::GAPS);
    both
}

/// One interval of one thread, or of all.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct IntervalSum {
    /// Start of the stretch.
    pub start: u64,
    /// End of the stretch.
    pub end: u64,
    /// The phase that it lies in.
    pub phase: Phase,
    /// By stream of the plan.
    pub streams: Vec<StreamSum>,
    /// By step, over all streams.
    pub steps: Vec<StepTally>,
    /// By step and class.
    pub cells: Vec<CellSum>,
    /// By step, over all streams.
    pub phases: Vec<PhaseSums>,
    /// By group, over all streams.
    pub groups: Vec<GroupTally>,
    /// By group and course.
    pub group_cells: Vec<CellSum>,
    /// By check, over all streams.
    pub checks: Vec<CheckCount>,
    /// By thread.
    pub threads: Vec<LoopTally>,
    /// Values that found no page in a histogram.
    pub lost_values: u64,
}

impl IntervalSum {
    /// The sum of one set of one thread.
    pub fn of(set: &IntervalSet) -> Self {
        IntervalSum {
            start: set.start,
            end: set.end,
            phase: set.phase,
            streams: set
                .streams
                .iter()
                .map(|tally| StreamSum::of(tally, &set.pool))
                .collect(),
            steps: set.steps.clone(),
            cells: cell_sums(&set.cells, &set.pool),
            groups: set.groups.clone(),
            group_cells: cell_sums(&set.group_cells, &set.pool),
            checks: set.checks.clone(),
            phases: set
                .phases
                .iter()
                .map(|phases| PhaseSums::of(phases, &set.pool))
                .collect(),
            threads: vec![set.engine],
            lost_values: set.pool.lost,
        }
    }

    fn add_counts(&mut self, other: &IntervalSum) {
        add_each(&mut self.steps, &other.steps);
        add_each(&mut self.groups, &other.groups);
        add_each(&mut self.checks, &other.checks);
        self.lost_values += other.lost_values;
    }

    /// The same time of several threads, at least one; their ends and their own accounts are the caller's.
    fn together(mut parts: Vec<IntervalSum>, dense: &mut Dense) -> IntervalSum {
        let mut sum = parts.remove(0);
        if parts.is_empty() {
            sum.timings_mut().for_each(TimingSum::unpack);
            return sum;
        }
        for part in &parts {
            each_pair(&mut sum.streams, &part.streams, StreamSum::add_thread);
            sum.add_counts(part);
        }
        let mut others: Vec<_> = parts.iter().map(IntervalSum::timings).collect();
        for timing in sum.timings_mut() {
            dense.add(timing);
            for other in others.iter_mut().filter_map(Iterator::next) {
                timing.moments.merge(&other.moments);
                dense.add(other);
            }
            timing.packed = Packed::default();
            timing.counts = dense.take();
        }
        sum
    }

    /// Adds the time that follows, of the same thread.
    pub fn add_later(&mut self, other: &IntervalSum) {
        self.end = other.end;
        each_pair(&mut self.streams, &other.streams, StreamSum::add_later);
        self.add_counts(other);
        add_each(&mut self.threads, &other.threads);
        each_pair(&mut self.cells, &other.cells, CellSum::add);
        each_pair(&mut self.group_cells, &other.group_cells, CellSum::add);
        each_pair(&mut self.phases, &other.phases, PhaseSums::add);
    }

    /// All its times, in an order that depends on the shape alone.
    pub(crate) fn timings(&self) -> impl Iterator<Item = &TimingSum> {
        let of_cells = self.cells.iter().chain(&self.group_cells);
        let of_cells = of_cells.flat_map(|cell| [&cell.response, &cell.service]);
        let of_phases = self.phases.iter();
        let of_phases = of_phases.flat_map(|phases| [&phases.first_byte, &phases.last_byte]);
        let of_streams = self.streams.iter();
        let of_streams = of_streams.flat_map(|stream| [&stream.lag, &stream.connect, &stream.tls]);
        of_cells.chain(of_phases).chain(of_streams)
    }

    /// The same, to be changed.
    fn timings_mut(&mut self) -> impl Iterator<Item = &mut TimingSum> {
        let of_cells = self.cells.iter_mut().chain(&mut self.group_cells);
        let of_cells = of_cells.flat_map(|cell| [&mut cell.response, &mut cell.service]);
        let of_phases = self.phases.iter_mut();
        let of_phases =
            of_phases.flat_map(|phases| [&mut phases.first_byte, &mut phases.last_byte]);
        let of_streams = self.streams.iter_mut();
        let of_streams =
            of_streams.flat_map(|stream| [&mut stream.lag, &mut stream.connect, &mut stream.tls]);
        of_cells.chain(of_phases).chain(of_streams)
    }

    /// Number of requests of these steps that ended in a class.
    pub fn ended(&self, steps: Range<usize>, class: Class) -> u64 {
        let cells = steps.map(|step| &self.cells[step * CLASSES + class as usize]);
        cells.map(|cell| cell.response.moments.count).sum()
    }

    /// The lag of all streams that 1 % of the requests exceeded, in seconds; none without requests.
    pub fn lag_p99_s(&self) -> Option<f64> {
        let mut lag = Counts::new();
        for stream in &self.streams {
            add_counts(&mut lag, &stream.lag.counts);
        }
        quantile(&lag, 0.99).map(seconds)
    }

    /// Length of the stretch.
    pub fn length(&self) -> u64 {
        self.end - self.start
    }
}

fn cell_sums(cells: &[Cell], pool: &PagePool) -> Vec<CellSum> {
    cells.iter().map(|cell| CellSum::of(cell, pool)).collect()
}

/// A place for every bucket, so that many lists add up without a search.
#[derive(Debug)]
struct Dense {
    counts: Box<[u64]>,
    low: usize,
    high: usize,
}

impl Dense {
    fn new() -> Self {
        Dense {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            low: BUCKETS,
            high: 0,
        }
    }

    fn add(&mut self, timing: &TimingSum) {
        for (bucket, count) in &timing.counts {
            self.add_one(*bucket, *count);
        }
        timing
            .packed
            .for_each(|bucket, count| self.add_one(bucket, count));
    }

    #[inline(always)]
    fn add_one(&mut self, bucket: u32, count: u64) {
        let bucket = bucket as usize;
        self.low = self.low.min(bucket);
        self.high = self.high.max(bucket);
        self.counts[bucket] += count;
    }

    /// All that was added; nothing is left.
    fn take(&mut self) -> Counts {
        let mut sum = Counts::new();
        for bucket in self.low..self.high + 1 {
            let count = std::mem::take(&mut self.counts[bucket]);
            if count > 0 {
                sum.push((bucket as u32, count));
            }
        }
        (self.low, self.high) = (BUCKETS, 0);
        sum
    }
}

/// Brings the intervals of several threads together at the cuts that all of them made.
///
/// Intervals of different phases are never added, so threads may measure for different lengths of time.
#[derive(Debug)]
pub struct Aligner {
    pending: Vec<VecDeque<IntervalSum>>,
    has_ended: Vec<bool>,
    dense: Dense,
}

/// Output of an [`Aligner`].
#[derive(Debug)]
pub enum Aligned {
    /// The next interval of all threads together.
    Interval(IntervalSum),
    /// It cannot be made before these threads push more, or end.
    Lacks(Vec<usize>),
    /// All threads have ended, and there is no more.
    End,
}

impl Aligner {
    /// An aligner for this many threads.
    pub fn new(threads: usize) -> Self {
        Aligner {
            pending: vec![VecDeque::new(); threads],
            has_ended: vec![false; threads],
            dense: Dense::new(),
        }
    }

    /// Takes the next interval of a thread.
    pub fn push(&mut self, thread: usize, interval: IntervalSum) {
        self.pending[thread].push_back(interval);
    }

    /// Marks that the thread will push nothing more: the merge no longer waits for it.
    pub fn end(&mut self, thread: usize) {
        self.has_ended[thread] = true;
    }

    /// The next interval of all threads together, if it is complete.
    pub fn pull(&mut self) -> Aligned {
        let threads = 0..self.pending.len();
        let is_silent =
            |thread: &usize| !self.has_ended[*thread] && self.pending[*thread].is_empty();
        let silent: Vec<usize> = threads.filter(is_silent).collect();
        if !silent.is_empty() {
            return Aligned::Lacks(silent);
        }
        let fronts = self.pending.iter().filter_map(VecDeque::front);
        let Some((phase, cut)) = fronts.map(|front| (front.phase, front.end)).min() else {
            return Aligned::End;
        };
        match self.common_cut(phase, cut) {
            Ok(cut) => Aligned::Interval(self.up_to(phase, cut)),
            Err(lacking) => Aligned::Lacks(lacking),
        }
    }

    /// The first moment from `cut` on at which every thread that is still in this phase has made a cut; or the threads
    /// that must say more before it is known.
    fn common_cut(&self, phase: Phase, mut cut: u64) -> Result<u64, Vec<usize>> {
        loop {
            let (mut next, mut lacking) = (cut, Vec::new());
            for (thread, pending) in self.pending.iter().enumerate() {
                let in_phase = pending
                    .iter()
                    .take_while(|interval| interval.phase == phase);
                match in_phase
                    .map(|interval| interval.end)
                    .find(|end| *end >= cut)
                {
                    Some(end) => next = next.max(end),
                    None => {
                        let has_left = pending.back().is_some_and(|last| last.phase > phase);
                        if !has_left && !self.has_ended[thread] {
                            lacking.push(thread);
                        }
                    }
                }
            }
            if !lacking.is_empty() {
                return Err(lacking);
            }
            if next == cut {
                return Ok(cut);
            }
            cut = next;
        }
    }

    /// Everything of this phase up to a cut.
    fn up_to(&mut self, phase: Phase, cut: u64) -> IntervalSum {
        let mut parts: Vec<(usize, IntervalSum)> = Vec::new();
        for (thread, pending) in self.pending.iter_mut().enumerate() {
            let is_part = |interval: &&IntervalSum| interval.phase == phase && interval.end <= cut;
            let count = pending.iter().take_while(is_part).count();
            let mut pieces = pending.drain(..count);
            if let Some(mut of_thread) = pieces.next() {
                pieces.for_each(|piece| of_thread.add_later(&piece));
                parts.push((thread, of_thread));
            }
        }
        let start = parts
            .iter()
            .map(|(_, part)| part.start)
            .min()
            .unwrap_or(cut);
        // A thread that has ended before waits for nothing and does nothing.
        let idle = |ns| LoopTally {
            waiting_ns: ns,
            ..LoopTally::default()
        };
        let mut threads = vec![idle(cut - start); self.pending.len()];
        for (thread, part) in &parts {
            threads[*thread] = idle(cut - part.end);
            part.threads.iter().for_each(|own| threads[*thread] += *own);
        }
        let parts = parts.into_iter().map(|(_, part)| part).collect();
        IntervalSum {
            start,
            end: cut,
            threads,
            ..IntervalSum::together(parts, &mut self.dense)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn interval(start: u64, end: u64) -> IntervalSum {
        let mut set = IntervalSet::new(1, 1);
        set.start = start;
        set.end = end;
        set.steps[0].due = end - start;
        set.engine.cpu_ns = end - start;
        IntervalSum::of(&set)
    }

    fn pulled(aligner: &mut Aligner) -> Vec<IntervalSum> {
        let next = || match aligner.pull() {
            Aligned::Interval(sum) => Some(sum),
            _ => None,
        };
        std::iter::from_fn(next).collect()
    }

    fn bounds(aligner: &mut Aligner) -> Vec<(u64, u64, u64)> {
        let pulled = pulled(aligner).into_iter();
        pulled
            .map(|sum| (sum.start, sum.end, sum.steps[0].due))
            .collect()
    }

    #[test]
    fn intervals_of_two_threads_come_out_when_both_have_made_the_cut() {
        let mut aligner = Aligner::new(2);

        aligner.push(0, interval(0, 10));
        let early = bounds(&mut aligner);
        aligner.push(1, interval(0, 10));

        assert_eq!(early, []);
        assert_eq!(bounds(&mut aligner), [(0, 10, 20)]);
    }

    #[test]
    fn a_thread_that_left_out_a_cut_makes_the_interval_longer_and_loses_nothing() {
        let mut aligner = Aligner::new(2);
        aligner.push(0, interval(0, 10));
        aligner.push(0, interval(10, 20));
        aligner.push(0, interval(20, 30));
        aligner.push(1, interval(0, 20));

        assert_eq!(bounds(&mut aligner), [(0, 20, 40)]);
    }

    #[test]
    fn threads_that_have_ended_hold_nobody_up() {
        let mut aligner = Aligner::new(2);
        aligner.push(0, interval(0, 7));
        aligner.push(1, interval(0, 10));
        aligner.end(0);

        let while_one_runs = bounds(&mut aligner);
        aligner.push(1, interval(10, 13));
        aligner.end(1);

        assert_eq!(while_one_runs, [(0, 10, 17)]);
        assert_eq!(bounds(&mut aligner), [(10, 13, 3)]);
    }

    #[test]
    fn what_threads_did_after_the_measured_part_is_never_added_to_it() {
        let mut aligner = Aligner::new(2);
        let drain = |start, end| IntervalSum {
            phase: Phase::Drain,
            ..interval(start, end)
        };
        let measured = |start, end| IntervalSum {
            phase: Phase::Measure,
            ..interval(start, end)
        };
        for part in [measured(0, 10), drain(10, 14)] {
            aligner.push(0, part);
        }
        for part in [measured(0, 10), measured(10, 13), drain(13, 15)] {
            aligner.push(1, part);
        }
        (0..2).for_each(|thread| aligner.end(thread));

        let sums = pulled(&mut aligner);

        let shown = sums
            .iter()
            .map(|sum| (sum.phase, sum.start, sum.end, sum.steps[0].due));
        let (measure, drain) = (Phase::Measure, Phase::Drain);
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                (measure, 0, 10, 20),
                (measure, 10, 13, 3),
                (drain, 10, 15, 6)
            ]
        );
    }

    #[test]
    fn a_thread_that_has_ended_is_not_busy() {
        let mut aligner = Aligner::new(3);
        for (thread, end) in [(0, 4), (1, 10)] {
            aligner.push(thread, interval(0, end));
        }
        (0..3).for_each(|thread| aligner.end(thread));

        let threads = pulled(&mut aligner).remove(0).threads;

        let shown = threads
            .iter()
            .map(|thread| (thread.cpu_ns, thread.waiting_ns));
        assert_eq!(shown.collect::<Vec<_>>(), [(4, 6), (10, 0), (0, 10)]);
    }

    #[test]
    fn an_aligner_names_the_threads_that_it_waits_for() {
        let mut aligner = Aligner::new(3);
        let lacking = |aligner: &mut Aligner| match aligner.pull() {
            Aligned::Lacks(threads) => threads,
            other => panic!("{other:?}"),
        };

        let at_first = lacking(&mut aligner);
        for (thread, end) in [(0, 20), (1, 10), (2, 20)] {
            aligner.push(thread, interval(0, end));
        }

        assert_eq!(at_first, [0, 1, 2]);
        assert_eq!(lacking(&mut aligner), [1]);
    }

    #[test]
    fn counts_add_bucket_by_bucket() {
        let mut counts = vec![(1, 1), (5, 2)];

        add_counts(&mut counts, &[(0, 3), (5, 4), (9, 1)]);

        assert_eq!(counts, [(0, 3), (1, 1), (5, 6), (9, 1)]);
        assert_eq!(quantile(&counts, 0.5), Some(5)); // ranks: 3 at 0, 1 at 1, 6 at 5, 1 at 9
        assert_eq!(quantile(&[], 0.5), None);
    }

    fn counts_of(values: &[u64]) -> Counts {
        let mut pool = PagePool::new(64);
        let mut histogram = Histogram::default();
        values
            .iter()
            .for_each(|value| histogram.record(*value, &mut pool));
        assert_eq!(pool.lost, 0);
        let mut counts = Counts::new();
        collect(&histogram, &pool, &mut counts);
        counts
    }

    fn sum(parts: &[&Counts]) -> Counts {
        let mut all = Counts::new();
        parts.iter().for_each(|part| add_counts(&mut all, part));
        all
    }

    /// As it comes from a file.
    fn as_read(timing: &TimingSum) -> TimingSum {
        let read: TimingSum =
            postcard::from_bytes(&postcard::to_allocvec(timing).unwrap()).unwrap();
        assert_eq!(read.packed.is_empty(), timing.counts.is_empty());
        read
    }

    // M5 of what is promised: merging loses nothing, in whatever order, and a value is known to a thousandth.
    proptest! {
        #[test]
        fn merged_histograms_are_those_of_all_values_in_any_order(
            a in vec(0..1u64 << 45, 0..60),
            b in vec(0..1u64 << 20, 0..60),
            c in vec(0..5_000u64, 0..60),
        ) {
            let parts = [counts_of(&a), counts_of(&b), counts_of(&c)];
            let [x, y, z] = &parts;
            let all: Vec<u64> = a.iter().chain(&b).chain(&c).copied().collect();

            let together = counts_of(&all);

            let mut dense = Dense::new();
            let mut added = TimingSum::default();
            for (index, counts) in parts.iter().cloned().enumerate() {
                let timing = TimingSum { counts, ..TimingSum::default() };
                let timing = if index == 1 { timing } else { as_read(&timing) };
                dense.add(&timing);
                added.add(&timing);
            }
            prop_assert_eq!(&dense.take(), &together);
            prop_assert_eq!(dense.take(), Counts::new());
            prop_assert_eq!(&added.counts, &together);
            prop_assert_eq!(&sum(&[x, y, z]), &together);
            prop_assert_eq!(&sum(&[z, &sum(&[y, x])]), &together);
            prop_assert_eq!(&sum(&[&sum(&[z, x]), y]), &together);
        }

        #[test]
        fn a_quantile_is_never_below_that_of_the_sorted_values_and_at_most_a_thousandth_above(
            mut values in vec(0..1u64 << 45, 1..200),
            p in 0.001..1.0f64,
        ) {
            let seen = quantile(&counts_of(&values), p).unwrap();

            values.sort_unstable();
            let rank = ((p * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let truth = values[rank - 1];
            prop_assert!(truth <= seen && (seen - truth) as f64 <= truth as f64 / 1_000.0);
        }
    }

    #[test]
    fn a_gap_of_the_run_is_where_the_gaps_of_all_threads_overlap() {
        let gap = |from, to| Gap { from, to };

        let both = common(&[gap(0, 10), gap(20, 50)], &[gap(5, 25), gap(40, 60)]);

        assert_eq!(both, [gap(40, 50), gap(5, 10), gap(20, 25)]);
    }
}
