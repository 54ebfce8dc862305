use proptest::prelude::*;
use serde_json::{json, Value as Json};

use super::*;
use crate::http1::response::{parse_head, HeadResult};

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
        unix_ns: 1_700_000_000_999_999_999,
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
    let bytes = format!(
        "HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    let HeadResult::Complete(head) = parse_head(bytes.as_bytes(), false) else {
        panic!("{bytes}")
    };
    step.judge(&head, bytes.as_bytes(), body.as_bytes(), values)
}

#[test]
fn a_request_without_templates_is_one_constant() {
    let stream = compiled(json!([{"name": "home", "method": "GET", "path": "/a?b=c%20d"}]));

    let expected = format!(
        "GET /a?b=c%20d HTTP/1.1\r\nHost: shop.test:8080\r\nUser-Agent: loadlens/{}\r\nAccept: */*\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
    let step = &stream.steps[0];
    assert_eq!(step.static_bytes(), Some(expected.as_bytes()));
    assert!(step.is_static() && step.need == Need::Nothing && stream.slots == 0);
    assert_eq!(
        rendered(step, &Values::default(), &mut Random::new(1)),
        expected
    );
}

#[test]
fn headers_of_the_plan_replace_the_usual_ones_and_keep_their_order() {
    let stream = compiled(
        json!([{"name": "a", "method": "POST", "path": "/", "body": {"kind": "json", "value": {"a": 1}},
        "headers": [["user-agent", "me"], ["B", "1"], ["A", "2"], ["content-type", "x/y"], ["B", ""]]}]),
    );

    let request = String::from_utf8(stream.steps[0].static_bytes().unwrap().to_vec()).unwrap();
    assert_eq!(
        request,
        "POST / HTTP/1.1\r\nHost: shop.test:8080\r\nAccept: */*\r\nuser-agent: me\r\nB: 1\r\nA: 2\r\n\
         content-type: x/y\r\nB: \r\nContent-Length: 7\r\n\r\n{\"a\":1}"
    );
}

#[test]
fn a_connection_for_each_request_says_close() {
    let mut plan = plan(json!([{"name": "a", "method": "GET", "path": "/"}]));
    plan.streams[0].connection.reuse = crate::plan::Reuse::New;

    let program = Program::compile(&plan).unwrap();

    let request = program.streams[0].steps[0].static_bytes().unwrap();
    assert!(String::from_utf8_lossy(request).contains("\r\nConnection: close\r\n"));
}

#[test]
fn a_method_that_expects_a_body_says_that_there_is_none() {
    // RFC 9110 8.6
    for (method, length) in [
        ("POST", true),
        ("PUT", true),
        ("PATCH", true),
        ("GET", false),
        ("DELETE", false),
    ] {
        let stream = compiled(json!([{"name": "a", "method": method, "path": "/"}]));
        let request = String::from_utf8_lossy(stream.steps[0].static_bytes().unwrap()).into_owned();
        assert_eq!(
            request.contains("Content-Length: 0\r\n"),
            length,
            "{method}"
        );
    }
    assert!(
        compiled(json!([{"name": "a", "method": "HEAD", "path": "/"}])).steps[0].request_is_head
    );
}

#[test]
fn each_form_of_slot_gives_what_it_says() {
    let stream = compiled(
        json!([{"name": "a", "method": "POST", "path": "/", "body": {"kind": "text", "text":
        "{{uuid}} {{int -3 3}} {{float 1 2}} {{word 15}} {{choice red green}} {{timestamp}} {{sequence}}"}}]),
    );
    let mut random = Random::new(5);
    let mut ints = [0; 7];

    for _ in 0..300 {
        let request = rendered(&stream.steps[0], &Values::default(), &mut random);
        let parts: Vec<&str> = body_of(&request).split(' ').collect();
        let [uuid, int, float, word, choice, timestamp, sequence] = parts[..] else {
            panic!("{parts:?}")
        };
        let dashes: Vec<usize> = uuid.match_indices('-').map(|(at, _)| at).collect();
        assert!(
            uuid.len() == 36 && dashes == [8, 13, 18, 23] && &uuid[14..15] == "4",
            "{uuid}"
        );
        assert!(matches!(&uuid[19..20], "8" | "9" | "a" | "b"), "{uuid}"); // RFC 9562: variant 10
        ints[(int.parse::<i64>().unwrap() + 3) as usize] += 1;
        assert!(
            (1.0..2.0).contains(&float.parse::<f64>().unwrap()),
            "{float}"
        );
        assert!(
            word.len() == 15 && word.bytes().all(|byte| byte.is_ascii_lowercase()),
            "{word}"
        );
        assert!(matches!(choice, "red" | "green"));
        assert_eq!((timestamp, sequence), ("1700000000", "41"));
    }

    assert!(ints.iter().all(|count| *count > 20), "{ints:?}"); // 43 expected of each
}

#[test]
fn the_widest_whole_numbers_can_be_drawn() {
    let stream = compiled(
        json!([{"name": "a", "method": "POST", "path": "/", "body": {"kind": "text",
        "text": "{{int -9223372036854775808 9223372036854775807}} {{int 9223372036854775807 9223372036854775807}}"}}]),
    );

    let request = rendered(&stream.steps[0], &Values::default(), &mut Random::new(1));

    let (wide, single) = body_of(&request).split_once(' ').unwrap();
    assert!(wide.parse::<i64>().is_ok() && single == "9223372036854775807");
}

#[test]
fn a_json_string_that_is_one_slot_keeps_its_type_and_others_are_text() {
    let stream = compiled(json!([
        {"name": "a", "method": "GET", "path": "/", "extract": [
            {"name": "id", "from": {"kind": "json", "path": "id"}},
            {"name": "text", "from": {"kind": "json", "path": "text"}},
            {"name": "list", "from": {"kind": "json", "path": "list"}}]},
        {"name": "b", "method": "POST", "path": "/", "body": {"kind": "json", "value": {
            "id": "{{id}}", "text": "{{text}}", "list": "{{list}}", "n": "{{int 7 7}}", "s": "{{sequence}}",
            "f": "{{float 0.5 0.5}}", "t": "{{timestamp}}", "word": "{{word 2}}", "c": "{{choice a\"b}}",
            "mixed": "n={{int 7 7}} id={{id}} t={{text}} l={{list}}", "plain": "q\" \u{e9}", "x": [1.5, null, true]}}}]));
    let values = extracted(&stream, r#"{"id":12,"text":"a\"\u00e9\n","list":[1, "x"]}"#);

    let request = rendered(&stream.steps[1], &values, &mut Random::new(1));

    let body: Json = serde_json::from_str(body_of(&request)).unwrap();
    let word = body["word"].as_str().unwrap();
    assert_eq!(
        body,
        json!({"id": 12, "text": "a\"\u{e9}\n", "list": [1, "x"], "n": 7, "s": 41, "f": 0.5, "t": 1_700_000_000,
            "word": word, "c": "a\"b", "mixed": "n=7 id=12 t=a\"\u{e9}\n l=[1, \"x\"]", "plain": "q\" \u{e9}",
            "x": [1.5, null, true]})
    );
    assert!(request.contains("Content-Type: application/json\r\n"));
}

#[test]
fn extracted_values_are_written_for_their_place() {
    let stream = compiled(json!([
        {"name": "a", "method": "GET", "path": "/", "extract": [
            {"name": "v", "from": {"kind": "json", "path": "v"}}, {"name": "h", "from": {"kind": "header", "name": "X-H"}}]},
        {"name": "b", "method": "POST", "path": "/p/{{v}}?h={{h}}", "headers": [["X-V", "<{{v}}>"]],
         "body": {"kind": "text", "text": "{{v}}|{{h}}"}}]));
    let mut values = Values::default();
    let judgement = answered(
        &stream.steps[0],
        "X-H:  a b&c \r\n",
        r#"{"v":"x/y \"?"}"#,
        &mut values,
    );
    assert_eq!(judgement, Judgement::Ok);

    let request = rendered(&stream.steps[1], &values, &mut Random::new(1));

    assert!(
        request.starts_with("POST /p/x%2Fy%20%22%3F?h=a%20b%26c HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.contains("\r\nX-V: <x/y \"?>\r\n"), "{request}");
    assert_eq!(body_of(&request), "x/y \"?|a b&c");
}

#[test]
fn a_value_that_would_end_a_header_is_refused_and_nothing_is_sent() {
    let stream = compiled(json!([
        {"name": "a", "method": "GET", "path": "/", "extract": [{"name": "v", "from": {"kind": "json", "path": "v"}}]},
        {"name": "b", "method": "GET", "path": "/", "headers": [["X-V", "{{v}}"]]}]));
    let mut random = Random::new(1);
    let mut context = RenderContext {
        random: &mut random,
        seq: 0,
        unix_ns: 0,
    };
    let mut out = b"before".to_vec();

    for value in [r#"a\r\nHost: evil"#, r#"a\u0000"#, r#"a\nb"#] {
        let values = extracted(&stream, &format!(r#"{{"v":"{value}"}}"#));
        let found = stream.steps[1].render(&values, &mut context, &mut out);
        assert_eq!(
            (found, out.as_slice()),
            (Err(RenderFault::HeaderValue), &b"before"[..])
        );
    }
    let found = stream.steps[1].render(&Values::default(), &mut context, &mut out);
    assert_eq!(
        (found, out.as_slice()),
        (Err(RenderFault::MissingValue), &b"before"[..])
    );
}

#[test]
fn the_length_is_right_when_it_has_more_or_fewer_digits_than_is_typical() {
    let stream = compiled(json!([
        {"name": "a", "method": "GET", "path": "/", "extract": [{"name": "v", "from": {"kind": "json", "path": "v"}}]},
        {"name": "b", "method": "POST", "path": "/", "body": {"kind": "text", "text": "{{v}}"}}]));
    for length in [0, 1, 9, 10, 99, 100, 999, 1000, 60_000] {
        let values = extracted(&stream, &format!(r#"{{"v":"{}"}}"#, "x".repeat(length)));

        let request = rendered(&stream.steps[1], &values, &mut Random::new(1));

        assert!(
            request.contains(&format!("\r\nContent-Length: {length}\r\n\r\n")),
            "{length}"
        );
        assert_eq!(body_of(&request), "x".repeat(length));
    }
}

#[test]
fn the_environment_is_read_once_and_never_told() {
    // SAFETY of the test: names of its own, no other test reads or writes them.
    unsafe {
        std::env::set_var("LOADLENS_TEST_TOKEN", "s3cr3t/\"x");
        std::env::set_var("LOADLENS_TEST_BROKEN", "s3cr3t\r\nA: b");
    }
    let step = |header: &str| {
        json!([{"name": "a", "method": "POST", "path": "/{{env LOADLENS_TEST_TOKEN}}",
            "headers": [["Authorization", header]],
            "body": {"kind": "json", "value": {"t": "{{env LOADLENS_TEST_TOKEN}}"}}}])
    };

    let stream = compiled(step("Bearer {{env LOADLENS_TEST_TOKEN}}"));
    let request = String::from_utf8(stream.steps[0].static_bytes().unwrap().to_vec()).unwrap();
    assert!(
        request.starts_with("POST /s3cr3t%2F%22x HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request.contains("\r\nAuthorization: Bearer s3cr3t/\"x\r\n"),
        "{request}"
    );
    assert_eq!(body_of(&request), r#"{"t":"s3cr3t/\"x"}"#);

    assert!(!format!("{stream:?}").contains("s3cr3t"), "{stream:?}");

    let broken = fault(step("{{env LOADLENS_TEST_BROKEN}}"));
    assert_eq!(
        broken,
        "streams[0].scenarios[0].steps[0].headers[0]: environment variable LOADLENS_TEST_BROKEN has a control byte, \
         which no header may have"
    );
    let unset = fault(step("{{env LOADLENS_TEST_UNSET}}"));
    assert!(
        unset.contains("environment variable LOADLENS_TEST_UNSET is not set"),
        "{unset}"
    );
    assert!(plan(step("{{env LOADLENS_TEST_UNSET}}"))
        .validate()
        .is_empty()); // reads no environment
}

#[test]
fn a_body_file_is_sent_only_as_it_was_planned() {
    let path = std::env::temp_dir().join(format!("loadlens-body-{}", std::process::id()));
    std::fs::write(&path, "abc").unwrap();
    // FIPS 180-2, appendix B.1: SHA-256 of "abc".
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let step = |path: &str, digest: &str| json!([{"name": "a", "method": "PUT", "path": "/", "body": {"kind": "file", "path": path, "digest": digest}}]);
    let path = path.to_str().unwrap();

    let stream = compiled(step(path, digest));
    assert!(stream.steps[0]
        .static_bytes()
        .unwrap()
        .ends_with(b"Content-Length: 3\r\n\r\nabc"));
    assert!(fault(step(path, &"0".repeat(64))).contains("has changed since the plan was made"));
    std::fs::remove_file(path).unwrap();
    assert!(fault(step(path, digest)).contains("cannot be read"));
    assert!(plan(step(path, digest)).validate().is_empty()); // reads no file
}

#[test]
fn what_cannot_be_sent_is_refused_where_it_stands() {
    let at = "streams[0].scenarios[0].steps[0]";
    let get = |path: &str| json!([{"name": "a", "method": "GET", "path": path}]);
    let with_header = |name: &str, value: &str| json!([{"name": "a", "method": "GET", "path": "/", "headers": [[name, value]]}]);
    for (steps, place, part) in [
        (get("items"), ".path", "does not begin with `/`"),
        (
            get("/a b"),
            ".path",
            "` ` may not stand in a path or query: write %20",
        ),
        (get("/a#b"), ".path", "write %23"),
        (get("/\u{e9}"), ".path", "write %C3%A9"),
        (get("/a\r\nb"), ".path", "write %0D"),
        (get("/100%"), ".path", "write %25"),
        (get("/{{uuidd}}"), ".path", "did you mean `uuid`?"),
        (
            json!([{"name": "a", "method": "GE T", "path": "/"}]),
            ".method",
            "is no method",
        ),
        (
            json!([{"name": "a", "method": "CONNECT", "path": "/"}]),
            ".method",
            "tunnel",
        ),
        (
            with_header("Host", "a"),
            ".headers[0]",
            "set target.authority",
        ),
        (
            with_header("connection", "close"),
            ".headers[0]",
            "set connection.reuse",
        ),
        (
            with_header("Content-Length", "1"),
            ".headers[0]",
            "engine's own",
        ),
        (
            with_header("Transfer-Encoding", "chunked"),
            ".headers[0]",
            "engine's own",
        ),
        (
            with_header("Expect", "100-continue"),
            ".headers[0]",
            "engine's own",
        ),
        (with_header("A B", "c"), ".headers[0]", "is no header name"),
        (
            with_header("A", "b\r\nC: d"),
            ".headers[0]",
            "a control byte",
        ),
        (
            json!([{"name": "a", "method": "POST", "path": "/", "body": {"kind": "json", "value": {"{{uuid}}": 1}}}]),
            ".body.value",
            "a key of a JSON body cannot be a template",
        ),
        (
            json!([{"name": "a", "method": "POST", "path": "/", "body": {"kind": "json", "value": {"a": ["{{x}}"]}}}]),
            ".body.value.a[0]",
            "`x` is unknown",
        ),
        (
            json!([{"name": "a", "method": "GET", "path": "/", "checks": [{"kind": "json", "path": "a..b", "equals": 1}]}]),
            ".checks[0]",
            "empty name",
        ),
        (
            json!([{"name": "a", "method": "GET", "path": "/", "checks": [{"kind": "contains", "text": "{{uuid}}"}]}]),
            ".checks[0]",
            "templates are not filled here",
        ),
        (
            json!([{"name": "a", "method": "GET", "path": "/", "headers": [["Accept-Encoding", "gzip"]],
                "checks": [{"kind": "contains", "text": "x"}]}]),
            ".headers[0]",
            "do not unpack",
        ),
        (
            json!([{"name": "a", "method": "GET", "path": "/", "extract": [
                {"name": "uuid", "from": {"kind": "header", "name": "A"}}]}]),
            ".extract[0]",
            "already means something",
        ),
    ] {
        let found = fault(steps);
        assert!(found.starts_with(&format!("{at}{place}: ")), "{found}");
        assert!(found.contains(part), "{found} lacks {part}");
    }
}

#[test]
fn a_name_is_known_only_to_later_steps_of_its_scenario() {
    let mut two = plan(json!([
        {"name": "a", "method": "GET", "path": "/", "extract": [{"name": "id", "from": {"kind": "json", "path": "id"}}]},
        {"name": "b", "method": "GET", "path": "/{{id}}"}]));
    assert!(Program::compile(&two).is_ok());

    two.streams[0].scenarios[0].steps.reverse();
    let faults = two.validate();
    assert_eq!(faults.len(), 1);
    assert!(
        faults[0].what.contains("no earlier step extracts anything"),
        "{}",
        faults[0]
    );
}

#[test]
fn every_fault_comes_at_once_and_from_both_ways_of_asking() {
    let plan = plan(json!([
        {"name": "a", "method": "G T", "path": "x", "expect": [99], "headers": [["Host", "a"]]},
        {"name": "a", "method": "GET", "path": "/{{y}}", "think": {"kind": "uniform", "low_ns": 2, "high_ns": 1}}]));

    let faults = plan.validate();

    let places: Vec<&str> = faults.iter().map(|fault| fault.where_.as_str()).collect();
    for place in [
        "streams[0].scenarios[].steps",
        "streams[0].scenarios[0].steps[0].expect[0]",
        "streams[0].scenarios[0].steps[1].think",
        "streams[0].scenarios[0].steps[0].method",
        "streams[0].scenarios[0].steps[0].path",
        "streams[0].scenarios[0].steps[0].headers[0]",
        "streams[0].scenarios[0].steps[1].path",
    ] {
        assert!(places.contains(&place), "{place} not in {places:?}");
    }
    assert_eq!(faults.len(), 7);
    assert_eq!(Program::compile(&plan).unwrap_err(), faults);
}

#[test]
fn an_answer_is_judged_by_status_then_checks_then_extractions() {
    let stream = compiled(json!([{"name": "a", "method": "GET", "path": "/",
        "checks": [
            {"kind": "json", "path": "status", "equals": "OK"},
            {"kind": "header", "name": "x-kind", "equals": "fine"},
            {"kind": "contains", "text": "needle"}],
        "extract": [{"name": "id", "from": {"kind": "json", "path": "id"}}]}]));
    let step = &stream.steps[0];
    let mut values = Values::default();
    let good = r#"{"status":"OK","id":7,"note":"a needle"}"#;

    assert_eq!(step.need, Need::Body);
    assert_eq!(
        answered(step, "X-Kind: fine\r\n", good, &mut values),
        Judgement::Ok
    );
    assert_eq!(
        answered(step, "X-Kind: fine\r\n", "{}", &mut values),
        Judgement::CheckFailed(0)
    );
    assert_eq!(
        answered(step, "X-Kind: other\r\n", good, &mut values),
        Judgement::CheckFailed(1)
    );
    assert_eq!(
        answered(step, "", r#"{"status":"OK"}"#, &mut values),
        Judgement::CheckFailed(1)
    );
    let no_needle = r#"{"status":"OK","id":7}"#;
    assert_eq!(
        answered(step, "X-Kind: fine\r\n", no_needle, &mut values),
        Judgement::CheckFailed(2)
    );
    let no_id = r#"{"status":"OK","note":"needle"}"#;
    let failed = answered(step, "X-Kind: fine\r\n", no_id, &mut values);
    assert_eq!(failed, Judgement::ExtractionFailed(0));
    assert!(step.ends_iteration(failed) && step.ends_iteration(Judgement::UnexpectedStatus));
    assert!(!step.ends_iteration(Judgement::Ok));
    assert_eq!(
        step.explain(failed),
        "id was not extracted from id of the JSON body: it is not there"
    );
    assert!(step
        .explain(Judgement::CheckFailed(1))
        .contains("header x-kind"));
}

#[test]
fn statuses_are_as_expected_or_from_200_to_399() {
    let judged = |expect: Json, status: u16| {
        let stream =
            compiled(json!([{"name": "a", "method": "GET", "path": "/", "expect": expect}]));
        let bytes = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
        let HeadResult::Complete(head) = parse_head(bytes.as_bytes(), false) else {
            panic!()
        };
        stream.steps[0].judge(&head, b"", b"", &mut Values::default())
    };

    for (status, expected) in [
        (200, true),
        (302, true),
        (399, true),
        (400, false),
        (500, false),
    ] {
        assert_eq!(
            judged(json!([]), status) == Judgement::Ok,
            expected,
            "{status}"
        );
    }
    assert_eq!(judged(json!([201, 409]), 409), Judgement::Ok);
    assert_eq!(judged(json!([201, 409]), 200), Judgement::UnexpectedStatus);
}

#[test]
fn a_folded_header_is_compared_as_one_line() {
    let stream = compiled(json!([{"name": "a", "method": "GET", "path": "/",
        "checks": [{"kind": "header", "name": "A", "equals": "b c"}]}]));

    let judgement = answered(
        &stream.steps[0],
        "A: b\r\n\tc\r\n",
        "",
        &mut Values::default(),
    );

    assert_eq!(
        (judgement, stream.steps[0].need),
        (Judgement::Ok, Need::Head)
    );
}

#[test]
fn values_over_their_bound_are_a_limit_and_memory_is_given_back() {
    let extracts: Vec<Json> = (0..5)
        .map(|i| json!({"name": format!("v{i}"), "from": {"kind": "json", "path": "v"}}))
        .collect();
    let stream =
        compiled(json!([{"name": "a", "method": "GET", "path": "/", "extract": extracts}]));
    let step = &stream.steps[0];
    let mut values = Values::default();
    let body = |length: usize| format!(r#"{{"v":"{}"}}"#, "x".repeat(length - 2));

    let judgement = answered(step, "", &body(MAX_VALUE_BYTES + 1), &mut values);
    assert_eq!(judgement, Judgement::ExtractedTooLong(0));
    assert_eq!(judgement.outcome(), crate::error::Outcome::Limit);
    values.clear();
    // Four values of 64 KiB are all that one iteration keeps.
    assert_eq!(
        answered(step, "", &body(MAX_VALUE_BYTES), &mut values),
        Judgement::ExtractedTooLong(4)
    );
    assert_eq!(stream.slots, 5);

    values.clear();
    assert!(
        values.capacity_bytes() < 1024,
        "{}",
        values.capacity_bytes()
    );
}

#[test]
fn the_index_of_a_step_counts_over_all_scenarios() {
    let mut plan = plan(json!([
        {"name": "a", "method": "GET", "path": "/a"}, {"name": "b", "method": "GET", "path": "/b"}]));
    let mut second = plan.streams[0].scenarios[0].clone();
    second.name = "other".to_owned();
    second.weight = 3.0;
    second.steps.truncate(1);
    second.steps[0].name = "c".to_owned();
    plan.streams[0].scenarios.push(second);

    let stream = Program::compile(&plan).unwrap().streams.remove(0);

    let names: Vec<&str> = stream.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let places: Vec<(u16, u16)> = stream
        .scenarios
        .iter()
        .map(|s| (s.first_step, s.steps))
        .collect();
    assert_eq!(places, [(0, 2), (2, 1)]);
    let mut random = Random::new(1);
    let second = (0..10_000)
        .filter(|_| stream.draw_scenario(&mut random) == 1)
        .count();
    assert!((7_300..7_700).contains(&second), "{second}"); // 3 of 4; standard deviation 43
}

/// Any text that an answer may carry as a JSON string.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ -~]{0,30}",
        "[\r\n\t:%/?# \u{0}\u{7f}\u{e9}]{0,12}"
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
        Just("{{timestamp}}{{sequence}}".to_owned()),
    ];
    proptest::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn whatever_values_come_a_request_is_valid_http_with_the_length_it_says(
        path in any_template(),
        header in any_template(),
        text in any_template(),
        members in proptest::collection::vec(any_template(), 0..4),
        as_json: bool,
        values in (any_text(), any_text()),
        seed: u64,
    ) {
        let body = if as_json {
            json!({"kind": "json", "value": {"members": members, "text": text}})
        } else {
            json!({"kind": "text", "text": text})
        };
        let stream = compiled(json!([
            {"name": "a", "method": "GET", "path": "/", "extract": [
                {"name": "v", "from": {"kind": "json", "path": "v"}}, {"name": "w", "from": {"kind": "json", "path": "w"}}]},
            {"name": "b", "method": "POST", "path": format!("/{path}"), "headers": [["X-A", header], ["X-B", "end"]],
             "body": body}]));
        let answer = json!({"v": values.0, "w": [values.1, 1]}).to_string();
        let values = extracted(&stream, &answer);
        let mut random = Random::new(seed);
        let mut context = RenderContext { random: &mut random, seq: seed, unix_ns: seed };
        let mut out = Vec::new();

        if let Err(fault) = stream.steps[1].render(&values, &mut context, &mut out) {
            prop_assert_eq!(fault, RenderFault::HeaderValue); // a value that no header may carry
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
        let stream = compiled(json!([
            {"name": "a", "method": "GET", "path": "/", "extract": [
                {"name": "v", "from": {"kind": "json", "path": "v"}}, {"name": "w", "from": {"kind": "json", "path": "w"}}]},
            {"name": "b", "method": "POST", "path": "/", "body": {"kind": "text", "text": text}}]));
        let values = extracted(&stream, r#"{"v":"x","w":1}"#);

        let first = rendered(&stream.steps[1], &values, &mut Random::new(seed));

        prop_assert_eq!(first, rendered(&stream.steps[1], &values, &mut Random::new(seed)));
    }

    #[test]
    fn no_template_makes_the_reader_panic(text in "[{} a-z0-9.-]{0,40}") {
        let _ = check_template(&text, &["a".to_owned()]);
    }
}
