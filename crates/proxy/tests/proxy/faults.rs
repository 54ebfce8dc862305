//! Faults: each does what it says as often as it says, and counts what it did.

use std::time::{Duration, Instant};

use loadlens_origin::{Config, Origin};
use serde_json::{json, Value};

use crate::harness::{proxy, Client, Heard, Running};

fn origin() -> Origin {
    Origin::start(Config::default()).expect("the origin starts")
}

fn with_faults(origin: &Origin, faults: Value) -> Running {
    proxy(origin.port, json!({ "faults": faults }))
}

/// Good answers, other answers and broken connections of `count` requests; a broken connection is replaced.
fn ask(front: &Running, count: u64, path: &str) -> (u64, u64, u64) {
    let (mut ok, mut other, mut broken) = (0, 0, 0);
    let mut client = front.client();
    for _ in 0..count {
        match client.get(path) {
            Heard::Answer { status: 200, .. } => ok += 1,
            Heard::Answer { .. } => other += 1,
            Heard::Ended(_) | Heard::Reset(_) => {
                broken += 1;
                client = front.client();
            }
        }
    }
    (ok, other, broken)
}

/// True if a count lies within five standard deviations of a binomial's mean.
fn is_share(found: u64, of: u64, share: f64) -> bool {
    let (of, found) = (of as f64, found as f64);
    (found - of * share).abs() < 5.0 * (of * share * (1.0 - share)).sqrt()
}

#[test]
fn as_many_are_reset_as_the_share_says_and_the_service_never_sees_them() {
    let origin = origin();
    let front = with_faults(&origin, json!({"reset": {"share": 0.2, "seed": 5}}));

    let (ok, other, broken) = ask(&front, 2000, "/bytes/5");

    assert_eq!((ok + broken, other), (2000, 0));
    assert!(is_share(broken, 2000, 0.2), "{broken} of 2000");
    assert_eq!(origin.counts().received, ok);
    let counts = front.counts();
    assert_eq!(counts.injected("reset"), broken);
    assert_eq!(
        (counts.outcome("reset"), counts.outcome("passed")),
        (broken, ok)
    );
    counts.assert_balanced();
}

#[test]
fn a_reset_at_the_answer_comes_after_the_service_has_worked() {
    let origin = origin();
    let front = with_faults(&origin, json!({"reset": {"share": 1.0, "at": "response"}}));

    let heard: Vec<Heard> = (0..3).map(|_| front.client().get("/bytes/5")).collect();

    assert!(
        heard.iter().all(|one| *one == Heard::Reset(Vec::new())),
        "{heard:?}"
    );
    assert_eq!(origin.counts().answered, 3);
    assert_eq!(
        origin.counts().connections.accepted,
        1,
        "the service's connection is kept"
    );
    front
        .counts_when(|counts| counts.get("in_flight") == 0)
        .assert_balanced();
}

#[test]
fn a_reset_within_the_body_comes_after_half_of_it() {
    let origin = origin();
    let front = with_faults(&origin, json!({"reset": {"share": 1.0, "at": "body"}}));

    for (size, half) in [(1000, 500), (300_001, 150_000)] {
        let Heard::Reset(got) = front.client().get(&format!("/bytes/{size}")) else {
            panic!("no reset");
        };
        let head = got
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .expect("a head")
            + 4;
        assert_eq!(got.len() - head, half);
    }
    let Heard::Reset(got) = front.client().get("/bytes/0") else {
        panic!("no reset");
    };
    assert!(
        got.starts_with(b"HTTP/1.1 200") && !got.ends_with(b"\r\n\r\n"),
        "{got:?}"
    );
    assert_eq!(front.counts().injected("reset"), 3);
}

#[test]
fn a_share_of_the_requests_is_answered_with_the_error() {
    let origin = origin();
    let front = with_faults(
        &origin,
        json!({"errors": {"share": 0.1, "status": 502, "seed": 2}}),
    );

    let (ok, other, broken) = ask(&front, 2000, "/bytes/5");

    assert_eq!((ok + other, broken), (2000, 0));
    assert!(is_share(other, 2000, 0.1), "{other} of 2000");
    assert_eq!(origin.counts().received, ok);
    let counts = front.counts();
    assert_eq!(
        (counts.injected("error"), counts.outcome("error")),
        (other, other)
    );
    counts.assert_balanced();
}

#[test]
fn the_same_seed_does_the_same_to_the_same_requests() {
    let origin = origin();
    let fates = |seed: u64| -> Vec<u16> {
        let front = with_faults(&origin, json!({"errors": {"share": 0.5, "seed": seed}}));
        let mut client = front.client();
        (0..64).map(|_| client.get("/bytes/1").status()).collect()
    };

    assert_eq!(fates(9), fates(9));
    assert_ne!(fates(9), fates(10));
}

