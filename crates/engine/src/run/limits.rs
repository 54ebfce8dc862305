//! Needs of a run, checked against this machine: descriptors, local ports, memory, cores.
//!
//! Checked before anything starts, so that a limit of our own is never taken for a fault of the service. A run that
//! cannot work is refused with both numbers; one that may not work gets a warning, which the result repeats.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use loadlens_plan::{Plan, Reuse, Stream, Workload};
use loadlens_record::interval::{IntervalSet, Shape};
use loadlens_record::recorder::SETS;
use loadlens_sys as sys;

use super::layout;
use super::machine::Machine;

/// Descriptors besides connections: poller and schedstat of each thread, files of the record, other code's files.
const SPARE_DESCRIPTORS: u64 = 32;
/// Memory besides connections: buffers, the counts of the present interval, the state of each thread.
const MEMORY_OF_A_RUN: u64 = 24 << 20;
const MEMORY_OF_A_THREAD: u64 = 4 << 20;
/// A user, its connection and its timers, and what the kernel keeps for an idle socket.
const MEMORY_OF_A_CONNECTION: u64 = 6 << 10;
/// Address space of a thread: its stack, its log buffers, an arena of the allocator.
const ADDRESSES_OF_A_THREAD: u64 = 80 << 20;
/// Time for which Linux keeps the port of a connection that we ended first.
const TIME_WAIT_S: f64 = 60.0;
/// And where it takes such ports again (`tcp_tw_reuse`).
const REUSE_AFTER_S: f64 = 1.0;
/// From this share of the local ports on a result says so.
const NEARLY: f64 = 0.7;

/// Reason why this machine cannot carry a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The resource that is too small, with both numbers.
    pub what: String,
    /// One thing to try.
    pub advice: String,
}

