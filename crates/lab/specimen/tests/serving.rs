//! Specimens as programs: they do what their settings say.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

struct Running {
    process: Child,
    hello: serde_json::Value,
}

impl Running {
    fn start(settings: &str) -> Running {
        let mut process = Command::new(env!("CARGO_BIN_EXE_loadlens-specimen"))
            .arg(settings)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let hello = serde_json::from_str(&line).unwrap();
        Running { process, hello }
    }

    fn connect(&self, port: &str) -> TcpStream {
        let port = self.hello[port].as_u64().unwrap() as u16;
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let patience = Some(Duration::from_secs(10));
        stream.set_read_timeout(patience).unwrap();
        stream
    }

    /// One request on a connection; head and body of its answer.
    fn ask(stream: &mut TcpStream, path: &str) -> (String, String) {
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut heard = Vec::new();
        let mut byte = [0u8];
        while !heard.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            heard.push(byte[0]);
        }
        let head = String::from_utf8(heard).unwrap();
        let length = head.split("Content-Length: ").nth(1).unwrap();
        let length = length.split('\r').next().unwrap().parse().unwrap();
        let mut body = vec![0u8; length];
        stream.read_exact(&mut body).unwrap();
        (head, String::from_utf8(body).unwrap())
    }

    fn once(&self, path: &str) -> (String, String) {
        Running::ask(&mut self.connect("port"), path)
    }

    fn lasted(&mut self) -> serde_json::Value {
        writeln!(self.process.stdin.as_mut().unwrap()).unwrap();
        let mut line = String::new();
        BufReader::new(self.process.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        assert!(self.process.wait().unwrap().success());
    }
}

const BOTH: [&str; 2] = [
    r#"{"by": "threads", "most": 4}"#,
    r#"{"by": "loop", "processes": 1}"#,
];

fn with(serve: &str, rest: &str) -> Running {
    Running::start(&format!(r#"{{"serve": {serve}, {rest}}}"#))
}

#[test]
fn both_servers_answer_paths_and_nothing_else() {
    for serve in BOTH {
        let running = with(
            serve,
            r#""backend": "b", "routes": {"/work": [{"do": "wait", "ms": 1}, {"do": "burn", "ms": 1},
                {"do": "answer", "bytes": 200000}], "/ping": []}"#,
        );

        let (head, body) = running.once("/work?a=1");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("X-Backend: b"), "{head}");
        assert_eq!(body.len(), 200_000);
        assert_eq!(running.once("/ping").1, "xx");
        assert!(running.once("/other").0.starts_with("HTTP/1.1 404"));
    }
}

#[test]
fn a_connection_ends_after_its_requests() {
    for serve in BOTH {
        let running = with(
            serve,
            r#""connection": {"requests": 3}, "routes": {"/a": []}"#,
        );
        let mut stream = running.connect("port");

        let heads: Vec<String> = (0..3).map(|_| Running::ask(&mut stream, "/a").0).collect();

        let ends = |head: &String| head.contains("Connection: close");
        assert_eq!(
            heads.iter().map(ends).collect::<Vec<_>>(),
            [false, false, true]
        );
        assert_eq!(stream.read(&mut [0u8]).unwrap(), 0);
    }
}

#[test]
fn whoever_waits_too_long_for_a_lock_is_refused_with_its_words() {
    for serve in BOTH {
        let running = with(
            serve,
            r#""resources": {"db": {"size": 1, "kind": "lock"}}, "routes": {"/w": [{"do": "take",
                "resource": "db", "timeout_ms": 50, "status": 500, "words": "database is locked"},
                {"do": "wait", "ms": 1500}, {"do": "give", "resource": "db"}]}"#,
        );

        let mut all = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..3).map(|_| scope.spawn(|| running.once("/w"))).collect();
            let heard = asking.into_iter().map(|one| one.join().unwrap());
            heard.collect::<Vec<_>>()
        });

        all.sort_by_key(|(head, _)| head.clone());
        assert!(all[0].0.starts_with("HTTP/1.1 200"), "{all:?}");
        assert_eq!(all[1].1, "database is locked");
        assert_eq!(all[2].1, "database is locked");
        // The lock is free again.
        assert!(running.once("/w").0.starts_with("HTTP/1.1 200"));
    }
}

