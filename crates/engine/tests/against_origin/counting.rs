//! Counts: as many as asked, each in one class, none lost or invented.

use std::time::Duration;

use loadlens_origin::{Books, Config};
use serde_json::json;

use crate::harness::{
    check_manners, closed, open, origin, plan, run, run_and, settled, shared, stream, Run, MS,
    SECOND,
};

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn so_many_requests_as_asked_are_sent_and_no_more() {
    let _machine = shared();
    for (requests, users, threads) in [
        (1, 1, 1),
        (1, 8, 2),
        (7, 3, 2),
        (1000, 16, 1),
        (1001, 5, 2),
        (100_000, 100, 2),
    ] {
        let origin = origin(Config::default());
        let mut stream = stream("load", origin.port, "/");
        stream["workload"] = closed(users, requests);
        let mut plan = plan(vec![stream]);
        plan["threads"] = json!(threads);

        let done = run(&plan, LIMIT);
        let books = settled(&origin);

        done.only().check_law();
        let at = format!("{users} users on {threads} threads: {}", done.only().0);
        assert_eq!(done.only().requests("ok"), requests, "{at}");
        assert_eq!(books.received, requests, "{at}");
    }
}

#[test]
fn at_the_end_of_a_closed_run_only_the_unfinished_differ_from_the_books() {
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

    let done = run(&plan, LIMIT);
    let books = settled(&origin);

    let load = done.only();
    load.check_law();
    check_manners(&books);
    assert!(load.requests("in_flight") <= 50);
    let unfinished = load.requests("issued") - load.requests("answered");
    assert_eq!(unfinished, load.requests("in_flight"));
    assert!(books.received <= load.requests("issued"));
    assert!(books.answered >= load.requests("answered"));
    assert!(books.received - load.requests("answered") <= unfinished);
}

/// All that was sent was answered, and nothing was left out; at the very end something due may not have been
/// sent yet, or not answered.
fn check_sent(done: &Run, books: &Books) {
    let load = done.only();
    load.check_law();
    check_manners(books);
    assert_eq!(
        books.received,
        load.requests("issued"),
        "{}",
        load.0["errors"]
    );
    assert_eq!(
        (load.requests("failed"), load.requests("dropped")),
        (0, 0),
        "{}",
        load.0["errors"]
    );
    assert_eq!(
        load.requests("ok") + load.requests("in_flight"),
        load.requests("issued")
    );
}

#[test]
fn constant_arrivals_are_as_many_as_rate_times_duration() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/");
    stream["workload"] = open(1000.0, "constant");
    let mut plan = plan(vec![stream]);
    plan["duration_ns"] = json!(2 * SECOND);
    plan["drain_ns"] = json!(SECOND);

    let done = run(&plan, LIMIT);
    let books = settled(&origin);

    let due = done.only().requests("due");
    assert!((1999..=2001).contains(&due), "{due}");
    check_sent(&done, &books);
}

#[test]
fn poisson_arrivals_are_as_many_as_their_law_allows() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/");
    stream["workload"] = open(2000.0, "poisson");
    let mut plan = plan(vec![stream]);
    plan["duration_ns"] = json!(2 * SECOND);
    plan["drain_ns"] = json!(SECOND);

    let done = run(&plan, LIMIT);

    // Mean 4000, standard deviation 63: four of them.
    let due = done.only().requests("due");
    assert!((3747..=4253).contains(&due), "{due}");
    check_sent(&done, &settled(&origin));
}

#[test]
fn what_is_due_beyond_the_places_is_dropped_and_counted() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/delay/100");
    stream["workload"] = json!({
        "kind": "open", "rate_per_s": 200.0, "arrivals": "constant", "max_in_flight": 5, "overflow": "drop",
    });
    let mut plan = plan(vec![stream]);
    plan["duration_ns"] = json!(SECOND);
    plan["drain_ns"] = json!(SECOND);

    let done = run(&plan, LIMIT);
    let books = settled(&origin);

    let load = done.only();
    load.check_law();
    assert!(
        (199..=201).contains(&load.requests("due")),
        "{}",
        load.0["requests"]
    );
    // Five places of 100 ms are at most 50 a second, and the first five begin at once.
    assert!(
        (40..=55).contains(&load.requests("issued")),
        "{}",
        load.0["requests"]
    );
    assert_eq!(load.requests("waiting"), 0);
    assert_eq!(books.received, load.requests("issued"));
}

#[test]
fn what_is_due_beyond_the_places_waits_and_is_counted_as_waiting_at_the_end() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/delay/100");
    stream["workload"] = json!({
        "kind": "open", "rate_per_s": 200.0, "arrivals": "constant", "max_in_flight": 5, "overflow": "queue",
    });
    let mut plan = plan(vec![stream]);
    plan["duration_ns"] = json!(SECOND);

    let done = run(&plan, LIMIT);
    let books = settled(&origin);

    let load = done.only();
    load.check_law();
    assert_eq!(load.requests("dropped"), 0);
    assert!(load.requests("waiting") >= 140, "{}", load.0["requests"]);
    assert_eq!(books.received, load.requests("issued"));
    // Those who waited longest make the tail: it is above the service time of 100 ms by far.
    let p90 = &load.0["response_time_s"]["p90"];
    let known = p90["value"]
        .as_f64()
        .or(p90["low"].as_f64())
        .expect("a value or a lower bound");
    assert!(known > 0.3, "{p90}");
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

    let done = run(&plan(vec![statuses, checks]), LIMIT);

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
fn a_run_that_is_stopped_keeps_its_counts_and_ends_at_once() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/delay/20");
    stream["workload"] = json!({"kind": "closed", "users": 10});
    let mut plan = plan(vec![stream]);
    plan["duration_ns"] = json!(60 * SECOND);

    let done = run_and(&plan, LIMIT, |run| {
        std::thread::sleep(Duration::from_millis(300));
        run.stop();
    });
    let books = settled(&origin);

    assert_eq!(done.result["status"], "stopped");
    let load = done.only();
    load.check_law();
    assert!(load.requests("answered") >= 10);
    assert!(books.received <= load.requests("issued"));
    assert!(load.requests("answered") <= books.answered);
}

#[test]
fn a_server_that_goes_away_in_the_middle_leaves_every_request_accounted_for() {
    let _machine = shared();
    let mut origin_to_end = Some(origin(Config::default()));
    let port = origin_to_end.as_ref().expect("it runs").port;
    let mut stream = stream("load", port, "/delay/5");
    stream["workload"] =
        json!({"kind": "closed", "users": 10, "think": {"kind": "fixed", "ns": MS}});
    let mut plan = plan(vec![stream]);
    plan["duration_ns"] = json!(SECOND);

    let done = run_and(&plan, LIMIT, |_| {
        std::thread::sleep(Duration::from_millis(500));
        origin_to_end = None;
    });

    let load = done.only();
    load.check_law();
    assert!(load.requests("ok") > 0);
    assert!(load.errors("refused") > 0, "{}", load.0["errors"]);
}
