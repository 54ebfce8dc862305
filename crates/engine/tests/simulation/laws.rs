//! What holds after every history, whatever happened in it.
//!
//! Counts and sums are compared with the rows, rows with the world's own books; where times are compared, the world's are exact.

use std::collections::{BTreeMap, HashMap, HashSet};

use loadlens_engine::error::Outcome;
use loadlens_engine::plan::{Profile, Stream, Workload};
use loadlens_engine::record::grid::Phase;
use loadlens_engine::record::interval::CLASSES;
use loadlens_engine::record::merge::StreamSum;
use loadlens_engine::record::rows::{
    SampleRow, AFTER_END, FIRST_ON_CONNECTION, IN_WARMUP, NO_CONNECTION,
};

use crate::history::{History, Told};
use crate::world::{Exchange, Link, Listens, World};
use crate::{LONGEST_FREEZE, MS};

/// How a request without an answer may have ended where servers are good.
const OWN_OR_BAD_LUCK: [Outcome; 6] = [
    Outcome::Timeout,
    Outcome::ConnectTimeout,
    Outcome::Limit, // a value that is no token was extracted
    Outcome::Dropped,
    Outcome::Waiting,
    Outcome::InFlight,
];

fn is_answer(row: &SampleRow) -> bool {
    row.outcome < 10
}

fn is(row: &SampleRow, outcome: Outcome) -> bool {
    row.outcome == outcome.code()
}

fn ended_at(row: &SampleRow, told: &Told) -> u64 {
    u64::try_from(row.done_ns).unwrap_or(told.end.at)
}

pub fn check(history: &History) {
    check_counts(history);
    check_sums(history);
    check_bounds(history);
    for told in &history.workers {
        check_books(told);
        check_connections(told);
        check_first_on_connection(told);
        check_turns(history, told);
        check_times(history, told);
        check_links(history, told);
    }
    check_steps(history);
    check_lag(history);
    check_parts(history);
    check_groups(history);
    check_phases(history);
    check_end(history);
    check_pool(history);
}

