//! One history: workers of one run, each in a world of its own, taking turns in the order of their clocks.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use loadlens_base::Random;
use loadlens_engine::run::result::{Conclusion, Ends};
use loadlens_engine::worker::shard::StreamShard;
use loadlens_engine::worker::{Change, Control, Level, Settings, Worker, WorkerEnd, AHEAD};
use loadlens_plan::arrival::Part;
use loadlens_plan::program::{Program, StreamProgram};
use loadlens_plan::{Plan, Role, Share, Stream};
use loadlens_record::collector::{Collected, Collector, Live, ThreadEnds};
use loadlens_record::files::{Files, Names, StreamNames};
use loadlens_record::grid::Grid;
use loadlens_record::interval::{IntervalSet, Shape};
use loadlens_record::recorder::{Recorder, RowLogs, StreamProgress, SETS};
use loadlens_record::ring::ring;
use loadlens_record::rows::{
    row_log, ConnectionRow, RowSource, SampleRow, Thinning, CONNECTION_BYTES, SAMPLE_BYTES,
};
use loadlens_record::sums::Begin;
use parking_lot::Mutex;
use serde_json::Value;

use crate::plans::{draw_addresses, draw_changes, draw_nature, draw_plan, level, world, Draws};
use crate::world::{Sim, World};
use crate::MS;

/// Room for all rows of the longest history: none are taken before its end.
const LOG_CHUNKS: usize = 64;

/// Final state of one worker.
pub struct Told {
    pub end: WorkerEnd,
    pub rows: Vec<SampleRow>,
    pub connections: Vec<ConnectionRow>,
    pub world: World,
}

/// Workers that are collected together, into the files of a folder.
pub struct Machine {
    pub folder: PathBuf,
    pub workers: usize,
}

/// End of one history.
pub struct History {
    pub plan: Plan,
    /// Of all workers; where there are several machines, of the first.
    pub collected: Collected,
    pub conclusion: Conclusion,
    pub workers: Vec<Told>,
    pub may_spin: bool,
    /// Time at which an early end was requested.
    pub stopped_at: Option<u64>,
    /// Changes of the load of the first stream.
    pub changes: Vec<Change>,
    /// End of the measured part.
    pub end: u64,
}

impl History {
    /// All that happened, in one number.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for told in &self.workers {
            told.rows.iter().for_each(|row| row.hash(&mut hasher));
            told.connections
                .iter()
                .for_each(|row| row.hash(&mut hasher));
            let world = &told.world;
            (told.end.at, world.calls, world.bytes_in, world.bytes_out).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The most users that the first stream had, given those of its plan.
    pub fn most_users(&self, planned: u32) -> u32 {
        let users = self.changes.iter().map(|change| match change.new {
            Level::Users(users) => users,
            Level::RatePerS(_) => 0,
        });
        users.max().unwrap_or(0).max(planned)
    }

    pub fn rows(&self) -> impl Iterator<Item = &SampleRow> {
        self.workers.iter().flat_map(|told| &told.rows)
    }
}

/// Parts of a history.
pub struct Setting {
    pub plan: Value,
    /// One for each worker.
    pub worlds: Vec<World>,
    /// The collector takes what is full at each wait, at every so many, or never.
    pub collects_every: u64,
    pub may_spin: bool,
    pub stop_at: Option<u64>,
    /// Changes of the load of the first stream, each with the time at which it is asked for.
    pub changes: Vec<(u64, Level)>,
    /// Bound of what each worker keeps of answers and requests.
    pub store_bytes: usize,
    /// Machines in the order of their workers; empty: all are on one, which writes no files.
    pub machines: Vec<Machine>,
}

impl Setting {
    /// One worker.
    pub fn of(plan: Value, world: World) -> Setting {
        Setting {
            plan,
            worlds: vec![world],
            collects_every: 50,
            may_spin: false,
            stop_at: None,
            changes: Vec::new(),
            store_bytes: 1 << 20,
            machines: Vec::new(),
        }
    }

