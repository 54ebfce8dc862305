//! The threads of a run: workers, and the supervisor that collects, joins and concludes.

use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use loadlens_base::units::MILLISECOND;
use loadlens_plan::program::Program;
use loadlens_plan::{Plan, Workload};
use loadlens_record::collector::{Collected, Collector, Live, ThreadEnds};
use loadlens_record::files::Files;
use loadlens_record::grid::Grid;
use loadlens_record::interval::{IntervalSet, Shape};
use loadlens_record::recorder::{Recorder, RowLogs, StreamProgress, SETS};
use loadlens_record::ring::ring;
use loadlens_record::rows::{row_log, Thinning, CONNECTION_BYTES, SAMPLE_BYTES};
use loadlens_record::sums::Begin;
use loadlens_sys as sys;
use loadlens_transport::{Epoll, Net, Tls};
use parking_lot::Mutex;

use crate::clock::{monotonic_ns, MonotonicClock};
use crate::script::{Requests, Script, ScriptHost, Watch};
use crate::worker::shard::useful_threads;
use crate::worker::{
    Beginning, Control, Settings, Worker, WorkerEnd, EVENTS, STORE_BYTES_PER_CONNECTION,
};

use super::machine::usable_cores;
use super::resolve::resolve;
use super::result::{self, Conclusion, Ends};
use super::{layout, Prepared, Started};

/// Chunks of the sample log of each thread: a third of a second at 200,000 rows a second.
const SAMPLE_CHUNKS: usize = 16;
const CONNECTION_CHUNKS: usize = 4;
/// Period of the collector.
const COLLECT_EVERY: Duration = Duration::from_millis(20);
/// Between the moment that all threads are ready and `t0`.
pub(super) const START_AHEAD: u64 = MILLISECOND;
/// While a start is ahead, a stop is noticed after this.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Bytes of answers and unsent requests that all threads together keep besides 64 KiB per connection.
const STORE_BYTES: usize = 24 << 20;

/// Time after the end of a run, beyond its drain and its slowest time-out, that a script call may still take.
const PATIENCE_WITH_SCRIPTS: u64 = 500 * MILLISECOND;

/// Inputs of a worker thread.
struct ThreadContext<S> {
    number: u32,
    threads: u32,
    run: Arc<Prepared>,
    /// That of the run, or one with the requests of a script.
    program: Arc<Program>,
    addresses: Arc<Vec<Vec<std::net::SocketAddr>>>,
    recorder: Recorder,
    control: Arc<Control>,
    ready: Sender<io::Result<()>>,
    go: Receiver<(u64, u64)>,
    script_host: ScriptHost<S>,
    gives_back: Sender<S>,
}

/// Starts everything; returns when the threads run.
pub(super) fn start<S: Script + 'static>(
    run: &Arc<Prepared>,
    script_hosts: Vec<ScriptHost<S>>,
    gives_back: &Sender<S>,
    at: Option<u64>,
) -> io::Result<(Arc<Started>, JoinHandle<()>)> {
    let (plan, program) = (&run.plan, &run.program);
    let threads = script_hosts.len() as u32;
    let names = layout::names(plan, program);
    refuse_too_near(at)?;
    let control = Arc::new(Control::new(
        known_end(plan),
        layout::load_shards(plan, program, threads),
    ));
    let targets = resolve(plan);
    let addresses: Vec<_> = targets
        .iter()
        .map(|target| target.addresses.clone())
        .collect();
    let addresses = Arc::new(addresses);
    let crew = spawn_all(run, script_hosts, gives_back, &control, &addresses)?;
    refuse_too_near(at)?; // names were resolved meanwhile
    let files = plan.record.as_ref().map(|record| {
        let shape = Shape::of(program);
        let sums = record.sums.then_some(Begin { shape, threads });
        Files::create(Path::new(&record.dir), sums)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", record.dir)))
    });
    let live = Arc::new(Mutex::new(Live::default()));
    let collector = Collector::new(names, crew.ends, files.transpose()?, live.clone());
    let now = monotonic_ns();
    let t0 = at.unwrap_or(now + START_AHEAD);
    let unix = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let t0_unix_ns = unix.as_nanos() as u64 + t0.saturating_sub(now);
    let started = Arc::new(Started {
        control,
        live,
        progress: crew.progress,
        t0,
        t0_unix_ns,
        suspended_ns: sys::suspended_ns(),
        targets,
    });
    let concludes = Concludes {
        run: run.clone(),
        started: started.clone(),
        watches: crew.watches,
    };
    let workers = crew.workers;
    let supervisor = thread::Builder::new()
        .name("loadlens-collect".to_owned())
        .spawn(move || supervise(collector, workers, &concludes))?;
    for go in crew.gos {
        let _ = go.send((t0, t0_unix_ns)); // a thread that is gone is seen when it is joined
    }
    Ok((started, supervisor))
}

