//! The proxy's own counts, and their text in the Prometheus format.
//!
//! The law: each request that was read has exactly one outcome, or is still on its way.

use std::fmt::Write;

use loadlens_base::units::seconds;
use strum::{EnumMessage, IntoStaticStr, VariantArray};

/// A total since the start; its documentation is the help text of its metric.
#[derive(Clone, Copy, Debug, EnumMessage, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Total {
    /// Connections of clients
    Connections,
    /// Connections that could not be accepted
    AcceptErrors,
    /// Requests whose head was read
    Requests,
    /// Requests given to the service
    Forwarded,
    /// Connections opened to the service
    UpstreamConnections,
    /// Requests on kept connections
    UpstreamReused,
    /// Kept connections that the service ended
    UpstreamEndedIdle,
}

/// Direction of bytes.
#[derive(Clone, Copy, Debug, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Way {
    FromClient,
    ToClient,
    FromUpstream,
    ToUpstream,
}

/// Fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Outcome {
    /// The client got the service's whole answer.
    Passed,
    /// Rejected: the queue was full.
    QueueFull,
    /// Rejected: it had waited as long as it may.
    Waited,
    /// Answered with an injected error.
    Error,
    /// Dropped on purpose.
    Dropped,
    /// Reset on purpose.
    Reset,
    /// The service could not be reached, or its answer was not whole.
    Failed,
    /// The client went away first.
    Gone,
    /// The request could not be read.
    Malformed,
}

/// Failure of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Failure {
    /// No listener.
    Refused,
    /// It could not be connected to for another reason.
    Connect,
    /// It reset the connection.
    Reset,
    /// It ended the connection before an answer.
    Closed,
    /// It ended the connection within an answer.
    Truncated,
    /// Its bytes are no answer.
    Malformed,
    /// It said nothing for too long.
    Timeout,
}

/// Injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Injected {
    DelayRequest,
    DelayResponse,
    Reset,
    Drop,
    Error,
    /// A connection above the bound was reset.
    Connection,
}

/// Upper bounds of the histogram of waiting times, in milliseconds.
const BOUNDS_MS: [u64; 13] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000,
];

const MOST: &str = "The most at once so far";

/// Counts since the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub delayed_ns: u64,
    pub in_flight_most: usize,
    pub waiting_most: usize,
    totals: [u64; Total::VARIANTS.len()],
    bytes: [u64; Way::VARIANTS.len()],
    outcomes: [u64; Outcome::VARIANTS.len()],
    failures: [u64; Failure::VARIANTS.len()],
    injected: [u64; Injected::VARIANTS.len()],
    waits: [u64; BOUNDS_MS.len()],
    waited: u64,
    waited_ns: u64,
}

/// Present state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub connections: usize,
    pub in_flight: usize,
    pub waiting: usize,
    pub idle: usize,
}

impl Counts {
    pub fn add(&mut self, total: Total) {
        self.totals[total as usize] += 1;
    }

    pub fn add_bytes(&mut self, way: Way, count: usize) {
        self.bytes[way as usize] += count as u64;
    }

    pub fn end(&mut self, outcome: Outcome) {
        self.outcomes[outcome as usize] += 1;
    }

    pub fn fail(&mut self, failure: Failure) {
        self.failures[failure as usize] += 1;
    }

    pub fn inject(&mut self, injected: Injected) {
        self.injected[injected as usize] += 1;
    }

    /// A request has waited for a place, whatever came of it.
    pub fn wait(&mut self, waited_ns: u64) {
        self.waited += 1;
        self.waited_ns += waited_ns;
        if let Some(at) = BOUNDS_MS
            .iter()
            .position(|bound| waited_ns <= bound * 1_000_000)
        {
            self.waits[at] += 1;
        }
    }

