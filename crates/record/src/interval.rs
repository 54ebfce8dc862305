//! Counts of one thread in one interval: cells, counters and histograms, cleared and used again.
//!
//! A worker owns one set at a time and the collector the others (`record/ring.rs`). Nothing in here
//! grows: statuses and outcomes are arrays, histograms take pages from the set's own pool.

use derive_more::AddAssign;
use loadlens_base::Class;
use loadlens_plan::program::{Program, StreamProgram};
use serde::{Deserialize, Serialize};

use super::grid::Phase;
use super::histogram::{Histogram, PagePool};

/// Classes that a cell can have.
pub const CLASSES: usize = Class::ALL.len();
/// Statuses 100 to 599; the array is indexed by status.
pub const STATUSES: usize = 600;
/// Outcome codes below 33.
pub const OUTCOMES: usize = 33;
/// The longest gaps between completions that an interval keeps for merging over threads.
pub const GAPS: usize = 8;
/// Pages of a set at most: 64 MiB of address space, of which only what is touched becomes memory.
const MAX_PAGES: usize = 16_384;

/// Exact moments kept with a histogram.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Moments {
    /// Number of values.
    pub count: u64,
    /// Sum of the values in nanoseconds.
    pub sum: u64,
    /// The sum of their squares.
    pub sum_of_squares: u128,
    /// The largest.
    pub max: u64,
    /// The complement of the smallest, so that zero means "none yet".
    inverse_min: u64,
}

impl Moments {
    /// Adds one value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += value;
        self.sum_of_squares += u128::from(value) * u128::from(value);
        self.max = self.max.max(value);
        self.inverse_min = self.inverse_min.max(!value);
    }

    /// The smallest value; none without values.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(!self.inverse_min)
    }

    /// Sum of the values in seconds.
    pub fn sum_s(&self) -> f64 {
        self.sum as f64 / 1e9
    }

    /// The sum of their squares in seconds squared.
    pub fn sum_of_squares_s2(&self) -> f64 {
        self.sum_of_squares as f64 / 1e18
    }

    /// Adds so many values of 0.
    pub fn add_zeros(&mut self, count: u64) {
        if count > 0 {
            self.count += count;
            self.inverse_min = u64::MAX;
        }
    }

    /// Adds what another one holds.
    pub fn merge(&mut self, other: &Moments) {
        self.count += other.count;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        self.max = self.max.max(other.max);
        self.inverse_min = self.inverse_min.max(other.inverse_min);
    }
}

/// Moments and histogram of one quantity.
#[derive(Clone, Default)]
pub struct Timing {
    /// Exact.
    pub moments: Moments,
    /// 3 digits.
    pub histogram: Histogram,
}

impl Timing {
    /// Adds one value.
    #[inline]
    pub fn record(&mut self, ns: u64, pool: &mut PagePool) {
        self.moments.add(ns);
        self.histogram.record(ns, pool);
    }

    fn clear(&mut self, pool: &mut PagePool) {
        if self.moments.count > 0 {
            self.histogram.clear(pool);
            self.moments = Moments::default();
        }
    }
}

/// Response and service time of one step and class.
#[derive(Clone, Default)]
pub struct Cell {
    /// From due.
    pub response: Timing,
    /// From issue; a waiting request has none.
    pub service: Timing,
}

/// The parts of a good answer's service time, after its connection stood.
#[derive(Clone, Default)]
pub struct StepPhases {
    /// From when the request could leave to the first byte of the answer.
    pub first_byte: Timing,
    /// From the first byte to the last, of answers that came in more than one piece.
    pub last_byte: Timing,
    /// Answers that came in one piece: their last byte took 0.
    pub at_once: u64,
}

/// A stretch without a completion.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Gap {
    /// Start of the interval.
    pub from: u64,
    /// End of the interval.
    pub to: u64,
}

impl Gap {
    /// Length of the interval.
    pub fn length(&self) -> u64 {
        self.to - self.from
    }
}

/// Counts of each step.
#[derive(AddAssign, Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct StepTally {
    /// Requests that became due.
    pub due: u64,
    /// Took a connection or started one.
    pub issued: u64,
    /// Never sent because all places were taken.
    pub dropped: u64,
    /// Left out because an extraction before them failed.
    pub skipped: u64,
    /// Ended without a whole answer, whatever the class.
    pub failed: u64,
}

/// Counts of the runs of each group.
///
/// The law: due = completed + failed + unfinished.
#[derive(AddAssign, Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct GroupTally {
    /// Runs whose first request became due.
    pub due: u64,
    /// All requests of the run were answered as expected.
    pub completed: u64,
    /// A request of the run was not, or the iteration ended within it.
    pub failed: u64,
    /// The load ended before the run did.
    pub unfinished: u64,
}

/// Kind of observation of the length of a group's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// It was completed in this time.
    Completed,
    /// It failed in this time.
    Failed,
    /// It would have lasted longer: a request timed out, or the load ended.
    Censored,
}

/// Courses that a run can take.
pub const COURSES: usize = 3;

