//! From a plan to a program, every fault collected on the way.
//!
//! Here are streams and their scenarios; `request` compiles what a step sends, `segments` the templates in it, and
//! `demands` how its answer is judged.

mod demands;
mod request;
mod segments;

use std::sync::Arc;

use loadlens_base::Fault;

use super::check::Need;
use super::feeds::{FeedProgram, Feeds};
use super::flow::Flow;
use super::mix::Mix;
use super::{GroupProgram, Program, ScenarioProgram, StepProgram, StreamProgram};
use crate::arrival::replay::DueTimes;
use crate::validate;
use crate::{Cookies, Group, Plan, Role, Scenario, Stream, Workload};

/// Source of the content of a plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum World {
    /// Files and environment are read.
    Read,
    /// Only the plan itself is judged.
    Unread,
}

/// Compiles a plan, or gives all its faults.
pub(super) fn program(plan: &Plan) -> Result<Program, Vec<Fault>> {
    let mut faults = Vec::new();
    validate::structure(plan, &mut faults);
    let streams = streams(plan, World::Read, &mut faults);
    if faults.is_empty() {
        Ok(Program { streams })
    } else {
        Err(faults)
    }
}

/// The faults of templates, headers, bodies, checks and extractions, without reading files or the environment.
pub(crate) fn check(plan: &Plan, faults: &mut Vec<Fault>) {
    streams(plan, World::Unread, faults);
}

fn streams(plan: &Plan, world: World, faults: &mut Vec<Fault>) -> Vec<StreamProgram> {
    let mut feeds = Feeds::new(&plan.feeds, faults);
    let mut streams = Vec::new();
    for (index, stream) in plan.streams.iter().enumerate() {
        let at = format!("streams[{index}]");
        feeds.begin_stream(index, stream);
        let program = stream_program(stream, &at, world, &mut feeds, faults);
        let has_end =
            plan.duration_ns.is_some() || validate::ends_by_itself(stream) || feeds.end_the_load();
        if stream.role == Role::Load && !has_end {
            let what = "has no end: give the plan a duration_ns, the workload a number of requests or iterations, or a feed an end";
            faults.push(Fault::new(format!("{at}.workload"), what));
        }
        streams.push((program, feeds.end_stream()));
    }
    let tables = feeds.tables(world == World::Read, faults);
    let (mut groups, mut checks) = (0, 0);
    let with_tables = |(mut program, used): (StreamProgram, Vec<usize>)| {
        (program.first_group, program.first_check) = (groups, checks);
        groups += program.groups.len();
        checks += program.checks();
        program.feeds = used
            .into_iter()
            .map(|index| FeedProgram::new(&plan.feeds[index], &tables[index]))
            .collect();
        program
    };
    streams.into_iter().map(with_tables).collect()
}

fn stream_program(
    stream: &Stream,
    at: &str,
    world: World,
    feeds: &mut Feeds<'_>,
    faults: &mut Vec<Fault>,
) -> StreamProgram {
    let mut steps = Vec::new();
    let mut scenarios = Vec::new();
    let mut slots = 0;
    let mut flow = Flow::default();
    for (index, scenario) in stream.scenarios.iter().enumerate() {
        let place = format!("{at}.scenarios[{index}]");
        scenarios.push(ScenarioProgram {
            name: scenario.name.clone(),
            first_step: steps.len() as u16,
            steps: scenario.steps.len() as u16,
            begins: flow.append(scenario, steps.len(), &place, faults),
            feeds: Vec::new(),
        });
        let mut compiler = Compiler {
            world,
            faults,
            names: Vec::new(),
            feeds,
            at: place,
            stream,
        };
        steps.extend(compiler.steps(scenario));
        slots = slots.max(compiler.names.len() as u16);
        if let Some(last) = scenarios.last_mut() {
            last.feeds = feeds.end_scenario();
        }
    }
    let (mut tallies, mut tools) = (0, 0);
    let cookies = cookies(stream);
    for step in &mut steps {
        let step: &mut StepProgram = step;
        step.checks.number(&mut tallies, &mut tools);
        if cookies != Cookies::Off {
            step.need = step.need.max(Need::Head);
            step.request.render_always();
        }
    }
    let weights: Vec<f64> = stream
        .scenarios
        .iter()
        .map(|scenario| scenario.weight)
        .collect();
    let of_scenario = |(scenario, of): (usize, &Scenario)| {
        let named = |group: &Group| GroupProgram {
            name: group.name.clone(),
            scenario,
        };
        of.groups
            .iter()
            .filter(|group| group.is_named())
            .map(named)
            .collect::<Vec<_>>()
    };
    let scenarios_of_plan = stream.scenarios.iter().enumerate();
    StreamProgram {
        steps,
        scenarios,
        slots,
        feeds: Vec::new(),
        flow,
        groups: scenarios_of_plan.flat_map(of_scenario).collect(),
        first_group: 0,
        first_check: 0,
        cookies,
        due_times: due_times(stream, at, world, faults),
        mix: Mix::new(&weights),
    }
}

