//! Laws that hold after every history, whatever happened in it.
//!
//! Counts and sums are compared with the rows (`counts`), rows with the world's own books (`books`), due times with the changes of the load (`changes`); where times are
//! compared, the world's are exact. Here is what a run promises: its bounds, its phases, its end, and turns of users who
//! share connections.

mod books;
mod changes;
mod counts;

use loadlens_base::Outcome;
use loadlens_plan::{Profile, Stream, Workload};
use loadlens_record::grid::Phase;
use loadlens_record::rows::{SampleRow, AFTER_END, IN_WARMUP};

use crate::history::{History, Told};
use crate::{LONGEST_FREEZE, MS};

use books::{check_books, check_connections, check_first_on_connection, check_links, check_times};
use changes::check_changes;
use counts::{check_counts, check_groups, check_lag, check_parts, check_steps, check_sums};

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
    check_changes(history);
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
        let leftover = &told.end.leftover;
        assert_eq!((leftover.lost_samples, leftover.lost_connections), (0, 0));
        let more = match plan.streams[0].workload {
            Workload::Closed { users, .. } if plan.streams[0].connection.pool.is_none() => {
                history.most_users(users) - users
            }
            _ => 0,
        };
        let most = plan.streams.iter().map(most_connections).sum::<u32>() + more;
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

/// Checks that the measured part holds all that ended before its end, on any thread; a load that ends by itself
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
    // over the cut itself. Nor does one lie before what a thread without load has counted, which is a turn ahead at
    // most, and as long as it was frozen.
    let has_cut = |last: u64| has_cut(last.saturating_sub(LONGEST_FREEZE));
    let is_ahead = |last: u64| {
        let worlds = history.workers.iter().map(|told| &told.world);
        end <= last
            + MS
            + worlds
                .map(|world| world.frozen_within(last, end))
                .max()
                .unwrap_or(0)
    };
    assert!(
        last == Some(end - 1)
            || (!is_alone && last.is_some_and(|last| has_cut(last) || is_ahead(last))),
        "the last answer came at {last:?}, and {end} is the end"
    );
}

/// True if intervals are cut there, in the first minute of a phase.
fn is_cut(warmup: u64, at: u64) -> bool {
    let from = if at <= warmup { 0 } else { warmup };
    at == warmup || (at - from) % (250 * MS) == 0
}

/// Checks that no request waits for a connection of a pool while one is free.
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
    let users = history.changes.last().map_or(*users, |_| 1);
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
            busy >= pool.min(users) as usize,
            "{busy} of {pool} connections are busy while a user waits"
        );
    }
}
