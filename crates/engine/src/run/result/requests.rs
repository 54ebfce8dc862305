//! The law of counting: every request that became due is accounted for.

use derive_more::AddAssign;
use serde::Serialize;
use serde_json::{json, Value};

/// `requests` of a stream or step.
#[derive(AddAssign, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
        let mut requests = json!(self);
        requests["answered"] = self.answered().into();
        requests
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
