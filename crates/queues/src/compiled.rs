//! A model with names turned into numbers, so that the loop looks nothing up.

use crate::law::Law;
use crate::model::{self, Model, Step, Stream};

/// A station of a route: one, or the one of the request's member of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub base: u32,
    pub group: Option<u8>,
}

/// One part of a request's way.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Choose(u8),
    Acquire(At),
    Release(At),
    Serve(At, Law),
    Delay(Law),
}

/// One request of an iteration.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub class: u32,
    pub think: Law,
}

/// One scenario that an iteration may draw.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// Weights up to and with this one, as a share of all.
    pub until: f64,
    pub steps: Vec<Visit>,
}

/// Routes and scenarios by number.
pub(crate) struct Compiled {
    pub routes: Vec<Vec<Op>>,
    pub scenarios: Vec<Vec<Scenario>>,
    /// First place of each station; one more at the end.
    pub bases: Vec<u32>,
}

impl Compiled {
    /// Compiles a model without faults.
    pub fn of(model: &Model) -> Self {
        let mut bases = vec![0];
        let mut places = Vec::new();
        for station in &model.stations {
            let group = station.each.as_deref().and_then(|name| model.group(name));
            let base = bases[bases.len() - 1];
            places.push(At {
                base,
                group: group.map(|g| g as u8),
            });
            bases.push(base + group.map_or(1, |g| model.groups[g].size));
        }
        let at = |name: &str| {
            let place = model.stations.iter().position(|s| s.name == name);
            places[place.expect("a model without faults")]
        };
        let op = |step: &Step| match step {
            Step::Choose { group } => {
                Op::Choose(model.group(group).expect("a model without faults") as u8)
            }
            Step::Acquire { station } => Op::Acquire(at(station)),
            Step::Release { station } => Op::Release(at(station)),
            Step::Serve { station, work } => Op::Serve(at(station), work.clone()),
            Step::Delay { time } => Op::Delay(time.clone()),
        };
        Compiled {
            routes: model
                .classes
                .iter()
                .map(|c| c.route.iter().map(op).collect())
                .collect(),
            scenarios: model
                .streams
                .iter()
                .map(|stream| scenarios(stream, model))
                .collect(),
            bases,
        }
    }
}

/// The scenarios of a stream, with classes by number.
fn scenarios(stream: &Stream, model: &Model) -> Vec<Scenario> {
    let visit = |visit: &model::Visit| {
        let class = model.classes.iter().position(|c| c.name == visit.class);
        Visit {
            class: class.expect("a model without faults") as u32,
            think: visit.think.clone(),
        }
    };
    let whole: f64 = stream.scenarios.iter().map(|s| s.weight).sum();
    let mut until = 0.0;
    let scenario = |scenario: &model::Scenario| {
        until += scenario.weight / whole;
        Scenario {
            until,
            steps: scenario.steps.iter().map(visit).collect(),
        }
    };
    stream.scenarios.iter().map(scenario).collect()
}
