//! The one place where the counts of all threads come together: takes full sets and rows, gives them
//! back empty, writes the live files, keeps what estimates and progress need.
//!
//! It runs on a thread of its own and is never waited for: a worker that finds no spare set or chunk
//! goes on without (`recorder`, `rows`).

use std::collections::VecDeque;
use std::sync::Arc;

use loadlens_base::units::seconds;
use loadlens_base::Class;
use parking_lot::Mutex;

use super::files::{Files, Names};
use super::grid::Phase;
use super::interval::{Course, GroupTally, IntervalSet, LoopTally, StepTally, CLASSES, COURSES};
use super::merge::{
    add_counts, add_each, Aligner, CellSum, Counts, IntervalSum, PhaseSums, StreamSum, TimingSum,
};
use super::ring::{Giver, Taker};
use super::rows::RowSource;
use super::series::Series;

/// The collector's ends of one thread's rings.
pub struct ThreadEnds {
    /// Full sets.
    pub full: Taker<IntervalSet>,
    /// Empty sets back.
    pub empty: Giver<IntervalSet>,
    /// Sample rows.
    pub samples: Option<RowSource>,
    /// Connection rows.
    pub connections: Option<RowSource>,
}

/// Recent work of one stream, for progress.
#[derive(Clone, Debug, Default)]
pub struct LiveStream {
    recent: VecDeque<LiveSpan>,
    /// The phase so far.
    pub so_far: LiveSpan,
}

/// Counts of a stretch of time, for progress.
#[derive(Clone, Debug, Default)]
pub struct LiveSpan {
    /// Its length.
    pub seconds: f64,
    /// Successes by response time.
    pub ok: Counts,
    /// Answers whose status was not expected.
    pub unexpected_status: u64,
    /// Answers that failed a check.
    pub check_failed: u64,
    /// Failures.
    pub failed: u64,
}

impl LiveSpan {
    fn add(&mut self, other: &LiveSpan) {
        self.seconds += other.seconds;
        add_counts(&mut self.ok, &other.ok);
        self.unexpected_status += other.unexpected_status;
        self.check_failed += other.check_failed;
        self.failed += other.failed;
    }

    /// Successes.
    pub fn count(&self) -> u64 {
        self.ok.iter().map(|(_, count)| count).sum()
    }
}

impl LiveStream {
    fn push(&mut self, span: LiveSpan) {
        self.recent.push_back(span);
        let mut seconds: f64 = self.recent.iter().map(|interval| interval.seconds).sum();
        while let Some(oldest) = self.recent.front() {
            seconds -= oldest.seconds;
            if seconds < 1.0 - 1e-9 {
                break;
            }
            self.recent.pop_front();
        }
    }

    /// The last whole second, or what there is of it.
    pub fn last(&self) -> LiveSpan {
        let mut last = LiveSpan::default();
        self.recent.iter().for_each(|interval| last.add(interval));
        last
    }
}

/// State that the collector publishes for progress.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// By stream of the plan.
    pub streams: Vec<LiveStream>,
    /// The busiest thread of the last interval.
    pub busy: Option<f64>,
    /// Lag of the last interval.
    pub lag_p99_s: Option<f64>,
    phase: Option<Phase>,
}

/// Totals of one stream in one phase.
#[derive(Clone, Debug, Default)]
pub struct StreamTotals {
    /// Everything that only grows.
    pub sum: StreamSum,
    /// Answers by class, in the order of `Class`; censored ones last.
    pub classes: [u64; CLASSES],
}

impl StreamTotals {
    /// Number of whole answers.
    pub fn answered(&self) -> u64 {
        let answered = [Class::Ok, Class::UnexpectedStatus, Class::CheckFailed];
        answered
            .map(|class| self.classes[class as usize])
            .iter()
            .sum()
    }
}

/// Estimates' raw material for the times of requests, or of the runs of a group.
#[derive(Clone, Debug, Default)]
pub struct TimesSeries {
    /// Successes and censored, from due; of a group from when the first request of a run was due.
    pub response: Series,
    /// Successes and censored, from issue; of a group from when the first request was issued.
    pub service: Series,
}

impl TimesSeries {
    fn push(&mut self, length: u64, ended: &CellSum, censored: &CellSum) {
        let late = &censored.response.counts;
        self.response.push(length, &ended.response, late);
        let late = &censored.service.counts;
        self.service.push(length, &ended.service, late);
    }
}

/// Estimates' raw material for one step, or for all steps of a stream.
#[derive(Clone, Debug, Default)]
pub struct StepSeries {
    /// Response and service times.
    pub times: TimesSeries,
    /// Successes: from when they could leave to the first byte.
    pub first_byte: Series,
    /// Successes: from the first byte to the last.
    pub last_byte: Series,
}

