//! What a worker calls when something happens: counts it into the current interval set.
//!
//! Nothing here waits or allocates. At a cut the set goes to the collector and a spare takes its place;
//! when the collector is behind, the interval goes on and carries its real bounds. Two spares are kept
//! back for the ends of warm-up and measured part, which are cut in any case.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::error::{Class, Outcome};
use crate::program::CheckTally;

use super::grid::{Grid, Phase};
use super::interval::{CheckCount, Course, Gap, IntervalSet, CLASSES, COURSES};
use super::ring::{Giver, Taker};
use super::rows::{
    ConnectionRow, RowLog, SampleRow, Thinning, AFTER_END, FIRST_ON_CONNECTION, IN_WARMUP,
};

/// Sets that each thread has: one in use, two for ordinary cuts, two for the ends of phases.
pub const SETS: usize = 5;
const HARD_CUTS: usize = 2;
/// Samples of each error class that are kept.
pub const ERROR_SAMPLES: usize = 20;

/// A stream's counts so far, for progress: written by its worker, read by anyone.
#[derive(Debug, Default)]
pub struct StreamProgress {
    /// Requests due.
    pub due: AtomicU64,
    /// Requests issued.
    pub issued: AtomicU64,
    /// Requests answered.
    pub answered: AtomicU64,
    /// Answers as expected.
    pub ok: AtomicU64,
    /// Requests failed.
    pub failed: AtomicU64,
    /// Requests dropped.
    pub dropped: AtomicU64,
}

/// One failure, for the errors of the result.
#[derive(Clone, Copy, Debug)]
pub struct ErrorNote {
    /// When.
    pub at: u64,
    /// Index of the step among all steps of the run.
    pub step: u32,
    /// Number of the user.
    pub user: u32,
    /// What was wrong, in words.
    pub why: &'static str,
    /// The operating system's number for it; 0: none.
    pub os_error: i32,
}

/// All failures of one class in one stream.
#[derive(Clone, Debug)]
pub struct ErrorLog {
    /// When the first happened; `u64::MAX`: none.
    pub first: u64,
    /// When the last happened.
    pub last: u64,
    /// The first few.
    pub samples: Vec<ErrorNote>,
}

/// Runs of counts that live as long as the stream.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    due: u64,
    issued: u64,
    dropped: u64,
    answered: u64,
    ok: u64,
    failed: u64,
    in_flight: u32,
    /// When `in_flight` last changed.
    since: u64,
    /// Sum of the issue times of the requests in flight.
    issued_at: u64,
    /// When the last answer was complete.
    last_answer: u64,
}

/// The end of one issued request.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Index into the plan's streams.
    pub stream: u8,
    /// Index into the stream's steps.
    pub step: u16,
    /// What became of it.
    pub outcome: Outcome,
    /// 0: none.
    pub status: u16,
    /// Number in its stream.
    pub seq: u64,
    /// When it was due.
    pub due: u64,
    /// When it was issued.
    pub sent: u64,
    /// When it could leave: `sent`, or when the connection that was begun for it stood.
    pub asked: u64,
    /// First byte of the answer; 0: none.
    pub first: u64,
    /// When it ended.
    pub done: u64,
    /// Number of the user.
    pub user: u32,
    /// Number of the connection.
    pub connection: u32,
    /// Whether it was the first request of its connection.
    pub first_on_connection: bool,
    /// Bytes of the answer as received.
    pub wire_bytes: u64,
    /// Bytes of the decoded body.
    pub body_bytes: u64,
    /// What was wrong, in words; empty for answers.
    pub why: &'static str,
    /// The operating system's number for it; 0: none.
    pub os_error: i32,
}

/// Sample and connection logs of one thread.
pub struct RowLogs {
    /// Requests.
    pub samples: RowLog,
    /// Connections.
    pub connections: RowLog,
    /// Bound of the sample log.
    pub thinning: Thinning,
}

/// What a recorder leaves when its worker has ended.
pub struct Remains {
    /// By stream, by outcome code.
    pub errors: Vec<Vec<ErrorLog>>,
    /// Sample rows for which no chunk was free.
    pub lost_samples: u64,
    /// Connection rows for which no chunk was free.
    pub lost_connections: u64,
}

