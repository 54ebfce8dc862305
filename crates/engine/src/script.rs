//! The engine's view of a script that accompanies a load: it may make requests, pause before them and read answers.
//!
//! A worker is generic over its script, as it is over its clock and its network: without one ([`NoScript`]) nothing of
//! this is in the compiled loop. Only the type that implements [`Script`] depends on the language of the script.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use loadlens_http::whole::Framing;
pub use loadlens_plan::program::Requests;
use loadlens_record::recorder::Ended;

/// Action that a script wants after one of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptSignal {
    /// Nothing.
    GoOn,
    /// Its thread issues no more requests.
    EndThread,
    /// The whole run ends: the script has failed.
    EndRun,
}

/// A script on one engine thread. Times are nanoseconds since the start of the load.
pub trait Script: Send {
    /// True if there is a script. Without a default: a type that passes calls on must pass this on too.
    const IS_THERE: bool;

    /// True if it makes each request; if not, the program of the stream makes all of them.
    fn makes_requests(&self) -> bool {
        false
    }

    /// True if it sets the pause before each request.
    fn pauses(&self) -> bool {
        false
    }

    /// True if it reads answers.
    fn reads_answers(&self) -> bool {
        false
    }

    /// Appends the next request to `out`; none: there is none, and [`Script::signal`] says what follows from it.
    fn request(&mut self, _now: u64, _out: &mut Vec<u8>) -> Option<Framing> {
        None
    }

    /// The pause before the next request.
    fn pause_ns(&mut self, _now: u64) -> u64 {
        0
    }

    /// Takes a whole answer.
    fn answer(&mut self, _now: u64, _status: u16, _head: &[u8], _body: &[u8]) {}

    /// Takes notice of the end of a request within the measured part.
    fn ended(&mut self, _ended: &Ended) {}

    /// Signal of the script; read after each of its calls.
    fn signal(&self) -> ScriptSignal {
        ScriptSignal::GoOn
    }

    /// The script call under way, for a thread that waits for the script.
    fn watch(&self) -> Option<Arc<Watch>> {
        None
    }
}

/// No script.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoScript;

impl Script for NoScript {
    const IS_THERE: bool = false;
}

/// The call of a script that has not come back, and its start: read by another thread, so that one that loops for ever
/// cannot hold up the end of a run.
#[derive(Debug)]
pub struct Watch {
    /// Start of the call, plus 1; 0: none is under way.
    began: AtomicU64,
    call: AtomicUsize,
    names: Vec<String>,
}

impl Watch {
    /// Nothing under way; `names` are those of the calls, as a message shows them.
    pub fn new(names: Vec<String>) -> Self {
        Watch {
            began: AtomicU64::new(0),
            call: AtomicUsize::new(0),
            names,
        }
    }

    /// Call number `call` begins.
    #[inline]
    pub fn enter(&self, call: usize, now: u64) {
        self.call.store(call, Ordering::Relaxed);
        self.began.store(now + 1, Ordering::Relaxed);
    }

    /// It came back.
    #[inline]
    pub fn leave(&self) {
        self.began.store(0, Ordering::Relaxed);
    }

    /// The call that is under way, and when it began.
    pub fn under_way(&self) -> Option<(&str, u64)> {
        let began = self.began.load(Ordering::Relaxed).checked_sub(1)?;
        let name = self.names.get(self.call.load(Ordering::Relaxed))?;
        Some((name, began))
    }
}

/// State of one thread of a run besides its part of the load.
#[derive(Debug)]
pub struct ScriptHost<S> {
    /// The script.
    pub script: S,
    /// Source of its requests.
    pub requests: Requests,
    /// True if the script wants to see answers.
    pub reads_answers: bool,
    /// Address that the thread connects to; none: the target's addresses.
    pub address: Option<SocketAddr>,
}

impl Default for ScriptHost<NoScript> {
    fn default() -> Self {
        ScriptHost {
            script: NoScript,
            requests: Requests::Planned,
            reads_answers: false,
            address: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_names_the_call_that_has_not_come_back() {
        let watch = Watch::new(vec!["a:1: request()".to_owned(), "a:9: delay()".to_owned()]);
        assert_eq!(watch.under_way(), None);

        watch.enter(1, 0); // also one that begins at the start
        assert_eq!(watch.under_way(), Some(("a:9: delay()", 0)));
        watch.leave();
        watch.enter(0, 70);

        assert_eq!(watch.under_way(), Some(("a:1: request()", 70)));
    }
}
