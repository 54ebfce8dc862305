//! The model: all that a simulation needs to know, frozen, as canonical JSON. Times are seconds.

use std::collections::HashSet;

use loadlens_base::Fault;
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

/// So many of a kind, and who of them gets a request.
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
    #[serde(default)]
    pub per_job: Option<f64>,
    /// One of these for each member of the group; none: there is one.
    #[serde(default)]
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
        let mut faults = Vec::new();
        if self.schema_version != SCHEMA_VERSION {
            faults.push(Fault::new(
                "schema_version",
                format!("{SCHEMA_VERSION} is wanted"),
            ));
        }
        if !(self.warmup_s.is_finite() && self.warmup_s >= 0.0) {
            faults.push(Fault::new("warmup_s", "a time of at least 0 is wanted"));
        }
        if !(self.duration_s.is_finite() && self.duration_s > 0.0) {
            faults.push(Fault::new("duration_s", "a time above 0 is wanted"));
        }
        if !(1..=MOST_EVENTS).contains(&self.most_events) {
            faults.push(Fault::new(
                "most_events",
                format!("1 to {MOST_EVENTS} is wanted"),
            ));
        }
        self.check_parts(&mut faults);
        self.check_classes(&mut faults);
        self.check_streams(&mut faults);
        faults
    }

    fn check_parts(&self, faults: &mut Vec<Fault>) {
        if self.groups.len() > MOST_GROUPS {
            faults.push(Fault::new("groups", format!("at most {MOST_GROUPS}")));
        }
        unique(
            "groups",
            self.groups.iter().map(|g| g.name.as_str()),
            faults,
        );
        unique(
            "stations",
            self.stations.iter().map(|s| s.name.as_str()),
            faults,
        );
        for (i, group) in self.groups.iter().enumerate() {
            if !(1..=MOST_PARTS as u32).contains(&group.size) {
                faults.push(Fault::new(
                    format!("groups[{i}].size"),
                    "1 to 1000 is wanted",
                ));
            }
        }
        for (i, station) in self.stations.iter().enumerate() {
            let place = format!("stations[{i}]");
            let is_count = station.capacity.fract() == 0.0 && station.capacity >= 1.0;
            let is_good = match station.discipline {
                Discipline::Ps => station.capacity > 0.0,
                Discipline::Fifo | Discipline::Semaphore => is_count,
            };
            if !(is_good && station.capacity.is_finite() && station.capacity <= 1e9) {
                faults.push(Fault::new(
                    format!("{place}.capacity"),
                    "above 0, and whole unless processors are shared",
                ));
            }
            if station
                .per_job
                .is_some_and(|most| !(most.is_finite() && most > 0.0))
            {
                faults.push(Fault::new(format!("{place}.per_job"), "above 0 is wanted"));
            }
            if let Some(name) = &station.each {
                if self.group(name).is_none() {
                    faults.push(Fault::new(
                        format!("{place}.each"),
                        format!("no group {name}"),
                    ));
                }
            }
        }
    }

    fn check_classes(&self, faults: &mut Vec<Fault>) {
        unique(
            "classes",
            self.classes.iter().map(|c| c.name.as_str()),
            faults,
        );
        for (i, class) in self.classes.iter().enumerate() {
            let mut chosen: HashSet<&str> = HashSet::new();
            let mut held: Vec<&str> = Vec::new();
            if class.route.len() > MOST_PARTS {
                faults.push(Fault::new(
                    format!("classes[{i}].route"),
                    "at most 1000 steps",
                ));
            }
            for (j, step) in class.route.iter().enumerate() {
                let place = format!("classes[{i}].route[{j}]");
                self.check_step(step, &place, &mut chosen, &mut held, faults);
            }
            for station in held {
                faults.push(Fault::new(
                    format!("classes[{i}].route"),
                    format!("{station} is acquired and never released"),
                ));
            }
        }
    }

    fn check_step<'a>(
        &'a self,
        step: &'a Step,
        place: &str,
        chosen: &mut HashSet<&'a str>,
        held: &mut Vec<&'a str>,
        faults: &mut Vec<Fault>,
    ) {
        let (name, wants_semaphore) = match step {
            Step::Choose { group } => {
                if self.group(group).is_none() {
                    faults.push(Fault::new(
                        format!("{place}.group"),
                        format!("no group {group}"),
                    ));
                }
                if !chosen.insert(group) {
                    faults.push(Fault::new(
                        format!("{place}.group"),
                        format!("a member of {group} is chosen twice"),
                    ));
                }
                return;
            }
            Step::Delay { time } => return time.check(&format!("{place}.time"), faults),
            Step::Acquire { station } => {
                held.push(station);
                (station, true)
            }
            Step::Release { station } => {
                match held.iter().position(|other| other == station) {
                    Some(at) => {
                        held.remove(at);
                    }
                    None => faults.push(Fault::new(
                        format!("{place}.station"),
                        format!("{station} is not held here"),
                    )),
                }
                (station, true)
            }
            Step::Serve { station, work } => {
                work.check(&format!("{place}.work"), faults);
                (station, false)
            }
        };
        let place = format!("{place}.station");
        let Some(found) = self.stations.iter().find(|s| s.name == *name) else {
            return faults.push(Fault::new(place, format!("no station {name}")));
        };
        if (found.discipline == Discipline::Semaphore) != wants_semaphore {
            let what = if wants_semaphore {
                "is no semaphore"
            } else {
                "is a semaphore: acquire and release it"
            };
            faults.push(Fault::new(place.clone(), format!("{name} {what}")));
        }
        if let Some(group) = &found.each {
            if !chosen.contains(group.as_str()) {
                faults.push(Fault::new(
                    place,
                    format!("{name} is one of each of {group}: choose a member before"),
                ));
            }
        }
    }

    fn check_streams(&self, faults: &mut Vec<Fault>) {
        unique(
            "streams",
            self.streams.iter().map(|s| s.name.as_str()),
            faults,
        );
        let mut users = 0;
        for (i, stream) in self.streams.iter().enumerate() {
            let place = format!("streams[{i}]");
            match &stream.load {
                Load::Closed { users: own, think } => {
                    users += u64::from(*own);
                    think.check(&format!("{place}.load.think"), faults);
                }
                Load::Open { rate_per_s, .. } => {
                    if !(rate_per_s.is_finite() && *rate_per_s > 0.0) {
                        faults.push(Fault::new(
                            format!("{place}.load.rate_per_s"),
                            "above 0 is wanted",
                        ));
                    }
                }
            }
            let weights: f64 = stream.scenarios.iter().map(|s| s.weight).sum();
            let are_good = stream.scenarios.iter().all(|s| s.weight >= 0.0);
            if !(are_good && weights.is_finite() && weights > 0.0) {
                faults.push(Fault::new(
                    format!("{place}.scenarios"),
                    "weights of at least 0, one above it, are wanted",
                ));
            }
            for (j, scenario) in stream.scenarios.iter().enumerate() {
                let place = format!("{place}.scenarios[{j}]");
                if scenario.steps.is_empty() {
                    faults.push(Fault::new(format!("{place}.steps"), "a step is wanted"));
                }
                for (k, visit) in scenario.steps.iter().enumerate() {
                    let place = format!("{place}.steps[{k}]");
                    visit.think.check(&format!("{place}.think"), faults);
                    if !self.classes.iter().any(|c| c.name == visit.class) {
                        faults.push(Fault::new(
                            format!("{place}.class"),
                            format!("no class {}", visit.class),
                        ));
                    }
                }
            }
        }
        if users > MOST_USERS {
            faults.push(Fault::new("streams", format!("at most {MOST_USERS} users")));
        }
    }

    pub(crate) fn group(&self, name: &str) -> Option<usize> {
        self.groups.iter().position(|group| group.name == name)
    }
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>, faults: &mut Vec<Fault>) {
    let mut seen = HashSet::new();
    let mut count = 0;
    for name in names {
        count += 1;
        if !seen.insert(name) {
            faults.push(Fault::new(what, format!("{name} stands twice")));
        }
    }
    if count > MOST_PARTS {
        faults.push(Fault::new(what, "at most 1000"));
    }
    if count == 0 && what != "groups" && what != "stations" {
        faults.push(Fault::new(what, "at least one is wanted"));
    }
}
