//! Bytes of the requests sent.

use serde_json::{json, Value as Json};

use super::*;

#[test]
fn a_request_without_templates_is_one_constant() {
    let stream = compiled(json!([{"name": "home", "method": "GET", "path": "/a?b=c%20d"}]));

    let expected = format!(
        "GET /a?b=c%20d HTTP/1.1\r\nHost: shop.test:8080\r\nUser-Agent: loadlens/{}\r\nAccept: */*\r\n\r\n",
        env!("CARGO_PKG_VERSION")
    );
    let step = &stream.steps[0];
    assert_eq!(step.static_bytes(), Some(expected.as_bytes()));
    assert!(step.static_bytes().is_some() && step.need == Need::Nothing && stream.slots == 0);
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
    plan.streams[0].connection.reuse = crate::Reuse::New;

    let program = Program::compile(&plan).unwrap();

    let request = program.streams[0].steps[0].static_bytes().unwrap();
    assert!(String::from_utf8_lossy(request).contains("\r\nConnection: close\r\n"));
}

#[test]
fn a_request_given_whole_is_one_constant_and_one_made_by_a_script_is_none() {
    let plan = plan(json!([{"name": "a", "method": "GET", "path": "/"}]));
    let whole = b"HEAD /x HTTP/1.1\r\n\r\n".to_vec();
    let framing = loadlens_http::whole::one(&whole).unwrap();
    let compiled = |requests: &Requests, reads_answers: bool| {
        let mut program = Program::compile_with(&plan, requests, reads_answers).unwrap();
        program.streams[0].steps.remove(0)
    };

    let fixed = compiled(&Requests::Fixed(whole.clone(), framing), false);
    let made = compiled(&Requests::Made, true);

    assert_eq!(fixed.static_bytes(), Some(whole.as_slice()));
    assert!(fixed.request_is_head && fixed.need == Need::Nothing);
    assert!(made.static_bytes().is_none() && made.need == Need::Body);
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
fn moments_digits_users_and_truth_values_are_written_as_documented() {
    let text = "{{timestamp}} {{timestamp ms}} {{timestamp us}} {{timestamp ns}} {{timestamp iso}} {{user}} {{hex 33}}";
    let stream = compiled(
        json!([{"name": "a", "method": "POST", "path": "/", "body": {"kind": "text", "text": text}},
        {"name": "b", "method": "POST", "path": "/", "body": {"kind": "json", "value":
            ["{{timestamp ms}}", "{{user}}", "{{bool}}", "{{timestamp iso}}", "{{choice \"a b\" \"a b\"}}"]}}]),
    );

    let request = rendered(&stream.steps[0], &Values::default(), &mut Random::new(5));
    let typed = rendered(&stream.steps[1], &Values::default(), &mut Random::new(5));

    let (moments, hex) = body_of(&request).rsplit_once(' ').unwrap();
    assert_eq!(
        moments,
        "1700000000 1700000000999 1700000000999999 1700000000999999999 2023-11-14T22:13:20.999Z 5"
    );
    assert!(
        hex.len() == 33
            && hex
                .bytes()
                .all(|digit| b"0123456789abcdef".contains(&digit)),
        "{hex}"
    );
    let typed = body_of(&typed);
    assert!(
        matches!(
            typed,
            r#"[1700000000999,5,true,"2023-11-14T22:13:20.999Z","a b"]"#
                | r#"[1700000000999,5,false,"2023-11-14T22:13:20.999Z","a b"]"#
        ),
        "{typed}"
    );
}

#[test]
fn the_ids_of_a_trace_follow_from_seed_start_stream_and_number() {
    let stream = compiled(json!([{"name": "a", "method": "GET", "path": "/",
        "headers": [["traceparent", "{{traceparent}}"]]}]));

    let request = rendered(&stream.steps[0], &Values::default(), &mut Random::new(1));

    // By the formula of docs/reference/record.md in Python, for seed 1, start 0, stream 0, request 41.
    let expected = "traceparent: 00-ec5c95bca8df2cf2e9f085c7d16c60d7-c50c2dfba524d489-01\r\n";
    assert!(request.contains(expected), "{request}");
}

#[test]
fn days_are_those_of_the_calendar() {
    let stream = compiled(json!([{"name": "a", "method": "POST", "path": "/",
        "body": {"kind": "text", "text": "{{timestamp iso}}"}}]));
    // As Python's datetime gives them: leap days of 2000 and 2024, and none in 2100.
    for (unix_s, expected) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_400, "2000-02-29T00:00:00.000Z"),
        (1_709_251_199, "2024-02-29T23:59:59.000Z"),
        (4_107_542_400, "2100-03-01T00:00:00.000Z"),
    ] {
        let mut context = RenderContext {
            random: &mut Random::new(1),
            seq: 0,
            user: 0,
            unix_ns: unix_s * 1_000_000_000,
            t0_unix_ns: 0,
            records: Records::default(),
        };
        let mut out = Vec::new();

        stream.steps[0]
            .render(&Values::default(), &mut context, &mut out)
            .unwrap();

        assert_eq!(body_of(std::str::from_utf8(&out).unwrap()), expected);
    }
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
        user: 0,
        unix_ns: 0,
        t0_unix_ns: 0,
        records: Records::default(),
    };
    let mut out = b"before".to_vec();

    for value in [r"a\r\nHost: evil", r"a\u0000", r"a\nb"] {
        let values = extracted(&stream, &format!(r#"{{"v":"{value}"}}"#));
        let rendered = stream.steps[1].render(&values, &mut context, &mut out);
        assert_eq!(
            (rendered, out.as_slice()),
            (Err(RenderFault::HeaderValue), &b"before"[..])
        );
    }
    let rendered = stream.steps[1].render(&Values::default(), &mut context, &mut out);
    assert_eq!(
        (rendered, out.as_slice()),
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
