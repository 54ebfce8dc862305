//! Trust in the generator itself: how busy, how late and how starved it was.
//!
//! A load generator is on trial too. A thread that is always busy limits the throughput it measures; one
//! that waits for a core or comes late lengthens the times that it measures; one that stood still for a while
//! measured nothing meanwhile.

use serde::Serialize;

use loadlens_base::units::seconds;

/// From this busy share on a thread is the limit: throughput is a lower bound.
pub const BUSY_LIMIT: f64 = 0.95;
/// A lag below this is never called late: timer and scheduler of a quiet machine.
pub const LAG_FLOOR_S: f64 = 100e-6;
/// Above this share of the median response time, lag is part of what was measured.
pub const LAG_SHARE: f64 = 0.02;
/// Above this, or above [`MARK_SHARE`] of the service's 99th percentile, lateness marks a result whatever the median.
pub const MARK_S: f64 = 1e-3;
/// See [`MARK_S`].
pub const MARK_SHARE: f64 = 0.1;
/// Below this busy share a ceiling would be a guess.
pub const LEAST_BUSY: f64 = 0.02;
/// From this share of the time spent waiting for a core on, times are suspect and a reason says so.
pub const RUNQ_NOTED: f64 = 0.01;
/// From this share on the verdict is `starved`.
pub const RUNQ_LIMIT: f64 = 0.05;

/// From this share of the time in which a thread did not run on, the verdict is `starved`. Stalls are rare and
/// long, and what was in flight meanwhile looks slow.
pub const STALLED_LIMIT: f64 = 0.01;
/// From this share on, and from [`LOST_LEAST_S`] on, the verdict is `stood_still`: a closed load has done so much
/// less, and the quantiles above are those of the standstill.
pub const LOST_SHARE: f64 = 0.02;
/// Schedulers make a thread wait for tenths of a second at most; a short load may meet one such wait.
pub const LOST_LEAST_S: f64 = 0.25;

/// Work of the generator in the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signs {
    /// Engine threads.
    pub threads: usize,
    /// Busy share of the busiest thread.
    pub busy: Option<f64>,
    /// Share of the time that the most starved thread waited for a core.
    pub runq_wait: Option<f64>,
    /// Time for which the worst thread did not run though it had something to do.
    pub stood_still_ns: u64,
    /// Time for which the machine was suspended, which is no part of `measured_ns`.
    pub suspended_ns: u64,
    /// Length of the measured part.
    pub measured_ns: u64,
    /// 99th percentile of lag, of all load streams.
    pub lag_p99_ns: Option<u64>,
    /// Median response time of the load streams.
    pub response_p50_ns: Option<u64>,
    /// 99th percentile of the service time of the load streams.
    pub service_p99_ns: Option<u64>,
    /// Requests that ended in the measured part, a second.
    pub requests_per_s: Option<f64>,
    /// CPU time of the engine's threads in the whole run.
    pub cpu_ns: u64,
}

/// The worst that can be said of the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing speaks against the figures.
    KeptUp,
    /// Requests left later than they were due.
    Late,
    /// A thread had no time left.
    Limit,
    /// A thread waited for a core.
    Starved,
    /// A thread, or the machine, did not run for a part of the time: the result is not valid.
    StoodStill,
}

/// `generator` in the result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Health {
    threads: usize,
    busy: Option<f64>,
    runq_wait: Option<f64>,
    /// The worst thread, in the measured part.
    stood_still_s: f64,
    /// The machine, in the whole run.
    suspended_s: f64,
    lag_p99_s: Option<f64>,
    lag_limit_s: f64,
    /// True if lateness alone marks the result.
    is_marked_late: bool,
    requests_per_s: Option<f64>,
    /// Requests a second at which the busiest thread would have had no time left; more where a busy thread batches.
    ceiling_rps: Option<f64>,
    cpu_s: f64,
    /// The worst that can be said.
    pub verdict: Verdict,
    /// Reasons in words, with the numbers; that of a standstill comes first.
    pub reasons: Vec<String>,
}

