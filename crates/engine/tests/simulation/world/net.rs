//! The world as the worker sees it: a clock, and connections.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use loadlens_base::Outcome;
use loadlens_engine::clock::{Clock, ThreadTimes};
use loadlens_transport::{Io, Net, NetError, Ready};

use super::{Exchange, Link, Listens, Nature, Piece, World};

const REFUSED: NetError = NetError::new(Outcome::Refused, 111);

fn reset(os_error: i32) -> Io {
    Io::Broken(NetError::new(Outcome::Reset, os_error))
}

/// A handle on the world, as clock and as network.
#[derive(Clone)]
pub struct Sim(pub Rc<RefCell<World>>);

impl World {
    fn link(&mut self, handle: usize) -> &mut Link {
        let link = &mut self.links[handle];
        assert!(
            link.is_open,
            "connection {handle} is used after it was closed"
        );
        link
    }

    /// Listener at an address: its last number says which of the port's it is, from 1.
    fn listens_at(&self, address: &SocketAddr) -> Listens {
        let SocketAddr::V4(address) = address else {
            return Listens::Nobody;
        };
        let at = usize::from(address.ip().octets()[3]) - 1;
        self.listens
            .get(&address.port())
            .map_or(Listens::Server, |all| all[at])
    }

    /// Decides the end of a connect that has begun.
    fn decide_connect(&mut self, handle: usize, listens: Listens) {
        let delay = 1_000 + self.random.below(300_000);
        match listens {
            Listens::BlackHole => return,
            Listens::Nobody => return self.later(handle, delay, Piece::Connected(Some(REFUSED))),
            Listens::Server => {}
        }
        if !self.chance(self.mischief() / 4) {
            return self.later(handle, delay, Piece::Connected(None));
        }
        let kind = self.random.below(6);
        match kind {
            0 => return, // never
            1 => return self.later(handle, delay, Piece::Connected(Some(REFUSED))),
            _ => self.later(handle, delay, Piece::Connected(None)),
        }
        match kind {
            2 => self.later(handle, delay, Piece::End),
            3 => self.later(handle, delay + 1_000, Piece::Reset),
            4 => {
                // speaks first: whatever follows cannot be read
                self.links[handle].is_poisoned = true;
                self.later(handle, delay, Piece::Bytes(b"220 smtp\r\n".to_vec()));
            }
            _ => self.poison(handle, delay),
        }
    }

    /// Takes notice of bytes of a request; says whether it is whole.
    fn take_request(&mut self, handle: usize, bytes: &[u8]) -> bool {
        let now = self.now;
        let link = self.link(handle);
        if link.request.is_empty() {
            link.exchanges.push(Exchange {
                asked_at: now,
                ..Exchange::default()
            });
        }
        link.request.extend_from_slice(bytes);
        let is_whole = is_whole(&link.request);
        if is_whole {
            let request = std::mem::take(&mut link.request);
            if self.script.is_some() {
                self.asked.push(String::from_utf8(request).expect("text"));
            }
        }
        is_whole
    }
}

/// True if a whole request is there, head and body.
fn is_whole(request: &[u8]) -> bool {
    let text = std::str::from_utf8(request).expect("the plans send text");
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "))
        .map_or(0, |value| value.parse().expect("a number"));
    assert!(body.len() <= length, "more than one request: {text:?}");
    let is_whole = body.len() == length;
    if is_whole {
        let valid = crate::literal::request(request);
        assert!(valid.is_ok(), "{valid:?}: {text:?}");
    }
    is_whole
}

impl Clock for Sim {
    fn now(&self) -> u64 {
        let mut world = self.0.borrow_mut();
        world.spend(40); // looking at the clock takes time
        let now = world.now;
        for (link, exchange) in std::mem::take(&mut world.taken) {
            world.links[link].exchanges[exchange].read_at = Some(now);
        }
        now
    }

    fn thread_times(&mut self) -> ThreadTimes {
        ThreadTimes::default()
    }
}

impl Net for Sim {
    type Handle = usize;

