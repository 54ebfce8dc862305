//! Result of one stream: its requests, its times, its steps, its errors and its connections.

use std::collections::BTreeMap;

use serde_json::{json, Map, Value};

use loadlens_base::units::{nanos, seconds};
use loadlens_base::{Class, Outcome};
use loadlens_estimate::{Distribution, Quantity};
use loadlens_plan::program::{CheckNote, CheckTally, GroupProgram, StepProgram};
use loadlens_plan::{Profile, Role, Stream, Workload};
use loadlens_record::collector::TimesSeries;
use loadlens_record::files::{failures, statuses};
use loadlens_record::grid::Phase;
use loadlens_record::interval::CLASSES;
use loadlens_record::merge::StreamSum;
use loadlens_record::recorder::{size_class, AnswerNote, ErrorLog, ErrorNote, ANSWERS_EACH};
use loadlens_record::series::Late;

use crate::run::layout;
use crate::worker::Unfinished;

use super::requests::Requests;
use super::Material;

/// Beyond what the edges explain, Little's law may miss by this: the clock's grain.
const LITTLE_TOLERANCE: f64 = 0.001;
/// Characters from which on a word of letters and digits may be a token.
const TOKEN: usize = 20;

/// A head without the values of the cookies that it sets: they are credentials.
fn without_cookies(head: &str) -> String {
    let line = |line: &str| match line.split_once(':') {
        Some((name, _)) if name.eq_ignore_ascii_case("set-cookie") => format!("{name}: (hidden)"),
        _ => line.to_owned(),
    };
    head.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Text without the long words of letters and digits that tokens are.
fn without_tokens(text: &str) -> String {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "-_.+/=".contains(c);
    let mut kept = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest
            .find(|c| !is_of_word(c))
            .map_or(rest, |end| &rest[..end]);
        let is_token = word.len() >= TOKEN
            && word.contains(|c: char| c.is_ascii_digit())
            && word.contains(|c: char| c.is_ascii_alphabetic());
        kept += if is_token { "(hidden)" } else { word };
        rest = &rest[word.len()..];
        let between = rest.find(is_of_word).unwrap_or(rest.len());
        kept += &rest[..between];
        rest = &rest[between..];
    }
    kept
}

