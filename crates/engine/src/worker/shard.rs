//! The part of one stream that one worker carries: its users or arrivals, and its connections.

use std::net::SocketAddr;

use loadlens_base::Random;
use loadlens_http::cookies::{Jar, Site};
use loadlens_http::known::KnownHead;
use loadlens_plan::arrival::rates::Rates;
use loadlens_plan::arrival::tempo::Tempo;
use loadlens_plan::arrival::timetable::Timetable;
use loadlens_plan::arrival::{Intensity, Part, Schedule};
use loadlens_plan::program::{Judging, StreamProgram, Values};
use loadlens_plan::{self as plan, Cookies, Overflow, Role, Workload};

use crate::feed_cursor::FeedCursors;
use crate::user::{Quota, User, NONE};

use super::destination::Destination;
use super::groups::OpenRuns;
use super::pool::Pool;

/// Fewer connections or places than this are not split over threads: a user of one thread would wait
/// while a connection of another is idle.
const WORTH_SPLITTING: u32 = 32;
/// Arrivals a second that one thread carries at ease.
const RATE_OF_A_THREAD: f64 = 5_000.0;
/// The due time of an arrival that does not come.
const NEVER: u64 = u64::MAX;
/// Streams draw from generators of their own: paths below the seed of the plan.
const ARRIVALS: u64 = 1;
const MIX: u64 = 2;
const CONTENT: u64 = 3;
const FEEDS: u64 = 8;

/// One arrival of an open stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Due time; in a schedule that was not changed yet, the planned one.
    pub due: u64,
    /// Index of its scenario.
    pub scenario: usize,
}

/// Arrivals in order. A copy gives the same ones again, so a backlog of any length needs no memory.
#[derive(Clone, Debug)]
struct Arrivals {
    schedule: Schedule,
    mix: Random,
}

impl Arrivals {
    fn next(&mut self, program: &StreamProgram) -> Arrival {
        Arrival {
            due: self.schedule.next().unwrap_or(NEVER),
            scenario: program.draw_scenario(&mut self.mix),
        }
    }
}

/// The arrivals of an open stream.
#[derive(Debug)]
pub struct Open {
    /// Arrivals that become due.
    head: Arrivals,
    /// Arrivals that start.
    tail: Arrivals,
    /// Due times of both, after all changes of the rate.
    tempo: Tempo,
    planned_rate_per_s: Option<f64>,
    next: Arrival,
    /// Its planned due time.
    next_planned: u64,
    /// Arrivals between tail and head: due and not started.
    pub backlog: u64,
    /// Treatment of an arrival when all places are taken.
    pub overflow: Overflow,
    /// Iterations under way at once.
    places: u32,
    /// True if an arrival found no record of a feed: there are no more.
    is_dry: bool,
    free: Vec<u32>,
}

/// The part of one stream that one worker carries.
#[derive(Debug)]
pub struct StreamShard<'p> {
    /// Index of the stream in the plan.
    pub stream: u8,
    /// Purpose of the stream.
    pub role: Role,
    /// Its scenarios.
    pub program: &'p StreamProgram,
    /// Addresses of its target.
    pub destination: Destination,
    /// Its connections.
    pub pool: Pool,
    /// From issue to the last byte.
    pub timeout: u64,
    /// Users, or places of an open stream.
    pub users: Vec<User>,
    /// The last head of each step's answers, and behind them of answers to HEAD that a script has asked.
    pub known: Vec<KnownHead>,
    /// Values that users have extracted; empty when the stream extracts nothing.
    pub values: Vec<Values>,
    /// Cookies of each user; empty when the stream keeps none.
    pub jars: Vec<Jar>,
    /// Site that the cookies belong to.
    pub site: Site,
    /// Check results so far, and the tools to judge answers with.
    pub judging: Judging,
    /// Records of its feeds that users have; none: the stream uses no feed.
    pub feed_cursors: Option<Box<FeedCursors>>,
    /// The runs of groups that its users are in; none: the stream has no groups.
    pub open_runs: Option<Box<OpenRuns>>,
    /// Pause between iterations; none: an open stream.
    pub think: Option<plan::Think>,
    /// Due times of its users' iterations; none: after the pause.
    pub timetable: Option<Box<Timetable>>,
    /// Its arrivals; none: a closed stream.
    pub open: Option<Open>,
    /// Numbers of requests.
    pub quota: Quota,
    /// Draws of templates and pauses.
    pub random: Random,
    /// Users or iterations that have not ended.
    pub active: u32,
    /// Users among them that pause.
    pub pausing: u32,
    /// Users with this number or a higher one are no longer there.
    pub present: u32,
    /// True if a change of the load has let the last user go: there may be users again.
    pub is_emptied: bool,
    /// True if its end was reported to the others.
    pub has_ended: bool,
    pub(super) part: Part,
}

