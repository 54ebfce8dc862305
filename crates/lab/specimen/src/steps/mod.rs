//! Operations, ready to be met: names are places, files are open, limiters have a state.
//!
//! Both servers, the one of threads and the one of event loops, ask [`Step::meet`] what a request has to do
//! next and do it in their own way. How long things take is in `timed`, what is written and read in `files`, and what
//! limits a rate in `rates`.

mod files;
mod rates;
mod timed;

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Mutex;

use crate::call::Called;
use crate::counts::Counts;
use crate::settings::{Call, Op, Settings, Take, PAGE};
use crate::sys;

use files::{opened, written};
pub use files::{Pages, Stored};
pub use rates::{Bucket, Slots};
pub use timed::{burn, uniform, Timed, World};

const MOST_LEAKED: u64 = 256 << 20;

/// One request on its way.
#[derive(Clone, Debug, Default)]
pub struct Visit {
    /// Of all visits of this specimen.
    pub number: u64,
    /// Number of its connection.
    pub connection: u64,
    /// True if it is the first of its connection.
    pub is_first: bool,
    /// Place of its path.
    pub route: usize,
    /// Time at which its handler began.
    pub began_ns: u64,
    /// Places that it holds.
    pub held: Vec<Held>,
    /// Bytes of the answer.
    pub bytes: usize,
    /// Instead of a success.
    pub refusal: Option<Refusal>,
}

/// A place of a resource, held by a request.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Of which resource.
    pub resource: usize,
    /// Since when.
    pub since_ns: u64,
}

impl Visit {
    /// It holds a place no more: the one it held.
    pub fn lets_go(&mut self, resource: usize) -> Option<Held> {
        let at = self.held.iter().position(|held| held.resource == resource);
        at.map(|at| self.held.remove(at))
    }
}

/// An answer that is no success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub words: String,
}

/// Next action of a request.
#[derive(Debug, PartialEq)]
pub enum Todo {
    /// Go on with the next step.
    Next,
    /// Wait so long, then go on.
    Wait {
        /// Nanoseconds.
        ns: u64,
        /// True if only some requests wait here.
        is_chosen: bool,
    },
    /// Take a place, waiting for it at most so long; refused after that.
    Take {
        /// Index of the resource.
        resource: usize,
        /// Nanoseconds; none: for ever.
        timeout_ns: Option<u64>,
    },
    /// Give a place back.
    Give {
        /// Of which resource.
        resource: usize,
    },
    /// Queue again behind all requests that are ready.
    Pass,
    /// Answer at once; the refusal stands in the visit.
    Refuse,
}

/// An operation, ready to be met.
pub enum Step {
    /// Compute.
    Burn(Timed),
    /// Wait.
    Wait(Timed),
    /// Take a place.
    Take {
        /// Of which resource.
        resource: usize,
        /// Longest wait, in nanoseconds; none: for ever.
        timeout_ns: Option<u64>,
        /// Answer after that.
        refusal: Refusal,
    },
    /// Give it back.
    Give {
        /// Of which resource.
        resource: usize,
    },
    /// Queue again.
    Pass,
    /// Write to a file.
    Write {
        /// Open, at its end.
        file: Mutex<File>,
        /// Bytes written.
        line: Vec<u8>,
        /// True to wait for the disk.
        is_synced: bool,
    },
    /// Store pages.
    Store(Mutex<Stored>),
    /// Read pages of a file.
    Touch(Pages),
    /// More rows.
    Grow(u64),
    /// Memory kept for ever.
    Leak(usize),
    /// Ask another service.
    Call(Call),
    /// Refuse what exceeds a rate.
    Limit(Mutex<Bucket>, Refusal),
    /// Delay what exceeds a rate.
    Pace(Mutex<Slots>),
    /// Bytes of the answer: at least, and up to so many more.
    Answer(usize, usize),
    /// An error for a share of the requests.
    Fail(f64, Refusal),
}

impl Step {
    /// Makes the steps of a path.
    pub fn all(ops: &[Op], settings: &Settings) -> Result<Vec<Step>, String> {
        let place = |name: &str| settings.resources.keys().position(|key| key == name);
        let place = |name: &str| place(name).unwrap_or_default();
        ops.iter()
            .enumerate()
            .map(|(at, op)| Step::new(op, 16 * at as u64, settings, &place))
            .collect()
    }

