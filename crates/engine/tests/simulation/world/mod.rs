//! A network and a clock that exist only in memory: one seed, one history.
//!
//! `servers` decide what comes back; `net` is what the worker calls. The world keeps books of its own: what was asked on each
//! connection, when the last byte of its answer lay in the socket, and what the worker read on its clock when it had taken it.
//! It panics at what no single result shows: a connection used after its end, a request on a spoilt one, two at once.

mod net;
mod servers;

use std::collections::BTreeMap;

use loadlens_base::Random;
use loadlens_transport::{NetError, Ready};

pub use net::Sim;

/// Answer of a scripted server to the text of a request: its pieces, each so long after the one before.
pub type Script = Box<dyn FnMut(&str) -> Vec<(u64, Vec<u8>)>>;

/// Nature of a world: chances in a thousand, unless it says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Nature {
    /// That an exchange goes wrong; of connects a quarter of it.
    pub mischief: u64,
    /// End of mischief and freezes, in nanoseconds.
    pub until: u64,
    /// The longest that a good answer takes.
    pub longest: u64,
    /// That a send takes only a part, or nothing.
    pub short_sends: u64,
    /// That a connection stands when it was begun.
    pub stands_at_once: u64,
    /// That an answer comes in pieces.
    pub splits: u64,
    /// That a wait reports an event that is not there.
    pub spurious: u64,
    /// That our thread is kept from its core after a call, in a hundred thousand.
    pub freezes: u64,
    /// The longest that it is.
    pub longest_freeze: u64,
    /// True if every answer is the same.
    pub is_plain: bool,
}

impl Nature {
    /// Good servers on a machine of one's own.
    pub const GOOD: Nature = Nature {
        mischief: 0,
        until: u64::MAX,
        longest: 3_000_000,
        short_sends: 0,
        stands_at_once: 0,
        splits: 0,
        spurious: 0,
        freezes: 0,
        longest_freeze: 0,
        is_plain: false,
    };
}

/// Listener at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listens {
    /// A server.
    Server,
    /// No listener: the connect fails at once, or an event reports it.
    Nobody,
    /// Nothing ever comes back.
    BlackHole,
}

/// One request and its answer, as the world saw them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exchange {
    /// The send that took its first byte.
    pub asked_at: u64,
    /// Position in the server's bytes at which its answer ends; none: the server gave no whole answer.
    pub ends: Option<usize>,
    /// True if the answer ends with the connection.
    pub until_close: bool,
    /// Time at which the last byte lay in our socket.
    pub arrived_at: Option<u64>,
    /// Our clock at its first reading after the last byte was taken.
    pub read_at: Option<u64>,
}

/// Piece from the other side.
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

/// One connection, both of its sides.
#[derive(Debug, Default)]
pub struct Link {
    token: u64,
    /// The port that it was opened to, which names the stream.
    pub port: u16,
    /// Its number among those to this port.
    pub number: u32,
    pub exchanges: Vec<Exchange>,
    /// True if unrequested bytes were sent: those that look like an answer, and come when one is expected,
    /// cannot be distinguished from it.
    pub is_poisoned: bool,
    is_open: bool,
    is_connected: bool,
    /// True if it was begun quietly and the first send has not come: until then there are no events.
    is_quiet: bool,
    failed: Option<NetError>,
    inbox: Vec<u8>,
    has_ended: bool,
    is_reset: bool,
    /// True if the end was reported to the worker: from then on it may only close the link.
    is_known_dead: bool,
    /// Bytes of the request being received.
    request: Vec<u8>,
    /// True if an answer is owed: a request before it is pipelined.
    owes: bool,
    /// True if the server has left: bytes sent now are never read.
    is_left: bool,
    /// Position in the client's reading at which the server has done something after which no request may follow.
    spoilt_at: Option<usize>,
    /// Bytes that the server has sent, that lay in our socket, and that the worker has read.
    sent: usize,
    arrived: usize,
    read: usize,
    /// Arrival of the last piece: pieces sent later arrive later.
    last_at: u64,
    /// Part of the last event that was not delivered yet.
    ready: Option<Ready>,
}

/// Everything that there is.
pub struct World {
    pub now: u64,
    pub nature: Nature,
    random: Random,
    pub links: Vec<Link>,
    /// By time and order.
    coming: BTreeMap<(u64, u64), (usize, Piece)>,
    order: u64,
    /// Listeners at the addresses of each port, in the order of its addresses.
    pub listens: BTreeMap<u16, Vec<Listens>>,
    /// Time at which the whole process is stopped for 5 s, if it is.
    pub stop_at: Option<u64>,
    /// Times in which our thread did not run: from, until.
    pub frozen: Vec<(u64, u64)>,
    /// Sends, receives and waits: one call of the system each.
    pub calls: u64,
    /// Waits after which nothing had happened and before which nothing had been sent.
    pub idle_waits: u64,
    has_sent: bool,
    /// Exchanges whose last byte was taken since the clock was last read: link and place.
    taken: Vec<(usize, usize)>,
    pub answers: u64,
    /// Pieces that look like answers and came late, without a request.
    pub late_poison: u64,
    pub requests: u64,
    pub bytes_out: u64,
    pub bytes_in: u64,
    pub opened: BTreeMap<u16, u32>,
    pub most_open: usize,
    pub open: usize,
    /// Connects whose first send shows whether they are established.
    pub quiet_connects: u32,
    /// Script of the servers' answers; none: they follow chance and nature.
    pub script: Option<Script>,
    /// Whole requests of a script in the order in which they came.
    pub asked: Vec<String>,
    /// Called at each wait: the collector's turn.
    pub at_wait: Option<Box<dyn FnMut()>>,
}

