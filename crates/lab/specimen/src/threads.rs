//! The server of threads: each takes a whole request off one line, works, blocks and answers.
//!
//! The line is the kernel's list of ready connections, first come first served, so the connections of idle
//! clients hold no thread: as in servers with a poller and a bounded pool of workers. Threads are started as
//! they are needed, up to the bound.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::line::Line;
use crate::steps::{Held, Todo, Visit};
use crate::sys::{self, Epoll};
use crate::{Connection, Heard, Machine};

const ONCE: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLONESHOT) as u32;
const STACK: usize = 256 * 1024;
/// Longest time in which a client may accept no byte of an answer.
const PATIENCE_NS: u64 = 30_000_000_000;

struct Server {
    machine: Arc<Machine>,
    ready: Epoll,
    /// Connections that no thread serves now.
    connections: Mutex<HashMap<u64, Connection>>,
    /// By place of the resource.
    lines: Vec<Mutex<Line<Arc<Gate>>>>,
    most: usize,
    threads: AtomicUsize,
    idle: AtomicUsize,
}

/// Gate at which one thread waits until it is let through.
#[derive(Default)]
struct Gate {
    /// Time at which it opened, set by the thread that gave the place.
    opened_ns: Mutex<Option<u64>>,
    opened: Condvar,
}

/// Starts serving with at most so many threads.
pub(crate) fn start(machine: Arc<Machine>, listeners: Vec<OwnedFd>, most: usize) -> io::Result<()> {
    let sizes = machine.settings.resources.values();
    let lines = sizes
        .map(|resource| Mutex::new(Line::new(resource.size)))
        .collect();
    let server = Arc::new(Server {
        machine,
        ready: Epoll::new()?,
        connections: Mutex::default(),
        lines,
        most,
        threads: AtomicUsize::new(0),
        idle: AtomicUsize::new(0),
    });
    server.grow()?;
    for listener in listeners {
        let server = Arc::clone(&server);
        std::thread::spawn(move || server.accept(&listener));
    }
    Ok(())
}

impl Server {
    /// Accepts connections, no faster than `accept_every_ms` allows.
    fn accept(&self, listener: &OwnedFd) {
        let fd = listener.as_raw_fd();
        let pause = Duration::from_secs_f64(self.machine.settings.listen.accept_every_ms / 1e3);
        loop {
            sys::wait_readable(&[fd], None);
            match sys::accept(fd) {
                Ok(Some(socket)) => self.watch(Connection::new(socket, &self.machine), true),
                Ok(None) => continue,
                Err(_) => std::thread::sleep(Duration::from_millis(10)), // out of descriptors
            }
            if !pause.is_zero() {
                std::thread::sleep(pause);
            }
        }
    }

    /// Waits for the next request of a connection.
    fn watch(&self, connection: Connection, is_new: bool) {
        let (fd, number) = (connection.fd.as_raw_fd(), connection.number);
        // The thread that is woken must find it, so it is stored first.
        locked(&self.connections).insert(number, connection);
        let watched = if is_new {
            self.ready.add(fd, ONCE, number)
        } else {
            self.ready.modify(fd, ONCE, number)
        };
        if watched.is_err() {
            locked(&self.connections).remove(&number);
        }
    }

