//! The connections of one worker, in a slab. A token names one connection for good: when its place is
//! used again, the generation differs and late events of the old one find nothing.

use loadlens_http::whole::Framing;

use crate::user::NONE;

use super::reply::Reply;
use super::timers::UserRef;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The place is free.
    Free,
    /// Not yet standing; its user's request is issued.
    Connecting,
    /// Standing, nothing asked.
    Idle,
    /// Its user waits for an answer.
    Busy,
}

/// Part of a request that has not left yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// Everything left.
    Nothing,
    /// The static request of the user's step, from this byte on.
    Static(usize),
    /// A buffer of the store, from this byte on.
    Kept(u32, usize),
}

/// One connection.
#[derive(Debug)]
pub struct Connection<H> {
    /// The transport's name for it; none while the place is free.
    pub handle: Option<H>,
    generation: u32,
    /// State of the connection.
    pub state: State,
    /// Index of its shard in the worker.
    pub shard: u8,
    /// Index of the address that it was begun to.
    pub address: u8,
    /// Its user: the one that sends over it, or for which it is kept; [`NONE`]: no user.
    pub user: u32,
    /// Number in its stream.
    pub number: u32,
    /// Requests issued on it.
    pub issued: u32,
    /// Answers that came over it.
    pub answered: u32,
    /// Time at which connecting began.
    pub opened: u64,
    /// Time at which it was established; 0: not yet.
    pub established: u64,
    /// Bytes that came.
    pub bytes_in: u64,
    /// Framing that follows from the script's request under way.
    pub framing: Framing,
    /// Part of the request that has not left yet.
    pub unsent: Unsent,
    /// The answer being read.
    pub reply: Reply,
}

impl<H> Connection<H> {
    /// A place without a connection.
    fn vacant(generation: u32) -> Self {
        Connection {
            handle: None,
            generation,
            state: State::Free,
            shard: 0,
            address: 0,
            user: NONE,
            number: 0,
            issued: 0,
            answered: 0,
            opened: 0,
            established: 0,
            bytes_in: 0,
            framing: Framing::default(),
            unsent: Unsent::Nothing,
            reply: Reply::default(),
        }
    }

    /// The user that the connection serves; one of its number [`NONE`] without one.
    #[inline]
    pub fn who(&self) -> UserRef {
        UserRef {
            shard: self.shard,
            user: self.user,
        }
    }

    /// A request goes out over it.
    #[inline]
    pub fn issue(&mut self) {
        self.state = State::Busy;
        self.issued += 1;
    }
}

/// All connections of one worker.
#[derive(Debug)]
pub struct Connections<H> {
    slots: Vec<Connection<H>>,
    free: Vec<u32>,
}

impl<H: Copy> Connections<H> {
    /// Room for so many connections without growing.
    pub fn with_room(connections: usize) -> Self {
        Connections {
            slots: Vec::with_capacity(connections),
            free: Vec::with_capacity(connections),
        }
    }

    /// A free place: its index and the token that events of its next connection carry.
    pub fn reserve(&mut self) -> (u32, u64) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Connection::vacant(0));
            self.slots.len() as u32 - 1
        });
        (index, self.token(index))
    }

    /// Takes a reserved place for a connection that was begun.
    pub fn begin(&mut self, index: u32, handle: H, shard: u8, user: u32, number: u32, now: u64) {
        let connection = self.get_mut(index);
        *connection = Connection {
            handle: Some(handle),
            state: State::Connecting,
            shard,
            user,
            number,
            opened: now,
            ..Connection::vacant(connection.generation)
        };
    }

    /// The token of the connection at `index`.
    pub fn token(&self, index: u32) -> u64 {
        u64::from(self.slots[index as usize].generation) << 32 | u64::from(index)
    }

    /// The index that a token names, if its connection is still there.
    #[inline]
    pub fn find(&self, token: u64) -> Option<u32> {
        let index = token as u32;
        let connection = self.slots.get(index as usize)?;
        (connection.generation == (token >> 32) as u32 && connection.state != State::Free)
            .then_some(index)
    }

    /// One connection.
    #[inline]
    pub fn get(&self, index: u32) -> &Connection<H> {
        &self.slots[index as usize]
    }

    /// One connection.
    #[inline]
    pub fn get_mut(&mut self, index: u32) -> &mut Connection<H> {
        &mut self.slots[index as usize]
    }

    /// Frees a place.
    pub fn free(&mut self, index: u32) {
        let connection = &mut self.slots[index as usize];
        connection.state = State::Free;
        connection.handle = None;
        // 2^31 generations: the top bit stays clear, so no token is all ones.
        connection.generation = (connection.generation + 1) & (u32::MAX >> 1);
        self.free.push(index);
    }

    /// Number of connections, reserved places included.
    pub fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Indices of all connections that are there.
    pub fn all(&self) -> impl Iterator<Item = u32> + '_ {
        let taken = |(_, connection): &(usize, &Connection<H>)| connection.state != State::Free;
        self.slots
            .iter()
            .enumerate()
            .filter(taken)
            .map(|(index, _)| index as u32)
    }
}