#[test]
fn a_line_without_patience_refuses_at_once() {
    for serve in BOTH {
        let running = with(
            serve,
            r#""resources": {"room": {"size": 2, "kind": "hidden"}}, "routes": {"/w": [{"do": "take",
                "resource": "room", "timeout_ms": 0}, {"do": "wait", "ms": 1500}, {"do": "give",
                "resource": "room"}]}"#,
        );

        let heads = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| running.once("/w").0))
                .collect();
            let heard = asking.into_iter().map(|one| one.join().unwrap());
            heard.collect::<Vec<_>>()
        });

        let refused = heads.iter().filter(|head| head.starts_with("HTTP/1.1 503"));
        assert_eq!(refused.count(), 2, "{heads:?}");
    }
}

#[test]
fn processes_are_listed_and_metrics_count_all_of_them() {
    let running = with(
        r#"{"by": "loop", "processes": 2}"#,
        r#""metrics": "plain", "routes": {"/a": [{"do": "grow", "rows": 5}]}"#,
    );
    for _ in 0..20 {
        running.once("/a");
    }

    let (_, page) = Running::ask(&mut running.connect("metrics_port"), "/metrics");

    assert_eq!(running.hello["pids"].as_array().unwrap().len(), 2);
    for line in [
        "http_requests_total{path=\"/a\",status=\"200\"} 20",
        "http_request_duration_seconds_count{path=\"/a\"} 20",
        "http_requests_in_flight 0",
        "data_rows 100",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}

#[test]
fn a_call_that_fails_is_tried_again() {
    let behind = with(
        BOTH[0],
        r#""metrics": "plain", "routes": {"/a": [{"do": "fail", "share": 1, "status": 503}]}"#,
    );
    let port = behind.hello["port"].as_u64().unwrap();
    let front = with(
        BOTH[0],
        &format!(
            r#""routes": {{"/w": [{{"do": "call", "port": {port}, "path": "/a", "tries": 3}}]}}"#
        ),
    );

    let (head, _) = front.once("/w");

    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    let (_, page) = Running::ask(&mut behind.connect("metrics_port"), "/metrics");
    assert!(page.contains("{path=\"/a\",status=\"503\"} 3"), "{page}");
}

#[test]
fn bad_settings_are_reported_in_words() {
    let done = Command::new(env!("CARGO_BIN_EXE_loadlens-specimen"))
        .arg(r#"{"serve": {"by": "loop", "processes": 0}, "routes": {"/a": [{"do": "take", "resource": "x"}]}}"#)
        .output()
        .unwrap();

    let message = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(message.contains("0 processes cannot serve"), "{message}");
    assert!(
        message.contains("routes./a[0]: there is no resource x"),
        "{message}"
    );
}

#[test]
fn holds_chosen_waits_and_pauses_are_counted_as_long_as_they_were() {
    for serve in BOTH {
        let mut running = with(
            serve,
            r#""resources": {"db": {"size": 1, "kind": "lock"}}, "routes": {
                "/w": [{"do": "wait", "ms": 1}, {"do": "take", "resource": "db"}, {"do": "wait", "ms": 30},
                    {"do": "give", "resource": "db"}],
                "/s": [{"do": "wait", "ms": 1}, {"do": "wait", "ms": 20, "only": {"share": 1}}]}"#,
        );
        let began = std::time::Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| running.once("/w"));
            }
        });
        let took = began.elapsed().as_nanos() as u64;
        running.once("/s");

        let lasted = running.lasted();

        // One after the other, without a gap between: not less than they asked for, not more than there was.
        assert_eq!(lasted["holds"]["db"]["times"], 4);
        let held = lasted["holds"]["db"]["ns"].as_u64().unwrap();
        assert!((4 * 30_000_000..took).contains(&held), "{held} of {took}");
        assert_eq!(lasted["chosen_waits"]["times"], 1);
        assert!(lasted["chosen_waits"]["ns"].as_u64().unwrap() >= 20_000_000);
        assert_eq!(lasted["pauses"]["times"], 0);
    }
}

#[test]
fn a_pause_is_booked_from_its_beginning_by_all_who_slept_through_it() {
    let mut running = with(
        BOTH[0],
        r#""pauses": {"every_ms": 100, "length_ms": 50}, "routes": {"/p": []}"#,
    );

    let begun = std::time::Instant::now();
    let mut lasted = running.lasted();
    while lasted["pauses"]["times"] == 0 && begun.elapsed() < Duration::from_secs(20) {
        running.once("/p");
        lasted = running.lasted();
    }

    let times = lasted["pauses"]["times"].as_u64().unwrap();
    assert!(times > 0);
    assert!(lasted["pauses"]["ns"].as_u64().unwrap() >= 50_000_000 * times);
}
