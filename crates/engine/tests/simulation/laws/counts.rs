//! Counts and sums of what was collected, against the rows.

use std::collections::{BTreeMap, HashMap, HashSet};

use loadlens_base::Outcome;
use loadlens_plan::Workload;
use loadlens_record::interval::CLASSES;
use loadlens_record::merge::StreamSum;
use loadlens_record::rows::{SampleRow, AFTER_END, IN_WARMUP};

use crate::history::History;
use crate::world::World;

use super::{ended_at, is, is_answer};

/// The law of counting, and the same from the rows.
pub fn check_counts(history: &History) {
    let collected = &history.collected;
    let mut by_outcome: BTreeMap<u8, u64> = BTreeMap::new();
    for row in history.rows() {
        *by_outcome.entry(row.outcome).or_default() += 1;
    }
    let rows_of = |outcome: Outcome| by_outcome.get(&outcome.code()).copied().unwrap_or(0);
    let sum = |of: &dyn Fn(usize) -> u64| (0..collected.books.steps.len()).map(of).sum::<u64>();
    let left = |of: fn(&loadlens_engine::worker::Unfinished) -> u64| -> u64 {
        let workers = history.workers.iter();
        workers
            .flat_map(|told| told.end.unfinished.iter().map(of))
            .sum()
    };
    let due = sum(&|step| collected.books.steps[step].due);
    let issued = sum(&|step| collected.books.steps[step].issued);
    let dropped = sum(&|step| collected.books.steps[step].dropped);
    let failed = sum(&|step| collected.books.steps[step].failed);
    let answered = sum(&|step| {
        collected.books.step_classes[step * CLASSES..step * CLASSES + 3]
            .iter()
            .sum()
    });
    let (waiting, in_flight) = (left(|left| left.waiting), left(|left| left.in_flight));

    assert_eq!(due, issued + dropped + waiting, "due");
    assert_eq!(issued, answered + failed + in_flight, "issued");
    let rows = history.rows().count() as u64;
    assert_eq!(rows, due, "every due request has one row");
    assert_eq!(rows_of(Outcome::Dropped), dropped);
    assert_eq!(rows_of(Outcome::Waiting), waiting);
    assert_eq!(rows_of(Outcome::InFlight), in_flight);
    let answers = history.rows().filter(|row| is_answer(row)).count() as u64;
    assert_eq!(answers, answered);
    let numbers: HashSet<(u8, u64)> = history.rows().map(|row| (row.stream, row.seq)).collect();
    assert_eq!(numbers.len() as u64, rows, "numbers of requests are unique");
    assert_eq!(collected.lost_values, 0);
    check_quotas(history);
}

/// Never more than the plan asks for.
fn check_quotas(history: &History) {
    for (at, stream) in history.plan.streams.iter().enumerate() {
        let rows = || history.rows().filter(|row| row.stream == at as u8);
        let (Workload::Closed { requests, .. } | Workload::Open { requests, .. }) = stream.workload;
        let due = rows().count() as u64;
        assert!(
            requests.is_none_or(|all| due <= all),
            "{due} of {requests:?}"
        );
        let Workload::Closed {
            users, iterations, ..
        } = stream.workload
        else {
            continue;
        };
        let users = if at == 0 {
            history.most_users(users)
        } else {
            users
        };
        assert!(rows().all(|row| row.user < users));
        let Some(iterations) = iterations else {
            continue;
        };
        let mut firsts: HashMap<u32, u64> = HashMap::new();
        for row in rows().filter(|row| row.step == 0) {
            *firsts.entry(row.user).or_default() += 1;
        }
        assert!(
            firsts.values().all(|count| *count <= iterations),
            "{firsts:?}"
        );
    }
}

/// Checks that the requests due at a step are the rows of that step.
pub fn check_steps(history: &History) {
    let mut at = 0;
    for (number, stream) in history.plan.streams.iter().enumerate() {
        let steps = stream.scenarios.iter().map(|scenario| scenario.steps.len());
        for step in 0..steps.sum() {
            let ours = |row: &&SampleRow| {
                usize::from(row.stream) == number && usize::from(row.step) == step
            };
            let rows = history.rows().filter(ours).count() as u64;
            assert_eq!(
                history.collected.books.steps[at].due, rows,
                "step {step} of stream {number}"
            );
            at += 1;
        }
    }
}

/// Checks that a user with its own connection waits only for the generator: the lag is from due to issue.
pub fn check_lag(history: &History) {
    for (at, stream) in history.plan.streams.iter().enumerate() {
        let waits_for_us = stream.connection.pool.is_none()
            && matches!(stream.workload, Workload::Closed { pace: None, .. });
        if !waits_for_us {
            continue;
        }
        let rows = history.rows().filter(|row| usize::from(row.stream) == at);
        let issued = rows.filter(|row| row.sent_ns >= 0);
        let expected: u64 = issued.map(|row| (row.sent_ns - row.due_ns) as u64).sum();
        let of_phases = history
            .collected
            .phases
            .iter()
            .filter_map(|phase| phase.get(at));
        let lag: u64 = of_phases.map(|totals| totals.sum.lag.moments.sum).sum();
        assert_eq!(lag, expected, "lag of stream {at}");
    }
}