/// Results of one check on the answers of one interval.
#[derive(AddAssign, Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct CheckCount {
    /// Answers that passed.
    pub passed: u64,
    /// Answers that failed.
    pub failed: u64,
    /// Answers that it is not about.
    pub not_judged: u64,
}

/// Counts of a run, over all its streams.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Shape {
    /// Streams of the plan.
    pub streams: usize,
    /// Steps of all streams.
    pub steps: usize,
    /// Groups of all streams.
    pub groups: usize,
    /// Checks of all streams.
    pub checks: usize,
}

impl Shape {
    /// That of a program.
    pub fn of(program: &Program) -> Shape {
        let streams = || program.streams.iter();
        Shape {
            streams: program.streams.len(),
            steps: streams().map(|stream| stream.steps.len()).sum(),
            groups: streams().map(|stream| stream.groups.len()).sum(),
            checks: streams().map(StreamProgram::checks).sum(),
        }
    }
}

/// Counts of a stream that only grow.
#[derive(AddAssign, Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Flows {
    /// Integral of in flight over the interval, in nanoseconds.
    pub in_flight_integral: u64,
    /// Service times of everything that ended in the interval, failures included.
    pub ended_service: u64,
    /// Connections begun.
    pub opened: u64,
    /// Connections ended by us.
    pub closed_by_client: u64,
    /// Connections ended by the service.
    pub closed_by_server: u64,
    /// Connections ended by a failure.
    pub closed_by_error: u64,
    /// Connections on which bytes came without a request.
    pub unsolicited: u64,
    /// Request bytes that left.
    pub bytes_out: u64,
    /// Bytes that came.
    pub bytes_in_wire: u64,
    /// Bytes of decoded bodies.
    pub bytes_in_body: u64,
    /// TLS sessions made anew.
    pub full_handshakes: u64,
    /// TLS sessions resumed.
    pub resumed_handshakes: u64,
}

impl Flows {
    /// Connections ended, by either side or a failure.
    pub fn closed(&self) -> u64 {
        self.closed_by_client + self.closed_by_server + self.closed_by_error
    }
}

/// Counts of each stream.
#[derive(Clone)]
pub struct StreamTally {
    /// Counts that only grow.
    pub flows: Flows,
    /// Ends by outcome code; failures only.
    pub failed: [u32; OUTCOMES],
    /// Answers by status.
    pub status: [u32; STATUSES],
    /// In flight at the end of the interval.
    pub in_flight: u32,
    /// Most in flight at once.
    pub in_flight_max: u32,
    /// Sum of the ages of the requests in flight at the end of the interval.
    pub in_flight_age: u64,
    /// Due and not issued at the end of the interval.
    pub waiting: u64,
    /// The longest stretches without a completion, in no order; length 0: unused.
    pub gaps: [Gap; GAPS],
    /// Length of the shortest gap kept: most completions need only this comparison.
    gap_floor: u64,
    /// Lateness of the generator: from due, or from when there was a connection or place for it, to issue.
    pub lag: Timing,
    /// From the beginning of a connection until TCP stands.
    pub connect: Timing,
    /// From then until TLS stands.
    pub tls: Timing,
}

impl Default for StreamTally {
    fn default() -> Self {
        StreamTally {
            flows: Flows::default(),
            failed: [0; OUTCOMES],
            status: [0; STATUSES],
            in_flight: 0,
            in_flight_max: 0,
            in_flight_age: 0,
            waiting: 0,
            gaps: [Gap::default(); GAPS],
            gap_floor: 0,
            lag: Timing::default(),
            connect: Timing::default(),
            tls: Timing::default(),
        }
    }
}

impl StreamTally {
    /// Keeps a gap if it is among the longest.
    #[inline]
    pub fn note_gap(&mut self, gap: Gap) {
        if gap.length() > self.gap_floor {
            self.keep_gap(gap);
        }
    }

    #[cold]
    fn keep_gap(&mut self, gap: Gap) {
        if let Some(shortest) = self.gaps.iter_mut().min_by_key(|kept| kept.length()) {
            *shortest = gap;
        }
        self.gap_floor = self.gaps.iter().map(Gap::length).min().unwrap_or(0);
    }

    fn clear(&mut self, pool: &mut PagePool) {
        self.lag.clear(pool);
        self.connect.clear(pool);
        self.tls.clear(pool);
        *self = StreamTally::default();
    }
}

/// Use of one interval by one thread.
#[derive(AddAssign, Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct LoopTally {
    /// Blocked in the wait for events.
    pub waiting_ns: u64,
    /// Polling for a due time.
    pub spinning_ns: u64,
    /// Runnable without a core.
    pub runq_wait_ns: u64,
    /// Neither running nor waiting for anything: stopped, or starved for long.
    pub stalled_ns: u64,
    /// On a core.
    pub cpu_ns: u64,
    /// Rounds of the loop.
    pub loops: u64,
}