/// The law of counting, and the same from the rows.
fn check_counts(history: &History) {
    let collected = &history.collected;
    let mut by_outcome: BTreeMap<u8, u64> = BTreeMap::new();
    for row in history.rows() {
        *by_outcome.entry(row.outcome).or_default() += 1;
    }
    let rows_of = |outcome: Outcome| by_outcome.get(&outcome.code()).copied().unwrap_or(0);
    let sum = |of: &dyn Fn(usize) -> u64| (0..collected.steps.len()).map(of).sum::<u64>();
    let left = |of: fn(&loadlens_engine::worker::Left) -> u64| -> u64 {
        let workers = history.workers.iter();
        workers.flat_map(|told| told.end.left.iter().map(of)).sum()
    };
    let due = sum(&|step| collected.steps[step].due);
    let issued = sum(&|step| collected.steps[step].issued);
    let dropped = sum(&|step| collected.steps[step].dropped);
    let failed = sum(&|step| collected.steps[step].failed);
    let answered = sum(&|step| {
        collected.step_classes[step * CLASSES..step * CLASSES + 3]
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
    assert_eq!(collected.faults, [""; 0]);
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

/// What became due at a step are the rows of that step.
fn check_steps(history: &History) {
    let mut at = 0;
    for (number, stream) in history.plan.streams.iter().enumerate() {
        let steps = stream.scenarios.iter().map(|scenario| scenario.steps.len());
        for step in 0..steps.sum() {
            let ours = |row: &&SampleRow| {
                usize::from(row.stream) == number && usize::from(row.step) == step
            };
            let rows = history.rows().filter(ours).count() as u64;
            assert_eq!(
                history.collected.steps[at].due, rows,
                "step {step} of stream {number}"
            );
            at += 1;
        }
    }
}

/// Who has a connection of its own waits for nothing but us: the lag is from due to issue.
fn check_lag(history: &History) {
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
fn check_parts(history: &History) {
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
        let found = [&series.first_byte, &series.last_byte].map(|part| part.moments().sum as i64);
        assert_eq!(found, [to_first, to_last], "parts of stream {at}");
    }
}

/// The row of a connection's first request says so, and no other.
fn check_first_on_connection(told: &Told) {
    let mut rows: Vec<&SampleRow> = told.rows.iter().collect();
    rows.sort_by_key(|row| row.sent_ns);
    let mut seen = HashSet::new();
    for row in rows {
        let is_first = row.connection != NO_CONNECTION && seen.insert((row.stream, row.connection));
        assert_eq!(row.flags & FIRST_ON_CONNECTION != 0, is_first, "{row:?}");
    }
}

/// Users who share connections get them in the order in which their requests were due.
fn check_turns(history: &History, told: &Told) {
    let stream = &history.plan.streams[0];
    let shares = stream.connection.pool.is_some();
    if !shares || !matches!(stream.workload, Workload::Closed { pace: None, .. }) {
        return;
    }
    // Requests that become due within one turn of the loop are taken in the order in which it sees them.
    let turn = (MS + told.world.frozen_within(0, u64::MAX)) as i64;
    let mut rows: Vec<&SampleRow> = told.rows.iter().filter(|row| row.stream == 0).collect();
    rows.sort_by_key(|row| row.due_ns);
    let issue = |row: &SampleRow| {
        if row.sent_ns < 0 {
            i64::MAX
        } else {
            row.sent_ns
        }
    };
    let (mut before, mut last) = (0, (i64::MIN, None));
    for row in &rows {
        while rows[before].due_ns + turn < row.due_ns {
            last = last.max((issue(rows[before]), Some(before)));
            before += 1;
        }
        let overtaken = last.1.map(|at| rows[at]);
        assert!(issue(row) >= last.0, "{row:?} overtakes {overtaken:?}");
    }
}

/// Every run of a group begins with a request of the group's first step, and has one course.
fn check_groups(history: &History) {
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
fn check_sums(history: &History) {
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
        assert_eq!(sum(|sum| sum.in_flight_integral), in_flight);
        assert_eq!(sum(|sum| sum.ended_service), service);
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
        assert_eq!(sum(|sum| sum.bytes_in_body), bodies);
    }
    let all = || history.collected.phases.iter().flatten();
    let of_worlds =
        |of: fn(&World) -> u64| -> u64 { history.workers.iter().map(|told| of(&told.world)).sum() };
    let bytes_in: u64 = all().map(|totals| totals.sum.bytes_in_wire).sum();
    let bytes_out: u64 = all().map(|totals| totals.sum.bytes_out).sum();
    let opened: u64 = all().map(|totals| totals.sum.opened).sum();
    assert_eq!(bytes_in, of_worlds(|world| world.bytes_in), "bytes in");
    assert_eq!(bytes_out, of_worlds(|world| world.bytes_out), "bytes out");
    let in_worlds = |world: &World| world.opened.values().copied().map(u64::from).sum();
    assert_eq!(opened, of_worlds(in_worlds), "connections");
}

fn check_bounds(history: &History) {
    let plan = &history.plan;
    for told in &history.workers {
        let world = &told.world;
        let frozen = world.frozen_within(0, u64::MAX);
        if let Some(duration) = plan.duration_ns {
            let limit = plan.warmup_ns + duration + plan.drain_ns + 5 * MS + frozen;
            assert!(told.end.at <= limit, "ended at {} ms", told.end.at / MS);
        }
        if let Some(stopped) = history.stopped_at {
            // 25 ms ahead, a wait that does not know yet, and the drain.
            let worlds = history.workers.iter().map(|told| &told.world);
            let frozen: u64 = worlds.map(|world| world.frozen_within(0, u64::MAX)).sum();
            let limit = stopped + (25 + 20 + 5) * MS + plan.drain_ns + frozen;
            assert!(told.end.at <= limit, "stopped too late");
        }
        assert_eq!(world.open, 0, "connections were left open");
        assert_eq!(told.end.buffers_lost, 0, "buffers were not given back");
        let remains = &told.end.remains;
        assert_eq!((remains.lost_samples, remains.lost_connections), (0, 0));
        let most: u32 = plan.streams.iter().map(most_connections).sum();
        assert!(
            world.most_open <= most as usize,
            "{} connections at once, {most} allowed",
            world.most_open
        );
        if !history.may_spin {
            // Looks at timers and the end, and nothing else: a loop that is busy for nothing has many more.
            let turns = told.end.at / (10 * MS) + world.requests + 3 * told.rows.len() as u64;
            assert!(
                world.idle_waits <= 20 + turns,
                "{} waits for nothing, {turns} turns explained",
                world.idle_waits
            );
        }
    }
}

fn most_connections(stream: &Stream) -> u32 {
    stream.connection.pool.unwrap_or(match stream.workload {
        Workload::Closed { users, .. } => users,
        Workload::Open { max_in_flight, .. } => max_in_flight,
    })
}

/// Against the books of the servers.
fn check_books(told: &Told) {
    let world = &told.world;
    let issued = told.rows.iter().filter(|row| row.sent_ns >= 0).count() as u64;
    let answered = told.rows.iter().filter(|row| is_answer(row)).count() as u64;
    let given = world.answers + world.late_poison;
    assert!(answered <= given, "{answered} counted, {given} given");
    assert!(
        world.requests <= issued,
        "{} arrived, {issued} issued",
        world.requests
    );
    if world.nature.mischief > 0 {
        return;
    }
    let all_listen = world.listens.values().flatten();
    let refuses = all_listen.into_iter().any(|one| *one != Listens::Server);
    for row in told.rows.iter().filter(|row| !is_answer(row)) {
        let is_luck = OWN_OR_BAD_LUCK.iter().any(|luck| is(row, *luck));
        let is_refused = refuses && is(row, Outcome::Refused);
        assert!(is_luck || is_refused, "good servers, and {row:?}");
    }
    let unread = told
        .rows
        .iter()
        .filter(|row| row.sent_ns >= 0 && !is_answer(row));
    assert!(
        issued - world.requests <= unread.count() as u64,
        "requests were lost"
    );
}

/// Every connection has one row, and carried what it says.
fn check_connections(told: &Told) {
    let opened: u32 = told.world.opened.values().sum();
    assert_eq!(
        told.connections.len(),
        opened as usize,
        "a row for each connection"
    );
    let mut answered: HashMap<(u8, u32), u32> = HashMap::new();
    for row in told.rows.iter().filter(|row| is_answer(row)) {
        *answered.entry((row.stream, row.connection)).or_default() += 1;
    }
    let bytes: u64 = told.connections.iter().map(|row| row.bytes_in).sum();
    assert!(bytes <= told.world.bytes_in);
    for row in &told.connections {
        let key = (row.stream, row.connection);
        assert_eq!(row.requests, answered.remove(&key).unwrap_or(0), "{row:?}");
        assert!(row.established_ns == -1 || row.established_ns >= row.opened_ns);
        assert!((row.closed_ns == -1) == (row.closed_by == 0), "{row:?}");
        assert!(row.closed_ns == -1 || row.closed_ns >= row.opened_ns.max(row.established_ns));
    }
    assert!(
        answered.is_empty(),
        "answers without a connection: {answered:?}"
    );
}

/// Times of every row are in order and within the timeout.
fn check_times(history: &History, told: &Told) {
    for row in &told.rows {
        let (due, sent, first, done) = (row.due_ns, row.sent_ns, row.first_ns, row.done_ns);
        assert!(sent == -1 || sent >= due, "issued before it was due");
        assert!(
            first == -1 || first >= sent,
            "answered before it was issued"
        );
        assert!(
            done == -1 || done >= sent.max(first),
            "ended before it was issued"
        );
        if sent == -1 {
            continue;
        }
        // A turn of the loop may lie between the deadline and its notice, and whatever our thread did not see.
        let last = ended_at(row, told);
        let frozen = told.world.frozen_within(sent as u64, last);
        let timeout = history.plan.streams[row.stream as usize].timeout_ns;
        let most = timeout + 2 * MS + 2 * frozen;
        assert!(
            last - sent as u64 <= most,
            "in flight for {} us",
            (last - sent as u64) / 1000
        );
        let is_early = is(row, Outcome::Timeout) || is(row, Outcome::ConnectTimeout);
        assert!(
            !is_early || last - sent as u64 >= timeout,
            "timed out early: {row:?}"
        );
    }
}

/// Each connection's requests and answers, one by one, against what went over its link.
fn check_links(history: &History, told: &Told) {
    let mut rows: HashMap<(u16, u32), Vec<&SampleRow>> = HashMap::new();
    for row in told.rows.iter().filter(|row| row.sent_ns >= 0) {
        let port = history.plan.streams[row.stream as usize].target.port;
        rows.entry((port, row.connection)).or_default().push(row);
    }
    let threads = history.workers.len() as u32;
    let of_worker = history
        .workers
        .iter()
        .position(|one| std::ptr::eq(one, told));
    let of_worker = of_worker.unwrap() as u32;
    for link in told.world.links.iter().filter(|link| !link.is_poisoned) {
        let key = (link.port, of_worker + threads * link.number);
        let mut asked = rows.remove(&key).unwrap_or_default();
        asked.sort_by_key(|row| row.sent_ns);
        check_link(history, told, link, &asked);
    }
}

fn check_link(history: &History, told: &Told, link: &Link, asked: &[&SampleRow]) {
    for exchange in &link.exchanges {
        let during = |row: &&&SampleRow| {
            row.sent_ns as u64 <= exchange.asked_at && exchange.asked_at <= ended_at(row, told)
        };
        let mut of_exchange = asked.iter().filter(during);
        let row = of_exchange.next().expect("whoever asks has a row");
        assert!(of_exchange.next().is_none(), "two at once on a connection");
        check_exchange(history, told, exchange, row);
    }
    let answered = asked.iter().filter(|row| is_answer(row)).count();
    let taken = link.exchanges.iter().filter(|one| one.read_at.is_some());
    assert!(answered <= taken.count(), "an answer that nobody gave");
}

fn check_exchange(history: &History, told: &Told, exchange: &Exchange, row: &SampleRow) {
    if let Some(read_at) = exchange.read_at {
        // What was taken whole is an answer: now, and not one reading of the clock later.
        let is_judged = is_answer(row) || is(row, Outcome::Limit);
        assert!(is_judged, "{exchange:?} was given, and is {row:?}");
        assert_eq!(row.done_ns as u64, read_at, "{exchange:?} {row:?}");
    } else {
        assert!(
            !is_answer(row),
            "{exchange:?} was not given, and is {row:?}"
        );
    }
    let Some(arrived_at) = exchange.arrived_at else {
        return;
    };
    assert!(
        !is_answer(row) || row.done_ns as u64 >= arrived_at,
        "quicker than the truth"
    );
    // Our own stops are not the service's: what lay in the socket in time is in time.
    let timeout = history.plan.streams[row.stream as usize].timeout_ns;
    let is_in_time = arrived_at <= row.sent_ns as u64 + timeout;
    assert!(
        !(is(row, Outcome::Timeout) && is_in_time),
        "{exchange:?} was in time, and is {row:?}, frozen {:?}",
        told.world.frozen
    );
}

/// Answers stand in the phase in which they ended.
fn check_phases(history: &History) {
    let plan = &history.plan;
    let goes_on = |profile: &Option<Profile>| !profile.as_ref().is_some_and(Profile::ends);
    let has_all = plan.streams.iter().all(|stream| match &stream.workload {
        Workload::Closed {
            requests,
            iterations,
            profile,
            ..
        } => requests.is_none() && iterations.is_none() && goes_on(profile),
        Workload::Open {
            requests, profile, ..
        } => requests.is_none() && goes_on(profile),
    });
    let Some(duration) = plan.duration_ns else {
        return;
    };
    if !has_all || history.stopped_at.is_some() {
        return;
    }
    let mut in_warmup = 0;
    for row in history.rows().filter(|row| is_answer(row)) {
        let expected = match row.done_ns as u64 {
            at if at < plan.warmup_ns => IN_WARMUP,
            at if at >= plan.warmup_ns + duration => AFTER_END,
            _ => 0,
        };
        in_warmup += u64::from(expected == IN_WARMUP);
        assert_eq!(row.flags & (IN_WARMUP | AFTER_END), expected, "{row:?}");
    }
    let of_phase = history.collected.phases[Phase::Warmup as usize].iter();
    let counted: u64 = of_phase
        .map(|stream| stream.classes[..3].iter().sum::<u64>())
        .sum();
    assert_eq!(counted, in_warmup, "the warm-up ends where it ends");
}

/// What ended before the end of the measured part stands in it, whichever thread saw it; a load that ends by itself
/// ends with its last answer.
fn check_end(history: &History) {
    let plan = &history.plan;
    let measured = history.collected.measured_ns;
    let is_alone = history.workers.len() == 1;
    // The clocks of several workers are up to a turn apart: a stop may come to one that has lived through it already.
    if measured == 0 || (history.stopped_at.is_some() && !is_alone) {
        return;
    }
    let end = plan.warmup_ns + measured;
    for row in history.rows().filter(|row| row.done_ns >= 0) {
        let is_after = row.flags & AFTER_END != 0;
        assert_eq!(is_after, row.done_ns as u64 >= end, "end {end}: {row:?}");
    }
    let planned = plan.duration_ns.map(|duration| plan.warmup_ns + duration);
    let closed = matches!(plan.streams[0].workload, Workload::Closed { .. });
    let has_cut = |from: u64| (from..=end).any(|at| is_cut(plan.warmup_ns, at));
    if planned == Some(end) || history.stopped_at.is_some() || !closed {
        return;
    }
    let of_load = history.rows().filter(|row| row.stream == 0);
    let last = of_load.map(|row| row.done_ns as u64).max();
    // Where one thread has made a cut already, no end lies before the moment at which it did: it may have been frozen
    // over the cut itself.
    let has_cut = |last: u64| has_cut(last.saturating_sub(LONGEST_FREEZE));
    assert!(
        last == Some(end - 1) || (!is_alone && last.is_some_and(has_cut)),
        "the last answer came at {last:?}, and {end} is the end"
    );
}

/// Whether intervals are cut there, in the first minute of a phase.
fn is_cut(warmup: u64, at: u64) -> bool {
    let from = if at <= warmup { 0 } else { warmup };
    at == warmup || (at - from) % (250 * MS) == 0
}

/// Nobody waits for a connection of a pool while one is free.
fn check_pool(history: &History) {
    let plan = &history.plan;
    let stream = &plan.streams[0];
    let (
        Workload::Closed {
            users,
            requests: None,
            iterations: None,
            profile: None,
            pace: None,
            ..
        },
        Some(pool),
        [told],
        None,
    ) = (
        &stream.workload,
        stream.connection.pool,
        &history.workers[..],
        history.stopped_at,
    )
    else {
        return;
    };
    let measured_end = (plan.warmup_ns + plan.duration_ns.unwrap()) as i64;
    let end = measured_end as u64;
    if told
        .world
        .frozen_within(end.saturating_sub(2 * MS), end + MS)
        > 0
    {
        return; // who waits may not have been seen
    }
    let of_load = || told.rows.iter().filter(|row| row.stream == 0);
    let waits = |row: &SampleRow| row.sent_ns == -1 && row.due_ns < measured_end - MS as i64;
    let is_busy = |row: &&SampleRow| {
        let is_issued = row.sent_ns != -1 && row.sent_ns < measured_end;
        is_issued && (row.done_ns == -1 || row.done_ns >= measured_end)
    };
    if of_load().any(waits) {
        let busy = of_load().filter(is_busy).count();
        assert!(
            busy >= pool.min(*users) as usize,
            "{busy} of {pool} connections are busy and somebody waits"
        );
    }
}
