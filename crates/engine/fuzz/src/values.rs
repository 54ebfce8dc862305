//! Extraction by JSON path, against a slow walk through the whole value.

use loadlens_base::Random;
use loadlens_plan::program::{
    Answer, Judgement, Judging, Program, Records, RenderContext, Values, MAX_VALUE_BYTES,
};
use serde_json::json;

use crate::literal::json::{at, Json};
use crate::plans::repeating;
use crate::Ending;

/// A path, a line end, and a body in which something may stand there.
pub fn json_path(bytes: &[u8]) -> Ending {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (path, body) = bytes.split_at(end.unwrap_or(bytes.len()));
    let (path, body) = (String::from_utf8_lossy(path), body.get(1..).unwrap_or(b""));
    let Some(program) = extracting(&path) else {
        return Ending::Refused;
    };

    let extraction = extracted(&program, body);

    let value: Option<Json> = serde_json::from_slice(body).ok();
    match (&extraction, value.as_ref().map(|value| at(value, &path))) {
        // Of a body that is no JSON only the way to the value is looked at.
        (_, None) => {}
        (Ok(text), Some(Some(Json::Text(expected)))) => assert_eq!(*text, expected.as_bytes()),
        (Ok(text), Some(Some(expected))) => {
            let again: Json = serde_json::from_slice(text).expect("a JSON value");
            assert_eq!(&again, expected);
        }
        (Err(Judgement::ExtractionFailed(0)), Some(None)) => {}
        (Err(Judgement::ExtractedTooLong(0)), Some(Some(_))) => {
            assert!(body.len() > MAX_VALUE_BYTES);
        }
        (extraction, expected) => panic!("{extraction:?}, and there is {expected:?}"),
    }
    if extraction.is_ok() {
        Ending::Read
    } else {
        Ending::Refused
    }
}

/// A step that extracts, and one that sends what was extracted as it is.
fn extracting(path: &str) -> Option<Program> {
    let steps = json!([
        {"name": "a", "method": "GET", "path": "/",
         "extract": [{"name": "v", "from": {"kind": "json", "path": path}}]},
        {"name": "b", "method": "POST", "path": "/", "body": {"kind": "text", "text": "{{v}}"}},
    ]);
    repeating(&steps, "a")
}

fn extracted(program: &Program, body: &[u8]) -> Result<Vec<u8>, Judgement> {
    let stream = &program.streams[0];
    let mut values = Values::default();
    let answer = Answer {
        status: 200,
        body,
        body_bytes: body.len() as u64,
        ..Answer::default()
    };
    match stream.steps[0].judge(&answer, &mut values, &mut Judging::new(stream)) {
        Judgement::Ok => {}
        other => return Err(other),
    }
    let mut context = RenderContext {
        random: &mut Random::new(1),
        seq: 0,
        user: 0,
        unix_ns: 0,
        t0_unix_ns: 0,
        records: Records::default(),
    };
    let mut out = Vec::new();
    let rendered = stream.steps[1].render(&values, &mut context, &mut out);
    rendered.expect("a text may hold anything");
    let head = out.windows(4).position(|four| four == b"\r\n\r\n");
    Ok(out[head.expect("a request") + 4..].to_vec())
}