    /// One thread more, if there may be one.
    fn grow(self: &Arc<Server>) -> io::Result<()> {
        let more = |count| (count < self.most).then_some(count + 1);
        if self.threads.fetch_update(SeqCst, SeqCst, more).is_err() {
            return Ok(());
        }
        self.machine.counts.threads.fetch_add(1, Relaxed);
        self.idle.fetch_add(1, SeqCst);
        let server = Arc::clone(self);
        std::thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || server.work())
            .map(|_| ())
    }

    fn work(self: Arc<Server>) {
        sys::precise_timers();
        loop {
            let mut event = [libc::epoll_event { events: 0, u64: 0 }];
            if self.ready.wait(&mut event, None) == 0 {
                continue;
            }
            if self.idle.fetch_sub(1, SeqCst) == 1 {
                let _ = self.grow(); // too few threads are no reason to stop
            }
            let number = event[0].u64;
            let connection = locked(&self.connections).remove(&number);
            if let Some(connection) = connection {
                self.serve(connection);
            }
            self.idle.fetch_add(1, SeqCst);
        }
    }

    /// Answers one request, if it has come whole.
    fn serve(&self, mut connection: Connection) {
        let machine = &self.machine;
        machine.hold();
        match connection.hear(machine) {
            Heard::End => return,
            Heard::Nothing => {}
            Heard::Visit(mut visit) => {
                machine.counts.work();
                self.handle(&mut visit);
                machine.hold();
                if self.answer(&connection, &visit).is_err() || connection.closes(machine) {
                    return;
                }
            }
        }
        self.watch(connection, false);
    }

    fn answer(&self, connection: &Connection, visit: &Visit) -> io::Result<()> {
        let machine = &self.machine;
        let mut out = Vec::new();
        let head = machine.answer(visit, connection.closes(machine), &mut out);
        let fd = connection.fd.as_raw_fd();
        if machine.settings.connection.two_writes {
            send_all(fd, &out[..head])?;
            return send_all(fd, &out[head..]);
        }
        send_all(fd, &out)
    }

    /// Does all that the path asks for.
    fn handle(&self, visit: &mut Visit) {
        let mut at = 0;
        while let Some(todo) = self.machine.meet(visit, at) {
            self.machine.hold();
            match todo {
                Todo::Next | Todo::Pass => {}
                Todo::Refuse => break,
                Todo::Wait { ns, is_chosen } => {
                    let began_ns = sys::monotonic_ns();
                    std::thread::sleep(Duration::from_nanos(ns));
                    if is_chosen {
                        let counts = self.machine.counts;
                        counts.chosen_waits.add(sys::monotonic_ns() - began_ns);
                    }
                }
                Todo::Give { resource } => {
                    if let Some(held) = visit.lets_go(resource) {
                        self.give(held);
                    }
                }
                Todo::Take {
                    resource,
                    timeout_ns,
                } => {
                    let patience = timeout_ns.map(Duration::from_nanos);
                    let Some(since_ns) = self.take(resource, patience) else {
                        break;
                    };
                    visit.refusal = None;
                    visit.held.push(Held { resource, since_ns });
                }
            }
            at += 1;
        }
        for held in std::mem::take(&mut visit.held) {
            self.give(held);
        }
    }

    /// Takes a place: since when it is taken; none: none was free in time.
    fn take(&self, resource: usize, patience: Option<Duration>) -> Option<u64> {
        let gate = {
            let mut line = locked(&self.lines[resource]);
            let has = line.take();
            if has || patience == Some(Duration::ZERO) {
                self.machine.counts.stands(resource, &line);
                return has.then(sys::monotonic_ns);
            }
            let gate = Arc::new(Gate::default());
            line.wait(Arc::clone(&gate));
            self.machine.counts.stands(resource, &line);
            gate
        };
        if let Some(since_ns) = gate.wait(patience) {
            return Some(since_ns);
        }
        let mut line = locked(&self.lines[resource]);
        let has_left = line.leave(|who| Arc::ptr_eq(who, &gate));
        self.machine.counts.stands(resource, &line);
        (!has_left).then(sys::monotonic_ns) // the place was given in the last moment
    }

    fn give(&self, held: Held) {
        let resource = held.resource;
        let mut line = locked(&self.lines[resource]);
        let next = line.give();
        self.machine.counts.stands(resource, &line);
        drop(line);
        let now_ns = sys::monotonic_ns();
        let counts = &self.machine.counts.resources[resource];
        counts.holds.add(now_ns - held.since_ns);
        if let Some(gate) = next {
            *locked(&gate.opened_ns) = Some(now_ns);
            gate.opened.notify_one();
        }
    }
}

/// Sends all of it, waiting for room as long as the peer takes something.
fn send_all(fd: RawFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match sys::send(fd, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                sys::wait_writable(fd, PATIENCE_NS)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Gate {
    /// Waits until it is opened: since when it was; none: it was not in time.
    fn wait(&self, patience: Option<Duration>) -> Option<u64> {
        let opened_ns = locked(&self.opened_ns);
        let is_shut = |opened_ns: &mut Option<u64>| opened_ns.is_none();
        match patience {
            None => {
                let waited = self.opened.wait_while(opened_ns, is_shut);
                *waited.unwrap_or_else(|p| p.into_inner())
            }
            Some(patience) => {
                let waited = self.opened.wait_timeout_while(opened_ns, patience, is_shut);
                *waited.unwrap_or_else(|p| p.into_inner()).0
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
