//! Assignment of streams to threads.

use std::net::SocketAddr;

use loadlens_plan::arrival::Part;
use loadlens_plan::program::{Program, StreamProgram};
use loadlens_plan::{Plan, Role, Stream, Workload};
use loadlens_record::files::{Names, StreamNames};

use crate::worker::shard::{useful_threads, StreamShard};

use super::machine::usable_cores;

/// Engine threads for a plan: one per core it may use, never more than the load is worth.
pub fn thread_count(plan: &Plan) -> u32 {
    let cores = plan
        .cpus
        .as_ref()
        .map_or_else(usable_cores, |cpus| cpus.len().max(1) as u32);
    let wanted = plan.threads.unwrap_or(cores);
    let most = plan
        .streams
        .iter()
        .map(|stream| useful_threads(stream, plan.share, wanted))
        .max();
    most.unwrap_or(1)
}

/// The part of each stream that thread `thread` carries.
fn parts_of(plan: &Plan, thread: u32, threads: u32) -> Vec<(usize, Part)> {
    let mut offset = 0;
    let mut parts = Vec::new();
    for (index, stream) in plan.streams.iter().enumerate() {
        let of = useful_threads(stream, plan.share, threads);
        // Streams of few parts begin on different threads.
        let part = (thread + threads - offset % threads) % threads;
        if part < of {
            parts.push((index, Part::new(plan.share, part, of)));
        }
        offset += of;
    }
    parts
}

/// The shards of thread `thread`.
pub fn shards<'p>(
    plan: &Plan,
    program: &'p Program,
    addresses: &[Vec<SocketAddr>],
    thread: u32,
    threads: u32,
) -> Vec<StreamShard<'p>> {
    let parts = parts_of(plan, thread, threads).into_iter();
    parts
        .filter_map(|(index, part)| {
            StreamShard::new(
                plan,
                index,
                &program.streams[index],
                addresses[index].clone(),
                part,
            )
        })
        .collect()
}

/// Number of shards of load streams on all threads together.
pub fn load_shards(plan: &Plan, program: &Program, threads: u32) -> usize {
    let nowhere = vec![Vec::new(); plan.streams.len()];
    (0..threads)
        .flat_map(|thread| shards(plan, program, &nowhere, thread, threads))
        .filter(|shard| shard.role == Role::Load)
        .count()
}

/// Names of streams and steps.
pub fn names(plan: &Plan, program: &Program) -> Names {
    let of_stream = |(stream, program): (&Stream, &StreamProgram)| StreamNames {
        name: stream.name.clone(),
        steps: program.steps.iter().map(|step| step.name.clone()).collect(),
        groups: program
            .groups
            .iter()
            .map(|group| group.name.clone())
            .collect(),
        checks: program
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

/// Connections that a stream uses at most on this machine.
pub fn connections_of(stream: &Stream, plan: &Plan) -> u64 {
    let users = match &stream.workload {
        Workload::Closed { users, .. } => *users,
        Workload::Open { max_in_flight, .. } => *max_in_flight,
    };
    let machine = Part::new(plan.share, 0, 1);
    let users_here = machine.count_of(u64::from(users));
    let least = match &stream.workload {
        Workload::Closed { .. } => users_here.min(1),
        Workload::Open { .. } => 1,
    };
    let pool = stream.connection.pool.unwrap_or(users).min(users);
    machine.count_of(u64::from(pool)).max(least)
}

#[cfg(test)]
mod fleets;

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(workload: serde_json::Value, streams: usize) -> Plan {
        let stream = |index: usize| {
            serde_json::json!({
                "name": format!("s{index}"), "role": "load", "timeout_ns": 1,
                "target": {"host": "h", "port": 1, "authority": "h"},
                "scenarios": [{"name": "s", "weight": 1.0, "steps": [{"name": "a", "method": "GET", "path": "/"}]}],
                "workload": workload,
            })
        };
        let streams: Vec<_> = (0..streams).map(stream).collect();
        serde_json::from_value(serde_json::json!({
            "schema_version": 1, "seed": 1, "duration_ns": 1, "threads": 4, "streams": streams,
        }))
        .unwrap()
    }

    #[test]
    fn every_user_is_on_exactly_one_thread() {
        let plan = plan(serde_json::json!({"kind": "closed", "users": 10}), 2);
        let program = Program::compile(&plan).unwrap();
        let addresses = vec![Vec::new(); 2];

        let threads = thread_count(&plan);
        let mut users: Vec<(u8, u32)> = (0..threads)
            .flat_map(|thread| shards(&plan, &program, &addresses, thread, threads))
            .flat_map(|shard| {
                shard
                    .users
                    .iter()
                    .map(|user| (shard.stream, user.number))
                    .collect::<Vec<_>>()
            })
            .collect();
        users.sort_unstable();

        let expected: Vec<(u8, u32)> = (0..2).flat_map(|s| (0..10).map(move |u| (s, u))).collect();
        assert_eq!((threads, users), (4, expected));
    }

    #[test]
    fn a_load_of_one_user_gets_one_thread() {
        let plan = plan(serde_json::json!({"kind": "closed", "users": 1}), 1);

        assert_eq!(thread_count(&plan), 1);
    }
}
