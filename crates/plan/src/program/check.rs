//! Judgement of an answer: status, then all checks, then all extractions.

use memchr::memmem::Finder;

use loadlens_base::Outcome;
use loadlens_http::response::header;

use super::check_results::{CheckFailure, Judging, Verdict};
use super::json::{self, Expected, Path};
use super::pattern::{Pattern, Tool};
use super::values::{Value, Values};
use crate::Bounds;

/// Parts of an answer that must be kept until it is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Only the status: head and body may be counted and thrown away.
    #[default]
    Nothing,
    /// The bytes of the head.
    Head,
    /// The bytes of the head and the first of the body, to quote a failing answer: no step asks for it.
    Beginning,
    /// The bytes of head and body.
    Body,
}

/// A whole answer, as it is judged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer<'a> {
    /// Its status.
    pub status: u16,
    /// Its head; may be empty when the step needs nothing.
    pub head: &'a [u8],
    /// Its decoded body; may be empty when the step does not need it.
    pub body: &'a [u8],
    /// Length of the decoded body.
    pub body_bytes: u64,
    /// From due to the last byte.
    pub response_ns: u64,
    /// Time of the last byte.
    pub at: u64,
    /// Number of the user.
    pub user: u32,
}

/// The verdict on a whole answer. The numbers are indices into the step's `checks` and `extract`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// As expected; what was to be extracted is in the values.
    Ok,
    /// The status is not expected.
    UnexpectedStatus,
    /// This check failed, and none before it.
    CheckFailed(u16),
    /// There was nothing to extract; the iteration ends.
    ExtractionFailed(u16),
    /// A value to be extracted exceeds its bound; the iteration ends.
    ExtractedTooLong(u16),
}

impl Judgement {
    /// The outcome of the request.
    pub fn outcome(self) -> Outcome {
        match self {
            Judgement::Ok => Outcome::Ok,
            Judgement::UnexpectedStatus => Outcome::UnexpectedStatus,
            Judgement::CheckFailed(_) | Judgement::ExtractionFailed(_) => Outcome::CheckFailed,
            Judgement::ExtractedTooLong(_) => Outcome::Limit,
        }
    }

    /// True if a value that the step was to extract may be missing.
    pub(super) fn lacks_values(self) -> bool {
        !matches!(self, Judgement::Ok | Judgement::CheckFailed(_))
    }
}

#[derive(Debug, Default)]
pub(super) struct Checks {
    /// Empty: 200 to 399.
    pub expect: Vec<u16>,
    pub demands: Vec<Demand>,
    pub extracts: Vec<Extraction>,
    /// Names of the tallies: the status, the demands, the extractions; empty: only the status is judged, and nothing counted.
    pub names: Vec<String>,
    /// Index of its first tally in those of the stream.
    pub first_tally: usize,
}

#[derive(Debug)]
pub(super) enum Demand {
    Json(Path, Expected),
    Exists(Path),
    Absent(Path),
    Number(Path, Bounds),
    Count(Path, Bounds),
    Header(String, Vec<u8>),
    Contains(Box<Finder<'static>>),
    Regex(Pattern),
    Size(Bounds),
    Latency { below_ns: u64 },
}

#[derive(Debug)]
pub(super) struct Extraction {
    pub slot: u16,
    pub from: From,
}

#[derive(Debug)]
pub(super) enum From {
    Json(Path),
    Header(String),
    Regex {
        pattern: Pattern,
        header: Option<String>,
    },
}

impl Checks {
    pub fn need(&self) -> Need {
        let demands = self.demands.iter().map(|demand| match demand {
            Demand::Size(_) | Demand::Latency { .. } => Need::Nothing,
            Demand::Header(..) => Need::Head,
            _ => Need::Body,
        });
        let extracts = self.extracts.iter().map(|extract| match &extract.from {
            From::Header(_)
            | From::Regex {
                header: Some(_), ..
            } => Need::Head,
            From::Json(_) | From::Regex { header: None, .. } => Need::Body,
        });
        demands.chain(extracts).max().unwrap_or_default()
    }