impl Health {
    /// Judges the signs; standing still is worse than limit, limit than starved, starved than late.
    pub fn of(signs: &Signs) -> Health {
        let lag_p99_s = signs.lag_p99_ns.map(seconds);
        let lag_limit_s = signs
            .response_p50_ns
            .map_or(0.0, |p50| LAG_SHARE * seconds(p50))
            .max(LAG_FLOOR_S);
        let is_late = lag_p99_s.is_some_and(|lag| lag > lag_limit_s);
        let is_marked_late = is_late || is_marked(lag_p99_s, signs);
        let mut verdict = Verdict::KeptUp;
        let mut reasons = Vec::new();
        if is_late {
            verdict = Verdict::Late;
        }
        if let Some(lag) = lag_p99_s.filter(|_| is_marked_late) {
            let compared = if is_late {
                format!(" (limit {})", in_words(lag_limit_s * 1e6))
            } else {
                ": small compared with these times, but not negligible".to_owned()
            };
            let lag = in_words(lag * 1e6);
            reasons.push(format!(
                "1 % of the requests left more than {lag} after they were due{compared}"
            ));
        }
        if let Some(share) = signs.runq_wait.filter(|share| *share > RUNQ_NOTED) {
            if share > RUNQ_LIMIT {
                verdict = Verdict::Starved;
            }
            reasons.push(format!(
                "a thread waited for a core {:.1} % of the time",
                100.0 * share
            ));
        }
        let (still_s, suspended_s) = (seconds(signs.stood_still_ns), seconds(signs.suspended_ns));
        let measured_s = seconds(signs.measured_ns);
        if still_s > STALLED_LIMIT * measured_s {
            verdict = Verdict::Starved;
        }
        if let Some(busy) = signs.busy.filter(|busy| *busy >= BUSY_LIMIT) {
            verdict = Verdict::Limit;
            reasons.push(format!(
                "a thread was busy {:.0} % of the time: throughput is a lower bound",
                100.0 * busy
            ));
        }
        let lost_s = still_s + suspended_s;
        if lost_s >= LOST_LEAST_S && lost_s >= LOST_SHARE * (measured_s + suspended_s) {
            verdict = Verdict::StoodStill;
        }
        if still_s > 0.0 {
            let (still, of) = (short_seconds(still_s), short_seconds(measured_s));
            let words = format!("the load generator stood still for {still} of {of}");
            reasons.insert(0, words + " (stopped, or without a core)");
        }
        if suspended_s >= LOST_LEAST_S {
            let lasted = short_seconds(suspended_s);
            reasons.insert(
                0,
                format!("the machine was suspended for {lasted} during the load"),
            );
        }
        Health {
            threads: signs.threads,
            busy: signs.busy,
            runq_wait: signs.runq_wait,
            stood_still_s: still_s,
            suspended_s,
            lag_p99_s,
            lag_limit_s,
            is_marked_late,
            requests_per_s: signs.requests_per_s,
            ceiling_rps: signs
                .busy
                .filter(|busy| *busy >= LEAST_BUSY)
                .and_then(|busy| Some(signs.requests_per_s? / busy)),
            cpu_s: seconds(signs.cpu_ns),
            verdict,
            reasons,
        }
    }
}

impl Health {
    /// Adds what else is to be known of the machine.
    pub fn and_notes(mut self, notes: Vec<String>) -> Health {
        self.reasons.extend(notes);
        self
    }
}

/// True if lateness is more than a millisecond, or a tenth of the service's own tail; never below the floor.
fn is_marked(lag_p99_s: Option<f64>, signs: &Signs) -> bool {
    let of_service = signs
        .service_p99_ns
        .map_or(MARK_S, |p99| MARK_SHARE * seconds(p99));
    lag_p99_s.is_some_and(|lag| lag > of_service.clamp(LAG_FLOOR_S, MARK_S))
}

/// Seconds for people: `0.13 s`, `3.0 s`, `60 s`.
fn short_seconds(s: f64) -> String {
    let decimals = match s {
        s if s < 1.0 => 2,
        s if s < 10.0 => 1,
        _ => 0,
    };
    format!("{s:.decimals$} s")
}

