//! A script without a function `request` costs nothing for a request: its requests are the plan's own static ones, and
//! counting latencies allocates nothing once their pages are there.

#[path = "../../engine/tests/counting/mod.rs"]
mod counting;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use loadlens_engine::run::Run;
use loadlens_engine::script::{Requests, Script, ScriptHost, ScriptSignal, Watch};
use loadlens_http::whole::Framing;
use loadlens_lua::{Asked, Running, Session};
use loadlens_origin::{Config, Origin};
use loadlens_record::recorder::Ended;
use serde_json::json;

use counting::allocations_so_far;

/// A script whose thread's allocations are counted from the end of one request to that of a later one, but for pages of
/// latencies: one for each 4,096 us in which no answer before has fallen, so there are more of them on a busy machine.
struct Counted {
    script: Running,
    ended: u64,
    seen: [bool; PAGES],
    pages: u64,
    at_first: u64,
    between: Arc<AtomicU64>,
}

const FIRST: u64 = 10_000;
const LAST: u64 = 50_000;
/// Of latencies up to the time-out, and of what the thread came late beyond it.
const PAGES: usize = 10_000;

impl Script for Counted {
    const IS_THERE: bool = true;

    fn makes_requests(&self) -> bool {
        self.script.makes_requests()
    }
    fn pauses(&self) -> bool {
        self.script.pauses()
    }
    fn reads_answers(&self) -> bool {
        self.script.reads_answers()
    }
    fn request(&mut self, now: u64, out: &mut Vec<u8>) -> Option<Framing> {
        self.script.request(now, out)
    }
    fn pause_ns(&mut self, now: u64) -> u64 {
        self.script.pause_ns(now)
    }
    fn answer(&mut self, now: u64, status: u16, head: &[u8], body: &[u8]) {
        self.script.answer(now, status, head, body);
    }
    fn ended(&mut self, ended: &Ended) {
        self.script.ended(ended);
        self.ended += 1;
        let page = (ended.done.saturating_sub(ended.due) / 4_096_000) as usize;
        self.pages += u64::from(!std::mem::replace(&mut self.seen[page], true));
        let now = allocations_so_far() - self.pages;
        if self.ended == FIRST {
            self.at_first = now;
        }
        if self.ended == LAST {
            self.between.store(now - self.at_first, Ordering::Release);
        }
    }
    fn signal(&self) -> ScriptSignal {
        self.script.signal()
    }
    fn watch(&self) -> Option<Arc<Watch>> {
        self.script.watch()
    }
}

#[test]
fn a_script_without_a_function_request_allocates_nothing_for_a_request() {
    let origin = Origin::start(Config::default()).unwrap();
    let file = std::env::temp_dir().join(format!("loadlens-static-{}.lua", std::process::id()));
    std::fs::write(
        &file,
        "wrk.method = 'POST'\nwrk.body = 'a=b'\nwrk.path = '/echo'\nfunction done() end",
    )
    .unwrap();
    let asked = Asked {
        script: file.to_str().map(str::to_owned),
        scheme: "http".to_owned(),
        host: "127.0.0.1".to_owned(),
        port: Some(origin.port.to_string()),
        path: "/".to_owned(),
        headers: Vec::new(),
        args: Vec::new(),
        threads: 1,
        timeout_ns: 20_000_000_000,
        duration_ns: 60_000_000_000,
    };
    let plan = json!({
        "schema_version": 1, "seed": 1, "threads": 1,
        "streams": [{
            "name": "load", "role": "load", "timeout_ns": 20_000_000_000u64, "cookies": "off",
            "target": {"host": "127.0.0.1", "port": origin.port, "authority": "origin"},
            "scenarios": [{"name": "request", "weight": 1.0, "steps": [{"name": "request", "method": "GET", "path": "/"}]}],
            "workload": {"kind": "closed", "users": 20, "requests": LAST},
        }],
    });
    let mut session = Session::prepare(&asked).unwrap();
    let between = Arc::new(AtomicU64::new(u64::MAX));

    let mut run = Run::new(&plan.to_string()).unwrap();
    let script_hosts: Vec<_> = session
        .script_hosts()
        .into_iter()
        .map(|script_host| {
            assert!(matches!(script_host.requests, Requests::Fixed(..)));
            ScriptHost {
                script: Counted {
                    script: script_host.script,
                    ended: 0,
                    seen: [false; PAGES],
                    pages: 0,
                    at_first: 0,
                    between: between.clone(),
                },
                requests: script_host.requests,
                reads_answers: script_host.reads_answers,
                address: script_host.address,
            }
        })
        .collect();
    let _given_back = run.start_with(script_hosts).unwrap();
    assert!(run.wait(Duration::from_secs(60)));
    std::fs::remove_file(&file).unwrap();

    assert_eq!(between.load(Ordering::Acquire), 0);
    assert_eq!(origin.counts().paths["/echo"].received, LAST);
}