impl LoopTally {
    /// The share of `length` nanoseconds in which the thread ran and neither waited nor polled for a due time.
    pub fn busy(&self, length: f64) -> f64 {
        let idle = self.waiting_ns + self.spinning_ns + self.stalled_ns;
        (1.0 - idle as f64 / length).clamp(0.0, 1.0)
    }
}

/// Everything that one thread counted in one interval.
pub struct IntervalSet {
    /// Start of the stretch.
    pub start: u64,
    /// End of the stretch.
    pub end: u64,
    /// The phase that it lies in.
    pub phase: Phase,
    /// By stream of the plan.
    pub streams: Vec<StreamTally>,
    /// By step, over all streams.
    pub steps: Vec<StepTally>,
    /// By step and class: `step * CLASSES + class`.
    pub cells: Vec<Cell>,
    /// By step, over all streams.
    pub phases: Vec<StepPhases>,
    /// By group, over all streams.
    pub groups: Vec<GroupTally>,
    /// By group and course: `group * COURSES + course`.
    pub group_cells: Vec<Cell>,
    /// By check, over all streams.
    pub checks: Vec<CheckCount>,
    /// The thread itself.
    pub engine: LoopTally,
    /// Pages of all histograms in here.
    pub pool: PagePool,
}

impl IntervalSet {
    fn pages(shape: &Shape) -> usize {
        let of_groups = shape.groups * COURSES * 2;
        let histograms = shape.steps * (CLASSES * 2 + 2) + shape.streams * 3 + of_groups;
        (histograms * super::histogram::PAGES).min(MAX_PAGES)
    }

    /// Address space of the histograms of a set, of which only what is touched becomes memory.
    pub fn address_bytes(shape: &Shape) -> u64 {
        ((Self::pages(shape) + 1) * super::histogram::PAGE * 4) as u64
    }

    /// An empty set for so many streams and steps, without groups and checks.
    pub fn new(streams: usize, steps: usize) -> Self {
        IntervalSet::of(&Shape {
            streams,
            steps,
            ..Shape::default()
        })
    }

    /// An empty set.
    pub fn of(shape: &Shape) -> Self {
        IntervalSet {
            start: 0,
            end: 0,
            phase: Phase::Warmup,
            streams: vec![StreamTally::default(); shape.streams],
            steps: vec![StepTally::default(); shape.steps],
            cells: vec![Cell::default(); shape.steps * CLASSES],
            phases: vec![StepPhases::default(); shape.steps],
            groups: vec![GroupTally::default(); shape.groups],
            group_cells: vec![Cell::default(); shape.groups * COURSES],
            checks: vec![CheckCount::default(); shape.checks],
            engine: LoopTally::default(),
            pool: PagePool::new(Self::pages(shape)),
        }
    }

    /// Empties it for the next use.
    pub fn clear(&mut self) {
        for stream in &mut self.streams {
            stream.clear(&mut self.pool);
        }
        for cell in self.cells.iter_mut().chain(&mut self.group_cells) {
            cell.response.clear(&mut self.pool);
            cell.service.clear(&mut self.pool);
        }
        for phases in &mut self.phases {
            phases.first_byte.clear(&mut self.pool);
            phases.last_byte.clear(&mut self.pool);
            phases.at_once = 0;
        }
        self.steps.fill(StepTally::default());
        self.groups.fill(GroupTally::default());
        self.checks.fill(CheckCount::default());
        self.engine = LoopTally::default();
        self.pool.lost = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_keep_exact_sums_and_both_ends() {
        let mut moments = Moments::default();

        for value in [3, 0, 4_000_000_000] {
            moments.add(value);
        }

        assert_eq!(
            (moments.count, moments.sum, moments.max),
            (3, 4_000_000_003, 4_000_000_000)
        );
        assert_eq!(moments.sum_of_squares, 9 + 16_000_000_000_000_000_000);
        assert_eq!(moments.min(), Some(0));
        assert_eq!(Moments::default().min(), None);
    }

    #[test]
    fn the_longest_gaps_are_kept() {
        let mut tally = StreamTally::default();

        for length in [5, 1, 9, 2, 8, 3, 7, 4, 6, 10] {
            tally.note_gap(Gap {
                from: 100,
                to: 100 + length,
            });
        }

        let mut lengths = tally.gaps.map(|gap| gap.length());
        lengths.sort_unstable();
        assert_eq!(lengths, [3, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn a_cleared_set_equals_a_new_one() {
        let mut set = IntervalSet::new(1, 1);
        set.cells[0].response.record(1_000, &mut set.pool);
        set.streams[0].lag.record(10, &mut set.pool);
        set.streams[0].status[200] = 1;
        set.steps[0].due = 1;

        set.clear();

        assert_eq!(set.cells[0].response.moments, Moments::default());
        assert_eq!(
            (set.streams[0].status[200], set.steps[0]),
            (0, StepTally::default())
        );
        let mut counts = 0;
        set.cells[0]
            .response
            .histogram
            .for_each(&set.pool, |_, count| counts += count);
        assert_eq!(counts, 0);
    }
}