impl Material<'_> {
    fn requests_of_step(&self, step: usize) -> Requests {
        let tally = &self.collected.steps[step];
        let class = |class: Class| self.collected.step_classes[step * CLASSES + class as usize];
        let left = |count: fn(&Unfinished) -> u64| {
            self.ends
                .iter()
                .map(|end| count(&end.unfinished[step]))
                .sum()
        };
        Requests {
            due: tally.due,
            issued: tally.issued,
            ok: class(Class::Ok),
            unexpected_status: class(Class::UnexpectedStatus),
            check_failed: class(Class::CheckFailed),
            failed: tally.failed,
            in_flight: left(|left| left.in_flight),
            dropped: tally.dropped,
            waiting: left(|left| left.waiting),
            skipped: tally.skipped,
        }
    }

    pub(super) fn stream(&self, index: usize) -> Value {
        let stream = &self.plan.streams[index];
        let mut requests = Requests::default();
        for step in self.program.streams[index].all_steps() {
            requests += self.requests_of_step(step);
        }
        let mut whole = StreamSum::default();
        self.collected
            .phases
            .iter()
            .for_each(|phase| whole.add_later(&phase[index].sum));
        let series = &self.collected.streams[index];
        let kind = match stream.workload {
            Workload::Closed { .. } => "closed",
            Workload::Open { .. } => "open",
        };
        let closed = whole.flows.closed();
        let [response_time, service_time] = self.times(index, &series.whole.times);
        json!({
            "name": stream.name,
            "role": if stream.role == Role::Load { "load" } else { "probe" },
            "kind": kind,
            "requests": requests.to_json(),
            "in_warmup": self.in_phase(Phase::Warmup, index),
            "after_end": self.in_phase(Phase::Drain, index),
            "law_holds": requests.law_holds(),
            "law": requests.law(),
            "status": statuses(&whole),
            "errors": self.errors(index, &whole),
            "failing_answers": self.failing_answers(index),
            "usual_answers": self.usual_answers(index),
            "throughput_rps": self.throughput(stream, series.whole.times.response.throughput()),
            "response_time_s": response_time,
            "service_time_s": service_time,
            "failed_time_s": series.failed.distribution(Late::Counted),
            "lag_s": series.lag.distribution(Late::Counted),
            "phases_s": {
                "resolve": self.started.targets[index].took_ns.map(seconds),
                "connect": series.connect.distribution(Late::Counted),
                "tls": series.tls.distribution(Late::Counted),
                "first_byte": series.whole.first_byte.distribution(Late::Counted),
                "last_byte": series.whole.last_byte.distribution(Late::Counted),
            },
            "steps": self.steps(index),
            "groups": self.groups(index),
            "feeds": self.feeds(index),
            "bytes": {"out": whole.flows.bytes_out, "in_wire": whole.flows.bytes_in_wire, "in_body": whole.flows.bytes_in_body},
            "connections": {
                "wanted": layout::connections_of(stream, self.plan),
                "opened": whole.flows.opened,
                "kept": whole.flows.opened - closed,
                "closed_by_server": whole.flows.closed_by_server,
                "closed_by_client": whole.flows.closed_by_client,
                "closed_by_error": whole.flows.closed_by_error,
                "unsolicited": whole.flows.unsolicited,
            },
            "tls": self.tls(index, &whole),
            "little": self.little(index),
        })
    }

    /// A rate that changes by plan varies between intervals because it was asked to: that is no interval.
    fn throughput(&self, stream: &Stream, counted: Quantity) -> Quantity {
        if self.is_level(stream) {
            counted
        } else {
            Quantity {
                low: None,
                high: None,
                ..counted
            }
        }
    }

    /// True if the load stays at one level while it is measured.
    fn is_level(&self, stream: &Stream) -> bool {
        let from = self.plan.warmup_ns;
        let until = from.saturating_add(nanos(self.measured_s));
        let changes = |profile: &Option<Profile>| {
            profile
                .as_ref()
                .is_some_and(|profile| !profile.is_level(from, until))
        };
        !match &stream.workload {
            Workload::Closed {
                profile, ramp_ns, ..
            } => *ramp_ns > from || changes(profile),
            Workload::Open {
                profile, replay, ..
            } => replay.is_some() || changes(profile),
        }
    }

    /// Response and service time; without the requests in flight at the end where those are too long for the edges of
    /// the measured part to be small, and as many came in from the warm-up.
    fn times(&self, index: usize, series: &TimesSeries) -> [Distribution; 2] {
        let stream = &self.plan.streams[index];
        let measured = &self.collected.phases[Phase::Measure as usize][index].sum;
        let later = &self.collected.phases[Phase::Drain as usize][index].sum;
        let steps = self.program.streams[index].all_steps();
        let in_flight = steps.map(|step| self.requests_of_step(step).in_flight);
        let all_ended = in_flight.sum::<u64>() == 0 && later.failed.iter().sum::<u64>() == 0;
        let leaves_out = self.plan.warmup_ns > 0
            && self.is_level(stream)
            && measured.failed[Outcome::Timeout.code() as usize] == 0
            && series.response.edge_is_cut(all_ended);
        let late = if leaves_out {
            Late::LeftOut
        } else {
            Late::Counted
        };
        [&series.response, &series.service].map(|series| series.distribution(late))
    }

    /// TLS results; null without TLS.
    fn tls(&self, index: usize, whole: &StreamSum) -> Value {
        let Some(tls) = &self.plan.streams[index].target.tls else {
            return Value::Null;
        };
        let mut sessions: BTreeMap<String, u64> = BTreeMap::new();
        for agreed in self.ends.iter().flat_map(|end| &end.negotiated) {
            if usize::from(agreed.stream) == index {
                let name = format!("{} {}", agreed.version, agreed.suite);
                *sessions.entry(name).or_default() += agreed.sessions;
            }
        }
        json!({
            "verified": !tls.insecure,
            "full": whole.flows.full_handshakes,
            "resumed": whole.flows.resumed_handshakes,
            "sessions": sessions,
        })
    }

    fn in_phase(&self, phase: Phase, index: usize) -> Value {
        let totals = &self.collected.phases[phase as usize][index];
        json!({"answered": totals.answered(), "failed": totals.sum.failed.iter().sum::<u64>()})
    }

    fn steps(&self, index: usize) -> Vec<Value> {
        let program = &self.program.streams[index];
        let mut steps = Vec::new();
        for scenario in &program.scenarios {
            for step in scenario.first_step..scenario.first_step + scenario.steps {
                let at = program.first_step + step as usize;
                let series = if program.steps.len() == 1 {
                    &self.collected.streams[index].whole
                } else {
                    &self.collected.step_series[at]
                };
                let [response_time, service_time] = self.times(index, &series.times);
                let throughput = series.times.response.throughput();
                steps.push(json!({
                    "name": program.steps[step as usize].name,
                    "scenario": scenario.name,
                    "requests": self.requests_of_step(at).to_json(),
                    "checks": self.checks(index, &program.steps[step as usize]),
                    "throughput_rps": self.throughput(&self.plan.streams[index], throughput),
                    "response_time_s": response_time,
                    "service_time_s": service_time,
                    "phases_s": {
                        "first_byte": series.first_byte.distribution(Late::Counted),
                        "last_byte": series.last_byte.distribution(Late::Counted),
                    },
                }));
            }
        }
        steps
    }

    /// Runs of the stream's groups.
    fn groups(&self, index: usize) -> Vec<Value> {
        let program = &self.program.streams[index];
        let of_group = |(number, group): (usize, &GroupProgram)| {
            let at = program.first_group + number;
            let (tally, series) = (&self.collected.groups[at], &self.collected.group_series[at]);
            json!({
                "name": group.name,
                "scenario": program.scenarios[group.scenario].name,
                "runs": tally,
                "response_time_s": series.response.distribution(Late::Counted),
                "service_time_s": series.service.distribution(Late::Counted),
            })
        };
        program.groups.iter().enumerate().map(of_group).collect()
    }

    /// Results of each check of a step, over all threads.
    fn checks(&self, stream: usize, step: &StepProgram) -> Vec<Value> {
        let of_check = |(number, name): (usize, &String)| {
            let mut sum = CheckTally::default();
            self.ends
                .iter()
                .filter_map(|end| end.checks[stream].get(step.first_check() + number))
                .for_each(|tally| sum.merge(tally));
            let at = |ns: u64| (sum.failed > 0).then_some(seconds(ns));
            let sample = |note: &CheckNote| {
                format!(
                    "{:.3} s, user {}: {}",
                    seconds(note.at),
                    note.user,
                    note.failure.what()
                )
            };
            json!({
                "name": name,
                "passed": sum.passed,
                "failed": sum.failed,
                "not_judged": sum.not_judged,
                "first_s": at(sum.first),
                "last_s": at(sum.last),
                "samples": sum.samples.iter().map(sample).collect::<Vec<_>>(),
            })
        };
        step.checks().iter().enumerate().map(of_check).collect()
    }

    /// Use of each feed of the stream, all threads together.
    pub(super) fn feeds(&self, index: usize) -> Vec<Value> {
        let used = |feed: usize| {
            let of_stream = self.ends.iter().flat_map(|end| &end.feeds);
            of_stream
                .filter(|(stream, _)| usize::from(*stream) == index)
                .map(move |(_, used)| used[feed])
        };
        let feeds = self.program.streams[index].feeds.iter().enumerate();
        feeds
            .map(|(at, feed)| {
                json!({
                    "name": feed.name,
                    "pick": feed.pick,
                    "end": feed.end,
                    "records": feed.records,
                    "iterations": used(at).map(|used| used.iterations).sum::<u64>(),
                    "is_used_up": used(at).any(|used| used.is_used_up),
                })
            })
            .collect()
    }

    fn errors(&self, index: usize, whole: &StreamSum) -> Map<String, Value> {
        let counts = failures(whole);
        let classes = Outcome::ALL
            .iter()
            .filter(|outcome| counts.contains_key(outcome.name()));
        classes
            .map(|outcome| {
                let logs = || {
                    self.ends
                        .iter()
                        .map(move |end| &end.leftover.errors[index][outcome.code() as usize])
                };
                let first = logs().map(|log| log.first).min().unwrap_or(u64::MAX);
                let last = logs().map(|log| log.last).max().unwrap_or(0);
                let content = json!({
                    "count": counts[outcome.name()],
                    "first_s": seconds(first),
                    "last_s": seconds(last),
                    "samples": self.samples(logs().collect()),
                });
                (outcome.name().to_owned(), content)
            })
            .collect()
    }

    /// Beginnings of failing answers, the earliest of each status first.
    fn failing_answers(&self, index: usize) -> Vec<Value> {
        let logs = self.ends.iter().map(|end| &end.leftover.answers[index]);
        let mut notes: Vec<(&AnswerNote, &[u8])> = logs
            .flat_map(|log| log.notes.iter().map(|note| (note, &*log.bytes)))
            .collect();
        notes.sort_by_key(|(note, _)| (note.status, note.at));
        let steps = self.program.streams.iter().flat_map(|stream| &stream.steps);
        let steps: Vec<&str> = steps.map(|step| step.name.as_str()).collect();
        let content = |(note, bytes): (&AnswerNote, &[u8])| {
            let (from, between, end) = note.place;
            json!({
                "status": note.status,
                "step": steps[note.step as usize],
                "at_s": seconds(note.at),
                "head": without_cookies(&String::from_utf8_lossy(&bytes[from..between])),
                "body": String::from_utf8_lossy(&bytes[between..end]),
            })
        };
        notes
            .chunk_by(|(one, _), (next, _)| one.status == next.status)
            .flat_map(|alike| alike.iter().take(ANSWERS_EACH))
            .map(|&note| content(note))
            .collect()
    }

    /// Beginnings of answers as expected, the earliest of each step and size first.
    fn usual_answers(&self, index: usize) -> Vec<Value> {
        let logs = self.ends.iter().map(|end| &end.leftover.usual[index]);
        let mut notes: Vec<(&AnswerNote, &[u8])> = logs
            .flat_map(|log| log.notes.iter().map(|note| (note, &*log.bytes)))
            .collect();
        notes.sort_by_key(|(note, _)| (note.step, size_class(note.body_bytes), note.at));
        notes.dedup_by_key(|(note, _)| (note.step, size_class(note.body_bytes)));
        let steps = self.program.streams.iter().flat_map(|stream| &stream.steps);
        let steps: Vec<&str> = steps.map(|step| step.name.as_str()).collect();
        let content = |(note, bytes): (&AnswerNote, &[u8])| {
            let (_, from, end) = note.place;
            json!({
                "status": note.status,
                "step": steps[note.step as usize],
                "at_s": seconds(note.at),
                "body_bytes": note.body_bytes,
                "body": without_tokens(&String::from_utf8_lossy(&bytes[from..end])),
            })
        };
        notes.into_iter().map(content).collect()
    }

    fn samples(&self, logs: Vec<&ErrorLog>) -> Vec<String> {
        let mut notes: Vec<&ErrorNote> = logs.into_iter().flat_map(|log| &log.samples).collect();
        notes.sort_by_key(|note| note.at);
        notes.truncate(loadlens_record::recorder::ERROR_SAMPLES);
        let steps = self.program.streams.iter().flat_map(|stream| &stream.steps);
        let steps: Vec<&str> = steps.map(|step| step.name.as_str()).collect();
        let text = |note: &ErrorNote| {
            let (at_s, step) = (seconds(note.at), steps[note.step as usize]);
            let system = if note.os_error == 0 {
                String::new()
            } else {
                format!(" (os error {})", note.os_error)
            };
            format!(
                "{at_s:.3} s, step {step}, user {}: {}{system}",
                note.user, note.why
            )
        };
        notes.into_iter().map(text).collect()
    }

    /// Throughput times mean time against the integral of what was in flight. They differ by what was in flight
    /// at the edges: its time before the measured part is in the sum, its time after the end is not.
    fn little(&self, index: usize) -> Value {
        let sum = &self.collected.phases[Phase::Measure as usize][index].sum;
        let integral = sum.flows.in_flight_integral as f64;
        if integral <= 0.0 {
            return json!({"ratio": null, "in_flight_mean": null, "edge_bound": null, "verdict": "unknown"});
        }
        let ratio = sum.flows.ended_service as f64 / integral;
        let edge = self.collected.at_start[index]
            .1
            .max(self.collected.at_end[index].1) as f64
            / integral;
        let holds = (ratio - 1.0).abs() <= edge + LITTLE_TOLERANCE;
        json!({
            "ratio": ratio,
            "in_flight_mean": integral / 1e9 / self.measured_s,
            "edge_bound": edge,
            "verdict": if holds { "holds" } else { "broken" },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::without_tokens;

    #[test]
    fn a_long_word_of_letters_and_digits_is_hidden_and_text_is_not() {
        let body = "{\"token\": \"eyJhbGciOiJIUzI1NiJ9.eyJz\", \"name\": \"internationalisierung\", \"id\": 12345678901234567890}";

        assert_eq!(
            without_tokens(body),
            "{\"token\": \"(hidden)\", \"name\": \"internationalisierung\", \"id\": 12345678901234567890}"
        );
    }
}
