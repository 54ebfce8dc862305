//! Servers with scripted bytes: cookies, records of feeds, long answers and kept ones. Counted by hand.

use std::io::Write;

use loadlens_base::Outcome;
use loadlens_plan::program::FeedFile;
use loadlens_plan::FeedFormat;
use serde_json::json;

use crate::history::{History, Setting};
use crate::laws::check;
use crate::plans::simple;
use crate::world::World;
use crate::MS;

/// A whole answer; `fields` are lines with their ends.
pub fn answer(fields: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

fn live(setting: Setting) -> History {
    let history = setting.live();
    check(&history);
    history
}

fn outcomes(history: &History) -> Vec<Outcome> {
    let mut rows: Vec<_> = history.rows().collect();
    rows.sort_by_key(|row| row.done_ns);
    let named = |code: u8| {
        Outcome::ALL
            .iter()
            .copied()
            .find(|outcome| outcome.code() == code)
    };
    rows.iter().filter_map(|row| named(row.outcome)).collect()
}

/// The cookies of three iterations of `/a`, whose answer sets one, and `/b`.
fn cookies(kept: &str) -> Vec<Option<String>> {
    let mut number = 0;
    let world = World::scripted(move |request| {
        let fields = match request.starts_with("GET /a ") {
            true => {
                number += 1;
                format!("Set-Cookie: n{number}={number}; Path=/\r\n")
            }
            false => String::new(),
        };
        vec![(MS, answer(&fields, "{}"))]
    });
    let workload = json!({"kind": "closed", "users": 1, "iterations": 3});
    let mut plan = simple(workload, 1_000 * MS, 1_000 * MS);
    let step = |name: &str| json!({"name": name, "method": "GET", "path": format!("/{name}")});
    plan["streams"][0]["scenarios"][0]["steps"] = json!([step("a"), step("b")]);
    plan["streams"][0]["cookies"] = json!(kept);

    let history = live(Setting::of(plan, world));

    let cookie = |request: &String| {
        let mut lines = request.lines();
        lines.find_map(|line| line.strip_prefix("Cookie: ").map(str::to_owned))
    };
    history.workers[0].world.asked.iter().map(cookie).collect()
}

#[test]
fn a_jar_is_empty_when_an_iteration_begins_unless_users_keep_their_cookies() {
    let of_iteration = cookies("iteration");
    let kept = cookies("keep");

    let text = |texts: [&str; 6]| texts.map(|text| (!text.is_empty()).then(|| text.to_owned()));
    assert_eq!(of_iteration, text(["", "n1=1", "", "n2=2", "", "n3=3"]));
    let all = [
        "",
        "n1=1",
        "n1=1",
        "n1=1; n2=2",
        "n1=1; n2=2",
        "n1=1; n2=2; n3=3",
    ];
    assert_eq!(kept, text(all));
}

#[test]
fn an_arrival_that_is_dropped_takes_its_record_with_it() {
    let path = std::env::temp_dir().join(format!("loadlens-records-{}.csv", std::process::id()));
    let mut file = std::fs::File::create(&path).unwrap();
    writeln!(file, "id").unwrap();
    (0..100).for_each(|id| writeln!(file, "{id}").unwrap());
    let digest = FeedFile::open(path.to_str().unwrap(), FeedFormat::Csv)
        .unwrap()
        .digest()
        .to_owned();
    // An arrival each millisecond, one place, 3.5 ms for each answer.
    let workload = json!({
        "kind": "open", "rate_per_s": 1000.0, "arrivals": "constant", "max_in_flight": 1, "overflow": "drop",
    });
    let mut plan = simple(workload, 40 * MS, 1_000 * MS);
    plan["feeds"] = json!([
        {"name": "ids", "path": path, "digest": digest, "format": "csv", "pick": "unique", "end": "stop"},
    ]);
    plan["streams"][0]["scenarios"][0]["steps"][0]["path"] = json!("/{{ids.id}}");

    let world = World::scripted(|_| vec![(3_500_000, answer("", "{}"))]);
    let history = live(Setting::of(plan, world));

    std::fs::remove_file(&path).unwrap();
    let mut issued: Vec<i64> = history
        .rows()
        .filter(|row| row.sent_ns >= 0)
        .map(|row| row.due_ns)
        .collect();
    issued.sort_unstable();
    assert!(issued.len() >= 10 && issued.len() < 14, "{issued:?}"); // one in 4 ms
                                                                    // Arrival k is due at k ms, and has record k.
    let expected: Vec<String> = issued
        .iter()
        .map(|due| format!("/{}", due / MS as i64))
        .collect();
    let asked = &history.workers[0].world.asked;
    let paths: Vec<&str> = asked
        .iter()
        .filter_map(|request| request.split(' ').nth(1))
        .collect();
    assert_eq!(paths, expected);
}

#[test]
fn a_bound_of_latency_holds_from_when_a_request_was_due() {
    // An arrival each 5 ms, one place, 8 ms for each answer: the k-th is answered 8 + 3 k ms after it was due.
    let workload = json!({
        "kind": "open", "rate_per_s": 200.0, "arrivals": "constant", "max_in_flight": 1, "overflow": "queue",
    });
    let mut plan = simple(workload, 50 * MS, 1_000 * MS);
    plan["drain_ns"] = json!(0);
    plan["streams"][0]["scenarios"][0]["steps"][0]["checks"] =
        json!([{"kind": "latency", "below_ns": 13 * MS}]);

    let world = World::scripted(|_| vec![(8 * MS, answer("", "{}"))]);
    let history = live(Setting::of(plan, world));

    // Six are answered within 50 ms: after 8, 11, 14, 17, 20 and 23 ms.
    let tally = &history.workers[0].end.checks[0][1]; // the first is that of the status
    assert_eq!((tally.passed, tally.failed, tally.not_judged), (2, 4, 0));
}

#[test]
fn an_answer_that_lies_whole_in_the_socket_is_read_to_its_end_without_another_event() {
    // 40 receives' worth, of which a turn takes 16.
    let body = "x".repeat(40 << 16);
    let whole = answer("", &body);
    let length = body.len() as u32;
    let world = World::scripted(move |_| vec![(MS, whole.clone())]);
    let workload = json!({"kind": "closed", "users": 2, "requests": 6});

    let history = live(Setting::of(simple(workload, 10_000 * MS, 500 * MS), world));

    assert_eq!(outcomes(&history), [Outcome::Ok; 6]);
    assert!(history.rows().all(|row| row.body_bytes == length));
    let longest = history.rows().map(|row| row.done_ns - row.sent_ns).max();
    assert!(longest < Some(5 * MS as i64), "{longest:?}"); // it waits for nothing
}

/// Two users at once, whose answers of `head` + 700 bytes come in two pieces, with so many bytes to keep them.
fn kept_within(bytes: usize) -> Vec<Outcome> {
    let whole = answer("", &"x".repeat(700));
    let half = whole.len() - 350;
    let world = World::scripted(move |_| {
        vec![
            (MS, whole[..half].to_vec()),
            (5 * MS, whole[half..].to_vec()),
        ]
    });
    let mut plan = simple(
        json!({"kind": "closed", "users": 2, "requests": 2}),
        1_000 * MS,
        1_000 * MS,
    );
    plan["streams"][0]["scenarios"][0]["steps"][0]["checks"] =
        json!([{"kind": "contains", "text": "x"}]);
    let mut setting = Setting::of(plan, world);
    setting.store_bytes = bytes;
    outcomes(&live(setting))
}

#[test]
fn answers_that_are_kept_for_their_checks_stay_within_the_bound_of_all_together() {
    let head = answer("", &"x".repeat(700)).len() - 700;

    // The first to get its second half holds all of its own and half of the other one.
    let both = 2 * head + 3 * 350;
    assert_eq!(kept_within(both), [Outcome::Ok, Outcome::Ok]);
    // One byte less, and the first is given up; what it held is the other one's.
    assert_eq!(kept_within(both - 1), [Outcome::Limit, Outcome::Ok]);
    assert_eq!(
        kept_within(2 * (head + 350) - 1),
        [Outcome::Limit, Outcome::Ok]
    );
    assert_eq!(kept_within(head + 349), [Outcome::Limit, Outcome::Limit]);
}
