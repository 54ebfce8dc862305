//! The parts of a request: each against what the server did, and all together against the whole.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use loadlens_origin::Config;
use serde_json::{json, Value};

use crate::harness::{closed, origin, plan, run, shared, stream, Run, Stream, Witness};

/// Delays of one answer: before its first byte, and between its first and its last, in milliseconds.
#[derive(Clone, Copy)]
struct Pauses {
    first_ms: u64,
    last_ms: u64,
}

/// Answers `/a` and `/b` in two pieces with pauses, on as many connections as come.
fn slow_server(a: Pauses, b: Pauses) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for peer in listener.incoming() {
            let Ok(peer) = peer else { return };
            thread::spawn(move || answer_all(peer, a, b));
        }
    });
    port
}

fn answer_all(mut peer: TcpStream, a: Pauses, b: Pauses) {
    // Else the second piece would wait for the acknowledgement of the first, which takes 40 ms by itself.
    let _ = peer.set_nodelay(true);
    let mut request = [0; 1024];
    while let Ok(count @ 1..) = peer.read(&mut request) {
        let pauses = if request[..count].starts_with(b"GET /a") {
            a
        } else {
            b
        };
        thread::sleep(Duration::from_millis(pauses.first_ms));
        let pieces: [&[u8]; 2] = [b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none", b"two"];
        let _ = peer.write_all(pieces[0]);
        thread::sleep(Duration::from_millis(pauses.last_ms));
        let _ = peer.write_all(pieces[1]);
    }
}

fn sum_s(times: &Value) -> f64 {
    let count = times["count"].as_u64().expect("a count") as f64;
    count * times["mean"]["value"].as_f64().unwrap_or(0.0)
}

/// Connecting, first byte and last byte of all successes are their service time, to the nanosecond.
fn check_parts_add_up(load: Stream<'_>) {
    let phases = &load.0["phases_s"];
    let parts = ["connect", "first_byte", "last_byte"].map(|name| sum_s(&phases[name]));
    let whole = sum_s(&load.0["service_time_s"]);
    let gap = (parts.iter().sum::<f64>() - whole).abs();
    assert!(gap < 1e-6 * whole, "{parts:?} are not {whole}");
}

fn two_steps(port: u16, reuse: &str) -> Run {
    let mut load = stream("load", port, "/");
    load["scenarios"][0]["steps"] = json!([
        {"name": "a", "method": "GET", "path": "/a"},
        {"name": "b", "method": "GET", "path": "/b"},
    ]);
    load["workload"] = closed(2, 12);
    load["connection"] = json!({"reuse": {"kind": reuse}});
    run(&plan(vec![load]), Duration::from_secs(30))
}

#[test]
fn each_step_has_its_own_first_and_last_byte() {
    let _machine = shared();
    let pauses = |first_ms, last_ms| Pauses { first_ms, last_ms };
    let port = slow_server(pauses(5, 40), pauses(40, 5));

    let witness = Witness::begin();
    let done = two_steps(port, "keep");
    let late_s = 2.0 * witness.end().p995_s;

    let load = done.only();
    load.check_law();
    let phase = |step: usize, phase: &str| &load.0["steps"][step]["phases_s"][phase];
    let mean = |step: usize, name: &str| phase(step, name)["mean"]["value"].as_f64().expect("one");
    // The server slept at least so long before the first byte, and in all; a busy machine only adds to it.
    assert!(mean(0, "first_byte") >= 0.005 && mean(1, "first_byte") >= 0.040);
    assert!((0..2).all(|step| mean(step, "first_byte") + mean(step, "last_byte") >= 0.045));
    // Who is late for the first byte finds the last one sooner behind it: that takes away from this part, though hardly
    // from each of six.
    let longest = |step: usize| phase(step, "last_byte")["max"].as_f64().expect("one");
    assert!(longest(0) >= 0.040 - late_s, "{}, {late_s}", longest(0));
    assert!(longest(1) >= 0.005 - late_s, "{}, {late_s}", longest(1));
    let of_all = &load.0["phases_s"];
    assert_eq!(
        (
            &of_all["first_byte"]["count"],
            &of_all["last_byte"]["count"]
        ),
        (&json!(12), &json!(12))
    );
}

#[test]
fn connecting_is_no_part_of_the_first_byte() {
    let _machine = shared();
    let pauses = Pauses {
        first_ms: 1,
        last_ms: 1,
    };
    let port = slow_server(pauses, pauses);

    let done = two_steps(port, "new");

    let load = done.only();
    assert_eq!(load.connections("opened"), 12);
    assert_eq!(load.0["phases_s"]["connect"]["count"], 12);
    check_parts_add_up(load);
}

#[test]
fn answers_in_one_piece_have_a_last_byte_of_zero_and_failures_no_phases() {
    let _machine = shared();
    let origin = origin(Config::default());
    let mut good = stream("good", origin.port, "/");
    good["connection"] = json!({"reuse": {"kind": "requests", "requests": 1}});
    let bad = stream("bad", origin.port, "/status?codes=500:1");

    let done = run(&plan(vec![good, bad]), Duration::from_secs(30));

    let phases = &done.stream("good").0["phases_s"];
    assert_eq!(phases["last_byte"]["count"], 10);
    assert_eq!(phases["last_byte"]["max"], 0.0);
    check_parts_add_up(done.stream("good"));
    let of_bad = &done.stream("bad").0["phases_s"];
    assert_eq!(
        (
            &of_bad["first_byte"]["count"],
            &of_bad["last_byte"]["count"]
        ),
        (&json!(0), &json!(0))
    );
    assert_eq!(of_bad["resolve"], Value::Null); // 127.0.0.1 is no name
}
