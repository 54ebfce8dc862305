//! A fault of a plan: where, and what is wrong.

use std::collections::HashSet;
use std::fmt;

/// One fault of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Place in the plan: `streams[0].scenarios[1].steps[0].path`.
    pub where_: String,
    /// Fault of the value at that place, and one thing to try.
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

/// A list of faults, and the part of a plan that is being checked.
#[derive(Debug)]
pub struct Faults<'a> {
    list: &'a mut Vec<Fault>,
    at: String,
}

impl<'a> Faults<'a> {
    /// Faults of the part at `at`; an empty text is the plan itself.
    pub fn new(list: &'a mut Vec<Fault>, at: impl Into<String>) -> Self {
        let at = at.into();
        Faults { list, at }
    }

    /// Faults of a part of this part: `workload`, or `.steps[0]` for one of several.
    pub fn of(&mut self, key: &str) -> Faults<'_> {
        let at = self.place(key);
        Faults::new(self.list, at)
    }

    /// Adds a fault of the value of a key; an empty key is the part itself.
    pub fn add(&mut self, key: &str, what: impl fmt::Display) {
        self.list
            .push(Fault::new(self.place(key), what.to_string()));
    }

    /// Adds the fault unless the value is as it should be.
    pub fn want(&mut self, holds: bool, key: &str, what: impl fmt::Display) {
        if !holds {
            self.add(key, what);
        }
    }

    /// Adds a fault if a name is empty or used twice.
    pub fn want_names<'n>(&mut self, key: &str, names: impl IntoIterator<Item = &'n str>) {
        let mut seen = HashSet::new();
        for name in names {
            if name.is_empty() {
                self.add(key, "an empty name");
            } else if !seen.insert(name) {
                self.add(key, format_args!("two are named `{}`", name.escape_debug()));
            }
        }
    }

    /// The place of a key in the plan.
    pub fn place(&self, key: &str) -> String {
        let dot = if self.at.is_empty() || key.is_empty() || key.starts_with('[') {
            ""
        } else {
            "."
        };
        format!("{}{dot}{key}", self.at)
    }

    /// The list, for what adds its faults there.
    pub fn list(&mut self) -> &mut Vec<Fault> {
        self.list
    }
}
