//! The part of one stream that one worker carries: its users or arrivals, and its connections.

use std::collections::VecDeque;
use std::net::SocketAddr;

use loadlens_base::units::SECOND;
use loadlens_base::Random;
use loadlens_http::cookies::{Jar, Site};
use loadlens_http::known::KnownHead;
use loadlens_plan::arrival::rates::Rates;
use loadlens_plan::arrival::timetable::Timetable;
use loadlens_plan::arrival::{Intensity, Part, Schedule};
use loadlens_plan::program::{Judging, StreamProgram, Values};
use loadlens_plan::{self as plan, Cookies, Overflow, Reuse, Role, Workload};

use crate::feed_cursor::FeedCursors;
use crate::user::{Quota, User, NONE};

use super::groups::OpenRuns;

/// Fewer connections or places than this are not split over threads: a user of one thread would wait
/// while a connection of another is idle.
const WORTH_SPLITTING: u32 = 32;
/// Arrivals a second that one thread carries at ease.
const RATE_OF_A_THREAD: f64 = 5_000.0;
/// Users pause after failed connects until this long after the last established connection, in a load that only its
/// requests or iterations end: a service that restarts is back by then.
const PATIENCE: u64 = 10 * SECOND;
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
    /// Due time.
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
    next: Arrival,
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
    /// Addresses to connect to; empty: the name was not resolved.
    pub addresses: Vec<SocketAddr>,
    /// The address in use.
    pub address: usize,
    /// True if a connection was ever established: from then on the address stays.
    pub connected_once: bool,
    /// Time at which a connection was last established; 0: none was.
    pub stood_at: u64,
    /// True if a duration ends the load in any case.
    has_duration: bool,
    /// True if the last connection checked was established as soon as it was begun, as within one machine.
    pub stands_at_once: bool,
    /// From issue to the last byte.
    pub timeout: u64,
    /// Requests that a connection carries.
    pub requests_per_connection: u32,
    /// True if each user has a connection of its own.
    pub is_sticky: bool,
    /// Connections at once.
    pub max_connections: u32,
    /// Connections there are, connecting ones included.
    pub connections: u32,
    /// Idle connections by token, the one idle longest first; some may be gone by now.
    pub idle: VecDeque<u64>,
    /// Users who wait for a connection.
    pub queue: VecDeque<u32>,
    /// Users whose wait is over because there is room for their connection: ready, and still counted as queueing.
    pub called: u32,
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
    /// True if its end was reported to the others.
    pub has_ended: bool,
    part: Part,
    next_connection: u64,
}

/// Number of the numbers below `total` that belong to a part.
pub fn count_of(total: u64, part: Part) -> u64 {
    total.saturating_sub(part.index).div_ceil(part.of)
}

