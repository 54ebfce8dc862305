//! Plans and results for tests that drive the whole engine against an origin.

#![allow(dead_code)] // each test file uses its part

use std::time::Duration;

use loadlens_engine::run::Run;
use serde_json::{json, Value};

/// A stream of one step against a port of this machine; `with` overrides or adds keys.
pub fn stream(port: u16, path: &str, with: Value) -> Value {
    let mut stream = json!({
        "name": "load",
        "role": "load",
        "target": {"host": "127.0.0.1", "port": port, "authority": format!("127.0.0.1:{port}")},
        "scenarios": [{"name": "s", "weight": 1, "steps": [{"name": "get", "method": "GET", "path": path}]}],
        "workload": {"kind": "closed", "users": 2},
        "timeout_ns": 2_000_000_000u64,
    });
    merge(&mut stream, with);
    stream
}

/// A plan of these streams; `with` overrides or adds keys.
pub fn plan(streams: Vec<Value>, with: Value) -> Value {
    let mut plan = json!({"schema_version": 1, "seed": 7, "streams": streams});
    merge(&mut plan, with);
    plan
}

fn merge(into: &mut Value, with: Value) {
    let (Value::Object(into), Value::Object(with)) = (into, with) else {
        return;
    };
    into.extend(with);
}

/// Runs a plan to its end, which must come within 20 s.
pub fn run(plan: &Value) -> Value {
    let mut run = Run::new(&plan.to_string()).unwrap_or_else(|refusal| panic!("{refusal:?}"));
    run.start().unwrap();
    assert!(
        run.wait(Duration::from_secs(20)),
        "the run did not end: {}",
        run.progress()
    );
    serde_json::from_str(&run.result().unwrap()).unwrap()
}

/// Runs one stream for so many requests in all and returns its part of the result.
pub fn run_stream(stream: Value) -> Value {
    let result = run(&plan(vec![stream], json!({})));
    result["streams"][0].clone()
}

/// A count of a stream's `requests`.
pub fn count(stream: &Value, key: &str) -> u64 {
    stream["requests"][key]
        .as_u64()
        .unwrap_or_else(|| panic!("no count {key} in {stream}"))
}

/// Every outcome of a stream with its count, as the record names them.
pub fn outcomes(stream: &Value) -> Vec<(String, u64)> {
    let mut outcomes: Vec<(String, u64)> = ["ok", "unexpected_status", "check_failed", "in_flight"]
        .iter()
        .map(|key| ((*key).to_owned(), count(stream, key)))
        .collect();
    for (class, error) in stream["errors"].as_object().unwrap() {
        outcomes.push((class.clone(), error["count"].as_u64().unwrap()));
    }
    outcomes.retain(|(_, count)| *count > 0);
    outcomes
}