/// Threads that a stream can use: at least 1, at most `threads`.
pub fn useful_threads(stream: &plan::Stream, share: plan::Share, threads: u32) -> u32 {
    let machine = Part::new(share, 0, 1);
    let here = |total: u64| u32::try_from(machine.count_of(total)).unwrap_or(u32::MAX);
    let pooled = stream
        .connection
        .pool
        .map_or(u32::MAX, |pool| here(pool.into()) / WORTH_SPLITTING);
    let useful = match &stream.workload {
        Workload::Closed {
            users, requests, ..
        } => here(u64::from(*users).min(requests.unwrap_or(u64::MAX))),
        Workload::Open { max_in_flight, .. } => {
            let weight = f64::from(share.to - share.from) / f64::from(share.of);
            let by_rate = peak_per_s(&stream.workload) * weight / RATE_OF_A_THREAD;
            (here((*max_in_flight).into()) / WORTH_SPLITTING).min(by_rate.ceil() as u32)
        }
    };
    useful.min(pooled).clamp(1, threads)
}

/// The most arrivals a second of an open workload; 0 of a closed one.
fn peak_per_s(workload: &Workload) -> f64 {
    let Workload::Open {
        rate_per_s,
        profile,
        replay,
        ..
    } = workload
    else {
        return 0.0;
    };
    let constant = rate_per_s.unwrap_or(0.0);
    let of_profile = profile.as_ref().map_or(0.0, plan::Profile::peak);
    let of_replay = replay.as_ref().map_or(0.0, |replay| replay.peak_per_s);
    constant.max(of_profile).max(of_replay)
}

/// Closed users of a part, starts spread evenly over the ramp or following the profile.
fn closed_users(
    all: u32,
    ramp_ns: u64,
    iterations: Option<u64>,
    timetable: Option<&Timetable>,
    part: &Part,
) -> Vec<User> {
    let ours = part.count_of(u64::from(all));
    (0..ours)
        .filter_map(|j| {
            let number = part.number(j);
            let mut user = User::new(number as u32, iterations);
            let begin = (u128::from(ramp_ns) * u128::from(number) / u128::from(all)) as u64;
            user.due = match timetable {
                None => begin,
                Some(timetable) => timetable.first(number as u32, begin)?,
            };
            Some(user)
        })
        .collect()
}

impl Open {
    /// The arrivals of a part of an open workload.
    fn new(
        workload: &Workload,
        program: &StreamProgram,
        seed: u64,
        mix: Random,
        part: &Part,
    ) -> Option<Open> {
        let Workload::Open {
            rate_per_s,
            profile,
            arrivals,
            max_in_flight,
            overflow,
            ..
        } = workload
        else {
            return None;
        };
        let intensity = match (profile, &program.due_times) {
            (Some(profile), _) => Intensity::Shaped(Rates::new(profile)),
            (None, Some(times)) => Intensity::Replay(times.clone()),
            (None, None) => Intensity::Constant((*rate_per_s)?),
        };
        let mut head = Arrivals {
            schedule: Schedule::of(seed, intensity, *arrivals, part),
            mix,
        };
        let tail = head.clone();
        let next = head.next(program);
        Some(Open {
            head,
            tail,
            tempo: Tempo::default(),
            planned_rate_per_s: *rate_per_s,
            next,
            next_planned: next.due,
            backlog: 0,
            overflow: *overflow,
            places: (part.count_of(u64::from(*max_in_flight)) as u32).max(1),
            is_dry: false,
            free: Vec::new(),
        })
    }
}