    /// Returns the counts in the Prometheus text format.
    pub fn text(&self, now: Now) -> String {
        let mut page = Page(String::with_capacity(4096));
        for (total, count) in Total::VARIANTS.iter().zip(self.totals) {
            let help = total.get_documentation().unwrap_or_default();
            page.counter(total.into(), help, count);
        }
        let delayed_s = seconds(self.delayed_ns);
        page.counter("delayed_seconds", "Time added by delays", delayed_s);
        let counts = by_name::<Way>(&self.bytes);
        page.labelled("bytes", "Bytes", "way", counts);
        let counts = by_name::<Outcome>(&self.outcomes);
        page.labelled("outcomes", "What became of the requests", "outcome", counts);
        let counts = by_name::<Injected>(&self.injected);
        page.labelled("injected", "Faults injected", "fault", counts);
        let counts = by_name::<Failure>(&self.failures);
        page.labelled("upstream_errors", "Failures of the service", "kind", counts);
        let (open, idle) = (now.connections, now.idle);
        page.gauge("connections_open", "Open connections of clients", open);
        page.gauge("in_flight", "Requests that the service has", now.in_flight);
        page.gauge("in_flight_most", MOST, self.in_flight_most);
        page.gauge("queue_length", "Requests waiting for a place", now.waiting);
        page.gauge("queue_length_most", MOST, self.waiting_most);
        page.gauge("upstream_idle", "Kept connections without a request", idle);
        self.write_waits(&mut page);
        page.0
    }

    fn write_waits(&self, page: &mut Page) {
        page.head(
            "wait_seconds",
            "Waiting time of requests that had to wait",
            "histogram",
        );
        let mut below = 0;
        for (bound, count) in BOUNDS_MS.iter().zip(self.waits) {
            below += count;
            let bound = *bound as f64 / 1e3;
            page.line(format_args!(
                "wait_seconds_bucket{{le=\"{bound}\"}} {below}"
            ));
        }
        page.line(format_args!(
            "wait_seconds_bucket{{le=\"+Inf\"}} {}",
            self.waited
        ));
        page.line(format_args!("wait_seconds_sum {}", seconds(self.waited_ns)));
        page.line(format_args!("wait_seconds_count {}", self.waited));
    }
}

/// Counts by variant, with the names of the variants.
fn by_name<T: VariantArray + Copy + Into<&'static str>>(
    counts: &[u64],
) -> impl Iterator<Item = (&'static str, u64)> + '_ {
    let names = T::VARIANTS.iter().map(|&variant| variant.into());
    names.zip(counts.iter().copied())
}

/// A page of metrics that grows.
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        self.put(format_args!("# HELP loadlens_proxy_{name} {help}\n"));
        self.put(format_args!("# TYPE loadlens_proxy_{name} {kind}\n"));
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        self.put(format_args!("loadlens_proxy_{text}\n"));
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing into a String cannot fail.
        let _ = self.0.write_fmt(text);
    }

    fn counter(&mut self, name: &str, help: &str, count: impl std::fmt::Display) {
        self.head(&format!("{name}_total"), help, "counter");
        self.line(format_args!("{name}_total {count}"));
    }

    fn gauge(&mut self, name: &str, help: &str, value: usize) {
        self.head(name, help, "gauge");
        self.line(format_args!("{name} {value}"));
    }

    fn labelled<'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        counts: impl Iterator<Item = (&'a str, u64)>,
    ) {
        self.head(&format!("{name}_total"), help, "counter");
        for (value, count) in counts {
            self.line(format_args!("{name}_total{{{label}=\"{value}\"}} {count}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_stands_under_its_own_name() {
        for (at, which) in Outcome::VARIANTS.iter().enumerate() {
            assert_eq!(*which as usize, at);
        }
        for (at, which) in Failure::VARIANTS.iter().enumerate() {
            assert_eq!(*which as usize, at);
        }
        for (at, which) in Injected::VARIANTS.iter().enumerate() {
            assert_eq!(*which as usize, at);
        }
    }

    #[test]
    fn waiting_times_are_a_histogram() {
        let mut counts = Counts::default();
        for ms in [1, 3, 3, 20_000] {
            counts.wait(ms * 1_000_000);
        }

        let text = counts.text(Now {
            connections: 0,
            in_flight: 0,
            waiting: 0,
            idle: 0,
        });

        let has =
            |line: &str| assert!(text.contains(&format!("loadlens_proxy_{line}\n")), "{line}");
        has("wait_seconds_bucket{le=\"0.001\"} 1");
        has("wait_seconds_bucket{le=\"0.002\"} 1");
        has("wait_seconds_bucket{le=\"0.005\"} 3");
        has("wait_seconds_bucket{le=\"10\"} 3");
        has("wait_seconds_bucket{le=\"+Inf\"} 4");
        has("wait_seconds_sum 20.007");
    }
}
