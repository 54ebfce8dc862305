//! The line before a resource: first come, first served. A place that is given back goes straight to the next in
//! line, so that no newcomer overtakes.

use std::collections::VecDeque;

/// Holders of a resource and the line of those that wait for it.
#[derive(Debug)]
pub struct Line<W> {
    size: usize,
    held: usize,
    waiting: VecDeque<W>,
}

impl<W> Line<W> {
    /// A free resource with this many places.
    pub fn new(size: usize) -> Line<W> {
        Line {
            size,
            held: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Takes a place if one is free.
    pub fn take(&mut self) -> bool {
        let is_free = self.held < self.size;
        self.held += usize::from(is_free);
        is_free
    }

    /// Waits at the end of the line.
    pub fn wait(&mut self, who: W) {
        self.waiting.push_back(who);
    }

    /// Gives a place back; it then belongs to the waiter that is returned.
    pub fn give(&mut self) -> Option<W> {
        let next = self.waiting.pop_front();
        self.held -= usize::from(next.is_none());
        next
    }

    /// Leaves the line; false: a place had been given already.
    pub fn leave(&mut self, is: impl Fn(&W) -> bool) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|who| !is(who));
        self.waiting.len() < before
    }

    /// Number of places held.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Number of waiters.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_go_to_those_who_wait_in_order() {
        let mut line = Line::new(2);

        assert!(line.take() && line.take() && !line.take());
        line.wait("a");
        line.wait("b");
        line.wait("c");
        assert!(line.leave(|who| *who == "b"));
        assert!(!line.leave(|who| *who == "b"));

        assert_eq!((line.held(), line.waiting()), (2, 2));
        assert_eq!(line.give(), Some("a"));
        assert_eq!(line.give(), Some("c"));
        assert_eq!((line.held(), line.give()), (2, None));
        assert_eq!(line.held(), 1);
        assert!(line.take());
    }
}
