//! Small servers with one known flaw each: what findings are measured against.
//!
//! A specimen is a server made of [`settings`]: who works (threads or event loops), what requests hold
//! (locks, pools), and what each path's requests meet (computing, waiting, limits, files). Its flaw is one of
//! these, and its twin is the same without it. The catalogue that draws both, and says what is true of them,
//! is data and lives outside.

pub mod call;
pub mod counts;
pub mod http;
pub mod line;
mod looped;
mod page;
pub mod pauses;
pub mod settings;
pub mod steps;
mod threads;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loadlens_sys as sys;
pub use settings::Settings;

use counts::{Counts, Lasted, Times};
use http::{Answer, Read};
use pauses::Calendar;
use settings::{Serve, MOST_ROUTES};
use steps::{Refusal, Step, Todo, Visit, World};

/// State shared by all threads of a specimen.
pub(crate) struct Machine {
    settings: Settings,
    /// Path and steps; requests for other paths have the place behind the last.
    routes: Vec<(String, Vec<Step>)>,
    counts: &'static Counts,
    calendar: Option<Calendar>,
}

/// A running specimen; it is gone when this is dropped.
pub struct Specimen {
    /// Port on 127.0.0.1 on which it serves.
    pub port: u16,
    /// Port of its metrics, if it has any.
    pub metrics_port: Option<u16>,
    /// The processes that serve; of one that serves itself its own.
    pub pids: Vec<i32>,
    children: Vec<i32>,
    machine: Arc<Machine>,
}

impl Specimen {
    /// Starts one. The caller must have a single thread: event loops are processes forked from this one.
    pub fn start(settings: Settings) -> Result<Specimen, String> {
        let text = |error: io::Error| error.to_string();
        if !settings.cpus.is_empty() {
            sys::confine(&settings.cpus).map_err(|error| format!("cpus: {error}"))?;
        }
        let (listener, port) = listeners(&settings).map_err(text)?;
        let machine = Machine::new(settings)?;
        let serve = machine.settings.serve;
        let (pids, children) = match serve {
            Serve::Threads { most } => {
                threads::start(Arc::clone(&machine), listener, most).map_err(text)?;
                (vec![std::process::id() as i32], Vec::new())
            }
            Serve::Loop { .. } => {
                let pids = fork_loops(&machine, listener).map_err(text)?;
                (pids.clone(), pids)
            }
        };
        let metrics_port = match machine.settings.metrics {
            Some(_) => Some(page::serve(Arc::clone(&machine), pids.clone()).map_err(text)?),
            None => None,
        };
        send_visitors(&machine, port);
        Ok(Specimen {
            port,
            metrics_port,
            pids,
            children,
            machine,
        })
    }

    /// Returns the real durations of holds, chosen waits and pauses so far, in nanoseconds, with the processor time
    /// used and the number of answers by path.
    pub fn lasted(&self) -> serde_json::Value {
        let sums = |lasted: &Lasted| {
            let (times, ns) = (lasted.times.load(Relaxed), lasted.ns.load(Relaxed));
            serde_json::json!({"times": times, "ns": ns})
        };
        let counts = self.machine.counts;
        let names = self.machine.settings.resources.keys();
        let holds: serde_json::Map<String, serde_json::Value> = names
            .zip(&counts.resources)
            .map(|(name, tally)| (name.clone(), sums(&tally.holds)))
            .collect();
        let paths = self.machine.routes.iter().map(|(path, _)| path.clone());
        let answered: serde_json::Map<String, serde_json::Value> = paths
            .zip(&counts.routes)
            .map(|(path, tally)| {
                (
                    path,
                    tally.answered.iter().map(Times::count).sum::<u64>().into(),
                )
            })
            .collect();
        let cpu_ns: u64 = self.pids.iter().map(|&pid| sys::process_cpu_ns(pid)).sum();
        serde_json::json!({
            "holds": holds, "chosen_waits": sums(&counts.chosen_waits), "pauses": sums(&counts.pauses),
            "cpu_ns": cpu_ns, "answered": answered,
        })
    }
}

impl Drop for Specimen {
    fn drop(&mut self) {
        for &pid in &self.children {
            sys::end_child(pid);
        }
    }
}

/// One listener, or one for each process where the kernel is to divide the connections.
fn listeners(settings: &Settings) -> io::Result<(Vec<OwnedFd>, u16)> {
    let processes = match settings.serve {
        Serve::Loop { processes } if settings.listen.hashed => processes,
        _ => 1,
    };
    let bind = if processes > 1 {
        sys::bind_shared
    } else {
        sys::bind
    };
    let listener = |port| {
        let (socket, port) = bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
        sys::listen(socket.as_raw_fd(), settings.listen.backlog)?;
        io::Result::Ok((socket, port))
    };
    let (first, port) = listener(settings.port)?;
    let mut all = vec![first];
    for _ in 1..processes {
        all.push(listener(port)?.0);
    }
    Ok((all, port))
}

fn fork_loops(machine: &Arc<Machine>, listeners: Vec<OwnedFd>) -> io::Result<Vec<i32>> {
    let Serve::Loop { processes } = machine.settings.serve else {
        return Ok(Vec::new());
    };
    let mut pids = Vec::new();
    for at in 0..processes {
        let listener = &listeners[at % listeners.len()];
        match sys::fork()? {
            Some(pid) => pids.push(pid),
            None => {
                let code = i32::from(looped::run(machine, listener).is_err());
                std::process::exit(code)
            }
        }
    }
    // The listeners of this process are closed with `listeners`: a hashed one that is never read would still get its
    // share of connections.
    Ok(pids)
}

