//! Operations, ready to be met: names are places, files are open, limiters have a state.
//!
//! Both servers, the one of threads and the one of event loops, ask [`Step::meet`] what a request has to do
//! next and do it in their own way.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Mutex;

use crate::books::Books;
use crate::call::Called;
use crate::settings::{Call, Law, Only, Op, Settings, Take, Touch, Warmup, Work, MOST_PAGES, PAGE};
use crate::sys;

const MOST_LEAKED: u64 = 256 << 20;
const BLOCK: usize = 1 << 20;
const SLICE_NS: u64 = 20_000;

/// One request on its way.
#[derive(Clone, Debug, Default)]
pub struct Visit {
    /// Of all visits of this specimen.
    pub number: u64,
    /// Number of its connection.
    pub connection: u64,
    /// Whether it is the first of its connection.
    pub is_first: bool,
    /// Place of its path.
    pub route: usize,
    /// When its handler began.
    pub began_ns: u64,
    /// Places that it holds.
    pub held: Vec<Held>,
    /// Bytes of the answer.
    pub bytes: usize,
    /// Instead of a success.
    pub refusal: Option<Refusal>,
}

/// A place of a resource that is somebody's.
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

/// What a request has to do next.
#[derive(Debug, PartialEq)]
pub enum Todo {
    /// Go on with the next step.
    Next,
    /// Wait so long, then go on.
    Wait {
        /// Nanoseconds.
        ns: u64,
        /// Whether only some requests do.
        is_chosen: bool,
    },
    /// Take a place, waiting for it at most so long; refused after that.
    Take {
        /// Which resource.
        resource: usize,
        /// Nanoseconds; none: for ever.
        timeout_ns: Option<u64>,
    },
    /// Give a place back.
    Give {
        /// Of which resource.
        resource: usize,
    },
    /// Queue again behind everybody who is ready.
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
        /// How long to wait at most.
        timeout_ns: Option<u64>,
        /// What is answered then.
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
        /// What is written.
        line: Vec<u8>,
        /// Whether to wait for the disk.
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

/// A file in memory, of which each request reads some pages.
pub struct Pages {
    mapped: &'static [u8],
    each: u64,
    /// Draws of two steps of one request differ.
    salt: u64,
}

impl Pages {
    /// Writes the file, to storage too, so that its pages can be dropped and read again.
    fn new(touch: &Touch, salt: u64, folder: &str) -> Result<Pages, String> {
        let path = std::path::Path::new(folder).join(&touch.file);
        let bytes = touch.bytes / PAGE * PAGE;
        filled(&path, bytes)
            .and_then(|file| sys::map(&file, bytes))
            .map(|mapped| Pages {
                mapped,
                each: touch.pages,
                salt: (salt + 1) << 32,
            })
            .map_err(|error| format!("cannot map {}: {error}", path.display()))
    }

    fn touch(&self, visit: &Visit, world: &World<'_>) {
        let pages = (self.mapped.len() / PAGE) as f64;
        for at in 0..self.each {
            let page = (uniform(world.seed, visit.number, self.salt + at) * pages) as usize;
            std::hint::black_box(self.mapped[page * PAGE]);
        }
    }
}

/// A file of so many bytes that are no zeros; each block is on the disk before the next one.
fn filled(path: &std::path::Path, bytes: usize) -> std::io::Result<File> {
    let mut file = File::options()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .open(path)?;
    let block = vec![b'.'; BLOCK];
    for at in (0..bytes).step_by(BLOCK) {
        file.write_all(&block[..BLOCK.min(bytes - at)])?;
        file.sync_data()?;
    }
    Ok(file)
}

/// A time that depends on who comes when.
pub struct Timed {
    mean_ns: f64,
    law: Law,
    per_row_ns: f64,
    contended: Option<(usize, f64)>,
    only: Option<Only>,
    /// Draws of two steps of one request differ.
    salt: u64,
}

/// What times depend on beside the request.
pub struct World<'a> {
    /// Of all draws.
    pub seed: u64,
    /// Rows and waiters.
    pub books: &'a Books,
    /// How much slower the beginning is.
    pub warmup: Option<Warmup>,
}

