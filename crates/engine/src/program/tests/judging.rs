//! How answers are judged, and what is kept of them.

use serde_json::{json, Value as Json};

use super::*;

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