/// Sends the requests of the visitors at their fixed times.
fn send_visitors(machine: &Arc<Machine>, port: u16) {
    for visitor in machine.settings.visitors.clone() {
        let every = Duration::from_secs_f64(visitor.every_ms / 1e3);
        std::thread::spawn(move || {
            let mut at = Instant::now();
            loop {
                at += every;
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
                let _ = call::visit(port, &visitor.path); // whether it fails is the server's matter
            }
        });
    }
}

impl Machine {
    fn new(settings: Settings) -> Result<Arc<Machine>, String> {
        let routes = settings
            .routes
            .iter()
            .map(|(path, ops)| Ok((path.clone(), Step::all(ops, &settings)?)))
            .collect::<Result<Vec<_>, String>>()?;
        // SAFETY: counts are atomic numbers, for which zero is a value and which several threads may use.
        let counts = unsafe { sys::shared_zeros() }.map_err(|error| error.to_string())?;
        let calendar = settings
            .pauses
            .map(|pauses| Calendar::new(&pauses, settings.seed, sys::monotonic_ns()));
        Ok(Arc::new(Machine {
            settings,
            routes,
            counts,
            calendar,
        }))
    }

    fn world(&self) -> World<'_> {
        World {
            seed: self.settings.seed,
            counts: self.counts,
            warmup: self.settings.warmup,
        }
    }

    /// A request that has come: counted, its handler about to begin.
    fn visit(&self, path: &str, connection: u64, served: u64) -> Visit {
        let listed = self.routes.iter().position(|(route, _)| route == path);
        let route = listed.unwrap_or(MOST_ROUTES - 1);
        let now_ns = sys::monotonic_ns();
        let refusal = listed.is_none().then(|| Refusal {
            status: 404,
            words: "not found".into(),
        });
        Visit {
            number: self.counts.begin(route, now_ns),
            connection,
            is_first: served == 0,
            route,
            began_ns: now_ns,
            bytes: 2,
            refusal,
            ..Visit::default()
        }
    }

    /// Returns the next action of a visit at a step; none: no step is left.
    fn meet(&self, visit: &mut Visit, at: usize) -> Option<Todo> {
        let (_, steps) = self.routes.get(visit.route)?;
        steps.get(at).map(|step| step.meet(visit, &self.world()))
    }

    /// Does nothing while everything is paused.
    fn hold(&self) {
        if let Some(length_ns) = self.calendar.as_ref().and_then(Calendar::hold) {
            self.counts.pauses.add(length_ns);
        }
    }

    /// Ends a visit: counts it and writes its answer.
    fn answer(&self, visit: &Visit, closes: bool, out: &mut Vec<u8>) -> usize {
        let (status, words) = match &visit.refusal {
            Some(refusal) => (refusal.status, Some(refusal.words.as_str())),
            None => (200, None),
        };
        let took = sys::monotonic_ns().saturating_sub(visit.began_ns);
        self.counts.end(visit.route, status, took);
        let answer = Answer {
            status,
            words,
            bytes: visit.bytes,
            closes,
            backend: self.settings.backend.as_deref(),
        };
        http::write(&answer, out)
    }
}

/// A connection and what of its next request has come.
pub(crate) struct Connection {
    fd: OwnedFd,
    number: u64,
    opened_ns: u64,
    served: u64,
    buffer: Vec<u8>,
    keeps: bool,
}

/// Result of receiving.
pub(crate) enum Heard {
    /// A request has come whole.
    Visit(Visit),
    /// More is to come.
    Nothing,
    /// The connection is at its end.
    End,
}

impl Connection {
    fn new(fd: OwnedFd, machine: &Machine) -> Connection {
        if machine.settings.connection.two_writes {
            sys::hold_small_segments(fd.as_raw_fd());
        }
        Connection {
            fd,
            number: machine.counts.connections.fetch_add(1, Relaxed),
            opened_ns: sys::monotonic_ns(),
            served: 0,
            buffer: Vec::new(),
            keeps: true,
        }
    }

    /// Receives until a request is whole or nothing is there.
    fn hear(&mut self, machine: &Machine) -> Heard {
        let mut piece = [0u8; 16 * 1024];
        loop {
            match http::read(&self.buffer) {
                Read::Whole(request) => {
                    let visit = machine.visit(request.path, self.number, self.served);
                    self.keeps = request.keeps;
                    let length = request.length;
                    self.buffer.drain(..length);
                    self.served += 1;
                    return Heard::Visit(visit);
                }
                Read::Bad => return Heard::End,
                Read::Part => {}
            }
            match sys::receive(self.fd.as_raw_fd(), &mut piece) {
                Ok(0) => return Heard::End,
                Ok(count) => self.buffer.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Heard::Nothing,
                Err(_) => return Heard::End,
            }
        }
    }

    /// Returns true if the connection ends with the answer to the request that was read last.
    fn closes(&self, machine: &Machine) -> bool {
        let rules = &machine.settings.connection;
        let age_ns = sys::monotonic_ns().saturating_sub(self.opened_ns) as f64;
        !self.keeps
            || rules.requests.is_some_and(|most| self.served >= most)
            || rules.age_ms.is_some_and(|most| age_ns > most * 1e6)
    }
}
