//! One run: threads, common start, progress, orderly end, result.
//!
//! `layout` decides what runs where and whether this machine can carry it, `threads` holds what runs on
//! engine threads, `changes` is about changes of the load, `progress` and `result` turn counts into the JSON of
//! docs/reference, `merge` makes one result from the files of several machines.

mod changes;
mod layout;
mod limits;
mod machine;
mod merge;
mod progress;
mod resolve;
pub mod result;
mod threads;

use std::io;
use std::sync::mpsc::{channel, Receiver};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use loadlens_base::Fault;
use loadlens_plan::program::Program;
use loadlens_plan::Plan;
use loadlens_record::collector::Live;
use loadlens_record::recorder::StreamProgress;
use loadlens_transport::tls;
use parking_lot::{Condvar, Mutex};

use crate::clock::monotonic_ns;
use crate::script::{NoScript, Script, ScriptHost};
use crate::worker::{Control, AHEAD};

pub use limits::Shortage;
pub use merge::merge;

/// Reason why a run could not be made.
#[derive(Debug)]
pub enum Refusal {
    /// The plan is bad.
    Plan(Vec<Fault>),
    /// This machine cannot carry it.
    Machine(Shortage),
}

/// A compiled plan, with all else that its threads share.
pub(crate) struct Prepared {
    plan: Plan,
    program: Arc<Program>,
    tls: tls::Configs,
    /// Warnings made before the start.
    notes: Vec<String>,
    /// Descriptors of the process that were open before the start.
    open_files: u64,
    end: End,
}

/// State of a started run that threads and callers share.
pub(crate) struct Started {
    control: Arc<Control>,
    live: Arc<Mutex<Live>>,
    /// By thread, by stream.
    progress: Vec<Arc<[StreamProgress]>>,
    t0: u64,
    t0_unix_ns: u64,
    /// Time for which the machine had been suspended before.
    suspended_ns: u64,
    /// By stream.
    targets: Vec<resolve::Resolved>,
}

/// End of a run: the result as JSON, or a fault of the engine itself.
type Ending = Result<String, String>;

#[derive(Default)]
struct End {
    ending: Mutex<Option<Ending>>,
    told: Condvar,
}

impl End {
    fn tell(&self, ending: Ending) {
        self.ending.lock().get_or_insert(ending);
        self.told.notify_all();
    }
}

/// Waits for the end of a run.
pub struct Waiter(Arc<Prepared>);

impl Waiter {
    /// Waits until the run has ended, at most so long; says whether it has.
    pub fn wait(&self, timeout: Duration) -> bool {
        let End { ending, told } = &self.0.end;
        let mut ending = ending.lock();
        told.wait_while_for(&mut ending, |ending| ending.is_none(), timeout);
        ending.is_some()
    }
}

/// One run of the engine, on threads of its own.
pub struct Run {
    prepared: Arc<Prepared>,
    started: Option<Arc<Started>>,
    supervisor: Option<JoinHandle<()>>,
}

impl Run {
    /// Reads and compiles a plan and checks that this machine can carry it. Nothing is started.
    pub fn new(plan_json: &str) -> Result<Run, Refusal> {
        let plan: Plan = serde_json::from_str(plan_json)
            .map_err(|error| Refusal::Plan(vec![Fault::new("plan", error.to_string())]))?;
        let faults = plan.validate();
        if !faults.is_empty() {
            return Err(Refusal::Plan(faults));
        }
        let (program, tls) = match (Program::compile(&plan), tls::configure(&plan)) {
            (Ok(program), Ok(tls)) => (program, tls),
            (program, tls) => {
                let faults = program.err().into_iter().chain(tls.err()).flatten();
                return Err(Refusal::Plan(faults.collect()));
            }
        };
        let (notes, open_files) = limits::check(&plan).map_err(Refusal::Machine)?;
        let prepared = Prepared {
            plan,
            program: Arc::new(program),
            tls,
            notes,
            open_files,
            end: End::default(),
        };
        Ok(Run {
            prepared: Arc::new(prepared),
            started: None,
            supervisor: None,
        })
    }

