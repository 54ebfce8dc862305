//! One virtual user as a state machine without I/O: what comes next after what happened.
//!
//! It knows iterations, steps, pauses and back-off. It does not know connections, sockets or histograms:
//! the worker tells it that a request ended and does what it answers. Both sides are plain values.

use crate::arrival::timetable::Timing;
use crate::clock::{MILLISECOND, SECOND};
use crate::feeding::Feeding;
use crate::plan::Think;
use crate::program::{StreamProgram, Values};
use crate::random::Random;

/// The first pause of a closed user after a failed connect; doubled for each further one.
pub const FIRST_BACK_OFF: u64 = 10 * MILLISECOND;
/// The longest such pause.
pub const LONGEST_BACK_OFF: u64 = SECOND;
/// "No connection".
pub const NONE: u32 = u32::MAX;

/// Where a user is.
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
    /// When the current request is or was due.
    pub due: u64,
    /// From when on it could be issued: due, or when it got the connection or place that it waited for.
    pub ready: u64,
    /// When it was issued.
    pub sent: u64,
    /// When the first byte of its answer came; 0: not yet.
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
    /// Where it is.
    pub phase: Phase,
    /// Failed connects in a row.
    pub failed_connects: u8,
    /// Addresses of the target that the current request has tried.
    pub tried: u8,
    /// Whether a timer for its deadline is pending.
    pub watched: bool,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A closed user enters; its first request is due at its `due`.
    Join,
    /// An arrival, already counted as due at `due`, takes this place.
    Arrive {
        /// When.
        due: u64,
        /// When there was a place for it.
        ready: u64,
        /// Index of its scenario.
        scenario: usize,
    },
    /// The pause is over.
    Due,
    /// The request ended.
    Ended {
        /// Whether the other steps of the iteration are to be left out.
        ends_iteration: bool,
        /// Whether no connection came to stand, and the user is to pause before it tries again.
        backs_off: bool,
    },
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Issue the current request.
    Ask,
    /// Come back with [`Event::Due`] when the current request is ready.
    Pause,
    /// The user leaves: nothing more comes from it.
    Leave,
}

/// What users of one stream share on a thread; one is borrowed for each step.
#[derive(Debug)]
pub struct Scratch<'a> {
    /// Scenarios and steps.
    pub program: &'a StreamProgram,
    /// Draws of this stream on this thread.
    pub random: &'a mut Random,
    /// Pause between iterations; none: an open stream, whose users do one iteration.
    pub think: Option<Think>,
    /// When iterations of this user are due; none: after the pause.
    pub timing: Option<Timing<'a>>,
    /// Requests that may still become due.
    pub quota: &'a mut Quota,
    /// What the user has extracted, when the stream extracts at all.
    pub values: Option<&'a mut Values>,
    /// Records of the feeds, when the stream uses any.
    pub feeding: Option<&'a mut Feeding>,
    /// Index of the user on its thread.
    pub index: u32,
    /// Steps that were left out by this event.
    pub skipped: u16,
    /// Whether an iteration began with this event.
    pub has_begun: bool,
}

/// When the next request is due.
enum Next {
    /// After a pause.
    In(u64),
    /// At this time, as the timetable of the user says.
    At(u64),
}

/// How many requests may still become due, and their numbers in the stream.
///
/// The two are apart because an open stream's request is due when it arrives and gets its number when
/// it is taken out of the backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    left: u64,
    next: u64,
    of: u64,
}