    /// All patterns, in the order of their tools.
    pub fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        let of_demands = self.demands.iter().filter_map(|demand| match demand {
            Demand::Regex(pattern) => Some(pattern),
            _ => None,
        });
        let of_extracts = self
            .extracts
            .iter()
            .filter_map(|extract| match &extract.from {
                From::Regex { pattern, .. } => Some(pattern),
                _ => None,
            });
        of_demands.chain(of_extracts)
    }

    /// Gives tallies and tools their numbers in the stream.
    pub fn number(&mut self, next_tally: &mut usize, next_tool: &mut usize) {
        self.first_tally = *next_tally;
        *next_tally += self.names.len();
        let of_demands = self.demands.iter_mut().filter_map(|demand| match demand {
            Demand::Regex(pattern) => Some(pattern),
            _ => None,
        });
        let of_extracts = self.extracts.iter_mut();
        let of_extracts = of_extracts.filter_map(|extract| match &mut extract.from {
            From::Regex { pattern, .. } => Some(pattern),
            _ => None,
        });
        for pattern in of_demands.chain(of_extracts) {
            pattern.tool = *next_tool;
            *next_tool += 1;
        }
    }

    #[inline]
    pub fn judge(&self, answer: &Answer, values: &mut Values, judging: &mut Judging) -> Judgement {
        let is_expected = self.expects(answer.status);
        if !self.names.is_empty() {
            return self.judge_all(answer, is_expected, values, judging);
        }
        if is_expected {
            Judgement::Ok
        } else {
            Judgement::UnexpectedStatus
        }
    }

    fn judge_all(
        &self,
        answer: &Answer,
        is_expected: bool,
        values: &mut Values,
        judging: &mut Judging,
    ) -> Judgement {
        judging.verdicts.clear();
        let judgement = if is_expected {
            judging.verdicts.push(Verdict::Passed);
            let failed = self.judge_demands(answer, judging);
            let lacking = match self.extract(answer, values, judging) {
                Ok(lacking) => lacking,
                Err(too_long) => return Judgement::ExtractedTooLong(too_long), // not counted as an answer
            };
            let failed = failed.map(Judgement::CheckFailed);
            let lacking = lacking.map(Judgement::ExtractionFailed);
            lacking.or(failed).unwrap_or(Judgement::Ok)
        } else {
            let verdicts = &mut judging.verdicts;
            verdicts.push(Verdict::Failed(CheckFailure::Status(answer.status)));
            verdicts.resize(self.names.len(), Verdict::NotJudged);
            Judgement::UnexpectedStatus
        };
        judging.count(self.first_tally, answer.at, answer.user);
        judgement
    }

    /// Judges every demand; gives the first that makes the answer a bad one.
    fn judge_demands(&self, answer: &Answer, judging: &mut Judging) -> Option<u16> {
        let mut first = None;
        for (index, demand) in self.demands.iter().enumerate() {
            let missed = demand.failure(answer, &mut judging.tools);
            judging
                .verdicts
                .push(missed.map_or(Verdict::Passed, Verdict::Failed));
            // An answer that is late and right counts as a success: without it no success would ever be slow.
            let is_bad = missed.is_some() && !matches!(demand, Demand::Latency { .. });
            if is_bad && first.is_none() {
                first = Some(index as u16);
            }
        }
        first
    }

    /// Extracts everything; gives the first that is not there, or as a fault one that is too long.
    fn extract(
        &self,
        answer: &Answer,
        values: &mut Values,
        judging: &mut Judging,
    ) -> Result<Option<u16>, u16> {
        let mut first = None;
        for (index, extraction) in self.extracts.iter().enumerate() {
            let value = extraction.from.find(answer, &mut judging.tools);
            judging.verdicts.push(match value {
                Some(_) => Verdict::Passed,
                None => Verdict::Failed(CheckFailure::Missing),
            });
            match value {
                Some(value) => values
                    .set(extraction.slot, value)
                    .map_err(|_| index as u16)?,
                None => first = first.or(Some(index as u16)),
            }
        }
        Ok(first)
    }