impl<'p> StreamShard<'p> {
    /// The part `part` of a stream; none when nothing of it falls to this part.
    pub fn new(
        plan: &plan::Plan,
        index: usize,
        program: &'p StreamProgram,
        addresses: Vec<SocketAddr>,
        part: Part,
    ) -> Option<StreamShard<'p>> {
        let stream = &plan.streams[index];
        let path = |purpose: u64| [index as u64, purpose, part.first()];
        let mut users = Vec::new();
        let mut open = None;
        let mut timetable = Timetable::new(&stream.workload).map(Box::new);
        let (places, think, requests) = match &stream.workload {
            Workload::Closed {
                users: all,
                think,
                ramp_ns,
                iterations,
                requests,
                ..
            } => {
                users = closed_users(*all, *ramp_ns, *iterations, timetable.as_deref(), &part);
                if let Some(timetable) = &mut timetable {
                    timetable.seat(users.iter().map(|user| user.due));
                }
                (users.len() as u32, Some(*think), *requests)
            }
            Workload::Open { requests, .. } => {
                let mix = Random::derived(plan.seed, &path(MIX));
                let seed = Random::derived(plan.seed, &[index as u64, ARRIVALS]).bits();
                let of_part = Open::new(&stream.workload, program, seed, mix, &part)?;
                let places = of_part.places;
                open = Some(of_part);
                (places, None, *requests)
            }
        };
        let quota = Quota::new(requests.map(|all| part.count_of(all)), &part);
        if places == 0 || quota.is_used_up() {
            return None;
        }
        Some(StreamShard {
            stream: index as u8,
            role: stream.role,
            program,
            destination: Destination::new(addresses, plan.duration_ns.is_some()),
            pool: Pool::new(
                &stream.connection,
                part.clone(),
                places,
                think.map(|_| users.len()),
            ),
            timeout: stream.timeout_ns,
            known: program
                .steps
                .iter()
                .map(|step| KnownHead::new(step.request_is_head))
                .chain([KnownHead::new(true)])
                .collect(),
            values: vec![Values::default(); if program.slots > 0 { users.len() } else { 0 }],
            jars: match program.cookies {
                Cookies::Off => Vec::new(),
                _ => vec![Jar::default(); users.len()],
            },
            site: Site::new(&stream.target.authority, stream.target.tls.is_some()),
            judging: Judging::new(program),
            feed_cursors: FeedCursors::new(program, users.len(), &part, |feed| {
                Random::derived(plan.seed, &[index as u64, FEEDS, part.first(), feed])
            }),
            open_runs: OpenRuns::new(program, users.len()).map(Box::new),
            active: if think.is_some() {
                users.len() as u32
            } else {
                0
            },
            pausing: 0,
            users,
            think,
            timetable,
            open,
            quota,
            random: Random::derived(plan.seed, &path(CONTENT)),
            present: match stream.workload {
                Workload::Closed { users, .. } => users,
                Workload::Open { .. } => u32::MAX,
            },
            is_emptied: false,
            has_ended: false,
            part,
        })
    }

    /// True if it is a load that has not ended.
    pub fn has_load(&self) -> bool {
        self.role == Role::Load && !self.has_ended
    }

    /// True if nothing more will come from this shard: all have left, or those who pause have no request left.
    #[inline]
    pub fn is_over(&self) -> bool {
        ((self.active == 0 && !self.is_emptied)
            || (self.active == self.pausing && self.quota.is_used_up()))
            && self
                .open
                .as_ref()
                .is_none_or(|open| open.backlog == 0 && self.next_arrival().is_none())
    }

    /// Due time of its next arrival.
    pub fn next_arrival(&self) -> Option<u64> {
        let open = self.open.as_ref()?;
        let due = open.next.due;
        (due != NEVER && !open.is_dry && !self.quota.is_used_up()).then_some(due)
    }

    /// Takes the next arrival if it is due at `now`; it becomes the youngest of the backlog.
    pub fn arrive(&mut self, now: u64) -> Option<Arrival> {
        if self.next_arrival()? > now {
            return None;
        }
        let open = self.open.as_mut()?;
        if let Some(feed_cursors) = &mut self.feed_cursors {
            if !feed_cursors.claim(&self.program.scenarios[open.next.scenario]) {
                open.is_dry = true;
                return None;
            }
        }
        if !self.quota.claim() {
            return None;
        }
        let arrival = open.next;
        open.next = open.head.next(self.program);
        open.next_planned = open.next.due;
        open.next.due = open.tempo.due(open.next.due);
        open.backlog += 1;
        Some(arrival)
    }

    /// Takes the oldest arrival of the backlog.
    pub fn take_backlog(&mut self) -> Option<Arrival> {
        let open = self.open.as_mut().filter(|open| open.backlog > 0)?;
        open.backlog -= 1;
        let arrival = open.tail.next(self.program);
        Some(Arrival {
            due: open.tempo.due(arrival.due),
            ..arrival
        })
    }

    /// Arrivals that are due after `at` come at this rate of the whole.
    pub fn change_rate(&mut self, at: u64, rate_per_s: f64) {
        let Some(open) = &mut self.open else { return };
        let Some(planned) = open.planned_rate_per_s else {
            return;
        };
        open.tempo.change(at, rate_per_s / planned);
        open.next.due = open.tempo.due(open.next_planned);
    }

    /// True if an arrival could start.
    pub fn has_place(&self) -> bool {
        let has_place =
            |open: &Open| !open.free.is_empty() || (self.users.len() as u32) < open.places;
        self.open.as_ref().is_some_and(has_place)
    }

    /// A free place of an open stream, which is then taken.
    pub fn take_place(&mut self) -> Option<u32> {
        let open = self.open.as_mut()?;
        let place = match open.free.pop() {
            Some(place) => place,
            None if (self.users.len() as u32) < open.places => {
                let place = self.users.len() as u32;
                let number = self.part.number(u64::from(place));
                self.add_user(User::new(number as u32, None));
                place
            }
            None => return None,
        };
        self.active += 1;
        Some(place)
    }

    /// Adds a user or a place.
    pub(super) fn add_user(&mut self, user: User) {
        self.users.push(user);
        if self.program.slots > 0 {
            self.values.push(Values::default());
        }
        if let Some(feed_cursors) = &mut self.feed_cursors {
            feed_cursors.add_user();
        }
        if self.program.cookies != Cookies::Off {
            self.jars.push(Jar::default());
        }
        if let Some(open_runs) = &mut self.open_runs {
            open_runs.add_user();
        }
    }

    /// A user of a closed stream, or the iteration in a place, has ended.
    pub fn leave(&mut self, user: u32) {
        self.active -= 1;
        if let Some(open) = &mut self.open {
            open.free.push(user);
        }
    }

    /// Forgets which connection a user had.
    pub fn part_from_connection(&mut self, user: u32) {
        if user != NONE {
            self.users[user as usize].connection = NONE;
        }
    }
}
