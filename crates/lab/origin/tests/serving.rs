//! The origin against a client of plain sockets: what it answers, when, and what its counts say.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use loadlens_origin::{bad, Admission, Config, Counts, Freeze, Origin};

const SECOND: u64 = 1_000_000_000;

fn start(config: Config) -> Origin {
    Origin::start(config).expect("the origin starts")
}

fn connect(origin: &Origin) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", origin.port)).expect("the origin accepts");
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: origin\r\n\r\n")
}

/// Sends a request and reads until `end` has come.
fn ask(stream: &mut TcpStream, request: &str, end: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    read_until(stream, end)
}

fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&text).ends_with(end) {
        let count = stream.read(&mut buffer).expect("the answer comes");
        assert!(
            count > 0,
            "ended after {:?}",
            String::from_utf8_lossy(&text)
        );
        text.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Sends bytes on a connection of their own and gives what comes back until the end.
fn exchange(origin: &Origin, bytes: &[u8]) -> String {
    let mut stream = connect(origin);
    stream.write_all(bytes).unwrap();
    let mut text = Vec::new();
    stream
        .read_to_end(&mut text)
        .expect("the origin ends the connection");
    String::from_utf8_lossy(&text).into_owned()
}

/// The counts once all of so many connections have come and gone: a client may have left again before the kernel
/// hands its connection to the origin.
fn idle_counts(origin: &Origin, connections: u64) -> Counts {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let counts = origin.counts_when_idle(20 * SECOND);
        let counts = counts.expect("all connections are closed");
        if counts.connections.accepted >= connections || Instant::now() > until {
            return counts;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn requests_and_connections_are_counted_by_path() {
    let origin = start(Config {
        threads: 2,
        ..Config::default()
    });

    for _ in 0..3 {
        let mut stream = connect(&origin);
        for _ in 0..5 {
            ask(&mut stream, &get("/bytes/3"), "xxx");
        }
        ask(&mut stream, &get("/json"), "}");
    }
    let counts = idle_counts(&origin, 3);

    assert_eq!(
        (counts.received, counts.answered, counts.violations),
        (18, 18, 0)
    );
    assert_eq!(counts.connections.accepted, 3);
    assert_eq!(counts.connections.closed_by_client, 3);
    let path = counts.path("/bytes/3");
    assert_eq!(
        (path.received, path.answered, path.connections),
        (15, 15, 3)
    );
    assert_eq!(counts.path("/json").connections, 0); // never the first on its connection
}

#[test]
fn counts_begin_anew_at_a_reset() {
    let origin = start(Config::default());
    let mut stream = connect(&origin);
    ask(&mut stream, &get("/bytes/3"), "xxx");

    origin.reset();
    ask(&mut stream, &get("/bytes/3"), "xxx");
    let counts = origin.counts();

    assert_eq!(
        (counts.received, counts.open, counts.connections.accepted),
        (1, 1, 0)
    );
}

#[test]
fn a_request_in_single_bytes_and_two_in_one_piece_are_both_understood() {
    let origin = start(Config::default());
    let mut stream = connect(&origin);

    for byte in get("/bytes/3").bytes() {
        stream.write_all(&[byte]).unwrap();
    }
    read_until(&mut stream, "xxx");
    let both = ask(&mut stream, &get("/bytes/3").repeat(2), "xxx");
    let both = if both.matches("200 OK").count() == 2 {
        both
    } else {
        both + &read_until(&mut stream, "xxx")
    };

    assert_eq!(both.matches("200 OK").count(), 2);
    assert_eq!(origin.counts().received, 3);
    assert_eq!(origin.counts().pipelined, 1);
}

#[test]
fn an_echo_gives_back_plain_and_chunked_bodies() {
    let origin = start(Config::default());
    let mut stream = connect(&origin);

    let plain = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    let chunked = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";

    assert!(ask(&mut stream, plain, "hello").contains("Content-Length: 5\r\n"));
    assert!(ask(&mut stream, chunked, "hello").contains("Content-Length: 5\r\n"));
    assert!(
        ask(&mut stream, &get("/head"), "\r\n\r\n").contains("GET /head HTTP/1.1") || {
            read_until(&mut stream, "\r\n\r\n").contains("GET /head HTTP/1.1")
        }
    );
}

#[test]
fn items_are_made_found_and_deleted() {
    let origin = start(Config::default());
    let mut stream = connect(&origin);

    let made = ask(
        &mut stream,
        "POST /items HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
        r#"{"data":{"id":1}}"#,
    );
    assert!(
        made.starts_with("HTTP/1.1 201") && made.contains("Location: /items/1\r\n"),
        "{made}"
    );
    assert!(ask(&mut stream, &get("/items/1"), "}}").starts_with("HTTP/1.1 200"));
    let listed = ask(&mut stream, &get("/items"), "]}");
    assert!(
        listed.ends_with(r#"{"items":[{"data":{"id":1}}]}"#),
        "{listed}"
    );
    assert!(ask(
        &mut stream,
        "DELETE /items/1 HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\n\r\n"
    )
    .starts_with("HTTP/1.1 204"));
    assert!(ask(&mut stream, &get("/items/1"), "}").starts_with("HTTP/1.1 404"));
    assert_eq!(origin.counts().path("/items/{id}").received, 3);
}

#[test]
fn statuses_follow_their_shares_exactly() {
    let origin = start(Config::default());
    let mut stream = connect(&origin);

    let mut failures = 0;
    for _ in 0..20 {
        let answer = ask(&mut stream, &get("/status?codes=200:9,500:1"), "}");
        failures += u32::from(answer.starts_with("HTTP/1.1 500"));
    }

    assert_eq!(failures, 2);
}

#[test]
fn a_client_that_says_close_gets_an_end_and_http10_without_keep_alive_too() {
    let origin = start(Config::default());

    let closed = exchange(
        &origin,
        b"GET /bytes/1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    );
    let old = exchange(&origin, b"GET /bytes/1 HTTP/1.0\r\n\r\n");

    assert!(closed.contains("Connection: close\r\n") && closed.ends_with("\r\n\r\nx"));
    assert!(old.contains("Connection: close\r\n") && old.ends_with("\r\n\r\nx"));
    assert_eq!(idle_counts(&origin, 2).connections.closed_by_server, 2);
}

#[test]
fn each_violation_is_refused_and_written_down() {
    let origin = start(Config::default());

    let cases: [(&[u8], &str); 4] = [
        (b"GET / HTTP/1.1\r\n\r\n", "no Host"),
        (
            b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
            "request line is not three words with one space between",
        ),
        (b"GET / HTTP/1.1\nHost: a\n\n", "line ends without CR"),
        (
            b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            "chunk size is not hexadecimal",
        ),
    ];
    for (bytes, _) in cases {
        assert!(
            exchange(&origin, bytes).starts_with("HTTP/1.1 400"),
            "{}",
            bytes.escape_ascii()
        );
    }
    let counts = idle_counts(&origin, 4);

    assert_eq!(counts.violations, 4);
    let rules: Vec<&str> = counts
        .violation_samples
        .iter()
        .map(|sample| sample.rule.as_str())
        .collect();
    assert_eq!(rules, cases.map(|case| case.1));
}

#[test]
fn a_request_after_the_announced_end_is_a_violation() {
    let origin = start(Config::default());
    let mut stream = connect(&origin);

    let kept_open = "/bad/close_said_not_done";
    ask(&mut stream, &get(kept_open), "xyz");
    stream.write_all(get(kept_open).as_bytes()).unwrap();
    drop(stream);
    let counts = idle_counts(&origin, 1);

    assert_eq!((counts.received, counts.violations), (1, 1));
    assert_eq!(counts.path(kept_open).violations, 1);
}

#[test]
fn a_request_that_crosses_an_unannounced_end_is_no_violation() {
    let origin = start(Config::default());
    let mut stream = connect(&origin);

    let unsaid = "/bad/close_unsaid";
    ask(&mut stream, &get(unsaid), "xyz");
    stream.write_all(get(unsaid).as_bytes()).unwrap();
    drop(stream);
    let counts = idle_counts(&origin, 1);

    assert_eq!(
        (counts.received, counts.crossed, counts.violations),
        (1, 1, 0)
    );
}

#[test]
fn a_request_cut_off_by_the_client_is_counted_as_cut_not_as_received() {
    let origin = start(Config::default());

    let mut stream = connect(&origin);
    stream.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
    drop(stream);
    let counts = idle_counts(&origin, 1);

    assert_eq!((counts.received, counts.cut, counts.violations), (0, 1, 0));
}

#[test]
fn a_client_that_gives_up_is_counted_as_abandoned() {
    let origin = start(Config::default());

    let mut stream = connect(&origin);
    stream.write_all(get("/delay/60000").as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    drop(stream);
    let counts = idle_counts(&origin, 1);

    assert_eq!(
        (counts.received, counts.answered, counts.abandoned),
        (1, 0, 1)
    );
}

#[test]
fn the_log_holds_the_service_time_of_each_request() {
    let origin = start(Config {
        log_rows: 100,
        ..Config::default()
    });
    let mut stream = connect(&origin);

    for _ in 0..10 {
        ask(&mut stream, &get("/mix?ms=1:9,1500:1"), "}");
    }
    let log = origin.log();

    let mut times: Vec<u64> = log
        .rows
        .iter()
        .map(|row| row.answered_ns - row.received_ns)
        .collect();
    times.sort_unstable();
    assert_eq!(times.len(), 10);
    // Nine of 1 ms, which a busy machine makes longer, and one of 1.5 s, never early.
    assert!(
        times[0] >= 1_000_000 && times[8] < 1_500_000_000,
        "{times:?}"
    );
    assert!(times[9] >= 1_500_000_000, "{times:?}");
}

#[test]
fn one_server_serves_first_come_first_served_however_many_connections_ask() {
    let origin = start(Config {
        threads: 2,
        log_rows: 100,
        ..Config::default()
    });

    let mut streams: Vec<TcpStream> = (0..6).map(|_| connect(&origin)).collect();
    for stream in &mut streams {
        stream.write_all(get("/md1?ms=5").as_bytes()).unwrap();
    }
    for stream in &mut streams {
        read_until(stream, "}");
    }
    let log = origin.log();

    let first = log.rows.iter().map(|row| row.received_ns).min().unwrap();
    let mut ends: Vec<u64> = log.rows.iter().map(|row| row.answered_ns - first).collect();
    ends.sort_unstable();
    for (number, end) in (1u64..).zip(ends) {
        assert!(
            end >= number * 5_000_000,
            "number {number} was served after {end} ns"
        );
    }
}

#[test]
fn a_frozen_origin_answers_when_the_freeze_is_over() {
    // So long that the origin's thread has begun before it is over, however busy the machine is.
    let freeze = Freeze {
        first_ns: 0,
        len_ns: SECOND,
        every_ns: 0,
    };
    let began = Instant::now();
    let origin = start(Config {
        freeze: Some(freeze),
        ..Config::default()
    });

    let mut stream = connect(&origin);
    ask(&mut stream, &get("/bytes/1"), "x");

    let took = began.elapsed();
    assert!(took >= Duration::from_secs(1), "{took:?}");
    let (from, until) = origin.counts().freezes[0];
    assert!(until - from >= SECOND);
}

#[test]
fn admission_decides_before_any_request() {
    let with = |admission| {
        start(Config {
            admission,
            ..Config::default()
        })
    };

    let refusing = with(Admission::Refuse);
    let refused = TcpStream::connect(("127.0.0.1", refusing.port)).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);

    let closing = with(Admission::Close);
    assert_eq!(exchange(&closing, b""), "");
    assert_eq!(idle_counts(&closing, 1).connections.turned_away, 1);

    // The reset may come before `connect` has returned.
    let resetting = with(Admission::Reset);
    let reset = TcpStream::connect(("127.0.0.1", resetting.port))
        .and_then(|mut stream| stream.read(&mut [0; 8]))
        .unwrap_err();
    assert_eq!(reset.kind(), std::io::ErrorKind::ConnectionReset);

    let greeting = with(Admission::Greet);
    let mut stream = connect(&greeting);
    assert!(read_until(&mut stream, "\r\n").starts_with("220 "));

    let small = start(Config {
        max_connections: Some(1),
        ..Config::default()
    });
    let mut first = connect(&small);
    ask(&mut first, &get("/bytes/1"), "x");
    assert_eq!(exchange(&small, b""), "");
}

#[test]
fn every_misbehaviour_does_something_and_breaks_nothing_else() {
    let origin = start(Config {
        threads: 2,
        ..Config::default()
    });

    for behaviour in bad::all() {
        let mut stream = connect(&origin);
        stream
            .set_read_timeout(Some(Duration::from_millis(5)))
            .unwrap();
        let target = format!("/bad/{}", behaviour.name);
        let request = format!("{} {target} HTTP/1.1\r\nHost: a\r\n\r\n", behaviour.method);
        stream.write_all(request.as_bytes()).unwrap();
        // Whatever comes within a moment; the end, a reset and silence are all fine.
        let _ = stream.read(&mut [0; 4096]);
    }
    let count = bad::all().count() as u64;
    let counts = idle_counts(&origin, count);

    assert_eq!(counts.received, count);
    assert_eq!(counts.violations, 0, "{:?}", counts.violation_samples);
    let mut stream = connect(&origin);
    ask(&mut stream, &get("/bytes/1"), "x");
}

#[test]
fn an_early_answer_comes_before_the_body_and_the_body_is_no_violation() {
    let origin = start(Config::default());
    let mut stream = connect(&origin);

    let head = "POST /bad/early_ok HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";
    ask(&mut stream, head, "xyz");
    stream.write_all(b"hello").unwrap();
    ask(&mut stream, &get("/bytes/1"), "\r\n\r\nx");
    drop(stream);
    let counts = idle_counts(&origin, 1);

    assert_eq!(
        (counts.received, counts.answered, counts.violations),
        (2, 2, 0)
    );
    assert_eq!(counts.path("/bad/early_ok").body_bytes_in, 5);
}

#[test]
fn the_control_port_gives_the_counts_and_stays_out_of_them() {
    let origin = start(Config {
        log_rows: 10,
        ..Config::default()
    });
    ask(&mut connect(&origin), &get("/bytes/1"), "x");

    let read = |request: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", origin.control_port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    let counts: serde_json::Value = serde_json::from_str(&read(&get("/books"))).unwrap();
    let log: serde_json::Value = serde_json::from_str(&read(&get("/log"))).unwrap();
    read("POST /books/reset HTTP/1.1\r\nHost: a\r\n\r\n");

    assert_eq!(counts["received"], 1);
    assert_eq!(counts["paths"]["/bytes/1"]["answered"], 1);
    assert_eq!(log["rows"].as_array().map(Vec::len), Some(1));
    assert_eq!(origin.counts().received, 0);
}
