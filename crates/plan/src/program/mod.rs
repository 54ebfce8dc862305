//! Scenarios compiled: what each step sends, and how its answer is judged.
//!
//! Everything that can be decided once is decided in [`Program::compile`]; rendering a request appends bytes to a
//! buffer and judging an answer reads it in place.

mod check;
mod check_results;
mod compile;
pub(crate) mod digest;
mod feed;
mod feeds;
mod flow;
mod json;
mod mix;
mod naming;
mod pattern;
mod render;
mod template;
mod values;

pub use check::{Answer, Judgement, Need};
pub use check_results::{CheckFailure, CheckNote, CheckTally, Judging, CHECK_SAMPLES};
pub(crate) use compile::check;
pub use digest::sha256_hex;
pub use feed::{FeedFile, Table, Use};
pub use feeds::{FeedProgram, Records};
pub use flow::Flow;
pub use mix::Mix;
pub use render::{RenderContext, RenderFault};
pub use template::{check_template, columns_of};
pub use values::{Values, MAX_VALUE_BYTES};

use std::ops::Range;

use loadlens_base::{Fault, Random};
use loadlens_http::whole::Framing;

use crate::{Cookies, Plan, Think};

/// Source of a step's requests.
#[derive(Clone, Debug)]
pub enum Requests {
    /// From the plan.
    Planned,
    /// They are all these bytes, whatever the plan says.
    Fixed(Vec<u8>, Framing),
    /// A script makes each.
    Made,
}

/// All streams of a plan, compiled.
#[derive(Debug)]
pub struct Program {
    /// In the order of the plan.
    pub streams: Vec<StreamProgram>,
}

impl Program {
    /// Compiles a plan: reads body files and the environment. Every fault of the plan comes back at once.
    ///
    /// The value of `{{env NAME}}` never appears in a fault.
    pub fn compile(plan: &Plan) -> Result<Program, Vec<Fault>> {
        compile::program(plan)
    }

    /// Compiles a plan of which nothing is sent here: the environment is not read.
    pub fn unsent(plan: &Plan) -> Result<Program, Vec<Fault>> {
        compile::unsent(plan)
    }

    /// Compiles a plan of one step whose requests come from somewhere else than its text.
    pub fn compile_with(
        plan: &Plan,
        requests: &Requests,
        reads_answers: bool,
    ) -> Result<Program, Vec<Fault>> {
        let mut program = Program::compile(plan)?;
        for step in program
            .streams
            .iter_mut()
            .flat_map(|stream| &mut stream.steps)
        {
            if reads_answers {
                step.need = Need::Body;
            }
            match requests {
                Requests::Planned => {}
                Requests::Fixed(bytes, framing) => {
                    step.request = render::Request::Static(bytes.clone());
                    step.request_is_head = framing.is_head();
                }
                Requests::Made => step.request.render_always(),
            }
        }
        Ok(program)
    }
}

/// The scenarios of one stream.
#[derive(Debug)]
pub struct StreamProgram {
    /// The steps of all scenarios in the order of the plan; the index is the one in the record.
    pub steps: Vec<StepProgram>,
    /// In the order of the plan.
    pub scenarios: Vec<ScenarioProgram>,
    /// Slots that [`Values`] needs; 0 when nothing is extracted.
    pub slots: u16,
    /// The feeds that its templates use.
    pub feeds: Vec<FeedProgram>,
    /// Order of the requests of an iteration.
    pub flow: Flow,
    /// Lifetime of cookies; off where none could ever be sent.
    pub cookies: Cookies,
    /// The groups of its scenarios that have a name, in the order of the plan.
    pub groups: Vec<GroupProgram>,
    /// Number of steps of the streams before it.
    pub first_step: usize,
    /// Number of groups of the streams before it.
    pub first_group: usize,
    /// Number of checks of the streams before it.
    pub first_check: usize,
    /// Due times to replay; none: the stream is no replay.
    pub due_times: Option<std::sync::Arc<[u64]>>,
    mix: Mix,
}

impl StreamProgram {
    /// The scenario of the next iteration, drawn by weight.
    #[inline]
    pub fn draw_scenario(&self, random: &mut Random) -> usize {
        self.mix.draw(random)
    }

    /// Indices of its steps among those of all streams.
    pub fn all_steps(&self) -> Range<usize> {
        self.first_step..self.first_step + self.steps.len()
    }

    /// Number of checks of its steps.
    pub fn checks(&self) -> usize {
        self.steps.iter().map(|step| step.checks().len()).sum()
    }
}

/// A named part of a scenario.
#[derive(Debug)]
pub struct GroupProgram {
    /// Its name in the plan.
    pub name: String,
    /// Index of its scenario.
    pub scenario: usize,
}

/// Position of a scenario's steps.
#[derive(Debug)]
pub struct ScenarioProgram {
    /// Its name in the plan.
    pub name: String,
    /// Index of its first step in the stream.
    pub first_step: u16,
    /// Number of steps, at least 1.
    pub steps: u16,
    /// Position of its first step in the flow of the stream, where groups are repeated.
    pub begins: u16,
    /// The feeds that its templates use: indices into those of the stream.
    pub feeds: Vec<u16>,
}

/// One request and what is expected of its answer.
#[derive(Debug)]
pub struct StepProgram {
    /// Its name in the plan.
    pub name: String,
    /// Parts of the answer to keep for [`StepProgram::judge`].
    pub need: Need,
    /// True if the answer has no body because the request is HEAD.
    pub request_is_head: bool,
    /// Pause after this step.
    pub think: Think,
    /// True if the plan gives it a Cookie header: then its user's cookies are not sent.
    pub has_own_cookie: bool,
    request: render::Request,
    checks: check::Checks,
}

impl StepProgram {
    /// The request, when it is always the same.
    #[inline]
    pub fn static_bytes(&self) -> Option<&[u8]> {
        self.request.static_bytes()
    }

    /// Appends one request to `out`. On a fault nothing is appended.
    #[inline]
    pub fn render(
        &self,
        values: &Values,
        context: &mut RenderContext,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderFault> {
        self.request.render(values, context, out)
    }

    /// Judges a whole answer, counts what its checks say, and keeps what it extracts.
    #[inline]
    pub fn judge(&self, answer: &Answer, values: &mut Values, judging: &mut Judging) -> Judgement {
        self.checks.judge(answer, values, judging)
    }

    /// True if the iteration ends here, its other steps skipped: a value that this step extracts is missing.
    pub fn ends_iteration(&self, judgement: Judgement) -> bool {
        judgement.lacks_values() && self.checks.extracts()
    }

    /// Names of the tallies of its answers: its status, its checks, its extractions; empty for a step that has
    /// neither checks nor extractions nor expected statuses of its own.
    pub fn checks(&self) -> &[String] {
        &self.checks.names
    }

    /// Index of its first check tally in those of the stream.
    pub fn first_check(&self) -> usize {
        self.checks.first_tally
    }
}

/// Fault of a regular expression of which `group` is wanted; none: it is valid.
pub fn check_pattern(text: &str, group: Option<u32>) -> Option<String> {
    pattern::Pattern::new(text, group).err()
}

#[cfg(test)]
mod tests;
