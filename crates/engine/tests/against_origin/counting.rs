//! Counts: as many as asked, each in one class, none lost or invented.

use loadlens_origin::Config;
use serde_json::json;

use crate::harness::{closed, meet, open, origin, plan, shared, stream, Run, Witness, SECOND};

#[test]
fn so_many_requests_as_asked_are_sent_and_no_more() {
    let _machine = shared();
    for (requests, users, threads) in [
        (1, 1, 1),
        (1, 8, 2),
        (7, 3, 2),
        (1000, 16, 1),
        (1001, 10, 3),
        (100_000, 100, 2),
    ] {
        let origin = origin(Config::default());
        let mut stream = stream("load", origin.port, "/");
        stream["workload"] = closed(users, requests);
        let mut plan = plan(vec![stream]);
        plan["threads"] = json!(threads);

        let (done, counts) = meet(&origin, &plan);

        let at = format!("{users} users on {threads} threads: {}", done.only().0);
        assert_eq!(done.only().requests("ok"), requests, "{at}");
        assert_eq!(
            (counts.received, counts.answered),
            (requests, requests),
            "{at}"
        );
        assert!(
            done.result["generator"]["threads"].as_u64() <= Some(threads),
            "{at}"
        );
    }
}

#[test]
fn at_the_end_of_a_closed_run_only_the_unfinished_differ_from_the_counts() {
    let _machine = shared();
    let origin = origin(Config {
        threads: 2,
        ..Config::default()
    });
    let mut stream = stream("load", origin.port, "/");
    stream["workload"] = json!({"kind": "closed", "users": 50});
    let mut plan = plan(vec![stream]);
    plan["threads"] = json!(2);
    plan["duration_ns"] = json!(SECOND);

    let (done, counts) = meet(&origin, &plan);

    let load = done.only();
    assert!(load.requests("in_flight") <= 50);
    let unfinished = load.requests("issued") - load.requests("answered");
    assert_eq!(unfinished, load.requests("in_flight"));
    assert!(counts.received <= load.requests("issued"));
    assert!(counts.answered >= load.requests("answered"));
    assert!(counts.received - load.requests("answered") <= unfinished);
}

/// Runs an open workload for 2 s and the time that its last requests need.
///
/// All that was sent was answered, and nothing was left out; at the very end something due may not have been sent
/// yet, or not answered.
fn arrive(rate_per_s: f64, arrivals: &str, threads: u32) -> u64 {
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/");
    stream["workload"] = open(rate_per_s, arrivals);
    let mut plan = plan(vec![stream]);
    plan["threads"] = json!(threads);
    plan["duration_ns"] = json!(2 * SECOND);
    plan["drain_ns"] = json!(5 * SECOND); // it ends with the last answer

    let (done, counts) = meet(&origin, &plan);

    let load = done.only();
    let errors = &load.0["errors"];
    load.check_received(counts.received);
    assert_eq!(
        (load.requests("failed"), load.requests("dropped")),
        (0, 0),
        "{errors}"
    );
    assert_eq!(
        load.requests("ok") + load.requests("in_flight"),
        load.requests("issued")
    );
    load.requests("due")
}

#[test]
fn constant_arrivals_are_exactly_as_many_as_rate_times_duration() {
    let _machine = shared();

    assert_eq!(arrive(1000.0, "constant", 1), 2000);
    assert_eq!(arrive(500.0, "constant", 2), 1000);
}

#[test]
fn poisson_arrivals_are_as_many_as_their_law_allows() {
    let _machine = shared();

    let due = arrive(2000.0, "poisson", 1);

    // Mean 4000, standard deviation 63: four of them.
    assert!((3747..=4253).contains(&due), "{due}");
}

