//! Plans and templates: refused in words, or requests that are valid HTTP whatever values come.

use loadlens_base::Random;
use loadlens_http::response::{parse_head, HeadResult};
use loadlens_plan::program::{
    Answer, Judging, Program, Records, RenderContext, StreamProgram, Values,
};
use loadlens_plan::Plan;
use serde_json::{json, Value};

use crate::literal::request::{request, Request};
use crate::Ending;

/// A plan as JSON. What compiles is rendered for a few iterations.
pub fn plan(bytes: &[u8]) -> Ending {
    let Ok(plan) = serde_json::from_slice::<Plan>(bytes) else {
        return Ending::Refused;
    };
    let again: Plan = serde_json::to_value(&plan)
        .and_then(serde_json::from_value)
        .expect("what was read is written and read again");
    assert_eq!(again, plan);
    let faults = plan.validate();
    let program = match Program::compile(&plan) {
        Ok(program) => program,
        Err(compiled) => {
            assert!(!compiled.is_empty());
            return Ending::Refused;
        }
    };
    assert!(faults.is_empty(), "compiled in spite of {faults:?}");
    for stream in &program.streams {
        for scenario in 0..stream.scenarios.len() {
            for seed in 0..3 {
                iterate(stream, scenario, seed);
            }
        }
    }
    Ending::Read
}

const ANSWER: &str = r#"{"id": 7, "text": "a b\r\nHost: evil\u0000é", "next": "http://a/items/7?x=1#top",
    "data": {"id": "x/y?z#", "name": "\"q\"", "items": [{"id": -1.5e3}, {"id": [1, {"a": "b"}]}, {"id": null}]}}"#;

/// Renders the steps of one iteration in their order, each answered alike.
fn iterate(stream: &StreamProgram, scenario: usize, seed: u64) {
    let mut values = Values::default();
    let mut judging = Judging::new(stream);
    let records = vec![0; stream.feeds.len()];
    let begins = stream.scenarios[scenario].begins;
    for at in begins..begins.saturating_add(20) {
        let Some(step) = stream.flow.step(at) else {
            break;
        };
        let step = &stream.steps[usize::from(step)];
        let mut context = RenderContext {
            random: &mut Random::new(seed),
            seq: seed << 40,
            user: u32::MAX,
            unix_ns: u64::MAX,
            t0_unix_ns: 0,
            records: Records::new(&stream.feeds, &records),
        };
        let mut out = Vec::new();
        match step.render(&values, &mut context, &mut out) {
            Ok(()) => {
                check_request(&out);
            }
            Err(_) => assert!(out.is_empty(), "half a request"),
        }
        let judged = judge(stream, at, ANSWER.as_bytes(), &mut values, &mut judging);
        if !judged {
            break;
        }
    }
}

/// Answers the step at a position; false: the iteration ends there.
fn judge(
    stream: &StreamProgram,
    at: u16,
    body: &[u8],
    values: &mut Values,
    judging: &mut Judging,
) -> bool {
    let step = &stream.steps[usize::from(stream.flow.step(at).expect("a step"))];
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nX-A: a b&c\r\nLocation: /x/7\r\nContent-Length: {length}\r\n\r\n"
    );
    let HeadResult::Complete(read) = parse_head(head.as_bytes(), false) else {
        unreachable!("{head}")
    };
    let answer = Answer {
        status: read.status,
        head: head.as_bytes(),
        body,
        body_bytes: length as u64,
        ..Answer::default()
    };
    let judgement = step.judge(&answer, values, judging);
    !step.ends_iteration(judgement)
}

/// One request, valid by the letter and by httparse.
fn check_request(bytes: &[u8]) -> Request {
    let read = request(bytes).unwrap_or_else(|why| panic!("{why}: {}", bytes.escape_ascii()));
    let mut fields = [httparse::EMPTY_HEADER; 512];
    let mut parsed = httparse::Request::new(&mut fields);
    let status = parsed.parse(bytes);
    assert_eq!(
        status,
        Ok(httparse::Status::Complete(bytes.len() - read.body.len()))
    );
    assert_eq!(parsed.method, Some(read.method.as_str()));
    assert_eq!(parsed.path, Some(read.target.as_str()));
    assert_eq!(parsed.headers.len(), read.fields.len());
    read
}

