//! The result of a run: docs/reference/record.md, "The result of the engine".
//!
//! The law of counting is checked for every stream, in release builds too (`requests`): what was counted when requests
//! became due, were issued and ended must add up with what was found open at the end. This file builds the whole and
//! the verdict on the generator; `stream` builds one stream.

mod requests;
mod stream;

use serde_json::{json, Value};

use loadlens_base::units::seconds;
use loadlens_plan::program::Program;
use loadlens_plan::{Plan, Role};
use loadlens_record::collector::{Collected, StreamTotals};
use loadlens_record::grid::Phase;
use loadlens_record::interval::LoopTally;
use loadlens_record::merge::{add_counts, quantile, Counts, StreamSum};
use loadlens_sys::suspended_ns;

use crate::health::{Health, Signs};
use crate::worker::WorkerEnd;

use super::machine::Machine;
use super::{limits, Prepared, Started};

/// Everything that the result is made of.
struct Material<'a> {
    plan: &'a Plan,
    program: &'a Program,
    /// Warnings made before the start.
    notes: &'a [String],
    started: &'a Started,
    collected: &'a Collected,
    ends: &'a [WorkerEnd],
    measured_s: f64,
}

pub(super) fn build(
    run: &Prepared,
    started: &Started,
    collected: &Collected,
    ends: &[WorkerEnd],
) -> Value {
    let plan = &run.plan;
    let is_stopped = started.control.is_stopped();
    let measured_s = seconds(collected.measured_ns);
    let material = Material {
        plan,
        program: &run.program,
        notes: &run.notes,
        started,
        collected,
        ends,
        measured_s,
    };
    let streams: Vec<Value> = (0..plan.streams.len())
        .map(|index| material.stream(index))
        .collect();
    let elapsed = ends.iter().map(|end| end.at).max().unwrap_or(0);
    json!({
        "schema_version": 1,
        "status": if is_stopped { "stopped" } else { "complete" },
        "reasons": material.reasons(),
        "t0_unix_ns": started.t0_unix_ns,
        "t0_monotonic_ns": started.t0,
        "warmup_s": seconds(plan.warmup_ns.min(elapsed)),
        "measured_s": measured_s,
        "elapsed_s": seconds(elapsed),
        "streams": streams,
        "generator": Health::of(&material.signs()).and_notes(material.notes()),
    })
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
            suspended_ns: suspended_ns().saturating_sub(self.started.suspended_ns),
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

    /// Notes about the machine: warnings from before the start, and ports that nearly ran out.
    fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.to_vec();
        let Ok(machine) = Machine::look() else {
            return notes;
        };
        let elapsed_s = seconds(self.ends.iter().map(|end| end.at).max().unwrap_or(0));
        for (index, stream) in self.plan.streams.iter().enumerate() {
            let mut whole = StreamSum::default();
            for phase in &self.collected.phases {
                whole.add_later(&phase[index].sum);
            }
            let closed = whole.flows.closed();
            notes.extend(limits::ports_nearly_gone(
                &machine,
                stream,
                limits::Ports {
                    closed_by_us: whole.flows.closed_by_client,
                    open: whole.flows.opened - closed,
                    elapsed_s,
                },
            ));
        }
        notes
    }

    /// Notes about the record itself.
    fn reasons(&self) -> Vec<String> {
        let mut reasons = self.collected.faults.clone();
        let leftovers = || self.ends.iter().map(|end| &end.leftover);
        let samples: u64 = leftovers().map(|leftover| leftover.lost_samples).sum();
        let connections: u64 = leftovers().map(|leftover| leftover.lost_connections).sum();
        for (lost, log) in [(samples, "sample"), (connections, "connection")] {
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
