//! Trust in the generator itself: how busy, how late and how starved it was.
//!
//! A load generator is on trial too. A thread that is always busy limits the throughput it measures; one
//! that waits for a core or comes late lengthens the times that it measures.

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

/// Work of the generator in the measured part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signs {
    /// Engine threads.
    pub threads: usize,
    /// Busy share of the busiest thread.
    pub busy: Option<f64>,
    /// Share of the time that the most starved thread waited for a core.
    pub runq_wait: Option<f64>,
    /// Share of the time that the worst thread did not run though it had something to do.
    pub stalled: Option<f64>,
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
}

/// `generator` in the result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Health {
    threads: usize,
    busy: Option<f64>,
    runq_wait: Option<f64>,
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
    /// Reasons in words, with the numbers.
    pub reasons: Vec<String>,
}

impl Health {
    /// Judges the signs; limit is worse than starved, starved worse than late.
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
        if let Some(share) = signs.stalled.filter(|share| *share > 0.0) {
            if share > STALLED_LIMIT {
                verdict = Verdict::Starved;
            }
            let percent = 100.0 * share;
            reasons.push(format!(
                "a thread did not run for {percent:.1} % of the time: stopped, or without a core"
            ));
        }
        if let Some(busy) = signs.busy.filter(|busy| *busy >= BUSY_LIMIT) {
            verdict = Verdict::Limit;
            reasons.push(format!(
                "a thread was busy {:.0} % of the time: throughput is a lower bound",
                100.0 * busy
            ));
        }
        Health {
            threads: signs.threads,
            busy: signs.busy,
            runq_wait: signs.runq_wait,
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
        stalled: Some(0.0),
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
    fn a_stop_of_five_seconds_is_the_generators_fault() {
        let stopped = Signs {
            stalled: Some(0.5),
            ..QUIET
        };
        let hiccup = Signs {
            stalled: Some(0.004),
            ..QUIET
        };

        assert_eq!(Health::of(&stopped).verdict, Verdict::Starved);
        assert_eq!(
            (
                Health::of(&hiccup).verdict,
                Health::of(&hiccup).reasons.len()
            ),
            (Verdict::KeptUp, 1)
        );
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
