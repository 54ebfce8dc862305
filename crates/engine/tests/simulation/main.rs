//! Deterministic simulation of the workers of a run: a seed decides the plan, the network, the servers and the scheduler.
//!
//! `world` is what they live in, `plans` what a seed decides, `laws` what holds afterwards.
//! `LOADLENS_SEED=n` replays one history, `LOADLENS_SEEDS=n` runs so many of them, `LOADLENS_FIRST=n` from this one on.

mod ends;
mod groups;
mod history;
mod laws;
#[allow(dead_code)] // only whether a request is valid is asked here
#[path = "../../../http/tests/literal/request.rs"]
mod literal;
mod merged;
mod plans;
mod scripted;
mod shaped;
mod shares;
mod waiting;
mod world;

use std::collections::{BTreeMap, HashSet};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::thread;

use loadlens_base::Outcome;
use loadlens_base::Random;
use serde_json::json;

use history::{History, Setting};
use laws::check;
use plans::simple;
use world::{Listens, Nature, World};

const MS: u64 = 1_000_000;
/// No freeze of a machine is longer.
const LONGEST_FREEZE: u64 = 100 * MS;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Totals over seeds.
#[derive(Default)]
struct Explored {
    /// Number of each outcome.
    outcomes: BTreeMap<u8, u64>,
    failing: Vec<u64>,
}

impl Explored {
    fn add(&mut self, other: Explored) {
        for (outcome, count) in other.outcomes {
            *self.outcomes.entry(outcome).or_default() += count;
        }
        self.failing.extend(other.failing);
    }

    /// Lives and checks one seed.
    fn look_at(&mut self, seed: u64, live: fn(u64) -> History) {
        match catch_unwind(AssertUnwindSafe(|| live(seed))) {
            Ok(history) => {
                for row in history.rows() {
                    *self.outcomes.entry(row.outcome).or_default() += 1;
                }
            }
            Err(_) => self.failing.push(seed),
        }
    }
}

/// Lives and checks so many seeds on every core, or the one that is asked for; says how often each outcome was seen.
fn explore(count: u64, test: &str, live: fn(u64) -> History) -> BTreeMap<u8, u64> {
    let mut explored = Explored::default();
    if let Some(seed) = number("LOADLENS_SEED") {
        explored.look_at(seed, live);
    } else {
        let first = number("LOADLENS_FIRST").unwrap_or(0);
        let end = first + number("LOADLENS_SEEDS").unwrap_or(count);
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let part = |core: u64| {
            let mut explored = Explored::default();
            let mut seeds = (first + core..end).step_by(cores as usize);
            while let Some(seed) = seeds.next().filter(|_| explored.failing.len() < 10) {
                explored.look_at(seed, live);
            }
            explored
        };
        thread::scope(|scope| {
            let parts: Vec<_> = (0..cores)
                .map(|core| scope.spawn(move || part(core)))
                .collect();
            for part in parts {
                explored.add(part.join().expect("it catches what a seed does"));
            }
        });
    }
    explored.failing.sort_unstable();
    if let Some(seed) = explored.failing.first() {
        panic!(
            "seeds {:?} fail: LOADLENS_SEED={seed} cargo test --release -p loadlens-engine --test simulation {test}",
            explored.failing
        );
    }
    explored.outcomes
}

#[test]
fn every_history_obeys_the_law_of_counting_and_ends_in_time() {
    let outcomes = explore(2_000, "every_history", |seed| {
        let history = Setting::drawn(seed).live();
        check(&history);
        history
    });

    if number("LOADLENS_SEED").is_none() {
        // The histories are worth something only if nearly everything happens in them.
        let missing: Vec<&str> = Outcome::ALL
            .iter()
            .filter(|outcome| !outcomes.contains_key(&outcome.code()))
            .map(|outcome| outcome.name())
            .collect();
        assert_eq!(missing, ["resolve", "tls", "own_memory", "tls_timeout"]);
    }
}

/// A thread at the planned end while another was still to end its load before it, one that was frozen over the end, and
/// one that woke behind it for a time-out.
const ENDED_TWICE: [u64; 7] = [2975, 13_073, 21_568, 24_769, 25_151, 26_670, 73_357];

#[test]
fn all_threads_end_at_one_moment_in_the_histories_in_which_they_once_did_not() {
    for seed in ENDED_TWICE {
        check(&Setting::drawn(seed).live());
    }
}

#[test]
fn one_seed_is_one_history() {
    for seed in 0..100 {
        let again = || Setting::drawn(seed).live().digest();
        assert_eq!(again(), again(), "seed {seed}");
    }
}

