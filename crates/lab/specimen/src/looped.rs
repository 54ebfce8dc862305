//! The server of one event loop: waiting for something elsewhere lets others go on, computing does not.
//!
//! A turn of the loop asks which connections have a request and which waits are over, and then runs all that
//! is ready, in order, each until it waits. Nothing else runs meanwhile.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::line::Line;
use crate::settings::Serve;
use crate::steps::{Held, Todo, Visit};
use crate::sys::{self, Epoll};
use crate::{Connection, Heard, Machine};

const ONCE: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLONESHOT) as u32;
const ROOM: u32 = (libc::EPOLLOUT | libc::EPOLLONESHOT) as u32;
const LISTENER: u64 = u64::MAX;
const AT_ONCE: usize = 256;

struct Loop<'a> {
    machine: &'a Machine,
    ready: Epoll,
    listener: RawFd,
    /// Connections that are accepted in one turn at most.
    accepts: usize,
    clients: HashMap<u64, Client>,
    /// Clients that can go on, in order.
    runnable: VecDeque<u64>,
    /// Ends of waits: time, client, and number of its wait.
    timers: BinaryHeap<Reverse<(u64, u64, u64)>>,
    /// By place of the resource.
    lines: Vec<Line<u64>>,
}

/// A connection, the request that is at work, and how far it is.
struct Client {
    connection: Connection,
    visit: Option<Visit>,
    at: usize,
    /// Changes with each wait, so that an old timer means nothing.
    wait: u64,
    /// True if the timer ends the patience, not a wait.
    is_impatient: bool,
    /// Since when it waits, if not every request does.
    chosen_ns: Option<u64>,
    /// Bytes that could not be sent yet; `ends` is true if the connection ends with them.
    out: Vec<u8>,
    ends: bool,
}

/// Serves until the process ends.
pub(crate) fn run(machine: &Machine, listener: &OwnedFd) -> io::Result<()> {
    sys::precise_timers();
    let ready = Epoll::new()?;
    let fd = listener.as_raw_fd();
    ready.add(fd, libc::EPOLLIN as u32, LISTENER)?;
    let sizes = machine.settings.resources.values();
    let lines = sizes.map(|resource| Line::new(resource.size)).collect();
    let mut turning = Loop {
        machine,
        ready,
        listener: fd,
        accepts: accepts(machine.settings.serve, machine.settings.listen.hashed),
        clients: HashMap::new(),
        runnable: VecDeque::new(),
        timers: BinaryHeap::new(),
        lines,
    };
    loop {
        turning.turn();
    }
}

/// Connections that others could take are left to them.
fn accepts(serve: Serve, is_hashed: bool) -> usize {
    match serve {
        Serve::Loop { processes: 2.. } if !is_hashed => 4,
        _ => AT_ONCE,
    }
}

