//! Admission: bounds of requests at the service and of waiting ones, waiting times, and answers to the others.

use std::time::{Duration, Instant};

use loadlens_origin::{Config, Origin, ServedLog};
use serde_json::json;

use crate::harness::{proxy, Client, Running};

fn origin() -> Origin {
    Origin::start(Config {
        log_rows: 10_000,
        ..Config::default()
    })
    .expect("the origin starts")
}

/// The most requests that the service had at the same moment, by its own log.
fn most_at_once(log: &ServedLog) -> i64 {
    let mut moments: Vec<(u64, i64)> = log
        .rows
        .iter()
        .flat_map(|row| [(row.received_ns, 1), (row.answered_ns, -1)])
        .collect();
    moments.sort_unstable(); // an end before a beginning at the same nanosecond
    let mut there = 0;
    moments
        .iter()
        .map(|(_, change)| {
            there += change;
            there
        })
        .max()
        .unwrap_or(0)
}

/// As many clients as given ask again and again, each in a thread; the statuses of all, in any order.
fn statuses(front: &Running, clients: usize, each: usize, path: &'static str) -> Vec<u16> {
    let port = front.port;
    let threads: Vec<_> = (0..clients)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Client::connect(port);
                (0..each)
                    .map(|_| client.get(path).status())
                    .collect::<Vec<u16>>()
            })
        })
        .collect();
    threads
        .into_iter()
        .flat_map(|thread| thread.join().expect("the client ends"))
        .collect()
}

#[test]
fn the_service_never_has_more_than_its_places_and_they_are_all_in_use() {
    let origin = origin();
    let front = proxy(
        origin.port,
        json!({"faults": {"admit": {"in_flight": 3, "queue": 100}}}),
    );
    let (clients, each, service_s) = (12, 30, 0.02);

    let all = statuses(&front, clients, each, "/delay/20");

    assert!(all.iter().all(|status| *status == 200));
    let log = origin.log();
    assert_eq!(most_at_once(&log), 3);
    let first = log.rows.iter().map(|row| row.received_ns).min().unwrap();
    let last = log.rows.iter().map(|row| row.answered_ns).max().unwrap();
    let span_s = (last - first) as f64 / 1e9;
    let rate = all.len() as f64 / span_s;
    // N / S is the ceiling, whatever the machine does; how near it comes depends on how busy the machine is.
    let ceiling = 3.0 / service_s;
    assert!(rate <= ceiling * 1.001, "{rate} above {ceiling}");
    assert!(rate > ceiling * 0.5, "{rate} of {ceiling}");
    let counts = front.counts();
    assert_eq!(counts.get("in_flight_most"), 3);
    assert_eq!(counts.get("queue_length_most"), (clients - 3) as u64);
    assert_eq!(counts.outcome("passed"), (clients * each) as u64);
    assert_eq!(counts.get("forwarded_total"), origin.counts().received);
    counts.assert_balanced();
}

#[test]
fn the_queue_takes_exactly_as_many_as_it_has_room_for() {
    let origin = origin();
    let front = proxy(
        origin.port,
        json!({"faults": {"admit": {"in_flight": 1, "queue": 2, "retry_after_s": 7}}}),
    );
    let mut clients: Vec<Client> = (0..10).map(|_| front.client()).collect();

    for (asked, client) in clients.iter_mut().enumerate() {
        client.say("GET /delay/1500 HTTP/1.1\r\nHost: a\r\n\r\n");
        front.counts_when(|counts| counts.get("requests_total") == asked as u64 + 1);
    }
    let heard: Vec<_> = clients.iter_mut().map(Client::hear).collect();

    let statuses: Vec<u16> = heard.iter().map(|heard| heard.status()).collect();
    assert_eq!(statuses, [&[200; 3][..], &[503; 7]].concat());
    assert!(
        heard[9].head().contains("\r\nRetry-After: 7\r\n"),
        "{heard:?}"
    );
    assert!(
        heard[9].head().contains("\r\nLoadlens-Proxy: "),
        "{heard:?}"
    );
    let counts = front.counts();
    assert_eq!(
        (counts.outcome("passed"), counts.outcome("queue_full")),
        (3, 7)
    );
    assert_eq!(counts.get("wait_seconds_count"), 2);
    // Behind one another they waited to the end of one and of two service times, and all came within the first.
    assert!(counts.exact("wait_seconds_sum") > 1.5, "{counts:?}");
    assert_eq!(origin.counts().received, 3);
    counts.assert_balanced();
}