    /// All that a seed decides.
    pub fn drawn(seed: u64) -> Setting {
        let random = &mut Random::derived(seed, &[1]);
        let plan = draw_plan(random);
        let nature = draw_nature(random);
        let addresses = draw_addresses(random);
        let workers = Draws(random).of(&[1, 1, 1, 1, 2, 3]);
        let changes = draw_changes(&mut Random::derived(seed, &[2]), &plan);
        let mut draws = Draws(random);
        Setting {
            plan,
            changes,
            worlds: (0..workers)
                .map(|worker| world(seed, worker, nature, &addresses))
                .collect(),
            collects_every: draws.of(&[1, 50, u64::MAX]),
            may_spin: draws.of(&[true, false]),
            stop_at: draws.of(&[None, None, None, Some(7 * MS), Some(70 * MS)]),
            store_bytes: 1 << 20,
            machines: Vec::new(),
        }
    }

    /// Lives it to its end.
    pub fn live(self) -> History {
        let plan: Plan = serde_json::from_value(self.plan).unwrap();
        assert_eq!(plan.validate(), []);
        let program = Program::compile(&plan).unwrap();
        let steps: Vec<usize> = program.streams.iter().map(|s| s.steps.len()).collect();
        let threads = self.worlds.len() as u32;
        let known_end = plan
            .duration_ns
            .map_or(u64::MAX, |duration| plan.warmup_ns + duration);
        let of_workers: Vec<Vec<StreamShard>> = (0..threads)
            .zip(&self.worlds)
            .map(|(thread, world)| shards(&plan, &program, (thread, threads), world))
            .collect();
        let all = of_workers.iter().flatten();
        let load_parts = all.filter(|shard| shard.role == Role::Load).count();
        let control = Arc::new(Control::new(known_end, load_parts));
        let (mut ends, mut logs, mut workers) = (Vec::new(), Vec::new(), Vec::new());
        for (world, shards) in self.worlds.into_iter().zip(of_workers) {
            let recording = recording(&plan, &steps, &Shape::of(&program), known_end);
            let settings = Settings {
                drain_ns: plan.drain_ns,
                may_spin: self.may_spin,
                t0_unix_ns: 0,
                store_bytes: self.store_bytes,
            };
            ends.push(recording.ends);
            logs.push((recording.samples, recording.connections));
            let sim = Sim(Rc::new(RefCell::new(world)));
            let (clock, net, control) = (sim.clone(), sim.clone(), control.clone());
            let worker = Worker::new(clock, net, shards, recording.recorder, control, settings);
            workers.push((sim, worker));
        }
        let collectors = collectors(&self.machines, &plan, &program, ends);
        let collectors = Rc::new(RefCell::new(collectors));
        for (sim, _) in &workers {
            let (collectors, every, mut count) = (collectors.clone(), self.collects_every, 0);
            sim.0.borrow_mut().at_wait = Some(Box::new(move || {
                count += 1;
                if count % every == 0 {
                    let mut collectors = collectors.borrow_mut();
                    collectors.iter_mut().for_each(Collector::collect);
                }
            }));
        }

        let planned = level(&plan.streams[0].workload);
        let (ended, stopped_at) =
            take_turns(workers, &control, self.stop_at, (planned, self.changes));

        let collectors = Rc::into_inner(collectors).unwrap().into_inner();
        let mut of_machines = Vec::new();
        let mut left = &ended[..];
        for (at, collector) in collectors.into_iter().enumerate() {
            let count = self.machines.get(at).map_or(left.len(), |own| own.workers);
            let (own, others) = left.split_at(count);
            left = others;
            of_machines.push(conclude(
                collector,
                own.iter().map(|(_, end)| end),
                &control,
            ));
        }
        let (collected, conclusion) = of_machines.swap_remove(0);
        let workers =
            ended
                .into_iter()
                .zip(logs)
                .map(|((world, end), (mut samples, mut connections))| Told {
                    end,
                    rows: drain(&mut samples, SAMPLE_BYTES, sample),
                    connections: drain(&mut connections, CONNECTION_BYTES, connection),
                    world,
                });
        History {
            workers: workers.collect(),
            plan,
            collected,
            conclusion,
            may_spin: self.may_spin,
            stopped_at,
            changes: control.changes_from(0),
            end: control.end(),
        }
    }
}

