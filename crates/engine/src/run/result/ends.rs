//! Remains of workers that have ended, added up over threads and machines.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use loadlens_plan::program::CheckTally;
use loadlens_record::recorder::{
    size_class, AnswerLog, AnswerNote, ErrorLog, ANSWERS_EACH, ERROR_SAMPLES,
};

use crate::feed_cursor::Used;
use crate::worker::{Unfinished, WorkerEnd};

/// Final state of all workers together.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Ends {
    /// Time at which the last one ended.
    pub at: u64,
    /// Time from `t0` to when the last thread began.
    pub start_late_ns: u64,
    /// By step, over all streams.
    pub unfinished: Vec<Unfinished>,
    /// By stream, by feed.
    pub(super) feeds: Vec<Vec<Used>>,
    /// By stream, over all its steps.
    pub(super) checks: Vec<Vec<CheckTally>>,
    /// By stream: TLS sessions by the name of what was agreed.
    pub(super) sessions: Vec<BTreeMap<String, u64>>,
    /// By stream, by outcome code.
    pub(super) errors: Vec<Vec<Errors>>,
    /// By stream: failing answers, the earliest of each status.
    pub(super) failing: Vec<Vec<Answer>>,
    /// By stream: answers as expected, the earliest of each step and size.
    pub(super) usual: Vec<Vec<Answer>>,
    /// Sample rows for which no chunk was free.
    pub(super) lost_samples: u64,
    /// Connection rows for which no chunk was free.
    pub(super) lost_connections: u64,
}

/// All failures of one class in one stream.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Errors {
    /// Time of the first; `u64::MAX`: none.
    pub(super) first: u64,
    pub(super) last: u64,
    /// The first few.
    pub(super) samples: Vec<Failure>,
}

impl Default for Errors {
    fn default() -> Self {
        Errors {
            first: u64::MAX,
            last: 0,
            samples: Vec::new(),
        }
    }
}

/// One failure.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Failure {
    pub(super) at: u64,
    /// Index of the step among all steps of the run.
    pub(super) step: u32,
    pub(super) user: u32,
    pub(super) why: Cow<'static, str>,
    /// The operating system's number for it; 0: none.
    pub(super) os_error: i32,
}

/// One answer that is kept.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Answer {
    /// Time of its last byte.
    pub(super) at: u64,
    /// Index of the step among all steps of the run.
    pub(super) step: u32,
    pub(super) status: u16,
    /// Bytes of its decoded body.
    pub(super) body_bytes: u64,
    pub(super) head: Vec<u8>,
    /// The beginning of its body.
    pub(super) body: Vec<u8>,
}

impl Ends {
    /// Of all these workers.
    pub fn of<'e>(workers: impl IntoIterator<Item = &'e WorkerEnd>) -> Ends {
        let mut sum = Ends::default();
        let workers = workers.into_iter();
        workers.for_each(|worker| sum.add(Ends::of_worker(worker)));
        sum
    }

    /// Of a machine that said nothing after this time.
    pub(in crate::run) fn cut_off(at: u64, unfinished: Vec<Unfinished>) -> Ends {
        Ends {
            at,
            unfinished,
            ..Ends::default()
        }
    }

    fn of_worker(end: &WorkerEnd) -> Ends {
        let streams = end.checks.len();
        let mut feeds = vec![Vec::new(); streams];
        for (stream, used) in &end.feeds {
            feeds[usize::from(*stream)].clone_from(used);
        }
        let mut sessions = vec![BTreeMap::new(); streams];
        for agreed in &end.negotiated {
            let name = format!("{} {}", agreed.version, agreed.suite);
            *sessions[usize::from(agreed.stream)]
                .entry(name)
                .or_default() += agreed.sessions;
        }
        let left = &end.leftover;
        let errors = left.errors.iter();
        Ends {
            at: end.at,
            start_late_ns: end.start_late_ns,
            unfinished: end.unfinished.clone(),
            feeds,
            checks: end.checks.clone(),
            sessions,
            errors: errors
                .map(|logs| logs.iter().map(errors_of).collect())
                .collect(),
            failing: left.answers.iter().map(answers_of).collect(),
            usual: left.usual.iter().map(answers_of).collect(),
            lost_samples: left.lost_samples,
            lost_connections: left.lost_connections,
        }
    }

    /// Adds those of another thread or machine; of equal times its own come first.
    pub fn add(&mut self, other: Ends) {
        self.at = self.at.max(other.at);
        self.start_late_ns = self.start_late_ns.max(other.start_late_ns);
        self.lost_samples += other.lost_samples;
        self.lost_connections += other.lost_connections;
        each(&mut self.unfinished, other.unfinished, |own, other| {
            *own += other;
        });
        each_of_each(&mut self.feeds, other.feeds, |own, other| {
            own.iterations += other.iterations;
            own.is_used_up |= other.is_used_up;
        });
        each_of_each(&mut self.checks, other.checks, |own, other| {
            own.merge(&other);
        });
        each(&mut self.sessions, other.sessions, |own, other| {
            for (name, count) in other {
                *own.entry(name).or_default() += count;
            }
        });
        each_of_each(&mut self.errors, other.errors, Errors::add);
        each(&mut self.failing, other.failing, |own, other| {
            own.extend(other);
            own.sort_by_key(|answer| (answer.status, answer.at));
            let mut alike = (0, 0);
            own.retain(|answer| {
                alike = match alike {
                    (status, count) if status == answer.status => (status, count + 1),
                    _ => (answer.status, 1),
                };
                alike.1 <= ANSWERS_EACH
            });
        });
        each(&mut self.usual, other.usual, |own, other| {
            own.extend(other);
            own.sort_by_key(|answer| (answer.step, size_class(answer.body_bytes), answer.at));
            own.dedup_by_key(|answer| (answer.step, size_class(answer.body_bytes)));
        });
    }
}

impl Errors {
    fn add(&mut self, other: Errors) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.samples.extend(other.samples);
        self.samples.sort_by_key(|failure| failure.at);
        self.samples.truncate(ERROR_SAMPLES);
    }
}

/// Adds each of the others to the one at its place, which is made if it is missing.
fn each<T: Default>(own: &mut Vec<T>, others: Vec<T>, add: impl Fn(&mut T, T)) {
    if own.len() < others.len() {
        own.resize_with(others.len(), T::default);
    }
    own.iter_mut()
        .zip(others)
        .for_each(|(own, other)| add(own, other));
}

fn each_of_each<T: Default>(
    own: &mut Vec<Vec<T>>,
    others: Vec<Vec<T>>,
    add: impl Fn(&mut T, T) + Copy,
) {
    each(own, others, |own, others| each(own, others, add));
}

fn errors_of(log: &ErrorLog) -> Errors {
    let samples = log.samples.iter().map(|note| Failure {
        at: note.at,
        step: note.step,
        user: note.user,
        why: Cow::Borrowed(note.why),
        os_error: note.os_error,
    });
    Errors {
        first: log.first,
        last: log.last,
        samples: samples.collect(),
    }
}

fn answers_of(log: &AnswerLog) -> Vec<Answer> {
    let answer = |note: &AnswerNote| {
        let (from, between, end) = note.place;
        Answer {
            at: note.at,
            step: note.step,
            status: note.status,
            body_bytes: note.body_bytes,
            head: log.bytes[from..between].to_vec(),
            body: log.bytes[between..end].to_vec(),
        }
    };
    log.notes.iter().map(answer).collect()
}
