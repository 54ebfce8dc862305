//! The model: all that a simulation needs to know, frozen, as canonical JSON. Times are seconds.

use std::collections::HashSet;

use loadlens_base::{Fault, Faults};
use serde::{Deserialize, Serialize};

use crate::law::Law;

/// The version of the model that this crate reads.
pub const SCHEMA_VERSION: u32 = 1;
/// Groups that a model may have: a request remembers its member of each.
pub const MOST_GROUPS: usize = 4;
/// Users of all closed streams together.
pub const MOST_USERS: u64 = 1_000_000;
/// The bound of events that a model may ask for.
pub const MOST_EVENTS: u64 = 1_000_000_000;
const EVENTS: u64 = 5_000_000;
const MOST_PARTS: usize = 1000;

/// A service under load, as queues.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Always [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Every draw follows from it.
    pub seed: u64,
    /// Simulated before anything is counted.
    pub warmup_s: f64,
    /// Simulated and counted.
    pub duration_s: f64,
    /// After so many events the simulation ends where it stands.
    #[serde(default = "events")]
    pub most_events: u64,
    /// Alternatives of which a request takes one: workers of a process, replicas behind a balancer.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// Stations that serve or hold requests.
    pub stations: Vec<Station>,
    /// Kinds of requests, with their ways.
    pub classes: Vec<Class>,
    /// Sources of requests.
    pub streams: Vec<Stream>,
}

fn events() -> u64 {
    EVENTS
}

/// Alternatives of one kind, and the rule that picks one for a request.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Unique in the model.
    pub name: String,
    /// Number of members.
    pub size: u32,
    /// Rule that picks the member for a request.
    pub policy: Policy,
}

/// Rule that picks the member of a group for a request.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Each in turn.
    RoundRobin,
    /// The member with the fewest requests; of several, any.
    LeastConnections,
    /// The one with fewer requests of two drawn at random.
    RandomTwo,
    /// Anyone, for each request.
    Random,
    /// Always the same for a user; users are dealt in turn. Requests of open streams: anyone.
    Sticky,
    /// Always the same for a user; drawn once for each. Requests of open streams: anyone.
    StickyRandom,
    /// The first one, always.
    First,
}

/// A station that serves or holds requests.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// Unique in the model.
    pub name: String,
    /// In which way.
    pub discipline: Discipline,
    /// FIFO: servers; processor sharing: work a second; semaphore: units.
    pub capacity: f64,
    /// Processor sharing: the most that one request gets of the capacity; none: 1, a core.
    pub per_job: Option<f64>,
    /// One of these for each member of the group; none: there is one.
    pub each: Option<String>,
}

/// Discipline of a station.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// In order of arrival, each to its end.
    Fifo,
    /// All at once, each at the same speed.
    Ps,
    /// Holds no work: units are acquired in order of arrival and released.
    Semaphore,
}

/// A kind of request.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Unique in the model.
    pub name: String,
    /// From its due time to its answer.
    pub route: Vec<Step>,
}

/// One part of a request's way.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Takes a member of a group, for the rest of the way.
    Choose {
        /// Its name.
        group: String,
    },
    /// Waits for a unit of a semaphore and takes it.
    Acquire {
        /// Its name.
        station: String,
    },
    /// Gives a unit back.
    Release {
        /// Its name.
        station: String,
    },
    /// Brings work to a station and leaves when it is done.
    Serve {
        /// Its name.
        station: String,
        /// Seconds of one server, or of one core.
        work: Law,
    },
    /// Takes time without delaying other requests.
    Delay {
        /// Duration.
        time: Law,
    },
}

/// A source of requests.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Unique in the model.
    pub name: String,
    /// Users, or arrivals.
    pub load: Load,
    /// Scenarios of an iteration; one is drawn for each.
    pub scenarios: Vec<Scenario>,
}

/// Start of iterations.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Load {
    /// Users who begin the next one when they have thought after the last.
    Closed {
        /// Number of users.
        users: u32,
        /// Between two iterations.
        #[serde(default)]
        think: Law,
    },
    /// Arrivals at a rate, whatever becomes of them.
    Open {
        /// Iterations a second.
        rate_per_s: f64,
        /// Between two of them.
        arrivals: Arrivals,
    },
}

