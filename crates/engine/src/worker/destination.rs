//! Addresses of a stream's target on one thread: which is in use, and what is known of connecting to it.

use std::net::SocketAddr;

use loadlens_base::units::SECOND;

/// Users pause after failed connects until this long after the last established connection, in a load that only its
/// requests or iterations end: a service that restarts is back by then.
const PATIENCE: u64 = 10 * SECOND;

/// Addresses of a stream's target.
#[derive(Debug)]
pub struct Destination {
    /// Addresses to connect to; empty: the name was not resolved.
    pub addresses: Vec<SocketAddr>,
    /// Index of the address in use.
    pub address: usize,
    /// True if a connection was ever established: from then on the address stays.
    pub connected_once: bool,
    /// True if the last connection checked was established as soon as it was begun, as within one machine.
    pub stands_at_once: bool,
    /// Time at which a connection was last established; 0: none was.
    stood_at: u64,
    /// True if a duration ends the load in any case.
    has_duration: bool,
}

impl Destination {
    /// Addresses of which none was tried yet.
    pub fn new(addresses: Vec<SocketAddr>, has_duration: bool) -> Self {
        Destination {
            addresses,
            address: 0,
            connected_once: false,
            stands_at_once: true,
            stood_at: 0,
            has_duration,
        }
    }

    /// Notes that a connection to an address was established.
    #[inline]
    pub fn established(&mut self, address: usize, now: u64) {
        self.stood_at = now.max(1);
        if !self.connected_once {
            // Others may have moved on meanwhile.
            self.connected_once = true;
            self.address = address;
        }
    }

    /// True if a closed user pauses before it connects again.
    ///
    /// In a load that ends only by its requests or iterations the pauses would be its length: there, no user waits for
    /// a service that has never been reached, nor for one that has been away for long.
    pub fn backs_off(&self, now: u64) -> bool {
        self.has_duration || (self.stood_at > 0 && now < self.stood_at.saturating_add(PATIENCE))
    }

    /// Moves on from an address to which no connection could be made, until a connection has once stood.
    ///
    /// Several users may have failed there; only the first of them moves on for all.
    pub fn give_up(&mut self, address: usize) {
        if self.address == address && !self.connected_once {
            self.address = (address + 1) % self.addresses.len().max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_user_waits_for_a_service_that_was_never_there_or_is_gone_for_long() {
        let backs_off = |has_duration: bool, established: Option<u64>| {
            let mut destination = Destination::new(Vec::new(), has_duration);
            if let Some(now) = established {
                destination.established(0, now);
            }
            [0, 3, 13, 14].map(|second| destination.backs_off(second * SECOND))
        };

        assert_eq!(backs_off(false, None), [false; 4]);
        let after = backs_off(false, Some(3 * SECOND + 1));
        assert_eq!(after, [true, true, true, false]);
        assert_eq!(backs_off(true, None), [true; 4]);
    }
}