    #[inline]
    fn expects(&self, status: u16) -> bool {
        if self.expect.is_empty() {
            (200..400).contains(&status)
        } else {
            self.expect.contains(&status)
        }
    }

    /// True if a step extracts anything.
    pub fn extracts(&self) -> bool {
        !self.extracts.is_empty()
    }
}

impl Demand {
    /// The way the answer fails this check; none: it passes.
    fn failure(&self, answer: &Answer, tools: &mut [Tool]) -> Option<CheckFailure> {
        let body = answer.body;
        match self {
            Demand::Json(path, expected) => match path.find(body) {
                Some(raw) if expected.is(raw) => None,
                found => Some(other_than_wanted(found)),
            },
            Demand::Exists(path) => path.find(body).is_none().then_some(CheckFailure::Missing),
            Demand::Absent(path) => match path.find(body) {
                Some(_) => Some(CheckFailure::Present),
                None => (!json::is_document(body)).then_some(CheckFailure::NotJson),
            },
            Demand::Number(path, bounds) => match path.find(body) {
                Some(raw) if json::number(raw).is_some_and(|number| bounds.hold(number)) => None,
                found => Some(other_than_wanted(found)),
            },
            Demand::Count(path, bounds) => match path.count(body) {
                Some(count) if bounds.hold(count as f64) => None,
                Some(count) => Some(CheckFailure::Amount(count)),
                None => Some(other_than_wanted(path.find(body))),
            },
            Demand::Header(name, expected) => match header(answer.head, name.as_bytes()) {
                Some(value) if unfolded_eq(value, expected) => None,
                found => Some(other_than_wanted(found)),
            },
            Demand::Contains(finder) => {
                finder.find(body).is_none().then_some(CheckFailure::Missing)
            }
            Demand::Regex(pattern) => {
                (!pattern.is_in(body, tools)).then_some(CheckFailure::Missing)
            }
            Demand::Size(bounds) => (!bounds.hold(answer.body_bytes as f64))
                .then_some(CheckFailure::Amount(answer.body_bytes)),
            Demand::Latency { below_ns } => {
                (answer.response_ns >= *below_ns).then_some(CheckFailure::Time(answer.response_ns))
            }
        }
    }
}

fn other_than_wanted(found: Option<&[u8]>) -> CheckFailure {
    found.map_or(CheckFailure::Missing, |_| CheckFailure::Different)
}

impl Bounds {
    fn hold(&self, number: f64) -> bool {
        self.equals.is_none_or(|equals| number == equals)
            && self.above.is_none_or(|above| number > above)
            && self.below.is_none_or(|below| number < below)
    }
}

/// Compares a header value that may be folded: a fold counts as one space (RFC 9112 5.2).
fn unfolded_eq(value: &[u8], expected: &[u8]) -> bool {
    if memchr::memchr(b'\n', value).is_none() {
        return value == expected;
    }
    unfolded(value) == expected
}

fn unfolded(value: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = value
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .collect();
    lines.join(&b' ')
}

impl From {
    fn find<'a>(&self, answer: &Answer<'a>, tools: &mut [Tool]) -> Option<Value<'a>> {
        match self {
            From::Json(path) => path.find(answer.body).map(Value::Json),
            From::Header(name) => header(answer.head, name.as_bytes()).map(Value::Text),
            From::Regex {
                pattern,
                header: of_head,
            } => {
                let text = match of_head {
                    Some(name) => header(answer.head, name.as_bytes())?,
                    None => answer.body,
                };
                pattern.find(text, tools).map(Value::Text)
            }
        }
    }
}
