//! Without faults the proxy is not there: bytes arrive as they were sent, both ways.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};

use loadlens_origin::{Config, Origin};
use serde_json::json;

use crate::harness::{proxy, Client, Heard};

fn origin() -> Origin {
    Origin::start(Config::default()).expect("the origin starts")
}

/// A service of one connection that answers `answer` to each of `requests` requests of so many bytes; what it read.
fn scripted(
    requests: Vec<usize>,
    answer: &'static [u8],
) -> (u16, std::thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let serve = move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut got = Vec::new();
        for wanted in requests {
            let until = got.len() + wanted;
            let mut buffer = [0; 4096];
            while got.len() < until {
                let count = stream.read(&mut buffer).expect("bytes");
                assert!(count > 0, "ended after {:?}", String::from_utf8_lossy(&got));
                got.extend_from_slice(&buffer[..count]);
            }
            stream.write_all(answer).expect("room");
        }
        got
    };
    (port, std::thread::spawn(serve))
}

#[test]
fn requests_and_answers_pass_byte_for_byte() {
    let request =
        b"POST /a?b=%20c HTTP/1.1\r\nhOsT:  x \r\nX-Odd;: y\r\nContent-Length: 5\r\n\r\nhello";
    let answer = b"HTTP/1.1 299 Very odd\r\nserver:a\r\nX-Empty:\r\nContent-Length: 3\r\n\r\nyes";
    let (port, service) = scripted(vec![request.len(); 2], answer);
    let before = proxy(port, json!({}));
    let mut client = before.client();

    for _ in 0..2 {
        client.say(request);
        let mut got = vec![0; answer.len()];
        client.0.read_exact(&mut got).expect("the answer");
        assert_eq!(got, answer);
    }

    assert_eq!(service.join().unwrap(), [&request[..], request].concat());
    drop(client);
    let counts = before.counts();
    assert_eq!(
        (counts.get("requests_total"), counts.outcome("passed")),
        (2, 2)
    );
    assert_eq!(counts.get("upstream_connections_total"), 1);
    assert_eq!(counts.get("upstream_reused_total"), 1);
    counts.assert_balanced();
}

#[test]
fn chunks_pass_as_they_are() {
    let request = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;x=1\r\nabc\r\n0\r\nT: u\r\n\r\n";
    let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0002\r\nyo\r\n0\r\n\r\n";
    let (port, service) = scripted(vec![request.len()], answer);
    let before = proxy(port, json!({}));
    let mut client = before.client();

    client.say(request);

    let heard = client.hear();
    assert_eq!(heard.body(), b"0002\r\nyo\r\n0\r\n\r\n");
    assert_eq!(service.join().unwrap(), request);
}

#[test]
fn a_request_that_comes_byte_by_byte_is_one_request() {
    let origin = origin();
    let before = proxy(origin.port, json!({}));
    let mut client = before.client();

    for byte in b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nwxyz" {
        client.say([*byte]);
        std::thread::sleep(std::time::Duration::from_micros(300));
    }

    assert_eq!(client.hear().body(), b"wxyz");
    assert_eq!(origin.counts().received, 1);
}