/// 200 arrivals within a second, for which there are five places of 100 ms each: 50 a second at most.
/// The run, and for how long the machine was away in it.
fn overload(overflow: &str) -> (Run, f64) {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/delay/100");
    stream["workload"] = json!({
        "kind": "open", "rate_per_s": 200.0, "arrivals": "constant", "max_in_flight": 5, "overflow": overflow,
    });
    let mut plan = plan(vec![stream]);
    plan["duration_ns"] = json!(SECOND);

    let witness = Witness::begin();
    let (done, counts) = meet(&origin, &plan);
    let away_s = witness.end().away_s;

    let requests = &done.only().0["requests"];
    assert_eq!(requests["due"], 200, "{requests}");
    done.only().check_received(counts.received);
    // The first five begin at once; each place serves ten in the second, and none while the machine is away.
    let issued = done.only().requests("issued");
    let least = 40.0 - 50.0 * away_s;
    assert!(issued as f64 >= least, "{requests}, away for {away_s} s");
    assert!(issued <= 55, "{requests}");
    (done, away_s)
}

#[test]
fn what_is_due_beyond_the_places_is_dropped_and_counted() {
    let (done, away_s) = overload("drop");

    let load = done.only();
    // What was due as a place was free, and met the end before it had gone out.
    let waiting = load.requests("waiting");
    assert!(
        waiting as f64 <= 1.0 + 200.0 * away_s,
        "{waiting} in {away_s} s"
    );
    assert_eq!(
        load.requests("dropped"),
        200 - load.requests("issued") - waiting
    );
}

#[test]
fn what_is_due_beyond_the_places_waits_and_is_counted_as_waiting_at_the_end() {
    let (done, _) = overload("queue");

    let load = done.only();
    assert_eq!(load.requests("dropped"), 0);
    assert_eq!(load.requests("waiting"), 200 - load.requests("issued"));
    // Those who waited longest make the tail, and some have waited nearly from the beginning.
    let times = &load.0["response_time_s"];
    let p90 = &times["p90"];
    let at_least = p90["value"].as_f64().or(p90["low"].as_f64());
    assert!(at_least > Some(0.3), "{p90}");
    assert!(times["max"].as_f64() > Some(0.6), "{times}");
    assert_eq!(
        times["censored"].as_u64(),
        Some(load.requests("waiting") + load.requests("in_flight"))
    );
}

#[test]
fn statuses_and_checks_are_judged_apart_from_failures() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut statuses = stream("statuses", origin.port, "/status?codes=200:7,500:2,404:1");
    statuses["workload"] = closed(1, 100);
    let mut checks = stream("checks", origin.port, "/json");
    checks["workload"] = closed(1, 10);
    checks["scenarios"][0]["steps"][0]["checks"] =
        json!([{"kind": "contains", "text": "not in there"}]);

    let (done, _) = meet(&origin, &plan(vec![statuses, checks]));

    let statuses = done.stream("statuses");
    assert_eq!(
        (
            statuses.requests("ok"),
            statuses.requests("unexpected_status")
        ),
        (70, 30)
    );
    assert_eq!(
        statuses.0["status"],
        json!({"200": 70, "404": 10, "500": 20})
    );
    assert_eq!(statuses.requests("failed"), 0);
    assert_eq!(done.stream("checks").requests("check_failed"), 10);
}

#[test]
fn the_first_answer_of_each_size_is_kept_with_the_beginning_of_its_body() {
    let _machine = shared();
    let origin = origin(Config::default());
    // 10 and 11 bytes are of one size, to a quarter of an octave.
    let mut stream = stream("load", origin.port, "/bytes/{{choice 10 11 3000}}");
    stream["workload"] = closed(2, 300);

    let (done, _) = meet(&origin, &plan(vec![stream]));

    let kept = done.only().0["usual_answers"].as_array().unwrap();
    let sizes: Vec<u64> = kept
        .iter()
        .map(|answer| answer["body_bytes"].as_u64().unwrap())
        .collect();
    let lengths: Vec<usize> = kept
        .iter()
        .map(|answer| answer["body"].as_str().unwrap().len())
        .collect();
    assert!(matches!(sizes[..], [10 | 11, 3000]), "{sizes:?}");
    assert_eq!(lengths, [sizes[0] as usize, 160]);
}