/// Gives the worker whose clock is behind its turn until all have ended; a wait of the others may have gone ahead by
/// 20 ms at most.
fn take_turns(
    workers: Vec<(Sim, Worker<'_, Sim, Sim>)>,
    control: &Control,
    mut stop_at: Option<u64>,
    (planned, changes): (Option<Level>, Vec<(u64, Level)>),
) -> (Vec<(World, WorkerEnd)>, Option<u64>) {
    let mut stopped_at = None;
    let mut changes = changes.into_iter().peekable();
    let mut left: Vec<_> = workers.into_iter().enumerate().collect();
    left.iter_mut().for_each(|(_, (_, worker))| worker.begin());
    let mut ended = Vec::new();
    while let Some(at) = (0..left.len()).min_by_key(|at| left[*at].1 .0 .0.borrow().now) {
        let now = left[at].1 .0 .0.borrow().now;
        let calls = left[at].1 .0 .0.borrow().calls;
        assert!(calls < 5_000_000, "the run does not end");
        if stop_at.is_some_and(|stop| stop <= now) {
            // As `Run::stop` does.
            (stop_at, stopped_at) = (None, Some(now));
            control.stop(now + 25 * MS);
        }
        while let Some((_, new)) = changes.next_if(|(at, _)| *at <= now) {
            // As `Run::change` does; a thread that was frozen in its turn has lived ahead of the others.
            let clocks = left.iter().map(|(_, (sim, _))| sim.0.borrow().now);
            let latest_clock = clocks.max().unwrap_or(now);
            let changed = control.change(|before| {
                let latest = before.last().map(|change| change.new);
                Ok::<Change, ()>(Change {
                    at: latest_clock + AHEAD,
                    stream: 0,
                    old: latest.or(planned).ok_or(())?,
                    new,
                })
            });
            changed.expect("the load has a level");
        }
        if !left[at].1 .1.turn() {
            let (number, (sim, worker)) = left.remove(at);
            let (end, _) = worker.finish();
            sim.0.borrow_mut().at_wait = None;
            ended.push((number, (Rc::into_inner(sim.0).unwrap().into_inner(), end)));
        }
    }
    ended.sort_by_key(|(number, _)| *number);
    (
        ended.into_iter().map(|(_, told)| told).collect(),
        stopped_at,
    )
}

/// A collector for each machine.
fn collectors(
    machines: &[Machine],
    plan: &Plan,
    program: &Program,
    mut ends: Vec<ThreadEnds>,
) -> Vec<Collector> {
    let collector = |ends, files| {
        let live = Arc::new(Mutex::new(Live::default()));
        Collector::new(names(plan, program), ends, files, live)
    };
    if machines.is_empty() {
        return vec![collector(ends, None)];
    }
    let of_machine = |machine: &Machine| {
        let (shape, threads) = (Shape::of(program), machine.workers as u32);
        let files = Files::create(&machine.folder, Some(Begin { shape, threads })).unwrap();
        collector(ends.drain(..machine.workers).collect(), Some(files))
    };
    machines.iter().map(of_machine).collect()
}

/// Ends a collector as the supervisor of a run does.
fn conclude<'e>(
    collector: Collector,
    ends: impl Iterator<Item = &'e WorkerEnd>,
    control: &Control,
) -> (Collected, Conclusion) {
    let (collected, files) = collector.finish();
    let mut changes = control.changes_from(0);
    changes.retain(|change| change.at < control.end());
    let conclusion = Conclusion {
        ends: Ends::of(ends),
        is_stopped: control.is_stopped(),
        changes,
        ..Conclusion::default()
    };
    if let Some(mut files) = files {
        files.end(&conclusion);
        assert_eq!(files.faults(), [""; 0]);
    }
    (collected, conclusion)
}

fn names(plan: &Plan, program: &Program) -> Names {
    let of_stream = |(planned, stream): (&Stream, &StreamProgram)| StreamNames {
        name: planned.name.clone(),
        steps: stream.steps.iter().map(|step| step.name.clone()).collect(),
        groups: stream
            .groups
            .iter()
            .map(|group| group.name.clone())
            .collect(),
        checks: stream
            .steps
            .iter()
            .map(|step| step.checks().len())
            .collect(),
    };
    let streams = plan.streams.iter().zip(&program.streams);
    Names {
        streams: streams.map(of_stream).collect(),
    }
}