impl Shortage {
    fn new(what: String, advice: String) -> Shortage {
        Shortage { what, advice }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl From<io::Error> for Shortage {
    fn from(error: io::Error) -> Shortage {
        Shortage::new(error.to_string(), String::new())
    }
}

/// Seconds for which the port of a connection to a stream's target is gone after we ended it first.
pub(super) fn port_is_held_s(machine: &Machine, stream: &Stream) -> f64 {
    let is_near = is_loopback(&stream.target.host);
    if machine.reuse == 1 || (machine.reuse == 2 && is_near) {
        REUSE_AFTER_S
    } else {
        TIME_WAIT_S
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// True if all connections of a stream will be there: those of closed loops and of pools will, an open stream begins
/// only what its arrivals need.
fn is_sure(stream: &Stream) -> bool {
    matches!(stream.workload, Workload::Closed { .. }) || stream.connection.pool.is_some()
}

/// Needs of a plan.
struct Needs {
    threads: u64,
    /// Connections that will be there.
    sure: u64,
    /// Connections that may be there.
    most: u64,
    /// Bytes of address space besides connections.
    addresses: u64,
}

impl Needs {
    fn of(plan: &Plan) -> Needs {
        let connections = |streams: &mut dyn Iterator<Item = &Stream>| -> u64 {
            streams
                .map(|stream| layout::connections_of(stream, plan))
                .sum()
        };
        let threads = u64::from(layout::thread_count(plan));
        let scenarios = || plan.streams.iter().flat_map(|stream| &stream.scenarios);
        let shape = Shape {
            streams: plan.streams.len(),
            steps: scenarios().map(|scenario| scenario.steps.len()).sum(),
            groups: scenarios().map(|scenario| scenario.groups.len()).sum(),
            checks: 0, // their counts are a few bytes
        };
        let sets = SETS as u64 * IntervalSet::address_bytes(&shape);
        Needs {
            threads,
            sure: connections(&mut plan.streams.iter().filter(|stream| is_sure(stream))),
            most: connections(&mut plan.streams.iter()),
            addresses: MEMORY_OF_A_RUN + threads * (sets + ADDRESSES_OF_A_THREAD),
        }
    }

    fn descriptors_beside(&self, machine: &Machine) -> u64 {
        machine.open_files + SPARE_DESCRIPTORS + 3 * self.threads
    }

    fn memory(&self) -> u64 {
        MEMORY_OF_A_RUN + self.threads * MEMORY_OF_A_THREAD + self.sure * MEMORY_OF_A_CONNECTION
    }
}

/// Raises the limit of open files as far as needed; returns what may go wrong all the same, and the number of files that
/// are open, or why it cannot work.
pub(super) fn check(plan: &Plan) -> Result<(Vec<String>, u64), Shortage> {
    let machine = Machine::look()?;
    Ok((carry(plan, &machine)?, machine.open_files))
}

/// The same while a plan runs, and so many files were open before.
pub(super) fn check_changed(plan: &Plan, open_files: u64) -> Result<(), Shortage> {
    let machine = Machine {
        open_files,
        ..Machine::look()?
    };
    carry(plan, &machine).map(|_| ())
}

fn carry(plan: &Plan, machine: &Machine) -> Result<Vec<String>, Shortage> {
    let notes = judge(plan, machine)?;
    let needs = Needs::of(plan);
    let wanted = needs.most + needs.descriptors_beside(machine);
    let (soft, hard) = machine.files;
    if wanted > soft {
        sys::set_descriptor_limit(wanted.min(hard), hard)?;
    }
    Ok(notes)
}

fn judge(plan: &Plan, machine: &Machine) -> Result<Vec<String>, Shortage> {
    let needs = Needs::of(plan);
    check_descriptors(&needs, machine)?;
    check_ports(plan, machine)?;
    check_memory(&needs, machine)?;
    let mut notes = Vec::new();
    if needs.threads > u64::from(machine.cores) {
        notes.push(format!(
            "{} engine threads share {} of this machine's cores: they take turns, and requests leave late",
            needs.threads, machine.cores
        ));
    }
    notes.extend(ports_that_may_run_out(plan, machine));
    Ok(notes)
}

fn check_descriptors(needs: &Needs, machine: &Machine) -> Result<(), Shortage> {
    let (wanted, hard) = (
        needs.sure + needs.descriptors_beside(machine),
        machine.files.1,
    );
    if wanted <= hard {
        return Ok(());
    }
    let room = hard.saturating_sub(wanted - needs.sure);
    Err(Shortage::new(
        format!(
            "{} connections need {wanted} file descriptors, and the limit of this process is {hard} (ulimit -Hn)",
            needs.sure
        ),
        match room {
            0 => format!("a higher limit: ulimit -n {wanted}"),
            _ => format!("at most {room} connections, or a higher limit: ulimit -n {wanted}"),
        },
    ))
}

/// Connections to one address at the same time need a local port each.
fn check_ports(plan: &Plan, machine: &Machine) -> Result<(), Shortage> {
    let Some(ports) = machine.ports else {
        return Ok(());
    };
    let mut wanted: BTreeMap<(&str, u16), u64> = BTreeMap::new();
    for stream in plan.streams.iter().filter(|stream| is_sure(stream)) {
        let target = (stream.target.host.as_str(), stream.target.port);
        *wanted.entry(target).or_default() += layout::connections_of(stream, plan);
    }
    match wanted.into_iter().find(|(_, connections)| *connections > ports) {
        None => Ok(()),
        Some(((host, port), connections)) => Err(Shortage::new(
            format!(
                "{connections} connections to {host}:{port} need a local port each, and there are {ports} (net.ipv4.ip_local_port_range)"
            ),
            format!("at most {ports} connections, or sysctl net.ipv4.ip_local_port_range='1024 65535'"),
        )),
    }
}

fn check_memory(needs: &Needs, machine: &Machine) -> Result<(), Shortage> {
    let (wanted, sure) = (needs.memory(), needs.sure);
    if let Some((left, whose)) = machine.memory.filter(|(left, _)| wanted > *left) {
        return Err(Shortage::new(
            format!(
                "{sure} connections need about {} of memory, and {} are left ({whose})",
                in_words(wanted),
                in_words(left)
            ),
            "fewer connections, or more memory".to_owned(),
        ));
    }
    let addresses = needs.addresses + wanted;
    match machine.addresses.filter(|left| addresses > *left) {
        None => Ok(()),
        Some(left) => Err(Shortage::new(
            format!(
                "this load needs about {} of address space, and {} are left (ulimit -v)",
                in_words(addresses),
                in_words(left)
            ),
            "ulimit -v unlimited, or fewer threads".to_owned(),
        )),
    }
}

/// Rates of new connections that leave more ports in TIME_WAIT than there are, should the service leave the closing to us.
fn ports_that_may_run_out<'a>(
    plan: &'a Plan,
    machine: &'a Machine,
) -> impl Iterator<Item = String> + 'a {
    let lasts_s = plan
        .duration_ns
        .map_or(f64::INFINITY, |ns| (ns + plan.warmup_ns) as f64 / 1e9);
    plan.streams.iter().filter_map(move |stream| {
        let (ports, rate) = (machine.ports?, fresh_per_s(stream)?);
        let held_s = port_is_held_s(machine, stream).min(lasts_s);
        let gone = rate * held_s;
        (gone > ports as f64).then(|| {
            format!(
                "{rate:.0} new connections/s to {}:{} may take up to {gone:.0} local ports (each is held for {held_s:.0} s after we close it), and there are {ports}",
                stream.target.host, stream.target.port
            )
        })
    })
}

/// Use of local ports by a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    /// Connections that we ended, whose ports are held for a while.
    pub(super) closed_by_us: u64,
    /// Connections that were open at the end.
    pub(super) open: u64,
    pub(super) elapsed_s: f64,
}

/// Warns if the local ports for one target nearly ran out; `Ports` of the whole run.
pub(super) fn ports_nearly_gone(machine: &Machine, stream: &Stream, used: Ports) -> Option<String> {
    let ports = machine.ports?;
    let held_s = port_is_held_s(machine, stream);
    let share_held = (held_s / used.elapsed_s.max(held_s)).min(1.0);
    let gone = used.closed_by_us as f64 * share_held + used.open as f64;
    (gone > NEARLY * ports as f64).then(|| {
        format!(
            "about {gone:.0} of the {ports} local ports for {}:{} were in use, or held after we closed their connection: more new connections/s would fail here, not at the service",
            stream.target.host, stream.target.port
        )
    })
}

/// New connections a second that a stream is sure to begin.
fn fresh_per_s(stream: &Stream) -> Option<f64> {
    let per_connection = match stream.connection.reuse {
        Reuse::Keep => return None,
        Reuse::New => 1.0,
        Reuse::Requests { requests } => f64::from(requests),
    };
    match &stream.workload {
        // Of a rate that changes no part need last as long as a port is held.
        Workload::Open { rate_per_s, .. } => rate_per_s.map(|rate| rate / per_connection),
        Workload::Closed { .. } => None,
    }
}

fn in_words(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    if bytes < 10 << 30 {
        format!("{} MiB", bytes.div_ceil(MIB))
    } else {
        format!("{:.1} GiB", bytes as f64 / (MIB << 10) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOMY: Machine = Machine {
        open_files: 10,
        files: (1024, 1_048_576),
        ports: Some(28_232),
        reuse: 0,
        memory: Some((8 << 30, "MemAvailable")),
        addresses: None,
        cores: 8,
    };

    fn plan(workload: serde_json::Value, reuse: serde_json::Value) -> Plan {
        serde_json::from_value(serde_json::json!({
            "schema_version": 1, "seed": 1, "duration_ns": 30_000_000_000u64, "threads": 2,
            "streams": [{
                "name": "load", "role": "load", "timeout_ns": 1,
                "target": {"host": "192.0.2.1", "port": 80, "authority": "h"},
                "scenarios": [{"name": "s", "weight": 1.0, "steps": [{"name": "a", "method": "GET", "path": "/"}]}],
                "workload": workload,
                "connection": {"reuse": reuse},
            }],
        }))
        .unwrap()
    }

    fn closed(users: u32) -> Plan {
        plan(
            serde_json::json!({"kind": "closed", "users": users}),
            serde_json::json!({"kind": "keep"}),
        )
    }

    fn open(rate_per_s: f64) -> Plan {
        plan(
            serde_json::json!({"kind": "open", "rate_per_s": rate_per_s, "arrivals": "constant", "max_in_flight": 100, "overflow": "queue"}),
            serde_json::json!({"kind": "new"}),
        )
    }

    #[test]
    fn a_machine_with_room_has_nothing_to_say() {
        assert_eq!(judge(&closed(10_000), &ROOMY), Ok(Vec::new()));
        assert_eq!(judge(&open(500.0), &ROOMY), Ok(Vec::new())); // 500/s for 30 s are 15,000 ports
    }

    #[test]
    fn too_few_descriptors_are_refused_with_both_numbers_and_a_way_out() {
        let few = Machine {
            files: (1024, 1024),
            ..ROOMY
        };

        let refused = judge(&closed(10_000), &few).unwrap_err();

        // 10,000 and 10 open, 32 to spare, 3 for each of 2 threads
        assert!(
            refused.what.contains("10048") && refused.what.contains("1024"),
            "{refused:?}"
        );
        assert!(refused.advice.contains("ulimit -n 10048"), "{refused:?}");
        assert!(refused.advice.contains("at most 976"), "{refused:?}");
    }

    #[test]
    fn more_connections_to_one_address_than_ports_are_refused() {
        let refused = judge(&closed(28_233), &ROOMY).unwrap_err();

        assert!(
            refused.what.contains("28233") && refused.what.contains("28232"),
            "{refused:?}"
        );
        assert!(judge(&closed(28_232), &ROOMY).is_ok());
    }

    #[test]
    fn new_connections_that_may_use_up_the_ports_are_told_before() {
        let notes = judge(&open(1_000.0), &ROOMY).unwrap(); // 30 s of 1,000/s, 28,232 ports

        assert_eq!(notes.len(), 1);
        assert!(
            notes[0].contains("30000") && notes[0].contains("28232"),
            "{notes:?}"
        );
        // Where ports in TIME_WAIT are taken again after a second, 1,000 are enough.
        let reusing = Machine { reuse: 1, ..ROOMY };
        assert_eq!(judge(&open(1_000.0), &reusing), Ok(Vec::new()));
    }

    #[test]
    fn a_result_says_when_the_ports_came_near_their_end() {
        let stream = &open(1.0).streams[0];
        let used = |closed_by_us, elapsed_s| {
            let ports = Ports {
                closed_by_us,
                open: 100,
                elapsed_s,
            };
            ports_nearly_gone(&ROOMY, stream, ports)
        };

        assert_eq!(used(19_600, 30.0), None); // 19,700 of 28,232 are 69.8 %
        assert!(used(19_700, 30.0).unwrap().contains("19800 of the 28232"));
        assert_eq!(used(19_700, 120.0), None); // half of them are free again
    }

    #[test]
    fn too_little_memory_is_refused_with_both_numbers() {
        let small = Machine {
            memory: Some((64 << 20, "cgroup")),
            ..ROOMY
        };

        let refused = judge(&closed(20_000), &small).unwrap_err();

        // 24 MiB, 4 for each of 2 threads, 6 KiB for each of 20,000: 149.2 MiB
        assert!(
            refused.what.contains("150 MiB") && refused.what.contains("64 MiB are left (cgroup)"),
            "{refused:?}"
        );
        assert!(judge(&closed(5_000), &small).is_ok()); // 61.3 MiB
    }

    #[test]
    fn too_little_address_space_is_refused() {
        let narrow = Machine {
            addresses: Some(100 << 20),
            ..ROOMY
        };

        let refused = judge(&closed(1), &narrow).unwrap_err();

        assert!(
            refused.what.contains("100 MiB are left (ulimit -v)"),
            "{refused:?}"
        );
    }

    #[test]
    fn more_threads_than_cores_are_told_with_both_numbers() {
        let single = Machine { cores: 1, ..ROOMY };

        let notes = judge(&closed(1_000), &single).unwrap();

        assert!(
            notes[0].starts_with("2 engine threads share 1"),
            "{notes:?}"
        );
    }
}
