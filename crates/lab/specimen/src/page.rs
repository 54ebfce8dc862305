//! Metrics page of a specimen: Prometheus text on a port and a thread of its own, so that a scrape never
//! waits behind requests.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use crate::counts::{Times, BOUNDS_S, STATUSES};
use crate::settings::{Dialect, ResourceKind, Serve, MOST_ROUTES};
use crate::{sys, Machine};

/// Names of the metrics.
struct Names {
    duration: &'static str,
    path: &'static str,
    /// Name of a separate counter by status; none: the times have the status as a label, as in Micrometer.
    total: Option<&'static str>,
    busy: &'static str,
    lock: [&'static str; 2],
    pool: [&'static str; 3],
    threads: [&'static str; 3],
    cpu: (&'static str, f64),
}

const PLAIN: Names = Names {
    duration: "http_request_duration_seconds",
    path: "path",
    total: Some("http_requests_total"),
    busy: "http_requests_in_flight",
    lock: ["lock_holders", "lock_waiters"],
    pool: ["db_pool_in_use", "db_pool_waiting", "db_pool_max"],
    threads: [
        "worker_threads_busy",
        "worker_threads",
        "worker_threads_max",
    ],
    cpu: ("process_cpu_seconds_total", 1e-9),
};

const MICROMETER: Names = Names {
    duration: "http_server_requests_seconds",
    path: "uri",
    total: None,
    busy: "http_server_requests_active_seconds_active_count",
    lock: ["lock_holders", "lock_waiters"],
    pool: [
        "hikaricp_connections_active",
        "hikaricp_connections_pending",
        "hikaricp_connections_max",
    ],
    threads: [
        "tomcat_threads_busy_threads",
        "tomcat_threads_current_threads",
        "tomcat_threads_config_max_threads",
    ],
    cpu: ("process_cpu_time_ns_total", 1.0),
};

/// Serves the page on a free port; returns it.
pub(crate) fn serve(machine: Arc<Machine>, pids: Vec<i32>) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(stream, &machine, &pids); // a client that hangs up early gets no page
        }
    });
    Ok(port)
}

fn answer(mut stream: TcpStream, machine: &Machine, pids: &[i32]) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut head = [0u8; 4096];
    let mut length = 0;
    while !head[..length].windows(4).any(|four| four == b"\r\n\r\n") {
        let count = stream.read(&mut head[length..])?;
        if count == 0 {
            return Ok(());
        }
        length += count;
    }
    let page = page(machine, pids);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    )
}

/// The page as it is now.
fn page(machine: &Machine, pids: &[i32]) -> String {
    let names = match machine.settings.metrics {
        Some(Dialect::Micrometer) => &MICROMETER,
        _ => &PLAIN,
    };
    let mut text = String::new();
    requests(machine, names, &mut text);
    resources(machine, names, &mut text);
    let counts = machine.counts;
    let count = |number: &AtomicU64| number.load(Relaxed) as f64;
    one(&mut text, names.busy, "gauge", count(&counts.busy));
    if let Serve::Threads { most } = machine.settings.serve {
        let [busy, now, bound] = names.threads;
        one(&mut text, busy, "gauge", count(&counts.busy));
        one(&mut text, now, "gauge", count(&counts.threads));
        one(&mut text, bound, "gauge", most as f64);
    }
    let (cpu, unit) = names.cpu;
    let used: u64 = pids.iter().map(|&pid| sys::process_cpu_ns(pid)).sum();
    one(&mut text, cpu, "counter", used as f64 * unit);
    let resident: u64 = pids.iter().map(|&pid| resident_bytes(pid)).sum();
    one(
        &mut text,
        "process_resident_memory_bytes",
        "gauge",
        resident as f64,
    );
    one(&mut text, "data_rows", "gauge", count(&counts.rows));
    text
}

fn one(text: &mut String, name: &str, kind: &str, value: f64) {
    let _ = write!(text, "# TYPE {name} {kind}\n{name} {value}\n");
}

fn requests(machine: &Machine, names: &Names, text: &mut String) {
    let paths = machine.routes.iter().map(|(path, _)| path.as_str());
    let places: Vec<(usize, &str)> = paths
        .enumerate()
        .chain([(MOST_ROUTES - 1, "other")])
        .collect();
    let label = names.path;
    if let Some(total) = names.total {
        let _ = writeln!(text, "# TYPE {total} counter");
        for &(at, path) in &places {
            for (status, times) in STATUSES.iter().zip(&machine.counts.routes[at].answered) {
                let count = times.count();
                if count > 0 {
                    let labels = format!("{label}=\"{path}\",status=\"{status}\"");
                    let _ = writeln!(text, "{total}{{{labels}}} {count}");
                }
            }
        }
    }
    let _ = writeln!(text, "# TYPE {} histogram", names.duration);
    for &(at, path) in &places {
        let answered = &machine.counts.routes[at].answered;
        if names.total.is_some() {
            let all: Vec<&Times> = answered.iter().collect();
            times(names.duration, &format!("{label}=\"{path}\""), &all, text);
            continue;
        }
        for (status, of_it) in STATUSES.iter().zip(answered) {
            if of_it.count() > 0 {
                let labels = format!("{label}=\"{path}\",status=\"{status}\"");
                times(names.duration, &labels, &[of_it], text);
            }
        }
    }
}

/// One histogram, of answers of some statuses together.
fn times(name: &str, labels: &str, parts: &[&Times], text: &mut String) {
    let mut sum = 0;
    for place in 0..=BOUNDS_S.len() {
        sum += parts
            .iter()
            .map(|part| part.buckets[place].load(Relaxed))
            .sum::<u64>();
        let bound = BOUNDS_S
            .get(place)
            .map_or("+Inf".to_owned(), f64::to_string);
        let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {sum}");
    }
    let nanoseconds: u64 = parts.iter().map(|part| part.handler_ns.load(Relaxed)).sum();
    let seconds = nanoseconds as f64 / 1e9;
    let _ = writeln!(text, "{name}_sum{{{labels}}} {seconds}");
    let _ = writeln!(text, "{name}_count{{{labels}}} {sum}");
}

fn resources(machine: &Machine, names: &Names, text: &mut String) {
    for (at, (name, resource)) in machine.settings.resources.iter().enumerate() {
        let tally = &machine.counts.resources[at];
        let (held, waiting) = (tally.held.load(Relaxed), tally.waiting.load(Relaxed));
        let mut gauge = |what: &str, label: &str, value: u64| {
            let _ = write!(
                text,
                "# TYPE {what} gauge\n{what}{{{label}=\"{name}\"}} {value}\n"
            );
        };
        match resource.kind {
            ResourceKind::Hidden => {}
            ResourceKind::Nameless => {
                gauge("desk_a", "desk", held);
                gauge("desk_b", "desk", waiting);
            }
            ResourceKind::Lock => {
                gauge(names.lock[0], "lock", held);
                gauge(names.lock[1], "lock", waiting);
            }
            ResourceKind::Pool => {
                gauge(names.pool[0], "pool", held);
                gauge(names.pool[1], "pool", waiting);
                gauge(names.pool[2], "pool", resource.size as u64);
            }
        }
    }
}

/// Memory of a process, 0 when it is gone.
fn resident_bytes(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = text
        .split(' ')
        .nth(1)
        .and_then(|word| word.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}
