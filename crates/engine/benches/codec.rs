//! Cost of one request in the codec, in nanoseconds: `cargo bench -p loadlens-engine --bench codec`.
//!
//! The median of many short rounds, so that a busy machine spoils few of them. Not a gate: compare it with the budget of
//! 0.4 us per request.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what a program prints is its output"
)]

use std::hint::black_box;
use std::time::Instant;

use loadlens_base::Random;
use loadlens_http::response::{parse_head, BodyDecoder, Framing};
use loadlens_plan::program::{Answer, Judging, Program, Records, RenderContext, Values};
use loadlens_plan::Plan;

const ROUNDS: usize = 200;
const TIMES: usize = 2_000;

fn measure(name: &str, mut run: impl FnMut()) {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..TIMES {
                run();
            }
            start.elapsed().as_nanos() as f64 / TIMES as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!(
        "{name:44} {:7.1} ns (best {:.1})",
        rounds[ROUNDS / 2],
        rounds[0]
    );
}

fn program(body: &str) -> Program {
    let plan = format!(
        r#"{{"schema_version":1,"seed":1,"duration_ns":1,"streams":[{{"name":"load","role":"load","timeout_ns":1,
        "target":{{"host":"127.0.0.1","port":80,"authority":"127.0.0.1"}},"workload":{{"kind":"closed","users":1}},
        "scenarios":[{{"name":"s","weight":1,"steps":[{{"name":"s","method":"POST","path":"/items","body":{body},
        "checks":[{{"kind":"json","path":"status","equals":"OK"}}],
        "extract":[{{"name":"id","from":{{"kind":"json","path":"data.items[1].id"}}}}]}}]}}]}}]}}"#
    );
    Program::compile(&serde_json::from_str::<Plan>(&plan).expect("plan")).expect("program")
}

fn main() {
    let short = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 121\r\nConnection: keep-alive\r\n\r\n";
    let nginx = b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Type: text/html\r\n\
        Content-Length: 612\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nConnection: keep-alive\r\nETag: \"65920080-264\"\r\n\
        Accept-Ranges: bytes\r\n\r\n";
    let folded = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 121\r\nA: b\r\n c\r\n\r\n";
    measure(&format!("head of {} bytes", short.len()), || {
        black_box(parse_head(black_box(short), false));
    });
    measure(&format!("head of {} bytes, 8 headers", nginx.len()), || {
        black_box(parse_head(black_box(nginx), false));
    });
    measure(
        &format!("head of {} bytes, the general way", folded.len()),
        || {
            black_box(parse_head(black_box(folded), false));
        },
    );
    measure("the same head by httparse", || {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut response = httparse::Response::new(&mut headers);
        black_box(response.parse(black_box(nginx)).is_ok());
    });
    measure("chunked body of 2 chunks", || {
        let mut decoder = BodyDecoder::new(Framing::Chunked);
        let wire = b"40\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n5\r\nhello\r\n0\r\n\r\n";
        let mut bytes = 0;
        black_box(
            decoder
                .decode(black_box(wire), &mut |part| bytes += part.len())
                .is_ok(),
        );
        black_box(bytes);
    });

    let mut random = Random::new(1);
    let mut out = Vec::with_capacity(4096);
    let mut values = Values::default();
    for (name, body) in [
        (
            "POST with two random numbers",
            r#"{"kind":"json","value":{"a":"{{int 1 100}}","b":"{{int 1 100}}"}}"#,
        ),
        (
            "POST with uuid and word",
            r#"{"kind":"json","value":{"username":"{{uuid}}","password":"{{word 12}}"}}"#,
        ),
    ] {
        let program = program(body);
        let step = &program.streams[0].steps[0];
        measure(name, || {
            out.clear();
            let mut context = RenderContext {
                random: &mut random,
                seq: 7,
                user: 0,
                unix_ns: 1,
                t0_unix_ns: 0,
                records: Records::default(),
            };
            black_box(step.render(&values, &mut context, &mut out).is_ok());
        });
    }

    let program = program(r#"{"kind":"none"}"#);
    let step = &program.streams[0].steps[0];
    let body = br#"{"status":"OK","data":{"count":2,"items":[{"id":1,"tags":["a","b"]},{"id":42,"tags":[]}]}}"#;
    let loadlens_http::response::HeadResult::Complete(head) = parse_head(short, false) else {
        return;
    };
    let mut judging = Judging::new(&program.streams[0]);
    measure("check and extraction in a JSON body", || {
        values.clear();
        let answer = Answer {
            status: head.status,
            head: short,
            body: black_box(body),
            ..Answer::default()
        };
        black_box(step.judge(&answer, &mut values, &mut judging));
    });
}
