//! The result of a run: docs/reference/record.md, "The result of the engine".
//!
//! The law of counting is checked for every stream, in release builds too (`requests`): what was counted when requests
//! became due, were issued and ended must add up with what was found open at the end. This file builds the whole and
//! the verdict on the generator; `stream` builds one stream, `ends` adds up what workers leave. It is made of plain values,
//! those of one machine or of many.

mod ends;
mod requests;
mod stream;

use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

use loadlens_base::units::seconds;
use loadlens_plan::program::Program;
use loadlens_plan::{Plan, Role};
use loadlens_record::collector::{Books, Collected, StreamTotals};
use loadlens_record::grid::Phase;
use loadlens_record::interval::LoopTally;
use loadlens_record::merge::{add_counts, quantile, Counts, StreamSum};

use crate::health::{Health, Signs};
use crate::worker::{Change, Unfinished};

use super::machine::Machine;
use super::{changes, limits};

pub use ends::Ends;
pub(super) use requests::left_open;

/// Contents of a result besides counts.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Conclusion {
    /// Final state of the workers.
    pub ends: Ends,
    /// True if a caller requested an early end.
    pub is_stopped: bool,
    /// True if counts of a machine end before its run did.
    pub is_incomplete: bool,
    /// `t0` on the wall clock.
    pub t0_unix_ns: u64,
    /// `t0` on CLOCK_MONOTONIC.
    pub t0_monotonic_ns: u64,
    /// Time for which the machine was suspended during the run.
    pub suspended_ns: u64,
    /// By stream: duration of the look-up of its target; none for an address.
    pub resolve_ns: Vec<Option<u64>>,
    /// Changes of the load that took effect.
    pub changes: Vec<Change>,
    /// Notes about the machine.
    pub notes: Vec<String>,
    /// Faults of the record.
    pub faults: Vec<String>,
}

impl Conclusion {
    /// Adds that of another machine, on which the same load ran.
    pub fn add(&mut self, other: Conclusion) {
        self.ends.add(other.ends);
        self.is_stopped |= other.is_stopped;
        self.is_incomplete |= other.is_incomplete;
        self.suspended_ns = self.suspended_ns.max(other.suspended_ns);
        if self.t0_unix_ns == 0 {
            self.t0_unix_ns = other.t0_unix_ns;
            self.t0_monotonic_ns = other.t0_monotonic_ns;
        }
        let streams = self.resolve_ns.len().max(other.resolve_ns.len());
        self.resolve_ns.resize(streams, None);
        for (own, other) in self.resolve_ns.iter_mut().zip(other.resolve_ns) {
            *own = (*own).max(other);
        }
        if self.changes.is_empty() {
            self.changes = other.changes; // each machine made the same ones
        }
        for note in other.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.faults.extend(other.faults);
    }
}

/// Notes on ports that nearly ran out on this machine.
pub(super) fn notes_on_ports(plan: &Plan, collected: &Collected, elapsed: u64) -> Vec<String> {
    let Ok(machine) = Machine::look() else {
        return Vec::new();
    };
    let of_stream = |(index, stream)| {
        let flows = whole(collected, index).flows;
        let ports = limits::Ports {
            closed_by_us: flows.closed_by_client,
            open: flows.opened - flows.closed(),
            elapsed_s: seconds(elapsed),
        };
        limits::ports_nearly_gone(&machine, stream, ports)
    };
    plan.streams
        .iter()
        .enumerate()
        .filter_map(of_stream)
        .collect()
}

/// Counts of a stream over all phases.
fn whole(collected: &Collected, index: usize) -> StreamSum {
    let mut whole = StreamSum::default();
    for phase in &collected.phases {
        whole.add_later(&phase[index].sum);
    }
    whole
}

/// Each stream of which the law of counting is broken, with its equations.
pub(super) fn broken_laws(
    program: &Program,
    books: &Books,
    unfinished: &[Unfinished],
) -> Vec<(usize, String)> {
    let of_stream = |index: usize| requests::of_stream(program, index, books, unfinished);
    (0..program.streams.len())
        .map(|index| (index, of_stream(index)))
        .filter(|(_, requests)| !requests.law_holds())
        .map(|(index, requests)| (index, requests.law()))
        .collect()
}

/// Everything that the result is made of.
struct Material<'a> {
    plan: &'a Plan,
    program: &'a Program,
    collected: &'a Collected,
    conclusion: &'a Conclusion,
    /// Streams of which the law of counting is broken on a machine, with its name and equations.
    broken: &'a [(usize, String)],
    measured_s: f64,
}