/// Fails if a start is past, or nearer than threads need to begin together.
fn refuse_too_near(at: Option<u64>) -> io::Result<()> {
    let Some(at) = at else { return Ok(()) };
    let now = monotonic_ns();
    if at >= now + START_AHEAD {
        return Ok(());
    }
    let (ms, side) = (
        at.abs_diff(now) as f64 / MILLISECOND as f64,
        if at < now { "in the past" } else { "ahead" },
    );
    let what =
        format!("the start is {ms:.3} ms {side}: at least 1 ms ahead when the threads are ready");
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// The end that the plan says.
fn known_end(plan: &Plan) -> u64 {
    plan.duration_ns
        .map_or(u64::MAX, |duration| plan.warmup_ns.saturating_add(duration))
}

/// Threads that wait for their start, and the ends of what leads to them.
#[derive(Default)]
struct Crew {
    workers: Vec<JoinHandle<Option<WorkerEnd>>>,
    gos: Vec<Sender<(u64, u64)>>,
    progress: Vec<Arc<[StreamProgress]>>,
    ends: Vec<ThreadEnds>,
    watches: Vec<Arc<Watch>>,
}

/// Starts the threads; returns when all are ready.
fn spawn_all<S: Script + 'static>(
    run: &Arc<Prepared>,
    script_hosts: Vec<ScriptHost<S>>,
    gives_back: &Sender<S>,
    control: &Arc<Control>,
    addresses: &Arc<Vec<Vec<std::net::SocketAddr>>>,
) -> io::Result<Crew> {
    let (plan, program) = (&run.plan, &run.program);
    let threads = script_hosts.len() as u32;
    let (ready, seated) = channel();
    let mut crew = Crew::default();
    for (number, script_host) in (0..threads).zip(script_hosts) {
        crew.watches.extend(script_host.script.watch());
        let of_thread: Arc<[StreamProgress]> = plan
            .streams
            .iter()
            .map(|_| StreamProgress::default())
            .collect();
        let (recorder, of_collector) =
            recording(plan, program, threads, known_end(plan), &of_thread);
        let (go_in, go) = channel();
        let context = ThreadContext {
            number,
            threads,
            run: run.clone(),
            program: program_with(plan, program, &script_host)?,
            addresses: match script_host.address {
                Some(address) => Arc::new(vec![vec![address]]),
                None => addresses.clone(),
            },
            recorder,
            control: control.clone(),
            ready: ready.clone(),
            go,
            script_host,
            gives_back: gives_back.clone(),
        };
        crew.workers.push(
            thread::Builder::new()
                .name(format!("loadlens-{number}"))
                .spawn(move || work(context))?,
        );
        crew.gos.push(go_in);
        crew.progress.push(of_thread);
        crew.ends.push(of_collector);
    }
    drop(ready);
    for _ in 0..threads {
        // A thread that fails drops its end; the others see their `go` closed and end too.
        seated
            .recv()
            .map_err(|_| io::Error::other("an engine thread ended before the start"))??;
    }
    Ok(crew)
}

/// The program of a thread, whose requests may be its own.
fn program_with<S>(
    plan: &Plan,
    program: &Arc<Program>,
    script_host: &ScriptHost<S>,
) -> io::Result<Arc<Program>> {
    let requests = &script_host.requests;
    if matches!(requests, Requests::Planned) && !script_host.reads_answers {
        return Ok(program.clone());
    }
    match Program::compile_with(plan, requests, script_host.reads_answers) {
        Ok(program) => Ok(Arc::new(program)),
        // It was compiled before: a file of the plan has changed since.
        Err(faults) => Err(io::Error::other(
            faults.first().map(ToString::to_string).unwrap_or_default(),
        )),
    }
}

