//! Runs of groups, by hand and against the rows of their requests.

use loadlens_base::Random;
use loadlens_record::rows::SampleRow;
use serde_json::{json, Value};

use crate::history::{History, Setting};
use crate::laws::check;
use crate::world::{Nature, World};
use crate::MS;

/// Steps a, b and c with 7 ms of thought after each, in such groups.
fn plan(workload: &Value, groups: &Value, duration: Option<u64>) -> Value {
    let step = |name: &str| {
        let think = json!({"kind": "fixed", "ns": 7 * MS});
        json!({"name": name, "method": "GET", "path": "/", "think": think})
    };
    json!({
        "schema_version": 1, "seed": 1, "duration_ns": duration, "drain_ns": 100 * MS,
        "streams": [{
            "name": "load", "role": "load", "timeout_ns": 1_000 * MS,
            "target": {"host": "127.0.0.1", "port": 80, "authority": "sim"},
            "scenarios": [{"name": "s", "weight": 1, "steps": [step("a"), step("b"), step("c")], "groups": groups}],
            "workload": workload,
        }],
    })
}

fn live(plan: Value, longest: u64) -> History {
    let nature = Nature {
        longest,
        is_plain: true,
        ..Nature::GOOD
    };
    let history = Setting::of(plan, World::new(Random::new(1), nature)).live();
    check(&history);
    history
}

/// From the due time of the first to the end of the last of each chunk of rows, added.
fn lasted(rows: &[&SampleRow], turn: &[usize], from: fn(&SampleRow) -> i64) -> u64 {
    let runs = rows
        .chunks(5)
        .map(|one| one[turn[turn.len() - 1]].done_ns - from(one[turn[0]]));
    runs.sum::<i64>() as u64
}

#[test]
fn a_run_lasts_from_the_due_time_of_its_first_request_to_its_last_answer() {
    // a, then 2 x (b, c), with a group of its own around c.
    let workload = json!({"kind": "closed", "users": 1, "iterations": 5});
    let groups = json!([
        {"name": "first", "first": 0, "steps": 1, "repeat": 1},
        {"name": "outer", "first": 1, "steps": 2, "repeat": 2},
        {"name": "inner", "first": 2, "steps": 1, "repeat": 1},
    ]);

    let history = live(plan(&workload, &groups, None), 3 * MS);

    let mut rows: Vec<&SampleRow> = history.rows().collect();
    rows.sort_by_key(|row| row.seq);
    let order: Vec<u16> = rows.iter().map(|row| row.step).collect();
    assert_eq!(order, [0, 1, 2, 1, 2].repeat(5));
    let collected = &history.collected;
    let completed: Vec<u64> = collected
        .groups
        .iter()
        .map(|tally| tally.completed)
        .collect();
    assert_eq!(completed, [5, 10, 10]);
    let due = |row: &SampleRow| row.due_ns;
    let sent = |row: &SampleRow| row.sent_ns;
    let turns: [&[&[usize]]; 3] = [&[&[0]], &[&[1, 2], &[3, 4]], &[&[2], &[4]]];
    for (group, turns) in turns.iter().enumerate() {
        let sum = |from| -> u64 { turns.iter().map(|turn| lasted(&rows, turn, from)).sum() };
        let series = &collected.group_series[group];
        assert_eq!(series.response.moments().sum, sum(due), "group {group}");
        assert_eq!(series.service.moments().sum, sum(sent), "group {group}");
    }
}

#[test]
fn a_run_that_the_end_of_the_load_cuts_short_lasted_longer_than_until_then() {
    // 10 users who each take 7 ms of thought between a and b: at 5 ms all are in their first run.
    let workload = json!({"kind": "closed", "users": 10});
    let groups = json!([{"name": "both", "first": 0, "steps": 2, "repeat": 1}]);

    let history = live(plan(&workload, &groups, Some(5 * MS)), MS);

    let both = &history.collected.groups[0];
    assert_eq!((both.due, both.unfinished), (10, 10));
}

#[test]
fn a_run_that_was_due_and_never_begun_is_unfinished() {
    // One place, 100 arrivals in 100 ms, each of which holds the place for at least 14 ms.
    let workload = json!({
        "kind": "open", "rate_per_s": 1000.0, "arrivals": "constant", "max_in_flight": 1, "overflow": "queue",
    });
    let groups = json!([{"name": "all", "first": 0, "steps": 3, "repeat": 1}]);

    let history = live(plan(&workload, &groups, Some(100 * MS)), MS);

    let all = &history.collected.groups[0];
    assert_eq!(all.due, 100);
    assert!(all.completed <= 7, "{all:?}");
    assert_eq!(all.unfinished, 100 - all.completed);
}
