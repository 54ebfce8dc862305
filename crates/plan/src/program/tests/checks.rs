//! Verdicts on answers, and the parts of answers that are kept.

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
        answered(
            step,
            "X-Kind: fine\r\n",
            r#"{"id":7,"note":"a needle"}"#,
            &mut values
        ),
        Judgement::CheckFailed(0)
    );
    assert_eq!(
        answered(step, "X-Kind: other\r\n", good, &mut values),
        Judgement::CheckFailed(1)
    );
    assert_eq!(
        answered(step, "", r#"{"status":"OK","id":7}"#, &mut values),
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
    assert!(!step.ends_iteration(Judgement::CheckFailed(1))); // what it extracts was there
}

/// Verdict of each check of a step on one answer: passed `p`, failed `f`, not judged `-`.
fn verdicts(checks: &Json, extract: &Json, status: u16, body: &str, response_ns: u64) -> String {
    let stream = compiled(json!([{"name": "a", "method": "GET", "path": "/",
        "expect": [200], "checks": checks, "extract": extract}]));
    let mut judging = Judging::new(&stream);
    let answer = Answer {
        status,
        head: b"HTTP/1.1 200 OK\r\nLocation: /items/17\r\n\r\n",
        body: body.as_bytes(),
        body_bytes: body.len() as u64,
        response_ns,
        at: 5,
        user: 3,
    };
    stream.steps[0].judge(&answer, &mut Values::default(), &mut judging);
    let letter = |tally: &CheckTally| {
        assert_eq!(tally.passed + tally.failed + tally.not_judged, 1);
        match (tally.passed, tally.failed) {
            (1, 0) => 'p',
            (0, 1) => 'f',
            _ => '-',
        }
    };
    judging.tallies.iter().map(letter).collect()
}

#[test]
fn each_check_says_for_itself_whether_it_passed() {
    let checks = json!([
        {"kind": "json", "path": "id", "equals": 7},
        {"kind": "exists", "path": "none"},
        {"kind": "absent", "path": "error"},
        {"kind": "number", "path": "price", "is": {"above": 0, "below": 10}},
        {"kind": "count", "path": "items", "is": {"above": 1}},
        {"kind": "header", "name": "location", "equals": "/items/17"},
        {"kind": "contains", "text": "needle"},
        {"kind": "regex", "pattern": r#""id": ?\d+"#},
        {"kind": "size", "is": {"below": 90}},
        {"kind": "latency", "below_ns": 1000}]);
    let extract = json!([
        {"name": "id", "from": {"kind": "regex", "pattern": r"/items/(\d+)", "header": "Location"}},
        {"name": "vowels", "from": {"kind": "regex", "pattern": "n(e+)dle"}}]);
    let good = r#"{"id":7,"none":null,"price":9.5,"items":[1,2],"note":"needle"}"#;
    let bad = r#"{"id":8,"error":1,"price":"9.5","items":[1],"note":"this body is longer than the bound that was set for it"}"#;

    assert_eq!(verdicts(&checks, &extract, 200, good, 999), "ppppppppppppp");
    assert_eq!(
        verdicts(&checks, &extract, 200, good, 1000),
        "ppppppppppfpp"
    ); // below, not at most
    assert_eq!(verdicts(&checks, &extract, 200, bad, 999), "pfffffpfpfppf");
    assert_eq!(
        verdicts(&checks, &extract, 200, "<html>", 999),
        "pfffffpffpppf"
    );
    assert_eq!(verdicts(&checks, &extract, 500, good, 999), "f------------");
}

#[test]
fn an_answer_that_is_only_late_stays_a_success_and_counts_at_its_check() {
    let stream = compiled(json!([{"name": "a", "method": "GET", "path": "/",
        "checks": [{"kind": "latency", "below_ns": 1_000_000}, {"kind": "size", "is": {"equals": 0}}]}]));
    let step = &stream.steps[0];
    let mut judging = Judging::new(&stream);
    let answer = |response_ns, body_bytes| Answer {
        status: 200,
        response_ns,
        body_bytes,
        at: 7_000_000_000,
        user: 2,
        ..Answer::default()
    };
    let mut judge = |answer| step.judge(&answer, &mut Values::default(), &mut judging);

    assert_eq!(step.need, Need::Nothing);
    assert_eq!(judge(answer(2_500_000, 0)), Judgement::Ok);
    assert_eq!(judge(answer(2_500_000, 3)), Judgement::CheckFailed(1));

    let late = &judging.tallies[step.first_check() + 1];
    assert_eq!(
        (late.failed, late.first, late.last),
        (2, 7_000_000_000, 7_000_000_000)
    );
    let samples: Vec<String> = late
        .samples
        .iter()
        .map(|note| note.failure.what())
        .collect();
    assert_eq!(samples, ["0.002500 s", "0.002500 s"]);
    assert_eq!(judging.tallies[2].samples[0].failure.what(), "3");
}

#[test]
fn a_step_counts_its_checks_by_name_and_a_plain_one_counts_none() {
    let stream = compiled(json!([
        {"name": "plain", "method": "GET", "path": "/"},
        {"name": "checked", "method": "GET", "path": "/", "expect": [200, 201], "checks": [
            {"kind": "json", "path": "a.b", "equals": {"x": 1}},
            {"kind": "number", "path": "n", "is": {"above": 0, "below": 10}},
            {"kind": "count", "path": "items", "is": {"equals": 3}},
            {"kind": "contains", "text": "x".repeat(60)},
            {"kind": "size", "is": {"above": 1}},
            {"kind": "latency", "below_ns": 200_000_000},
            {"kind": "latency", "below_ns": 500_000}],
         "extract": [{"name": "token", "from": {"kind": "header", "name": "X-Token"}}]}]));

    assert!(stream.steps[0].checks().is_empty());
    assert_eq!(
        stream.steps[1].checks(),
        [
            "status 200 or 201".to_owned(),
            r#"json a.b = {"x":1}"#.to_owned(),
            "json n > 0 and < 10".to_owned(),
            "count of items = 3".to_owned(),
            format!("contains {}...", "x".repeat(48)),
            "size > 1 bytes".to_owned(),
            "latency < 200 ms".to_owned(),
            "latency < 500 µs".to_owned(),
            "extract token from header X-Token".to_owned(),
        ]
    );
}

#[test]
fn samples_of_a_check_are_the_first_of_all_threads() {
    let note = |at| CheckNote {
        at,
        user: 0,
        failure: CheckFailure::Missing,
    };
    let tally = |from: u64| CheckTally {
        passed: 1,
        failed: 20,
        not_judged: 2,
        first: from,
        last: from + 38,
        samples: (0..20).map(|i| note(from + 2 * i)).collect(),
    };
    let mut sum = tally(0);

    sum.merge(&tally(1));

    assert_eq!((sum.passed, sum.failed, sum.not_judged), (2, 40, 4));
    assert_eq!((sum.first, sum.last), (0, 39));
    let kept: Vec<u64> = sum.samples.iter().map(|note| note.at).collect();
    assert_eq!(kept, (0..20).collect::<Vec<u64>>());
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
        let answer = Answer {
            status: head.status,
            ..Answer::default()
        };
        let mut judging = Judging::new(&stream);
        stream.steps[0].judge(&answer, &mut Values::default(), &mut judging)
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
    assert_eq!(judgement.outcome(), loadlens_base::Outcome::Limit);
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

#[test]
fn statuses_in_a_row_are_named_by_their_ends() {
    let expect: Vec<u16> = [200, 201, 202, 204, 404]
        .into_iter()
        .chain(500..600)
        .collect();
    let stream = compiled(json!([
        {"name": "checked", "method": "GET", "path": "/", "expect": expect}]));

    assert_eq!(
        stream.steps[0].checks(),
        ["status 200 to 202 or 204 or 404 or 500 to 599"]
    );
}