/// A thread's recorder and the collector's ends of it.
fn recording(
    plan: &Plan,
    program: &Program,
    threads: u32,
    known_end: u64,
    progress: &Arc<[StreamProgress]>,
) -> (Recorder, ThreadEnds) {
    let streams = program.streams.iter();
    let steps: Vec<usize> = streams.map(|stream| stream.steps.len()).collect();
    let shape = Shape::of(program);
    let sets = (0..SETS)
        .map(|_| Box::new(IntervalSet::of(&shape)))
        .collect();
    let (full_in, full) = ring(SETS);
    let (empty, empty_out) = ring(SETS);
    let mut ends = ThreadEnds {
        full,
        empty,
        samples: None,
        connections: None,
    };
    let logs = plan.record.as_ref().map(|record| {
        let (samples, sample_source) = row_log(SAMPLE_BYTES, SAMPLE_CHUNKS);
        let (connections, connection_source) = row_log(CONNECTION_BYTES, CONNECTION_CHUNKS);
        ends.samples = Some(sample_source);
        ends.connections = Some(connection_source);
        let kept = |bound: u64| {
            let carriers = |stream| u64::from(useful_threads(stream, plan.share, threads));
            let of_stream = |stream| match bound {
                0 => Thinning::new(0),
                some => Thinning::new((some / carriers(stream)).max(1)),
            };
            plan.streams.iter().map(of_stream).collect()
        };
        RowLogs {
            samples,
            connections,
            kept_samples: kept(record.max_sample_rows.unwrap_or(u64::MAX)),
            kept_connections: kept(record.max_connection_rows()),
        }
    });
    let grid = Grid {
        warmup_end: plan.warmup_ns,
        end: known_end,
    };
    let recorder = Recorder::new(
        &steps,
        grid,
        sets,
        (full_in, empty_out),
        logs,
        progress.clone(),
    );
    (recorder, ends)
}

/// The life of a worker thread.
fn work<S: Script>(context: ThreadContext<S>) -> Option<WorkerEnd> {
    let net = match prepare(&context) {
        Ok(net) => net,
        Err(error) => {
            let _ = context.ready.send(Err(error));
            return None;
        }
    };
    let plan = &context.run.plan;
    let mut shards = layout::shards(
        plan,
        &context.program,
        &context.addresses,
        context.number,
        context.threads,
    );
    if matches!(&context.script_host.requests, Requests::Fixed(_, framing) if framing.closes()) {
        for shard in &mut shards {
            shard.pool.requests_per_connection = 1;
        }
    }
    let is_open = plan
        .streams
        .iter()
        .any(|stream| matches!(stream.workload, Workload::Open { .. }));
    let connections: usize = shards.iter().map(|shard| shard.pool.most as usize).sum();
    let _ = context.ready.send(Ok(()));
    let (t0, t0_unix_ns) = context.go.recv().ok()?;
    let is_called_off = is_stopped_before(t0 - START_AHEAD, &context.control);
    if is_called_off {
        shards.clear();
    }
    let begin = if is_called_off { monotonic_ns() } else { t0 };
    let settings = Settings {
        drain_ns: plan.drain_ns,
        may_spin: is_open && may_poll(plan, context.threads, usable_cores()),
        t0_unix_ns,
        store_bytes: STORE_BYTES / context.threads as usize
            + STORE_BYTES_PER_CONNECTION * connections,
    };
    let beginning = Beginning {
        script: context.script_host.script,
        clock: MonotonicClock::new(t0),
        shards,
        recorder: context.recorder,
        control: context.control,
        settings,
    };
    let tls = &context.run.tls;
    let (end, script) = if tls.is_plain() {
        run_from(begin, Worker::with_script(net, beginning))
    } else {
        let net = Tls::new(net, tls, connections);
        run_from(begin, Worker::with_script(net, beginning))
    };
    let _ = context.gives_back.send(script); // the receiver may be gone
    Some(end)
}

