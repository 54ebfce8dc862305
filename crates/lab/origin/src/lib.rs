//! A service of known behaviour: the oracle that a load generator is tested against.
//!
//! It answers fast, slowly, wrongly or not at all, chosen by path, and it keeps counts: how many requests
//! came, how many answers went out whole, which rules the client broke, and when. A generator's counts and
//! times are compared with these counts, never with another generator's.
//!
//! Raw sockets on epoll and nothing between, because the origin must say things that no HTTP library would
//! let it say.

#![forbid(unsafe_code)]

mod answer;
pub mod bad;
pub mod config;
mod connection;
mod control;
pub mod counts;
mod exchange;
pub mod floor;
mod heads;
pub mod law;
pub mod request;
mod route;
pub mod tls;
mod worker;

use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

pub use config::{Admission, Config, Freeze};
pub use counts::{Counts, PathCounts, ServedLog};
use loadlens_sys as sys;

use crate::route::{lock, Routes};
use crate::worker::{watch, Shared, ThreadShared, Worker};

/// A running origin; it is gone when this is dropped.
pub struct Origin {
    /// The port that it serves on.
    pub port: u16,
    /// Port on which its counts are read.
    pub control_port: u16,
    /// Certificates and keys for TLS clients; none: plain TCP.
    pub pem: Option<tls::Pem>,
    ledger: Arc<Ledger>,
    threads: Vec<JoinHandle<()>>,
}

/// State from which the counts are read, both in this process and on the control port.
pub(crate) struct Ledger {
    shared: Arc<Shared>,
    listener: OwnedFd,
    since_ns: AtomicU64,
    /// Rings when the control port is to close.
    bell: sys::Bell,
}

impl Origin {
    /// Starts one.
    pub fn start(config: Config) -> std::io::Result<Origin> {
        let count = config.threads.max(1);
        let (listener, port) = sys::bind(SocketAddrV4::new(config.address, config.port))?;
        if config.admission != Admission::Refuse {
            sys::listen(listener.as_raw_fd(), config.backlog)?;
        }
        let threads: std::io::Result<Vec<ThreadShared>> = (0..count)
            .map(|_| ThreadShared::new(config.log_rows))
            .collect();
        let prepared = config.tls.as_ref().map(tls::prepare).transpose()?;
        let (terms, pem) = prepared.unzip();
        let shared = Arc::new(Shared {
            terms,
            routes: Routes::new(config.root.clone()),
            config,
            threads: threads?,
            stop: AtomicBool::new(false),
            accepted: AtomicU64::new(0),
            open: AtomicI64::new(0),
            started_ns: sys::monotonic_ns(),
        });
        let listening = listener.as_raw_fd();
        let ledger = Arc::new(Ledger {
            shared: shared.clone(),
            listener,
            since_ns: AtomicU64::new(shared.started_ns),
            bell: sys::Bell::new()?,
        });
        let mut origin = Origin {
            port,
            control_port: 0,
            pem,
            ledger,
            threads: Vec::new(),
        };
        for index in 0..count {
            let listener = (index == 0).then_some(&origin.ledger.listener);
            let epoll = watch(index, &shared, listener)?;
            let shared = shared.clone();
            let serve =
                move || Worker::new(index, shared, epoll, (index == 0).then_some(listening)).run();
            origin
                .threads
                .push(named(format!("origin-{index}"), serve)?);
        }
        let (control, control_port) = control::bind()?;
        origin.control_port = control_port;
        let ledger = origin.ledger.clone();
        let serve = move || control::serve(&control, &ledger);
        origin
            .threads
            .push(named("origin-books".to_owned(), serve)?);
        Ok(origin)
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> Counts {
        self.ledger.counts()
    }

    /// The log of requests; empty unless `log_rows` was given.
    pub fn log(&self) -> ServedLog {
        self.ledger.log()
    }

    /// Resets the counts.
    pub fn reset(&self) {
        self.ledger.reset();
    }

    /// The counts once every connection has been taken and closed, so that nothing a client sent is still
    /// unread; none when that does not happen within `within_ns`.
    pub fn counts_when_idle(&self, within_ns: u64) -> Option<Counts> {
        let until = sys::monotonic_ns() + within_ns;
        while sys::monotonic_ns() < until {
            let counts = self.counts();
            if counts.open == 0 && counts.accept_queue == 0 {
                // A connection may have been taken between the two readings; it would be open now.
                let again = self.counts();
                if again.open == 0 && again.connections.accepted == counts.connections.accepted {
                    return Some(again);
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        None
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.ledger.shared.stop.store(true, Ordering::Relaxed);
        self.ledger.bell.ring();
        for thread in &self.ledger.shared.threads {
            thread.bell.ring();
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked has printed why; there is nothing more to do about it here.
            let _ = thread.join();
        }
    }
}

impl Ledger {
    pub(crate) fn counts(&self) -> Counts {
        let shared = &self.shared;
        let mut counts = Counts::begin(self.since_ns.load(Ordering::Relaxed));
        // The queue is read before the counts: a connection that is taken in between is then counted twice
        // rather than not at all.
        counts.accept_queue = sys::accept_queue(self.listener.as_raw_fd());
        for thread in &shared.threads {
            counts.add(&lock(&thread.counts));
        }
        counts.open = shared.open.load(Ordering::Relaxed).max(0) as u64;
        counts
    }

    pub(crate) fn log(&self) -> ServedLog {
        let counts: Vec<_> = self
            .shared
            .threads
            .iter()
            .map(|thread| lock(&thread.counts))
            .collect();
        counts::merge_logs(counts.iter().map(|counts| &**counts))
    }

    pub(crate) fn reset(&self) {
        self.since_ns.store(sys::monotonic_ns(), Ordering::Relaxed);
        for thread in &self.shared.threads {
            lock(&thread.counts).reset();
        }
    }

    pub(crate) fn bell(&self) -> &sys::Bell {
        &self.bell
    }
}

fn named(name: String, run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name).spawn(run)
}
