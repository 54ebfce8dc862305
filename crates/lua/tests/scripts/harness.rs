//! A script, a run, and what came of both.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use loadlens_engine::run::Run;
use loadlens_lua::{Asked, Fault, Session, Summary};
use loadlens_origin::{Config, Counts, Origin};
use serde_json::{json, Value};

pub const SECOND: u64 = 1_000_000_000;
const LIMIT: Duration = Duration::from_secs(30);

/// A script in a file of its own, gone when this is dropped.
pub struct File(PathBuf);

impl File {
    pub fn new(text: &str) -> File {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("loadlens-{}-{number}.lua", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        File(path)
    }

    /// The path, as messages name it; those of LuaJIT shorten it from 60 bytes on.
    pub fn name(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub fn origin() -> Origin {
    Origin::start(Config::default()).unwrap()
}

/// One thread, one connection, `/json`.
pub fn asked(port: u16, file: Option<&File>) -> Asked {
    Asked {
        script: file.map(|file| file.name().to_owned()),
        scheme: "http".to_owned(),
        host: "127.0.0.1".to_owned(),
        port: Some(port.to_string()),
        path: "/json".to_owned(),
        headers: Vec::new(),
        args: vec![format!("http://127.0.0.1:{port}/json")],
        threads: 1,
        timeout_ns: 2 * SECOND,
        duration_ns: SECOND,
    }
}

/// A plan as the control plane makes it, that ends after so many requests.
pub fn plan(asked: &Asked, users: u32, requests: u64) -> Value {
    let port: u16 = asked.port.as_ref().unwrap().parse().unwrap();
    json!({
        "schema_version": 1, "seed": 1, "threads": asked.threads,
        "streams": [{
            "name": "load", "role": "load", "timeout_ns": asked.timeout_ns, "cookies": "off",
            "target": {"host": "127.0.0.1", "port": port, "authority": "origin"},
            "scenarios": [{"name": "request", "weight": 1.0, "steps": [{"name": "request", "method": "GET", "path": "/"}]}],
            "workload": {"kind": "closed", "users": users, "requests": requests},
        }],
    })
}

/// Result of a run.
pub struct Done {
    pub session: Session,
    pub result: Result<Value, String>,
}

impl Done {
    pub fn requests(&self, name: &str) -> u64 {
        let stream = &self.result.as_ref().unwrap()["streams"][0];
        assert_eq!(stream["law_holds"], json!(true), "{}", stream["law"]);
        stream["requests"][name].as_u64().unwrap()
    }

    pub fn measured_ns(&self) -> u64 {
        let measured = self.result.as_ref().unwrap()["measured_s"].as_f64();
        (measured.unwrap() * 1e9).round() as u64
    }

    pub fn fault(&mut self) -> Option<String> {
        self.session.fault()
    }

    /// Calls `done` of the script.
    pub fn finish(&mut self, summary: &Summary) -> Result<(), Fault> {
        let measured_ns = self.measured_ns();
        self.session.done(measured_ns, summary)
    }
}

/// Runs a plan with a session to its end.
pub fn run(mut session: Session, plan: &Value) -> Done {
    let mut run = Run::new(&plan.to_string()).expect("the plan is good");
    session.start(&mut run).expect("the run starts");
    assert!(run.wait(LIMIT), "still running: {}", run.progress());
    let result = run.result();
    Done {
        session,
        result: result.map(|text| serde_json::from_str(&text).unwrap()),
    }
}

/// Runs `requests` requests of a script over one connection.
pub fn drive(origin: &Origin, script: &str, requests: u64) -> Done {
    let file = File::new(script);
    let asked = asked(origin.port, Some(&file));
    let session = Session::prepare(&asked).unwrap_or_else(|fault| panic!("{fault}"));
    run(session, &plan(&asked, 1, requests))
}

/// Reason why a script is refused before anything runs, with its file named `SCRIPT`.
pub fn refused(origin: &Origin, script: &str) -> String {
    let file = File::new(script);
    match Session::prepare(&asked(origin.port, Some(&file))) {
        Ok(_) => panic!("it was taken"),
        Err(fault) => fault.to_string().replace(file.name(), "SCRIPT"),
    }
}

/// The counts once every connection is closed.
pub fn settled(origin: &Origin) -> Counts {
    settled_after(origin, 0)
}

/// The counts once so many connections have come and all are closed: the kernel may take its time to hand over one on
/// which nothing was said.
pub fn settled_after(origin: &Origin, connections: u64) -> Counts {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let counts = origin.counts_when_idle(20 * SECOND);
        let counts = counts.unwrap_or_else(|| origin.counts());
        if counts.connections.accepted >= connections || Instant::now() > until {
            return counts;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