/// The result of a run, on one machine or on several: of these, the law of counting is broken in some streams.
pub fn build(
    plan: &Plan,
    program: &Program,
    collected: &Collected,
    conclusion: &Conclusion,
    broken: &[(usize, String)],
) -> Value {
    let measured_s = seconds(collected.measured_ns);
    let material = Material {
        plan,
        program,
        collected,
        conclusion,
        broken,
        measured_s,
    };
    let streams: Vec<Value> = (0..plan.streams.len())
        .map(|index| material.stream(index))
        .collect();
    let elapsed = conclusion.ends.at;
    let status = match conclusion {
        ended if ended.is_incomplete => "incomplete",
        ended if ended.is_stopped => "stopped",
        _ => "complete",
    };
    let mut result = json!({
        "schema_version": 1,
        "status": status,
        "reasons": material.reasons(),
        "t0_unix_ns": conclusion.t0_unix_ns,
        "t0_monotonic_ns": conclusion.t0_monotonic_ns,
        "start_late_ns": conclusion.ends.start_late_ns,
        "warmup_s": seconds(plan.warmup_ns.min(elapsed)),
        "measured_s": measured_s,
        "elapsed_s": seconds(elapsed),
        "streams": streams,
        "generator": Health::of(&material.signs()).and_notes(conclusion.notes.clone()),
    });
    let changes = changes::to_json(plan, &conclusion.changes);
    if !changes.is_empty() {
        result["load_changes"] = Value::Array(changes);
    }
    result
}

impl Material<'_> {
    fn signs(&self) -> Signs {
        let measured = self.collected.measured_ns as f64;
        let is_measured = self.collected.measured_ns > 0;
        let worst = |share: &dyn Fn(&LoopTally) -> f64| {
            let shares = self.collected.threads.iter().map(share);
            shares.reduce(f64::max).filter(|_| is_measured)
        };
        let (mut lag, mut response, mut service) = (Counts::new(), Counts::new(), Counts::new());
        for (index, stream) in self.plan.streams.iter().enumerate() {
            if stream.role == Role::Load {
                let series = &self.collected.streams[index];
                let times = &series.whole.times;
                add_counts(&mut lag, series.lag.counts());
                add_counts(&mut response, times.response.counts());
                add_counts(&mut service, times.service.counts());
            }
        }
        Signs {
            threads: self.collected.threads.len(),
            busy: worst(&|thread| thread.busy(measured)),
            runq_wait: worst(&|thread| thread.runq_wait_ns as f64 / measured),
            stood_still_ns: self.stood_still_ns(),
            suspended_ns: self.conclusion.suspended_ns,
            measured_ns: self.collected.measured_ns,
            lag_p99_ns: quantile(&lag, 0.99),
            response_p50_ns: quantile(&response, 0.5),
            service_p99_ns: quantile(&service, 0.99),
            requests_per_s: is_measured.then(|| self.ended() as f64 / self.measured_s),
            cpu_ns: self.collected.cpu_ns,
        }
    }

    /// The longest time for which a thread did not run in the measured part. What it did on a core, such as a slow
    /// script, is no standstill, however long it did not look at the clock.
    fn stood_still_ns(&self) -> u64 {
        let measured = self.collected.measured_ns;
        let still = |thread: &LoopTally| {
            thread
                .stalled_ns
                .min(measured.saturating_sub(thread.cpu_ns))
        };
        self.collected.threads.iter().map(still).max().unwrap_or(0)
    }

    /// Requests that ended in the measured part, well or not.
    fn ended(&self) -> u64 {
        let measured = &self.collected.phases[Phase::Measure as usize];
        let of_stream =
            |totals: &StreamTotals| totals.answered() + totals.sum.failed.iter().sum::<u64>();
        measured.iter().map(of_stream).sum()
    }

    /// Notes about the record itself.
    fn reasons(&self) -> Vec<String> {
        let mut reasons = self.conclusion.faults.clone();
        let ends = &self.conclusion.ends;
        let lost = [
            (ends.lost_samples, "sample"),
            (ends.lost_connections, "connection"),
        ];
        for (lost, log) in lost {
            if lost > 0 {
                reasons.push(format!(
                    "{lost} rows of the {log} log were not written: the disk was too slow"
                ));
            }
        }
        for (index, stream) in self.plan.streams.iter().enumerate() {
            for feed in self.feeds(index) {
                if feed["is_used_up"] == true {
                    reasons.push(format!(
                        "feed {} was used up after its {} records, which ended the load of stream {}",
                        feed["name"].as_str().unwrap_or_default(),
                        feed["records"],
                        stream.name
                    ));
                }
            }
        }
        if self.collected.lost_values > 0 {
            reasons.push(format!(
                "{} times did not fit into the histograms",
                self.collected.lost_values
            ));
        }
        reasons
    }
}
