//! One user, driven by events with times set by hand.

use super::*;
use loadlens_plan::arrival::timetable::Timetable;
use loadlens_plan::program::Program;
use loadlens_plan::{Plan, Share};

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
            quota: Quota::new(requests, &Part::new(Share::default(), 3, 4)),
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
            feed_cursors: None,
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
            feed_cursors: None,
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
        ((Action::Ask, 3), (Action::Ask, 7), Action::Leave)
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
