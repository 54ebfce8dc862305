//! The law of counting: every request that became due is accounted for.

use serde_json::{json, Value};

/// `requests` of a stream or step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Requests {
    pub(super) due: u64,
    pub(super) issued: u64,
    pub(super) ok: u64,
    pub(super) unexpected_status: u64,
    pub(super) check_failed: u64,
    pub(super) failed: u64,
    pub(super) in_flight: u64,
    pub(super) dropped: u64,
    pub(super) waiting: u64,
    pub(super) skipped: u64,
}

impl Requests {
    fn answered(&self) -> u64 {
        self.ok + self.unexpected_status + self.check_failed
    }

    pub(super) fn add(&mut self, other: &Requests) {
        self.due += other.due;
        self.issued += other.issued;
        self.ok += other.ok;
        self.unexpected_status += other.unexpected_status;
        self.check_failed += other.check_failed;
        self.failed += other.failed;
        self.in_flight += other.in_flight;
        self.dropped += other.dropped;
        self.waiting += other.waiting;
        self.skipped += other.skipped;
    }

    /// True if both equations of the law of counting hold.
    pub(super) fn law_holds(&self) -> bool {
        self.due == self.issued + self.dropped + self.waiting
            && self.issued == self.answered() + self.failed + self.in_flight
    }

    /// Both equations with their numbers.
    pub(super) fn law(&self) -> String {
        let equals = |left: u64, right: u64| if left == right { "=" } else { "!=" };
        format!(
            "due {} {} issued {} + dropped {} + waiting {}; issued {} {} answered {} + failed {} + in flight {}",
            self.due,
            equals(self.due, self.issued + self.dropped + self.waiting),
            self.issued,
            self.dropped,
            self.waiting,
            self.issued,
            equals(self.issued, self.answered() + self.failed + self.in_flight),
            self.answered(),
            self.failed,
            self.in_flight
        )
    }

    pub(super) fn to_json(self) -> Value {
        json!({
            "due": self.due,
            "issued": self.issued,
            "answered": self.answered(),
            "ok": self.ok,
            "unexpected_status": self.unexpected_status,
            "check_failed": self.check_failed,
            "failed": self.failed,
            "in_flight": self.in_flight,
            "dropped": self.dropped,
            "waiting": self.waiting,
            "skipped": self.skipped,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_law_of_counting_names_both_sides_where_it_is_broken() {
        let good = Requests {
            due: 10,
            issued: 8,
            ok: 5,
            check_failed: 1,
            failed: 1,
            in_flight: 1,
            dropped: 1,
            waiting: 1,
            ..Requests::default()
        };
        let bad = Requests { issued: 9, ..good };

        assert!(good.law_holds() && !bad.law_holds());
        assert_eq!(
            good.law(),
            "due 10 = issued 8 + dropped 1 + waiting 1; issued 8 = answered 6 + failed 1 + in flight 1"
        );
        assert!(bad.law().starts_with("due 10 != issued 9"));
    }
}
