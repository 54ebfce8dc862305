//! A network and a clock that exist only in memory: one seed, one history.
//!
//! The servers in it answer, stall, refuse, reset, close, split, flood and send what nobody asked for.
//! The world checks what no single result shows: that nothing is done with a connection after it was
//! closed, that no request is sent on a spoilt one, and that answers counted are answers given.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use loadlens_engine::clock::{Clock, ThreadTimes};
use loadlens_engine::error::Outcome;
use loadlens_engine::random::Random;
use loadlens_engine::transport::{Io, Net, NetError, Ready};

/// What comes from the other side.
#[derive(Clone, Debug)]
enum Piece {
    Bytes(Vec<u8>),
    End,
    Reset,
    /// Connecting has ended.
    Connected(Option<NetError>),
    /// Room for the rest of a request.
    Room,
    /// Bytes without end, so many more times.
    Flood(u32),
}

#[derive(Debug, Default)]
struct Link {
    token: u64,
    is_open: bool,
    is_connected: bool,
    failed: Option<NetError>,
    inbox: Vec<u8>,
    has_ended: bool,
    is_reset: bool,
    /// Bytes of the request being received.
    request: Vec<u8>,
    /// Whether an answer is owed: a request before it is pipelined.
    owes: bool,
    /// Whether bytes are under way that nobody asked for: those that look like an answer, and come when one is
    /// expected, cannot be told from it.
    is_poisoned: bool,
    /// Whether the server has said or done something after which no request may follow, as far as the client has read.
    spoilt_at: Option<usize>,
    /// Bytes that the server has sent, and that the client has read.
    sent: usize,
    read: usize,
    /// When the last piece arrives: what is sent later arrives later.
    last_at: u64,
    /// What the last event told and was not delivered yet.
    ready: Option<Ready>,
}

/// Everything that there is.
pub struct World {
    pub now: u64,
    random: Random,
    links: Vec<Link>,
    /// By time and order.
    coming: BTreeMap<(u64, u64), (usize, Piece)>,
    order: u64,
    /// Chances of misbehaviour in a thousand.
    pub mischief: u64,
    /// The longest that a good answer takes.
    pub longest: u64,
    /// When the whole process is stopped for 5 s, if it is.
    pub stop_at: Option<u64>,
    /// An address at which nobody listens.
    pub dead: Option<SocketAddr>,
    /// Whether every answer is the same, in one piece.
    pub is_plain: bool,
    /// Sends, receives and waits: one call of the system each.
    pub calls: u64,
    pub answers: u64,
    /// Things that look like answers and came late to nobody's request.
    pub late_poison: u64,
    pub requests: u64,
    pub opened: u64,
    pub most_open: usize,
    open: usize,
    /// Called at each wait: the collector's turn.
    pub at_wait: Option<Box<dyn FnMut()>>,
}

/// A handle on the world, as clock and as network.
#[derive(Clone)]
pub struct Sim(pub Rc<RefCell<World>>);

impl World {
    pub fn new(seed: u64, mischief: u64) -> Self {
        World {
            now: 0,
            random: Random::derived(seed, &[77]),
            links: Vec::new(),
            coming: BTreeMap::new(),
            order: 0,
            mischief,
            longest: 3_000_000,
            stop_at: None,
            dead: None,
            is_plain: false,
            calls: 0,
            answers: 0,
            late_poison: 0,
            requests: 0,
            opened: 0,
            most_open: 0,
            open: 0,
            at_wait: None,
        }
    }

    fn chance(&mut self, in_a_thousand: u64) -> bool {
        self.random.below(1000) < in_a_thousand
    }

    fn later(&mut self, link: usize, delay: u64, piece: Piece) {
        self.order += 1;
        let at = (self.now + delay).max(self.links[link].last_at + 1);
        if let Piece::Bytes(bytes) = &piece {
            self.links[link].sent += bytes.len();
        }
        if !matches!(piece, Piece::Room | Piece::Connected(_)) {
            self.links[link].last_at = at;
        }
        self.coming.insert((at, self.order), (link, piece));
    }

    /// Brings what has come by now to its links.
    fn deliver(&mut self) {
        while let Some((&(at, order), _)) = self.coming.first_key_value() {
            if at > self.now {
                return;
            }
            let (link, piece) = self.coming.remove(&(at, order)).unwrap();
            self.deliver_piece(link, piece);
        }
    }

    fn deliver_piece(&mut self, at: usize, piece: Piece) {
        if let Piece::Flood(left) = piece {
            if left > 0 && self.links[at].is_open {
                self.later(at, 2_000, Piece::Flood(left - 1));
            }
        }
        let link = &mut self.links[at];
        if !link.is_open {
            return;
        }
        let mut ready = link.ready.unwrap_or(Ready {
            token: link.token,
            ..Ready::default()
        });
        ready.writable |= link.is_connected;
        match piece {
            Piece::Bytes(bytes) => {
                link.inbox.extend_from_slice(&bytes);
                ready.readable = true;
            }
            Piece::Flood(_) => {
                link.sent += 8192;
                link.inbox.extend_from_slice(&[b'x'; 8192]);
                ready.readable = true;
            }
            Piece::End => {
                link.has_ended = true;
                ready.readable = true;
                ready.ended = true;
            }
            Piece::Reset => {
                link.is_reset = true;
                ready.readable = true;
                ready.writable = true;
                ready.ended = true;
                ready.failed = true;
            }
            Piece::Connected(error) => {
                link.is_connected = error.is_none();
                link.failed = error;
                ready.writable = true;
                ready.readable |= error.is_some();
                ready.failed |= error.is_some();
            }
            Piece::Room => ready.writable = true,
        }
        link.ready = Some(ready);
    }

