//! One serving thread: a loop over epoll, timers and what there is to send.
//!
//! A round receives and reads everything that is ready, then sends everything that is to be sent: batches
//! are cheaper than turns (measured: about a tenth), and the origin must not be the limit of a generator.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::config::{Admission, Config};
use crate::connection::{ClosedBy, Connection, Phase};
use crate::counts::ThreadCounts;
use crate::heads::Heads;
use crate::route::{lock, Routes};
use crate::sys::{self, slab::Slab, Bell, Epoll};
use crate::tls::{Server, Terms};

/// Events taken in one round.
const BATCH: usize = 64;
/// Token of the listening socket.
const LISTENER: u64 = u64::MAX;
/// Token of the bell.
const BELL: u64 = u64::MAX - 1;
/// Longest time that a finished or stalled connection is kept open.
pub(crate) const PATIENCE_NS: u64 = 60_000_000_000;

pub(crate) const WATCHED: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET) as u32;

/// State shared by all threads of an origin.
pub(crate) struct Shared {
    pub config: Config,
    /// TLS terms of connections; none: plain TCP.
    pub terms: Option<Terms>,
    pub routes: Routes,
    pub threads: Vec<ThreadShared>,
    pub stop: AtomicBool,
    /// Accepted so far, which numbers connections and deals them to threads.
    pub accepted: AtomicU64,
    /// Accepted and not yet closed.
    pub open: AtomicI64,
    /// CLOCK_MONOTONIC of the start.
    pub started_ns: u64,
}

/// State that one thread shares with the others.
pub(crate) struct ThreadShared {
    pub counts: Mutex<ThreadCounts>,
    /// Rings when the inbox has something, or the origin stops.
    pub bell: Bell,
    inbox: Mutex<Vec<(OwnedFd, u64)>>,
}

impl ThreadShared {
    pub fn new(log_rows: usize) -> std::io::Result<ThreadShared> {
        Ok(ThreadShared {
            counts: Mutex::new(ThreadCounts::new(log_rows)),
            bell: Bell::new()?,
            inbox: Mutex::default(),
        })
    }
}

/// One serving thread.
pub(crate) struct Worker {
    pub index: usize,
    pub shared: Arc<Shared>,
    pub epoll: Epoll,
    pub connections: Slab<Connection>,
    pub heads: Heads,
    /// Tokens of connections with something to send.
    pub to_send: Vec<u64>,
    pub buffer: Vec<u8>,
    timers: BinaryHeap<Reverse<(u64, u64)>>,
    /// The first thread accepts for all.
    listener: Option<RawFd>,
}

/// An epoll instance that watches what a thread has to listen to besides its connections.
pub(crate) fn watch(
    index: usize,
    shared: &Shared,
    listener: Option<&OwnedFd>,
) -> std::io::Result<Epoll> {
    let epoll = Epoll::new()?;
    epoll.add(
        shared.threads[index].bell.as_raw_fd(),
        libc::EPOLLIN as u32,
        BELL,
    )?;
    let takes = !matches!(shared.config.admission, Admission::Hold | Admission::Refuse);
    if let Some(listener) = listener.filter(|_| takes) {
        epoll.add(listener.as_raw_fd(), libc::EPOLLIN as u32, LISTENER)?;
    }
    Ok(epoll)
}

impl Worker {
    pub fn new(index: usize, shared: Arc<Shared>, epoll: Epoll, listener: Option<RawFd>) -> Worker {
        Worker {
            index,
            shared,
            epoll,
            connections: Slab::new(0),
            heads: Heads::default(),
            to_send: Vec::new(),
            buffer: vec![0; 64 * 1024],
            timers: BinaryHeap::new(),
            listener,
        }
    }

    /// Serves until the origin stops.
    pub fn run(mut self) {
        sys::precise_timers();
        let cpus = &self.shared.config.cpus;
        if !cpus.is_empty() {
            // A processor that is not there leaves the thread where it is; the load is still served.
            let _ = sys::confine(&[cpus[self.index % cpus.len()]]);
        }
        let shared = self.shared.clone();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
        while !shared.stop.load(Ordering::Relaxed) {
            self.sit_out_freeze();
            let count = self.epoll.wait(&mut events, self.patience());
            let counts = &mut *lock(&shared.threads[self.index].counts);
            for event in &events[..count] {
                match event.u64 {
                    LISTENER => self.accept(counts),
                    BELL => self.answer_bell(counts),
                    token => self.on_event(token, event.events, counts),
                }
            }
            self.fire_timers(counts);
            let ready = std::mem::take(&mut self.to_send);
            for &token in &ready {
                self.send(token, counts);
            }
            self.recycle(ready);
        }
    }

    /// Keeps the list's memory for the next round.
    fn recycle(&mut self, mut ready: Vec<u64>) {
        if self.to_send.is_empty() {
            ready.clear();
            self.to_send = ready;
        }
    }

    /// Longest duration of the next wait.
    fn patience(&self) -> Option<u64> {
        if !self.to_send.is_empty() {
            return Some(0);
        }
        let timer = self.timers.peek().map(|first| first.0 .0);
        let freeze = self.next_freeze().map(|freeze| freeze.0);
        let next = match (timer, freeze) {
            (Some(timer), Some(freeze)) => Some(timer.min(freeze)),
            (timer, freeze) => timer.or(freeze),
        };
        next.map(|next| next.saturating_sub(sys::monotonic_ns()))
    }

    /// The freeze that is on or comes next, in CLOCK_MONOTONIC.
    fn next_freeze(&self) -> Option<(u64, u64)> {
        let started = self.shared.started_ns;
        let freeze = self.shared.config.freeze.as_ref()?;
        let (from, until) = freeze.around(sys::monotonic_ns() - started)?;
        Some((started + from, started + until))
    }