#[test]
fn a_dropped_request_is_never_answered_on_a_connection_that_stays_open() {
    let origin = origin();
    let front = with_faults(&origin, json!({"drop": {"share": 1.0}}));
    let mut client = front.client();
    client
        .0
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();

    client.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let heard = std::io::Read::read(&mut client.0, &mut [0; 16]);

    assert_eq!(heard.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    let counts = front.counts_when(|counts| counts.injected("drop") == 1);
    assert_eq!(origin.counts().received, 0);
    assert_eq!(
        (counts.injected("drop"), counts.get("connections_open")),
        (1, 1)
    );
    counts.assert_balanced();
    drop(client);
    assert_eq!(
        front
            .counts_when(|counts| counts.get("connections_open") == 0)
            .get("connections_open"),
        0
    );
}

#[test]
fn delays_add_up_to_what_was_drawn_and_none_is_shorter() {
    let origin = origin();
    let fixed = json!({"kind": "fixed", "ns": 15_000_000});
    let front = with_faults(
        &origin,
        json!({"delay": {"request": fixed, "response": {"kind": "uniform", "low_ns": 5_000_000, "high_ns": 10_000_000}}}),
    );
    let mut client = front.client();

    for _ in 0..20 {
        let began = Instant::now();
        assert_eq!(client.get("/bytes/5").status(), 200);
        assert!(began.elapsed() >= Duration::from_millis(20));
    }

    let counts = front.counts();
    assert_eq!(
        (
            counts.injected("delay_request"),
            counts.injected("delay_response")
        ),
        (20, 20)
    );
    let drawn_s = counts.exact("delayed_seconds_total");
    assert!((0.4..=0.5).contains(&drawn_s), "{drawn_s}");
}

#[test]
fn a_delay_before_the_request_is_over_before_it_takes_a_place() {
    let origin = origin();
    let front = with_faults(
        &origin,
        json!({
            "delay": {"request": {"kind": "fixed", "ns": 1_500_000_000}},
            "admit": {"in_flight": 1, "queue": 0},
        }),
    );
    let mut client = front.client();

    client.say("GET /bytes/1 HTTP/1.1\r\nHost: a\r\n\r\n");
    let during = front.counts_when(|counts| counts.get("requests_total") == 1);

    assert_eq!(during.get("in_flight"), 0);
    assert_eq!(client.hear().status(), 200);
}

#[test]
fn an_answer_takes_its_length_by_the_bandwidth() {
    let origin = origin();
    let front = with_faults(&origin, json!({"bandwidth": {"rate": 1_000_000}}));

    let began = Instant::now();
    let heard = front.client().get("/bytes/300000");
    let took_s = began.elapsed().as_secs_f64();

    assert_eq!(heard.body().len(), 300_000);
    assert!(took_s >= 0.3, "{took_s} s for 300 kB at 1 MB/s");
}

#[test]
fn a_shared_bandwidth_is_shared() {
    let origin = origin();
    let front = with_faults(
        &origin,
        json!({"bandwidth": {"rate": 1_000_000, "shared": true}}),
    );
    let port = front.port;

    let began = Instant::now();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(move || Client::connect(port).get("/bytes/100000").body().len())
        })
        .collect();
    let bytes: usize = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    let took_s = began.elapsed().as_secs_f64();

    assert_eq!(bytes, 400_000);
    assert!(took_s >= 0.4, "{took_s} s for 400 kB at 1 MB/s");
}

#[test]
fn a_request_takes_its_length_by_the_bandwidth_when_that_is_of_requests() {
    let origin = origin();
    let front = with_faults(
        &origin,
        json!({"bandwidth": {"rate": 1_000_000, "of": "request"}}),
    );
    let mut client = front.client();
    let body = "y".repeat(200_000);

    let began = Instant::now();
    client.say(format!(
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n{body}"
    ));
    let heard = client.hear();

    assert_eq!(heard.body(), body.as_bytes());
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[test]
fn a_connection_above_the_bound_is_reset() {
    let origin = origin();
    let front = with_faults(&origin, json!({"connections": {"most": 2}}));
    let (mut one, mut two) = (front.client(), front.client());
    assert_eq!(
        (one.get("/bytes/1").status(), two.get("/bytes/1").status()),
        (200, 200)
    );

    let refused = front.hear_unasked();
    drop(one);
    front.counts_when(|counts| counts.get("connections_open") == 1);
    let taken = front.client().get("/bytes/1");

    assert_eq!(refused, Heard::Reset(Vec::new()));
    assert_eq!(taken.status(), 200);
    assert_eq!(front.counts().injected("connection"), 1);
    assert_eq!(two.get("/bytes/1").status(), 200);
}

#[test]
fn a_connection_that_is_held_back_is_served_when_another_ends() {
    let origin = origin();
    let front = with_faults(
        &origin,
        json!({"connections": {"most": 1, "above": "hold"}}),
    );
    let mut first = front.client();
    assert_eq!(first.get("/bytes/1").status(), 200);
    let mut second = front.client();
    second.say("GET /bytes/1 HTTP/1.1\r\nHost: a\r\n\r\n");
    std::thread::sleep(Duration::from_millis(50));

    let held = front.counts().get("connections_total");
    drop(first);

    assert_eq!(held, 1);
    assert_eq!(second.hear().status(), 200);
    assert_eq!(front.counts().get("connections_total"), 2);
}
