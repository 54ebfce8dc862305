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
    add_counts, add_each, Aligned, Aligner, CellSum, Counts, IntervalSum, PhaseSums, StreamSum,
    TimingSum,
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
    pub books: Books,
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
}

impl Collected {
    /// Nothing yet, of so many threads.
    pub fn new(names: &Names, threads: usize) -> Self {
        let streams = names.streams.len();
        let steps = names.first_step(streams);
        let groups = names.first_group(streams);
        Collected {
            phases: std::array::from_fn(|_| vec![StreamTotals::default(); streams]),
            books: Books::new(steps),
            streams: vec![StreamSeries::default(); streams],
            step_series: vec![StepSeries::default(); steps],
            groups: vec![GroupTally::default(); groups],
            group_series: vec![TimesSeries::default(); groups],
            threads: vec![LoopTally::default(); threads],
            cpu_ns: 0,
            measured_ns: 0,
            at_start: vec![(0, 0); streams],
            at_end: vec![(0, 0); streams],
            lost_values: 0,
        }
    }

    /// Adds the next interval of all threads together.
    pub fn add(&mut self, sum: &IntervalSum, names: &Names) {
        self.lost_values += sum.lost_values;
        self.cpu_ns += sum.threads.iter().map(|thread| thread.cpu_ns).sum::<u64>();
        self.books.add(sum);
        add_each(&mut self.groups, &sum.groups);
        for index in 0..names.streams.len() {
            let totals = &mut self.phases[sum.phase as usize][index];
            totals.sum.add_later(&sum.streams[index]);
            totals.sum.gaps.clear(); // they stand in the counters of each interval
            for &class in Class::ALL {
                let answers = sum.ended(names.steps(index), class);
                totals.classes[class as usize] += answers;
            }
        }
        match sum.phase {
            Phase::Warmup => {
                self.at_start = levels(&sum.streams);
                self.at_end.clone_from(&self.at_start);
            }
            Phase::Measure => self.add_measured(sum, names),
            Phase::Drain => {}
        }
    }

    fn add_measured(&mut self, sum: &IntervalSum, names: &Names) {
        let length = sum.length();
        self.measured_ns += length;
        self.at_end = levels(&sum.streams);
        add_each(&mut self.threads, &sum.threads);
        let of_groups = sum.group_cells.chunks(COURSES);
        for (series, cells) in self.group_series.iter_mut().zip(of_groups) {
            let censored = &cells[Course::Censored as usize];
            series.push(length, &cells[Course::Completed as usize], censored);
        }
        for index in 0..names.streams.len() {
            let steps = names.steps(index);
            let cell = |step: usize, class: Class| &sum.cells[step * CLASSES + class as usize];
            let all = |class: Class| {
                let mut all = CellSum::default();
                steps.clone().for_each(|step| all.add(cell(step, class)));
                all
            };
            let mut phases = PhaseSums::default();
            steps.clone().for_each(|step| phases.add(&sum.phases[step]));
            let series = &mut self.streams[index];
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
                self.step_series[step].push(length, ok, censored, &sum.phases[step]);
            }
        }
    }
}

/// Counts of requests by step, from which the law of counting is judged.
#[derive(Clone, Debug, Default)]
pub struct Books {
    /// By step.
    pub steps: Vec<StepTally>,
    /// By step and class: requests that ended.
    pub step_classes: Vec<u64>,
}

impl Books {
    /// Empty ones for so many steps.
    pub fn new(steps: usize) -> Self {
        Books {
            steps: vec![StepTally::default(); steps],
            step_classes: vec![0; steps * CLASSES],
        }
    }

    /// Adds an interval of one thread, or of all.
    pub fn add(&mut self, sum: &IntervalSum) {
        add_each(&mut self.steps, &sum.steps);
        for (into, cell) in self.step_classes.iter_mut().zip(&sum.cells) {
            *into += cell.response.moments.count;
        }
    }
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
        live.lock().streams = vec![LiveStream::default(); names.streams.len()];
        Collector {
            aligner: Aligner::new(threads.len()),
            collected: Collected::new(&names, threads.len()),
            names,
            threads,
            files,
            live,
        }
    }

    /// Takes everything that is there.
    pub fn collect(&mut self) {
        for (number, ends) in self.threads.iter_mut().enumerate() {
            while let Some(mut set) = ends.full.take() {
                if set.end > set.start {
                    let sum = IntervalSum::of(&set);
                    if let Some(files) = &mut self.files {
                        files.sum(number, &sum);
                    }
                    self.aligner.push(number, sum);
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
        while let Aligned::Interval(sum) = self.aligner.pull() {
            if let Some(files) = &mut self.files {
                files.interval(&sum, &self.names);
            }
            self.collected.add(&sum, &self.names);
            self.show(&sum);
        }
    }

    /// All workers have ended: takes the rest and returns everything, with the files that it went to.
    pub fn finish(mut self) -> (Collected, Option<Files>) {
        (0..self.threads.len()).for_each(|thread| self.aligner.end(thread));
        self.collect();
        (self.collected, self.files)
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
