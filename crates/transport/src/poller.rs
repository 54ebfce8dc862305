//! Edge-triggered readiness of sockets, in batches.

use std::io;

use loadlens_sys as sys;

use super::{Ready, Socket};

/// An epoll instance with room for one batch of events.
pub struct Poller {
    epoll: sys::Epoll,
    events: Vec<libc::epoll_event>,
}

/// Events of a socket to be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    /// Bytes, the end of the stream, errors.
    Receiving,
    /// Room to send as well, the end of connecting included.
    Both,
}

impl Directions {
    fn flags(self) -> u32 {
        let receiving = libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET;
        let flags = match self {
            Directions::Receiving => receiving,
            Directions::Both => receiving | libc::EPOLLOUT,
        };
        flags as u32
    }
}

impl Poller {
    /// Takes up to `batch` events at once.
    pub fn new(batch: usize) -> io::Result<Poller> {
        let empty = libc::epoll_event { events: 0, u64: 0 };
        Ok(Poller {
            epoll: sys::Epoll::new()?,
            events: vec![empty; batch.max(1)],
        })
    }

    /// Reports changes of `socket` as `token`. Closing the socket ends it.
    pub fn add(&self, socket: Socket, token: u64, directions: Directions) -> io::Result<()> {
        self.epoll
            .add(socket.descriptor(), directions.flags(), token)
    }

    /// Changes what is reported of `socket`; what is there already is reported again.
    pub fn change(&self, socket: Socket, token: u64, directions: Directions) -> io::Result<()> {
        self.epoll
            .modify(socket.descriptor(), directions.flags(), token)
    }

    /// Waits at most `timeout_ns` and puts what happened into `ready`; a signal ends it early with nothing.
    #[inline]
    pub fn wait(&mut self, ready: &mut Vec<Ready>, timeout_ns: u64) {
        ready.clear();
        let count = self.epoll.wait(&mut self.events, Some(timeout_ns));
        for event in &self.events[..count] {
            let (events, token) = (event.events as libc::c_int, event.u64);
            let failed = events & (libc::EPOLLERR | libc::EPOLLHUP) != 0;
            ready.push(Ready {
                token,
                readable: failed || events & (libc::EPOLLIN | libc::EPOLLRDHUP) != 0,
                writable: failed || events & libc::EPOLLOUT != 0,
                ended: failed || events & libc::EPOLLRDHUP != 0,
                failed,
            });
        }
    }
}
