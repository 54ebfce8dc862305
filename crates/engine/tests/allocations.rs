//! A worker allocates nothing for a request on a kept connection, once everything has its place.

mod counting;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use loadlens_engine::clock::{monotonic_ns, MonotonicClock};
use loadlens_engine::worker::shard::StreamShard;
use loadlens_engine::worker::{Control, Settings, Worker, EVENTS};
use loadlens_origin::{Config, Origin};
use loadlens_plan::arrival::Part;
use loadlens_plan::program::{FeedFile, Program};
use loadlens_plan::{FeedFormat, Plan};
use loadlens_record::collector::{Collector, Live, ThreadEnds};
use loadlens_record::files::{Names, StreamNames};
use loadlens_record::grid::Grid;
use loadlens_record::interval::{IntervalSet, Shape};
use loadlens_record::recorder::{Recorder, StreamProgress, SETS};
use loadlens_record::ring::ring;
use loadlens_transport::Epoll;
use parking_lot::Mutex;
use serde_json::json;

use counting::allocations_so_far;

/// Allocations on this thread of a worker that does so many requests.
fn allocations(
    origin: &Origin,
    step: &serde_json::Value,
    more: &serde_json::Value,
    feeds: &serde_json::Value,
    requests: u64,
) -> u64 {
    let mut plan = json!({
        "schema_version": 1, "seed": 7, "feeds": feeds,
        "streams": [{
            "name": "load", "role": "load", "timeout_ns": 20_000_000_000u64,
            "target": {"host": "127.0.0.1", "port": origin.port, "authority": "origin"},
            "scenarios": [{"name": "s", "weight": 1, "steps": [step]}],
            "workload": {"kind": "closed", "users": 100, "requests": requests},
        }],
    });
    for (key, value) in more.as_object().unwrap() {
        plan["streams"][0][key] = value.clone();
    }
    let plan: Plan = serde_json::from_value(plan).unwrap();
    let program = Program::compile(&plan).unwrap();
    let sets = (0..SETS)
        .map(|_| Box::new(IntervalSet::of(&Shape::of(&program))))
        .collect();
    let (full_in, full) = ring(SETS);
    let (empty, empty_out) = ring(SETS);
    let progress: Arc<[StreamProgress]> = [StreamProgress::default()].into();
    let grid = Grid {
        warmup_end: 0,
        end: u64::MAX,
    };
    let recorder = Recorder::new(&[1], grid, sets, (full_in, empty_out), None, progress);
    let names = Names {
        streams: vec![StreamNames {
            name: "load".to_owned(),
            steps: vec!["get".to_owned()],
            ..StreamNames::default()
        }],
    };
    let ends = ThreadEnds {
        full,
        empty,
        samples: None,
        connections: None,
    };
    let mut collector = Collector::new(
        names,
        vec![ends],
        None,
        Arc::new(Mutex::new(Live::default())),
    );
    let address = ([127, 0, 0, 1], origin.port).into();
    let shard =
        StreamShard::new(&plan, 0, &program.streams[0], vec![address], Part::whole()).unwrap();
    let settings = Settings {
        drain_ns: 0,
        may_spin: false,
        t0_unix_ns: 0,
        store_bytes: 1 << 20,
    };
    let control = Arc::new(Control::new(u64::MAX, 1));
    let is_over = Arc::new(AtomicBool::new(false));
    let sees_end = is_over.clone();

    let collects = std::thread::spawn(move || {
        while !sees_end.load(Ordering::Acquire) {
            std::thread::sleep(std::time::Duration::from_millis(20));
            collector.collect();
        }
        collector.finish().0.books.step_classes[0]
    });
    let net = Epoll::new(EVENTS).unwrap();
    let worker = Worker::new(
        MonotonicClock::new(monotonic_ns()),
        net,
        vec![shard],
        recorder,
        control,
        settings,
    );
    let before = allocations_so_far();
    worker.run();
    let allocations = allocations_so_far() - before;
    is_over.store(true, Ordering::Release);

    assert_eq!(collects.join().unwrap(), requests);
    allocations
}

#[test]
fn an_allocation_is_counted_where_it_is_made() {
    let before = allocations_so_far();

    drop(std::hint::black_box(Box::new(7)));

    assert_eq!(allocations_so_far() - before, 1);
}

#[test]
fn ten_times_the_requests_need_not_one_allocation_more() {
    let origin = Origin::start(Config::default()).unwrap();
    let step = json!({"name": "get", "method": "GET", "path": "/json"});

    let few = allocations(&origin, &step, &json!({}), &json!([]), 4_000);
    let many = allocations(&origin, &step, &json!({}), &json!([]), 40_000);

    assert_eq!(few, many);
}

#[test]
fn judging_extracting_and_keeping_cookies_need_none_either() {
    let origin = Origin::start(Config::default()).unwrap();
    let step = json!({"name": "get", "method": "GET", "path": "/json",
        "checks": [
            {"kind": "contains", "text": "{"},
            {"kind": "regex", "pattern": r#""\w+":"#},
            {"kind": "size", "is": {"above": 1}},
            {"kind": "latency", "below_ns": 1},
            {"kind": "absent", "path": "nowhere"}],
        "extract": [{"name": "first", "from": {"kind": "regex", "pattern": r#""(\w+)":"#}}]});
    let cookies = json!({"cookies": "keep"});

    let few = allocations(&origin, &step, &cookies, &json!([]), 4_000);
    let many = allocations(&origin, &step, &cookies, &json!([]), 40_000);

    assert_eq!(few, many);
}

#[test]
fn values_of_feeds_and_generators_need_no_allocation_either() {
    let origin = Origin::start(Config::default()).unwrap();
    let path =
        std::env::temp_dir().join(format!("loadlens-allocations-{}.jsonl", std::process::id()));
    std::fs::write(
        &path,
        "{\"id\":1,\"n\":{\"x\":\"a b\"}}\n{\"id\":2,\"n\":{\"x\":\"\"}}\n",
    )
    .unwrap();
    let path_text = path.to_str().unwrap();
    let file = FeedFile::open(path_text, FeedFormat::Jsonl).unwrap();
    let feeds =
        json!([{"name": "f", "path": path_text, "digest": file.digest(), "format": "jsonl"}]);
    let target =
        "/json?a={{f.id}}&b={{f.n.x}}&c={{uuid}}&d={{timestamp iso}}&e={{int 1 9}}&g={{hex 8}}";

    let step = json!({"name": "get", "method": "GET", "path": target});
    let few = allocations(&origin, &step, &json!({}), &feeds, 4_000);
    let many = allocations(&origin, &step, &json!({}), &feeds, 40_000);

    std::fs::remove_file(&path).unwrap();
    assert_eq!(few, many);
}
