//! Settings of a proxy: its addresses and the faults it injects. The study's `faults` come here as JSON.

use std::net::SocketAddrV4;

use loadlens_base::{Fault, Faults as FaultList};
use serde::Deserialize;

/// All settings of a proxy.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Address for clients; port 0: a free one.
    pub listen: SocketAddrV4,
    /// Address at which its counts are read.
    pub control: SocketAddrV4,
    /// Services behind it; requests go to them in turn.
    pub upstreams: Vec<SocketAddrV4>,
    /// Idle connections that are kept to each upstream; 0: a new one for each request.
    #[serde(default = "default_keepalive")]
    pub keepalive: usize,
    /// Time that the service may take from the request to the end of its answer.
    #[serde(default = "default_timeout_ns")]
    pub timeout_ns: u64,
    /// The client's view of a service that failed before it answered.
    #[serde(default)]
    pub failures: Failures,
    /// Injected faults.
    #[serde(default)]
    pub faults: Faults,
}

fn default_keepalive() -> usize {
    1024
}

fn default_timeout_ns() -> u64 {
    60_000_000_000
}

/// The client's view of a service that cannot be reached or ends a connection without an answer.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Failures {
    /// The same end: a reset where there was a reset (or no listener), a close where there was a close.
    #[default]
    Pass,
    /// 502, or 504 after the time-out, as most proxies answer.
    Answer,
}

/// Injected faults; each part is optional.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Time added.
    pub delay: Delay,
    /// Requests whose connection is reset.
    pub reset: Reset,
    /// Requests that are never answered.
    pub drop: Share,
    /// Requests that the proxy answers itself.
    pub errors: Errors,
    /// Bound of the speed.
    pub bandwidth: Option<Bandwidth>,
    /// Bound of the number of connections.
    pub connections: Option<Connections>,
    /// Bound of the requests that the service has at once.
    pub admit: Option<Admit>,
}

/// Time added to each request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Delay {
    /// Before the request asks for admission.
    pub request: Option<Law>,
    /// Before the first byte of the answer leaves.
    pub response: Option<Law>,
    /// Seed of the draws.
    pub seed: u64,
}

/// The law of a time; nanoseconds.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Law {
    /// Always the same.
    Fixed {
        /// The time.
        ns: u64,
    },
    /// Anything between two bounds.
    Uniform {
        /// Shortest.
        low_ns: u64,
        /// Longest.
        high_ns: u64,
    },
    /// Memoryless.
    Exponential {
        /// Mean.
        mean_ns: u64,
    },
    /// Normal; a draw below 0 is 0.
    Normal {
        /// Mean.
        mean_ns: u64,
        /// Standard deviation.
        sd_ns: u64,
    },
    /// Its logarithm is normal.
    Lognormal {
        /// Median.
        median_ns: u64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
}

/// A share of the requests.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Share {
    /// From 0 to 1.
    pub share: f64,
    /// Seed of the draws.
    pub seed: u64,
}

/// Moment at which a connection is reset.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// After the request has come; the service never sees it.
    #[default]
    Request,
    /// At the start of the service's answer; the client sees nothing of that.
    Response,
    /// Within the answer: after half of its body, as far as that is known.
    Body,
}

/// Requests whose connection is reset.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reset {
    /// From 0 to 1.
    pub share: f64,
    /// Moment of the reset.
    pub at: Moment,
    /// Seed of the draws.
    pub seed: u64,
}

/// Requests that the proxy answers itself.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Errors {
    /// From 0 to 1.
    pub share: f64,
    /// Status of the answer.
    pub status: u16,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for Errors {
    fn default() -> Errors {
        Errors {
            share: 0.0,
            status: 500,
            seed: 0,
        }
    }
}

/// Direction of the slow bytes.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// To the client.
    #[default]
    Response,
    /// To the service.
    Request,
    /// Both, each at this rate.
    Both,
}

/// Bound of the speed.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bandwidth {
    /// Bytes a second.
    pub rate: u64,
    /// True if all connections share it; else each has it.
    #[serde(default)]
    pub shared: bool,
    /// Direction that is bounded.
    #[serde(default)]
    pub of: Direction,
}

/// Treatment of a connection above the bound.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Above {
    /// It is reset at once.
    #[default]
    Refuse,
    /// It waits in the accept queue, connected and unread.
    Hold,
}

/// Bound of the number of connections.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// Connections at once.
    pub most: u64,
    /// Treatment of one more.
    #[serde(default)]
    pub above: Above,
}

