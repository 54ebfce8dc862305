//! Changes of the load of a run that goes: which are possible, and how the result shows them.
//!
//! The plan with its new level must be a good plan that this machine can carry.

use loadlens_plan::{Plan, Role, Workload};
use serde_json::{json, Value};

use crate::clock::monotonic_ns;
use crate::worker::{Change, Level, AHEAD};

use super::{limits, Run};

impl Run {
    /// Changes the load of a stream; returns the change with the moment at which it takes effect, or why it cannot be.
    pub fn change(&self, stream: &str, new: Level) -> Result<Change, String> {
        let Some(started) = &self.started else {
            return Err("the load has not begun".to_owned());
        };
        let plan = &self.prepared.plan;
        if plan.share.of > 1 {
            return Err("several machines share the load".to_owned());
        }
        let is_it = |planned: &loadlens_plan::Stream| planned.name == stream;
        let index = plan
            .streams
            .iter()
            .position(|planned| is_it(planned) && planned.role == Role::Load)
            .ok_or_else(|| format!("there is no load {stream}"))?;
        started.control.change(|before| {
            let old = level_of(plan, index, before)?;
            let mut changed = plan.clone();
            for (at, planned) in changed.streams.iter_mut().enumerate() {
                let latest = before
                    .iter()
                    .rfind(|change| usize::from(change.stream) == at);
                if at == index {
                    set_level(&mut planned.workload, new)?;
                } else if let Some(latest) = latest {
                    set_level(&mut planned.workload, latest.new)?;
                }
            }
            if let Some(fault) = changed.validate().into_iter().next() {
                return Err(format!("{}: {}", fault.where_, fault.what));
            }
            limits::check_changed(&changed, self.prepared.open_files)
                .map_err(|shortage| format!("{}; {}", shortage.what, shortage.advice))?;
            let at = monotonic_ns().saturating_sub(started.t0) + AHEAD;
            if at >= started.control.end() {
                return Err("the load ends before a change could take effect".to_owned());
            }
            Ok(Change {
                at,
                stream: index as u8,
                old,
                new,
            })
        })
    }
}

/// The present level of a stream, if it has one that can be changed.
fn level_of(plan: &Plan, index: usize, before: &[Change]) -> Result<Level, String> {
    let name = &plan.streams[index].name;
    let planned = match &plan.streams[index].workload {
        Workload::Open { rate_per_s, .. } => match rate_per_s {
            Some(rate_per_s) => Level::RatePerS(*rate_per_s),
            None => return Err(format!("the rate of {name} follows a profile or a file")),
        },
        Workload::Closed {
            users,
            pace,
            profile,
            iterations,
            requests,
            ..
        } => {
            if profile.is_some() || pace.is_some() {
                return Err(format!("the users of {name} follow a profile or a pace"));
            }
            if iterations.is_some() || requests.is_some() {
                return Err(format!(
                    "the users of {name} share out a fixed number of requests"
                ));
            }
            Level::Users(*users)
        }
    };
    let latest = before
        .iter()
        .rfind(|change| usize::from(change.stream) == index);
    Ok(latest.map_or(planned, |change| change.new))
}

fn set_level(workload: &mut Workload, new: Level) -> Result<(), String> {
    match (workload, new) {
        (Workload::Open { rate_per_s, .. }, Level::RatePerS(new)) => *rate_per_s = Some(new),
        (Workload::Closed { users, .. }, Level::Users(new)) => *users = new,
        (Workload::Open { .. }, Level::Users(_)) => {
            return Err("an open load has a rate, and no number of users".to_owned())
        }
        (Workload::Closed { .. }, Level::RatePerS(_)) => {
            return Err("a closed load has users, and no rate".to_owned())
        }
    }
    Ok(())
}

/// Changes as the result has them.
pub(super) fn to_json(plan: &Plan, changes: &[Change]) -> Vec<Value> {
    let value = |level: Level| match level {
        Level::RatePerS(rate_per_s) => json!(rate_per_s),
        Level::Users(users) => json!(users),
    };
    changes
        .iter()
        .map(|change| {
            json!({
                "stream": plan.streams[usize::from(change.stream)].name,
                "what": match change.new {
                    Level::RatePerS(_) => "rate_per_s",
                    Level::Users(_) => "users",
                },
                "old": value(change.old),
                "new": value(change.new),
                "at_ns": change.at,
            })
        })
        .collect()
}