impl StepSeries {
    fn push(&mut self, length: u64, ok: &CellSum, censored: &CellSum, phases: &PhaseSums) {
        self.times.push(length, ok, censored);
        self.first_byte.push(length, &phases.first_byte, &[]);
        self.last_byte.push(length, &phases.last_byte, &[]);
    }
}

/// Estimates' raw material for one stream.
#[derive(Clone, Debug, Default)]
pub struct StreamSeries {
    /// All its steps together.
    pub whole: StepSeries,
    /// Failures that are no time-outs, from due.
    pub failed: Series,
    /// Issue minus due.
    pub lag: Series,
    /// Connecting.
    pub connect: Series,
    /// The TLS handshake.
    pub tls: Series,
}

/// Everything that was collected.
pub struct Collected {
    /// By phase, then by stream.
    pub phases: [Vec<StreamTotals>; 3],
    /// By step: the whole run.
    pub steps: Vec<StepTally>,
    /// By step and class: requests that ended, in the whole run.
    pub step_classes: Vec<u64>,
    /// By stream: the measured part.
    pub streams: Vec<StreamSeries>,
    /// By step: the measured part; empty for streams of one step, which are their step.
    pub step_series: Vec<StepSeries>,
    /// By group: the whole run.
    pub groups: Vec<GroupTally>,
    /// By group: completed runs and censored ones of the measured part.
    pub group_series: Vec<TimesSeries>,
    /// By thread: the measured part.
    pub threads: Vec<LoopTally>,
    /// CPU time of all engine threads in the whole run.
    pub cpu_ns: u64,
    /// Nanoseconds that were collected of the measured part.
    pub measured_ns: u64,
    /// By stream: in flight and sum of their ages at the beginning of the measured part.
    pub at_start: Vec<(u64, u64)>,
    /// By stream: the same at its end.
    pub at_end: Vec<(u64, u64)>,
    /// Values that found no page in a histogram.
    pub lost_values: u64,
    /// Faults of writing.
    pub faults: Vec<String>,
}

/// Collects from all threads of a run.
pub struct Collector {
    names: Names,
    threads: Vec<ThreadEnds>,
    aligner: Aligner,
    files: Option<Files>,
    live: Arc<Mutex<Live>>,
    collected: Collected,
}

impl Collector {
    /// A collector for threads with these ends.
    pub fn new(
        names: Names,
        threads: Vec<ThreadEnds>,
        files: Option<Files>,
        live: Arc<Mutex<Live>>,
    ) -> Self {
        let streams = names.streams.len();
        let steps = names.first_step(streams);
        let groups = names.first_group(streams);
        live.lock().streams = vec![LiveStream::default(); streams];
        let collected = Collected {
            phases: std::array::from_fn(|_| vec![StreamTotals::default(); streams]),
            steps: vec![StepTally::default(); steps],
            step_classes: vec![0; steps * CLASSES],
            streams: vec![StreamSeries::default(); streams],
            step_series: vec![StepSeries::default(); steps],
            groups: vec![GroupTally::default(); groups],
            group_series: vec![TimesSeries::default(); groups],
            threads: vec![LoopTally::default(); threads.len()],
            cpu_ns: 0,
            measured_ns: 0,
            at_start: vec![(0, 0); streams],
            at_end: vec![(0, 0); streams],
            lost_values: 0,
            faults: Vec::new(),
        };
        Collector {
            aligner: Aligner::new(threads.len()),
            names,
            threads,
            files,
            live,
            collected,
        }
    }

    /// Takes everything that is there.
    pub fn collect(&mut self) {
        let count = self.threads.len();
        for (number, ends) in self.threads.iter_mut().enumerate() {
            while let Some(mut set) = ends.full.take() {
                if set.end > set.start {
                    self.aligner
                        .push(number, IntervalSum::of(&set, number, count));
                }
                set.clear();
                let _ = ends.empty.give(set); // as many places as sets
            }
            let Some(files) = &mut self.files else {
                continue;
            };
            if let Some(samples) = &mut ends.samples {
                samples.drain(|chunk| files.samples(chunk));
            }
            if let Some(connections) = &mut ends.connections {
                connections.drain(|chunk| files.connections(chunk));
            }
        }
        while let Some(sum) = self.aligner.pull() {
            self.add(&sum);
        }
    }

    /// All workers have ended: takes the rest and returns everything.
    pub fn finish(mut self) -> Collected {
        (0..self.threads.len()).for_each(|thread| self.aligner.end(thread));
        self.collect();
        if let Some(files) = &self.files {
            self.collected.faults = files.faults();
        }
        self.collected
    }

