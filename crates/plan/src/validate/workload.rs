//! Faults of when requests are due: users, rates, profiles, replays and paces.

use loadlens_base::Faults;

use crate::{Arrivals, Profile, Replay, Stream, Think, Workload};

use super::{check_think, MAX_NS};

/// Slowest and fastest rate: one in eleven days, and one for each 10 ns.
const RATES: std::ops::RangeInclusive<f64> = 1e-6..=1e8;
/// Parts of a profile.
const MAX_SEGMENTS: usize = 10_000;
/// The shortest mean pace: a user who cannot keep to it leaves so many due times behind.
const MIN_PACE_NS: f64 = 1e6;

/// True if the workload of a stream says when its load ends.
pub(crate) fn ends_by_itself(stream: &Stream) -> bool {
    let (has_count, requests, profile) = match &stream.workload {
        Workload::Closed {
            iterations,
            requests,
            profile,
            ..
        } => (iterations.is_some(), requests, profile),
        Workload::Open {
            requests,
            profile,
            replay,
            ..
        } => (replay.is_some(), requests, profile),
    };
    has_count || requests.is_some() || profile.as_ref().is_some_and(Profile::ends)
}

pub(super) fn check_workload(workload: &Workload, faults: &mut Faults) {
    const NO_COUNT: &str = "0: at least 1, or leave it out";
    let requests = match workload {
        Workload::Closed {
            users,
            think,
            pace,
            ramp_ns,
            profile,
            iterations,
            requests,
        } => {
            if let Some(profile) = profile {
                check_profile(profile, f64::from(*users), &mut faults.of("profile"));
            }
            check_think(think, &mut faults.of("think"));
            if let Some(pace) = pace {
                check_pace(pace, &mut faults.of("pace"));
            }
            faults.want(*users > 0, "users", "0: at least 1");
            faults.want(*iterations != Some(0), "iterations", NO_COUNT);
            faults.want(*ramp_ns <= MAX_NS, "ramp_ns", "over 292 years");
            let what = "a ramp and a profile: the profile says when users come";
            faults.want(profile.is_none() || *ramp_ns == 0, "ramp_ns", what);
            let what = "a pace and a think time: one of them says when the next iteration is due";
            faults.want(pace.is_none() || *think == Think::None, "pace", what);
            requests
        }
        Workload::Open {
            rate_per_s,
            profile,
            replay,
            arrivals,
            max_in_flight,
            requests,
            ..
        } => {
            let (slowest, fastest) = (RATES.start(), RATES.end());
            if let Some(profile) = profile {
                check_profile(profile, *fastest, &mut faults.of("profile"));
                let is_slow = (f64::MIN_POSITIVE..*slowest).contains(&profile.peak());
                let what = format_args!("never above {slowest:e} per second");
                faults.want(!is_slow, "profile", what);
            }
            if let Some(replay) = replay {
                check_replay(replay, &mut faults.of("replay"));
            }
            let given = [rate_per_s.is_some(), profile.is_some(), replay.is_some()];
            let count = given.iter().filter(|is_given| **is_given).count();
            let what = "an open workload has one of rate_per_s, profile and replay";
            faults.want(count == 1, "rate_per_s", what);
            if let Some(rate) = rate_per_s.filter(|rate| !RATES.contains(rate)) {
                let what = format_args!("{rate} is not from {slowest:e} to {fastest:e} per second");
                faults.add("rate_per_s", what);
            }
            let has_no_law = *arrivals == Arrivals::default();
            let what = "a replay has no law: its due times are in the file";
            faults.want(replay.is_none() || has_no_law, "arrivals", what);
            faults.want(*max_in_flight > 0, "max_in_flight", "0: at least 1");
            requests
        }
    };
    faults.want(*requests != Some(0), "requests", NO_COUNT);
}

fn check_profile(profile: &Profile, highest: f64, faults: &mut Faults) {
    let count = profile.segments.len();
    let what = format_args!("{count} segments: from 1 to {MAX_SEGMENTS}");
    faults.want((1..=MAX_SEGMENTS).contains(&count), "segments", what);
    let mut total = Some(0u64);
    for (index, segment) in profile.segments.iter().enumerate() {
        let mut faults = faults.of(&format!("segments[{index}]"));
        faults.want(segment.ns > 0, "ns", "0: above 0");
        for (end, level) in [("start", segment.start), ("end", segment.end)] {
            let what = format_args!("{level} is not from 0 to {highest}");
            faults.want((0.0..=highest).contains(&level), end, what);
        }
        total = total.and_then(|ns| ns.checked_add(segment.ns));
    }
    let is_time = total.is_some_and(|ns| ns <= MAX_NS);
    faults.want(is_time, "segments", "over 292 years");
    let has_load = count == 0 || profile.peak() > 0.0;
    faults.want(has_load, "segments", "nothing is ever asked");
}

fn check_replay(replay: &Replay, faults: &mut Faults) {
    let (speed, peak) = (replay.speed, replay.peak_per_s);
    let what = format_args!("{speed} is not above 0");
    faults.want(speed.is_finite() && speed > 0.0, "speed", what);
    faults.want(replay.arrivals > 0, "arrivals", "0: at least one due time");
    let what = format_args!("{peak} is not a number of arrivals");
    faults.want(peak >= 0.0 && peak.is_finite(), "peak_per_s", what);
}

fn check_pace(pace: &Think, faults: &mut Faults) {
    check_think(pace, faults);
    let what = "the mean pace is below 1 ms: for as fast as possible, no pace";
    faults.want(pace.mean_ns() >= MIN_PACE_NS, "", what);
}