impl Loop<'_> {
    fn turn(&mut self) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; AT_ONCE];
        let patience = self.patience();
        let count = self.ready.wait(&mut events, patience);
        self.machine.hold();
        for event in &events[..count] {
            let who = event.u64;
            if who == LISTENER {
                self.accept();
            } else if event.events & libc::EPOLLOUT as u32 != 0 {
                self.send(who);
            } else {
                self.hear(who);
            }
        }
        self.end_waits();
        // Those who become ready meanwhile have their turn after the next look.
        for _ in 0..self.runnable.len() {
            if let Some(who) = self.runnable.pop_front() {
                self.machine.hold();
                self.run(who);
            }
        }
    }

    /// Nanoseconds until there is something to do; none: until a client comes.
    fn patience(&self) -> Option<u64> {
        if !self.runnable.is_empty() {
            return Some(0);
        }
        let Reverse((at, _, _)) = self.timers.peek()?;
        Some(at.saturating_sub(sys::monotonic_ns()))
    }

    fn accept(&mut self) {
        for _ in 0..self.accepts {
            match sys::accept(self.listener) {
                Ok(Some(socket)) => self.welcome(Connection::new(socket, self.machine)),
                _ => return,
            }
        }
    }

    fn welcome(&mut self, connection: Connection) {
        let (fd, who) = (connection.fd.as_raw_fd(), connection.number);
        if self.ready.add(fd, ONCE, who).is_ok() {
            let client = Client {
                connection,
                visit: None,
                at: 0,
                wait: 0,
                is_impatient: false,
                chosen_ns: None,
                out: Vec::new(),
                ends: false,
            };
            self.clients.insert(who, client);
        }
    }

    fn hear(&mut self, who: u64) {
        let Some(client) = self.clients.get_mut(&who) else {
            return;
        };
        match client.connection.hear(self.machine) {
            Heard::End => {
                self.clients.remove(&who);
            }
            Heard::Nothing => self.watch(who, ONCE),
            Heard::Visit(visit) => {
                self.machine.counts.work();
                client.visit = Some(visit);
                client.at = 0;
                self.runnable.push_back(who);
            }
        }
    }

    fn watch(&mut self, who: u64, events: u32) {
        let Some(client) = self.clients.get(&who) else {
            return;
        };
        if self
            .ready
            .modify(client.connection.fd.as_raw_fd(), events, who)
            .is_err()
        {
            self.clients.remove(&who);
        }
    }

    fn end_waits(&mut self) {
        let now_ns = sys::monotonic_ns();
        while let Some(&Reverse((at, who, wait))) = self.timers.peek() {
            if at > now_ns {
                return;
            }
            self.timers.pop();
            let Some(client) = self
                .clients
                .get_mut(&who)
                .filter(|client| client.wait == wait)
            else {
                continue;
            };
            client.wait += 1;
            if let Some(since_ns) = client.chosen_ns.take() {
                self.machine.counts.chosen_waits.add(now_ns - since_ns);
            }
            if client.is_impatient {
                client.is_impatient = false;
                client.at = usize::MAX; // answered with the refusal that it holds
                self.leave(who);
            }
            self.runnable.push_back(who);
        }
    }

    fn leave(&mut self, who: u64) {
        for (resource, line) in self.lines.iter_mut().enumerate() {
            if line.leave(|&waiting| waiting == who) {
                self.machine.counts.stands(resource, line);
            }
        }
    }

    /// Goes on with a request until it waits or is answered.
    fn run(&mut self, who: u64) {
        loop {
            let Some(client) = self.clients.get_mut(&who) else {
                return;
            };
            let Some(visit) = client.visit.as_mut() else {
                return;
            };
            let at = client.at;
            client.at = at.saturating_add(1);
            match self.machine.meet(visit, at) {
                None | Some(Todo::Refuse) => return self.finish(who),
                Some(Todo::Next) => {}
                Some(Todo::Pass) => return self.runnable.push_back(who),
                Some(Todo::Wait { ns, is_chosen }) => {
                    let now_ns = sys::monotonic_ns();
                    client.chosen_ns = is_chosen.then_some(now_ns);
                    self.timers.push(Reverse((now_ns + ns, who, client.wait)));
                    return;
                }
                Some(Todo::Give { resource }) => {
                    if let Some(held) = visit.lets_go(resource) {
                        self.give(held);
                    }
                }
                Some(Todo::Take {
                    resource,
                    timeout_ns,
                }) => {
                    if self.take(who, resource) {
                        continue;
                    }
                    match timeout_ns {
                        Some(0) => return self.finish(who),
                        patience => return self.queue(who, resource, patience),
                    }
                }
            }
        }
    }

    fn take(&mut self, who: u64, resource: usize) -> bool {
        let has = self.lines[resource].take();
        if has {
            self.hold(who, resource);
        }
        let line = &self.lines[resource];
        self.machine.counts.stands(resource, line);
        has
    }

    fn queue(&mut self, who: u64, resource: usize, patience: Option<u64>) {
        let line = &mut self.lines[resource];
        line.wait(who);
        self.machine.counts.stands(resource, line);
        if let (Some(ns), Some(client)) = (patience, self.clients.get_mut(&who)) {
            client.is_impatient = true;
            self.timers
                .push(Reverse((sys::monotonic_ns() + ns, who, client.wait)));
        }
    }

    fn give(&mut self, held: Held) {
        let resource = held.resource;
        let length_ns = sys::monotonic_ns() - held.since_ns;
        let counts = &self.machine.counts.resources[resource];
        counts.holds.add(length_ns);
        let line = &mut self.lines[resource];
        let next = line.give();
        self.machine.counts.stands(resource, line);
        if let Some(who) = next {
            self.hold(who, resource);
            self.runnable.push_back(who);
        }
    }

    /// A client has a place now; no patience of theirs ends any more.
    fn hold(&mut self, who: u64, resource: usize) {
        let Some(client) = self.clients.get_mut(&who) else {
            return;
        };
        client.wait += 1;
        client.is_impatient = false;
        if let Some(visit) = client.visit.as_mut() {
            visit.refusal = None;
            let since_ns = sys::monotonic_ns();
            visit.held.push(Held { resource, since_ns });
        }
    }

    /// Answers, and gives back what the request still holds.
    fn finish(&mut self, who: u64) {
        let Some(client) = self.clients.get_mut(&who) else {
            return;
        };
        let Some(mut visit) = client.visit.take() else {
            return;
        };
        for held in std::mem::take(&mut visit.held) {
            self.give(held);
        }
        let Some(client) = self.clients.get_mut(&who) else {
            return;
        };
        client.ends = client.connection.closes(self.machine);
        self.machine.answer(&visit, client.ends, &mut client.out);
        self.send(who);
    }

    /// Sends what fits and comes back for the rest.
    fn send(&mut self, who: u64) {
        let Some(client) = self.clients.get_mut(&who) else {
            return;
        };
        let fd = client.connection.fd.as_raw_fd();
        while !client.out.is_empty() {
            match sys::send(fd, &client.out) {
                Ok(count) => {
                    client.out.drain(..count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.watch(who, ROOM);
                }
                Err(_) => {
                    client.ends = true;
                    client.out.clear();
                }
            }
        }
        if client.ends {
            self.clients.remove(&who);
        } else {
            self.watch(who, ONCE);
        }
    }
}