#[test]
fn nobody_waits_longer_than_he_may() {
    let origin = origin();
    let front = proxy(
        origin.port,
        json!({"faults": {"admit": {"in_flight": 1, "queue": 5, "wait_ns": 60_000_000, "status": 429}}}),
    );
    let mut first = front.client();
    first.say("GET /delay/3000 HTTP/1.1\r\nHost: a\r\n\r\n");
    front.counts_when(|counts| counts.get("in_flight") == 1);

    let began = Instant::now();
    let heard = front.client().get("/bytes/1");

    assert_eq!(heard.status(), 429);
    assert!(began.elapsed() >= Duration::from_millis(60));
    let counts = front.counts();
    assert_eq!(
        counts.get("in_flight"),
        1,
        "it was refused before a place was free"
    );
    assert_eq!(counts.outcome("waited"), 1);
    assert!(counts.exact("wait_seconds_sum") >= 0.06);
    assert_eq!(first.hear().status(), 200);
}

#[test]
fn who_goes_away_while_waiting_leaves_the_queue() {
    let origin = origin();
    let front = proxy(
        origin.port,
        json!({"faults": {"admit": {"in_flight": 1, "queue": 1}}}),
    );
    let mut first = front.client();
    first.say("GET /delay/1500 HTTP/1.1\r\nHost: a\r\n\r\n");
    front.counts_when(|counts| counts.get("in_flight") == 1);
    let mut second = front.client();
    second.say("GET /bytes/2 HTTP/1.1\r\nHost: a\r\n\r\n");
    front.counts_when(|counts| counts.get("queue_length") == 1);

    drop(second);
    front.counts_when(|counts| counts.get("queue_length") == 0);
    let third = front.client().get("/bytes/3");

    assert_eq!(third.status(), 200);
    assert_eq!(first.hear().status(), 200);
    let counts = front.counts();
    assert_eq!(counts.outcome("gone"), 1);
    assert_eq!(origin.counts().received, 2);
    counts.assert_balanced();
}

#[test]
fn a_place_stays_taken_until_the_service_is_through_though_the_client_has_gone() {
    let origin = origin();
    let front = proxy(origin.port, json!({"faults": {"admit": {"in_flight": 1}}}));
    let mut first = front.client();
    first.say("GET /delay/1500 HTTP/1.1\r\nHost: a\r\n\r\n");
    front.counts_when(|counts| counts.get("in_flight") == 1);

    drop(first);
    front.counts_when(|counts| counts.outcome("gone") == 1);
    let second = front.client().get("/bytes/1");
    let free = front.counts_when(|counts| counts.get("in_flight") == 0);
    let third = front.client().get("/bytes/1");

    assert_eq!(second.status(), 503);
    assert_eq!(third.status(), 200);
    assert_eq!(free.get("in_flight"), 0);
    assert_eq!(most_at_once(&origin.log()), 1);
    front.counts().assert_balanced();
}

#[test]
fn a_rejected_request_with_a_body_leaves_the_connection_usable() {
    let origin = origin();
    let front = proxy(origin.port, json!({"faults": {"admit": {"in_flight": 1}}}));
    let mut first = front.client();
    first.say("GET /delay/1500 HTTP/1.1\r\nHost: a\r\n\r\n");
    front.counts_when(|counts| counts.get("in_flight") == 1);
    let mut second = front.client();

    second.say("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234");
    let rejected = second.hear();
    second.say("56789");
    assert_eq!(first.hear().status(), 200);
    front.counts_when(|counts| counts.get("in_flight") == 0);
    second.say("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok");

    assert_eq!(rejected.status(), 503);
    assert_eq!(second.hear().body(), b"ok");
}
