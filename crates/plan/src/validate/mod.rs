//! Every fault of a plan at once.
//!
//! Here is what the shape of a plan demands, but for when requests are due, which is in `workload`; templates, headers,
//! bodies and checks are judged by the compiler in `program`, which reads no file and no environment for it.

mod workload;

use std::collections::HashSet;

use loadlens_base::Fault;
use loadlens_http::request::is_value_byte;

use crate::program;
use crate::{
    Connection, Cookies, Plan, Reuse, Role, Scenario, Stream, Target, Think, Workload,
    SCHEMA_VERSION,
};

use workload::check_workload;
pub(crate) use workload::ends_by_itself;

/// The stream of a sample is one byte in the record.
const MAX_STREAMS: usize = 255;
/// The step of a sample is two bytes in the record.
const MAX_STEPS: usize = 65_535;
const MAX_THREADS: u32 = 1024;
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

/// The faults of everything but templates, headers, bodies and checks.
pub(crate) fn structure(plan: &Plan, faults: &mut Vec<Fault>) {
    let mut fault = |place: &str, what: String| faults.push(Fault::new(place, what));
    if plan.schema_version != SCHEMA_VERSION {
        fault(
            "schema_version",
            format!(
                "{} is not the version of this engine, {SCHEMA_VERSION}",
                plan.schema_version
            ),
        );
    }
    if plan.share.of == 0 {
        fault("share.of", "0 parts: at least 1".to_owned());
    } else if plan.share.index >= plan.share.of {
        fault(
            "share.index",
            format!(
                "{} is not below share.of, {}",
                plan.share.index, plan.share.of
            ),
        );
    }
    if plan
        .threads
        .is_some_and(|threads| !(1..=MAX_THREADS).contains(&threads))
    {
        fault(
            "threads",
            format!(
                "{} is not from 1 to {MAX_THREADS}",
                plan.threads.unwrap_or_default()
            ),
        );
    }
    if plan.cpus.as_ref().is_some_and(Vec::is_empty) {
        fault(
            "cpus",
            "an empty list: leave it out for no pinning".to_owned(),
        );
    }
    let total = plan
        .warmup_ns
        .checked_add(plan.duration_ns.unwrap_or(0))
        .and_then(|ns| ns.checked_add(plan.drain_ns));
    if total.is_none_or(|ns| ns > MAX_NS) {
        fault(
            "duration_ns",
            "warm-up, duration and drain together are over 292 years".to_owned(),
        );
    }
    if plan
        .record
        .as_ref()
        .is_some_and(|record| record.dir.is_empty())
    {
        fault(
            "record.dir",
            "empty: the folder that the live files go to".to_owned(),
        );
    }
    if plan.streams.is_empty() {
        fault("streams", "none: at least one stream".to_owned());
    }
    if plan.streams.len() > MAX_STREAMS {
        fault(
            "streams",
            format!("{} streams, at most {MAX_STREAMS}", plan.streams.len()),
        );
    }
    names_differ(
        plan.streams.iter().map(|stream| stream.name.as_str()),
        "streams",
        faults,
    );
    if !plan.streams.is_empty() && plan.streams.iter().all(|stream| stream.role == Role::Probe) {
        faults.push(Fault::new(
            "streams",
            "only probes: at least one stream of role load",
        ));
    }
    for (index, stream) in plan.streams.iter().enumerate() {
        let at = format!("streams[{index}]");
        check_stream(stream, &at, faults);
    }
}

fn check_stream(stream: &Stream, at: &str, faults: &mut Vec<Fault>) {
    check_target(&stream.target, at, faults);
    check_workload(&stream.workload, at, faults);
    check_connection(&stream.connection, at, faults);
    let mut fault =
        |place: &str, what: String| faults.push(Fault::new(format!("{at}.{place}"), what));
    if stream.timeout_ns == 0 || stream.timeout_ns > MAX_NS {
        fault(
            "timeout_ns",
            format!("{} is not from 1 ns to 292 years", stream.timeout_ns),
        );
    }
    if stream.cookies == Cookies::Keep && matches!(stream.workload, Workload::Open { .. }) {
        let what = "keep: each arrival of an open stream is somebody new; iteration keeps them as long as it can";
        fault("cookies", what.to_owned());
    }
    if stream.scenarios.is_empty() {
        fault("scenarios", "none: at least one scenario".to_owned());
    }
    let steps: usize = stream
        .scenarios
        .iter()
        .map(|scenario| scenario.steps.len())
        .sum();
    if steps > MAX_STEPS {
        fault(
            "scenarios",
            format!("{steps} steps in all, at most {MAX_STEPS}"),
        );
    }
    let scenarios = format!("{at}.scenarios");
    names_differ(
        stream
            .scenarios
            .iter()
            .map(|scenario| scenario.name.as_str()),
        &scenarios,
        faults,
    );
    let step_names = stream
        .scenarios
        .iter()
        .flat_map(|scenario| scenario.steps.iter().map(|step| step.name.as_str()));
    names_differ(step_names, &format!("{scenarios}[].steps"), faults);
    for (index, scenario) in stream.scenarios.iter().enumerate() {
        check_scenario(scenario, &format!("{scenarios}[{index}]"), faults);
    }
}

