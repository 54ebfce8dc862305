//! The one loop: the next event, what it sets off, until the time or a bound is over.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use loadlens_base::Fault;
use loadlens_base::Random;

use crate::compiled::{At, Compiled, Op};
use crate::model::{Arrivals, Discipline, Load, Model, Policy, MOST_GROUPS, SCHEMA_VERSION};
use crate::outcome::{ClassOutcome, Gathered, Outcome, StationOutcome, StreamOutcome};
use crate::place::{Place, Time};

const MOST_JOBS: usize = 1_000_000; // requests of open streams at once
const NONE: u16 = u16::MAX;
const NO_USER: u32 = u32::MAX;

/// Event at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// An iteration of an open stream arrives.
    Arrive(u32),
    /// A user, or an iteration in its pause, issues the next request.
    Issue(u32),
    /// A delay of a request is over.
    Delayed(u32),
    /// A FIFO server has done a request's work.
    Served(u32),
    /// Completion at shared processors: place and version.
    Shared(u32, u32),
    /// Counting begins.
    Count,
}

/// A request, or the user that will issue the next one.
#[derive(Clone, Copy, Debug)]
struct Job {
    due: f64,
    stream: u32,
    user: u32, // NO_USER: of an open stream
    class: u32,
    op: u32,
    scenario: u32,
    step: u32,
    members: [u16; MOST_GROUPS],
}

/// Draws of one kind each, so that a change of one leaves the others as they were.
struct Draws {
    arrivals: Random,
    think: Random,
    scenario: Random,
    work: Random,
    member: Random,
}

/// Simulates a model.
///
/// # Errors
///
/// Every fault of the model at once.
pub fn simulate(model: &Model) -> Result<Outcome, Vec<Fault>> {
    let faults = model.faults();
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut run = Run::new(model);
    run.begin();
    run.go();
    Ok(run.outcome())
}

struct Run<'m> {
    model: &'m Model,
    compiled: Compiled,
    now: f64,
    end: f64,
    order: u64,
    events: u64,
    is_counting: bool,
    cut: &'static str,
    queue: BinaryHeap<Reverse<(Time, u64, What)>>,
    ready: VecDeque<u32>,
    jobs: Vec<Job>,
    free: Vec<u32>,
    places: Vec<Place>,
    held: Vec<Vec<u32>>, // requests at each member of each group
    turn: Vec<u32>,
    own: Vec<Vec<u16>>, // each user's member, of groups with `sticky_random`
    gathered: Vec<Vec<Gathered>>,
    draws: Draws,
}

impl<'m> Run<'m> {
    fn new(model: &'m Model) -> Self {
        let compiled = Compiled::of(model);
        let mut places = Vec::new();
        for (i, station) in model.stations.iter().enumerate() {
            for _ in compiled.bases[i]..compiled.bases[i + 1] {
                places.push(Place::new(
                    station.discipline,
                    station.capacity,
                    station.per_job,
                ));
            }
        }
        let stream = |part: u64| Random::derived(model.seed, &[part]);
        let classes = model.classes.len();
        Run {
            model,
            compiled,
            now: 0.0,
            end: model.warmup_s + model.duration_s,
            order: 0,
            events: 0,
            is_counting: false,
            cut: "",
            queue: BinaryHeap::new(),
            ready: VecDeque::new(),
            jobs: Vec::new(),
            free: Vec::new(),
            places,
            held: model
                .groups
                .iter()
                .map(|g| vec![0; g.size as usize])
                .collect(),
            turn: vec![0; model.groups.len()],
            own: vec![Vec::new(); model.groups.len()],
            gathered: vec![vec![Gathered::default(); classes]; model.streams.len()],
            draws: Draws {
                arrivals: stream(0),
                think: stream(1),
                scenario: stream(2),
                work: stream(3),
                member: stream(4),
            },
        }
    }