impl Quota {
    /// `left` requests (none: no bound), numbered `first`, `first + of` ...
    pub fn new(left: Option<u64>, first: u64, of: u64) -> Self {
        Quota {
            left: left.unwrap_or(u64::MAX),
            next: first,
            of,
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
        let number = self.next;
        self.next += self.of;
        number
    }

    /// Leaves no more of it.
    pub fn close(&mut self) {
        self.left = 0;
    }

    /// Whether there is none left.
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

    /// Whether its request is issued and has not ended.
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
        if let Some(next) = scratch.program.step_at(self.at + 1) {
            if !ends_iteration {
                let think = scratch.program.steps[self.step as usize].think;
                self.at += 1;
                self.step = next;
                return Some(Next::In(think.sample(scratch.random)));
            }
            scratch.skipped = scratch.program.left_after(self.at);
        }
        let think = scratch.think?;
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
        if let Some(feeding) = scratch.feeding.as_deref_mut() {
            let scenario = &scratch.program.scenarios[scenario];
            // The records of an arrival were claimed when it became due.
            if scratch.think.is_some() && !feeding.claim(scenario) {
                return false;
            }
            feeding.take(scenario, scratch.index, self.number);
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
mod tests {
    use super::*;
    use crate::arrival::timetable::Timetable;
    use crate::plan::Plan;
    use crate::program::Program;

    /// Two steps in one scenario, 5 ns of thought between them.
    fn program() -> Program {
        let step = |name: &str| serde_json::json!({"name": name, "method": "GET", "path": "/", "think": {"kind": "fixed", "ns": 5}});
        let plan = serde_json::json!({
            "schema_version": 1, "seed": 1, "duration_ns": 1,
            "streams": [{
                "name": "load", "role": "load", "timeout_ns": 1,
                "target": {"host": "h", "port": 1, "authority": "h"},
                "scenarios": [{"name": "s", "weight": 1.0, "steps": [step("a"), step("b")]}],
                "workload": {"kind": "closed", "users": 1},
            }],
        });
        let plan: Plan = serde_json::from_value(plan).unwrap();
        Program::compile(&plan).unwrap()
    }

    struct Around {
        program: Program,
        random: Random,
        quota: Quota,
        think: Option<Think>,
    }

    impl Around {
        fn new(requests: Option<u64>) -> Self {
            Around {
                program: program(),
                random: Random::new(1),
                quota: Quota::new(requests, 3, 2),
                think: Some(Think::Fixed { ns: 100 }),
            }
        }

        fn timed(
            &mut self,
            user: &mut User,
            timetable: &mut Timetable,
            event: Event,
            now: u64,
        ) -> Action {
            let mut scratch = Scratch {
                program: &self.program.streams[0],
                random: &mut self.random,
                think: self.think,
                timing: Some(timetable.of(0)),
                quota: &mut self.quota,
                values: None,
                feeding: None,
                index: 0,
                skipped: 0,
                has_begun: false,
            };
            user.step(event, now, &mut scratch)
        }

        fn step(&mut self, user: &mut User, event: Event, now: u64) -> (Action, u16) {
            let mut scratch = Scratch {
                program: &self.program.streams[0],
                random: &mut self.random,
                think: self.think,
                timing: None,
                quota: &mut self.quota,
                values: None,
                feeding: None,
                index: 0,
                skipped: 0,
                has_begun: false,
            };
            let action = user.step(event, now, &mut scratch);
            (action, scratch.skipped)
        }
    }

    const ANSWERED: Event = Event::Ended {
        ends_iteration: false,
        backs_off: false,
    };

    #[test]
    fn a_user_is_at_most_a_cache_line() {
        assert!(size_of::<User>() <= 64, "{}", size_of::<User>());
    }

    #[test]
    fn a_closed_user_thinks_between_steps_and_between_iterations() {
        let mut around = Around::new(None);
        let mut user = User::new(0, Some(2));
        let mut dues = Vec::new();

        let mut action = around.step(&mut user, Event::Join, 0).0;
        let mut now = 0;
        while action != Action::Leave {
            if action == Action::Pause {
                now = user.due;
                action = around.step(&mut user, Event::Due, now).0;
            } else {
                dues.push((user.due, user.step));
                now += 10; // the answer takes 10 ns
                action = around.step(&mut user, ANSWERED, now).0;
            }
        }

        // 0 -> 10, thinks 5, 15 -> 25, thinks 100, 125 -> 135, thinks 5, 140 -> 150
        assert_eq!(dues, [(0, 0), (15, 1), (125, 0), (140, 1)]);
    }

    #[test]
    fn the_rest_of_an_iteration_is_skipped_when_an_extraction_failed() {
        let mut around = Around::new(None);
        let mut user = User::new(0, None);
        around.step(&mut user, Event::Join, 0);
        around.step(&mut user, Event::Due, 0);

        let failed = Event::Ended {
            ends_iteration: true,
            backs_off: false,
        };
        let (action, skipped) = around.step(&mut user, failed, 10);

        assert_eq!(
            (action, skipped, user.step, user.due),
            (Action::Pause, 1, 0, 110)
        );
    }

    #[test]
    fn requests_end_with_the_quota_and_carry_the_numbers_of_their_part() {
        let mut around = Around::new(Some(2));
        around.think = Some(Think::None);
        let mut user = User::new(0, None);
        around.step(&mut user, Event::Join, 0);

        let first = (around.step(&mut user, Event::Due, 0).0, user.seq);
        around.step(&mut user, ANSWERED, 1);
        let second = (around.step(&mut user, Event::Due, 6).0, user.seq);
        let third = around.step(&mut user, ANSWERED, 7).0;

        assert_eq!(
            (first, second, third),
            ((Action::Ask, 3), (Action::Ask, 5), Action::Leave)
        );
    }

    #[test]
    fn failed_connects_are_followed_by_pauses_from_10_ms_to_1_s() {
        let mut around = Around::new(None);
        around.think = Some(Think::None);
        let mut user = User::new(0, None);
        around.step(&mut user, Event::Join, 0);
        around.step(&mut user, Event::Due, 0);
        let mut pauses = Vec::new();

        for _ in 0..9 {
            let failed = Event::Ended {
                ends_iteration: true,
                backs_off: true,
            };
            around.step(&mut user, failed, 1_000);
            pauses.push((user.due - 1_000) / MILLISECOND);
            let due = user.due;
            around.step(&mut user, Event::Due, due);
        }
        around.step(
            &mut user,
            Event::Ended {
                ends_iteration: true,
                backs_off: false,
            },
            5,
        );

        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(user.due, 5);
    }

    fn timetable(workload: serde_json::Value, due: u64) -> Timetable {
        let workload = serde_json::from_value(workload).unwrap();
        let mut timetable = Timetable::new(&workload).unwrap();
        timetable.seat([due].into_iter());
        timetable
    }

    #[test]
    fn a_paced_user_is_due_at_its_pace_however_long_an_answer_takes() {
        let pace =
            serde_json::json!({"kind": "closed", "users": 1, "pace": {"kind": "fixed", "ns": 100}});
        let mut around = Around::new(None);
        around.think = Some(Think::None);
        let mut table = timetable(pace, 0);
        let mut user = User::new(0, Some(4));
        let mut issued = Vec::new();

        around.step(&mut user, Event::Join, 0);
        around.timed(&mut user, &mut table, Event::Due, 0);
        // Two steps with 5 ns between them; the answers of the second iteration take 120 ns each.
        for answer in [10, 10, 120, 120, 10, 10, 10, 10] {
            issued.push((user.due, user.ready, user.step));
            let ended = user.ready + answer;
            if around.timed(&mut user, &mut table, ANSWERED, ended) == Action::Pause {
                let ready = user.ready;
                around.timed(&mut user, &mut table, Event::Due, ready);
            }
        }

        // The second iteration lasts from 100 to 345: the third, due at 200, begins then and is late by 145; it lasts
        // to 370, and the fourth, due at 300, is late by 70.
        let expected = [
            (0, 0, 0),
            (15, 15, 1),
            (100, 100, 0),
            (225, 225, 1),
            (200, 345, 0),
            (360, 360, 1),
            (300, 370, 0),
            (385, 385, 1),
        ];
        assert_eq!(issued, expected);
        assert_eq!(user.phase, Phase::Absent);
    }

    #[test]
    fn a_paced_user_without_a_connection_is_due_at_its_pace_and_ready_after_its_pause() {
        let pace = serde_json::json!({"kind": "closed", "users": 1, "pace": {"kind": "fixed", "ns": 1_000_000}});
        let mut around = Around::new(None);
        around.think = Some(Think::None);
        let mut table = timetable(pace, 0);
        let mut user = User::new(0, None);
        around.step(&mut user, Event::Join, 0);
        around.timed(&mut user, &mut table, Event::Due, 0);

        let failed = Event::Ended {
            ends_iteration: true,
            backs_off: true,
        };
        let action = around.timed(&mut user, &mut table, failed, 500);

        assert_eq!(
            (action, user.due, user.ready),
            (Action::Pause, MILLISECOND, 500 + 10 * MILLISECOND)
        );
    }

    #[test]
    fn a_user_whose_time_has_passed_leaves_after_its_iteration_and_comes_again() {
        // There for 100 ns in every 1000.
        let profile = serde_json::json!({"repeats": true, "segments": [
            {"ns": 100, "start": 1.0, "end": 1.0}, {"ns": 900, "start": 0.0, "end": 0.0},
        ]});
        let mut table = timetable(
            serde_json::json!({"kind": "closed", "users": 1, "profile": profile}),
            0,
        );
        let mut around = Around::new(None);
        around.think = Some(Think::Fixed { ns: 30 });
        let mut user = User::new(0, None);
        around.step(&mut user, Event::Join, 0);
        around.timed(&mut user, &mut table, Event::Due, 0);
        let mut begun = Vec::new();

        while begun.len() < 4 {
            let ready = user.ready;
            if user.step == 0 {
                begun.push(ready);
            }
            if around.timed(&mut user, &mut table, ANSWERED, ready + 20) == Action::Pause {
                let ready = user.ready;
                around.timed(&mut user, &mut table, Event::Due, ready);
            }
        }

        // An iteration is 20 + 5 + 20, then 30 of thought: 0, 75, away from 100 on, 1000, 1075.
        assert_eq!(begun, [0, 75, 1000, 1075]);
    }

    #[test]
    fn a_place_of_an_open_stream_is_free_after_one_iteration() {
        let mut around = Around::new(None);
        around.think = None;
        let mut user = User::new(0, None);

        let begun = around
            .step(
                &mut user,
                Event::Arrive {
                    due: 7,
                    ready: 7,
                    scenario: 0,
                },
                9,
            )
            .0;
        let second = around.step(&mut user, ANSWERED, 20).0;
        around.step(&mut user, Event::Due, 25);
        let left = around.step(&mut user, ANSWERED, 30).0;

        assert_eq!(
            (begun, second, left),
            (Action::Ask, Action::Pause, Action::Leave)
        );
        assert_eq!(user.phase, Phase::Absent);
    }
}