/// Byte 0xff, which no text has, parts an input into path, header, text, member of a JSON body, and the values that an
/// answer brings: one in a JSON string, one in an array, one that a regular expression finds in bytes.
pub fn template(bytes: &[u8]) -> Ending {
    let mut parts = bytes.split(|byte| *byte == 0xff);
    let mut part = || parts.next().unwrap_or_default();
    let mut text = || String::from_utf8_lossy(part()).into_owned();
    let (path, header, body, member) = (text(), text(), text(), text());
    let (string, item) = (text(), text());
    let raw = part();

    let read = [
        json!({"kind": "text", "text": body}),
        json!({"kind": "json", "value": {"a": [member], "b": body}}),
    ]
    .map(|body| sent(&path, &header, &body, (&string, &item, raw)));
    if read.contains(&true) {
        Ending::Read
    } else {
        Ending::Refused
    }
}

/// One user who repeats these steps; none: they are refused.
pub(crate) fn repeating(steps: &Value, authority: &str) -> Option<Program> {
    let plan = json!({
        "schema_version": 1, "seed": 1, "duration_ns": 1_000_000,
        "streams": [{
            "name": "load", "role": "load", "timeout_ns": 1_000_000,
            "target": {"host": "127.0.0.1", "port": 80, "authority": authority},
            "scenarios": [{"name": "s", "weight": 1, "steps": steps}],
            "workload": {"kind": "closed", "users": 1},
        }],
    });
    let plan: Plan = serde_json::from_value(plan).expect("a plan");
    Program::compile(&plan).ok()
}

/// Renders a request with this path, header and body; false: it was refused.
fn sent(path: &str, header: &str, body: &Value, (string, item, raw): (&str, &str, &[u8])) -> bool {
    let regex = json!({"kind": "regex", "pattern": "(?s-u)^(.*)$"});
    let steps = json!([
        {"name": "a", "method": "GET", "path": "/", "extract": [
            {"name": "v", "from": {"kind": "json", "path": "v"}},
            {"name": "w", "from": {"kind": "json", "path": "w"}}]},
        {"name": "b", "method": "GET", "path": "/", "extract": [{"name": "r", "from": regex}]},
        {"name": "c", "method": "PUT", "path": path, "headers": [["X-A", header], ["X-End", "1"]], "body": body},
    ]);
    let Some(program) = repeating(&steps, "shop.test:8080") else {
        return false;
    };
    let stream = &program.streams[0];
    let mut values = Values::default();
    let mut judging = Judging::new(stream);
    let answer = json!({"v": string, "w": [item, 1]}).to_string();
    assert!(judge(
        stream,
        0,
        answer.as_bytes(),
        &mut values,
        &mut judging
    ));
    assert!(judge(stream, 1, raw, &mut values, &mut judging));
    let mut context = RenderContext {
        random: &mut Random::new(raw.len() as u64),
        seq: u64::MAX,
        user: 3,
        unix_ns: 1_700_000_000_999_999_999,
        t0_unix_ns: 0,
        records: Records::default(),
    };
    let mut out = b"before".to_vec();
    if stream.steps[2]
        .render(&values, &mut context, &mut out)
        .is_err()
    {
        assert_eq!(out, b"before", "half a request");
        return false;
    }
    let read = check_request(&out[6..]);
    let names: Vec<&str> = read.fields.iter().map(|(name, _)| name.as_str()).collect();
    let is_json = body["kind"] == "json";
    let kind: &[&str] = if is_json { &["content-type"] } else { &[] };
    let expected = [
        &["host", "user-agent", "accept"],
        kind,
        &["x-a", "x-end", "content-length"],
    ]
    .concat();
    assert_eq!((read.method.as_str(), names), ("PUT", expected));
    if is_json {
        serde_json::from_slice::<Value>(&read.body).expect("JSON");
    }
    true
}
