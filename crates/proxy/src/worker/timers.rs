//! Timers: stages of clients, answers that are held back, links that are through,
//! deadlines of the service.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use loadlens_sys as sys;

use super::{is_upstream, Part, Stage, Worker, READ};

/// Purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// The stage of a client, or an answer that is held back.
    Stage,
    /// The link of a wire is through.
    Pace,
    /// The service may have been silent for too long.
    Deadline,
}

/// The moments to come, the next one first.
#[derive(Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(u64, What, u64)>>);

impl Timers {
    pub(super) fn push(&mut self, at_ns: u64, what: What, token: u64) {
        self.0.push(Reverse((at_ns, what, token)));
    }

    /// Time of the next timer.
    pub(super) fn next(&self) -> Option<u64> {
        self.0.peek().map(|first| first.0 .0)
    }

    /// Takes the next one out, if it has come.
    fn pop(&mut self, now_ns: u64) -> Option<(What, u64)> {
        if self.next()? > now_ns {
            return None;
        }
        self.0.pop().map(|Reverse((_, what, token))| (what, token))
    }
}

impl Worker {
    /// Looks at a client's stage, or at an answer that is held back, at `at_ns`.
    pub fn set_timer(&mut self, token: u64, at_ns: u64) {
        self.timers.push(at_ns, What::Stage, token);
    }

    /// Sees to it that the deadline of a connection to the service is looked at: one timer each, which goes
    /// on to the deadline as it then is.
    pub fn time_upstream(&mut self, token: u64) {
        if let Some(upstream) = self.upstreams.get(token) {
            if !upstream.is_timed && upstream.deadline_ns > 0 {
                upstream.is_timed = true;
                let at_ns = upstream.deadline_ns;
                self.timers.push(at_ns, What::Deadline, token);
            }
        }
    }

    pub(super) fn fire_timers(&mut self) {
        if self.timers.next().is_none() {
            return;
        }
        let now = sys::monotonic_ns();
        while let Some((what, token)) = self.timers.pop(now) {
            match what {
                What::Pace => self.fire_pace(token, now),
                What::Deadline => self.fire_deadline(token, now),
                What::Stage if is_upstream(token) => self.fire_held(token, now),
                What::Stage => self.fire_stage(token, now),
            }
            self.work();
        }
    }

    fn fire_pace(&mut self, token: u64, now_ns: u64) {
        if is_upstream(token) {
            let upstream = self.upstreams.get(token);
            if upstream.is_some_and(|upstream| upstream.wire.grant(now_ns)) {
                self.flush_upstream(token);
            }
        } else if let Some(client) = self.clients.get(token) {
            if client.wire.grant(now_ns) {
                self.flush_client(token);
            }
        }
    }

    fn fire_deadline(&mut self, token: u64, now_ns: u64) {
        let timeout_ns = self.settings.timeout_ns;
        let Some(upstream) = self.upstreams.get(token) else {
            return;
        };
        upstream.is_timed = false;
        // We do not listen, so it cannot be blamed for its silence.
        let is_unheard =
            upstream.wire.watched & READ == 0 && !matches!(upstream.part, Part::Connecting);
        if is_unheard && upstream.deadline_ns > 0 {
            upstream.deadline_ns = now_ns.saturating_add(timeout_ns);
        }
        if upstream.deadline_ns > now_ns {
            self.time_upstream(token);
        } else if upstream.deadline_ns > 0 {
            self.time_out(token);
        }
    }

    fn fire_held(&mut self, token: u64, now_ns: u64) {
        let Some(upstream) = self.upstreams.get(token) else {
            return;
        };
        if upstream.at_ns == 0 || upstream.at_ns > now_ns {
            return;
        }
        upstream.at_ns = 0;
        if matches!(upstream.part, Part::Held) {
            upstream.part = Part::Head;
            upstream.was_held = true;
            self.read_answer(token);
            self.watch_upstream(token);
        }
    }

    fn fire_stage(&mut self, token: u64, now_ns: u64) {
        let Some(client) = self.clients.get(token) else {
            return;
        };
        if client.at_ns == 0 || client.at_ns > now_ns {
            return;
        }
        client.at_ns = 0;
        match client.stage {
            Stage::Delayed => self.ask(token),
            Stage::Waiting(_) => self.give_up_waiting(token),
            Stage::Over => self.remove_client(token),
            Stage::Breaking => self.break_off(token),
            _ => {}
        }
    }
}