#[test]
fn large_bodies_stream_both_ways() {
    let origin = origin();
    let before = proxy(origin.port, json!({}));
    let mut client = before.client();
    let body: Vec<u8> = (0..12_000_000u32).map(|at| (at % 251) as u8).collect();
    let head = format!(
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut sender = Client(client.0.try_clone().expect("a copy"));
    let sent = body.clone();
    let sending = std::thread::spawn(move || {
        sender.say(head);
        sender.say(sent);
    });

    let heard = client.hear();

    sending.join().unwrap();
    assert_eq!(heard.status(), 200);
    assert!(heard.body() == body, "the body came back changed");
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let origin = origin();
    let before = proxy(origin.port, json!({}));
    let mut client = before.client();

    client.say("GET /bytes/1 HTTP/1.1\r\nHost: x\r\n\r\nGET /bytes/2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");

    let Heard::Ended(all) = client.hear_all() else {
        panic!("reset");
    };
    let all = String::from_utf8_lossy(&all).into_owned();
    let lengths: Vec<&str> = all
        .lines()
        .filter_map(|line| line.strip_prefix("Content-Length: "))
        .collect();
    assert_eq!(lengths, ["1", "2"]);
    assert_eq!(origin.counts().pipelined, 0);
}

#[test]
fn answers_without_a_body_end_where_they_end() {
    let origin = origin();
    let before = proxy(origin.port, json!({}));
    let mut client = before.client();

    client.say("HEAD /bytes/100 HTTP/1.1\r\nHost: x\r\n\r\n");
    let head = client.hear_of(true);
    let none = client.get("/status/204");
    let same = client.get("/status/304");
    let after = client.get("/bytes/3");

    assert_eq!(
        (head.status(), none.status(), same.status()),
        (200, 204, 304)
    );
    assert_eq!(after.body().len(), 3);
    assert_eq!(origin.counts().connections.accepted, 1);
}

#[test]
fn a_client_that_waits_for_100_gets_it() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let service = std::thread::spawn(move || {
        let mut stream = Client(listener.accept().expect("a connection").0);
        let mut buffer = [0; 4096];
        let count = stream.0.read(&mut buffer).expect("a head");
        stream.say("HTTP/1.1 100 Continue\r\n\r\n");
        let more = stream.0.read(&mut buffer[count..]).expect("a body");
        stream.say("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
        String::from_utf8_lossy(&buffer[count..count + more]).into_owned()
    });
    let before = proxy(port, json!({}));
    let mut client = before.client();

    client.say("PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    let mut interim = [0; 25];
    client
        .0
        .read_exact(&mut interim)
        .expect("an interim answer");
    client.say("body");

    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(client.hear().status(), 201);
    assert_eq!(service.join().unwrap(), "body");
}

#[test]
fn the_clients_connection_is_its_own_and_the_services_is_kept() {
    let origin = origin();
    let before = proxy(origin.port, json!({}));

    for _ in 0..5 {
        let mut client = before.client();
        client.say("GET /bytes/3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let heard = client.hear();
        assert!(
            heard.head().contains("\r\nConnection: close\r\n"),
            "{heard:?}"
        );
        assert_eq!(client.hear_all(), Heard::Ended(Vec::new()));
    }

    assert_eq!(origin.counts().connections.accepted, 1);
    assert_eq!(before.counts().get("connections_total"), 5);
}

#[test]
fn without_kept_connections_each_request_has_one() {
    let origin = origin();
    let before = proxy(origin.port, json!({"keepalive": 0}));
    let mut client = before.client();

    for _ in 0..5 {
        assert_eq!(client.get("/bytes/3").status(), 200);
    }

    assert_eq!(origin.counts().connections.accepted, 5);
}

#[test]
fn a_client_of_http_1_0_is_spoken_to_in_its_way() {
    let origin = origin();
    let before = proxy(origin.port, json!({}));
    let mut client = before.client();

    client.say("GET /bytes/3 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let kept = client.hear();
    client.say("GET /bytes/3 HTTP/1.0\r\n\r\n");
    let last = client.hear();

    assert!(
        kept.head().contains("\r\nConnection: keep-alive\r\n"),
        "{kept:?}"
    );
    assert!(
        last.head().contains("\r\nConnection: close\r\n"),
        "{last:?}"
    );
    assert_eq!(client.hear_all(), Heard::Ended(Vec::new()));
}

#[test]
fn a_request_whose_end_is_in_doubt_never_reaches_the_service() {
    let origin = origin();
    let before = proxy(origin.port, json!({}));
    let mut client = before.client();

    client.say(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    );

    assert_eq!(client.hear().status(), 400);
    assert_eq!(client.hear_all(), Heard::Ended(Vec::new()));
    assert_eq!(origin.counts().received, 0);
    let counts = before.counts();
    assert_eq!(counts.outcome("malformed"), 1);
    counts.assert_balanced();
}

#[test]
fn services_take_turns() {
    let (one, two) = (origin(), origin());
    let upstreams = [one.port, two.port].map(|port| format!("127.0.0.1:{port}"));
    let before = proxy(one.port, json!({"upstreams": upstreams}));
    let mut client = before.client();

    for _ in 0..10 {
        assert_eq!(client.get("/bytes/3").status(), 200);
    }

    assert_eq!((one.counts().received, two.counts().received), (5, 5));
}