    /// Does nothing while a freeze is on, but for noticing that the origin stops.
    fn sit_out_freeze(&self) {
        let Some((from, until)) = self.next_freeze() else {
            return;
        };
        if sys::monotonic_ns() < from {
            return;
        }
        let thread = &self.shared.threads[self.index];
        while sys::monotonic_ns() < until && !self.shared.stop.load(Ordering::Relaxed) {
            // The bell may ring for a new connection, which has to wait; so it is not listened to for long.
            std::thread::sleep(std::time::Duration::from_nanos(
                until.saturating_sub(sys::monotonic_ns()).min(50_000_000),
            ));
        }
        if self.index == 0 {
            lock(&thread.counts)
                .freezes
                .push((from, sys::monotonic_ns()));
        }
    }

    fn accept(&mut self, counts: &mut ThreadCounts) {
        let Some(listener) = self.listener else {
            return;
        };
        for _ in 0..BATCH {
            match sys::accept(listener) {
                Ok(None) => return,
                Ok(Some(socket)) => self.admit(socket, counts),
                Err(_) => {
                    counts.connections.accept_errors += 1;
                    // Out of descriptors: the socket stays ready, so a pause keeps the loop from spinning.
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    return;
                }
            }
        }
    }

    fn admit(&mut self, socket: OwnedFd, counts: &mut ThreadCounts) {
        let shared = self.shared.clone();
        let number = shared.accepted.fetch_add(1, Ordering::Relaxed);
        let open = shared.open.load(Ordering::Relaxed);
        counts.connections.accepted += 1;
        let is_full = shared
            .config
            .max_connections
            .is_some_and(|most| open >= most as i64);
        let admission = if is_full {
            Admission::Close
        } else {
            shared.config.admission
        };
        match admission {
            Admission::Close | Admission::Reset => {
                if admission == Admission::Reset {
                    sys::reset_on_close(socket.as_raw_fd());
                }
                counts.connections.turned_away += 1;
                counts.connections.closed_by_server += 1;
            }
            _ => {
                if admission == Admission::Greet {
                    // A greeting that does not fit into an empty buffer cannot be.
                    let _ = sys::send(socket.as_raw_fd(), b"220 unsolicited\r\n");
                }
                shared.open.fetch_add(1, Ordering::Relaxed);
                self.deal(socket, number, counts);
            }
        }
    }

    /// Hands a connection to the thread whose turn it is.
    fn deal(&mut self, socket: OwnedFd, number: u64, counts: &mut ThreadCounts) {
        let shared = self.shared.clone();
        let to = number as usize % shared.threads.len();
        if to == self.index {
            self.adopt(socket, number, counts);
        } else {
            lock(&shared.threads[to].inbox).push((socket, number));
            shared.threads[to].bell.ring();
        }
    }

    fn answer_bell(&mut self, counts: &mut ThreadCounts) {
        let shared = self.shared.clone();
        let thread = &shared.threads[self.index];
        thread.bell.quiet();
        let waiting = std::mem::take(&mut *lock(&thread.inbox));
        for (socket, number) in waiting {
            self.adopt(socket, number, counts);
        }
    }

    fn adopt(&mut self, socket: OwnedFd, number: u64, counts: &mut ThreadCounts) {
        let fd = socket.as_raw_fd();
        let mut connection = Connection::new(socket, number);
        if let Some(terms) = &self.shared.terms {
            connection.tls = Server::new(terms).ok().map(Box::new);
        }
        let token = self.connections.insert(|_| connection);
        if self.epoll.add(fd, WATCHED, token).is_err() {
            self.close(token, ClosedBy::Server, counts);
        }
    }

    /// Looks at the connection again at `at_ns`.
    pub fn set_timer(&mut self, token: u64, at_ns: u64) {
        if let Some(connection) = self.connections.get(token) {
            connection.timer_ns = at_ns;
            self.timers.push(Reverse((at_ns, token)));
        }
    }

    fn fire_timers(&mut self, counts: &mut ThreadCounts) {
        let Some(first) = self.timers.peek() else {
            return;
        };
        let now = sys::monotonic_ns();
        if first.0 .0 > now {
            return;
        }
        while let Some(&Reverse((at, token))) = self.timers.peek() {
            if at > now {
                return;
            }
            self.timers.pop();
            let Some(connection) = self.connections.get(token) else {
                continue;
            };
            if connection.timer_ns != at {
                continue; // it was set anew since
            }
            connection.timer_ns = 0;
            counts.late_ns = counts.late_ns.max(now - at);
            match connection.phase {
                Phase::Serving if connection.script.is_some() => self.advance(token, counts),
                Phase::Serving => {
                    connection.phase = Phase::Writing;
                    self.to_send.push(token);
                }
                Phase::Stalled | Phase::Over => self.close(token, ClosedBy::Server, counts),
                Phase::Idle | Phase::Body(_) | Phase::Writing => {}
            }
        }
    }

    /// Takes a connection out; its socket is closed with it.
    pub fn close(&mut self, token: u64, by: ClosedBy, counts: &mut ThreadCounts) {
        let Some(connection) = self.connections.remove(token) else {
            return;
        };
        let tally = &mut counts.connections;
        match by {
            _ if connection.we_ended => tally.closed_by_server += 1,
            ClosedBy::Server => tally.closed_by_server += 1,
            ClosedBy::Client => tally.closed_by_client += 1,
            ClosedBy::ClientReset => {
                tally.closed_by_client += 1;
                tally.reset_by_client += 1;
            }
        }
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
    }
}
