//! Loads that change over time, and users at a pace: what is due when, by hand.

use std::collections::HashSet;

use loadlens_base::Random;
use serde_json::{json, Value};

use crate::history::{History, Setting};
use crate::laws::check;
use crate::plans::simple;
use crate::world::{Nature, World};
use crate::MS;

/// A history without mischief of a service that takes so long at most.
fn quiet(workload: &Value, duration: u64, longest: u64) -> History {
    let nature = Nature {
        longest,
        is_plain: true,
        ..Nature::GOOD
    };
    let plan = simple(workload.clone(), duration, 1_000 * MS);
    let history = Setting::of(plan, World::new(Random::new(1), nature)).live();
    check(&history);
    history
}

const QUICK: u64 = 300_000;

#[test]
fn as_many_users_are_there_as_the_profile_says() {
    // Up to 10 users in 100 ms, 10 for 100 ms, down to none in 100 ms.
    let profile = json!({"segments": [
        {"ns": 100 * MS, "start": 0.0, "end": 10.0},
        {"ns": 100 * MS, "start": 10.0, "end": 10.0},
        {"ns": 100 * MS, "start": 10.0, "end": 0.0},
    ]});
    let workload = json!({"kind": "closed", "users": 10, "profile": profile});

    let history = quiet(&workload, 400 * MS, QUICK);

    let users_within = |part: u64| {
        let (from, until) = ((part * 10 + 1) * MS, (part * 10 + 9) * MS);
        let due_then = |due: i64| (from..until).contains(&(due as u64));
        let rows = history.rows().filter(|row| due_then(row.due_ns));
        rows.map(|row| row.user).collect::<HashSet<_>>().len()
    };
    let there: Vec<usize> = (0..31).map(users_within).collect();
    // Within 10 ms the level passes no whole number, so the number of users is the level, rounded up.
    let (up, down) = (1..=10, (1..=10).rev());
    let expected: Vec<usize> = up.chain([10; 10]).chain(down).chain([0]).collect();
    assert_eq!(there, expected);
    let end = history.workers[0].end.at;
    assert!(
        end < 325 * MS,
        "all have left by then, and it ends at {end}"
    ); // within a wait
}

#[test]
fn paced_requests_are_due_at_their_pace_and_those_never_begun_are_waiting() {
    let pace = json!({"kind": "fixed", "ns": 10 * MS});
    let workload = json!({"kind": "closed", "users": 3, "pace": pace});

    let kept = quiet(&workload, 200 * MS, QUICK);
    let stuck = quiet(&workload, 200 * MS, 3_000 * MS);

    // 3 users, 20 due times each, whatever the service does.
    for history in [&kept, &stuck] {
        let mut due: Vec<u64> = history.rows().map(|row| row.due_ns as u64).collect();
        due.sort_unstable();
        let expected: Vec<u64> = (0..60).map(|at| at / 3 * 10 * MS).collect();
        assert_eq!(due, expected);
    }
    let waiting = |history: &History| history.workers[0].end.unfinished[0].waiting;
    assert_eq!(waiting(&kept), 0);
    assert!(waiting(&stuck) > 50, "{}", waiting(&stuck));
}

#[test]
fn an_open_load_is_due_along_its_profile_and_ends_with_it() {
    // 1,000/s for 10 ms, nothing for 20 ms, then up to 2,000/s in 20 ms and down to nothing in 20 ms.
    let profile = json!({"segments": [
        {"ns": 10 * MS, "start": 1000.0, "end": 1000.0},
        {"ns": 20 * MS, "start": 0.0, "end": 0.0},
        {"ns": 20 * MS, "start": 0.0, "end": 2000.0},
        {"ns": 20 * MS, "start": 2000.0, "end": 0.0},
    ]});
    let workload =
        json!({"kind": "open", "profile": profile, "max_in_flight": 50, "overflow": "queue"});

    let history = quiet(&workload, 200 * MS, QUICK);

    let parts = [(0, 10), (10, 30), (30, 40), (40, 50), (50, 200)];
    let arrivals = parts.map(|(from, until)| {
        let due = history.rows().map(|row| row.due_ns as u64 / MS);
        due.filter(|due| (from..until).contains(due)).count()
    });
    // Integrals: 10, 0, 5 + 15 of the two halves of the rise, 20 of the fall.
    assert_eq!(arrivals, [10, 0, 5, 15, 20]);
    let end = history.workers[0].end.at;
    assert!(end < 95 * MS, "it ends at {end}"); // within a wait of its end
}
