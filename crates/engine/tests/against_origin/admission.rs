//! Servers that decide before any request: refuse, never accept, end, reset, speak first.

use std::time::Duration;

use loadlens_origin::{Admission, Config};
use serde_json::json;

use crate::harness::{closed, origin, plan, run, shared, stream, Run, MS};

fn against(config: Config, users: u32, requests: u64) -> Run {
    let _machine = shared();
    let origin = origin(config);
    let mut stream = stream("load", origin.port, "/");
    stream["workload"] = closed(users, requests);
    stream["timeout_ns"] = json!(300 * MS);
    let done = run(&plan(vec![stream]), Duration::from_secs(30));
    done.only().check_law();
    done
}

fn with(admission: Admission) -> Config {
    Config {
        admission,
        ..Config::default()
    }
}

#[test]
fn a_port_where_nobody_listens_refuses() {
    let done = against(with(Admission::Refuse), 2, 20);

    assert_eq!(done.only().outcomes(), [("refused".to_owned(), 20)]);
}

#[test]
fn a_full_accept_queue_is_a_time_out_of_the_connect() {
    // A backlog of 0 takes one connection, or two; the others get no answer to their SYN.
    let config = Config {
        backlog: 0,
        ..with(Admission::Hold)
    };
    let done = against(config, 6, 6);

    let load = done.only();
    assert!(load.errors("connect_timeout") >= 4, "{}", load.0["errors"]);
    assert_eq!(
        load.errors("connect_timeout") + load.errors("timeout"),
        6,
        "{}",
        load.0["errors"]
    );
}

#[test]
fn a_server_that_ends_each_connection_unheard_gives_no_answers() {
    let done = against(with(Admission::Close), 2, 20);

    let load = done.only();
    assert_eq!(load.requests("answered"), 0);
    // The end may come before or after our request has gone out.
    assert_eq!(
        load.errors("closed_before_response") + load.errors("reset"),
        20,
        "{}",
        load.0["errors"]
    );
}

#[test]
fn a_server_that_resets_each_connection_unheard_gives_resets() {
    let done = against(with(Admission::Reset), 2, 20);

    assert_eq!(done.only().outcomes(), [("reset".to_owned(), 20)]);
}

#[test]
fn bytes_before_any_request_are_never_an_answer() {
    let done = against(with(Admission::Greet), 2, 20);

    let load = done.only();
    assert_eq!(load.requests("answered"), 0, "{}", load.0["requests"]);
    assert_eq!(load.errors("malformed"), 20, "{}", load.0["errors"]);
}

#[test]
fn connections_above_the_servers_limit_fail_and_the_others_go_on() {
    let config = Config {
        max_connections: Some(2),
        ..Config::default()
    };
    let done = against(config, 4, 400);

    let load = done.only();
    assert!(load.requests("ok") > 0);
    assert_eq!(load.requests("ok") + load.requests("failed"), 400);
}