    /// Users at some point of their pause, streams before their first arrival.
    fn begin(&mut self) {
        let model = self.model;
        let mut user = 0;
        for (index, stream) in model.streams.iter().enumerate() {
            match &stream.load {
                Load::Closed { users, think } => {
                    for _ in 0..*users {
                        self.settle(user);
                        let at = think.draw(&mut self.draws.think) * self.draws.think.unit();
                        let job = self.job(index as u32, user);
                        self.begin_iteration(job);
                        self.at(at, What::Issue(job));
                        user += 1;
                    }
                }
                Load::Open { rate_per_s, .. } => {
                    let first = self.draws.arrivals.unit() / rate_per_s;
                    self.at(first, What::Arrive(index as u32));
                }
            }
        }
        self.at(self.model.warmup_s, What::Count);
    }

    /// Draws a user's own member of the groups that keep one.
    fn settle(&mut self, user: u32) {
        for (g, group) in self.model.groups.iter().enumerate() {
            if group.policy == Policy::StickyRandom {
                debug_assert_eq!(self.own[g].len(), user as usize);
                let member = self.draws.member.below(u64::from(group.size));
                self.own[g].push(member as u16);
            }
        }
    }

    fn go(&mut self) {
        while let Some(Reverse((Time(time), _, what))) = self.queue.pop() {
            if time > self.end {
                break;
            }
            if self.events == self.model.most_events {
                self.cut = "the bound of events was reached";
                return;
            }
            self.now = time;
            self.events += 1;
            self.happen(what);
            while let Some(job) = self.ready.pop_front() {
                self.advance(job);
            }
            if self.jobs.len() > MOST_JOBS + self.users() {
                self.cut = "more than a million requests of open streams were waiting";
                return;
            }
        }
        self.now = self.end;
    }