    fn connect(&mut self, address: &SocketAddr, _: u8, token: u64) -> Result<usize, NetError> {
        let mut world = self.0.borrow_mut();
        world.spend(20_000);
        let count = world.opened.entry(address.port()).or_default();
        let number = *count;
        *count += 1;
        let listens = world.listens_at(address);
        if listens == Listens::Nobody && world.chance(500) {
            return Err(REFUSED);
        }
        let own = world.mischief() / 16;
        if world.chance(own) {
            let outcome = match world.random.below(3) {
                0 => Outcome::OwnDescriptors,
                1 => Outcome::OwnPorts,
                _ => Outcome::ConnectFailed,
            };
            return Err(NetError::new(outcome, 24));
        }
        let handle = world.links.len();
        world.links.push(Link {
            token,
            port: address.port(),
            number,
            is_open: true,
            ..Link::default()
        });
        world.open += 1;
        world.most_open = world.most_open.max(world.open);
        world.decide_connect(handle, listens);
        Ok(handle)
    }

    fn connect_quietly(
        &mut self,
        address: &SocketAddr,
        stream: u8,
        token: u64,
    ) -> Result<usize, NetError> {
        let handle = self.connect(address, stream, token)?;
        let mut world = self.0.borrow_mut();
        world.quiet_connects += 1;
        world.links[handle].is_quiet = true;
        let Nature { stands_at_once, .. } = world.nature;
        if world.chance(stands_at_once) {
            // Between two sockets of one machine it stands when the call returns.
            world.hasten(handle);
        }
        Ok(handle)
    }

    fn send_first(
        &mut self,
        handle: usize,
        _token: u64,
        bytes: &[u8],
    ) -> Result<Option<usize>, NetError> {
        {
            let mut world = self.0.borrow_mut();
            world.deliver();
            let link = world.link(handle);
            assert!(link.is_quiet, "the first send was made before");
            link.is_quiet = false;
            if let Some(error) = link.failed {
                return Err(error);
            }
            if !link.is_connected {
                return Ok(None);
            }
            if bytes.is_empty() {
                return Ok(Some(0));
            }
        }
        match self.send(handle, bytes) {
            Io::Bytes(sent) => Ok(Some(sent)),
            Io::Later | Io::End | Io::Cut => Ok(None),
            Io::Broken(error) => Err(error),
        }
    }

    fn connected(&mut self, handle: usize) -> Result<(), NetError> {
        let mut world = self.0.borrow_mut();
        let link = world.link(handle);
        assert!(
            link.is_connected || link.failed.is_some() || link.is_reset,
            "asked before the connect had ended"
        );
        link.failed.map_or(Ok(()), Err)
    }

    fn send(&mut self, handle: usize, bytes: &[u8]) -> Io {
        let mut world = self.0.borrow_mut();
        world.calls += 1;
        world.has_sent = true;
        let Nature { short_sends, .. } = world.nature;
        let interrupts = world.mischief() / 4;
        let is_short = world.chance(short_sends);
        let keep = if is_short {
            world.random.below(bytes.len() as u64 + 1) as usize
        } else {
            bytes.len()
        };
        let link = world.link(handle);
        assert!(
            link.is_connected,
            "a request was sent before the connection stood"
        );
        assert!(
            !link.is_known_dead,
            "a request was sent after the end had been read"
        );
        if link.is_reset {
            link.is_known_dead = true;
            return reset(32);
        }
        let begins = link.request.is_empty();
        assert!(
            !begins || !link.owes || link.is_poisoned,
            "a request was sent before the answer to the one before it"
        );
        assert!(
            !begins || link.spoilt_at.is_none_or(|at| link.read < at),
            "a request was sent on a spoilt connection: {link:?}"
        );
        world.bytes_out += keep as u64;
        let is_whole = keep > 0 && world.take_request(handle, &bytes[..keep]);
        world.spend(5_000);
        if is_whole {
            world.answer(handle);
        } else if keep > 0 && world.chance(interrupts) {
            world.interrupt(handle);
        } else {
            let delay = 1_000 + world.random.below(100_000);
            world.later(handle, delay, Piece::Room);
        }
        if keep == 0 {
            Io::Later
        } else {
            Io::Bytes(keep)
        }
    }

