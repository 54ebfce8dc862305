//! Checks and extractions over answers that arrive in pieces: a chunked body cut into chunks at every byte, and the
//! whole answer cut into two receives at every byte. The judgement must not depend on either.

use loadlens_base::Random;
use loadlens_engine::worker::reply::{Fed, Place, Reply, Store};
use loadlens_http::known::KnownHead;
use loadlens_plan::program::{
    Answer, Judgement, Judging, Program, Records, RenderContext, StreamProgram, Values,
};
use serde_json::json;

const BODY: &str = r#"{"id":417,"k\u0065y":"gr\u00fcn","items":[{"n":1.5},{"n":[2,3]}],"at":"x"}"#;

fn step_with_everything() -> StreamProgram {
    let steps = json!([{"name": "a", "method": "GET", "path": "/",
        "checks": [
            {"kind": "json", "path": "items[-1].n", "equals": [2, 3]},
            {"kind": "absent", "path": "error"},
            {"kind": "count", "path": "items", "is": {"equals": 2}},
            {"kind": "number", "path": "items[0].n", "is": {"above": 1, "below": 2}},
            {"kind": "contains", "text": "gr\\u00fcn"},
            {"kind": "regex", "pattern": r#""at":"x"}$"#},
            {"kind": "size", "is": {"equals": BODY.len()}}],
        "extract": [
            {"name": "id", "from": {"kind": "json", "path": "id"}},
            {"name": "key", "from": {"kind": "json", "path": "key"}},
            {"name": "number", "from": {"kind": "regex", "pattern": r#""id":(\d+)"#}}]},
        {"name": "b", "method": "POST", "path": "/{{id}}/{{key}}/{{number}}"}]);
    let plan = serde_json::from_value(json!({
        "schema_version": 1, "seed": 1, "duration_ns": 1_000_000_000,
        "streams": [{
            "name": "load", "role": "load", "timeout_ns": 1_000_000_000,
            "target": {"host": "127.0.0.1", "port": 8080, "authority": "shop.test:8080"},
            "workload": {"kind": "closed", "users": 1},
            "scenarios": [{"name": "visit", "weight": 1.0, "steps": steps}],
        }],
    }))
    .unwrap();
    Program::compile(&plan).unwrap().streams.remove(0)
}

/// Feeds an answer piece by piece, judges it, and renders the next request with what was extracted.
fn judged(stream: &StreamProgram, judging: &mut Judging, pieces: &[&[u8]]) -> (Judgement, String) {
    let step = &stream.steps[0];
    let mut store = Store::new(1 << 20);
    let mut reply = Reply::default();
    let mut heads = KnownHead::new(step.request_is_head);
    let mut values = Values::default();
    for piece in pieces {
        match reply.feed(piece, step.need, &mut heads, &mut store) {
            Fed::More => {}
            Fed::Broken(violation) => panic!("{}", violation.what()),
            Fed::Whole { consumed, place } => {
                assert_eq!(consumed, piece.len());
                let (head, body) = match place {
                    Place::Input { head, body, end } => (&piece[head..body], &piece[body..end]),
                    Place::Store { buffer, head_len } => store.bytes(buffer).split_at(head_len),
                };
                let answer = Answer {
                    status: reply.head().unwrap().status,
                    head,
                    body,
                    body_bytes: reply.body_bytes,
                    ..Answer::default()
                };
                let judgement = step.judge(&answer, &mut values, judging);
                return (judgement, request_line_of_next(stream, &values));
            }
        }
    }
    panic!("the answer did not end")
}

fn request_line_of_next(stream: &StreamProgram, values: &Values) -> String {
    let mut context = RenderContext {
        random: &mut Random::new(1),
        seq: 0,
        user: 0,
        records: Records::default(),
        unix_ns: 0,
        t0_unix_ns: 0,
    };
    let mut request = Vec::new();
    stream.steps[1]
        .render(values, &mut context, &mut request)
        .unwrap();
    let request = String::from_utf8(request).unwrap();
    request.lines().next().unwrap().to_owned()
}

fn chunked(chunks: &[&[u8]]) -> Vec<u8> {
    let mut answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in chunks {
        answer.extend(format!("{:x}\r\n", chunk.len()).bytes());
        answer.extend_from_slice(chunk);
        answer.extend_from_slice(b"\r\n");
    }
    answer.extend_from_slice(b"0\r\n\r\n");
    answer
}

#[test]
fn what_is_said_of_a_chunked_answer_does_not_depend_on_where_it_is_cut() {
    let stream = step_with_everything();
    let mut judging = Judging::new(&stream);
    let wanted = (Judgement::Ok, "POST /417/gr%C3%BCn/417 HTTP/1.1".to_owned());
    let mut answers = 0;

    for cut in 1..BODY.len() {
        let (one, two) = BODY.as_bytes().split_at(cut);
        let answer = chunked(&[one, two]);
        for split in 1..answer.len() {
            let (first, second) = answer.split_at(split);
            let judged = judged(&stream, &mut judging, &[first, second]);
            assert_eq!(
                judged, wanted,
                "chunk of {cut} bytes, received in {split} and the rest"
            );
            answers += 1;
        }
    }
    let single: Vec<&[u8]> = BODY.as_bytes().chunks(1).collect();
    let answer = chunked(&single);
    let bytes: Vec<&[u8]> = answer.chunks(1).collect();
    assert_eq!(judged(&stream, &mut judging, &bytes), wanted);

    // The status, seven checks, three extractions: each passed every time.
    assert_eq!(judging.tallies.len(), 11);
    assert!(judging
        .tallies
        .iter()
        .all(|tally| tally.passed == answers + 1));
}

#[test]
fn a_chunked_answer_that_misses_a_check_misses_it_wherever_it_is_cut() {
    let stream = step_with_everything();
    let mut judging = Judging::new(&stream);
    let body = BODY.replace("[2,3]", "[2,4]");

    for cut in 1..body.len() {
        let (one, two) = body.as_bytes().split_at(cut);
        let answer = chunked(&[one, two]);
        let (first, second) = answer.split_at(answer.len() * cut / body.len());
        let (judgement, _) = judged(&stream, &mut judging, &[first, second]);
        assert_eq!(judgement, Judgement::CheckFailed(0), "{cut}");
    }
}
