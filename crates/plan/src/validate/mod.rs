//! Every fault of a plan at once.
//!
//! This file checks the shape of a plan, and `workload` when requests are due. Templates, headers, bodies and checks
//! are judged by the compiler in `program`, which reads no file and no environment for it.

mod workload;

use loadlens_base::{Fault, Faults};
use loadlens_http::request::is_value_byte;

use crate::program;
use crate::{
    Cookies, Plan, RecordTo, Reuse, Role, Scenario, Share, Stream, Target, Think, Workload,
    SCHEMA_VERSION,
};

use workload::check_workload;
pub(crate) use workload::ends_by_itself;

/// The stream of a sample is one byte in the record.
const MAX_STREAMS: usize = 255;
/// The step of a sample is two bytes in the record.
const MAX_STEPS: usize = 65_535;
const MAX_THREADS: u32 = 1024;
/// Parts that a load is divided into, at most.
const MAX_PARTS: u32 = 10_000;
/// 292 years: due times are kept as signed nanoseconds.
const MAX_NS: u64 = i64::MAX as u64;

impl Plan {
    /// All faults of this plan; none: it can be compiled, given its files and its environment.
    pub fn validate(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        structure(self, &mut faults);
        program::check(self, &mut faults);
        faults
    }
}

fn check_share(share: Share, faults: &mut Faults<'_>) {
    let Share { from, to, of } = share;
    if !(1..=MAX_PARTS).contains(&of) {
        let what = format_args!("{of} parts are not from 1 to {MAX_PARTS}");
        faults.add("share.of", what);
    } else if to > of {
        faults.add("share.to", format_args!("{to} is above share.of, {of}"));
    } else if from >= to {
        faults.add(
            "share.from",
            format_args!("{from} is not below share.to, {to}"),
        );
    }
}

/// Adds the faults of everything but templates, headers, bodies and checks.
pub(crate) fn structure(plan: &Plan, faults: &mut Vec<Fault>) {
    let mut faults = Faults::new(faults, "");
    let (version, share) = (plan.schema_version, plan.share);
    faults.want(
        version == SCHEMA_VERSION,
        "schema_version",
        format_args!("{version} is not the version of this engine, {SCHEMA_VERSION}"),
    );
    check_share(share, &mut faults);
    if let Some(threads) = plan.threads.filter(|n| !(1..=MAX_THREADS).contains(n)) {
        let what = format_args!("{threads} is not from 1 to {MAX_THREADS}");
        faults.add("threads", what);
    }
    let what = "an empty list: leave it out for no pinning";
    faults.want(plan.cpus != Some(Vec::new()), "cpus", what);
    let total = plan
        .warmup_ns
        .checked_add(plan.duration_ns.unwrap_or(0))
        .and_then(|ns| ns.checked_add(plan.drain_ns));
    let what = "warm-up, duration and drain together are over 292 years";
    faults.want(total.is_some_and(|ns| ns <= MAX_NS), "duration_ns", what);
    let has_no_folder = |record: &RecordTo| record.dir.is_empty();
    let what = "empty: the folder that the live files go to";
    faults.want(
        !plan.record.as_ref().is_some_and(has_no_folder),
        "record.dir",
        what,
    );
    let (streams, count) = (&plan.streams, plan.streams.len());
    faults.want(count > 0, "streams", "none: at least one stream");
    let what = format_args!("{count} streams, at most {MAX_STREAMS}");
    faults.want(count <= MAX_STREAMS, "streams", what);
    faults.want_names("streams", streams.iter().map(|stream| stream.name.as_str()));
    let has_load = streams.iter().any(|stream| stream.role == Role::Load);
    let what = "only probes: at least one stream of role load";
    faults.want(count == 0 || has_load, "streams", what);
    for (index, stream) in streams.iter().enumerate() {
        check_stream(stream, &mut faults.of(&format!("streams[{index}]")));
    }
}

