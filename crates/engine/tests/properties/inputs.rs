//! Whatever a plan or an interval log holds, the answer is a value or a fault, never a panic.
//!
//! `LOADLENS_SEED=n` replays one input, `LOADLENS_INPUTS=n` looks at more of them.

use std::panic::catch_unwind;

use base64::Engine;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use loadlens_engine::plan::Plan;
use loadlens_engine::program::Program;
use loadlens_engine::random::Random;
use loadlens_engine::record::files::read_intervals;
use serde_json::json;

use crate::mutate::{inputs, mutated};

const WORDS: [&str; 24] = [
    "{{",
    "}}",
    "{{uuid}}",
    "{{int 1 9}}",
    "{{word 12}}",
    "{{choice a b}}",
    "{{nobody}}",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "null",
    "0",
    "-1",
    "1e309",
    "18446744073709551616",
    "\\u0000",
    "é",
    "$.a[0]",
    "data.items[-1].id",
    "(?i)(a|b)*",
];

fn plans() -> Vec<Vec<u8>> {
    let stream = |steps: serde_json::Value, workload: serde_json::Value| {
        json!({
            "schema_version": 1, "seed": 1, "duration_ns": 1_000_000,
            "streams": [{
                "name": "load", "role": "load", "timeout_ns": 1_000_000,
                "target": {"host": "127.0.0.1", "port": 80, "authority": "a"},
                "scenarios": [{"name": "s", "weight": 1, "steps": steps}], "workload": workload,
            }],
        })
    };
    let made = [
        stream(
            json!([{"name": "get", "method": "GET", "path": "/a?b={{int 1 9}}", "headers": [["X-A", "{{uuid}}"]]}]),
            json!({"kind": "closed", "users": 2, "think": {"kind": "fixed", "ns": 5}, "iterations": 3}),
        ),
        stream(
            json!([
                {"name": "make", "method": "POST", "path": "/items", "expect": [201],
                 "body": {"kind": "json", "value": {"name": "{{word 8}}", "n": "{{float 0 1}}"}},
                 "extract": [{"name": "id", "from": {"kind": "json", "path": "data.items[0].id"}}]},
                {"name": "read", "method": "GET", "path": "/items/{{id}}",
                 "checks": [{"kind": "contains", "text": "id"}, {"kind": "json", "path": "a.b", "equals": 7}]},
            ]),
            json!({"kind": "open", "rate_per_s": 10.5, "arrivals": "poisson", "max_in_flight": 3, "overflow": "drop"}),
        ),
    ];
    made.iter()
        .map(|plan| plan.to_string().into_bytes())
        .collect()
}

#[test]
fn a_plan_is_compiled_or_refused() {
    let corpus = plans();
    let (mut compiled, mut refused) = (0, 0);
    let seeds = inputs(20_000);
    let is_all = seeds.end - seeds.start > 1;
    for seed in seeds {
        let text = mutated(&mut Random::derived(seed, &[21]), &corpus, &WORDS);

        let ending = catch_unwind(|| {
            let plan: Option<Plan> = serde_json::from_slice(&text).ok();
            let plan = plan.filter(|plan| plan.validate().is_empty())?;
            Program::compile(&plan).ok()
        });

        match ending {
            Ok(Some(_)) => compiled += 1,
            Ok(None) => refused += 1,
            Err(_) => panic!("LOADLENS_SEED={seed}: {}", text.escape_ascii()),
        }
    }
    assert!(
        !is_all || (compiled > 100 && refused > 100),
        "{compiled} {refused}"
    );
}

/// A log as the HDR histogram crate itself writes it, and what is in it.
fn log() -> (Vec<u8>, Vec<(u64, u64)>) {
    let mut histogram =
        hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1 << 44, 3).expect("bounds");
    for value in [1_500, 2_000_000, 7_000_000_000] {
        histogram.record(value).expect("within bounds");
    }
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(&histogram, &mut bytes)
        .expect("memory");
    let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
    let counts = histogram.iter_recorded();
    let counts = counts.map(|value| {
        (
            histogram.highest_equivalent(value.value_iterated_to()),
            value.count_at_value(),
        )
    });
    let text = format!(
        "#[Histogram log format version 1.3]\nTag=load.get.ok.response,0.250,0.250,7.0,{encoded}\n"
    );
    (text.into_bytes(), counts.collect())
}

#[test]
fn an_interval_log_is_read_or_its_bad_line_named() {
    let path = std::env::temp_dir().join(format!("loadlens-any-log-{}", std::process::id()));
    let (text, counts) = log();
    std::fs::write(&path, &text).expect("a file");
    let read = read_intervals(&path).expect("another writer's log");
    assert_eq!(read[0].counts, counts);
    let mut panicked = Vec::new();
    for seed in inputs(1_000) {
        let bytes = mutated(
            &mut Random::derived(seed, &[22]),
            std::slice::from_ref(&text),
            &WORDS,
        );
        std::fs::write(&path, &bytes).expect("a file");

        match catch_unwind(|| read_intervals(&path)) {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => assert!(
                error.to_string().contains(".log") || error.to_string().contains("not a line")
            ),
            Err(_) => panicked.push(seed),
        }
    }
    std::fs::remove_file(&path).expect("it is there");
    assert_eq!(panicked, [0; 0], "LOADLENS_SEED replays one");
}
