//! Request heads that were read before: a generator sends the same few heads over and over, and comparing
//! bytes costs a tenth of reading them.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::counts::ThreadCounts;
use crate::request::Head;
use crate::route::{name_in_counts, Route, Routes};

/// Heads remembered, the last used first.
const REMEMBERED: usize = 4;
/// Targets remembered by one thread; others are resolved each time.
const MAX_TARGETS: usize = 8192;

/// Heads and targets that a thread remembers.
#[derive(Default)]
pub(crate) struct Heads {
    known: Vec<(Vec<u8>, Known)>,
    targets: HashMap<String, Rc<Target>>,
}

/// A head that was read.
pub(crate) type Known = Head<Rc<Target>>;

/// A target with its place in the counts of the thread.
pub(crate) struct Target {
    pub route: Arc<Route>,
    pub path: u32,
}

impl Heads {
    /// The head at the start of `bytes`, if it is one of those remembered.
    pub fn recall(&mut self, bytes: &[u8]) -> Option<Known> {
        let at = self
            .known
            .iter()
            .position(|(head, _)| bytes.starts_with(head))?;
        self.known.swap(0, at);
        Some(self.known[0].1.clone())
    }

    /// Remembers a head that was read.
    pub fn learn(
        &mut self,
        bytes: &[u8],
        head: &Head<&str>,
        routes: &Routes,
        counts: &mut ThreadCounts,
    ) -> Known {
        let read = Head {
            method: head.method,
            framing: head.framing,
            persistence: head.persistence,
            expects_continue: head.expects_continue,
            target: self.target(head.target, routes, counts),
            len: head.len,
        };
        self.known.truncate(REMEMBERED - 1);
        self.known
            .insert(0, (bytes[..head.len].to_vec(), read.clone()));
        read
    }

    fn target(&mut self, name: &str, routes: &Routes, counts: &mut ThreadCounts) -> Rc<Target> {
        if let Some(target) = self.targets.get(name) {
            return target.clone();
        }
        let target = Rc::new(Target {
            route: routes.resolve(name),
            path: counts.path_index(&name_in_counts(name)),
        });
        if self.targets.len() < MAX_TARGETS {
            self.targets.insert(name.to_owned(), target.clone());
        }
        target
    }
}