    /// A whole request has come: decides what happens.
    fn answer(&mut self, at: usize) {
        self.requests += 1;
        self.links[at].owes = true;
        let delay = 1_000 + self.random.below(self.longest);
        if !self.chance(self.mischief) {
            let answer = self.good_answer();
            self.give(at, delay, answer);
            return;
        }
        match self.random.below(15) {
            0 => {} // stalls for ever
            1 => self.later(at, delay, Piece::Reset),
            2 => self.later(at, delay, Piece::End),
            3 => {
                // cut short, then the end or a reset
                let mut answer = self.good_answer();
                let length = self.random.below(answer.len() as u64) as usize;
                answer.truncate(length);
                self.put(at, delay, answer);
                let piece = if self.chance(500) {
                    Piece::End
                } else {
                    Piece::Reset
                };
                self.later(at, delay + 50_000, piece);
            }
            4 => {
                // whole, and bytes that nobody asked for behind it
                let mut answer = self.good_answer();
                let length = answer.len();
                answer.extend_from_slice(&self.good_answer());
                self.spoil(at, length + 1);
                self.answers += 1;
                self.links[at].owes = false;
                // In one piece: were the answer read alone, the next request could be on its way already.
                self.later(at, delay, Piece::Bytes(answer));
            }
            5 => {
                // whole, and later bytes that nobody asked for
                let answer = self.good_answer();
                self.give(at, delay, answer);
                self.late_poison += 1;
                self.links[at].is_poisoned = true;
                let late = self.random.below(5_000_000);
                let poison = self.good_answer();
                self.put(at, delay + late, poison);
            }
            6 => {
                // said to be the last
                let answer =
                    b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}".to_vec();
                self.spoil(at, answer.len());
                self.give(at, delay, answer);
                if self.chance(500) {
                    self.later(at, delay, Piece::End);
                }
            }
            7 => {
                // the end right after it, unsaid
                let answer = self.good_answer();
                self.give(at, delay, answer);
                let late = if self.chance(500) {
                    0
                } else {
                    self.random.below(200_000)
                };
                self.later(at, delay + late, Piece::End);
            }
            8 => self.put(at, delay, b"SSH-2.0-nonsense\r\n".to_vec()),
            9 => self.later(at, delay, Piece::Flood(400)),
            10 => {
                self.put(
                    at,
                    delay,
                    b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n".to_vec(),
                );
                self.later(at, delay + 10, Piece::Flood(400));
            }
            11 => {
                self.answers += 1;
                self.links[at].owes = false;
                let answer = b"HTTP/1.1 200 OK\r\n\r\nuntil the end".to_vec();
                self.spoil(at, answer.len());
                self.put(at, delay, answer);
                self.later(at, delay + 100_000, Piece::End);
            }
            12 => {
                for number in 0..self.random.below(1_200) {
                    self.later(
                        at,
                        delay + number,
                        Piece::Bytes(b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec()),
                    );
                }
                let answer = self.good_answer();
                self.give(at, delay + 2_000, answer);
            }
            13 => {
                let answer = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_vec();
                self.give(at, delay, answer);
            }
            _ => {
                let head = b"HTTP/1.1 200 OK\r\nX-Endless: ".to_vec();
                self.put(at, delay, head);
                self.later(at, delay + 10, Piece::Flood(400));
            }
        }
    }

    fn good_answer(&mut self) -> Vec<u8> {
        match self.random.below(4) {
            0 => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"id\":1}\r\n0\r\n\r\n".to_vec(),
            1 => b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"id\":2}".to_vec(),
            2 => b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"nothing\":[0]}"[..].to_vec(),
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nX-Id: 7\r\n\r\n{\"id\":3}".to_vec(),
        }
    }

    /// After `length` more bytes no request may follow.
    fn spoil(&mut self, at: usize, length: usize) {
        self.links[at].spoilt_at = Some(self.links[at].sent + length);
    }

    /// Sends a whole answer.
    fn give(&mut self, at: usize, delay: u64, answer: Vec<u8>) {
        self.answers += 1;
        self.links[at].owes = false;
        self.put(at, delay, answer);
    }

    /// Sends bytes, in one piece or in several.
    fn put(&mut self, at: usize, mut delay: u64, mut bytes: Vec<u8>) {
        if !self.is_plain && self.chance(200) {
            while bytes.len() > 1 && self.chance(700) {
                let cut = 1 + self.random.below(bytes.len() as u64 - 1) as usize;
                let rest = bytes.split_off(cut);
                self.later(at, delay, Piece::Bytes(bytes));
                bytes = rest;
                delay += self.random.below(40_000);
            }
        }
        self.later(at, delay, Piece::Bytes(bytes));
    }

    fn link(&mut self, handle: usize) -> &mut Link {
        let link = &mut self.links[handle];
        assert!(
            link.is_open,
            "connection {handle} is used after it was closed"
        );
        link
    }
}

