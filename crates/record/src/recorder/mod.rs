//! Recording of a worker's events: each is counted into the current interval set.
//!
//! Nothing here waits or allocates. At a cut the set goes to the collector and a spare takes its place;
//! when the collector is behind, the interval goes on and carries its real bounds. Two spares are kept
//! back for the ends of warm-up and measured part, which are cut in any case.
//!
//! Here are the sets and their cuts; `counting` says what each event adds, `logging` writes rows.

mod counting;
mod logging;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use loadlens_base::Outcome;

use super::grid::{Grid, Phase};
use super::interval::{CheckCount, Gap, IntervalSet};
use super::merge::add_each;
use super::ring::{Giver, Taker};

pub use logging::RowLogs;

/// Sets that each thread has: one in use, two for ordinary cuts, two for the ends of phases.
pub const SETS: usize = 5;
const HARD_CUTS: usize = 2;
/// Samples of each error class that are kept.
pub const ERROR_SAMPLES: usize = 20;
/// Failing answers of one stream that are kept.
const ANSWERS: usize = 24;
/// Failing answers of one status that are kept.
pub const ANSWERS_EACH: usize = 3;
/// Bytes of the head of one that are kept.
const ANSWER_HEAD: usize = 2_048;
/// Bytes of its body.
pub const ANSWER_BODY: usize = 512;
/// Answers as expected of one stream that are kept, each of another size.
const USUAL: usize = 48;
/// Bytes of the body of one.
const USUAL_BODY: usize = 160;

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
    /// Time of the fault.
    pub at: u64,
    /// Index of the step among all steps of the run.
    pub step: u32,
    /// Number of the user.
    pub user: u32,
    /// Cause of the fault in words.
    pub why: &'static str,
    /// The operating system's number for it; 0: none.
    pub os_error: i32,
}

/// One answer that is kept.
#[derive(Clone, Copy, Debug)]
pub struct AnswerNote {
    /// Time of its last byte.
    pub at: u64,
    /// Index of the step among all steps of the run.
    pub step: u32,
    /// Its status.
    pub status: u16,
    /// Bytes of its decoded body.
    pub body_bytes: u64,
    /// Its head and the beginning of its body in [`AnswerLog::bytes`]: begin of both, begin of the body, end.
    pub place: (usize, usize, usize),
}

/// The first answers of a stream of each kind: failing ones by status, others by size.
#[derive(Debug)]
pub struct AnswerLog {
    /// In the order of their ends.
    pub notes: Vec<AnswerNote>,
    /// Heads and bodies, one after the other.
    pub bytes: Vec<u8>,
}

impl AnswerLog {
    /// Room for all that it may hold: nothing is allocated during a run.
    fn with_room(answers: usize, bytes_each: usize) -> Self {
        AnswerLog {
            notes: Vec::with_capacity(answers),
            bytes: Vec::with_capacity(answers * bytes_each),
        }
    }
}

/// Size of a body, to a quarter of an octave: 0 for up to 4 bytes, 63 from 224 KiB on.
#[inline]
pub fn size_class(bytes: u64) -> u32 {
    let bytes = bytes.max(4);
    let octave = bytes.ilog2();
    let quarter = (bytes >> (octave - 2)) as u32 & 3;
    (4 * (octave - 2) + quarter).min(u64::BITS - 1)
}

/// All failures of one class in one stream.
#[derive(Clone, Debug)]
pub struct ErrorLog {
    /// Time of the first; `u64::MAX`: none.
    pub first: u64,
    /// Time of the last.
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
    /// Time at which `in_flight` last changed.
    since: u64,
    /// Sum of the issue times of the requests in flight.
    issued_at: u64,
    /// Time at which the last answer was complete.
    last_answer: u64,
}

/// The end of one issued request.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Index into the plan's streams.
    pub stream: u8,
    /// Index into the stream's steps.
    pub step: u16,
    /// Outcome of the request.
    pub outcome: Outcome,
    /// 0: none.
    pub status: u16,
    /// Number in its stream.
    pub seq: u64,
    /// Due time.
    pub due: u64,
    /// Time at which it was issued.
    pub sent: u64,
    /// Time at which it could leave: `sent`, or when the connection begun for it was established.
    pub asked: u64,
    /// First byte of the answer; 0: none.
    pub first: u64,
    /// Time at which it ended.
    pub done: u64,
    /// Number of the user.
    pub user: u32,
    /// Number of the connection.
    pub connection: u32,
    /// True if it was the first request of its connection.
    pub first_on_connection: bool,
    /// Bytes of the answer as received.
    pub wire_bytes: u64,
    /// Bytes of the decoded body.
    pub body_bytes: u64,
    /// Fault in words; empty for answers.
    pub why: &'static str,
    /// The operating system's number for it; 0: none.
    pub os_error: i32,
}

/// Final state of a recorder after its worker has ended.
pub struct Leftover {
    /// By stream, by outcome code.
    pub errors: Vec<Vec<ErrorLog>>,
    /// Failing answers by stream.
    pub answers: Vec<AnswerLog>,
    /// Answers as expected by stream.
    pub usual: Vec<AnswerLog>,
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
    answers: Vec<AnswerLog>,
    usual: Vec<AnswerLog>,
    /// By step: a bit for each size class of which an answer is kept.
    sizes_kept: Vec<u64>,
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
            answers: steps
                .iter()
                .map(|_| AnswerLog::with_room(ANSWERS, ANSWER_HEAD + ANSWER_BODY))
                .collect(),
            usual: steps
                .iter()
                .map(|_| AnswerLog::with_room(USUAL, USUAL_BODY))
                .collect(),
            sizes_kept: vec![0; at as usize],
            stalled_until: 0,
            logs,
            progress,
        }
    }

    /// Number of streams.
    pub fn streams(&self) -> usize {
        self.flows.len()
    }

    /// Number of steps of all streams.
    pub fn steps(&self) -> usize {
        self.set.steps.len()
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
        add_each(&mut self.checked, &next.checks);
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
            tally.flows.in_flight_integral +=
                u64::from(flow.in_flight) * at.saturating_sub(flow.since);
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
    pub fn finish(mut self, at: u64) -> Leftover {
        self.publish();
        let empty = Box::new(IntervalSet::new(0, 0));
        let mut last = std::mem::replace(&mut self.set, empty);
        self.settle(&mut last, at);
        last.end = at.max(last.start);
        last.phase = self.phase;
        let lost = self.full.give(last).is_err();
        debug_assert!(!lost, "as many places as sets");
        let mut leftover = Leftover {
            errors: self.errors,
            answers: self.answers,
            usual: self.usual,
            lost_samples: 0,
            lost_connections: 0,
        };
        if let Some(mut logs) = self.logs {
            logs.samples.hand_over();
            logs.connections.hand_over();
            leftover.lost_samples = logs.samples.lost;
            leftover.lost_connections = logs.connections.lost;
        }
        leftover
    }
}
