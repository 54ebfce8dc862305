//! One virtual user as a state machine without I/O: what comes next after what happened.
//!
//! It knows iterations, steps, pauses and back-off. It does not know connections, sockets or histograms:
//! the worker reports that a request ended and carries out the answer. Both sides are plain values.

use loadlens_base::units::{MILLISECOND, SECOND};
use loadlens_base::Random;
use loadlens_plan::arrival::timetable::Timing;
use loadlens_plan::arrival::{Numbers, Part};
use loadlens_plan::program::{StreamProgram, Values};
use loadlens_plan::Think;

use crate::feed_cursor::FeedCursors;

/// The first pause of a closed user after a failed connect; doubled for each further one.
pub const FIRST_BACK_OFF: u64 = 10 * MILLISECOND;
/// The longest such pause.
pub const LONGEST_BACK_OFF: u64 = SECOND;
/// "No connection".
pub const NONE: u32 = u32::MAX;

/// Phase of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Not there: left, or a free place of an open stream.
    #[default]
    Absent,
    /// Until its next request is due.
    Pausing,
    /// Its request is due and about to be issued.
    Asking,
    /// Its request is due and no connection is free.
    Queueing,
    /// Issued: connecting.
    Connecting,
    /// Issued: on a connection that stands.
    InFlight,
}

/// One user of a closed stream, or one place of an open one.
#[derive(Clone, Debug, Default)]
pub struct User {
    /// Due time of the current request.
    pub due: u64,
    /// From when on it could be issued: due, or when it got the connection or place that it waited for.
    pub ready: u64,
    /// Time at which it was issued.
    pub sent: u64,
    /// Time of the first byte of its answer; 0: not yet.
    pub first: u64,
    /// Its number in the stream.
    pub seq: u64,
    /// Iterations left; `u64::MAX`: no bound.
    pub iterations: u64,
    /// Index of its connection, or [`NONE`].
    pub connection: u32,
    /// Number of the user in the stream.
    pub number: u32,
    /// Index of the current step in the stream.
    pub step: u16,
    /// Position in the flow of its scenario.
    pub at: u16,
    /// Phase of the user.
    pub phase: Phase,
    /// Failed connects in a row.
    pub failed_connects: u8,
    /// Addresses of the target that the current request has tried.
    pub tried: u8,
    /// True if a timer for its deadline is pending.
    pub watched: bool,
}

/// Event that a user reacts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A closed user enters; its first request is due at its `due`.
    Join,
    /// An arrival, already counted as due at `due`, takes this place.
    Arrive {
        /// Due time.
        due: u64,
        /// Time at which there was a place for it.
        ready: u64,
        /// Index of its scenario.
        scenario: usize,
    },
    /// The pause is over.
    Due,
    /// The request ended.
    Ended {
        /// True if the other steps of the iteration are to be left out.
        ends_iteration: bool,
        /// True if connecting failed, and the user is to pause before it tries again.
        backs_off: bool,
    },
}

/// Action for the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Issue the current request.
    Ask,
    /// Come back with [`Event::Due`] when the current request is ready.
    Pause,
    /// The user leaves: nothing more comes from it.
    Leave,
}

/// State that users of one stream share on a thread; one is borrowed for each step.
#[derive(Debug)]
pub struct Scratch<'a> {
    /// Scenarios and steps.
    pub program: &'a StreamProgram,
    /// Draws of this stream on this thread.
    pub random: &'a mut Random,
    /// Pause between iterations; none: an open stream, whose users do one iteration.
    pub think: Option<Think>,
    /// Due times of this user's iterations; none: after the pause.
    pub timing: Option<Timing<'a>>,
    /// Requests that may still become due.
    pub quota: &'a mut Quota,
    /// Values that the user has extracted, when the stream extracts at all.
    pub values: Option<&'a mut Values>,
    /// Records of the feeds, when the stream uses any.
    pub feed_cursors: Option<&'a mut FeedCursors>,
    /// Index of the user on its thread.
    pub index: u32,
    /// Steps that were left out by this event.
    pub skipped: u16,
    /// True if an iteration began with this event.
    pub has_begun: bool,
}

/// Due time of the next request.
enum Next {
    /// After a pause.
    In(u64),
    /// Due time by the timetable of the user.
    At(u64),
}

/// Number of requests that may still become due, and their numbers in the stream.
///
/// The two are apart because an open stream's request is due when it arrives and gets its number when
/// it is taken out of the backlog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    left: u64,
    numbers: Numbers,
}

impl Quota {
    /// `left` requests (none: no bound) with the numbers of a part.
    pub fn new(left: Option<u64>, part: &Part) -> Self {
        Quota {
            left: left.unwrap_or(u64::MAX),
            numbers: part.numbers(),
        }
    }

    /// Takes one request out of the quota; false: there is none left.
    #[inline]
    pub fn claim(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        true
    }

    /// The next number.
    #[inline]
    pub fn number(&mut self) -> u64 {
        self.numbers.advance()
    }

    /// Leaves no more of it.
    pub fn close(&mut self) {
        self.left = 0;
    }

    /// True if there is none left.
    pub fn is_used_up(&self) -> bool {
        self.left == 0
    }
}

