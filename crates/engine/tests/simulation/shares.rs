//! Division of a load among the threads of a run, and the path of a request to its connection. Counted by hand.

use std::collections::BTreeMap;

use serde_json::{json, Value};

use crate::history::{History, Setting};
use crate::laws::check;
use crate::plans::{simple, world};
use crate::scripted::answer;
use crate::world::{Listens, Nature, World};
use crate::MS;

/// Lives a load on two threads, whose servers take 3 ms for an answer.
fn on_two(plan: Value) -> History {
    let world = || World::scripted(|_| vec![(3 * MS, answer("", "{}"))]);
    let mut setting = Setting::of(plan, world());
    setting.worlds.push(world());
    let history = setting.live();
    check(&history);
    history
}

fn most_open(history: &History) -> Vec<usize> {
    let worlds = history.workers.iter().map(|told| &told.world);
    worlds.map(|world| world.most_open).collect()
}

#[test]
fn threads_share_the_connections_of_a_pool() {
    let mut plan = simple(json!({"kind": "closed", "users": 20}), 50 * MS, 1_000 * MS);
    plan["streams"][0]["connection"] = json!({"reuse": {"kind": "keep"}, "pool": 5});

    assert_eq!(most_open(&on_two(plan)), [3, 2]);
}

#[test]
fn threads_share_the_places_of_an_open_load() {
    let workload = json!({
        "kind": "open", "rate_per_s": 5000.0, "arrivals": "constant", "max_in_flight": 5, "overflow": "queue",
    });

    assert_eq!(
        most_open(&on_two(simple(workload, 50 * MS, 1_000 * MS))),
        [3, 2]
    );
}

#[test]
fn users_begin_evenly_over_the_ramp_whichever_thread_has_them() {
    let think = json!({"kind": "fixed", "ns": 20 * MS});
    let workload = json!({"kind": "closed", "users": 5, "ramp_ns": 50 * MS, "think": think});

    let history = on_two(simple(workload, 100 * MS, 1_000 * MS));

    let mut begin = BTreeMap::new();
    for row in history.rows() {
        let first = begin.entry(row.user).or_insert(row.due_ns);
        *first = row.due_ns.min(*first);
    }
    let expected: Vec<(u32, i64)> = (0..5)
        .map(|user| (user, i64::from(user) * 10 * MS as i64))
        .collect();
    assert_eq!(begin.into_iter().collect::<Vec<_>>(), expected);
    let of_first: Vec<u32> = history.workers[0].rows.iter().map(|row| row.user).collect();
    assert!(of_first.iter().all(|user| user % 2 == 0), "{of_first:?}");
}

#[test]
fn a_request_tries_each_address_once() {
    let workload = json!({"kind": "closed", "users": 1, "requests": 5});
    let mut plan = simple(workload, 1, 1_000 * MS);
    plan["duration_ns"] = json!(null);
    plan["drain_ns"] = json!(100 * MS);

    let history = Setting::of(plan, world(1, 0, Nature::GOOD, &[Listens::Nobody; 3])).live();

    check(&history);
    assert_eq!(history.rows().count(), 5);
    assert_eq!(history.workers[0].world.opened[&80], 15);
}
