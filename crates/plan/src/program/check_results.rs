//! Count of passes and failures of each check of a stream on one thread, with their times.

use loadlens_base::units::seconds;
use serde::{Deserialize, Serialize};

use super::pattern::Tool;
use super::StreamProgram;

/// Samples of the failures of each check that are kept.
pub const CHECK_SAMPLES: usize = 20;

/// Verdict of one check on one answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    Passed,
    /// The answer is not the one that the check is about: its status is not expected.
    NotJudged,
    Failed(CheckFailure),
}

/// The way an answer failed a check. Never holds head or body bytes of the answer: they may be secret.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub enum CheckFailure {
    /// This status is not expected.
    Status(u16),
    /// A required part is missing.
    Missing,
    /// Something is there that must not be.
    Present,
    /// Another value is there.
    Different,
    /// The body is no JSON.
    NotJson,
    /// Number of elements, members or bytes.
    Amount(u64),
    /// Nanoseconds that it took.
    Time(u64),
}

impl CheckFailure {
    /// In words, for a sample.
    pub fn what(self) -> String {
        match self {
            CheckFailure::Status(status) => format!("status {status}"),
            CheckFailure::Missing => "not there".to_owned(),
            CheckFailure::Present => "it is there".to_owned(),
            CheckFailure::Different => "another value".to_owned(),
            CheckFailure::NotJson => "the body is not JSON".to_owned(),
            CheckFailure::Amount(amount) => format!("{amount}"),
            CheckFailure::Time(ns) => format!("{:.6} s", seconds(ns)),
        }
    }
}

/// One failure of a check.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct CheckNote {
    /// Time at which the answer was complete.
    pub at: u64,
    /// Number of the user.
    pub user: u32,
    /// Cause of the failure.
    pub failure: CheckFailure,
}

/// Verdicts of one check on all answers.
///
/// The law: passed + failed + not judged are the whole answers of the step.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CheckTally {
    /// Answers that passed.
    pub passed: u64,
    /// Answers that failed.
    pub failed: u64,
    /// Answers whose status was not expected, so that the check is not about them.
    pub not_judged: u64,
    /// Time of the first failure; `u64::MAX`: none failed.
    pub first: u64,
    /// Time of the last failure.
    pub last: u64,
    /// The first few failures.
    pub samples: Vec<CheckNote>,
}

impl Default for CheckTally {
    fn default() -> Self {
        CheckTally {
            passed: 0,
            failed: 0,
            not_judged: 0,
            first: u64::MAX,
            last: 0,
            samples: Vec::new(),
        }
    }
}

impl CheckTally {
    #[inline]
    fn add(&mut self, verdict: Verdict, at: u64, user: u32) {
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::NotJudged => self.not_judged += 1,
            Verdict::Failed(failure) => {
                self.failed += 1;
                self.first = self.first.min(at);
                self.last = self.last.max(at);
                if self.samples.len() < CHECK_SAMPLES {
                    self.samples.push(CheckNote { at, user, failure });
                }
            }
        }
    }

    /// Adds what another thread counted; the earliest samples stay.
    pub fn merge(&mut self, other: &CheckTally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.not_judged += other.not_judged;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.samples.extend_from_slice(&other.samples);
        self.samples.sort_by_key(|note| note.at);
        self.samples.truncate(CHECK_SAMPLES);
    }
}

/// Tools of one thread to judge the answers of one stream. Owns no memory when the stream has no checks.
#[derive(Debug, Default)]
pub struct Judging {
    /// By check, over all steps of the stream.
    pub tallies: Vec<CheckTally>,
    pub(super) verdicts: Vec<Verdict>,
    pub(super) tools: Vec<Tool>,
}

impl Judging {
    /// Tools for the steps of one stream.
    pub fn new(stream: &StreamProgram) -> Self {
        let checks = || stream.steps.iter().map(|step| step.checks.names.len());
        Judging {
            tallies: vec![CheckTally::default(); checks().sum()],
            verdicts: Vec::with_capacity(checks().max().unwrap_or_default()),
            tools: stream
                .steps
                .iter()
                .flat_map(|step| step.checks.patterns())
                .map(|pattern| pattern.tool())
                .collect(),
        }
    }

    pub(super) fn count(&mut self, first: usize, at: u64, user: u32) {
        for (tally, verdict) in self.tallies[first..].iter_mut().zip(&self.verdicts) {
            tally.add(*verdict, at, user);
        }
    }
}
