//! The one loop: epoll, timers, and what is to be done next. One thread, so that every bound holds exactly:
//! there is never a moment in which two threads each see the last place free.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use loadlens_sys::slab::{Slab, KIND, RESERVED};
use loadlens_sys::{self as sys, Epoll};

use crate::admission::Admission;
use crate::connection::{Client, Part, Stage, Upstream};
use crate::counts::{Counts, Injected, Now, Outcome, Total, Way};
use crate::draws::Draws;
use crate::pace;
use crate::settings::{Above, Direction, Settings};
use crate::wire::{Pacing, Peer, Wire, LOW};

mod timers;

use timers::{Timers, What};

const LISTENER: u64 = RESERVED;
const CONTROL: u64 = RESERVED + 1;
const END: u64 = RESERVED + 2;
/// Events taken in one round, and connections in one turn of accepting.
const BATCH: usize = 256;
/// Maximum number of bytes per read.
const BUFFER: usize = 64 * 1024;
/// Maximum number of bytes read of an answer that no client wants any more.
const UNWANTED: usize = 1 << 20;
/// Time that we wait for the end of a client after ours.
const PATIENCE_NS: u64 = 2_000_000_000;

const READ: u32 = libc::EPOLLIN as u32;
const WRITE: u32 = libc::EPOLLOUT as u32;

/// Work to be done before the next wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Job {
    /// The client's request goes to the service.
    Forward(u64),
    /// The client's next request is looked for.
    Next(u64),
}

/// The thread's state.
pub(crate) struct Worker {
    pub settings: Settings,
    pub epoll: Epoll,
    pub clients: Slab<Client>,
    pub upstreams: Slab<Upstream>,
    pub admission: Admission,
    pub draws: Draws,
    pub counts: Counts,
    /// Idle connections of each upstream, the one used last at the end.
    pub idle: Vec<Vec<u64>>,
    /// Index of the service whose turn it is.
    pub turn: usize,
    pub jobs: VecDeque<Job>,
    timers: Timers,
    listener: OwnedFd,
    control: OwnedFd,
    /// The links that all connections share: to the clients, to the service.
    links: [Option<pace::Link>; 2],
    /// Open connections of clients, without those that read the counts.
    open: usize,
    is_accepting: bool,
    buffer: Vec<u8>,
}

impl Worker {
    pub fn new(settings: Settings, listener: OwnedFd, control: OwnedFd) -> io::Result<Worker> {
        let epoll = Epoll::new()?;
        epoll.add(listener.as_raw_fd(), READ, LISTENER)?;
        epoll.add(control.as_raw_fd(), READ, CONTROL)?;
        let faults = &settings.faults;
        let shared = |direction| {
            faults
                .bandwidth
                .filter(|one| one.shared && (one.of == direction || one.of == Direction::Both))
                .map(|one| pace::Link::new(one.rate))
        };
        Ok(Worker {
            epoll,
            clients: Slab::new(0),
            upstreams: Slab::new(KIND),
            admission: Admission::new(faults.admit),
            draws: Draws::new(faults),
            counts: Counts::default(),
            idle: vec![Vec::new(); settings.upstreams.len()],
            turn: 0,
            jobs: VecDeque::new(),
            timers: Timers::default(),
            listener,
            control,
            links: [shared(Direction::Response), shared(Direction::Request)],
            open: 0,
            is_accepting: true,
            buffer: vec![0; BUFFER],
            settings,
        })
    }

