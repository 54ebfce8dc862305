//! What runs where, and whether this machine can carry it.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use crate::arrival::Part;
use crate::plan::{Plan, Role, Stream, Workload};
use crate::program::Program;
use crate::record::files::{Names, StreamNames};
use crate::transport::sys;
use crate::worker::lane::{worth, Lane};

/// Descriptors beside connections: poller and schedstat of each thread, files of the record, what others open meanwhile.
const SPARE_DESCRIPTORS: u64 = 32;

/// Engine threads for a plan: one per core it may use, never more than the load is worth.
pub fn thread_count(plan: &Plan) -> u32 {
    let cores = plan
        .cpus
        .as_ref()
        .map_or_else(sys::usable_cores, |cpus| cpus.len().max(1) as u32);
    let wanted = plan.threads.unwrap_or(cores);
    let worth_most = plan
        .streams
        .iter()
        .map(|stream| worth(stream, plan.share, wanted))
        .max();
    worth_most.unwrap_or(1)
}

/// Which part of each stream thread `thread` carries.
fn parts_of(plan: &Plan, thread: u32, threads: u32) -> Vec<(usize, Part)> {
    let mut offset = 0;
    let mut parts = Vec::new();
    for (index, stream) in plan.streams.iter().enumerate() {
        let of = worth(stream, plan.share, threads);
        // Streams of few parts begin on different threads.
        let part = (thread + threads - offset % threads) % threads;
        if part < of {
            parts.push((index, Part::new(plan.share, part, of)));
        }
        offset += of;
    }
    parts
}

/// The lanes of thread `thread`.
pub fn lanes<'p>(
    plan: &Plan,
    program: &'p Program,
    addresses: &[Vec<SocketAddr>],
    thread: u32,
    threads: u32,
) -> Vec<Lane<'p>> {
    let parts = parts_of(plan, thread, threads).into_iter();
    parts
        .filter_map(|(index, part)| {
            Lane::new(
                plan,
                index,
                &program.streams[index],
                addresses[index].clone(),
                part,
            )
        })
        .collect()
}

/// How many lanes of load streams all threads have together.
pub fn load_lanes(plan: &Plan, program: &Program, threads: u32) -> usize {
    let nowhere = vec![Vec::new(); plan.streams.len()];
    (0..threads)
        .flat_map(|thread| lanes(plan, program, &nowhere, thread, threads))
        .filter(|lane| lane.role == Role::Load)
        .count()
}

/// The addresses of each stream's target, IPv4 first; empty where the name has none.
pub fn resolve(plan: &Plan) -> Vec<Vec<SocketAddr>> {
    let of_stream = |stream: &Stream| -> Vec<SocketAddr> {
        let target = (stream.target.host.as_str(), stream.target.port);
        let mut addresses: Vec<SocketAddr> = target
            .to_socket_addrs()
            .map(Iterator::collect)
            .unwrap_or_default();
        addresses.sort_by_key(SocketAddr::is_ipv6); // stable: the resolver's order within a family
        addresses.dedup();
        addresses
    };
    plan.streams.iter().map(of_stream).collect()
}

/// Names of streams and steps.
pub fn names(plan: &Plan) -> Names {
    let of_stream = |stream: &Stream| StreamNames {
        name: stream.name.clone(),
        steps: stream
            .scenarios
            .iter()
            .flat_map(|scenario| scenario.steps.iter().map(|step| step.name.clone()))
            .collect(),
    };
    Names {
        streams: plan.streams.iter().map(of_stream).collect(),
    }
}

/// Connections that a stream uses at most on this machine.
pub fn connections_of(stream: &Stream, plan: &Plan) -> u64 {
    let users = match &stream.workload {
        Workload::Closed { users, .. } => *users,
        Workload::Open { max_in_flight, .. } => *max_in_flight,
    };
    let all = u64::from(stream.connection.pool.unwrap_or(users).min(users));
    all.div_ceil(u64::from(plan.share.of))
}

/// Raises the limit of open files as far as needed; an error that names both numbers when it is not enough.
///
/// Connections of closed streams and pools will all be there, so they must fit. An open stream opens only
/// what its arrivals need; should it need too many, requests fail as `own_descriptors`.
pub fn check_machine(plan: &Plan) -> io::Result<()> {
    let is_sure = |stream: &&Stream| {
        matches!(stream.workload, Workload::Closed { .. }) || stream.connection.pool.is_some()
    };
    let sure: u64 = plan
        .streams
        .iter()
        .filter(is_sure)
        .map(|stream| connections_of(stream, plan))
        .sum();
    let most: u64 = plan
        .streams
        .iter()
        .map(|stream| connections_of(stream, plan))
        .sum();
    let beside = sys::open_files() + SPARE_DESCRIPTORS + 3 * u64::from(thread_count(plan));
    let (soft, hard) = sys::file_limits()?;
    if sure + beside > hard {
        return Err(io::Error::other(format!(
            "{sure} connections need {} file descriptors, and the limit of this process is {hard} (ulimit -Hn)",
            sure + beside
        )));
    }
    if most + beside > soft {
        sys::set_file_limit((most + beside).min(hard), hard)?;
    }
    Ok(())
}

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
            .flat_map(|thread| lanes(&plan, &program, &addresses, thread, threads))
            .flat_map(|lane| {
                lane.users
                    .iter()
                    .map(|user| (lane.stream, user.number))
                    .collect::<Vec<_>>()
            })
            .collect();
        users.sort_unstable();

        let expected: Vec<(u8, u32)> = (0..2).flat_map(|s| (0..10).map(move |u| (s, u))).collect();
        assert_eq!((threads, users), (4, expected));
    }

    #[test]
    fn more_connections_than_descriptors_are_refused_with_both_numbers() {
        let (_, hard) = sys::file_limits().unwrap();
        let users = u32::try_from(hard + 1).unwrap_or(u32::MAX);
        let plan = plan(serde_json::json!({"kind": "closed", "users": users}), 1);

        let refused = check_machine(&plan).unwrap_err().to_string();

        assert!(
            refused.contains(&users.to_string()) && refused.contains(&hard.to_string()),
            "{refused}"
        );
    }

    #[test]
    fn a_load_of_one_user_gets_one_thread() {
        let plan = plan(serde_json::json!({"kind": "closed", "users": 1}), 1);

        assert_eq!(thread_count(&plan), 1);
    }
}