    fn add(&mut self, sum: &IntervalSum) {
        if let Some(files) = &mut self.files {
            files.interval(sum, &self.names);
        }
        let collected = &mut self.collected;
        collected.lost_values += sum.lost_values;
        collected.cpu_ns += sum.threads.iter().map(|thread| thread.cpu_ns).sum::<u64>();
        add_each(&mut collected.steps, &sum.steps);
        add_each(&mut collected.groups, &sum.groups);
        for (into, cell) in collected.step_classes.iter_mut().zip(&sum.cells) {
            *into += cell.response.moments.count;
        }
        for index in 0..self.names.streams.len() {
            let totals = &mut collected.phases[sum.phase as usize][index];
            totals.sum.add_later(&sum.streams[index]);
            totals.sum.gaps.clear(); // they stand in the counters of each interval
            for &class in Class::ALL {
                let answers = sum.ended(self.names.steps(index), class);
                totals.classes[class as usize] += answers;
            }
        }
        match sum.phase {
            Phase::Warmup => {
                collected.at_start = levels(&sum.streams);
                collected.at_end.clone_from(&collected.at_start);
            }
            Phase::Measure => self.add_measured(sum),
            Phase::Drain => {}
        }
        self.show(sum);
    }

    fn add_measured(&mut self, sum: &IntervalSum) {
        let collected = &mut self.collected;
        let length = sum.length();
        collected.measured_ns += length;
        collected.at_end = levels(&sum.streams);
        add_each(&mut collected.threads, &sum.threads);
        let of_groups = sum.group_cells.chunks(COURSES);
        for (series, cells) in collected.group_series.iter_mut().zip(of_groups) {
            let censored = &cells[Course::Censored as usize];
            series.push(length, &cells[Course::Completed as usize], censored);
        }
        for index in 0..self.names.streams.len() {
            let steps = self.names.steps(index);
            let cell = |step: usize, class: Class| &sum.cells[step * CLASSES + class as usize];
            let all = |class: Class| {
                let mut all = CellSum::default();
                steps.clone().for_each(|step| all.add(cell(step, class)));
                all
            };
            let mut phases = PhaseSums::default();
            steps.clone().for_each(|step| phases.add(&sum.phases[step]));
            let series = &mut collected.streams[index];
            let (ok, censored) = (all(Class::Ok), all(Class::Censored));
            series.whole.push(length, &ok, &censored, &phases);
            let failed = all(Class::Failed).response;
            series.failed.push(length, &failed, &[]);
            let tally = &sum.streams[index];
            series.lag.push(length, &tally.lag, &[]);
            series.connect.push(length, &tally.connect, &[]);
            series.tls.push(length, &tally.tls, &[]);
            if steps.len() == 1 {
                continue; // the stream's estimates are the step's
            }
            for step in steps.clone() {
                let (ok, censored) = (cell(step, Class::Ok), cell(step, Class::Censored));
                collected.step_series[step].push(length, ok, censored, &sum.phases[step]);
            }
        }
    }

    fn show(&self, sum: &IntervalSum) {
        let mut live = self.live.lock();
        if live.phase != Some(sum.phase) {
            // The drain shows the measured part as it was.
            if sum.phase == Phase::Measure {
                live.streams
                    .iter_mut()
                    .for_each(|stream| stream.so_far = LiveSpan::default());
            }
            live.phase = Some(sum.phase);
        }
        for index in 0..self.names.streams.len() {
            let steps = self.names.steps(index);
            let mut ok = TimingSum::default();
            for step in steps.clone() {
                ok.add(&sum.cells[step * CLASSES + Class::Ok as usize].response);
            }
            let count = |class| sum.ended(steps.clone(), class);
            let span = LiveSpan {
                seconds: seconds(sum.length()),
                ok: ok.counts,
                unexpected_status: count(Class::UnexpectedStatus),
                check_failed: count(Class::CheckFailed),
                failed: sum.streams[index].failed.iter().sum(),
            };
            let stream = &mut live.streams[index];
            if sum.phase != Phase::Drain {
                stream.so_far.add(&span);
            }
            stream.push(span);
        }
        let busy = sum
            .threads
            .iter()
            .map(|thread| thread.busy(sum.length().max(1) as f64));
        live.busy = busy.reduce(f64::max);
        live.lag_p99_s = sum.lag_p99_s();
    }
}

fn levels(streams: &[StreamSum]) -> Vec<(u64, u64)> {
    streams
        .iter()
        .map(|stream| (stream.in_flight, stream.in_flight_age))
        .collect()
}