/// The shards of one worker of `threads`.
fn shards<'p>(
    plan: &Plan,
    program: &'p Program,
    (thread, threads): (u32, u32),
    world: &World,
) -> Vec<StreamShard<'p>> {
    let of_stream = |(at, stream): (usize, &Stream)| {
        let port = stream.target.port;
        let count = world.listens.get(&port).map_or(1, Vec::len);
        let addresses = (1..=count as u8).map(|last| SocketAddr::from(([127, 0, 0, last], port)));
        let part = Part::new(Share::default(), thread, threads);
        StreamShard::new(plan, at, &program.streams[at], addresses.collect(), part)
    };
    plan.streams
        .iter()
        .enumerate()
        .filter_map(of_stream)
        .collect()
}

/// Recorder inputs of one worker, and the channels of its output.
struct Recording {
    recorder: Recorder,
    ends: ThreadEnds,
    samples: RowSource,
    connections: RowSource,
}

fn recording(plan: &Plan, steps: &[usize], shape: &Shape, known_end: u64) -> Recording {
    let sets = (0..SETS)
        .map(|_| Box::new(IntervalSet::of(shape)))
        .collect();
    let (full_in, full) = ring(SETS);
    let (empty, empty_out) = ring(SETS);
    let (samples, sample_source) = row_log(SAMPLE_BYTES, LOG_CHUNKS);
    let (connections, connection_source) = row_log(CONNECTION_BYTES, LOG_CHUNKS);
    let logs = RowLogs {
        samples,
        connections,
        kept_samples: vec![Thinning::new(u64::MAX); steps.len()],
        kept_connections: vec![Thinning::new(u64::MAX); steps.len()],
    };
    let progress: Arc<[StreamProgress]> = steps.iter().map(|_| StreamProgress::default()).collect();
    let grid = Grid {
        warmup_end: plan.warmup_ns,
        end: known_end,
    };
    let recorder = Recorder::new(
        steps,
        grid,
        sets,
        (full_in, empty_out),
        Some(logs),
        progress,
    );
    Recording {
        recorder,
        ends: ThreadEnds {
            full,
            empty,
            samples: None,
            connections: None,
        },
        samples: sample_source,
        connections: connection_source,
    }
}

/// All rows of a log.
fn drain<Row>(source: &mut RowSource, bytes: usize, read: fn(&[u8]) -> Row) -> Vec<Row> {
    let mut rows = Vec::new();
    source.drain(|chunk| rows.extend(chunk.bytes.chunks(bytes).map(read)));
    rows
}

fn u64_at(row: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(row[at..at + 8].try_into().unwrap())
}

fn u32_at(row: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(row[at..at + 4].try_into().unwrap())
}

/// A row as docs/reference/record.md has it.
fn sample(row: &[u8]) -> SampleRow {
    SampleRow {
        seq: u64_at(row, 0),
        due_ns: u64_at(row, 8) as i64,
        sent_ns: u64_at(row, 16) as i64,
        first_ns: u64_at(row, 24) as i64,
        done_ns: u64_at(row, 32) as i64,
        user: u32_at(row, 40),
        connection: u32_at(row, 44),
        wire_bytes: u32_at(row, 48),
        body_bytes: u32_at(row, 52),
        step: u32_at(row, 56) as u16,
        status: (u32_at(row, 56) >> 16) as u16,
        outcome: row[60],
        stream: row[61],
        thinned: row[62],
        flags: row[63],
    }
}

fn connection(row: &[u8]) -> ConnectionRow {
    ConnectionRow {
        connection: u32_at(row, 0),
        user: u32_at(row, 4),
        opened_ns: u64_at(row, 8) as i64,
        established_ns: u64_at(row, 16) as i64,
        closed_ns: u64_at(row, 24) as i64,
        requests: u32_at(row, 32),
        closed_by: row[36],
        stream: row[37],
        outcome: row[38],
        is_resumed: row[39] != 0,
        bytes_in: u64_at(row, 40),
        tls_ns: u64_at(row, 48) as i64,
        thinned: u64_at(row, 56),
    }
}
