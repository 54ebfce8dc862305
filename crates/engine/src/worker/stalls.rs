//! Events that a thread may have missed: answers that lie in its sockets, and time in which it did not run.

use super::EVENTS;

/// Until when all that came has been looked at.
///
/// A deadline counts only up to there: a thread that was kept from its core for longer than a time-out finds
/// answers in its sockets when it comes back, and those were not late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServedUntil {
    pub(super) until: u64,
    /// Start of the present look at all connections; a full buffer of events does not hold them all.
    began: u64,
    events: usize,
}

impl ServedUntil {
    /// Takes notice of a wait that began at `began` and gave so many events, which have all been served.
    pub(super) fn served(&mut self, began: u64, events: usize, connections: usize) {
        if events < EVENTS {
            self.until = began;
            self.events = 0;
            return;
        }
        if self.events == 0 {
            self.began = began;
        }
        self.events += events;
        // Ready connections come in turn, so after as many events as connections each had its turn.
        if self.events >= connections {
            self.until = self.began;
            self.events = 0;
        }
    }
}

/// Stalls of the thread, as far as they matter to the requests that are under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stalls {
    /// End and length; the oldest is overwritten first.
    last: [(u64, u64); 16],
    next: usize,
}

impl Stalls {
    pub(super) fn push(&mut self, end: u64, length: u64) {
        self.last[self.next % self.last.len()] = (end, length);
        self.next += 1;
    }

    /// Time for which the thread did not run after `from`, by the stalls that are still recorded.
    pub(super) fn since(&self, from: u64) -> u64 {
        let after = |(end, length): &(u64, u64)| (*length).min(end.saturating_sub(from));
        self.last.iter().map(after).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_part_of_a_stall_that_a_request_lived_through_is_given_back() {
        let mut stalls = Stalls::default();
        assert_eq!(stalls.since(0), 0);

        stalls.push(100, 40); // from 60 to 100
        stalls.push(300, 50); // from 250 to 300

        assert_eq!(stalls.since(10), 90);
        assert_eq!(stalls.since(80), 70); // issued within the first one
        assert_eq!(stalls.since(100), 50);
        assert_eq!(stalls.since(300), 0);
    }

    #[test]
    fn a_full_buffer_of_events_is_all_only_after_as_many_events_as_connections() {
        let mut served = ServedUntil::default();

        served.served(10, 3, 1000); // not full: nothing was left
        assert_eq!(served.until, 10);
        for began in [20, 30, 40] {
            served.served(began, EVENTS, 1000);
            assert_eq!(served.until, 10);
        }
        served.served(50, EVENTS, 1000); // 1024 events, a turn for each
        assert_eq!(served.until, 20);
        served.served(60, EVENTS, 1000);
        served.served(70, 0, 1000);
        assert_eq!(served.until, 70);
    }
}