impl Timed {
    fn new(work: &Work, salt: u64, place: &impl Fn(&str) -> usize) -> Timed {
        Timed {
            mean_ns: work.ms * 1e6,
            law: work.law,
            per_row_ns: work.per_row_us * 1e3,
            contended: work
                .contended
                .as_ref()
                .map(|more| (place(&more.resource), more.share)),
            only: work.only.clone(),
            salt,
        }
    }

    /// For one request; 0 for those that do not do it.
    fn ns(&self, visit: &Visit, world: &World<'_>) -> u64 {
        let draw = |what: u64| uniform(world.seed, visit.number, self.salt + what);
        if let Some(only) = &self.only {
            let is_meant = only.share.is_none_or(|share| draw(0) < share)
                && only
                    .connection_in
                    .is_none_or(|n| visit.connection % n.max(1) == 0)
                && (!only.first || visit.is_first);
            if !is_meant {
                return 0;
            }
        }
        let books = world.books;
        let waiting = |at: usize| books.resources[at].waiting.load(Relaxed) as f64;
        let mean = self.mean_ns + self.per_row_ns * books.rows.load(Relaxed) as f64;
        let more = self
            .contended
            .map_or(0.0, |(at, share)| share * waiting(at));
        (mean * self.law.factor(draw(1)) * (1.0 + more) * slowness(world)) as u64
    }
}

/// How much slower things are now than they will be.
fn slowness(world: &World<'_>) -> f64 {
    world.warmup.map_or(1.0, |warmup| {
        let since = sys::now_ns().saturating_sub(world.books.first_ns.load(Relaxed));
        1.0 + (warmup.factor - 1.0) * (-(since as f64) / 1e9 / warmup.time_s).exp()
    })
}

impl Law {
    /// A draw with mean 1, from one that is uniform on [0, 1).
    pub fn factor(self, uniform: f64) -> f64 {
        match self {
            Law::Fixed => 1.0,
            Law::Uniform => 0.5 + uniform,
            Law::Exponential => -(1.0 - uniform).ln(),
        }
    }
}

/// Uniform on [0, 1), a function of three numbers (the finaliser of SplitMix64, Steele et al. 2014).
pub fn uniform(seed: u64, number: u64, salt: u64) -> f64 {
    let mut bits = seed
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(number.wrapping_mul(0xD1B5_4A32_D192_ED03))
        .wrapping_add(salt.wrapping_mul(0x8CB9_2BA7_2F3D_8DD7));
    for (shift, factor) in [(30, 0xBF58_476D_1CE4_E5B9), (27, 0x94D0_49BB_1331_11EB)] {
        bits = (bits ^ (bits >> shift)).wrapping_mul(factor);
    }
    (bits ^ (bits >> 31)) as f64 / 2f64.powi(64)
}

/// A token bucket, full at the start.
pub struct Bucket {
    per_ns: f64,
    size: f64,
    tokens: f64,
    at_ns: u64,
}

impl Bucket {
    /// With a rate and a size.
    pub fn new(rate_per_s: f64, size: f64) -> Bucket {
        Bucket {
            per_ns: rate_per_s / 1e9,
            size,
            tokens: size,
            at_ns: 0,
        }
    }

    /// Takes a token if there is one.
    pub fn take(&mut self, now_ns: u64) -> bool {
        let gained = now_ns.saturating_sub(self.at_ns) as f64 * self.per_ns;
        self.tokens = (self.tokens + gained).min(self.size);
        self.at_ns = now_ns;
        let has = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(has));
        has
    }
}

/// Moments at equal distances, each for one request.
pub struct Slots {
    every_ns: u64,
    next_ns: u64,
}

impl Slots {
    /// So many a second.
    pub fn new(rate_per_s: f64) -> Slots {
        Slots {
            every_ns: (1e9 / rate_per_s) as u64,
            next_ns: 0,
        }
    }

