//! The snapshot that Python asks for while a run goes: docs/reference/engine-api.md.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{json, Value};

use loadlens_base::units::seconds;
use loadlens_estimate::coarse;
use loadlens_plan::Plan;
use loadlens_record::collector::{Live, LiveSpan};
use loadlens_record::histogram::bucket_high;
use loadlens_record::merge::quantile;
use loadlens_record::recorder::StreamProgress;

use crate::clock::monotonic_ns;

use super::Started;

pub(super) fn snapshot(plan: &Plan, started: Option<&Started>, has_ended: bool) -> Value {
    let total_s = plan
        .duration_ns
        .map(|duration| seconds(plan.warmup_ns.saturating_add(duration)));
    let Some(started) = started else {
        return json!({
            "phase": "starting", "elapsed_s": 0.0, "total_s": total_s, "t0_monotonic_ns": 0,
            "streams": [], "generator": {"busy": null, "lag_p99_s": null},
        });
    };
    let now = monotonic_ns().saturating_sub(started.t0);
    let end = started.control.end();
    let phase = match now {
        _ if has_ended => "done",
        0 => "starting",
        now if now >= end => "drain",
        now if now >= plan.warmup_ns => "measure",
        _ => "warmup",
    };
    let live = started.live.lock();
    let streams: Vec<Value> = (0..plan.streams.len())
        .map(|index| of_stream(&plan.streams[index].name, index, started, &live))
        .collect();
    json!({
        "phase": phase,
        "elapsed_s": seconds(now),
        "total_s": total_s,
        "t0_monotonic_ns": started.t0,
        "streams": streams,
        "generator": {"busy": live.busy, "lag_p99_s": live.lag_p99_s},
    })
}

fn of_stream(name: &str, index: usize, started: &Started, live: &Live) -> Value {
    let sum = |count: fn(&StreamProgress) -> &AtomicU64| -> u64 {
        started
            .progress
            .iter()
            .map(|thread| count(&thread[index]).load(Ordering::Relaxed))
            .sum()
    };
    // Read in the order that they rise, so that a difference is never negative by more than the reading lasts.
    let (answered, ok, failed) = (sum(|p| &p.answered), sum(|p| &p.ok), sum(|p| &p.failed));
    let (issued, dropped, due) = (sum(|p| &p.issued), sum(|p| &p.dropped), sum(|p| &p.due));
    let stream = live.streams.get(index).cloned().unwrap_or_default();
    let (last, so_far) = (stream.last(), &stream.so_far);
    json!({
        "name": name,
        "due": due,
        "issued": issued,
        "answered": answered,
        "ok": ok,
        "failed": failed,
        "in_flight": issued.saturating_sub(answered + failed),
        "waiting": due.saturating_sub(issued + dropped),
        "dropped": dropped,
        "last": {
            "seconds": last.seconds,
            "rps": rate(&last),
            "p50_s": quantile_s(&last, 0.5),
            "p99_s": quantile_s(&last, 0.99),
            "unexpected_status": last.unexpected_status,
            "check_failed": last.check_failed,
            "failed": last.failed,
            "histogram": coarse(last.ok.iter().map(|(bucket, count)| (seconds(bucket_high(*bucket as usize)), *count))),
        },
        "so_far": {
            "rps": rate(so_far),
            "p50_s": quantile_s(so_far, 0.5),
            "p99_s": quantile_s(so_far, 0.99),
            "unexpected_status": so_far.unexpected_status,
            "check_failed": so_far.check_failed,
            "failed": so_far.failed,
        },
    })
}

fn rate(span: &LiveSpan) -> f64 {
    if span.seconds > 0.0 {
        span.count() as f64 / span.seconds
    } else {
        0.0
    }
}

fn quantile_s(span: &LiveSpan, p: f64) -> Option<f64> {
    quantile(&span.ok, p).map(seconds)
}
