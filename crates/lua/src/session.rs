//! One use of a script, in the phases of wrk: setup and init of each thread, running on the engine's threads, done.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::Receiver;
use std::sync::Arc;

use loadlens_base::units::MICROSECOND;
use loadlens_engine::run::Run;
use loadlens_engine::script::{Requests, Script, ScriptHost, Watch};
use mlua::{Table, Value};
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::running::Running;
use crate::state::State;
use crate::stats::{Line, Stats, Told};
use crate::tally::Tally;
use crate::thread::{Shared, Thread};

/// Values of the command line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The script's file; none: there is no script.
    pub script: Option<String>,
    /// `http` or `https`.
    pub scheme: String,
    /// Host of the URL, without brackets.
    pub host: String,
    /// Port of the URL, if it has one.
    pub port: Option<String>,
    /// The URL from its path on.
    pub path: String,
    /// Headers by name.
    pub headers: Vec<(String, String)>,
    /// The URL, and what follows it.
    pub args: Vec<String>,
    /// Engine threads.
    pub threads: u32,
    /// Time-out of a connect.
    pub timeout_ns: u64,
    /// Duration of the load.
    pub duration_ns: u64,
}

/// The percentiles that wrk shows.
const SHOWN: [f64; 4] = [50.0, 75.0, 90.0, 99.0];

/// Values of wrk's table; times in microseconds, rates in answers per second.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figures {
    /// Latencies of answers.
    pub latency: Line,
    /// Percents with their latencies.
    pub percentiles: [(f64, u64); 4],
    /// Rates of threads, by tenths of a second.
    pub requests: Line,
    /// Bytes of answers.
    pub bytes: u64,
    /// Answers with a status above 399.
    pub statuses_above_399: u64,
    /// Latencies that wrk would have shown and no request had.
    pub added_by_wrk: u64,
    /// The 99th percentile with these.
    pub p99_by_wrk: u64,
}

/// Values that `done` gets besides the statistics.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Duration of the load, in microseconds.
    pub duration_us: u64,
    /// Answers.
    pub requests: u64,
    /// Bytes of answers.
    pub bytes: u64,
    /// Failures.
    pub errors: Errors,
}

/// Failures, as wrk counts them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Errors {
    /// Connections that did not come to stand.
    pub connect: u64,
    /// Answers that broke off or were none.
    pub read: u64,
    /// Requests that could not be sent.
    pub write: u64,
    /// Answers with a status above 399.
    pub status: u64,
    /// Requests without an answer in time.
    pub timeout: u64,
}

/// One use of a script.
pub struct Session {
    main: State,
    threads: Vec<Arc<Shared>>,
    /// Until they run.
    script_hosts: Vec<ScriptHost<Running>>,
    watches: Vec<Arc<Watch>>,
    /// The first line of the requests, where all are the same on the first thread.
    first_line: Option<String>,
    given_back: Option<Receiver<Running>>,
    ended: Vec<Running>,
}

impl Session {
    /// Runs the script in each state, then `setup` and `init` of each thread, and looks at the first request.
    pub fn prepare(asked: &Asked) -> Result<Session, Fault> {
        let main = State::new(asked)?;
        resolve(&main, asked)?;
        let mut session = Session {
            main,
            threads: Vec::new(),
            script_hosts: Vec::new(),
            watches: Vec::new(),
            first_line: None,
            given_back: None,
            ended: Vec::new(),
        };
        for number in 0..asked.threads {
            session.add_thread(asked, number)?;
        }
        session.main.flush()?;
        Ok(session)
    }

    fn add_thread(&mut self, asked: &Asked, number: u32) -> Result<(), Fault> {
        let state = State::new(asked)?;
        let shared = Arc::new(Shared::default());
        state.wrk.set("thread", Thread::own(&shared))?;
        let seen_from_main = Thread::of(&shared, &state.lua);
        self.main.of_wrk("setup")?.call::<()>(seen_from_main)?;
        state
            .of_wrk("init")?
            .call::<()>(arguments(&state, &asked.args)?)?;
        let Some(address) = shared.address() else {
            let what = format!(
                "thread {} has no address: thread.addr is nil after setup and init",
                number + 1
            );
            return Err(Fault::new(what));
        };
        let tally = Tally::new(asked.duration_ns, asked.timeout_ns);
        let mut running = Running::new(state, shared.clone(), tally)?;
        let requests = self.requests_of(&mut running, number == 0)?;
        self.watches.extend(running.watch());
        self.script_hosts.push(ScriptHost {
            reads_answers: running.reads_answers(),
            script: running,
            requests,
            address: Some(address),
        });
        self.threads.push(shared);
        Ok(())
    }

    fn requests_of(&mut self, running: &mut Running, is_first: bool) -> Result<Requests, Fault> {
        if running.makes_requests() {
            if is_first {
                running.make_first()?;
            }
            return Ok(Requests::Made);
        }
        let (bytes, framing) = running.fixed()?;
        if is_first {
            let line = bytes.split(|byte| *byte == b'\r' || *byte == b'\n').next();
            self.first_line = line.map(|line| String::from_utf8_lossy(line).into_owned());
        }
        Ok(Requests::Fixed(bytes, framing))
    }