/// One thread's recorder.
pub struct Recorder {
    set: Box<IntervalSet>,
    #[allow(clippy::vec_box)] // they go through the rings by pointer
    spares: Vec<Box<IntervalSet>>,
    hard_cuts_left: usize,
    full: Giver<IntervalSet>,
    empty: Taker<IntervalSet>,
    grid: Grid,
    cut: u64,
    phase: Phase,
    flows: Vec<Flow>,
    /// First step of each stream among all steps.
    first_step: Vec<u32>,
    errors: Vec<Vec<ErrorLog>>,
    /// By check: what it said before the current set.
    checked: Vec<CheckCount>,
    /// End of the last stall.
    stalled_until: u64,
    logs: Option<RowLogs>,
    progress: Arc<[StreamProgress]>,
}

impl Recorder {
    /// A recorder for streams with so many steps each; `sets` are [`SETS`] empty sets.
    pub fn new(
        steps: &[usize],
        grid: Grid,
        mut sets: Vec<Box<IntervalSet>>,
        rings: (Giver<IntervalSet>, Taker<IntervalSet>),
        logs: Option<RowLogs>,
        progress: Arc<[StreamProgress]>,
    ) -> Self {
        let mut first_step = Vec::with_capacity(steps.len());
        let mut at = 0;
        for count in steps {
            first_step.push(at);
            at += *count as u32;
        }
        let log = ErrorLog {
            first: u64::MAX,
            last: 0,
            samples: Vec::new(),
        };
        let mut errors = vec![vec![log; super::interval::OUTCOMES]; steps.len()];
        for log in errors.iter_mut().flatten() {
            log.samples.reserve_exact(ERROR_SAMPLES);
        }
        let set = sets
            .pop()
            .unwrap_or_else(|| Box::new(IntervalSet::new(steps.len(), at as usize)));
        Recorder {
            checked: vec![CheckCount::default(); set.checks.len()],
            set,
            spares: sets,
            hard_cuts_left: HARD_CUTS,
            full: rings.0,
            empty: rings.1,
            cut: grid.next_cut(0),
            phase: grid.phase(0),
            grid,
            flows: vec![Flow::default(); steps.len()],
            first_step,
            errors,
            stalled_until: 0,
            logs,
            progress,
        }
    }

    /// The next cut: call [`Recorder::cross`] before anything at or after it is recorded.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Brings the end of the measured part nearer; returns where it is for this thread.
    ///
    /// An end that lies before the current interval becomes the interval's beginning: what was handed over
    /// cannot be taken back. That is at most the time a thread needs to see the end that another one set.
    pub fn set_end(&mut self, end: u64) -> u64 {
        self.grid.end = end.max(self.set.start);
        self.cut = self.cut.min(self.grid.end);
        self.grid.end
    }

    /// Ends the intervals whose cut is at or before `now`.
    pub fn cross(&mut self, now: u64) {
        while self.cut <= now {
            while let Some(set) = self.empty.take() {
                self.spares.push(set); // capacity for all sets from the start
            }
            let hard = self.grid.is_hard(self.cut);
            if hard {
                self.hard_cuts_left = self.hard_cuts_left.saturating_sub(1);
            }
            if self.spares.len() > self.hard_cuts_left || (hard && !self.spares.is_empty()) {
                self.rotate(self.cut);
            }
            self.cut = self.grid.next_cut(self.cut);
            // After a pause of the whole thread, the empty intervals become one.
            while self.cut <= now && !self.grid.is_hard(self.cut) {
                let next = self.grid.next_cut(self.cut);
                if next > now {
                    break;
                }
                self.cut = next;
            }
        }
    }

    /// The thread did not run for `length`, up to `now`; before the cuts in between are crossed.
    pub fn stalled(&mut self, now: u64, length: u64) {
        self.set.engine.stalled_ns += length;
        self.stalled_until = now;
    }

