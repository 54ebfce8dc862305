//! The law of counting: every request that became due is accounted for.

use derive_more::AddAssign;
use serde::Serialize;
use serde_json::{json, Value};

use loadlens_base::Class;
use loadlens_plan::program::Program;
use loadlens_record::collector::Books;
use loadlens_record::interval::CLASSES;

use crate::worker::Unfinished;

/// Requests of one step, from what was counted and what was left open.
pub(super) fn of_step(step: usize, books: &Books, unfinished: &[Unfinished]) -> Requests {
    let tally = &books.steps[step];
    let class = |class: Class| books.step_classes[step * CLASSES + class as usize];
    let left = unfinished.get(step).copied().unwrap_or_default();
    Requests {
        due: tally.due,
        issued: tally.issued,
        ok: class(Class::Ok),
        unexpected_status: class(Class::UnexpectedStatus),
        check_failed: class(Class::CheckFailed),
        failed: tally.failed,
        in_flight: left.in_flight,
        dropped: tally.dropped,
        waiting: left.waiting,
        skipped: tally.skipped,
    }
}

/// Requests that must be open by step, if the law of counting holds; 0 where less is left.
pub(in crate::run) fn left_open(books: &Books) -> Vec<Unfinished> {
    let of_step = |step| {
        let counted = of_step(step, books, &[]);
        Unfinished {
            waiting: counted.due.saturating_sub(counted.issued + counted.dropped),
            in_flight: counted
                .issued
                .saturating_sub(counted.answered() + counted.failed),
        }
    };
    (0..books.steps.len()).map(of_step).collect()
}

/// Requests of all steps of a stream.
pub(super) fn of_stream(
    program: &Program,
    stream: usize,
    books: &Books,
    unfinished: &[Unfinished],
) -> Requests {
    let mut sum = Requests::default();
    for step in program.streams[stream].all_steps() {
        sum += of_step(step, books, unfinished);
    }
    sum
}

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
