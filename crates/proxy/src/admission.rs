//! Admission: requests that go to the service, wait, or are turned away. Pure: time comes in as numbers.

use std::collections::VecDeque;

use crate::settings::Admit;

/// The places at the service and the queue before them, first come first served.
pub(crate) struct Admission {
    rule: Option<Admit>,
    in_flight: usize,
    queue: VecDeque<u64>,
}

/// Decision on a request that is to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It goes on.
    Admitted,
    /// It waits, until this time at most.
    Waits(Option<u64>),
    /// There is no room.
    Rejected,
}

impl Admission {
    pub fn new(rule: Option<Admit>) -> Admission {
        Admission {
            rule,
            in_flight: 0,
            queue: VecDeque::new(),
        }
    }

    /// Asks for a place for the client `who`.
    pub fn ask(&mut self, who: u64, now_ns: u64) -> Decision {
        let Some(rule) = self.rule else {
            self.in_flight += 1;
            return Decision::Admitted;
        };
        if self.in_flight < rule.in_flight {
            self.in_flight += 1;
            return Decision::Admitted;
        }
        if self.queue.len() >= rule.queue {
            return Decision::Rejected;
        }
        self.queue.push_back(who);
        Decision::Waits(rule.wait_ns.map(|wait| now_ns.saturating_add(wait)))
    }

    /// Frees a place and returns the client that has it now.
    pub fn release(&mut self) -> Option<u64> {
        let next = self.queue.pop_front();
        if next.is_none() {
            self.in_flight -= 1;
        }
        next
    }

    /// Takes the client `who` out of the queue; false: it was not there.
    pub fn leave(&mut self, who: u64) -> bool {
        // Those who waited longest leave first: the search ends early.
        let place = self.queue.iter().position(|&waiting| waiting == who);
        place.and_then(|at| self.queue.remove(at)).is_some()
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub fn waiting(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(in_flight: usize, queue: usize, wait_ns: Option<u64>) -> Admission {
        Admission::new(Some(Admit {
            in_flight,
            queue,
            wait_ns,
            status: 503,
            retry_after_s: 1,
        }))
    }

    #[test]
    fn as_many_go_on_as_may_be_in_flight_then_as_many_wait_and_the_rest_is_rejected() {
        let mut admission = rule(2, 3, Some(10));

        let decisions: Vec<Decision> = (0..7).map(|who| admission.ask(who, 100)).collect();

        assert_eq!(decisions[..2], [Decision::Admitted; 2]);
        assert_eq!(decisions[2..5], [Decision::Waits(Some(110)); 3]);
        assert_eq!(decisions[5..], [Decision::Rejected; 2]);
        assert_eq!((admission.in_flight(), admission.waiting()), (2, 3));
    }

    #[test]
    fn a_free_place_goes_to_who_waits_longest() {
        let mut admission = rule(1, 3, None);
        for who in 0..4 {
            admission.ask(who, 0);
        }

        assert!(admission.leave(1));

        assert_eq!(admission.release(), Some(2));
        assert_eq!(admission.release(), Some(3));
        assert_eq!(admission.release(), None);
        assert_eq!((admission.in_flight(), admission.waiting()), (0, 0));
        assert!(!admission.leave(3));
    }

    #[test]
    fn without_a_rule_everybody_goes_on_and_is_counted() {
        let mut admission = Admission::new(None);

        assert!((0..1000).all(|who| admission.ask(who, 0) == Decision::Admitted));
        assert_eq!(admission.in_flight(), 1000);
    }
}