/// Cookies of an iteration are for its later requests: where there are none, nothing needs to be kept.
fn cookies(stream: &Stream) -> Cookies {
    let goes_on = |scenario: &Scenario| {
        scenario.steps.len() > 1 || scenario.groups.iter().any(|group| group.repeat > 1)
    };
    match stream.cookies {
        Cookies::Iteration if !stream.scenarios.iter().any(goes_on) => Cookies::Off,
        cookies => cookies,
    }
}

/// The due times that a stream replays.
fn due_times(
    stream: &Stream,
    at: &str,
    world: World,
    faults: &mut Vec<Fault>,
) -> Option<Arc<[u64]>> {
    let Workload::Open {
        replay: Some(replay),
        ..
    } = &stream.workload
    else {
        return None;
    };
    if world == World::Unread {
        return None;
    }
    match DueTimes::of(replay) {
        Ok(found) => Some(found.times),
        Err(whats) => {
            let place = format!("{at}.workload.replay");
            faults.extend(whats.into_iter().map(|what| Fault::new(&place, what)));
            None
        }
    }
}

/// Compiles one scenario; `names` grows with what its steps extract.
struct Compiler<'a, 'p> {
    world: World,
    faults: &'a mut Vec<Fault>,
    names: Vec<String>,
    feeds: &'a mut Feeds<'p>,
    at: String,
    stream: &'a Stream,
}

impl Compiler<'_, '_> {
    fn fault(&mut self, place: &str, what: String) {
        self.faults
            .push(Fault::new(format!("{}{place}", self.at), what));
    }

    fn steps(&mut self, scenario: &Scenario) -> Vec<StepProgram> {
        let base = std::mem::take(&mut self.at);
        let mut steps = Vec::new();
        for (index, step) in scenario.steps.iter().enumerate() {
            self.at = format!("{base}.steps[{index}]");
            let request = self.request(step);
            let checks = self.checks(step);
            self.refuse_coded_bodies(step, checks.need());
            steps.push(StepProgram {
                name: step.name.clone(),
                need: checks.need(),
                has_own_cookie: step
                    .headers
                    .iter()
                    .any(|(name, _)| name.eq_ignore_ascii_case("cookie")),
                request_is_head: step.method == "HEAD",
                think: step.think,
                request,
                checks,
            });
        }
        steps
    }

    fn environment(&mut self, at: &str, name: &str) -> Option<String> {
        if self.world == World::Unread {
            return None;
        }
        match std::env::var(name) {
            Ok(value) => Some(value),
            Err(std::env::VarError::NotPresent) => {
                self.fault(
                    at,
                    format!("environment variable {name} is not set: set it where loadlens runs"),
                );
                None
            }
            Err(std::env::VarError::NotUnicode(_)) => {
                self.fault(at, format!("environment variable {name} is not UTF-8"));
                None
            }
        }
    }
}