    /// Serves until one of `ends` can be read or is closed.
    pub fn run(&mut self, ends: &[RawFd]) -> io::Result<()> {
        for fd in ends {
            self.epoll.add(*fd, READ, END)?;
        }
        sys::precise_timers();
        let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; BATCH];
        loop {
            let timeout_ns = self
                .timers
                .next()
                .map(|at_ns| at_ns.saturating_sub(sys::monotonic_ns()));
            let count = self.epoll.wait(&mut events, timeout_ns);
            let events = &events[..count];
            // The service first: a connection that it has just ended must not be given to a new request.
            for event in events.iter().filter(|event| is_upstream(event.u64)) {
                self.on_upstream(event.u64, event.events);
            }
            for event in events.iter().filter(|event| !is_upstream(event.u64)) {
                match event.u64 {
                    END => return Ok(()),
                    LISTENER => self.accept(false),
                    CONTROL => self.accept(true),
                    token => self.on_client(token, event.events),
                }
                self.work();
            }
            self.fire_timers();
            self.work();
        }
    }

    /// Does what is to be done next, until nothing is.
    fn work(&mut self) {
        while let Some(job) = self.jobs.pop_front() {
            match job {
                Job::Forward(token) => self.forward(token),
                Job::Next(token) => self.next_request(token),
            }
        }
    }

    pub fn now(&self) -> Now {
        Now {
            connections: self.open,
            in_flight: self.admission.in_flight(),
            waiting: self.admission.waiting(),
            idle: self.idle.iter().map(Vec::len).sum(),
        }
    }

    // ---------------------------------------------------------------------------------------- connections

    fn accept(&mut self, is_control: bool) {
        let listener = if is_control {
            self.control.as_raw_fd()
        } else {
            self.listener.as_raw_fd()
        };
        for _ in 0..BATCH {
            if !is_control && self.holds_more() {
                return;
            }
            match sys::accept(listener) {
                Ok(None) => return,
                Ok(Some(socket)) => self.admit(socket, is_control),
                Err(_) => {
                    self.counts.add(Total::AcceptErrors);
                    // Out of descriptors: the socket stays ready, so a pause keeps the loop from spinning.
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    return;
                }
            }
        }
    }

    /// True if the bound of connections leaves further ones in the accept queue, which is then not read.
    fn holds_more(&mut self) -> bool {
        let bound = self.settings.faults.connections;
        let holds =
            bound.is_some_and(|bound| bound.above == Above::Hold && self.open as u64 >= bound.most);
        if self.is_accepting == holds {
            self.is_accepting = !holds;
            let events = if holds { 0 } else { READ };
            // It fails for no descriptor that is ours and watched.
            let _ = self
                .epoll
                .modify(self.listener.as_raw_fd(), events, LISTENER);
        }
        holds
    }

    fn admit(&mut self, socket: OwnedFd, is_control: bool) {
        let fd = socket.as_raw_fd();
        if !is_control {
            self.counts.add(Total::Connections);
            let bound = self.settings.faults.connections;
            if bound.is_some_and(|bound| self.open as u64 >= bound.most) {
                sys::reset_on_close(fd);
                self.counts.inject(Injected::Connection);
                return;
            }
            self.open += 1;
        }
        let pacing = if is_control {
            None
        } else {
            self.pacing(Direction::Response)
        };
        let token = self
            .clients
            .insert(|token| Client::new(Wire::new(socket, token, pacing), is_control));
        match self.epoll.add(fd, READ, token) {
            Ok(()) => {
                if let Some(client) = self.clients.get(token) {
                    client.wire.watched = READ;
                }
            }
            Err(_) => self.remove_client(token),
        }
    }

    /// Slowdown of a direction's bytes; none: they are not slowed down.
    pub fn pacing(&self, direction: Direction) -> Option<Pacing> {
        let bandwidth = self.settings.faults.bandwidth?;
        (bandwidth.of == direction || bandwidth.of == Direction::Both)
            .then(|| Pacing::on((!bandwidth.shared).then(|| pace::Link::new(bandwidth.rate))))
    }

    /// Takes a client out; its socket is closed with it, and its place goes to the next.
    pub fn remove_client(&mut self, token: u64) {
        let Some(client) = self.clients.remove(token) else {
            return;
        };
        let now = sys::monotonic_ns();
        match client.stage {
            Stage::Waiting(since_ns) => {
                self.admission.leave(token);
                self.counts.wait(now - since_ns);
                self.counts.end(Outcome::Gone);
            }
            Stage::Granted => {
                self.counts.end(Outcome::Gone);
                self.release();
            }
            Stage::Delayed => self.counts.end(Outcome::Gone),
            Stage::Writing(Some(_)) => self.counts.end(Outcome::Gone),
            Stage::Served(upstream) => {
                self.counts.end(Outcome::Gone);
                self.orphan(upstream);
            }
            _ => {}
        }
        if !client.is_control {
            self.open -= 1;
            if !self.is_accepting {
                self.holds_more();
            }
        }
    }

    /// Its client is gone: the service is heard to the end, as it has the request and works on it, but neither
    /// for ever nor without end. A request that is not whole can only be broken off.
    pub fn orphan(&mut self, token: u64) {
        let Some(upstream) = self.upstreams.get(token) else {
            return;
        };
        upstream.client = None;
        upstream.cut = None;
        upstream.patience = UNWANTED;
        upstream.deadline_ns = sys::monotonic_ns().saturating_add(self.settings.timeout_ns);
        if !upstream.has_all || matches!(upstream.part, Part::Connecting) {
            self.remove_upstream(token);
            self.release();
        } else if matches!(upstream.part, Part::Held) {
            upstream.part = Part::Head;
            upstream.was_held = true;
            self.read_answer(token);
        }
        self.watch_upstream(token);
    }

    /// Takes a connection to the service out; its socket is closed with it.
    pub fn remove_upstream(&mut self, token: u64) {
        if let Some(upstream) = self.upstreams.remove(token) {
            if matches!(upstream.part, Part::Idle) {
                self.idle[upstream.backend].retain(|&idle| idle != token);
            }
        }
    }

    /// A place at the service is free again.
    pub fn release(&mut self) {
        let Some(next) = self.admission.release() else {
            return;
        };
        if let Some(client) = self.clients.get(next) {
            if let Stage::Waiting(since_ns) = client.stage {
                self.counts.wait(sys::monotonic_ns() - since_ns);
            }
            client.stage = Stage::Granted;
            client.at_ns = 0;
            self.jobs.push_back(Job::Forward(next));
        }
    }

    // --------------------------------------------------------------------------------------------- events

    fn on_client(&mut self, token: u64, events: u32) {
        let Some(client) = self.clients.get(token) else {
            return;
        };
        if events & !WRITE != 0 {
            let count = client.wire.receive(&mut self.buffer);
            if !client.is_control {
                self.counts.add_bytes(Way::FromClient, count);
            }
            client.wire.note(events, count);
            if client.wire.peer != Peer::There {
                return self.remove_client(token);
            }
            match client.stage {
                Stage::Idle => self.jobs.push_back(Job::Next(token)),
                Stage::Served(upstream) => self.pump_request(token, upstream),
                Stage::Skipping => self.skip(token),
                Stage::Silent | Stage::Over | Stage::Breaking => client.wire.take_all(),
                _ => {}
            }
        }
        if events & WRITE != 0 {
            self.flush_client(token);
        }
        self.watch_client(token);
    }

    fn on_upstream(&mut self, token: u64, events: u32) {
        let now = sys::monotonic_ns();
        let Some(upstream) = self.upstreams.get(token) else {
            return;
        };
        if matches!(upstream.part, Part::Connecting) {
            return self.on_connected(token);
        }
        if events & WRITE != 0 {
            self.flush_upstream(token);
        }
        let Some(upstream) = self.upstreams.get(token) else {
            return;
        };
        if events & !WRITE != 0 {
            let count = upstream.wire.receive(&mut self.buffer);
            self.counts.add_bytes(Way::FromUpstream, count);
            upstream.wire.note(events, count);
            if matches!(upstream.part, Part::Idle) {
                self.counts.add(Total::UpstreamEndedIdle);
                return self.remove_upstream(token);
            }
            if upstream.client.is_some() {
                upstream.deadline_ns = now.saturating_add(self.settings.timeout_ns);
            } else if count > upstream.patience {
                self.remove_upstream(token);
                return self.release();
            } else {
                upstream.patience -= count;
            }
            self.read_answer(token);
        }
        self.watch_upstream(token);
    }

    /// Sends what may go to a client, and goes on when everything has.
    pub fn flush_client(&mut self, token: u64) {
        let now = sys::monotonic_ns();
        let Some(client) = self.clients.get(token) else {
            return;
        };
        let count = client.wire.flush(now, self.links[0].as_mut());
        if !client.is_control {
            self.counts.add_bytes(Way::ToClient, count);
        }
        if let Some(at_ns) = client.wire.time_link() {
            self.timers.push(at_ns, What::Pace, token);
        }
        let (pending, stage) = (client.wire.pending(), client.stage);
        match stage {
            Stage::Writing(_) if pending == 0 => self.written(token),
            Stage::Breaking if pending == 0 => self.break_off(token),
            // The service waits until its last bytes are out; now there is room for more.
            Stage::Served(upstream) if pending < LOW && count > 0 => self.watch_upstream(upstream),
            _ => {}
        }
        self.watch_client(token);
    }

    /// Sends what may go to the service, and takes more of the request when there is room.
    pub fn flush_upstream(&mut self, token: u64) {
        let now = sys::monotonic_ns();
        let Some(upstream) = self.upstreams.get(token) else {
            return;
        };
        if matches!(upstream.part, Part::Connecting) {
            return;
        }
        let count = upstream.wire.flush(now, self.links[1].as_mut());
        self.counts.add_bytes(Way::ToUpstream, count);
        if upstream.deadline_ns > 0 && count > 0 {
            upstream.deadline_ns = now.saturating_add(self.settings.timeout_ns);
        }
        if let Some(at_ns) = upstream.wire.time_link() {
            self.timers.push(at_ns, What::Pace, token);
        }
        let has_room = upstream.wire.pending() < LOW && !upstream.has_all;
        let client = upstream.client;
        self.watch_upstream(token);
        if let (true, Some(client)) = (has_room && count > 0, client) {
            self.pump_request(client, token);
            self.watch_client(client);
        }
    }

    /// Has epoll watch what matters of a client now.
    pub fn watch_client(&mut self, token: u64) {
        let Some(client) = self.clients.get(token) else {
            return;
        };
        let reads = client.wire.peer == Peer::There && client.wire.has_room();
        watch(&self.epoll, &mut client.wire, reads, false);
    }

    /// Has epoll watch what matters of a connection to the service now.
    pub fn watch_upstream(&mut self, token: u64) {
        let Some(upstream) = self.upstreams.get(token) else {
            return;
        };
        let is_free = upstream
            .client
            .and_then(|client| self.clients.get(client))
            .is_none_or(|client| client.wire.pending() < crate::wire::HIGH);
        let is_connecting = matches!(upstream.part, Part::Connecting);
        let reads = is_free
            && upstream.wire.peer == Peer::There
            && upstream.wire.has_room()
            && !is_connecting;
        watch(&self.epoll, &mut upstream.wire, reads, is_connecting);
    }

    // ----------------------------------------------------------------------------------------------- ends

    /// Our side ends; the client is heard until its own end, so that what we said is not lost to a reset.
    pub fn end_client(&mut self, token: u64) {
        let Some(client) = self.clients.get(token) else {
            return;
        };
        if client.wire.peer != Peer::There {
            return self.remove_client(token);
        }
        sys::end_sending(client.wire.socket.as_raw_fd());
        client.wire.take_all();
        client.stage = Stage::Over;
        let at_ns = sys::monotonic_ns() + PATIENCE_NS;
        client.at_ns = at_ns;
        self.set_timer(token, at_ns);
        self.watch_client(token);
    }

    /// Resets a client's connection as soon as it has what was sent to it: a reset overtakes what is on its
    /// way. Its request has had its outcome.
    pub fn break_off(&mut self, token: u64) {
        let now = sys::monotonic_ns();
        let Some(client) = self.clients.get(token) else {
            return;
        };
        if client.stage != Stage::Breaking {
            client.stage = Stage::Breaking;
            client.breaks_ns = now + PATIENCE_NS;
        }
        let is_out =
            client.wire.pending() == 0 && sys::unacknowledged(client.wire.socket.as_raw_fd()) == 0;
        if is_out || now > client.breaks_ns {
            return self.reset_client(token);
        }
        client.at_ns = now + 500_000;
        let at_ns = client.at_ns;
        self.set_timer(token, at_ns);
    }

    /// Resets a client's connection at once; its request has had its outcome.
    pub fn reset_client(&mut self, token: u64) {
        if let Some(client) = self.clients.get(token) {
            sys::reset_on_close(client.wire.socket.as_raw_fd());
            client.stage = Stage::Over;
        }
        self.remove_client(token);
    }
}

fn is_upstream(token: u64) -> bool {
    token & KIND != 0 && token < RESERVED
}

fn watch(epoll: &Epoll, wire: &mut Wire, reads: bool, is_connecting: bool) {
    if wire.peer == Peer::Reset {
        // epoll would report the end again and again.
        epoll.forget(wire.socket.as_raw_fd());
        return;
    }
    let writes = wire.waits_for_room() || is_connecting;
    let wanted = if reads { READ } else { 0 } | if writes { WRITE } else { 0 };
    if wanted != wire.watched {
        wire.watched = wanted;
        // It fails for no descriptor that is ours and watched.
        let _ = epoll.modify(wire.socket.as_raw_fd(), wanted, wire.token);
    }
}