impl User {
    /// A user who has not begun.
    pub fn new(number: u32, iterations: Option<u64>) -> Self {
        User {
            number,
            connection: NONE,
            iterations: iterations.unwrap_or(u64::MAX),
            ..User::default()
        }
    }

    /// True if its request is issued and has not ended.
    pub fn is_in_flight(&self) -> bool {
        matches!(self.phase, Phase::Connecting | Phase::InFlight)
    }

    /// Takes one event at `now` and says what is to be done.
    #[inline]
    pub fn step(&mut self, event: Event, now: u64, scratch: &mut Scratch) -> Action {
        match event {
            Event::Join => {
                let scenario = scratch.program.draw_scenario(scratch.random);
                if !self.begin(scenario, scratch) {
                    return self.leave();
                }
                self.ready = self.due;
                self.phase = Phase::Pausing;
                Action::Pause
            }
            Event::Arrive {
                due,
                ready,
                scenario,
            } => {
                self.begin(scenario, scratch);
                self.due = due;
                let action = self.number_request(scratch);
                self.ready = ready;
                action
            }
            Event::Due => self.ask(scratch),
            Event::Ended {
                ends_iteration,
                backs_off,
            } => {
                self.failed_connects = if backs_off {
                    self.failed_connects.saturating_add(1)
                } else {
                    0
                };
                let pause = match self.advance(ends_iteration, now, scratch) {
                    Some(Next::In(pause)) => pause.max(self.back_off()),
                    Some(Next::At(due)) => return self.keep_to(due, now, scratch),
                    None => return self.leave(),
                };
                self.due = now + pause;
                self.ready = self.due;
                if pause == 0 {
                    return self.ask(scratch);
                }
                self.phase = Phase::Pausing;
                Action::Pause
            }
        }
    }

    /// Goes to the next step, of this iteration or of a new one; returns when it is due.
    #[inline]
    fn advance(&mut self, ends_iteration: bool, now: u64, scratch: &mut Scratch) -> Option<Next> {
        if let Some(next) = scratch.program.flow.step(self.at + 1) {
            if !ends_iteration {
                let think = scratch.program.steps[self.step as usize].think;
                self.at += 1;
                self.step = next;
                return Some(Next::In(think.sample(scratch.random)));
            }
            scratch.skipped = scratch.program.flow.left_after(self.at);
        }
        let think = scratch.think?;
        if scratch.quota.is_used_up() {
            return None; // before it claims a record that no request needs
        }
        if self.iterations != u64::MAX {
            self.iterations -= 1;
            if self.iterations == 0 {
                return None;
            }
        }
        let scenario = scratch.program.draw_scenario(scratch.random);
        let pause = think.sample(scratch.random);
        // When first: a user whom the timetable lets go claims no record.
        let next = match &mut scratch.timing {
            None => Next::In(pause),
            Some(timing) => {
                Next::At(timing.next(self.number, now.saturating_add(pause), scratch.random)?)
            }
        };
        self.begin(scenario, scratch).then_some(next)
    }

    /// Waits for an iteration that is due at `due`, or begins one that was due before. After failed connects it begins
    /// later; a paced one is due when it is due all the same.
    #[cold]
    fn keep_to(&mut self, due: u64, now: u64, scratch: &mut Scratch) -> Action {
        self.ready = due.max(now + self.back_off());
        let is_paced = scratch.timing.as_ref().is_some_and(Timing::is_paced);
        self.due = if is_paced { due } else { self.ready };
        if self.ready <= now {
            return self.ask(scratch);
        }
        self.phase = Phase::Pausing;
        Action::Pause
    }

    /// Begins an iteration; false: a feed has no record left for it.
    #[inline]
    fn begin(&mut self, scenario: usize, scratch: &mut Scratch) -> bool {
        if let Some(feed_cursors) = scratch.feed_cursors.as_deref_mut() {
            let scenario = &scratch.program.scenarios[scenario];
            // The records of an arrival were claimed when it became due.
            if scratch.think.is_some() && !feed_cursors.claim(scenario) {
                return false;
            }
            feed_cursors.take(scenario, scratch.index, self.number);
        }
        let scenario = &scratch.program.scenarios[scenario];
        self.step = scenario.first_step;
        self.at = scenario.begins;
        scratch.has_begun = true;
        if let Some(values) = scratch.values.as_deref_mut() {
            values.clear();
        }
        true
    }

    #[inline]
    fn ask(&mut self, scratch: &mut Scratch) -> Action {
        if scratch.quota.claim() {
            self.number_request(scratch)
        } else {
            self.leave()
        }
    }

    #[inline]
    fn number_request(&mut self, scratch: &mut Scratch) -> Action {
        self.seq = scratch.quota.number();
        self.first = 0;
        self.tried = 0;
        self.phase = Phase::Asking;
        Action::Ask
    }

    fn leave(&mut self) -> Action {
        self.phase = Phase::Absent;
        Action::Leave
    }

    fn back_off(&self) -> u64 {
        match self.failed_connects {
            0 => 0,
            n => (FIRST_BACK_OFF << (n - 1).min(10)).min(LONGEST_BACK_OFF),
        }
    }
}

#[cfg(test)]
mod tests;
