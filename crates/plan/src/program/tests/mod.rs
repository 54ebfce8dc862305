//! Plans compiled, rendered and judged, without a network.

mod checks;
mod faults;
mod feeds;
mod generated;
mod requests;

use serde_json::{json, Value as Json};

use super::*;
use loadlens_http::response::{parse_head, HeadResult};

/// A plan of one stream whose scenario has these steps.
fn plan(steps: Json) -> Plan {
    serde_json::from_value(json!({
        "schema_version": 1, "seed": 1, "duration_ns": 1_000_000_000,
        "streams": [{
            "name": "load", "role": "load", "timeout_ns": 1_000_000_000,
            "target": {"host": "127.0.0.1", "port": 8080, "authority": "shop.test:8080"},
            "workload": {"kind": "closed", "users": 1},
            "scenarios": [{"name": "visit", "weight": 1.0, "steps": steps}],
        }],
    }))
    .unwrap()
}

fn compiled(steps: Json) -> StreamProgram {
    Program::compile(&plan(steps)).unwrap().streams.remove(0)
}

/// The one fault of a plan, as `where: what`.
fn fault(steps: Json) -> String {
    let faults = Program::compile(&plan(steps)).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults[0].to_string()
}

fn rendered(step: &StepProgram, values: &Values, random: &mut Random) -> String {
    let mut out = Vec::new();
    let mut context = RenderContext {
        random,
        seq: 41,
        user: 5,
        records: Records::default(),
        unix_ns: 1_700_000_000_999_999_999,
        t0_unix_ns: 0,
    };
    step.render(values, &mut context, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn body_of(request: &str) -> &str {
    request.split_once("\r\n\r\n").unwrap().1
}

/// Values as after an answer with this JSON body, extracted by `names` from members of the same name.
fn extracted(stream: &StreamProgram, body: &str) -> Values {
    let mut values = Values::default();
    assert_eq!(
        answered(&stream.steps[0], "", body, &mut values),
        Judgement::Ok
    );
    values
}

fn answered(step: &StepProgram, headers: &str, body: &str, values: &mut Values) -> Judgement {
    // Room for the tallies of any step of these tests.
    let mut judging = Judging {
        tallies: vec![CheckTally::default(); 64],
        ..Judging::default()
    };
    judged(step, headers, body, values, &mut judging)
}

fn judged(
    step: &StepProgram,
    headers: &str,
    body: &str,
    values: &mut Values,
    judging: &mut Judging,
) -> Judgement {
    let bytes = format!(
        "HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    let HeadResult::Complete(head) = parse_head(bytes.as_bytes(), false) else {
        panic!("{bytes}")
    };
    let answer = Answer {
        status: head.status,
        head: bytes.as_bytes(),
        body: body.as_bytes(),
        body_bytes: body.len() as u64,
        ..Answer::default()
    };
    step.judge(&answer, values, judging)
}