    fn new(
        op: &Op,
        salt: u64,
        settings: &Settings,
        place: &impl Fn(&str) -> usize,
    ) -> Result<Step, String> {
        Ok(match op {
            Op::Burn(work) => Step::Burn(Timed::new(work, salt, place)),
            Op::Wait(work) => Step::Wait(Timed::new(work, salt, place)),
            Op::Take(take) => taking(take, place(&take.resource)),
            Op::Give(give) => Step::Give {
                resource: place(&give.resource),
            },
            Op::Pass => Step::Pass,
            Op::Write(write) => {
                let file = opened(settings, &write.file, File::options().append(true))?;
                let mut line = vec![b'.'; write.bytes];
                if let Some(last) = line.last_mut() {
                    *last = b'\n';
                }
                Step::Write {
                    file: Mutex::new(file),
                    line,
                    is_synced: write.sync,
                }
            }
            Op::Store(store) => {
                let flags = libc::O_DIRECT | libc::O_DSYNC;
                let mut options = File::options();
                let file = opened(
                    settings,
                    &store.file,
                    options.write(true).custom_flags(flags),
                )?;
                Step::Store(Mutex::new(Stored::new(file, store.pages)))
            }
            Op::Touch(touch) => {
                let folder = settings.folder.as_deref().unwrap_or(".");
                Step::Touch(Pages::new(touch, salt, folder)?)
            }
            Op::Grow(grow) => Step::Grow(grow.rows),
            Op::Leak(leak) => Step::Leak(leak.bytes),
            Op::Call(call) => Step::Call(call.clone()),
            Op::Limit(limit) => Step::Limit(
                Mutex::new(Bucket::new(limit.rate, limit.burst)),
                refusal(limit.status, "too many requests"),
            ),
            Op::Pace(pace) => Step::Pace(Mutex::new(Slots::new(pace.rate))),
            Op::Answer(answer) => Step::Answer(answer.bytes, answer.spread),
            Op::Fail(fail) => Step::Fail(fail.share, refusal(fail.status, "failed")),
        })
    }

    /// Does what can be done at once, and says what is left to do.
    pub fn meet(&self, visit: &mut Visit, world: &World<'_>) -> Todo {
        let draw = |what: u64| uniform(world.seed, visit.number, what);
        match self {
            Step::Burn(time) => {
                burn(time.ns(visit, world));
                Todo::Next
            }
            Step::Wait(time) => waiting(time.ns(visit, world), time.only.is_some()),
            Step::Take {
                resource,
                timeout_ns,
                refusal,
            } => {
                visit.refusal = Some(refusal.clone()); // until it has the place
                Todo::Take {
                    resource: *resource,
                    timeout_ns: *timeout_ns,
                }
            }
            Step::Give { resource } => Todo::Give {
                resource: *resource,
            },
            Step::Pass => Todo::Pass,
            Step::Write {
                file,
                line,
                is_synced,
            } => written(&lock(file), line, *is_synced, visit),
            Step::Store(stored) => match lock(stored).once() {
                Ok(()) => Todo::Next,
                Err(error) => refuse(visit, &refusal(500, &error.to_string())),
            },
            Step::Touch(pages) => {
                pages.touch(visit, world);
                Todo::Next
            }
            Step::Grow(rows) => {
                world.counts.rows.fetch_add(*rows, Relaxed);
                Todo::Next
            }
            Step::Leak(bytes) => {
                leak(*bytes, world.counts);
                Todo::Next
            }
            Step::Call(call) => match crate::call::call(call) {
                Called::Well => Todo::Next,
                Called::Badly(status) => {
                    refuse(visit, &refusal(status, "the service behind failed"))
                }
            },
            Step::Limit(bucket, refusal) => {
                if lock(bucket).take(sys::monotonic_ns()) {
                    Todo::Next
                } else {
                    refuse(visit, refusal)
                }
            }
            Step::Pace(slots) => waiting(lock(slots).take(sys::monotonic_ns()), false),
            Step::Answer(bytes, spread) => {
                visit.bytes = bytes + (draw(u64::MAX) * (spread + 1) as f64) as usize;
                Todo::Next
            }
            Step::Fail(share, refusal) => {
                if draw(u64::MAX - 1) < *share {
                    refuse(visit, refusal)
                } else {
                    Todo::Next
                }
            }
        }
    }
}

fn taking(take: &Take, resource: usize) -> Step {
    Step::Take {
        resource,
        timeout_ns: take.timeout_ms.map(|ms| (ms * 1e6) as u64),
        refusal: refusal(take.status, &take.words),
    }
}

fn refusal(status: u16, words: &str) -> Refusal {
    Refusal {
        status,
        words: words.to_owned(),
    }
}

fn refuse(visit: &mut Visit, refusal: &Refusal) -> Todo {
    visit.refusal = Some(refusal.clone());
    Todo::Refuse
}

fn waiting(ns: u64, is_chosen: bool) -> Todo {
    if ns == 0 {
        Todo::Next
    } else {
        Todo::Wait { ns, is_chosen }
    }
}

fn leak(bytes: usize, counts: &Counts) {
    if counts.leaked.fetch_add(bytes as u64, Relaxed) + bytes as u64 > MOST_LEAKED {
        return;
    }
    let mut kept = vec![0u8; bytes];
    for page in kept.chunks_mut(PAGE) {
        page[0] = 1; // a page that was never written takes no memory
    }
    kept.leak();
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