/// Microseconds for people.
fn in_words(us: f64) -> String {
    if us < 1_000.0 {
        format!("{us:.0} µs")
    } else {
        format!("{:.1} ms", us / 1_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Signs = Signs {
        threads: 1,
        busy: Some(0.4),
        runq_wait: Some(0.001),
        stood_still_ns: 0,
        suspended_ns: 0,
        measured_ns: 10_000_000_000,
        lag_p99_ns: Some(60_000),
        response_p50_ns: Some(1_000_000),
        service_p99_ns: Some(2_000_000),
        requests_per_s: Some(1_000.0),
        cpu_ns: 0,
    };

    #[test]
    fn a_quiet_generator_has_kept_up_and_gives_no_reasons() {
        let health = Health::of(&QUIET);

        assert_eq!((health.verdict, health.reasons.len()), (Verdict::KeptUp, 0));
    }

    #[test]
    fn lag_is_judged_against_two_percent_of_the_median_or_100_us() {
        let late = Signs {
            lag_p99_ns: Some(101_000),
            ..QUIET
        };
        let slow_service = Signs {
            response_p50_ns: Some(10_000_000),
            ..late
        };

        assert_eq!(Health::of(&late).verdict, Verdict::Late);
        assert_eq!(Health::of(&slow_service).verdict, Verdict::KeptUp); // 2 % of 10 ms are 200 us
    }

    #[test]
    fn lateness_of_a_millisecond_or_a_tenth_of_the_tail_is_marked_whatever_the_median() {
        let marked = |lag_us: u64, p50_ms: u64, p99_ms: u64| {
            let health = Health::of(&Signs {
                lag_p99_ns: Some(lag_us * 1_000),
                response_p50_ns: Some(p50_ms * 1_000_000),
                service_p99_ns: Some(p99_ms * 1_000_000),
                ..QUIET
            });
            (health.is_marked_late, health.verdict, health.reasons.len())
        };

        assert_eq!(marked(1_001, 100, 500), (true, Verdict::KeptUp, 1)); // 2 % of the median are 2 ms
        assert_eq!(marked(1_000, 100, 500), (false, Verdict::KeptUp, 0));
        assert_eq!(marked(501, 30, 5), (true, Verdict::KeptUp, 1)); // of failures, say: p99 below the median
        assert_eq!(marked(99, 1, 0), (false, Verdict::KeptUp, 0)); // never below the floor
        assert_eq!(marked(2_001, 100, 500), (true, Verdict::Late, 1));
    }

    #[test]
    fn a_ceiling_is_the_rate_of_a_thread_without_time_left() {
        let ceiling = |busy: f64| {
            Health::of(&Signs {
                busy: Some(busy),
                ..QUIET
            })
            .ceiling_rps
        };

        assert_eq!(ceiling(0.25), Some(4_000.0)); // 1,000/s in a quarter of the time
        assert_eq!(ceiling(0.01), None);
    }

    #[test]
    fn a_part_of_the_load_without_the_generator_is_no_valid_load() {
        let after = |still_ms: u64, suspended_ms: u64, measured_ms: u64| {
            let health = Health::of(&Signs {
                stood_still_ns: still_ms * 1_000_000,
                suspended_ns: suspended_ms * 1_000_000,
                measured_ns: measured_ms * 1_000_000,
                busy: Some(0.97),
                ..QUIET
            });
            (health.verdict, health.reasons[0].clone())
        };

        let (verdict, reason) = after(3_000, 0, 6_000);
        assert_eq!(verdict, Verdict::StoodStill); // worse than `limit`
        assert_eq!(
            reason,
            "the load generator stood still for 3.0 s of 6.0 s (stopped, or without a core)"
        );
        assert_eq!(after(249, 0, 300).0, Verdict::Limit); // one wait for a core, in a short load
        assert_eq!(after(1_000, 0, 60_000).0, Verdict::Limit); // less than 2 % of 60 s
        assert_eq!(after(1_200, 0, 60_000).0, Verdict::StoodStill);
        let (verdict, reason) = after(0, 30_000, 10_000);
        assert_eq!(verdict, Verdict::StoodStill);
        assert_eq!(reason, "the machine was suspended for 30 s during the load");
    }

    #[test]
    fn a_short_stall_is_a_reason_and_a_longer_one_marks_the_figures() {
        let after = |still_ms: u64| {
            let stalled = Health::of(&Signs {
                stood_still_ns: still_ms * 1_000_000,
                ..QUIET
            });
            (stalled.verdict, stalled.reasons.len())
        };

        assert_eq!(after(40), (Verdict::KeptUp, 1)); // of 10 s
        assert_eq!(after(110), (Verdict::Starved, 1));
    }

    #[test]
    fn the_worst_sign_gives_the_verdict_and_all_give_reasons() {
        let bad = Signs {
            busy: Some(0.97),
            runq_wait: Some(0.2),
            lag_p99_ns: Some(5_000_000),
            ..QUIET
        };
        let starved = Signs {
            busy: Some(0.5),
            ..bad
        };
        let noted = Signs {
            runq_wait: Some(0.02),
            ..QUIET
        };

        assert_eq!(
            (Health::of(&bad).verdict, Health::of(&bad).reasons.len()),
            (Verdict::Limit, 3)
        );
        assert_eq!(Health::of(&starved).verdict, Verdict::Starved);
        assert_eq!(
            (Health::of(&noted).verdict, Health::of(&noted).reasons.len()),
            (Verdict::KeptUp, 1)
        );
    }
}