impl World {
    pub fn new(random: Random, nature: Nature) -> Self {
        World {
            now: 0,
            nature,
            random,
            links: Vec::new(),
            coming: BTreeMap::new(),
            order: 0,
            listens: BTreeMap::new(),
            stop_at: None,
            frozen: Vec::new(),
            calls: 0,
            idle_waits: 0,
            has_sent: false,
            taken: Vec::new(),
            answers: 0,
            late_poison: 0,
            requests: 0,
            bytes_out: 0,
            bytes_in: 0,
            opened: BTreeMap::new(),
            most_open: 0,
            open: 0,
            quiet_connects: 0,
            script: None,
            asked: Vec::new(),
            at_wait: None,
        }
    }

    /// Good servers that answer as a script says.
    pub fn scripted(script: impl FnMut(&str) -> Vec<(u64, Vec<u8>)> + 'static) -> Self {
        let mut world = World::new(Random::new(1), Nature::GOOD);
        world.script = Some(Box::new(script));
        world
    }

    /// Time for which our thread did not run between two moments.
    pub fn frozen_within(&self, from: u64, until: u64) -> u64 {
        let overlap = |&(begin, end): &(u64, u64)| end.min(until).saturating_sub(begin.max(from));
        self.frozen.iter().map(overlap).sum()
    }

    fn chance(&mut self, in_a_thousand: u64) -> bool {
        in_a_thousand > 0 && self.random.below(1000) < in_a_thousand
    }

    pub fn mischief(&self) -> u64 {
        if self.now < self.nature.until {
            self.nature.mischief
        } else {
            0
        }
    }

    /// A call of the system that takes so long, and perhaps the scheduler's pleasure.
    fn spend(&mut self, ns: u64) {
        self.now += ns;
        let freezes = self.nature.freezes;
        if freezes > 0 && self.now < self.nature.until && self.random.below(100_000) < freezes {
            let length = 1 + self.random.below(self.nature.longest_freeze);
            self.freeze(length);
        }
    }

    fn freeze(&mut self, ns: u64) {
        self.frozen.push((self.now, self.now + ns));
        self.now += ns;
    }

    fn later(&mut self, link: usize, delay: u64, piece: Piece) {
        self.order += 1;
        let at = (self.now + delay).max(self.links[link].last_at + 1);
        let from = &mut self.links[link];
        match &piece {
            Piece::Bytes(bytes) => from.sent += bytes.len(),
            Piece::End | Piece::Reset => from.is_left = true,
            _ => {}
        }
        if !matches!(piece, Piece::Room | Piece::Connected(_)) {
            from.last_at = at;
        }
        self.coming.insert((at, self.order), (link, piece));
    }

    /// Brings the pieces that have arrived by now to their links.
    fn deliver(&mut self) {
        while let Some((&(at, order), _)) = self.coming.first_key_value() {
            if at > self.now {
                return;
            }
            let (link, piece) = self.coming.remove(&(at, order)).unwrap();
            self.deliver_piece(link, piece, at);
        }
    }

    /// Ends a connect now that was to end later.
    fn hasten(&mut self, handle: usize) {
        let is_its_end = |(link, piece): &(usize, Piece)| {
            *link == handle && matches!(piece, Piece::Connected(_))
        };
        let entry = self.coming.iter().find(|(_, coming)| is_its_end(coming));
        let Some((&key, _)) = entry else { return };
        if let Some((_, Piece::Connected(error))) = self.coming.remove(&key) {
            let link = &mut self.links[handle];
            link.is_connected = error.is_none();
            link.failed = error;
        }
    }

    fn deliver_piece(&mut self, at: usize, piece: Piece, when: u64) {
        if let Piece::Flood(left) = piece {
            if left > 0 && self.links[at].is_open {
                self.later(at, 2_000, Piece::Flood(left - 1));
            }
        }
        let purges = self.random.below(2) == 0;
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
                link.arrive(&bytes, when);
                ready.readable = true;
            }
            Piece::Flood(_) => {
                link.sent += 8192;
                link.arrive(&[b'x'; 8192], when);
                ready.readable = true;
            }
            Piece::End => {
                link.has_ended = true;
                link.arrive_at_end(when);
                ready.readable = true;
                ready.ended = true;
            }
            Piece::Reset => {
                // What was not read yet is gone, or can still be read: systems differ.
                if purges {
                    link.inbox.clear();
                }
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
}

impl Link {
    fn arrive(&mut self, bytes: &[u8], when: u64) {
        self.inbox.extend_from_slice(bytes);
        self.arrived += bytes.len();
        for exchange in self.exchanges.iter_mut().rev().take(2) {
            if exchange.ends.is_some_and(|end| end <= self.arrived) && !exchange.until_close {
                exchange.arrived_at.get_or_insert(when);
            }
        }
    }

    fn arrive_at_end(&mut self, when: u64) {
        for exchange in self.exchanges.iter_mut().filter(|one| one.until_close) {
            exchange.arrived_at.get_or_insert(when);
        }
    }

    /// After `length` more bytes no request may follow.
    fn spoil(&mut self, length: usize) {
        self.spoilt_at = Some(self.sent + length);
    }

    /// The answer that is owed ends after `length` more bytes.
    fn settle(&mut self, length: usize) {
        self.owes = false;
        if let Some(exchange) = self.exchanges.last_mut() {
            exchange.ends = Some(self.sent + length);
        }
    }
}