    /// Takes the next one; how long it is until then.
    pub fn take(&mut self, now_ns: u64) -> u64 {
        let at = self.next_ns.max(now_ns);
        self.next_ns = at + self.every_ns;
        at - now_ns
    }
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
                world.books.rows.fetch_add(*rows, Relaxed);
                Todo::Next
            }
            Step::Leak(bytes) => {
                leak(*bytes, world.books);
                Todo::Next
            }
            Step::Call(call) => match crate::call::call(call) {
                Called::Well => Todo::Next,
                Called::Badly(status) => {
                    refuse(visit, &refusal(status, "the service behind failed"))
                }
            },
            Step::Limit(bucket, refusal) => {
                if lock(bucket).take(sys::now_ns()) {
                    Todo::Next
                } else {
                    refuse(visit, refusal)
                }
            }
            Step::Pace(slots) => waiting(lock(slots).take(sys::now_ns()), false),
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

fn opened(settings: &Settings, name: &str, options: &mut OpenOptions) -> Result<File, String> {
    let path = std::path::Path::new(settings.folder.as_deref().unwrap_or(".")).join(name);
    options
        .create(true)
        .open(&path)
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// A file whose pages are written past the cache, in turn.
pub struct Stored {
    file: File,
    kept: Vec<u8>,
    begin: usize,
    at: u64,
}

impl Stored {
    fn new(file: File, pages: usize) -> Stored {
        let kept = vec![b'.'; (pages + 1) * PAGE];
        let begin = kept.as_ptr().align_offset(PAGE); // without a cache, memory must lie as pages do
        Stored {
            file,
            kept,
            begin,
            at: 0,
        }
    }

    fn once(&mut self) -> io::Result<()> {
        let pages = &self.kept[self.begin..][..self.kept.len() - PAGE];
        self.file.write_all_at(pages, self.at)?;
        self.at += pages.len() as u64;
        if self.at + pages.len() as u64 > (MOST_PAGES * PAGE) as u64 {
            self.at = 0;
        }
        Ok(())
    }
}

fn written(mut file: &File, line: &[u8], is_synced: bool, visit: &mut Visit) -> Todo {
    let done = file
        .write_all(line)
        .and_then(|()| if is_synced { file.sync_data() } else { Ok(()) });
    match done {
        Ok(()) => Todo::Next,
        Err(error) => refuse(visit, &refusal(500, &error.to_string())),
    }
}

/// Computes for so much processor time of this thread: what other threads take does not count.
pub fn burn(ns: u64) {
    if ns == 0 {
        return;
    }
    let until = sys::thread_cpu_ns() + ns;
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    loop {
        let left = until.saturating_sub(sys::thread_cpu_ns());
        if left == 0 {
            return;
        }
        // About two nanoseconds a round; between two looks at the clock at most a slice of the time left.
        for _ in 0..left.min(SLICE_NS) / 2 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        std::hint::black_box(state);
    }
}

fn leak(bytes: usize, books: &Books) {
    if books.leaked.fetch_add(bytes as u64, Relaxed) + bytes as u64 > MOST_LEAKED {
        return;
    }
    let mut kept = vec![0u8; bytes];
    for page in kept.chunks_mut(PAGE) {
        page[0] = 1; // memory that nobody touched costs nothing
    }
    std::mem::forget(kept);
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(books: &Books) -> World<'_> {
        World {
            seed: 7,
            books,
            warmup: None,
        }
    }

    fn timed(json: &str) -> Timed {
        Timed::new(&serde_json::from_str(json).unwrap(), 0, &|_: &str| 0)
    }

    #[test]
    fn burning_takes_processor_time_of_the_thread() {
        let before = sys::thread_cpu_ns();

        burn(5_000_000);

        let used = sys::thread_cpu_ns() - before;
        assert!((5_000_000..6_000_000).contains(&used), "{used}");
    }

    #[test]
    fn pages_are_stored_in_turn_within_their_file() {
        let folder = std::env::temp_dir().join(format!("specimen-store-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("data");
        let file = File::create(&path).unwrap();
        let mut stored = Stored::new(file, 6_000); // twice they fit

        let sizes: Vec<u64> = (0..4)
            .map(|_| {
                stored.once().unwrap();
                path.metadata().unwrap().len()
            })
            .collect();
        std::fs::remove_dir_all(&folder).unwrap();

        assert_eq!((stored.begin + stored.kept.as_ptr() as usize) % PAGE, 0);
        assert_eq!(sizes, [24_576_000, 49_152_000, 49_152_000, 49_152_000]);
    }

    #[test]
    fn a_share_of_the_requests_takes_longer_the_same_ones_each_time() {
        let books = Books::default();
        let slow = timed(r#"{"ms": 2, "only": {"share": 0.1}}"#);
        let times = |_| -> Vec<u64> {
            (0..10_000)
                .map(|number| {
                    let visit = Visit {
                        number,
                        ..Visit::default()
                    };
                    slow.ns(&visit, &world(&books))
                })
                .collect()
        };

        let (first, again): (Vec<u64>, Vec<u64>) = (times(()), times(()));

        let many = first.iter().filter(|&&ns| ns == 2_000_000).count();
        assert_eq!(first, again);
        assert!((880..1120).contains(&many), "{many}"); // 4 standard deviations of a binomial
        assert_eq!(first.iter().filter(|&&ns| ns == 0).count(), 10_000 - many);
    }

    #[test]
    fn rows_and_waiters_make_it_longer() {
        let books = Books::default();
        books.rows.store(1_000, Relaxed);
        books.stands(0, 1, 4);
        let work =
            timed(r#"{"ms": 1, "per_row_us": 2, "contended": {"resource": "a", "share": 0.5}}"#);

        let ns = work.ns(&Visit::default(), &world(&books));

        assert_eq!(ns, 9_000_000); // (1 ms + 1000 rows x 2 us) x (1 + 4 waiters x 0.5)
    }

    #[test]
    fn only_some_connections_and_first_requests_are_meant() {
        let books = Books::default();
        let work = timed(r#"{"ms": 1, "only": {"connection_in": 3, "first": true}}"#);
        let meant = |connection, is_first| {
            let visit = Visit {
                connection,
                is_first,
                ..Visit::default()
            };
            work.ns(&visit, &world(&books)) > 0
        };

        assert!(meant(6, true));
        assert!(!meant(6, false) && !meant(7, true));
    }

    #[test]
    fn a_file_has_whole_pages_and_all_of_them_can_be_read() {
        let folder = std::env::temp_dir().join(format!("pages-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let touch =
            serde_json::from_str(r#"{"file": "f", "bytes": 1048999, "pages": 300}"#).unwrap();
        let pages = Pages::new(&touch, 0, folder.to_str().unwrap()).unwrap();
        let books = Books::default();
        let path = folder.join("f");

        pages.touch(&Visit::default(), &world(&books));

        assert_eq!(std::fs::metadata(&path).unwrap().len(), 1_048_576); // 256 whole pages
        assert!(pages.mapped.iter().all(|&byte| byte == b'.'));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn laws_have_the_mean_one() {
        for law in [Law::Fixed, Law::Uniform, Law::Exponential] {
            let sum: f64 = (0..100_000).map(|n| law.factor(uniform(1, n, 2))).sum();
            assert!((sum / 1e5 - 1.0).abs() < 0.013, "{law:?} {sum}"); // 4 standard errors
        }
    }

    #[test]
    fn a_bucket_passes_its_burst_and_then_its_rate() {
        let mut bucket = Bucket::new(100.0, 20.0);

        let passed = (0..2_000u64)
            .filter(|ms| bucket.take(ms * 1_000_000))
            .count();

        // 2 s at 1000/s: the burst, and 100 for each of the 1.999 s since the start.
        assert!((218..=220).contains(&passed), "{passed}");
    }

    #[test]
    fn slots_are_equally_far_apart() {
        let mut slots = Slots::new(200.0);

        let waits: Vec<u64> = (0..3).map(|_| slots.take(1_000)).collect();

        assert_eq!(waits, [0, 5_000_000, 10_000_000]);
        assert_eq!(slots.take(99_000_000), 0);
    }
}
