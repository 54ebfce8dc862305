//! All faults at once, and clients that go away whenever it is most awkward: the law holds all the same.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use loadlens_base::Random;
use loadlens_origin::{Config, Origin};
use serde_json::json;

use crate::harness::proxy;

const CLIENTS: u64 = 8;
const REQUESTS: u64 = 150;

/// Paths that clients request: fast, slow, large, with bodies by length and in chunks, and some that break off.
const ASKED: [&str; 8] = [
    "GET /bytes/10 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /delay/5 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /bytes/400000 HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
    "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "GET /bytes/1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "HEAD /bytes/9 HTTP/1.1\r\nHost: a\r\n\r\n",
];

/// One client that sends parts of requests, reads parts of answers, and leaves when it likes.
fn wander(port: u16, seed: u64) {
    let mut random = Random::new(seed);
    let mut done = 0;
    while done < REQUESTS {
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else {
            continue;
        };
        let patience = Duration::from_millis(1 + random.below(30));
        stream.set_read_timeout(Some(patience)).expect("an option");
        for _ in 0..=random.below(6) {
            done += 1;
            let text = ASKED[random.below(ASKED.len() as u64) as usize].as_bytes();
            let sent = if random.below(5) == 0 {
                random.below(text.len() as u64) as usize
            } else {
                text.len()
            };
            let mut buffer = vec![0; 1 << random.below(18)];
            let goes_on = stream.write_all(&text[..sent]).is_ok()
                && matches!(stream.read(&mut buffer), Ok(count) if count > 0)
                && sent == text.len();
            if !goes_on {
                break;
            }
        }
    }
}

#[test]
fn every_request_has_one_outcome_whatever_happens() {
    let origin = Origin::start(Config::default()).expect("the origin starts");
    for failures in ["pass", "answer"] {
        let front = proxy(
            origin.port,
            json!({
                "keepalive": 2,
                "timeout_ns": 400_000_000,
                "failures": failures,
                "faults": {
                    "delay": {
                        "request": {"kind": "exponential", "mean_ns": 1_000_000},
                        "response": {"kind": "lognormal", "median_ns": 1_000_000, "sigma": 1.0},
                    },
                    "reset": {"share": 0.3, "at": "body", "seed": 1},
                    "drop": {"share": 0.02, "seed": 2},
                    "errors": {"share": 0.1, "seed": 3},
                    "bandwidth": {"rate": 20_000_000, "shared": true, "of": "both"},
                    "connections": {"most": 7},
                    "admit": {"in_flight": 2, "queue": 2, "wait_ns": 10_000_000},
                },
            }),
        );
        let port = front.port;

        let threads: Vec<_> = (0..CLIENTS)
            .map(|seed| std::thread::spawn(move || wander(port, seed)))
            .collect();
        for thread in threads {
            thread.join().expect("the client ends");
        }

        let counts = front.counts_when(|counts| {
            counts.get("connections_open") == 0 && counts.get("in_flight") == 0
        });
        counts.assert_balanced();
        assert!(counts.get("in_flight_most") <= 2, "{counts:?}");
        assert!(counts.get("queue_length_most") <= 2, "{counts:?}");
        for outcome in [
            "passed",
            "gone",
            "queue_full",
            "error",
            "reset",
            "malformed",
        ] {
            assert!(counts.outcome(outcome) > 0, "no {outcome} in {counts:?}");
        }
    }
}