/// Waits until `until`; true at once if the run is stopped before.
fn is_stopped_before(until: u64, control: &Control) -> bool {
    loop {
        let left = Duration::from_nanos(until.saturating_sub(monotonic_ns()));
        if left.is_zero() || control.is_stopped() {
            return !left.is_zero();
        }
        thread::sleep(left.min(LOOK_EVERY));
    }
}

/// Runs a worker from `t0` on.
///
/// Nothing happens before t0: a request that did would have no time of its own, and a run that was over by then would
/// have no interval to be counted in. Until then the clock stands at 0; all threads begin there together.
fn run_from<N: Net, S: Script>(
    t0: u64,
    worker: Worker<'_, MonotonicClock, N, S>,
) -> (WorkerEnd, S) {
    thread::sleep(Duration::from_nanos(t0.saturating_sub(monotonic_ns())));
    let start_late_ns = monotonic_ns().saturating_sub(t0);
    let (end, script) = worker.run();
    let end = WorkerEnd {
        start_late_ns,
        ..end
    };
    (end, script)
}

/// True if each thread has a core that nothing else needs, so that polling for a due time takes nothing from the
/// service: cores were set aside for them, or half of all are left when the threads and the collector have theirs.
fn may_poll(plan: &Plan, threads: u32, usable_cores: u32) -> bool {
    match &plan.cpus {
        Some(cpus) => cpus.len() >= threads as usize,
        None => usable_cores >= 2 * (threads + 1),
    }
}

fn prepare<S>(context: &ThreadContext<S>) -> io::Result<Epoll> {
    if let Some(cpus) = context
        .run
        .plan
        .cpus
        .as_ref()
        .filter(|cpus| !cpus.is_empty())
    {
        let cpu = cpus[context.number as usize % cpus.len()];
        sys::confine(&[cpu as usize]).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!(
                    "thread {} cannot run on core {cpu}: {error}",
                    context.number
                ),
            )
        })?;
    }
    sys::precise_timers();
    sys::short_turns();
    Epoll::new(EVENTS)
}

/// Inputs of the supervisor's conclusion of a run.
struct Concludes {
    run: Arc<Prepared>,
    started: Arc<Started>,
    /// Watches over the scripts that threads may be in.
    watches: Vec<Arc<Watch>>,
}

impl Concludes {
    /// The call of a script that has not come back although its run is long over; its thread cannot be ended.
    fn stuck(&self) -> Option<String> {
        let plan = &self.run.plan;
        let timeout = plan.streams.iter().map(|stream| stream.timeout_ns).max();
        let control = &self.started.control;
        let over = control
            .end()
            .saturating_add(plan.drain_ns)
            .saturating_add(timeout.unwrap_or_default())
            .saturating_add(PATIENCE_WITH_SCRIPTS);
        let now = monotonic_ns().saturating_sub(self.started.t0);
        if now < over {
            return None;
        }
        let under_way = self.watches.iter().find_map(|watch| watch.under_way());
        under_way.map(|(name, began)| {
            let seconds = now.saturating_sub(began) as f64 / 1e9;
            format!("{name} has not come back for {seconds:.1} s: does it loop for ever?")
        })
    }
}

impl Concludes {
    /// Ends the files; returns all that the result needs besides the counts.
    fn conclusion(
        &self,
        collected: &Collected,
        ends: &[WorkerEnd],
        files: Option<Files>,
    ) -> Conclusion {
        let (plan, started) = (&self.run.plan, &self.started);
        let ends = Ends::of(ends);
        let mut notes = self.run.notes.clone();
        notes.extend(result::notes_on_ports(plan, collected, ends.at));
        let mut changes = started.control.changes_from(0);
        changes.retain(|change| change.at < started.control.end());
        let mut conclusion = Conclusion {
            ends,
            is_stopped: started.control.is_stopped(),
            is_incomplete: false,
            t0_unix_ns: started.t0_unix_ns,
            t0_monotonic_ns: started.t0,
            suspended_ns: sys::suspended_ns().saturating_sub(started.suspended_ns),
            resolve_ns: started
                .targets
                .iter()
                .map(|target| target.took_ns)
                .collect(),
            changes,
            notes,
            faults: Vec::new(),
        };
        if let Some(mut files) = files {
            conclusion.faults = files.faults();
            files.end(&conclusion);
            conclusion.faults = files.faults();
        }
        conclusion
    }
}