/// Admission control: how many requests the service has at once, and what happens to the others.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admit {
    /// Requests that the service has at once.
    pub in_flight: usize,
    /// Requests that wait for a place.
    #[serde(default)]
    pub queue: usize,
    /// Longest wait of each; none: for ever.
    pub wait_ns: Option<u64>,
    /// Status of the answer to the others.
    #[serde(default = "default_rejection")]
    pub status: u16,
    /// Seconds after which they may come again.
    #[serde(default = "default_retry_after")]
    pub retry_after_s: u64,
}

fn default_rejection() -> u16 {
    503
}

fn default_retry_after() -> u64 {
    1
}

impl Settings {
    /// Reads them, or gives every fault at once.
    pub fn read(json: &str) -> Result<Settings, Vec<Fault>> {
        let settings: Settings = serde_json::from_str(json)
            .map_err(|error| vec![Fault::new("settings", error.to_string())])?;
        let mut faults = Vec::new();
        settings.check(&mut FaultList::new(&mut faults, ""));
        if faults.is_empty() {
            Ok(settings)
        } else {
            Err(faults)
        }
    }

    fn check(&self, list: &mut FaultList) {
        let what = "there is no service to pass requests on to";
        list.want(!self.upstreams.is_empty(), "upstreams", what);
        let faults = &self.faults;
        for (key, share) in [
            ("faults.reset.share", faults.reset.share),
            ("faults.drop.share", faults.drop.share),
            ("faults.errors.share", faults.errors.share),
        ] {
            let what = format_args!("{share} is not a share from 0 to 1");
            list.want((0.0..=1.0).contains(&share), key, what);
        }
        for (key, law) in [
            ("faults.delay.request", faults.delay.request),
            ("faults.delay.response", faults.delay.response),
        ] {
            match law {
                Some(Law::Uniform { low_ns, high_ns }) if low_ns > high_ns => {
                    list.add(key, format_args!("uniform from {low_ns} down to {high_ns}"));
                }
                Some(Law::Lognormal { sigma, .. }) if !(0.0..=10.0).contains(&sigma) => {
                    list.add(key, format_args!("sigma {sigma} is not from 0 to 10"));
                }
                _ => {}
            }
        }
        let status = faults.errors.status;
        let what = format_args!("{status} is not an error status");
        list.want((400..600).contains(&status), "faults.errors.status", what);
        if let Some(Admit {
            status, in_flight, ..
        }) = faults.admit
        {
            let what = format_args!("{status} is not an error status");
            list.want((400..600).contains(&status), "faults.admit.status", what);
            let what = "0 would admit no request";
            list.want(in_flight > 0, "faults.admit.in_flight", what);
        }
        let lets_in = faults.connections.is_none_or(|bound| bound.most > 0);
        list.want(
            lets_in,
            "faults.connections.most",
            "0 would accept no connection",
        );
        let passes = faults.bandwidth.is_none_or(|bandwidth| bandwidth.rate > 0);
        list.want(
            passes,
            "faults.bandwidth.rate",
            "0 bytes per second pass nothing",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str =
        r#""listen": "127.0.0.1:0", "control": "127.0.0.1:0", "upstreams": ["127.0.0.1:1"]"#;

    #[test]
    fn settings_without_faults_do_nothing() {
        let settings = Settings::read(&format!("{{{LEAST}}}")).unwrap();

        assert!(settings.faults.admit.is_none());
        assert_eq!(settings.faults.errors.share, 0.0);
    }

    #[test]
    fn every_fault_is_named_at_once() {
        let text = format!(
            r#"{{{LEAST}, "faults": {{"reset": {{"share": 1.5}}, "admit": {{"in_flight": 0, "status": 200}},
                "bandwidth": {{"rate": 0}}}}}}"#
        );

        let faults = Settings::read(&text).unwrap_err();

        let keys: Vec<&str> = faults.iter().map(|fault| fault.where_.as_str()).collect();
        assert_eq!(
            keys,
            [
                "faults.reset.share",
                "faults.admit.status",
                "faults.admit.in_flight",
                "faults.bandwidth.rate"
            ]
        );
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let text = format!(r#"{{{LEAST}, "faults": {{"dealy": {{}}}}}}"#);

        let faults = Settings::read(&text).unwrap_err();

        assert!(faults[0].what.contains("dealy"), "{faults:?}");
    }
}