    fn receive(&mut self, handle: usize, buffer: &mut [u8]) -> Io {
        let mut world = self.0.borrow_mut();
        world.spend(800);
        world.calls += 1;
        world.deliver(); // what came since the wait is there too
        let link = world.link(handle);
        assert!(
            !link.is_known_dead,
            "received from again after the end had been read"
        );
        if link.inbox.is_empty() {
            if link.is_reset {
                link.is_known_dead = true;
                return reset(104);
            }
            if link.has_ended {
                link.is_known_dead = true;
                world.note_taken(handle, true);
                return Io::End;
            }
            return Io::Later;
        }
        let count = link.inbox.len().min(buffer.len());
        buffer[..count].copy_from_slice(&link.inbox[..count]);
        link.inbox.drain(..count);
        link.read += count;
        world.bytes_in += count as u64;
        world.note_taken(handle, false);
        Io::Bytes(count)
    }

    fn close(&mut self, handle: usize) {
        let mut world = self.0.borrow_mut();
        world.spend(3_000);
        world.link(handle).is_open = false;
        world.open -= 1;
    }

    fn wait(&mut self, ready: &mut Vec<Ready>, timeout_ns: u64) {
        let turn = self.0.borrow_mut().at_wait.take();
        if let Some(mut turn) = turn {
            turn();
            self.0.borrow_mut().at_wait = Some(turn);
        }
        ready.clear();
        let mut world = self.0.borrow_mut();
        world.calls += 1;
        world.spend(500);
        world.deliver();
        let until = world.now + timeout_ns;
        let Nature { spurious, .. } = world.nature;
        let tells = world.chance(spurious);
        while !tells && !world.is_any_ready() && world.now < until {
            let next = world
                .coming
                .first_key_value()
                .map_or(until, |((at, _), _)| *at);
            world.now = next.clamp(world.now, until).max(world.now + 1);
            world.deliver();
        }
        if world.stop_at.is_some_and(|at| at <= world.now) {
            world.stop_at = None;
            world.freeze(5_000_000_000);
            world.deliver();
        }
        assert!(
            world
                .links
                .iter()
                .all(|link| !link.is_open || !link.is_quiet),
            "no first send followed a quiet connect"
        );
        world.tell(ready);
        let is_idle = ready.is_empty() && !tells && !world.has_sent;
        world.idle_waits += u64::from(is_idle);
        world.has_sent = false;
        if tells {
            world.tell_wrongly(ready);
        }
        // The order of events is the kernel's, not ours.
        for at in (1..ready.len()).rev() {
            let other = world.random.below(at as u64 + 1) as usize;
            ready.swap(at, other);
        }
    }
}

impl World {
    fn is_any_ready(&self) -> bool {
        let mut open = self.links.iter().filter(|link| link.is_open);
        open.any(|link| link.ready.is_some())
    }

    fn tell(&mut self, ready: &mut Vec<Ready>) {
        let keeps_stale = self.chance(500);
        for link in self.links.iter_mut().filter(|link| link.is_open) {
            let Some(mut told) = link.ready.take() else {
                continue;
            };
            // Bytes read between event and wait need not be reported any more.
            let is_empty = link.inbox.is_empty() && !link.has_ended && !link.is_reset;
            if is_empty && link.failed.is_none() && !keeps_stale {
                told.readable = false;
            }
            ready.push(told);
        }
    }

    /// Readiness of something that is not there.
    fn tell_wrongly(&mut self, ready: &mut Vec<Ready>) {
        let standing: Vec<u64> = self
            .links
            .iter()
            .filter(|link| link.is_open && link.is_connected)
            .map(|link| link.token)
            .filter(|token| ready.iter().all(|told| told.token != *token))
            .collect();
        if standing.is_empty() {
            return;
        }
        ready.push(Ready {
            token: standing[self.random.below(standing.len() as u64) as usize],
            readable: true,
            writable: self.random.below(2) == 0,
            ..Ready::default()
        });
    }

    /// Notes exchanges whose answer the worker has taken whole: their time is what its clock says next.
    fn note_taken(&mut self, handle: usize, is_end: bool) {
        let link = &self.links[handle];
        for (at, exchange) in link.exchanges.iter().enumerate().rev().take(2) {
            let is_taken = match exchange.until_close {
                true => is_end,
                false => exchange.ends.is_some_and(|end| end <= link.read),
            };
            let is_new = exchange.read_at.is_none() && !self.taken.contains(&(handle, at));
            if is_taken && is_new {
                self.taken.push((handle, at));
            }
        }
    }
}