/// Threads that a stream can use: at least 1, at most `threads`.
pub fn useful_threads(stream: &plan::Stream, share: plan::Share, threads: u32) -> u32 {
    let here = |total: u64| u32::try_from(total.div_ceil(u64::from(share.of))).unwrap_or(u32::MAX);
    let pooled = stream
        .connection
        .pool
        .map_or(u32::MAX, |pool| here(pool.into()) / WORTH_SPLITTING);
    let useful = match &stream.workload {
        Workload::Closed {
            users, requests, ..
        } => here(u64::from(*users).min(requests.unwrap_or(u64::MAX))),
        Workload::Open { max_in_flight, .. } => {
            let by_rate = peak_per_s(&stream.workload) / f64::from(share.of) / RATE_OF_A_THREAD;
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

/// The closed users of a part who come at all; they begin evenly spread over the ramp, or with the profile.
fn closed_users(
    all: u32,
    ramp_ns: u64,
    iterations: Option<u64>,
    timetable: Option<&Timetable>,
    part: Part,
) -> Vec<User> {
    let ours = count_of(u64::from(all), part);
    (0..ours)
        .filter_map(|j| {
            let number = part.index + j * part.of;
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
        part: Part,
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
            next,
            backlog: 0,
            overflow: *overflow,
            places: (count_of(u64::from(*max_in_flight), part) as u32).max(1),
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
        let path = |purpose: u64| [index as u64, purpose, part.index];
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
                users = closed_users(*all, *ramp_ns, *iterations, timetable.as_deref(), part);
                if let Some(timetable) = &mut timetable {
                    timetable.seat(users.iter().map(|user| user.due));
                }
                (users.len() as u32, Some(*think), *requests)
            }
            Workload::Open { requests, .. } => {
                let mix = Random::derived(plan.seed, &path(MIX));
                let seed = Random::derived(plan.seed, &[index as u64, ARRIVALS]).bits();
                let of_part = Open::new(&stream.workload, program, seed, mix, part)?;
                let places = of_part.places;
                open = Some(of_part);
                (places, None, *requests)
            }
        };
        let quota = Quota::new(requests.map(|all| count_of(all, part)), part.index, part.of);
        if places == 0 || quota.is_used_up() {
            return None;
        }
        let pool = stream
            .connection
            .pool
            .map(|pool| (count_of(u64::from(pool), part) as u32).max(1));
        Some(StreamShard {
            stream: index as u8,
            role: stream.role,
            program,
            addresses,
            address: 0,
            connected_once: false,
            stood_at: 0,
            has_duration: plan.duration_ns.is_some(),
            stands_at_once: true,
            timeout: stream.timeout_ns,
            requests_per_connection: match stream.connection.reuse {
                Reuse::Keep => u32::MAX,
                Reuse::New => 1,
                Reuse::Requests { requests } => requests,
            },
            is_sticky: think.is_some() && pool.is_none(),
            max_connections: pool.unwrap_or(places),
            connections: 0,
            idle: VecDeque::with_capacity(pool.unwrap_or(places).min(1 << 16) as usize),
            queue: VecDeque::with_capacity(if pool.is_some() { users.len() } else { 0 }),
            called: 0,
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
            feed_cursors: FeedCursors::new(program, users.len(), part, |feed| {
                Random::derived(plan.seed, &[index as u64, FEEDS, part.index, feed])
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
            has_ended: false,
            part,
            next_connection: 0,
        })
    }

    /// A number for a new connection, unique in the stream.
    pub fn number_connection(&mut self) -> u32 {
        let number = self.part.index + self.part.of * self.next_connection;
        self.next_connection += 1;
        number as u32
    }

    /// True if it is a load that has not ended.
    pub fn has_load(&self) -> bool {
        self.role == Role::Load && !self.has_ended
    }

    /// True if nothing more will come from this shard: all have left, or those who pause have no request left.
    #[inline]
    pub fn is_over(&self) -> bool {
        (self.active == 0 || (self.active == self.pausing && self.quota.is_used_up()))
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
        open.backlog += 1;
        Some(arrival)
    }

    /// Takes the oldest arrival of the backlog.
    pub fn take_backlog(&mut self) -> Option<Arrival> {
        let open = self.open.as_mut().filter(|open| open.backlog > 0)?;
        open.backlog -= 1;
        Some(open.tail.next(self.program))
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
                let number = self.part.index + self.part.of * u64::from(place);
                self.users.push(User::new(number as u32, None));
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
                place
            }
            None => return None,
        };
        self.active += 1;
        Some(place)
    }

    /// True if a closed user pauses before it connects again.
    ///
    /// In a load that ends only by its requests or iterations the pauses would be its length: there, no user waits for
    /// a service that has never been reached, nor for one that has been away for long.
    pub fn backs_off(&self, now: u64) -> bool {
        self.has_duration || (self.stood_at > 0 && now < self.stood_at.saturating_add(PATIENCE))
    }

    /// No connection could be made to an address: the next one's turn, until a connection has once stood.
    ///
    /// Several users may have failed there; only the first of them moves on for all.
    pub fn give_up(&mut self, address: usize) {
        if self.address == address && !self.connected_once {
            self.address = (address + 1) % self.addresses.len().max(1);
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

#[cfg(test)]
mod tests {
    use super::*;
    use loadlens_plan::Share;

    #[test]
    fn parts_of_all_threads_of_all_machines_are_the_whole() {
        for total in [0, 1, 7, 1_001] {
            let mut sum = 0;
            for (machine, threads) in [(0, 3), (1, 1), (2, 5)] {
                let share = Share {
                    index: machine,
                    of: 3,
                };
                sum += (0..threads)
                    .map(|thread| count_of(total, Part::new(share, thread, threads)))
                    .sum::<u64>();
            }
            assert_eq!(sum, total);
        }
    }

    #[test]
    fn nobody_waits_for_a_service_that_was_never_there_or_is_gone_for_long() {
        let backs_off = |duration_ns: Option<u64>, stood_at: u64| {
            let plan = serde_json::json!({
                "schema_version": 1, "seed": 1, "duration_ns": duration_ns,
                "streams": [{
                    "name": "load", "role": "load", "timeout_ns": 1,
                    "target": {"host": "h", "port": 1, "authority": "h"},
                    "scenarios": [{"name": "s", "weight": 1.0, "steps": [{"name": "a", "method": "GET", "path": "/"}]}],
                    "workload": {"kind": "closed", "users": 1, "requests": 5},
                }],
            });
            let plan = serde_json::from_value(plan).unwrap();
            let program = loadlens_plan::program::Program::compile(&plan).unwrap();
            let mut shard =
                StreamShard::new(&plan, 0, &program.streams[0], vec![], Part::WHOLE).unwrap();
            shard.stood_at = stood_at;
            [0, 3, 13, 14].map(|second| shard.backs_off(second * SECOND))
        };

        assert_eq!(backs_off(None, 0), [false; 4]);
        assert_eq!(backs_off(None, 3 * SECOND + 1), [true, true, true, false]);
        assert_eq!(backs_off(Some(60 * SECOND), 0), [true; 4]);
    }
}
