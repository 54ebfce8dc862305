//! A fault of a plan: where, and what is wrong.

use std::fmt;

/// One fault of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where in the plan: `streams[0].scenarios[1].steps[0].path`.
    pub where_: String,
    /// What is wrong with the value that stands there, and what to try.
    pub what: String,
}

impl Fault {
    /// A fault of the value at `where_`.
    pub fn new(where_: impl Into<String>, what: impl Into<String>) -> Self {
        Fault {
            where_: where_.into(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.where_, self.what)
    }
}

impl std::error::Error for Fault {}
