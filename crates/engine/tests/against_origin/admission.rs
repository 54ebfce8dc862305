//! Servers that decide before any request: refuse, never accept, end, reset, speak first.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use loadlens_origin::{Admission, Config};
use serde_json::json;

use crate::harness::{closed, origin, plan, run, shared, stream, Run, LIMIT, MS, SECOND};

fn against(config: Config, users: u32, requests: u64) -> Run {
    with_patience(10 * SECOND, config, users, requests)
}

fn with_patience(timeout_ns: u64, config: Config, users: u32, requests: u64) -> Run {
    let _machine = shared();
    let origin = origin(config);
    let mut stream = stream("load", origin.port, "/");
    stream["workload"] = closed(users, requests);
    stream["timeout_ns"] = json!(timeout_ns);
    let done = run(&plan(vec![stream]), LIMIT);
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
    let _machine = shared();
    // A queue of 0 is full with one connection: the others get no answer to their SYN.
    let origin = origin(Config {
        backlog: 0,
        ..with(Admission::Hold)
    });
    let _first = TcpStream::connect(("127.0.0.1", origin.port)).expect("it is taken");
    let until = Instant::now() + LIMIT;
    while origin.counts().accept_queue == 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut stream = stream("load", origin.port, "/");
    stream["workload"] = closed(6, 6);
    stream["timeout_ns"] = json!(300 * MS);

    let done = run(&plan(vec![stream]), LIMIT);

    done.only().check_law();
    assert_eq!(done.only().outcomes(), [("connect_timeout".to_owned(), 6)]);
}

#[test]
fn a_connection_that_nobody_takes_is_a_time_out_of_the_answer() {
    let done = with_patience(300 * MS, with(Admission::Hold), 2, 2);

    assert_eq!(done.only().outcomes(), [("timeout".to_owned(), 2)]);
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

#[test]
fn a_dead_service_is_asked_less_and_less_often() {
    let _machine = shared();
    let origin = origin(with(Admission::Refuse));
    let mut stream = stream("load", origin.port, "/");
    stream["workload"] = json!({"kind": "closed", "users": 4});
    let mut plan = plan(vec![stream]);
    plan["duration_ns"] = json!(1_500 * MS);

    let done = run(&plan, LIMIT);

    // 0, 10, 30, 70, 150, 310, 630, 1270 ms: eight attempts a user at most, fewer where the machine comes late.
    let load = done.only();
    load.check_law();
    let refused = load.errors("refused");
    assert!((4..=32).contains(&refused), "{refused}");
    assert_eq!(load.requests("failed"), refused);
}

#[test]
fn a_name_without_address_is_a_class_of_its_own() {
    let _machine = shared();
    let mut stream = stream("load", 1, "/");
    stream["target"]["host"] = json!("no-such-host.invalid"); // RFC 6761 6.4
    stream["workload"] = closed(1, 2);

    let done = run(&plan(vec![stream]), LIMIT);

    done.only().check_law();
    assert_eq!(done.only().outcomes(), [("resolve".to_owned(), 2)]);
}
