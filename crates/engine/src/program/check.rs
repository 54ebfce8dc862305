//! How an answer is judged: status, then checks, then extractions.

use memchr::memmem::Finder;

use super::json::{Expected, Path};
use super::values::{Value, Values};
use crate::error::Outcome;
use crate::http1::response::header;

/// What of an answer must be kept until it is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Only the status: head and body may be counted and thrown away.
    #[default]
    Nothing,
    /// The bytes of the head.
    Head,
    /// The bytes of head and body.
    Body,
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
    /// What was to be extracted is over its bound; the iteration ends.
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
}

#[derive(Debug, Default)]
pub(super) struct Checks {
    /// Empty: 200 to 399.
    pub expect: Vec<u16>,
    pub demands: Vec<Demand>,
    pub extracts: Vec<Extraction>,
}

#[derive(Debug)]
pub(super) enum Demand {
    Json {
        path: Path,
        text: String,
        expected: Expected,
    },
    Header {
        name: String,
        expected: Vec<u8>,
    },
    Contains(Box<Finder<'static>>),
}

#[derive(Debug)]
pub(super) struct Extraction {
    pub name: String,
    pub slot: u16,
    pub from: From,
}

#[derive(Debug)]
pub(super) enum From {
    Json { path: Path, text: String },
    Header(String),
}

impl Checks {
    pub fn need(&self) -> Need {
        let demands = self.demands.iter().map(|demand| match demand {
            Demand::Header { .. } => Need::Head,
            Demand::Json { .. } | Demand::Contains(_) => Need::Body,
        });
        let extracts = self.extracts.iter().map(|extract| match extract.from {
            From::Header(_) => Need::Head,
            From::Json { .. } => Need::Body,
        });
        demands.chain(extracts).max().unwrap_or_default()
    }

    #[inline]
    pub fn judge(&self, status: u16, head: &[u8], body: &[u8], values: &mut Values) -> Judgement {
        if !self.expects(status) {
            return Judgement::UnexpectedStatus;
        }
        if let Some(failed) = self
            .demands
            .iter()
            .position(|demand| !demand.is_met(head, body))
        {
            return Judgement::CheckFailed(failed as u16);
        }
        for (index, extraction) in self.extracts.iter().enumerate() {
            let Some(value) = extraction.from.find(head, body) else {
                return Judgement::ExtractionFailed(index as u16);
            };
            if values.set(extraction.slot, value).is_err() {
                return Judgement::ExtractedTooLong(index as u16);
            }
        }
        Judgement::Ok
    }

    #[inline]
    fn expects(&self, status: u16) -> bool {
        if self.expect.is_empty() {
            (200..400).contains(&status)
        } else {
            self.expect.contains(&status)
        }
    }

    /// Whether a step extracts anything.
    pub fn extracts(&self) -> bool {
        !self.extracts.is_empty()
    }

    pub fn explain(&self, judgement: Judgement) -> String {
        match judgement {
            Judgement::Ok => "as expected".to_owned(),
            Judgement::UnexpectedStatus if self.expect.is_empty() => {
                "expected a status from 200 to 399".to_owned()
            }
            Judgement::UnexpectedStatus => {
                let expected: Vec<String> = self.expect.iter().map(u16::to_string).collect();
                format!("expected status {}", expected.join(" or "))
            }
            Judgement::CheckFailed(index) => match &self.demands[usize::from(index)] {
                Demand::Json { text, .. } => {
                    format!("{text} in the JSON body is missing or not the value expected")
                }
                Demand::Header { name, .. } => {
                    format!("header {name} is missing or not the value expected")
                }
                Demand::Contains(_) => "the body does not contain the text expected".to_owned(),
            },
            Judgement::ExtractionFailed(index) | Judgement::ExtractedTooLong(index) => {
                let extraction = &self.extracts[usize::from(index)];
                let source = match &extraction.from {
                    From::Json { text, .. } => format!("{text} of the JSON body"),
                    From::Header(name) => format!("header {name}"),
                };
                let why = match judgement {
                    Judgement::ExtractionFailed(_) => "it is not there",
                    _ => "it is over 64 KiB, or all values together over 256 KiB",
                };
                format!("{} was not extracted from {source}: {why}", extraction.name)
            }
        }
    }
}

impl Demand {
    fn is_met(&self, head: &[u8], body: &[u8]) -> bool {
        match self {
            Demand::Json { path, expected, .. } => {
                path.find(body).is_some_and(|raw| expected.is(raw))
            }
            Demand::Header { name, expected } => {
                header(head, name.as_bytes()).is_some_and(|value| unfolded_eq(value, expected))
            }
            Demand::Contains(finder) => finder.find(body).is_some(),
        }
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
    fn find<'a>(&self, head: &'a [u8], body: &'a [u8]) -> Option<Value<'a>> {
        match self {
            From::Json { path, .. } => path.find(body).map(Value::Json),
            From::Header(name) => header(head, name.as_bytes()).map(Value::Text),
        }
    }
}