/// Collects while the workers run, then joins them and sends the result.
fn supervise(
    mut collector: Collector,
    mut workers: Vec<JoinHandle<Option<WorkerEnd>>>,
    concludes: &Concludes,
) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut ends = Vec::new();
        let mut panics = Vec::new();
        while !workers.is_empty() {
            thread::sleep(COLLECT_EVERY);
            collector.collect();
            let (ended, running): (Vec<_>, Vec<_>) =
                workers.drain(..).partition(JoinHandle::is_finished);
            workers = running;
            for worker in ended {
                match worker.join() {
                    Ok(Some(end)) => ends.push(end),
                    Ok(None) => panics.push("an engine thread did not begin".to_owned()),
                    Err(panic) => panics.push(panic_text(panic.as_ref())),
                }
            }
            if !panics.is_empty() {
                concludes.started.control.stop(0);
            }
            if let Some(stuck) = concludes.stuck() {
                return Err(stuck); // its thread is left to itself
            }
        }
        let (collected, files) = collector.finish();
        if panics.is_empty() {
            let conclusion = concludes.conclusion(&collected, &ends, files);
            let Prepared { plan, program, .. } = &*concludes.run;
            Ok(result::build(plan, program, &collected, &conclusion, &[]).to_string())
        } else {
            Err(format!(
                "an engine thread failed, which is a fault of Loadlens: {}",
                panics.join("; ")
            ))
        }
    }));
    let ending = outcome.unwrap_or_else(|panic| {
        Err(format!(
            "the collector failed, which is a fault of Loadlens: {}",
            panic_text(panic.as_ref())
        ))
    });
    concludes.run.end.tell(ending);
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_polls_only_on_a_core_that_nothing_else_needs() {
        let plan = |cpus: Option<Vec<u32>>| -> Plan {
            let plan = serde_json::json!({
                "schema_version": 1, "seed": 1, "duration_ns": 1, "streams": [], "cpus": cpus,
            });
            serde_json::from_value(plan).unwrap()
        };

        assert!(may_poll(&plan(Some(vec![1])), 1, 2)); // set aside
        assert!(!may_poll(&plan(Some(vec![1])), 2, 2)); // two threads on one core
        assert!(!may_poll(&plan(None), 1, 2)); // the service has the other core, and may want both
        assert!(!may_poll(&plan(None), 1, 3));
        assert!(may_poll(&plan(None), 1, 4));
        assert!(!may_poll(&plan(None), 2, 4));
    }

    #[test]
    fn a_panic_of_an_engine_thread_ends_the_run_and_is_told() {
        let plan: Plan = serde_json::from_value(serde_json::json!({
            "schema_version": 1, "seed": 1, "duration_ns": 1, "streams": [],
        }))
        .unwrap();
        let program = Program {
            streams: Vec::new(),
        };
        let live = Arc::new(Mutex::new(Live::default()));
        let started = Started {
            control: Arc::new(Control::new(u64::MAX, 1)),
            live: live.clone(),
            progress: Vec::new(),
            t0: 0,
            t0_unix_ns: 0,
            suspended_ns: 0,
            targets: Vec::new(),
        };
        let run = Prepared {
            tls: loadlens_transport::tls::configure(&plan).unwrap(),
            plan,
            program: Arc::new(program),
            notes: Vec::new(),
            open_files: 0,
            end: Default::default(),
        };
        let concludes = Concludes {
            run: Arc::new(run),
            started: Arc::new(started),
            watches: Vec::new(),
        };
        let names = layout::names(&concludes.run.plan, &concludes.run.program);
        let worker = thread::spawn(|| -> Option<WorkerEnd> { panic!("a deliberate bug") });

        supervise(
            Collector::new(names, Vec::new(), None, live),
            vec![worker],
            &concludes,
        );

        let ending = concludes
            .run
            .end
            .ending
            .lock()
            .clone()
            .unwrap()
            .unwrap_err();
        assert!(
            ending.contains("a deliberate bug") && ending.contains("fault of Loadlens"),
            "{ending}"
        );
        assert_eq!(concludes.started.control.end(), 0); // the others stop
    }
}
