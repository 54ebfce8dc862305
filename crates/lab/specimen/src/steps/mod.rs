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
use crate::settings::{Call, Op, Settings, PAGE};
use crate::sys;

use files::{opened, written};
pub use files::{Pages, Stored};
pub use rates::{Bucket, Slots};
pub use timed::{burn, uniform, Timed, World};

const MOST_LEAKED: u64 = 256 << 20;

/// One request on its way.
#[derive(Clone, Debug, Default)]
pub struct Visit {
    /// Number among all visits of this specimen.
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
    /// Index of the resource.
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
        /// Index of the resource.
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
        /// Index of the resource.
        resource: usize,
        /// Longest wait, in nanoseconds; none: for ever.
        timeout_ns: Option<u64>,
        /// Answer after that.
        refusal: Refusal,
    },
    /// Give it back.
    Give {
        /// Index of the resource.
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
            Op::Take {
                resource,
                timeout_ms,
                status,
                words,
            } => Step::Take {
                resource: place(resource),
                timeout_ns: timeout_ms.map(|ms| (ms * 1e6) as u64),
                refusal: refusal(*status, words),
            },
            Op::Give { resource } => Step::Give {
                resource: place(resource),
            },
            Op::Pass => Step::Pass,
            Op::Write { file, bytes, sync } => {
                let file = opened(settings, file, File::options().append(true))?;
                let mut line = vec![b'.'; *bytes];
                if let Some(last) = line.last_mut() {
                    *last = b'\n';
                }
                Step::Write {
                    file: Mutex::new(file),
                    line,
                    is_synced: *sync,
                }
            }
            Op::Store { file, pages } => {
                let mut options = File::options();
                let options = options
                    .write(true)
                    .custom_flags(libc::O_DIRECT | libc::O_DSYNC);
                let file = opened(settings, file, options)?;
                Step::Store(Mutex::new(Stored::new(file, *pages)))
            }
            Op::Touch(touch) => {
                let folder = settings.folder.as_deref().unwrap_or(".");
                Step::Touch(Pages::new(touch, salt, folder)?)
            }
            Op::Grow { rows } => Step::Grow(*rows),
            Op::Leak { bytes } => Step::Leak(*bytes),
            Op::Call(call) => Step::Call(call.clone()),
            Op::Limit {
                rate,
                burst,
                status,
            } => Step::Limit(
                Mutex::new(Bucket::new(*rate, *burst)),
                refusal(*status, "too many requests"),
            ),
            Op::Pace {
                rate,
                burst,
                window_ms,
            } => Step::Pace(Mutex::new(Slots::new(*rate, *burst, window_ms * 1_000_000))),
            Op::Answer { bytes, spread } => Step::Answer(*bytes, *spread),
            Op::Fail { share, status } => Step::Fail(*share, refusal(*status, "failed")),
        })
    }

    /// Does what can be done at once, and says what is left to do.
    pub fn meet(&self, visit: &mut Visit, world: &World<'_>) -> Todo {
        let draw = |what: u64| uniform(world.seed, visit.number, what);
        match self {
            Step::Burn(time) => burn(time.ns(visit, world)),
            Step::Touch(pages) => pages.touch(visit, world),
            Step::Leak(bytes) => leak(*bytes, world.counts),
            Step::Grow(rows) => {
                world.counts.rows.fetch_add(*rows, Relaxed);
            }
            Step::Answer(bytes, spread) => {
                visit.bytes = bytes + (draw(u64::MAX) * (spread + 1) as f64) as usize;
            }
            Step::Wait(time) => return waiting(time.ns(visit, world), time.only.is_some()),
            Step::Pace(slots) => return waiting(lock(slots).take(sys::monotonic_ns()), false),
            Step::Take {
                resource,
                timeout_ns,
                refusal,
            } => {
                visit.refusal = Some(refusal.clone()); // until it has the place
                return Todo::Take {
                    resource: *resource,
                    timeout_ns: *timeout_ns,
                };
            }
            Step::Give { resource } => {
                return Todo::Give {
                    resource: *resource,
                }
            }
            Step::Pass => return Todo::Pass,
            Step::Write {
                file,
                line,
                is_synced,
            } => return written(&lock(file), line, *is_synced, visit),
            Step::Store(stored) => {
                if let Err(error) = lock(stored).once() {
                    return refuse(visit, &refusal(500, &error.to_string()));
                }
            }
            Step::Call(call) => {
                if let Called::Badly(status) = crate::call::call(call) {
                    return refuse(visit, &refusal(status, "the service behind failed"));
                }
            }
            Step::Limit(bucket, refusal) => {
                if !lock(bucket).take(sys::monotonic_ns()) {
                    return refuse(visit, refusal);
                }
            }
            Step::Fail(share, refusal) => {
                if draw(u64::MAX - 1) < *share {
                    return refuse(visit, refusal);
                }
            }
        }
        Todo::Next
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
