//! Result of one stream: its requests, its times, its steps, its errors and its connections.

use serde_json::{json, Map, Value};

use loadlens_base::units::{nanos, seconds};
use loadlens_base::Outcome;
use loadlens_estimate::{Distribution, Quantity};
use loadlens_plan::program::{CheckNote, GroupProgram, StepProgram};
use loadlens_plan::{Profile, Role, Stream, Workload};
use loadlens_record::collector::TimesSeries;
use loadlens_record::files::{failures, statuses};
use loadlens_record::grid::Phase;
use loadlens_record::merge::StreamSum;
use loadlens_record::series::Late;

use crate::run::layout;

use super::ends::{Answer, Failure};
use super::requests::{self, Requests};
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
        let unfinished = &self.conclusion.ends.unfinished;
        requests::of_step(step, &self.collected.books, unfinished)
    }

    /// The law of counting of a stream, and whether it holds: on each machine and in sum.
    fn law(&self, index: usize, requests: &Requests) -> (bool, String) {
        let on_machines = self.broken.iter().filter(|(stream, _)| *stream == index);
        let on_machines: Vec<&str> = on_machines.map(|(_, law)| law.as_str()).collect();
        if on_machines.is_empty() {
            (requests.law_holds(), requests.law())
        } else {
            (false, on_machines.join("; "))
        }
    }

    pub(super) fn stream(&self, index: usize) -> Value {
        let stream = &self.plan.streams[index];
        let ends = &self.conclusion.ends;
        let (books, program) = (&self.collected.books, self.program);
        let requests = requests::of_stream(program, index, books, &ends.unfinished);
        let (law_holds, law) = self.law(index, &requests);
        let whole = super::whole(self.collected, index);
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
            "law_holds": law_holds,
            "law": law,
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
                "resolve": self.conclusion.resolve_ns.get(index).copied().flatten().map(seconds),
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
    /// the measured part to be small, and as many came in from the warm-up. Who still waits to be sent shows that the
    /// load was no steady state.
    fn times(&self, index: usize, series: &TimesSeries) -> [Distribution; 2] {
        let stream = &self.plan.streams[index];
        let measured = &self.collected.phases[Phase::Measure as usize][index].sum;
        let later = &self.collected.phases[Phase::Drain as usize][index].sum;
        let steps = self.program.streams[index].all_steps();
        let left = steps.map(|step| self.requests_of_step(step));
        let (in_flight, waiting) = left.fold((0, 0), |(in_flight, waiting), of| {
            (in_flight + of.in_flight, waiting + of.waiting)
        });
        let all_ended = in_flight == 0 && later.failed.iter().sum::<u64>() == 0;
        let timed_out = [
            Outcome::Timeout,
            Outcome::ConnectTimeout,
            Outcome::TlsTimeout,
        ];
        let leaves_out = self.plan.warmup_ns > 0
            && self.is_level(stream)
            && self.conclusion.changes.is_empty()
            && waiting == 0
            && timed_out
                .iter()
                .all(|outcome| measured.failed[outcome.code() as usize] == 0)
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
        json!({
            "verified": !tls.insecure,
            "full": whole.flows.full_handshakes,
            "resumed": whole.flows.resumed_handshakes,
            "sessions": self.conclusion.ends.sessions.get(index).cloned().unwrap_or_default(),
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
            let tallies = self.conclusion.ends.checks.get(stream);
            let sum = tallies.and_then(|tallies| tallies.get(step.first_check() + number));
            let sum = sum.cloned().unwrap_or_default();
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
            let of_stream = self.conclusion.ends.feeds.get(index);
            let used = of_stream.and_then(|of_stream| of_stream.get(feed));
            used.copied().unwrap_or_default()
        };
        let feeds = self.program.streams[index].feeds.iter().enumerate();
        feeds
            .map(|(at, feed)| {
                json!({
                    "name": feed.name,
                    "pick": feed.pick,
                    "end": feed.end,
                    "records": feed.records,
                    "iterations": used(at).iterations,
                    "is_used_up": used(at).is_used_up,
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
                let of_stream = self.conclusion.ends.errors.get(index);
                let errors = of_stream.and_then(|all| all.get(outcome.code() as usize));
                let errors = errors.cloned().unwrap_or_default();
                let content = json!({
                    "count": counts[outcome.name()],
                    "first_s": seconds(errors.first),
                    "last_s": seconds(errors.last),
                    "samples": self.samples(&errors.samples),
                });
                (outcome.name().to_owned(), content)
            })
            .collect()
    }

    /// Names of the steps of all streams.
    fn step_names(&self) -> Vec<&str> {
        let steps = self.program.streams.iter().flat_map(|stream| &stream.steps);
        steps.map(|step| step.name.as_str()).collect()
    }

    /// Beginnings of failing answers, the earliest of each status first.
    fn failing_answers(&self, index: usize) -> Vec<Value> {
        let steps = self.step_names();
        let answers = self.conclusion.ends.failing.get(index);
        let content = |answer: &Answer| {
            json!({
                "status": answer.status,
                "step": steps[answer.step as usize],
                "at_s": seconds(answer.at),
                "head": without_cookies(&String::from_utf8_lossy(&answer.head)),
                "body": String::from_utf8_lossy(&answer.body),
            })
        };
        answers.into_iter().flatten().map(content).collect()
    }

    /// Beginnings of answers as expected, the earliest of each step and size first.
    fn usual_answers(&self, index: usize) -> Vec<Value> {
        let steps = self.step_names();
        let answers = self.conclusion.ends.usual.get(index);
        let content = |answer: &Answer| {
            json!({
                "status": answer.status,
                "step": steps[answer.step as usize],
                "at_s": seconds(answer.at),
                "body_bytes": answer.body_bytes,
                "body": without_tokens(&String::from_utf8_lossy(&answer.body)),
            })
        };
        answers.into_iter().flatten().map(content).collect()
    }

    fn samples(&self, failures: &[Failure]) -> Vec<String> {
        let steps = self.step_names();
        let text = |failure: &Failure| {
            let (at_s, step) = (seconds(failure.at), steps[failure.step as usize]);
            let system = if failure.os_error == 0 {
                String::new()
            } else {
                format!(" (os error {})", failure.os_error)
            };
            format!(
                "{at_s:.3} s, step {step}, user {}: {}{system}",
                failure.user, failure.why
            )
        };
        failures.iter().map(text).collect()
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