    fn rotate(&mut self, at: u64) {
        let Some(mut next) = self.spares.pop() else {
            return;
        };
        next.start = at;
        std::mem::swap(&mut self.set, &mut next);
        self.settle(&mut next, at);
        for (before, check) in self.checked.iter_mut().zip(&next.checks) {
            before.add(check);
        }
        next.end = at;
        // A stall that is longer than the interval goes on in the next one.
        let beyond = self
            .stalled_until
            .saturating_sub(at)
            .min(next.engine.stalled_ns);
        next.engine.stalled_ns -= beyond;
        self.set.engine.stalled_ns += beyond;
        next.phase = self.phase;
        self.phase = self.grid.phase(at);
        self.set.phase = self.phase;
        for (flow, tally) in self.flows.iter().zip(&mut self.set.streams) {
            tally.in_flight_max = flow.in_flight; // they are in flight though none is issued any more
        }
        if let Err(back) = self.full.give(next) {
            // As many places as sets: cannot happen; were it to, the counts stay here.
            self.set = back;
        }
    }

    /// Brings the integrals of a set up to its end.
    fn settle(&mut self, set: &mut IntervalSet, at: u64) {
        for (flow, tally) in self.flows.iter_mut().zip(&mut set.streams) {
            tally.in_flight_integral += u64::from(flow.in_flight) * at.saturating_sub(flow.since);
            flow.since = flow.since.max(at);
            tally.in_flight = flow.in_flight;
            tally.in_flight_age = (u64::from(flow.in_flight) * at).saturating_sub(flow.issued_at);
            tally.waiting = flow.due.saturating_sub(flow.issued + flow.dropped);
            tally.note_gap(Gap {
                from: flow.last_answer.min(at),
                to: at,
            });
        }
    }

    /// A request became due.
    #[inline]
    pub fn due(&mut self, stream: u8, step: u16) {
        self.flows[stream as usize].due += 1;
        let at = self.step_index(stream, step);
        self.set.steps[at].due += 1;
    }

    /// A due request was dropped.
    pub fn dropped(&mut self, stream: u8, step: u16) {
        self.flows[stream as usize].dropped += 1;
        let at = self.step_index(stream, step);
        self.set.steps[at].dropped += 1;
    }

    /// Steps were left out.
    pub fn skipped(&mut self, stream: u8, step: u16, steps: u16) {
        let at = self.step_index(stream, step);
        self.set.steps[at].skipped += u64::from(steps);
    }

    /// A request took a connection, or began one. `ready` is when it could have: what is later is our lag.
    #[inline]
    pub fn issued(&mut self, stream: u8, step: u16, ready: u64, now: u64) {
        let at = self.step_index(stream, step);
        self.set.steps[at].issued += 1;
        let flow = &mut self.flows[stream as usize];
        let tally = &mut self.set.streams[stream as usize];
        tally.in_flight_integral += u64::from(flow.in_flight) * (now - flow.since);
        flow.since = now;
        flow.in_flight += 1;
        flow.issued += 1;
        flow.issued_at += now;
        tally.in_flight_max = tally.in_flight_max.max(flow.in_flight);
        tally
            .lag
            .record(now.saturating_sub(ready), &mut self.set.pool);
    }

    /// An issued request ended, well or not.
    #[inline]
    pub fn ended(&mut self, end: &Ended) {
        let at = self.step_index(end.stream, end.step);
        let set = &mut *self.set;
        let flow = &mut self.flows[end.stream as usize];
        let tally = &mut set.streams[end.stream as usize];
        let service = end.done - end.sent;

        tally.in_flight_integral += u64::from(flow.in_flight) * (end.done - flow.since);
        flow.since = end.done;
        flow.in_flight -= 1;
        flow.issued_at -= end.sent;
        tally.ended_service += service;
        tally.bytes_in_body += end.body_bytes;
        if end.outcome.is_answered() {
            flow.answered += 1;
            flow.ok += u64::from(end.outcome == Outcome::Ok);
            tally.status[end.status as usize] += 1;
            tally.note_gap(Gap {
                from: flow.last_answer,
                to: end.done,
            });
            flow.last_answer = end.done;
        } else {
            flow.failed += 1;
            set.steps[at].failed += 1;
            tally.failed[end.outcome.code() as usize] += 1;
            self.note_error(end);
        }
        if end.outcome == Outcome::Ok {
            let set = &mut *self.set;
            let phases = &mut set.phases[at];
            phases
                .first_byte
                .record(end.first - end.asked, &mut set.pool);
            if end.first == end.done {
                phases.at_once += 1;
            } else {
                phases.last_byte.record(end.done - end.first, &mut set.pool);
            }
        }
        if let Some(class) = end.outcome.class() {
            let cell = &mut self.set.cells[at * CLASSES + class as usize];
            cell.response.record(end.done - end.due, &mut self.set.pool);
            cell.service.record(service, &mut self.set.pool);
        }
        if self.logs.is_some() {
            self.log_sample(end);
        }
    }