fn check_target(target: &Target, at: &str, faults: &mut Vec<Fault>) {
    let mut fault =
        |place: &str, what: String| faults.push(Fault::new(format!("{at}.target.{place}"), what));
    let host = target.host.escape_debug();
    if target.host.is_empty() {
        fault("host", "empty: a host name or an address".to_owned());
    } else if target.host.starts_with('[') {
        fault(
            "host",
            format!("`{host}` has brackets: write the address without them"),
        );
    } else if target
        .host
        .bytes()
        .any(|byte| byte <= b' ' || byte == 0x7f || b"/@?#".contains(&byte))
    {
        fault("host", format!("`{host}` is no host name or address"));
    }
    if target.port == 0 {
        fault("port", "0 is no port: 1 to 65535".to_owned());
    }
    let is_authority = |byte: u8| {
        is_value_byte(byte) && byte.is_ascii() && byte > b' ' && !b"/?#@".contains(&byte)
    };
    if target.authority.is_empty() || !target.authority.bytes().all(is_authority) {
        let authority = target.authority.escape_debug();
        fault(
            "authority",
            format!("`{authority}` is no value of a Host header: host or host:port"),
        );
    }
}

fn check_connection(connection: &Connection, at: &str, faults: &mut Vec<Fault>) {
    if connection.reuse == (Reuse::Requests { requests: 0 }) {
        faults.push(Fault::new(
            format!("{at}.connection.reuse.requests"),
            "0: at least 1",
        ));
    }
    if connection.pool == Some(0) {
        faults.push(Fault::new(
            format!("{at}.connection.pool"),
            "0: at least 1, or leave it out",
        ));
    }
}

fn check_scenario(scenario: &Scenario, at: &str, faults: &mut Vec<Fault>) {
    if !(scenario.weight.is_finite() && scenario.weight > 0.0) {
        faults.push(Fault::new(
            format!("{at}.weight"),
            format!("{} is not above 0", scenario.weight),
        ));
    }
    if scenario.steps.is_empty() {
        faults.push(Fault::new(format!("{at}.steps"), "none: at least one step"));
    }
    for (index, step) in scenario.steps.iter().enumerate() {
        for (position, status) in step.expect.iter().enumerate() {
            if !(200..=599).contains(status) {
                let what = format!("{status} is no final status: 200 to 599");
                faults.push(Fault::new(
                    format!("{at}.steps[{index}].expect[{position}]"),
                    what,
                ));
            }
        }
        check_think(&step.think, &format!("{at}.steps[{index}].think"), faults);
    }
}

fn check_think(think: &Think, at: &str, faults: &mut Vec<Fault>) {
    let longest = match *think {
        Think::None => 0,
        Think::Fixed { ns } => ns,
        Think::Exponential { mean_ns } => mean_ns,
        Think::Uniform { low_ns, high_ns } => {
            if low_ns > high_ns {
                faults.push(Fault::new(
                    at,
                    format!("low_ns {low_ns} is above high_ns {high_ns}"),
                ));
            }
            high_ns
        }
    };
    if longest > MAX_NS {
        faults.push(Fault::new(at, "over 292 years"));
    }
}

/// Names are neither empty nor used twice.
fn names_differ<'a>(names: impl Iterator<Item = &'a str>, at: &str, faults: &mut Vec<Fault>) {
    let mut seen = HashSet::new();
    for name in names {
        if name.is_empty() {
            faults.push(Fault::new(at, "an empty name"));
        } else if !seen.insert(name) {
            faults.push(Fault::new(
                at,
                format!("two are named `{}`", name.escape_debug()),
            ));
        }
    }
}

#[cfg(test)]
mod tests;
