//! Faults of when requests are due: users, rates, profiles, replays and paces.

use loadlens_base::Fault;

use crate::{Profile, Replay, Stream, Think, Workload};

use super::{check_think, MAX_NS};

/// Slowest and fastest rate: one in eleven days, and one for each 10 ns.
const RATES: std::ops::RangeInclusive<f64> = 1e-6..=1e8;
/// Parts of a profile.
const MAX_SEGMENTS: usize = 10_000;
/// The shortest mean pace: a user who cannot keep to it leaves so many due times behind.
const MIN_PACE_NS: f64 = 1e6;

pub(crate) fn ends_by_itself(stream: &Stream) -> bool {
    match &stream.workload {
        Workload::Closed {
            iterations,
            requests,
            profile,
            ..
        } => {
            let leave = profile.as_ref().is_some_and(Profile::ends);
            iterations.is_some() || requests.is_some() || leave
        }
        Workload::Open {
            requests,
            profile,
            replay,
            ..
        } => {
            let ends = profile.as_ref().is_some_and(Profile::ends);
            requests.is_some() || replay.is_some() || ends
        }
    }
}

pub(super) fn check_workload(workload: &Workload, at: &str, faults: &mut Vec<Fault>) {
    let at = format!("{at}.workload");
    let requests = match workload {
        Workload::Closed { requests, .. } => {
            check_closed(workload, &at, faults);
            requests
        }
        Workload::Open { requests, .. } => {
            check_open(workload, &at, faults);
            requests
        }
    };
    if *requests == Some(0) {
        faults.push(Fault::new(
            format!("{at}.requests"),
            "0: at least 1, or leave it out",
        ));
    }
}

fn check_closed(workload: &Workload, at: &str, faults: &mut Vec<Fault>) {
    let Workload::Closed {
        users,
        think,
        pace,
        ramp_ns,
        profile,
        iterations,
        ..
    } = workload
    else {
        return;
    };
    if let Some(profile) = profile {
        check_profile(profile, f64::from(*users), &format!("{at}.profile"), faults);
    }
    check_think(think, &format!("{at}.think"), faults);
    if let Some(pace) = pace {
        check_pace(pace, &format!("{at}.pace"), faults);
    }
    let mut fault =
        |place: &str, what: &str| faults.push(Fault::new(format!("{at}.{place}"), what));
    if *users == 0 {
        fault("users", "0: at least 1");
    }
    if *iterations == Some(0) {
        fault("iterations", "0: at least 1, or leave it out");
    }
    if *ramp_ns > MAX_NS {
        fault("ramp_ns", "over 292 years");
    }
    if profile.is_some() && *ramp_ns > 0 {
        fault(
            "ramp_ns",
            "a ramp and a profile: the profile says when users come",
        );
    }
    if pace.is_some() && *think != Think::None {
        fault(
            "pace",
            "a pace and a think time: one of them says when the next iteration is due",
        );
    }
}

fn check_open(workload: &Workload, at: &str, faults: &mut Vec<Fault>) {
    let Workload::Open {
        rate_per_s,
        profile,
        replay,
        max_in_flight,
        arrivals,
        ..
    } = workload
    else {
        return;
    };
    if let Some(profile) = profile {
        let at = format!("{at}.profile");
        check_profile(profile, *RATES.end(), &at, faults);
        if (f64::MIN_POSITIVE..*RATES.start()).contains(&profile.peak()) {
            let what = format!("never above {:e} per second", RATES.start());
            faults.push(Fault::new(at, what));
        }
    }
    if let Some(replay) = replay {
        check_replay(replay, &format!("{at}.replay"), faults);
    }
    let mut fault =
        |place: &str, what: String| faults.push(Fault::new(format!("{at}.{place}"), what));
    let given = [rate_per_s.is_some(), profile.is_some(), replay.is_some()];
    if given.iter().filter(|is_given| **is_given).count() != 1 {
        fault(
            "rate_per_s",
            "an open workload has one of rate_per_s, profile and replay".to_owned(),
        );
    }
    if let Some(rate) = rate_per_s.filter(|rate| !RATES.contains(rate)) {
        let (slowest, fastest) = (RATES.start(), RATES.end());
        fault(
            "rate_per_s",
            format!("{rate} is not from {slowest:e} to {fastest:e} per second"),
        );
    }
    if replay.is_some() && *arrivals != Default::default() {
        fault(
            "arrivals",
            "a replay has no law: its due times are in the file".to_owned(),
        );
    }
    if *max_in_flight == 0 {
        fault("max_in_flight", "0: at least 1".to_owned());
    }
}

fn check_profile(profile: &Profile, highest: f64, at: &str, faults: &mut Vec<Fault>) {
    let mut fault = |place: String, what: String| faults.push(Fault::new(place, what));
    if profile.segments.is_empty() || profile.segments.len() > MAX_SEGMENTS {
        let count = profile.segments.len();
        fault(
            format!("{at}.segments"),
            format!("{count} segments: from 1 to {MAX_SEGMENTS}"),
        );
    }
    for (index, segment) in profile.segments.iter().enumerate() {
        if segment.ns == 0 {
            fault(
                format!("{at}.segments[{index}].ns"),
                "0: above 0".to_owned(),
            );
        }
        for (end, level) in [("start", segment.start), ("end", segment.end)] {
            if !(0.0..=highest).contains(&level) {
                fault(
                    format!("{at}.segments[{index}].{end}"),
                    format!("{level} is not from 0 to {highest}"),
                );
            }
        }
    }
    let total = profile
        .segments
        .iter()
        .try_fold(0u64, |total, segment| total.checked_add(segment.ns));
    if total.is_none_or(|ns| ns > MAX_NS) {
        fault(format!("{at}.segments"), "over 292 years".to_owned());
    }
    if !profile.segments.is_empty() && profile.peak() <= 0.0 {
        fault(format!("{at}.segments"), "nothing is ever asked".to_owned());
    }
}

fn check_replay(replay: &Replay, at: &str, faults: &mut Vec<Fault>) {
    let mut fault =
        |place: &str, what: String| faults.push(Fault::new(format!("{at}.{place}"), what));
    if !(replay.speed.is_finite() && replay.speed > 0.0) {
        fault("speed", format!("{} is not above 0", replay.speed));
    }
    if replay.arrivals == 0 {
        fault("arrivals", "0: at least one due time".to_owned());
    }
    if !(replay.peak_per_s >= 0.0 && replay.peak_per_s.is_finite()) {
        let what = format!("{} is no number of arrivals", replay.peak_per_s);
        fault("peak_per_s", what);
    }
}

fn check_pace(pace: &Think, at: &str, faults: &mut Vec<Fault>) {
    check_think(pace, at, faults);
    if pace.mean_ns() < MIN_PACE_NS {
        let what = "the mean pace is below 1 ms: for as fast as possible, no pace";
        faults.push(Fault::new(at, what));
    }
}