/// The times between arrivals.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Exponential.
    Poisson,
    /// All the same.
    Constant,
}

/// One request after another.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Weight of the scenario against the others in the draw.
    pub weight: f64,
    /// Its requests.
    pub steps: Vec<Visit>,
}

/// One request of an iteration.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Visit {
    /// Name of its class.
    pub class: String,
    /// Pause before the next request of the iteration.
    #[serde(default)]
    pub think: Law,
}

impl Model {
    /// Every fault at once; empty: it can be simulated.
    pub fn faults(&self) -> Vec<Fault> {
        let mut list = Vec::new();
        let mut faults = Faults::new(&mut list, "");
        let what = format_args!("{SCHEMA_VERSION} is wanted");
        faults.want(
            self.schema_version == SCHEMA_VERSION,
            "schema_version",
            what,
        );
        let what = "a time of at least 0 is wanted";
        faults.want(is_time(self.warmup_s), "warmup_s", what);
        let is_length = is_time(self.duration_s) && self.duration_s > 0.0;
        faults.want(is_length, "duration_s", "a time above 0 is wanted");
        let what = format_args!("1 to {MOST_EVENTS} is wanted");
        let is_bound = (1..=MOST_EVENTS).contains(&self.most_events);
        faults.want(is_bound, "most_events", what);
        self.check_parts(&mut faults);
        self.check_classes(&mut faults);
        self.check_streams(&mut faults);
        list
    }

    fn check_parts(&self, faults: &mut Faults) {
        let what = format_args!("at most {MOST_GROUPS}");
        faults.want(self.groups.len() <= MOST_GROUPS, "groups", what);
        check_names("groups", 0, self.groups.iter().map(|g| &g.name), faults);
        check_names("stations", 0, self.stations.iter().map(|s| &s.name), faults);
        for (i, group) in self.groups.iter().enumerate() {
            let is_size = (1..=MOST_PARTS as u32).contains(&group.size);
            faults.want(is_size, &format!("groups[{i}].size"), "1 to 1000 is wanted");
        }
        for (i, station) in self.stations.iter().enumerate() {
            let mut faults = faults.of(&format!("stations[{i}]"));
            let capacity = station.capacity;
            let is_good = match station.discipline {
                Discipline::Ps => capacity > 0.0,
                Discipline::Fifo | Discipline::Semaphore => {
                    capacity.fract() == 0.0 && capacity >= 1.0
                }
            };
            let what = "above 0, and whole unless processors are shared";
            faults.want(is_good && capacity <= 1e9, "capacity", what);
            let is_share = |most: f64| most.is_finite() && most > 0.0;
            let what = "above 0 is wanted";
            faults.want(station.per_job.is_none_or(is_share), "per_job", what);
            if let Some(name) = &station.each {
                let what = format_args!("no group {name}");
                faults.want(self.group(name).is_some(), "each", what);
            }
        }
    }

    fn check_classes(&self, faults: &mut Faults) {
        check_names("classes", 1, self.classes.iter().map(|c| &c.name), faults);
        for (i, class) in self.classes.iter().enumerate() {
            let mut faults = faults.of(&format!("classes[{i}]"));
            let mut chosen: HashSet<&str> = HashSet::new();
            let mut held: Vec<&str> = Vec::new();
            let is_short = class.route.len() <= MOST_PARTS;
            faults.want(is_short, "route", "at most 1000 steps");
            for (j, step) in class.route.iter().enumerate() {
                let mut faults = faults.of(&format!("route[{j}]"));
                self.check_step(step, &mut chosen, &mut held, &mut faults);
            }
            for station in held {
                let what = format_args!("{station} is acquired and never released");
                faults.add("route", what);
            }
        }
    }