#[test]
fn once_faults_stop_every_user_is_served_again() {
    const GOOD_FROM: u64 = 1_000 * MS;
    explore(60, "once_faults_stop", |seed| {
        let random = &mut Random::derived(seed, &[5]);
        let mut draws = plans::Draws(random);
        let users = draws.of(&[1, 4, 10]);
        let think = json!({"kind": "fixed", "ns": 20 * MS});
        let workload = match draws.of(&[true, false]) {
            true => json!({"kind": "closed", "users": users, "think": think}),
            false => json!({
                "kind": "open", "rate_per_s": 100.0, "arrivals": "constant", "max_in_flight": 8, "overflow": "drop",
            }),
        };
        let mut plan = simple(workload, 4_000 * MS, 40 * MS);
        plan["drain_ns"] = json!(50 * MS);
        plan["streams"][0]["connection"] = json!({
            "reuse": {"kind": draws.of(&["keep", "new"])}, "pool": draws.of(&[None, Some(4)]),
        });
        let nature = Nature {
            mischief: draws.of(&[300, 1000]),
            short_sends: 50,
            splits: 300,
            freezes: draws.of(&[0, 100]),
            longest_freeze: LONGEST_FREEZE,
            until: GOOD_FROM,
            ..Nature::GOOD
        };
        let addresses = plans::draw_addresses(random);
        let history = Setting::of(plan, plans::world(seed, 0, nature, &addresses)).live();

        check(&history);
        // After the last fault a user may still pause for a second, and meet a time-out.
        let recovered = (GOOD_FROM + 1_400 * MS) as i64;
        let later: Vec<_> = history
            .rows()
            .filter(|row| row.due_ns >= recovered)
            .collect();
        let bad: Vec<_> = later
            .iter()
            .filter(|row| row.outcome != Outcome::Ok.code() && row.due_ns < 3_990 * MS as i64)
            .collect();
        assert!(bad.is_empty(), "{bad:?}");
        assert!(
            later.len() >= 50,
            "{} requests after the faults",
            later.len()
        );
        history
    });
}

#[test]
fn a_kept_connection_costs_hardly_more_than_a_send_and_a_receive() {
    let plan = simple(json!({"kind": "closed", "users": 100}), 200 * MS, 1000 * MS);
    let nature = Nature {
        longest: 300_000, // a service that is faster than the generator
        is_plain: true,
        ..Nature::GOOD
    };

    let history = Setting::of(plan, World::new(Random::new(1), nature)).live();

    let world = &history.workers[0].world;
    let each = world.calls as f64 / world.answers as f64;
    assert!(each <= 2.05, "{each} calls of the system for a request");
}

#[test]
fn a_stop_of_the_process_is_told_from_a_slow_service() {
    let think = json!({"kind": "fixed", "ns": 100 * MS});
    let workload = json!({"kind": "closed", "users": 2, "think": think});
    let stalled = |longest: u64, stop_at: Option<u64>| {
        let nature = Nature {
            longest,
            ..Nature::GOOD
        };
        let mut world = World::new(Random::new(1), nature);
        world.stop_at = stop_at;
        let plan = simple(workload.clone(), 10_000 * MS, 60_000 * MS);
        let history = Setting::of(plan, world).live();
        history.collected.threads[0].stalled_ns / MS
    };

    let (slow, stopped) = (stalled(3_000 * MS, None), stalled(3 * MS, Some(2_000 * MS)));

    assert_eq!(slow, 0);
    assert!((4_950..=5_000).contains(&stopped), "{stopped}");
}

/// Outcomes of 30 requests of three users, and connections begun, where so many addresses have such listeners.
fn against(addresses: &[Listens]) -> (usize, HashSet<u8>, u32) {
    let workload = json!({"kind": "closed", "users": 3, "requests": 30});
    let plan = simple(workload, 10_000 * MS, 100 * MS);
    let history = Setting::of(plan, plans::world(1, 0, Nature::GOOD, addresses)).live();
    check(&history);
    let outcomes = history.rows().map(|row| row.outcome).collect();
    let opened = history.workers[0].world.opened[&80];
    (history.rows().count(), outcomes, opened)
}

#[test]
fn the_next_address_of_a_name_is_tried_until_one_connection_has_stood() {
    let (requests, outcomes, opened) = against(&[Listens::Nobody, Listens::Server]);

    assert_eq!(
        (requests, outcomes),
        (30, HashSet::from([Outcome::Ok.code()]))
    );
    assert_eq!(opened, 6); // all three began before they knew
}

#[test]
fn an_address_that_never_answers_is_left_after_its_timeout() {
    let (requests, outcomes, opened) = against(&[Listens::BlackHole, Listens::Server]);

    let expected = HashSet::from([Outcome::Ok.code(), Outcome::ConnectTimeout.code()]);
    assert_eq!((requests, outcomes), (30, expected));
    assert_eq!(opened, 6);
}