/// The parts of good answers' times: to the first byte from when the request could leave, and from there to the last.
pub fn check_parts(history: &History) {
    // Where a load ends by itself, one of several threads may have counted beyond the end that another one has set.
    if history.workers.len() > 1 {
        return;
    }
    let mut stood: HashMap<(u8, u32), i64> = HashMap::new();
    for row in history.workers.iter().flat_map(|told| &told.connections) {
        stood.insert((row.stream, row.connection), row.established_ns);
    }
    for (at, series) in history.collected.streams.iter().enumerate() {
        let ours = |row: &&SampleRow| {
            let is_measured = row.flags & (IN_WARMUP | AFTER_END) == 0;
            usize::from(row.stream) == at && is_measured && is(row, Outcome::Ok)
        };
        let (mut to_first, mut to_last) = (0, 0);
        for row in history.rows().filter(ours) {
            let asked = row.sent_ns.max(stood[&(row.stream, row.connection)]);
            to_first += row.first_ns - asked;
            to_last += row.done_ns - row.first_ns;
        }
        let sums = [&series.whole.first_byte, &series.whole.last_byte]
            .map(|part| part.moments().sum as i64);
        assert_eq!(sums, [to_first, to_last], "parts of stream {at}");
    }
}

/// Every run of a group begins with a request of the group's first step, and has one course.
pub fn check_groups(history: &History) {
    let scenarios = || {
        history
            .plan
            .streams
            .iter()
            .flat_map(|stream| &stream.scenarios)
    };
    let groups: Vec<_> = scenarios().flat_map(|scenario| &scenario.groups).collect();
    assert_eq!(history.collected.groups.len(), groups.len());
    for (group, tally) in groups.iter().zip(&history.collected.groups) {
        let ended = tally.completed + tally.failed + tally.unfinished;
        assert_eq!(tally.due, ended, "{group:?} {tally:?}");
        // All groups that are drawn are those of the load.
        let begins = |row: &&SampleRow| row.stream == 0 && row.step == group.first;
        let due = history
            .rows()
            .filter(begins)
            .filter(|row| !is(row, Outcome::Dropped));
        assert_eq!(tally.due, due.count() as u64, "{group:?} {tally:?}");
    }
}

/// Sums of what flows, against the rows.
pub fn check_sums(history: &History) {
    for at in 0..history.plan.streams.len() {
        let of_phases = history.collected.phases.iter();
        let sums: Vec<&StreamSum> = of_phases
            .filter_map(|phase| phase.get(at))
            .map(|totals| &totals.sum)
            .collect();
        let sum = |of: fn(&StreamSum) -> u64| sums.iter().map(|sum| of(sum)).sum::<u64>();
        let rows = || {
            let workers = history.workers.iter();
            workers.flat_map(move |told| {
                let ours = told.rows.iter().filter(move |row| row.stream == at as u8);
                ours.map(move |row| (row, told))
            })
        };
        let in_flight: u64 = rows()
            .filter(|(row, _)| row.sent_ns >= 0)
            .map(|(row, told)| ended_at(row, told) - row.sent_ns as u64)
            .sum();
        let service: u64 = rows()
            .filter(|(row, _)| row.sent_ns >= 0 && row.done_ns >= 0)
            .map(|(row, _)| (row.done_ns - row.sent_ns) as u64)
            .sum();
        assert_eq!(sum(|sum| sum.flows.in_flight_integral), in_flight);
        assert_eq!(sum(|sum| sum.flows.ended_service), service);
        let statuses: u64 = rows()
            .filter(|(row, _)| is_answer(row))
            .map(|(row, _)| u64::from(row.status))
            .sum();
        let counted = sums.iter().flat_map(|sum| sum.status.iter().enumerate());
        let counted: u64 = counted.map(|(status, count)| status as u64 * count).sum();
        assert_eq!(counted, statuses);
        let bodies: u64 = rows()
            .filter(|(row, _)| row.done_ns >= 0)
            .map(|(row, _)| u64::from(row.body_bytes))
            .sum();
        assert_eq!(sum(|sum| sum.flows.bytes_in_body), bodies);
    }
    let all = || history.collected.phases.iter().flatten();
    let of_worlds =
        |of: fn(&World) -> u64| -> u64 { history.workers.iter().map(|told| of(&told.world)).sum() };
    let bytes_in: u64 = all().map(|totals| totals.sum.flows.bytes_in_wire).sum();
    let bytes_out: u64 = all().map(|totals| totals.sum.flows.bytes_out).sum();
    let opened: u64 = all().map(|totals| totals.sum.flows.opened).sum();
    assert_eq!(bytes_in, of_worlds(|world| world.bytes_in), "bytes in");
    assert_eq!(bytes_out, of_worlds(|world| world.bytes_out), "bytes out");
    let in_worlds = |world: &World| world.opened.values().copied().map(u64::from).sum();
    assert_eq!(opened, of_worlds(in_worlds), "connections");
}
