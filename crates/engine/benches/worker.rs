//! Cost of one request in the engine without the kernel, in nanoseconds: `cargo bench -p loadlens-engine --bench worker`.
//!
//! The whole loop with its clock and every statistic, over a network in memory that answers at once; the network's own
//! part is some 20 ns. The median of many short rounds, so that a busy machine spoils few of them. Not a gate: compare it
//! with the budget of 0.4 us per request. On a busy machine, count instructions instead:
//! `valgrind --tool=callgrind PROGRAM 5`, where 5 is the number of rounds; divide by the number of requests printed.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what a program prints is its output"
)]

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Instant;

use loadlens_engine::clock::{monotonic_ns, MonotonicClock};
use loadlens_engine::worker::shard::StreamShard;
use loadlens_engine::worker::{Control, Settings, Worker, EVENTS};
use loadlens_plan::arrival::Part;
use loadlens_plan::program::Program;
use loadlens_plan::Plan;
use loadlens_record::grid::Grid;
use loadlens_record::interval::{IntervalSet, Shape};
use loadlens_record::recorder::{Recorder, StreamProgress, SETS};
use loadlens_record::ring::ring;
use loadlens_transport::{Io, Net, NetError, Ready};
use serde_json::{json, Value};

const ROUNDS: usize = 100;
const REQUESTS: u64 = 20_000;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nServer: memory\r\nContent-Type: application/json\r\nContent-Length: 32\r\n\r\n\
    {\"status\":\"OK\",\"data\":{\"id\":17}}";
const CHUNKED: &[u8] =
    b"HTTP/1.1 200 OK\r\nServer: memory\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n\
    {\"status\":\"OK\",\"data\":{\"id\":17}}\r\n0\r\n\r\n";

/// A network whose every connection stands at once and whose every request is answered at once.
struct Memory {
    answer: &'static [u8],
    /// Tokens by handle.
    tokens: Vec<u64>,
    free: Vec<usize>,
    answered: Vec<usize>,
}

impl Net for Memory {
    type Handle = usize;

    fn connect(&mut self, _: &SocketAddr, _: u8, token: u64) -> Result<usize, NetError> {
        let handle = self.free.pop().unwrap_or_else(|| {
            self.tokens.push(0);
            self.tokens.len() - 1
        });
        self.tokens[handle] = token;
        Ok(handle)
    }

    fn send_first(
        &mut self,
        handle: usize,
        _: u64,
        bytes: &[u8],
    ) -> Result<Option<usize>, NetError> {
        if !bytes.is_empty() {
            self.send(handle, bytes);
        }
        Ok(Some(bytes.len()))
    }

    fn connected(&mut self, _: usize) -> Result<(), NetError> {
        Ok(())
    }

    fn send(&mut self, handle: usize, bytes: &[u8]) -> Io {
        self.answered.push(handle);
        Io::Bytes(bytes.len())
    }

    fn receive(&mut self, _: usize, buffer: &mut [u8]) -> Io {
        buffer[..self.answer.len()].copy_from_slice(self.answer);
        Io::Bytes(self.answer.len())
    }

    fn close(&mut self, handle: usize) {
        self.free.push(handle);
    }

    fn wait(&mut self, ready: &mut Vec<Ready>, _: u64) {
        ready.clear();
        let taken = self.answered.len().min(EVENTS);
        ready.extend(self.answered.drain(..taken).map(|handle| Ready {
            token: self.tokens[handle],
            readable: true,
            ..Ready::default()
        }));
    }
}

/// A run of `REQUESTS` requests by 100 users; nanoseconds for each.
fn round(plan: &Plan, program: &Program, answer: &'static [u8]) -> f64 {
    let sets = (0..SETS)
        .map(|_| Box::new(IntervalSet::of(&Shape::of(program))))
        .collect();
    let (full, _full) = ring(SETS);
    let (_empty, empty) = ring(SETS);
    let progress: Arc<[StreamProgress]> = [StreamProgress::default()].into();
    let grid = Grid {
        warmup_end: 0,
        end: u64::MAX,
    };
    let recorder = Recorder::new(&[1], grid, sets, (full, empty), None, progress.clone());
    let address = ([127, 0, 0, 1], 80).into();
    let shard = StreamShard::new(plan, 0, &program.streams[0], vec![address], Part::whole())
        .expect("the stream is not empty");
    let settings = Settings {
        drain_ns: 0,
        may_spin: false,
        t0_unix_ns: 0,
        store_bytes: 1 << 20,
    };
    let net = Memory {
        answer,
        tokens: Vec::new(),
        free: Vec::new(),
        answered: Vec::new(),
    };
    let worker = Worker::new(
        MonotonicClock::new(monotonic_ns()),
        net,
        vec![shard],
        recorder,
        Arc::new(Control::new(u64::MAX, 1)),
        settings,
    );
    let began = Instant::now();
    worker.run();
    let took = began.elapsed();
    assert_eq!(progress[0].ok.load(Ordering::Relaxed), REQUESTS);
    took.as_nanos() as f64 / REQUESTS as f64
}

fn measure(name: &str, step: &Value, reuse: &str, answer: &'static [u8], rounds: usize) {
    let plan = json!({
        "schema_version": 1,
        "seed": 1,
        "streams": [{
            "name": "load",
            "role": "load",
            "timeout_ns": 10_000_000_000u64,
            "target": {"host": "127.0.0.1", "port": 80, "authority": "127.0.0.1"},
            "scenarios": [{"name": "s", "weight": 1, "steps": [step]}],
            "workload": {"kind": "closed", "users": 100, "requests": REQUESTS},
            "connection": {"reuse": {"kind": reuse}},
        }],
    });
    let plan: Plan = serde_json::from_value(plan).expect("plan");
    let program = Program::compile(&plan).expect("program");
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| round(&plan, &program, answer))
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{name:56} {:7.1} ns (best {:.1}) of {} requests",
        times[times.len() / 2],
        times[0],
        REQUESTS * rounds as u64
    );
}

fn main() {
    let asked = std::env::args().find_map(|argument| argument.parse().ok());
    let rounds = asked.unwrap_or(ROUNDS).max(1);
    let get = json!({"name": "get", "method": "GET", "path": "/"});
    let text = r#"{"a":{{int 1 100}},"b":{{int 1 100}}}"#;
    let body = json!({"kind": "text", "text": text});
    let post = json!({"name": "post", "method": "POST", "path": "/", "body": body});
    let judged = json!({
        "name": "judged", "method": "GET", "path": "/",
        "checks": [{"kind": "json", "path": "status", "equals": "OK"}],
        "extract": [{"name": "id", "from": {"kind": "json", "path": "data.id"}}],
    });
    measure("GET", &get, "keep", ANSWER, rounds);
    measure("GET, a chunked answer", &get, "keep", CHUNKED, rounds);
    measure(
        "GET, a connection for each request",
        &get,
        "new",
        ANSWER,
        rounds,
    );
    measure("POST, two random numbers", &post, "keep", ANSWER, rounds);
    measure(
        "GET, a JSON check and a value for later",
        &judged,
        "keep",
        ANSWER,
        rounds,
    );
}