    #[cold]
    fn note_error(&mut self, end: &Ended) {
        let step = self.first_step[end.stream as usize] + u32::from(end.step);
        let log = &mut self.errors[end.stream as usize][end.outcome.code() as usize];
        log.first = log.first.min(end.done);
        log.last = log.last.max(end.done);
        if log.samples.len() < ERROR_SAMPLES {
            // Capacity for all of them was reserved before the run.
            log.samples.push(ErrorNote {
                at: end.done,
                step,
                user: end.user,
                why: end.why,
                os_error: end.os_error,
            });
        }
    }

    /// A request had not ended when the measured part did: it lasted longer than `at - due`.
    pub fn censored(&mut self, stream: u8, step: u16, due: u64, sent: Option<u64>, at: u64) {
        let index = self.step_index(stream, step) * CLASSES + Class::Censored as usize;
        let cell = &mut self.set.cells[index];
        cell.response
            .record(at.saturating_sub(due), &mut self.set.pool);
        if let Some(sent) = sent {
            cell.service
                .record(at.saturating_sub(sent), &mut self.set.pool);
        }
    }

    /// What the checks of a stream, `first` of all and those after it, have said so far. Counted in the current
    /// interval is what is new, so this is called before a cut.
    pub fn checked(&mut self, first: usize, tallies: &[CheckTally]) {
        let before = &self.checked[first..];
        let counts = self.set.checks[first..].iter_mut().zip(before);
        for ((count, before), tally) in counts.zip(tallies) {
            *count = CheckCount {
                passed: tally.passed - before.passed,
                failed: tally.failed - before.failed,
                not_judged: tally.not_judged - before.not_judged,
            };
        }
    }

    /// The first request of a run of a group became due.
    pub fn group_due(&mut self, group: usize) {
        self.set.groups[group].due += 1;
    }

    /// A run of a group ended with its last answer, or failed.
    pub fn group_ended(&mut self, group: usize, course: Course, response: u64, service: u64) {
        let tally = &mut self.set.groups[group];
        match course {
            Course::Completed => tally.completed += 1,
            Course::Failed | Course::Censored => tally.failed += 1,
        }
        self.group_lasted(group, course, response, Some(service));
    }

    /// The load ended before a run of a group; its first request may never have been issued.
    pub fn group_unfinished(&mut self, group: usize, response: u64, service: Option<u64>) {
        self.set.groups[group].unfinished += 1;
        self.group_lasted(group, Course::Censored, response, service);
    }

    fn group_lasted(&mut self, group: usize, course: Course, response: u64, service: Option<u64>) {
        let set = &mut *self.set;
        let cell = &mut set.group_cells[group * COURSES + course as usize];
        cell.response.record(response, &mut set.pool);
        if let Some(service) = service {
            cell.service.record(service, &mut set.pool);
        }
    }

    /// A connection was begun.
    pub fn opened(&mut self, stream: u8) {
        self.set.streams[stream as usize].opened += 1;
    }

    /// A connection stands, but for TLS.
    pub fn established(&mut self, stream: u8, took: u64) {
        self.set.streams[stream as usize]
            .connect
            .record(took, &mut self.set.pool);
    }

    /// A connection is secured.
    pub fn secured(&mut self, stream: u8, took: u64, resumed: bool) {
        let tally = &mut self.set.streams[stream as usize];
        tally.tls.record(took, &mut self.set.pool);
        tally.handshakes[usize::from(resumed)] += 1;
    }

    /// A connection ended; `row.closed_by` says by whom.
    pub fn closed(&mut self, row: &ConnectionRow) {
        if let Some(side) = (row.closed_by as usize).checked_sub(1) {
            self.set.streams[row.stream as usize].closed[side] += 1;
        }
        if let Some(logs) = &mut self.logs {
            logs.connections.push(&row.to_bytes());
        }
    }

    /// Bytes came that nobody had asked for.
    pub fn unsolicited(&mut self, stream: u8) {
        self.set.streams[stream as usize].unsolicited += 1;
    }

