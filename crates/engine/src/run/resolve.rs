//! Host names to addresses: once for each name, before anything starts, and never longer than a request may take.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use loadlens_plan::{Plan, Stream};

/// Resolved addresses of a stream's target.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resolved {
    /// IPv4 first; empty where the name has none.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Duration of the look-up; none for an address, which needs no looking up.
    pub(crate) took_ns: Option<u64>,
}

/// The addresses of each stream's target; names are asked for at the same time, each name once.
///
/// The system's resolver cannot be called off: a name that takes longer than the stream's time-out has no address,
/// and its thread is left to end by itself.
pub(crate) fn resolve(plan: &Plan) -> Vec<Resolved> {
    let began = Instant::now();
    let mut asked: Vec<(&str, std::sync::mpsc::Receiver<Resolved>)> = Vec::new();
    for stream in &plan.streams {
        let host = stream.target.host.as_str();
        if host.parse::<IpAddr>().is_err() && !asked.iter().any(|(name, _)| *name == host) {
            let (tell, answer) = channel();
            let name = host.to_owned();
            let asking = thread::Builder::new().name("loadlens-resolve".to_owned());
            // If no thread can start, the channel closes and the name has no address.
            let _ = asking.spawn(move || tell.send(look_up(&name)));
            asked.push((host, answer));
        }
    }
    let mut resolved: Vec<(&str, Resolved)> = Vec::new();
    for (host, answer) in asked {
        let patience = plan
            .streams
            .iter()
            .filter(|stream| stream.target.host == host)
            .map(|stream| Duration::from_nanos(stream.timeout_ns))
            .max();
        let left = patience.unwrap_or_default().saturating_sub(began.elapsed());
        resolved.push((host, answer.recv_timeout(left).unwrap_or_default()));
    }
    plan.streams
        .iter()
        .map(|stream| of(stream, &resolved))
        .collect()
}

fn of(stream: &Stream, found: &[(&str, Resolved)]) -> Resolved {
    let (host, port) = (stream.target.host.as_str(), stream.target.port);
    if let Ok(address) = host.parse::<IpAddr>() {
        return Resolved {
            addresses: vec![SocketAddr::new(address, port)],
            took_ns: None,
        };
    }
    let mut resolved = found
        .iter()
        .find(|(name, _)| *name == host)
        .map(|(_, resolved)| resolved.clone())
        .unwrap_or_default();
    for address in &mut resolved.addresses {
        address.set_port(port);
    }
    resolved
}

fn look_up(host: &str) -> Resolved {
    let began = Instant::now();
    let mut addresses: Vec<SocketAddr> = (host, 0)
        .to_socket_addrs()
        .map(Iterator::collect)
        .unwrap_or_default();
    let took = began.elapsed();
    addresses.sort_by_key(SocketAddr::is_ipv6); // stable: the resolver's order within a family
    addresses.dedup();
    addresses.truncate(usize::from(u8::MAX)); // a connection knows its own in a byte
    Resolved {
        addresses,
        took_ns: Some(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(targets: &[(&str, u16)]) -> Plan {
        let stream = |(index, (host, port)): (usize, &(&str, u16))| {
            serde_json::json!({
                "name": format!("s{index}"), "role": "load", "timeout_ns": 10_000_000_000u64,
                "target": {"host": host, "port": port, "authority": "h"},
                "scenarios": [{"name": "s", "weight": 1.0, "steps": [{"name": "a", "method": "GET", "path": "/"}]}],
                "workload": {"kind": "closed", "users": 1},
            })
        };
        let streams: Vec<_> = targets.iter().enumerate().map(stream).collect();
        serde_json::from_value(serde_json::json!({
            "schema_version": 1, "seed": 1, "duration_ns": 1, "streams": streams,
        }))
        .unwrap()
    }

    #[test]
    fn a_name_is_looked_up_once_and_an_address_not_at_all() {
        let all = resolve(&plan(&[
            ("localhost", 1),
            ("127.0.0.1", 2),
            ("localhost", 3),
            ("::1", 4),
        ]));

        let first = |index: usize| all[index].addresses[0].to_string();
        assert_eq!(first(1), "127.0.0.1:2");
        assert_eq!(first(3), "[::1]:4");
        assert_eq!(first(0).rsplit(':').next(), Some("1"));
        assert_eq!(first(2).rsplit(':').next(), Some("3"));
        assert_eq!((all[1].took_ns, all[3].took_ns), (None, None));
        assert!(all[0].took_ns.is_some() && all[0].took_ns == all[2].took_ns);
    }
}
