//! Any template with any value is a valid request.

use proptest::prelude::*;
use serde_json::{json, Value as Json};

use super::feeds::fed;
use super::*;

/// Any text that an answer may carry as a JSON string.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ -~]{0,30}",
        "[\r\n\t:%/?# \u{0}\u{7f}\u{e9}]{0,12}",
        "(|http:|HTTPS:)//(shop.test:8080|evil)[/?#][a-z/?#%2 ]{0,8}",
        "/[a-z/?=&%20]{0,8}"
    ]
}

/// A template for path, header or body: text that may stand there, and slots.
fn any_template() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z0-9/?=&._-]{0,6}",
        Just("{{v}}".to_owned()),
        Just("{{w}}".to_owned()),
        Just("{{uuid}}".to_owned()),
        Just("{{int -50 1000000}}".to_owned()),
        Just("{{float -1 1}}".to_owned()),
        Just("{{word 7}}".to_owned()),
        Just("{{choice a b/c d%20}}".to_owned()),
        Just("{{timestamp}}{{sequence}}{{traceparent}}".to_owned()),
        Just("{{timestamp iso}}{{timestamp us}}{{bool}}{{user}}".to_owned()),
        Just("{{hex 21}}{{choice \"a b\" \"\u{e9}\"}}".to_owned()),
        Just("{{feed.x}}".to_owned()),
        Just("{{feed.y.z}}".to_owned()),
    ];
    proptest::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

/// A path: begins with `/`, or with a raw value that brings it.
fn any_path() -> impl Strategy<Value = String> {
    let raw = prop_oneof![
        Just("{{raw v}}"),
        Just("{{ raw feed.x }}"),
        Just("{{raw w}}")
    ];
    (
        prop_oneof![Just("/"), Just("/"), raw],
        any_template(),
        prop_oneof![Just(""), Just("/{{raw v}}")],
    )
        .prop_map(|(start, middle, end)| format!("{start}{middle}{end}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn whatever_values_come_a_request_is_valid_http_with_the_length_it_says(
        path in any_path(),
        header in any_template(),
        text in any_template(),
        members in proptest::collection::vec(any_template(), 0..4),
        as_json: bool,
        values in (any_text(), any_text()),
        record in (any_text(), any_text()),
        seed: u64,
    ) {
        let body = if as_json {
            json!({"kind": "json", "value": {"members": members, "text": text}})
        } else {
            json!({"kind": "text", "text": text})
        };
        let steps = json!([
            {"name": "a", "method": "GET", "path": "/", "extract": [
                {"name": "v", "from": {"kind": "json", "path": "v"}}, {"name": "w", "from": {"kind": "json", "path": "w"}}]},
            {"name": "b", "method": "POST", "path": path, "headers": [["X-A", header], ["X-B", "end"]],
             "body": body}]);
        let record = json!({"x": record.0, "y": {"z": [record.1]}}).to_string();
        let stream = match fed(steps, "feed.jsonl", record.as_bytes(), json!({})) {
            Ok(stream) => stream,
            Err(faults) => {
                // What stands in a feed is judged before the start.
                let is_known = |what: &str| what.contains("control byte") || what.contains("unescaped in a path");
                prop_assert!(faults.iter().all(|fault| is_known(&fault.what)), "{:?}", faults);
                return Ok(());
            }
        };
        let answer = json!({"v": values.0, "w": [values.1, 1]}).to_string();
        let values = extracted(&stream, &answer);
        let mut random = Random::new(seed);
        let first = vec![0; stream.feeds.len()];
        let records = Records::new(&stream.feeds, &first);
        let mut context = RenderContext { random: &mut random, seq: seed, user: seed as u32, unix_ns: seed, t0_unix_ns: seed, records };
        let mut out = Vec::new();

        if let Err(fault) = stream.steps[1].render(&values, &mut context, &mut out) {
            prop_assert_ne!(fault, RenderFault::MissingValue); // a value that no header or path may carry
            prop_assert!(out.is_empty());
            return Ok(());
        }

        let mut headers = [httparse::EMPTY_HEADER; 16];
        let mut request = httparse::Request::new(&mut headers);
        let httparse::Status::Complete(head) = request.parse(&out).unwrap() else { panic!("not whole") };
        prop_assert_eq!((request.method, request.version), (Some("POST"), Some(1)));
        let names: Vec<&str> = request.headers.iter().map(|header| header.name).collect();
        let expected = if as_json {
            vec!["Host", "User-Agent", "Accept", "Content-Type", "X-A", "X-B", "Content-Length"]
        } else {
            vec!["Host", "User-Agent", "Accept", "X-A", "X-B", "Content-Length"]
        };
        prop_assert_eq!(names, expected);
        let length = std::str::from_utf8(request.headers.last().unwrap().value).unwrap();
        prop_assert_eq!(length.parse::<usize>().unwrap(), out.len() - head);
        let path = request.path.unwrap();
        prop_assert!(path.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"#<>\\^`{|}".contains(&byte)), "{}", path);
        if as_json {
            prop_assert!(serde_json::from_slice::<Json>(&out[head..]).is_ok());
        }
    }

    #[test]
    fn the_same_seed_renders_the_same_request(text in any_template(), seed: u64) {
        let steps = json!([
            {"name": "a", "method": "GET", "path": "/", "extract": [
                {"name": "v", "from": {"kind": "json", "path": "v"}}, {"name": "w", "from": {"kind": "json", "path": "w"}}]},
            {"name": "b", "method": "POST", "path": "/", "body": {"kind": "text", "text": text}}]);
        let stream = fed(steps, "feed.jsonl", br#"{"x": "a b", "y": {"z": [1]}}"#, json!({})).unwrap();
        let values = extracted(&stream, r#"{"v":"x","w":1}"#);

        let at = vec![0; stream.feeds.len()];
        let once = || {
            let records = Records::new(&stream.feeds, &at);
            let mut context = RenderContext { random: &mut Random::new(seed), seq: 1, user: 2, unix_ns: 3, t0_unix_ns: 3, records };
            let mut out = Vec::new();
            stream.steps[1].render(&values, &mut context, &mut out).unwrap();
            out
        };

        prop_assert_eq!(once(), once());
    }

    #[test]
    fn no_template_makes_the_reader_panic(text in "[{} a-z0-9.-]{0,40}") {
        let _ = check_template(&text, &["a".to_owned()], &["z".to_owned()]);
    }
}