    /// Request bytes left.
    #[inline]
    pub fn bytes_out(&mut self, stream: u8, bytes: usize) {
        self.set.streams[stream as usize].bytes_out += bytes as u64;
    }

    /// Bytes came.
    #[inline]
    pub fn bytes_in(&mut self, stream: u8, bytes: usize) {
        self.set.streams[stream as usize].bytes_in_wire += bytes as u64;
    }

    fn log_sample(&mut self, end: &Ended) {
        let row = SampleRow {
            seq: end.seq,
            due_ns: end.due as i64,
            sent_ns: end.sent as i64,
            first_ns: if end.first == 0 { -1 } else { end.first as i64 },
            done_ns: if end.outcome == Outcome::InFlight {
                -1
            } else {
                end.done as i64
            },
            user: end.user,
            connection: end.connection,
            wire_bytes: u32::try_from(end.wire_bytes).unwrap_or(u32::MAX),
            body_bytes: u32::try_from(end.body_bytes).unwrap_or(u32::MAX),
            step: end.step,
            status: end.status,
            outcome: end.outcome.code(),
            stream: end.stream,
            thinned: 0,
            flags: if end.first_on_connection {
                FIRST_ON_CONNECTION
            } else {
                0
            },
        };
        self.sample(row, end.done);
    }

    /// A request had not ended when the run did.
    pub fn unfinished(&mut self, end: &Ended) {
        if self.logs.is_some() {
            self.log_sample(end);
        }
    }

    /// Writes one row of the sample log; `now` says in which phase the request ended.
    pub fn sample(&mut self, mut row: SampleRow, now: u64) {
        let end = (self.grid.end < u64::MAX).then_some(self.grid.end);
        let Some(logs) = &mut self.logs else { return };
        if !logs.thinning.keeps(row.seq) {
            return;
        }
        row.thinned = logs.thinning.k();
        row.flags |= match self.phase {
            Phase::Warmup => IN_WARMUP,
            Phase::Measure => 0,
            Phase::Drain => AFTER_END,
        };
        if logs.samples.push(&row.to_bytes()) {
            logs.thinning.look(now, end);
        }
    }

    /// Hands over the rows so far, so that a killed run has lost little.
    pub fn hand_over_rows(&mut self, now: u64) {
        let end = (self.grid.end < u64::MAX).then_some(self.grid.end);
        if let Some(logs) = &mut self.logs {
            logs.samples.hand_over();
            logs.connections.hand_over();
            logs.thinning.look(now, end);
        }
    }

    /// Whether rows are wanted.
    pub fn has_logs(&self) -> bool {
        self.logs.is_some()
    }

    /// Adds to the thread's own account.
    pub fn engine(&mut self) -> &mut super::interval::LoopTally {
        &mut self.set.engine
    }

    /// Makes the counts so far visible to other threads.
    pub fn publish(&self) {
        for (flow, progress) in self.flows.iter().zip(self.progress.iter()) {
            progress.due.store(flow.due, Ordering::Relaxed);
            progress.issued.store(flow.issued, Ordering::Relaxed);
            progress.answered.store(flow.answered, Ordering::Relaxed);
            progress.ok.store(flow.ok, Ordering::Relaxed);
            progress.failed.store(flow.failed, Ordering::Relaxed);
            progress.dropped.store(flow.dropped, Ordering::Relaxed);
        }
    }

    /// Hands over everything that is left; `at` is the end of the last interval.
    pub fn finish(mut self, at: u64) -> Remains {
        self.publish();
        let empty = Box::new(IntervalSet::new(0, 0));
        let mut last = std::mem::replace(&mut self.set, empty);
        self.settle(&mut last, at);
        last.end = at.max(last.start);
        last.phase = self.phase;
        let lost = self.full.give(last).is_err();
        debug_assert!(!lost, "as many places as sets");
        let mut remains = Remains {
            errors: self.errors,
            lost_samples: 0,
            lost_connections: 0,
        };
        if let Some(mut logs) = self.logs {
            logs.samples.hand_over();
            logs.connections.hand_over();
            remains.lost_samples = logs.samples.lost;
            remains.lost_connections = logs.connections.lost;
        }
        remains
    }

    #[inline]
    fn step_index(&self, stream: u8, step: u16) -> usize {
        self.first_step[stream as usize] as usize + step as usize
    }
}