    fn users(&self) -> usize {
        let own = |load: &Load| match load {
            Load::Closed { users, .. } => *users as usize,
            Load::Open { .. } => 0,
        };
        self.model.streams.iter().map(|s| own(&s.load)).sum()
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Arrive(stream) => {
                let model = self.model;
                if let Load::Open {
                    rate_per_s,
                    arrivals,
                } = &model.streams[stream as usize].load
                {
                    let gap = match arrivals {
                        Arrivals::Poisson => self.draws.arrivals.exponential() / rate_per_s,
                        Arrivals::Constant => 1.0 / rate_per_s,
                    };
                    self.at(self.now + gap, What::Arrive(stream));
                }
                let job = self.job(stream, NO_USER);
                self.begin_iteration(job);
                self.issue(job);
            }
            What::Issue(job) => self.issue(job),
            What::Delayed(job) => {
                self.jobs[job as usize].op += 1;
                self.ready.push_back(job);
            }
            What::Served(job) => self.served(job),
            What::Shared(place, version) => self.shared(place, version),
            What::Count => {
                self.is_counting = true;
                for place in &mut self.places {
                    place.forget(self.now);
                }
            }
        }
    }

    fn at(&mut self, time: f64, what: What) {
        self.order += 1;
        self.queue.push(Reverse((Time(time), self.order, what)));
    }

    fn job(&mut self, stream: u32, user: u32) -> u32 {
        let job = Job {
            due: 0.0,
            stream,
            user,
            class: 0,
            op: 0,
            scenario: 0,
            step: 0,
            members: [NONE; MOST_GROUPS],
        };
        if let Some(slot) = self.free.pop() {
            self.jobs[slot as usize] = job;
            return slot;
        }
        self.jobs.push(job);
        (self.jobs.len() - 1) as u32
    }

    fn begin_iteration(&mut self, job: u32) {
        let stream = self.jobs[job as usize].stream as usize;
        let scenarios = &self.compiled.scenarios[stream];
        let drawn = if scenarios.len() == 1 {
            0
        } else {
            let u = self.draws.scenario.unit();
            let position = scenarios.iter().position(|s| u < s.until);
            position.unwrap_or(scenarios.len() - 1)
        };
        let job = &mut self.jobs[job as usize];
        job.scenario = drawn as u32;
        job.step = 0;
    }

    /// A request becomes due now.
    fn issue(&mut self, id: u32) {
        let now = self.now;
        let job = &mut self.jobs[id as usize];
        let scenario = &self.compiled.scenarios[job.stream as usize][job.scenario as usize];
        job.class = scenario.steps[job.step as usize].class;
        job.due = now;
        job.op = 0;
        job.members = [NONE; MOST_GROUPS];
        self.ready.push_back(id);
    }

    /// Follows a request's way as far as it goes now.
    fn advance(&mut self, id: u32) {
        loop {
            let job = self.jobs[id as usize];
            let route = &self.compiled.routes[job.class as usize];
            let Some(op) = route.get(job.op as usize) else {
                return self.finish(id);
            };
            match op {
                Op::Choose(group) => {
                    let group = *group;
                    let member = self.choose(group as usize, job.user);
                    self.held[group as usize][member as usize] += 1;
                    self.jobs[id as usize].members[group as usize] = member;
                }
                Op::Acquire(at) => {
                    let place = &mut self.places[resolved(*at, &job)];
                    if !place.take(self.now) {
                        return place.wait(id, 0.0);
                    }
                }
                Op::Release(at) => {
                    if let Some((next, _)) = self.places[resolved(*at, &job)].give(self.now) {
                        self.jobs[next as usize].op += 1;
                        self.ready.push_back(next);
                    }
                }
                Op::Serve(at, law) => {
                    let work = law.draw(&mut self.draws.work);
                    return self.serve(id, resolved(*at, &job), work);
                }
                Op::Delay(law) => {
                    let time = law.draw(&mut self.draws.work);
                    if time > 0.0 {
                        return self.at(self.now + time, What::Delayed(id));
                    }
                }
            }
            self.jobs[id as usize].op += 1;
        }
    }

    fn serve(&mut self, id: u32, at: usize, work: f64) {
        let now = self.now;
        let place = &mut self.places[at];
        if place.discipline == Discipline::Ps {
            let done = place.share(now, id, work);
            let version = place.sharing.version;
            return self.at(done, What::Shared(at as u32, version));
        }
        if place.take(now) {
            self.at(now + work, What::Served(id));
        } else {
            place.wait(id, work);
        }
    }

    fn served(&mut self, id: u32) {
        let job = self.jobs[id as usize];
        if let Some(Op::Serve(at, _)) =
            self.compiled.routes[job.class as usize].get(job.op as usize)
        {
            if let Some((next, work)) = self.places[resolved(*at, &job)].give(self.now) {
                self.at(self.now + work, What::Served(next));
            }
        }
        self.jobs[id as usize].op += 1;
        self.ready.push_back(id);
    }

    fn shared(&mut self, at: u32, version: u32) {
        let place = &mut self.places[at as usize];
        if place.sharing.version != version {
            return; // a job came or went since: a later event replaces this one
        }
        let Some((job, next)) = place.leave(self.now) else {
            return;
        };
        let version = place.sharing.version;
        if let Some(time) = next {
            self.at(time, What::Shared(at, version));
        }
        self.jobs[job as usize].op += 1;
        self.ready.push_back(job);
    }

    fn choose(&mut self, group: usize, user: u32) -> u16 {
        let size = self.held[group].len() as u64;
        let random = &mut self.draws.member;
        let held = &self.held[group];
        let member = match self.model.groups[group].policy {
            Policy::First => 0,
            Policy::RoundRobin => {
                let turn = self.turn[group];
                self.turn[group] = (turn + 1) % size as u32;
                u64::from(turn)
            }
            Policy::LeastConnections => {
                let fewest = held.iter().min().copied().unwrap_or(0);
                let ties = held.iter().filter(|h| **h == fewest).count() as u64;
                let drawn = random.below(ties) as usize;
                let mut least = held.iter().enumerate().filter(|(_, h)| **h == fewest);
                least.nth(drawn).map_or(0, |(at, _)| at as u64)
            }
            Policy::RandomTwo => {
                let (a, b) = (random.below(size), random.below(size));
                if held[b as usize] < held[a as usize] {
                    b
                } else {
                    a
                }
            }
            Policy::Sticky if user != NO_USER => u64::from(user) % size,
            Policy::StickyRandom if user != NO_USER => u64::from(self.own[group][user as usize]),
            Policy::Random | Policy::Sticky | Policy::StickyRandom => random.below(size),
        };
        member as u16
    }

    /// A request is answered: its time, its places, and what comes next.
    fn finish(&mut self, id: u32) {
        let job = self.jobs[id as usize];
        for (group, member) in job.members.iter().enumerate() {
            if *member != NONE {
                self.held[group][*member as usize] -= 1;
            }
        }
        if self.is_counting {
            let place = (self.now - self.model.warmup_s) / self.model.duration_s;
            self.gathered[job.stream as usize][job.class as usize].note(self.now - job.due, place);
        }
        let scenario = &self.compiled.scenarios[job.stream as usize][job.scenario as usize];
        if (job.step as usize) + 1 < scenario.steps.len() {
            let pause = scenario.steps[job.step as usize]
                .think
                .draw(&mut self.draws.think);
            self.jobs[id as usize].step += 1;
            return self.at(self.now + pause, What::Issue(id));
        }
        let model = self.model;
        match &model.streams[job.stream as usize].load {
            Load::Closed { think, .. } => {
                let pause = think.draw(&mut self.draws.think);
                self.begin_iteration(id);
                self.at(self.now + pause, What::Issue(id));
            }
            Load::Open { .. } => self.free.push(id),
        }
    }

    fn outcome(mut self) -> Outcome {
        let counted = (self.now - self.model.warmup_s).max(0.0);
        let is_whole = self.cut.is_empty();
        let model = self.model;
        let streams = model
            .streams
            .iter()
            .zip(std::mem::take(&mut self.gathered))
            .map(|(stream, gathered)| {
                let whole = gathered
                    .iter()
                    .fold(Gathered::default(), |all, one| all.with(one));
                StreamOutcome {
                    name: stream.name.clone(),
                    all: whole.figures(counted, is_whole),
                    classes: model
                        .classes
                        .iter()
                        .zip(gathered)
                        .filter(|(class, _)| {
                            let mut visits = stream.scenarios.iter().flat_map(|s| &s.steps);
                            visits.any(|visit| visit.class == class.name)
                        })
                        .map(|(class, gathered)| ClassOutcome {
                            name: class.name.clone(),
                            times: gathered.figures(counted, is_whole),
                        })
                        .collect(),
                }
            })
            .collect();
        Outcome {
            schema_version: SCHEMA_VERSION,
            status: if is_whole { "complete" } else { "cut" }.to_owned(),
            reason: self.cut.to_owned(),
            counted_s: counted,
            events: self.events,
            streams,
            stations: self.stations(counted),
        }
    }

    fn stations(&mut self, counted: f64) -> Vec<StationOutcome> {
        let mut outcomes = Vec::new();
        for (i, station) in self.model.stations.iter().enumerate() {
            for at in self.compiled.bases[i]..self.compiled.bases[i + 1] {
                let (used, waiting) = if counted > 0.0 {
                    self.places[at as usize].means(self.now, counted)
                } else {
                    (0.0, 0.0)
                };
                outcomes.push(StationOutcome {
                    name: station.name.clone(),
                    member: at - self.compiled.bases[i],
                    used,
                    waiting,
                });
            }
        }
        outcomes
    }
}

fn resolved(at: At, job: &Job) -> usize {
    let member = at.group.map_or(0, |group| job.members[group as usize]);
    at.base as usize + member as usize
}
