//! Connections of one stream on one thread: their bound, the idle ones, and the users waiting for one.

use std::collections::VecDeque;

use loadlens_plan::arrival::Part;
use loadlens_plan::{Connection, Reuse};

/// Connections of one stream on one thread.
#[derive(Debug)]
pub struct Pool {
    /// Requests that a connection carries.
    pub requests_per_connection: u32,
    /// True if each user has a connection of its own.
    pub is_sticky: bool,
    /// Connections at once.
    pub most: u32,
    /// Connections there are, connecting ones included.
    pub open: u32,
    /// Idle connections by token, the one idle longest first; some may be gone by now.
    pub idle: VecDeque<u64>,
    /// Users who wait for a connection.
    pub queue: VecDeque<u32>,
    /// Users whose wait is over because there is room for their connection: ready, and still counted as queueing.
    pub called: u32,
    part: Part,
    /// Connections begun so far.
    pub begun: u64,
}

impl Pool {
    /// A pool without connections for `places` users or arrivals at once, `users` of them closed users.
    pub fn new(connection: &Connection, part: Part, places: u32, users: Option<usize>) -> Self {
        let shared = connection
            .pool
            .map(|pool| (part.count_of(u64::from(pool)) as u32).max(1));
        let most = shared.unwrap_or(places);
        Pool {
            requests_per_connection: match connection.reuse {
                Reuse::Keep => u32::MAX,
                Reuse::New => 1,
                Reuse::Requests { requests } => requests,
            },
            is_sticky: users.is_some() && shared.is_none(),
            most,
            open: 0,
            idle: VecDeque::with_capacity(most.min(1 << 16) as usize),
            queue: VecDeque::with_capacity(shared.and(users).unwrap_or(0)),
            called: 0,
            part,
            begun: 0,
        }
    }

    /// A number for a new connection, unique in the stream.
    pub fn next_number(&mut self) -> u32 {
        let number = self.part.number(self.begun);
        self.begun += 1;
        number as u32
    }
}
