//! Connection policies, by the number of connections that the server accepted.

use loadlens_origin::Config;
use serde_json::{json, Value};

use crate::harness::{closed, meet, origin, plan, shared, stream};

/// Runs `workload` on `/` under a connection policy; connections that the engine says it opened, and the
/// server's counts.
fn connections_of(
    workload: Value,
    connection: Value,
    threads: u32,
) -> (u64, loadlens_origin::Counts) {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/");
    stream["workload"] = workload;
    stream["connection"] = connection;
    let mut plan = plan(vec![stream]);
    plan["threads"] = json!(threads);

    let (done, counts) = meet(&origin, &plan);

    assert_eq!(counts.received, done.only().requests("issued"));
    assert_eq!(counts.answered, done.only().requests("ok"));
    (done.only().connections("opened"), counts)
}

#[test]
fn kept_connections_are_one_for_each_user() {
    for threads in [1, 2] {
        let (opened, counts) =
            connections_of(closed(8, 800), json!({"reuse": {"kind": "keep"}}), threads);

        assert_eq!((opened, counts.connections.accepted), (8, 8));
        assert_eq!(counts.received, 800);
    }
}

#[test]
fn new_connections_are_one_for_each_request() {
    let (opened, counts) = connections_of(closed(4, 200), json!({"reuse": {"kind": "new"}}), 1);

    assert_eq!((opened, counts.connections.accepted), (200, 200));
    assert_eq!(counts.path("/").connections, 200);
}

#[test]
fn a_connection_for_ten_requests_is_used_for_exactly_ten() {
    let workload = json!({"kind": "closed", "users": 2, "iterations": 50});
    let (opened, counts) = connections_of(
        workload,
        json!({"reuse": {"kind": "requests", "requests": 10}}),
        1,
    );

    assert_eq!((opened, counts.connections.accepted), (10, 10));
    assert_eq!(counts.received, 100);
}

#[test]
fn users_of_a_pool_share_its_connections() {
    let connection = json!({"reuse": {"kind": "keep"}, "pool": 3});
    let (opened, counts) = connections_of(closed(12, 300), connection, 1);

    assert_eq!((opened, counts.connections.accepted), (3, 3));
    assert_eq!(counts.received, 300);
}

#[test]
fn waiting_for_a_connection_of_a_pool_is_response_time_and_neither_service_time_nor_lateness() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/delay/10");
    stream["workload"] = closed(8, 80);
    stream["connection"] = json!({"reuse": {"kind": "keep"}, "pool": 2});

    let (done, _) = meet(&origin, &plan(vec![stream]));

    let median = |times: &str| done.only().seconds(times, "p50").value;
    // Eight users on two connections of 10 ms each: a round takes 40 ms, of which 10 are service.
    assert!(median("response_time_s") > 2.5 * median("service_time_s"));
    assert!(median("lag_s") < 0.005);
}

#[test]
fn a_limit_that_the_server_announces_costs_connections_and_no_request() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut stream = stream("load", origin.port, "/bad/limit_3_said");
    stream["workload"] = json!({"kind": "closed", "users": 2, "iterations": 30});

    let (done, counts) = meet(&origin, &plan(vec![stream]));

    assert_eq!(done.only().requests("ok"), 60);
    assert_eq!(counts.connections.accepted, 20); // 30 requests in threes, twice
    assert_eq!(done.only().connections("closed_by_server"), 20);
}