fn check_stream(stream: &Stream, faults: &mut Faults) {
    check_target(&stream.target, &mut faults.of("target"));
    check_workload(&stream.workload, &mut faults.of("workload"));
    let connection = &stream.connection;
    let is_reused = connection.reuse != (Reuse::Requests { requests: 0 });
    faults.want(is_reused, "connection.reuse.requests", "0: at least 1");
    let what = "0: at least 1, or leave it out";
    faults.want(connection.pool != Some(0), "connection.pool", what);
    let what = format_args!("{} is not from 1 ns to 292 years", stream.timeout_ns);
    let is_time = (1..=MAX_NS).contains(&stream.timeout_ns);
    faults.want(is_time, "timeout_ns", what);
    if stream.cookies == Cookies::Keep && matches!(stream.workload, Workload::Open { .. }) {
        let what = "keep: each arrival of an open stream is a new user; iteration keeps them as long as it can";
        faults.add("cookies", what);
    }
    let scenarios = &stream.scenarios;
    faults.want(
        !scenarios.is_empty(),
        "scenarios",
        "none: at least one scenario",
    );
    let steps: usize = scenarios.iter().map(|scenario| scenario.steps.len()).sum();
    let what = format_args!("{steps} steps in all, at most {MAX_STEPS}");
    faults.want(steps <= MAX_STEPS, "scenarios", what);
    faults.want_names(
        "scenarios",
        scenarios.iter().map(|scenario| scenario.name.as_str()),
    );
    let steps = scenarios.iter().flat_map(|scenario| &scenario.steps);
    faults.want_names("scenarios[].steps", steps.map(|step| step.name.as_str()));
    for (index, scenario) in scenarios.iter().enumerate() {
        check_scenario(scenario, &mut faults.of(&format!("scenarios[{index}]")));
    }
}

fn check_target(target: &Target, faults: &mut Faults) {
    let is_outside = |byte: u8| byte <= b' ' || byte == 0x7f || b"/@?#".contains(&byte);
    let host = target.host.escape_debug();
    if target.host.is_empty() {
        faults.add("host", "empty: a host name or an address");
    } else if target.host.starts_with('[') {
        let what = format_args!("`{host}` has brackets: write the address without them");
        faults.add("host", what);
    } else if target.host.bytes().any(is_outside) {
        faults.add(
            "host",
            format_args!("`{host}` is not a host name or address"),
        );
    }
    faults.want(target.port > 0, "port", "0 is no port: 1 to 65535");
    let is_authority = |byte: u8| {
        is_value_byte(byte) && byte.is_ascii() && byte > b' ' && !b"/?#@".contains(&byte)
    };
    if target.authority.is_empty() || !target.authority.bytes().all(is_authority) {
        let authority = target.authority.escape_debug();
        let what = format_args!("`{authority}` is not a valid Host header: host or host:port");
        faults.add("authority", what);
    }
}

fn check_scenario(scenario: &Scenario, faults: &mut Faults) {
    let weight = scenario.weight;
    let what = format_args!("{weight} is not above 0");
    faults.want(weight.is_finite() && weight > 0.0, "weight", what);
    let has_steps = !scenario.steps.is_empty();
    faults.want(has_steps, "steps", "none: at least one step");
    for (index, step) in scenario.steps.iter().enumerate() {
        let mut faults = faults.of(&format!("steps[{index}]"));
        for (position, status) in step.expect.iter().enumerate() {
            let what = format_args!("{status} is not a final status: 200 to 599");
            let is_final = (200..=599).contains(status);
            faults.want(is_final, &format!("expect[{position}]"), what);
        }
        check_think(&step.think, &mut faults.of("think"));
    }
}

fn check_think(think: &Think, faults: &mut Faults) {
    let longest = match *think {
        Think::None => 0,
        Think::Fixed { ns } => ns,
        Think::Exponential { mean_ns } => mean_ns,
        Think::Uniform { low_ns, high_ns } => {
            let what = format_args!("low_ns {low_ns} is above high_ns {high_ns}");
            faults.want(low_ns <= high_ns, "", what);
            high_ns
        }
    };
    faults.want(longest <= MAX_NS, "", "over 292 years");
}

#[cfg(test)]
mod tests;