impl Clock for Sim {
    fn now(&self) -> u64 {
        let mut world = self.0.borrow_mut();
        world.now += 40; // looking at the clock takes time
        world.now
    }

    fn thread_times(&mut self) -> ThreadTimes {
        ThreadTimes::default()
    }
}

impl Net for Sim {
    type Handle = usize;

    fn connect(&mut self, address: &SocketAddr, token: u64) -> Result<usize, NetError> {
        let mut world = self.0.borrow_mut();
        world.now += 20_000;
        world.opened += 1;
        if world.dead == Some(*address) {
            return Err(NetError {
                outcome: Outcome::Refused,
                os_error: 111,
            });
        }
        let mischief = world.mischief / 4;
        if world.chance(mischief / 4) {
            let outcome = if world.chance(500) {
                Outcome::OwnDescriptors
            } else {
                Outcome::OwnPorts
            };
            return Err(NetError {
                outcome,
                os_error: 24,
            });
        }
        let handle = world.links.len();
        world.links.push(Link {
            token,
            is_open: true,
            ..Link::default()
        });
        world.open += 1;
        world.most_open = world.most_open.max(world.open);
        let delay = 1_000 + world.random.below(300_000);
        if !world.chance(mischief) {
            world.later(handle, delay, Piece::Connected(None));
            return Ok(handle);
        }
        match world.random.below(4) {
            0 => {} // never
            1 => {
                world.later(handle, delay, Piece::Connected(None));
                world.later(handle, delay, Piece::End);
            }
            2 => {
                let refused = NetError {
                    outcome: Outcome::Refused,
                    os_error: 111,
                };
                world.later(handle, delay, Piece::Connected(Some(refused)));
            }
            _ => {
                world.later(handle, delay, Piece::Connected(None));
                world.later(handle, delay + 1_000, Piece::Reset);
            }
        }
        Ok(handle)
    }

    fn connected(&mut self, handle: usize) -> Result<(), NetError> {
        let mut world = self.0.borrow_mut();
        let link = world.link(handle);
        assert!(
            link.is_connected || link.failed.is_some() || link.is_reset,
            "asked before it was told"
        );
        match link.failed {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn send(&mut self, handle: usize, bytes: &[u8]) -> Io {
        let mut world = self.0.borrow_mut();
        world.now += 5_000;
        world.calls += 1;
        let is_short = world.mischief > 0 && world.chance(30);
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
        if link.is_reset {
            return Io::Broken(NetError {
                outcome: Outcome::Reset,
                os_error: 32,
            });
        }
        assert!(
            !link.owes || link.is_poisoned,
            "a request was sent before the answer to the one before it"
        );
        assert!(
            link.spoilt_at.is_none_or(|at| link.read < at),
            "a request was sent on a spoilt connection: {link:?}"
        );
        link.request.extend_from_slice(&bytes[..keep]);
        let is_whole = link.request.ends_with(b"\r\n\r\n");
        if is_whole {
            link.request.clear();
            world.answer(handle);
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
        world.now += 800;
        world.calls += 1;
        let link = world.link(handle);
        if link.is_reset {
            return Io::Broken(NetError {
                outcome: Outcome::Reset,
                os_error: 104,
            });
        }
        if link.inbox.is_empty() {
            return if link.has_ended { Io::End } else { Io::Later };
        }
        let count = link.inbox.len().min(buffer.len());
        buffer[..count].copy_from_slice(&link.inbox[..count]);
        link.inbox.drain(..count);
        link.read += count;
        Io::Bytes(count)
    }

    fn close(&mut self, handle: usize) {
        let mut world = self.0.borrow_mut();
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
        world.now += 500;
        world.calls += 1;
        world.deliver();
        let until = world.now + timeout_ns;
        while !world
            .links
            .iter()
            .any(|link| link.is_open && link.ready.is_some())
            && world.now < until
        {
            let next = world
                .coming
                .first_key_value()
                .map_or(until, |((at, _), _)| *at);
            world.now = next.clamp(world.now, until).max(world.now + 1);
            world.deliver();
        }
        if world.stop_at.is_some_and(|at| at <= world.now) {
            world.stop_at = None;
            world.now += 5_000_000_000;
            world.deliver();
        }
        for link in &mut world.links {
            if link.is_open {
                ready.extend(link.ready.take());
            }
        }
        // The order of events is the kernel's, not ours.
        for at in (1..ready.len()).rev() {
            let other = world.random.below(at as u64 + 1) as usize;
            ready.swap(at, other);
        }
    }
}