    /// The first line of all requests; none: the script makes each.
    pub fn first_line(&self) -> Option<&str> {
        self.first_line.as_deref()
    }

    /// Starts a run with the script on its threads.
    pub fn start(&mut self, run: &mut Run) -> io::Result<()> {
        self.given_back = Some(run.start_with(self.script_hosts())?);
        Ok(())
    }

    /// Script hosts for each thread of a run that begins now.
    pub fn script_hosts(&mut self) -> Vec<ScriptHost<Running>> {
        self.threads
            .iter()
            .for_each(|shared| shared.set_running(true));
        std::mem::take(&mut self.script_hosts)
    }

    /// Takes back the scripts of the threads that have ended.
    fn collect(&mut self) {
        self.threads
            .iter()
            .for_each(|shared| shared.set_running(false));
        let given_back = self.given_back.iter().flat_map(Receiver::try_iter);
        self.ended.extend(given_back);
    }

    /// Fault of the script while it ran; after the end of the run.
    pub fn fault(&mut self) -> Option<String> {
        self.collect();
        let failed = self
            .ended
            .iter()
            .find_map(Running::fault)
            .map(ToString::to_string);
        let stuck = || {
            let (name, _) = self.watches.iter().find_map(|watch| watch.under_way())?;
            Some(format!(
                "{name} did not come back after the end of the run: does it loop for ever?"
            ))
        };
        failed.or_else(stuck)
    }

    /// Latencies in microseconds, and rates of threads in answers per second, of so long a measured part; after the
    /// end of the run.
    pub fn statistics(&mut self, measured_ns: u64) -> (Stats, Stats) {
        self.collect();
        let (mut latencies, mut rates) = (BTreeMap::new(), BTreeMap::new());
        for running in &self.ended {
            running.tally().add_latencies(&mut latencies);
            running.tally().add_rates(measured_ns, &mut rates);
        }
        (Stats::from(latencies), Stats::from(rates))
    }

    /// The lines of wrk's table, and the lines that wrk itself would have shown.
    pub fn figures(&mut self, measured_ns: u64, connections: u64) -> Figures {
        let (latencies, rates) = self.statistics(measured_ns);
        let of_connection = latencies.count() / connections.max(1);
        let interval = (measured_ns / MICROSECOND)
            .checked_div(of_connection)
            .unwrap_or(0);
        let by_wrk = latencies.as_wrk_adds(interval);
        Figures {
            latency: latencies.line(),
            percentiles: SHOWN.map(|percent| (percent, latencies.percentile(percent))),
            requests: rates.line(),
            bytes: self
                .ended
                .iter()
                .map(|running| running.tally().bytes())
                .sum(),
            statuses_above_399: self
                .ended
                .iter()
                .map(|running| running.tally().above_399())
                .sum(),
            added_by_wrk: by_wrk.count() - latencies.count(),
            p99_by_wrk: by_wrk.percentile(99.0),
        }
    }

    /// Calls `done`, if the script has it; after the end of the run.
    pub fn done(&mut self, measured_ns: u64, summary: &Summary) -> Result<(), Fault> {
        let (latencies, rates) = self.statistics(measured_ns);
        if let Some(done) = self.main.global("done")? {
            let table = self.summary(summary)?;
            let (latencies, rates) = (Told(Arc::new(latencies)), Told(Arc::new(rates)));
            done.call::<()>((table, latencies, rates))?;
        }
        Ok(self.main.flush()?)
    }

    fn summary(&self, summary: &Summary) -> mlua::Result<Table> {
        let lua = &self.main.lua;
        let errors = lua.create_table()?;
        for (name, count) in [
            ("connect", summary.errors.connect),
            ("read", summary.errors.read),
            ("write", summary.errors.write),
            ("status", summary.errors.status),
            ("timeout", summary.errors.timeout),
        ] {
            errors.set(name, count as f64)?;
        }
        let table = lua.create_table()?;
        table.set("duration", summary.duration_us as f64)?;
        table.set("requests", summary.requests as f64)?;
        table.set("bytes", summary.bytes as f64)?;
        table.set("errors", errors)?;
        Ok(table)
    }
}

/// Fills `wrk.addrs`, of which there must be one.
fn resolve(main: &State, asked: &Asked) -> Result<(), Fault> {
    let service = asked.port.as_deref().unwrap_or(&asked.scheme);
    let resolved = main
        .of_wrk("resolve")?
        .call::<()>((asked.host.as_str(), service));
    resolved.map_err(|error| Fault::Unreachable(Fault::from(error).to_string()))?;
    match main.wrk.get::<Value>("addrs")? {
        Value::Table(addresses) if addresses.raw_len() > 0 => Ok(()),
        _ => Err(Fault::Unreachable(format!(
            "unable to connect to {}:{service}: {}",
            asked.host,
            main.last_failure()
        ))),
    }
}

/// The table that `init` is given: the URL at 0, and what follows it.
fn arguments(state: &State, args: &[String]) -> mlua::Result<Table> {
    let table = state.lua.create_table()?;
    for (index, arg) in args.iter().enumerate() {
        table.raw_set(index, arg.as_str())?;
    }
    Ok(table)
}
