//! The end of a request, and how it enters the histograms.
//!
//! The codes and names of outcomes are a contract with the record (docs/reference/record.md): they are
//! only ever added to.

use strum::{IntoStaticStr, VariantArray};

/// The end of one due request. The number is the code in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[repr(u8)]
pub enum Outcome {
    /// As expected.
    Ok = 0,
    /// Answered with a status that the step does not expect.
    UnexpectedStatus = 1,
    /// Answered, but a check or an extraction failed.
    CheckFailed = 2,
    /// The host name has no address.
    Resolve = 10,
    /// The connection was refused.
    Refused = 11,
    /// The time ran out while connecting.
    ConnectTimeout = 12,
    /// Unreachable, and every other failure to connect.
    ConnectFailed = 13,
    /// The connection was reset.
    Reset = 14,
    /// A fresh connection was closed before any byte of the answer.
    ClosedBeforeResponse = 15,
    /// A reused idle connection was closed before any byte of the answer.
    ClosedOnReuse = 16,
    /// The answer ended inside its head, or before its announced length.
    Truncated = 17,
    /// The answer is not HTTP/1.
    Malformed = 18,
    /// The time ran out after the request was sent.
    Timeout = 19,
    /// Something in the answer is over one of our bounds.
    Limit = 20,
    /// TLS failed.
    Tls = 21,
    /// We ran out of file descriptors.
    OwnDescriptors = 22,
    /// We ran out of ports.
    OwnPorts = 23,
    /// We ran out of memory.
    OwnMemory = 24,
    /// The time ran out in the TLS handshake.
    TlsTimeout = 25,
    /// Not finished when the run ended.
    InFlight = 30,
    /// Due, but no connection was free before the run ended.
    Waiting = 31,
    /// Due, but dropped because all places were taken.
    Dropped = 32,
}

/// Class of an outcome in the histograms: the class in the tags of intervals.hlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[repr(u8)]
pub enum Class {
    /// A time that a user waited for a good answer.
    Ok,
    /// The time of an answer with an unexpected status.
    UnexpectedStatus,
    /// The time of an answer that failed a check.
    CheckFailed,
    /// The time until a failure that says nothing about how long an answer takes.
    Failed,
    /// A time after which there was still no answer: the answer takes longer than this.
    Censored,
}

impl Class {
    /// All classes, in the order of their numbers.
    pub const ALL: &'static [Class] = Class::VARIANTS;

    /// The name in tags and counters.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Outcome {
    /// All outcomes, by rising code.
    pub const ALL: &'static [Outcome] = Outcome::VARIANTS;

    /// The code in the record.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The outcome with this code.
    pub fn from_code(code: u8) -> Option<Outcome> {
        let mut all = Outcome::ALL.iter().copied();
        all.find(|outcome| outcome.code() == code)
    }

    /// The name in counters and results.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// True if a whole answer came: `answered = ok + unexpected_status + check_failed`.
    pub const fn is_answered(self) -> bool {
        self.code() < 10
    }

    /// True if it was issued and failed: the error classes.
    pub const fn is_failure(self) -> bool {
        self.code() >= 10 && self.code() < 30
    }

    /// Class of this outcome in the histograms; none for a dropped request, which waited for nothing.
    pub const fn class(self) -> Option<Class> {
        Some(match self {
            Outcome::Ok => Class::Ok,
            Outcome::UnexpectedStatus => Class::UnexpectedStatus,
            Outcome::CheckFailed => Class::CheckFailed,
            Outcome::Timeout
            | Outcome::ConnectTimeout
            | Outcome::TlsTimeout
            | Outcome::InFlight
            | Outcome::Waiting => Class::Censored,
            Outcome::Dropped => return None,
            _ => Class::Failed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_record_and_read_back() {
        let documented = [
            (0, "ok"),
            (1, "unexpected_status"),
            (2, "check_failed"),
            (10, "resolve"),
            (11, "refused"),
            (12, "connect_timeout"),
            (13, "connect_failed"),
            (14, "reset"),
            (15, "closed_before_response"),
            (16, "closed_on_reuse"),
            (17, "truncated"),
            (18, "malformed"),
            (19, "timeout"),
            (20, "limit"),
            (21, "tls"),
            (22, "own_descriptors"),
            (23, "own_ports"),
            (24, "own_memory"),
            (25, "tls_timeout"),
            (30, "in_flight"),
            (31, "waiting"),
            (32, "dropped"),
        ];

        let codes = Outcome::ALL.iter().map(|o| (o.code(), o.name()));
        assert_eq!(codes.collect::<Vec<_>>(), documented);
        for (code, name) in documented {
            assert_eq!(Outcome::from_code(code).unwrap().name(), name);
        }
        assert_eq!(Outcome::from_code(3), None);
    }

    #[test]
    fn every_outcome_is_in_exactly_one_part_of_the_law_of_counting() {
        for &outcome in Outcome::ALL {
            let parts = [
                outcome.is_answered(),
                outcome.is_failure(),
                outcome == Outcome::InFlight,
                outcome == Outcome::Waiting,
                outcome == Outcome::Dropped,
            ];
            assert_eq!(
                parts.into_iter().filter(|part| *part).count(),
                1,
                "{}",
                outcome.name()
            );
        }
    }
}