    /// Warnings about this machine, made before the start; the result repeats them.
    pub fn notes(&self) -> &[String] {
        &self.prepared.notes
    }

    /// Starts the threads; returns when they run.
    pub fn start(&mut self) -> io::Result<()> {
        self.start_at(None)
    }

    /// Starts the threads; returns when they are ready to begin together at `t0`, a reading of [`monotonic_ns`]; none:
    /// at once.
    ///
    /// Fails with `InvalidInput` if `t0` is past or too near, at the call or when the threads are ready.
    pub fn start_at(&mut self, t0: Option<u64>) -> io::Result<()> {
        let none = || ScriptHost::<NoScript>::default();
        let script_hosts = (0..self.threads()).map(|_| none()).collect();
        self.begin(script_hosts, t0).map(|_| ())
    }

    /// Number of engine threads.
    pub fn threads(&self) -> u32 {
        layout::thread_count(&self.prepared.plan)
    }

    /// Starts the threads of a plan of one stream with one step, each with a script of its own, as many as there are
    /// threads. Who is given back gets the scripts, in any order, as their threads end.
    pub fn start_with<S: Script + 'static>(
        &mut self,
        script_hosts: Vec<ScriptHost<S>>,
    ) -> io::Result<Receiver<S>> {
        let streams = &self.prepared.program.streams;
        let is_plain = streams.len() == 1 && streams[0].steps.len() == 1;
        if !is_plain || script_hosts.len() != self.threads() as usize {
            let what = "scripts accompany one stream of one step, one on each thread";
            return Err(io::Error::other(what));
        }
        self.begin(script_hosts, None)
    }

    fn begin<S: Script + 'static>(
        &mut self,
        script_hosts: Vec<ScriptHost<S>>,
        t0: Option<u64>,
    ) -> io::Result<Receiver<S>> {
        if self.started.is_some() {
            return Err(io::Error::other("the run was already started"));
        }
        let (gives_back, given_back) = channel();
        let (started, supervisor) = threads::start(&self.prepared, script_hosts, &gives_back, t0)?;
        self.started = Some(started);
        self.supervisor = Some(supervisor);
        Ok(given_back)
    }

    /// Progress of the run as JSON; cheap, any time.
    pub fn progress(&self) -> String {
        let has_ended = self.prepared.end.ending.lock().is_some();
        progress::snapshot(&self.prepared.plan, self.started.as_deref(), has_ended).to_string()
    }

    /// Asks for an early, orderly end; the results so far stay. A load that has not begun does not begin.
    pub fn stop(&self) {
        let Some(started) = &self.started else { return };
        let now = monotonic_ns();
        let is_ahead = now + threads::START_AHEAD < started.t0;
        let at = now.saturating_sub(started.t0) + AHEAD;
        started.control.stop(if is_ahead { 0 } else { at });
    }

    /// Waits until the run has ended, at most so long; says whether it has.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.waiter().wait(timeout)
    }

    /// Something to wait with that does not borrow the run.
    pub fn waiter(&self) -> Waiter {
        Waiter(self.prepared.clone())
    }

    /// The result as JSON, once the run has ended.
    pub fn result(&self) -> Result<String, String> {
        match &*self.prepared.end.ending.lock() {
            Some(ending) => ending.clone(),
            None if self.started.is_some() => Err("the run has not ended".to_owned()),
            None => Err("the run was not started".to_owned()),
        }
    }
}

impl Drop for Run {
    /// Ends the run if it still goes: threads, sockets and files are gone after it.
    fn drop(&mut self) {
        self.stop();
        if let Some(supervisor) = self.supervisor.take() {
            let _ = supervisor.join(); // its panic, if any, stands in the ending
        }
    }
}
