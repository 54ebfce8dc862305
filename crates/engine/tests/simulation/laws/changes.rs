//! Due times after changes of the load, against the schedule and the users that the changes ask for.

use std::collections::BTreeSet;

use loadlens_base::Random;
use loadlens_engine::worker::{Change, Level};
use loadlens_plan::arrival::tempo::Tempo;
use loadlens_plan::arrival::{Part, Schedule};
use loadlens_plan::Workload;
use loadlens_record::rows::SampleRow;

use crate::history::History;

/// Each change holds from its moment on, to the nanosecond, on all threads together.
pub fn check_changes(history: &History) {
    // The clocks of several workers are up to a turn apart: a stop may come to one that has lived through it already.
    if history.stopped_at.is_some() && history.workers.len() > 1 {
        return;
    }
    let in_effect: Vec<Change> = history
        .changes
        .iter()
        .copied()
        .filter(|change| change.at < history.end)
        .collect();
    match &history.plan.streams[0].workload {
        Workload::Open {
            rate_per_s: Some(rate_per_s),
            arrivals,
            requests: None,
            ..
        } => {
            let seed = Random::derived(history.plan.seed, &[0, 1]).bits();
            let mut tempo = Tempo::default();
            for change in &in_effect {
                let Level::RatePerS(new) = change.new else {
                    panic!("an open load has a rate")
                };
                tempo.change(change.at, new / rate_per_s);
            }
            let schedule = Schedule::new(seed, *rate_per_s, *arrivals, &Part::whole());
            let expected: Vec<u64> = schedule
                .map(|planned| tempo.due(planned))
                .take_while(|due| *due < history.end)
                .collect();
            // The first request of an iteration is due when the iteration is; others follow answers.
            let scenarios = &history.plan.streams[0].scenarios;
            let firsts: Vec<u16> = scenarios
                .iter()
                .scan(0, |next, scenario| {
                    let first = *next;
                    *next += scenario.steps.len() as u16;
                    Some(first)
                })
                .collect();
            let mut due: Vec<u64> = of_load(history)
                .filter(|row| firsts.contains(&row.step))
                .map(|row| row.due_ns as u64)
                .collect();
            due.sort_unstable();
            let mut groups = scenarios.iter().flat_map(|scenario| &scenario.groups);
            let is_repeated = groups.any(|group| group.first == 0 && group.repeat > 1);
            if !is_repeated {
                assert_eq!(due, expected, "{in_effect:?}");
            }
        }
        Workload::Closed { .. } => check_users(history, &in_effect),
        Workload::Open { .. } => {}
    }
}

fn of_load(history: &History) -> impl Iterator<Item = &SampleRow> {
    history.rows().filter(|row| row.stream == 0)
}

/// Users who are no longer there have nothing due, and those who come are due at the moment of the change.
fn check_users(history: &History, changes: &[Change]) {
    let Workload::Closed { users, .. } = history.plan.streams[0].workload else {
        return;
    };
    // A thread without users at the start has no part of the load; `useful_threads` leaves none so.
    let mut most = users;
    let all_have_users = users as usize >= history.workers.len();
    for (number, change) in changes.iter().enumerate() {
        let Level::Users(new) = change.new else {
            panic!("a closed load has users")
        };
        let until = changes.get(number + 1).map_or(history.end, |next| next.at);
        let is_within = |row: &&SampleRow| (change.at..until).contains(&(row.due_ns as u64));
        for row in of_load(history).filter(is_within) {
            assert!(row.user < new, "{change:?}: {row:?}");
        }
        let is_due_then = |row: &&SampleRow| row.due_ns as u64 == change.at;
        let come: BTreeSet<u32> = of_load(history)
            .filter(is_due_then)
            .map(|row| row.user)
            .collect();
        let missing: Vec<u32> = (most..new).filter(|user| !come.contains(user)).collect();
        assert!(
            !all_have_users || missing.is_empty(),
            "{change:?}: {missing:?}"
        );
        most = most.max(new);
    }
}