    fn check_step<'a>(
        &'a self,
        step: &'a Step,
        chosen: &mut HashSet<&'a str>,
        held: &mut Vec<&'a str>,
        faults: &mut Faults,
    ) {
        let (name, wants_semaphore) = match step {
            Step::Choose { group } => {
                let is_group = self.group(group).is_some();
                faults.want(is_group, "group", format_args!("no group {group}"));
                let what = format_args!("a member of {group} is chosen twice");
                faults.want(chosen.insert(group), "group", what);
                return;
            }
            Step::Delay { time } => return time.check(&mut faults.of("time")),
            Step::Acquire { station } => {
                held.push(station);
                (station, true)
            }
            Step::Release { station } => {
                match held.iter().position(|other| other == station) {
                    Some(at) => {
                        held.remove(at);
                    }
                    None => faults.add("station", format_args!("{station} is not held here")),
                }
                (station, true)
            }
            Step::Serve { station, work } => {
                work.check(&mut faults.of("work"));
                (station, false)
            }
        };
        let Some(station) = self.stations.iter().find(|s| s.name == *name) else {
            return faults.add("station", format_args!("no station {name}"));
        };
        let is_semaphore = station.discipline == Discipline::Semaphore;
        if is_semaphore && !wants_semaphore {
            let what = format_args!("{name} is a semaphore: acquire and release it");
            faults.add("station", what);
        }
        let what = format_args!("{name} is not a semaphore");
        faults.want(is_semaphore || !wants_semaphore, "station", what);
        if let Some(group) = &station.each {
            let what = format_args!("{name} is one of each of {group}: choose a member before");
            faults.want(chosen.contains(group.as_str()), "station", what);
        }
    }

    fn check_streams(&self, faults: &mut Faults) {
        check_names("streams", 1, self.streams.iter().map(|s| &s.name), faults);
        let mut users = 0;
        for (i, stream) in self.streams.iter().enumerate() {
            let mut faults = faults.of(&format!("streams[{i}]"));
            match &stream.load {
                Load::Closed { users: own, think } => {
                    users += u64::from(*own);
                    think.check(&mut faults.of("load.think"));
                }
                Load::Open { rate_per_s, .. } => {
                    let is_rate = rate_per_s.is_finite() && *rate_per_s > 0.0;
                    faults.want(is_rate, "load.rate_per_s", "above 0 is wanted");
                }
            }
            let weights: f64 = stream.scenarios.iter().map(|s| s.weight).sum();
            let are_good = stream.scenarios.iter().all(|s| s.weight >= 0.0);
            let are_good = are_good && weights.is_finite() && weights > 0.0;
            let what = "weights of at least 0, one above it, are wanted";
            faults.want(are_good, "scenarios", what);
            for (j, scenario) in stream.scenarios.iter().enumerate() {
                let mut faults = faults.of(&format!("scenarios[{j}]"));
                let has_steps = !scenario.steps.is_empty();
                faults.want(has_steps, "steps", "a step is wanted");
                for (k, visit) in scenario.steps.iter().enumerate() {
                    let mut faults = faults.of(&format!("steps[{k}]"));
                    visit.think.check(&mut faults.of("think"));
                    let is_class = self.classes.iter().any(|c| c.name == visit.class);
                    faults.want(is_class, "class", format_args!("no class {}", visit.class));
                }
            }
        }
        let what = format_args!("at most {MOST_USERS} users");
        faults.want(users <= MOST_USERS, "streams", what);
    }

    pub(crate) fn group(&self, name: &str) -> Option<usize> {
        self.groups.iter().position(|group| group.name == name)
    }
}

/// A number of seconds that something can take.
pub(crate) fn is_time(seconds: f64) -> bool {
    seconds.is_finite() && seconds >= 0.0
}

fn check_names<'a>(
    key: &str,
    fewest: usize,
    names: impl Iterator<Item = &'a String>,
    faults: &mut Faults,
) {
    let names: Vec<&str> = names.map(String::as_str).collect();
    let count = names.len();
    faults.want_names(key, names);
    faults.want(count <= MOST_PARTS, key, "at most 1000");
    faults.want(count >= fewest, key, "at least one is wanted");
}
