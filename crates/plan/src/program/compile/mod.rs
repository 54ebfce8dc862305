//! From a plan to a program, every fault collected on the way.
//!
//! Here are streams and their scenarios; `request` compiles what a step sends, `segments` the templates in it, and
//! `demands` how its answer is judged.

mod demands;
mod request;
mod segments;

use std::env::VarError;
use std::sync::Arc;

use loadlens_base::{split_mix, Fault, Faults};

use super::check::Need;
use super::feeds::{FeedProgram, Feeds};
use super::flow::Flow;
use super::mix::Mix;
use super::{GroupProgram, Program, ScenarioProgram, StepProgram, StreamProgram};
use crate::arrival::replay::DueTimes;
use crate::validate;
use crate::{Cookies, Plan, Role, Scenario, Stream, Workload};

/// Source of the content of a plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum World {
    /// Files and environment are read.
    Read,
    /// Files are read; values of the environment are left out, as nothing is sent.
    Files,
    /// Only the plan itself is judged.
    Unread,
}

/// Compiles a plan, or gives all its faults.
pub(super) fn program(plan: &Plan) -> Result<Program, Vec<Fault>> {
    compile(plan, World::Read)
}

/// The same without values of the environment: to name and judge what others sent.
pub(super) fn unsent(plan: &Plan) -> Result<Program, Vec<Fault>> {
    compile(plan, World::Files)
}

fn compile(plan: &Plan, world: World) -> Result<Program, Vec<Fault>> {
    let mut faults = Vec::new();
    validate::structure(plan, &mut faults);
    let streams = streams(plan, world, &mut faults);
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
        let trace_key = split_mix(split_mix(plan.seed) ^ index as u64);
        let program = stream_program((stream, trace_key), &at, world, &mut feeds, faults);
        let has_end =
            plan.duration_ns.is_some() || validate::ends_by_itself(stream) || feeds.end_the_load();
        if stream.role == Role::Load && !has_end {
            let what = "has no end: give the plan a duration_ns, the workload a number of requests or iterations, or a feed an end";
            faults.push(Fault::new(format!("{at}.workload"), what));
        }
        streams.push((program, feeds.end_stream()));
    }
    let tables = feeds.tables(world != World::Unread, faults);
    let (mut steps, mut groups, mut checks) = (0, 0, 0);
    let with_tables = |(mut program, used): (StreamProgram, Vec<usize>)| {
        (program.first_step, program.first_group, program.first_check) = (steps, groups, checks);
        steps += program.steps.len();
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
    (stream, trace_key): (&Stream, u64),
    at: &str,
    world: World,
    feeds: &mut Feeds<'_>,
    faults: &mut Vec<Fault>,
) -> StreamProgram {
    let mut steps = Vec::new();
    let (mut scenarios, mut groups) = (Vec::new(), Vec::new());
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
        let named = scenario.groups.iter().filter(|group| group.is_named());
        groups.extend(named.map(|group| GroupProgram {
            name: group.name.clone(),
            scenario: index,
        }));
        let mut compiler = Compiler {
            world,
            faults,
            names: Vec::new(),
            feeds,
            at: place,
            stream,
            trace_key,
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
    let weights = stream.scenarios.iter().map(|scenario| scenario.weight);
    let weights: Vec<f64> = weights.collect();
    StreamProgram {
        steps,
        scenarios,
        slots,
        feeds: Vec::new(),
        flow,
        groups,
        first_step: 0,
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
    trace_key: u64,
}

impl Compiler<'_, '_> {
    fn fault(&mut self, place: &str, what: impl std::fmt::Display) {
        Faults::new(self.faults, format!("{}{place}", self.at)).add("", what);
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
                has_own_cookie: request::has_header(step, "cookie"),
                request_is_head: step.method == "HEAD",
                think: step.think,
                request,
                checks,
            });
        }
        steps
    }

    fn environment(&mut self, at: &str, name: &str) -> Option<String> {
        if self.world != World::Read {
            return None;
        }
        let what = match std::env::var(name) {
            Ok(value) => return Some(value),
            Err(VarError::NotPresent) => "is not set: set it where loadlens runs",
            Err(VarError::NotUnicode(_)) => "is not UTF-8",
        };
        self.fault(at, format_args!("environment variable {name} {what}"));
        None
    }
}
