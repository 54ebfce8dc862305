//! Order of those that wait: for a place, for a connection, for one of the idle connections. Counted by hand.

use loadlens_base::Random;
use serde_json::{json, Value};

use crate::history::{History, Setting};
use crate::laws::check;
use crate::plans::{simple, world};
use crate::scripted::answer;
use crate::world::{Listens, Nature, World};
use crate::MS;

fn live(setting: Setting) -> History {
    let history = setting.live();
    check(&history);
    history
}

/// Value of `of` for the issued requests of a history, in the order in which they were issued.
fn in_order<T>(history: &History, of: fn(&loadlens_record::rows::SampleRow) -> T) -> Vec<T> {
    let mut issued: Vec<_> = history.rows().filter(|row| row.sent_ns >= 0).collect();
    issued.sort_by_key(|row| row.sent_ns);
    issued.into_iter().map(of).collect()
}

/// A server that takes so long for each request.
fn steady(ns: u64) -> World {
    World::scripted(move |_| vec![(ns, answer("", "{}"))])
}

#[test]
fn arrivals_that_wait_for_a_place_begin_in_the_order_in_which_they_were_due() {
    // One place, an arrival each millisecond, 10 ms for each answer, two scenarios that are drawn.
    let workload = json!({
        "kind": "open", "rate_per_s": 1000.0, "arrivals": "constant", "max_in_flight": 1, "overflow": "queue",
    });
    let mut plan = simple(workload, 60 * MS, 1_000 * MS);
    let step = |name: &str| json!([{"name": name, "method": "GET", "path": format!("/{name}")}]);
    plan["streams"][0]["scenarios"] = json!([
        {"name": "s", "weight": 1, "steps": step("a")}, {"name": "t", "weight": 1, "steps": step("b")},
    ]);

    let history = live(Setting::of(plan, steady(10 * MS)));

    // Begun at 0 and, with the connect and some microseconds each, soon after 10, 20, 30, 40 and 50 ms.
    let expected: Vec<i64> = (0..6).map(|at| at * MS as i64).collect();
    assert_eq!(in_order(&history, |row| row.due_ns), expected);
    // The draw of an arrival is the same when it becomes due and when it begins: `check` compares step by step.
    let steps = in_order(&history, |row| row.step);
    assert!(steps.contains(&0) && steps.contains(&1), "{steps:?}");
    assert_eq!(history.rows().count(), 60);
    // The wait for the place is the service's doing: our own lag is what the loop takes.
    let lag = &history.collected.phases[1][0].sum.lag.moments;
    assert_eq!(lag.count, 6);
    assert!(lag.sum > 0 && lag.max < MS, "{lag:?}");
}

#[test]
fn users_of_a_pool_take_turns() {
    for reuse in ["keep", "new"] {
        let workload = json!({"kind": "closed", "users": 4, "requests": 12});
        let mut plan = simple(workload, 1_000 * MS, 1_000 * MS);
        plan["streams"][0]["connection"] = json!({"reuse": {"kind": reuse}, "pool": 1});

        let history = live(Setting::of(plan, steady(MS)));

        let users = in_order(&history, |row| row.user);
        assert_eq!(users, [0, 1, 2, 3].repeat(3), "{reuse}");
    }
}

#[test]
fn whoever_waits_for_a_connection_keeps_its_turn_when_another_one_fails_to_connect() {
    // No listener: each connect fails at once or soon, and its user pauses for 10 ms, then for 20.
    let workload = json!({"kind": "closed", "users": 5});
    for addresses in [&[Listens::Nobody][..], &[Listens::Nobody; 3]] {
        let mut plan = simple(workload.clone(), 9 * MS, 1_000 * MS);
        plan["streams"][0]["connection"] = json!({"reuse": {"kind": "keep"}, "pool": 1});

        let history = live(Setting::of(plan, world(3, 0, Nature::GOOD, addresses)));

        assert_eq!(
            in_order(&history, |row| row.user),
            [0, 1, 2, 3, 4],
            "{addresses:?}"
        );
    }
}

#[test]
fn the_connection_that_was_idle_longest_is_used_first() {
    // Three overlap and end in the order third, second, first; every later one finds all three idle.
    let mut asked = 0;
    let world = World::scripted(move |_| {
        asked += 1;
        let took = [29, 18, 7].get(asked - 1).map_or(MS / 2, |ms| ms * MS);
        vec![(took, answer("", "{}"))]
    });
    let workload: Value = json!({
        "kind": "open", "rate_per_s": 100.0, "arrivals": "constant", "max_in_flight": 5, "overflow": "drop",
    });

    let history = live(Setting::of(simple(workload, 120 * MS, 1_000 * MS), world));

    let used = in_order(&history, |row| row.connection);
    assert_eq!(used, [0, 1, 2, 2, 1, 0, 2, 1, 0, 2, 1, 0]);
}

#[test]
fn every_sixty_fourth_connect_is_tried_at_once_where_the_others_take_a_round_trip() {
    let plan = |reuse: &str| {
        let workload = json!({"kind": "closed", "users": 1, "requests": 200});
        let mut plan = simple(workload, 10_000 * MS, 1_000 * MS);
        plan["streams"][0]["connection"] = json!({"reuse": {"kind": reuse}});
        plan
    };
    let quiet = |stands_at_once: u64| {
        let nature = Nature {
            stands_at_once,
            ..Nature::GOOD
        };
        let history = live(Setting::of(plan("new"), World::new(Random::new(1), nature)));
        assert_eq!(history.rows().count(), 200);
        history.workers[0].world.quiet_connects
    };

    assert_eq!(quiet(1000), 200);
    assert_eq!(quiet(0), 4); // numbers 0, 64, 128 and 192
}
