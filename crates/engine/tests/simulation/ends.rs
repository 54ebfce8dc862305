//! Loads that end by themselves: the end of their measured part, and the length of one without any answer.

use std::collections::HashSet;

use loadlens_base::Outcome;
use loadlens_base::Random;
use serde_json::{json, Value};

use crate::history::{History, Setting};
use crate::laws::check;
use crate::plans::{simple, world};
use crate::world::{Listens, Nature, World};
use crate::MS;

/// A load of one step that only its requests end.
fn until_done(workload: Value) -> Value {
    let mut plan = simple(workload, 1, 1_000 * MS);
    plan["duration_ns"] = json!(null);
    plan["drain_ns"] = json!(1_000 * MS);
    plan
}

fn live(plan: Value, listens: Listens) -> History {
    let history = Setting::of(plan, world(1, 0, Nature::GOOD, &[listens])).live();
    check(&history);
    history
}

#[test]
fn requests_that_are_all_refused_are_counted_at_once_where_nothing_else_ends_the_load() {
    let workload = json!({"kind": "closed", "users": 10, "requests": 1000});

    let history = live(until_done(workload), Listens::Nobody);

    let outcomes: HashSet<u8> = history.rows().map(|row| row.outcome).collect();
    assert_eq!(outcomes, HashSet::from([Outcome::Refused.code()]));
    assert_eq!(history.rows().count(), 1000);
    // Without a pause: a refusal takes a millisecond at most, and each user has some hundred.
    let end = history.workers[0].end.at;
    assert!(end < 200 * MS, "it lasts {} ms", end / MS);
}

#[test]
fn a_user_who_is_refused_pauses_where_a_duration_ends_the_load() {
    let workload = json!({"kind": "closed", "users": 1, "requests": 1000});

    let history = live(simple(workload, 5_000 * MS, 1_000 * MS), Listens::Nobody);

    // At 0, 10, 30, 70, 150, 310, 630, 1270, 2270, 3270 and 4270 ms.
    assert_eq!(history.rows().count(), 11);
}

#[test]
fn a_load_ends_with_its_last_answer_though_its_users_still_pause() {
    let think = json!({"kind": "fixed", "ns": 100 * MS});
    let workload = json!({"kind": "closed", "users": 3, "requests": 10, "think": think});
    let nature = Nature {
        longest: 300_000,
        ..Nature::GOOD
    };

    let plan = until_done(workload);
    let history = Setting::of(plan, World::new(Random::new(1), nature)).live();

    check(&history);
    // The tenth request is the first of the fourth round: after three pauses and four answers.
    let measured = history.collected.measured_ns;
    assert!(
        (300 * MS..302 * MS).contains(&measured),
        "{measured} ns are measured"
    );
    let last = history.rows().map(|row| row.done_ns).max();
    assert_eq!(last, Some(measured as i64 - 1));
    assert!(history.workers[0].end.at < measured + MS, "and so does it");
}
