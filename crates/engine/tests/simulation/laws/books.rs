//! Rows of one thread, against the books of its world: its servers, its links and its clock.

use std::collections::{HashMap, HashSet};

use loadlens_base::Outcome;
use loadlens_record::rows::{SampleRow, FIRST_ON_CONNECTION, NO_CONNECTION};

use crate::history::{History, Told};
use crate::world::{Exchange, Link, Listens};
use crate::MS;

use super::{ended_at, is, is_answer};

/// Possible outcomes of a request without an answer where servers are good.
const OWN_OR_BAD_LUCK: [Outcome; 6] = [
    Outcome::Timeout,
    Outcome::ConnectTimeout,
    Outcome::Limit, // a value that is not a token was extracted
    Outcome::Dropped,
    Outcome::Waiting,
    Outcome::InFlight,
];

/// The row of a connection's first request says so, and no other.
pub fn check_first_on_connection(told: &Told) {
    let mut rows: Vec<&SampleRow> = told.rows.iter().collect();
    rows.sort_by_key(|row| row.sent_ns);
    let mut seen = HashSet::new();
    for row in rows {
        let is_first = row.connection != NO_CONNECTION && seen.insert((row.stream, row.connection));
        assert_eq!(row.flags & FIRST_ON_CONNECTION != 0, is_first, "{row:?}");
    }
}

/// Against the books of the servers.
pub fn check_books(told: &Told) {
    let world = &told.world;
    let issued = told.rows.iter().filter(|row| row.sent_ns >= 0).count() as u64;
    let answered = told.rows.iter().filter(|row| is_answer(row)).count() as u64;
    let given = world.answers + world.late_poison;
    assert!(answered <= given, "{answered} counted, {given} given");
    assert!(
        world.requests <= issued,
        "{} arrived, {issued} issued",
        world.requests
    );
    if world.nature.mischief > 0 {
        return;
    }
    let all_listen = world.listens.values().flatten();
    let refuses = all_listen.into_iter().any(|one| *one != Listens::Server);
    for row in told.rows.iter().filter(|row| !is_answer(row)) {
        let is_luck = OWN_OR_BAD_LUCK.iter().any(|luck| is(row, *luck));
        let is_refused = refuses && is(row, Outcome::Refused);
        assert!(is_luck || is_refused, "good servers, and {row:?}");
    }
    let unread = told
        .rows
        .iter()
        .filter(|row| row.sent_ns >= 0 && !is_answer(row));
    assert!(
        issued - world.requests <= unread.count() as u64,
        "requests were lost"
    );
}

/// Every connection has one row, and carried what it says.
pub fn check_connections(told: &Told) {
    let opened: u32 = told.world.opened.values().sum();
    assert_eq!(
        told.connections.len(),
        opened as usize,
        "a row for each connection"
    );
    let mut answered: HashMap<(u8, u32), u32> = HashMap::new();
    for row in told.rows.iter().filter(|row| is_answer(row)) {
        *answered.entry((row.stream, row.connection)).or_default() += 1;
    }
    let bytes: u64 = told.connections.iter().map(|row| row.bytes_in).sum();
    assert!(bytes <= told.world.bytes_in);
    for row in &told.connections {
        let key = (row.stream, row.connection);
        assert_eq!(row.requests, answered.remove(&key).unwrap_or(0), "{row:?}");
        assert!(row.established_ns == -1 || row.established_ns >= row.opened_ns);
        assert!((row.closed_ns == -1) == (row.closed_by == 0), "{row:?}");
        assert!(row.closed_ns == -1 || row.closed_ns >= row.opened_ns.max(row.established_ns));
    }
    assert!(
        answered.is_empty(),
        "answers without a connection: {answered:?}"
    );
}

/// Times of every row are in order and within the timeout.
pub fn check_times(history: &History, told: &Told) {
    for row in &told.rows {
        let (due, sent, first, done) = (row.due_ns, row.sent_ns, row.first_ns, row.done_ns);
        assert!(sent == -1 || sent >= due, "issued before it was due");
        assert!(
            first == -1 || first >= sent,
            "answered before it was issued"
        );
        assert!(
            done == -1 || done >= sent.max(first),
            "ended before it was issued"
        );
        if sent == -1 {
            continue;
        }
        // A turn of the loop may lie between the deadline and its notice, and whatever our thread did not see.
        let last = ended_at(row, told);
        let frozen = told.world.frozen_within(sent as u64, last);
        let timeout = history.plan.streams[row.stream as usize].timeout_ns;
        let most = timeout + 2 * MS + 2 * frozen;
        assert!(
            last - sent as u64 <= most,
            "in flight for {} us",
            (last - sent as u64) / 1000
        );
        let is_early = is(row, Outcome::Timeout) || is(row, Outcome::ConnectTimeout);
        assert!(
            !is_early || last - sent as u64 >= timeout,
            "timed out early: {row:?}"
        );
    }
}

/// Each connection's requests and answers, one by one, against what went over its link.
pub fn check_links(history: &History, told: &Told) {
    let mut rows: HashMap<(u16, u32), Vec<&SampleRow>> = HashMap::new();
    for row in told.rows.iter().filter(|row| row.sent_ns >= 0) {
        let port = history.plan.streams[row.stream as usize].target.port;
        rows.entry((port, row.connection)).or_default().push(row);
    }
    let threads = history.workers.len() as u32;
    let of_worker = history
        .workers
        .iter()
        .position(|one| std::ptr::eq(one, told));
    let of_worker = of_worker.unwrap() as u32;
    for link in told.world.links.iter().filter(|link| !link.is_poisoned) {
        let key = (link.port, of_worker + threads * link.number);
        let mut asked = rows.remove(&key).unwrap_or_default();
        asked.sort_by_key(|row| row.sent_ns);
        check_link(history, told, link, &asked);
    }
}

fn check_link(history: &History, told: &Told, link: &Link, asked: &[&SampleRow]) {
    for exchange in &link.exchanges {
        let during = |row: &&&SampleRow| {
            row.sent_ns as u64 <= exchange.asked_at && exchange.asked_at <= ended_at(row, told)
        };
        let mut of_exchange = asked.iter().filter(during);
        let row = of_exchange.next().expect("every request has a row");
        assert!(of_exchange.next().is_none(), "two at once on a connection");
        check_exchange(history, told, exchange, row);
    }
    let answered = asked.iter().filter(|row| is_answer(row)).count();
    let taken = link.exchanges.iter().filter(|one| one.read_at.is_some());
    assert!(
        answered <= taken.count(),
        "more answers than the servers gave"
    );
}

fn check_exchange(history: &History, told: &Told, exchange: &Exchange, row: &SampleRow) {
    if let Some(read_at) = exchange.read_at {
        // What was taken whole is an answer: now, and not one reading of the clock later.
        let is_judged = is_answer(row) || is(row, Outcome::Limit);
        assert!(is_judged, "{exchange:?} was given, and is {row:?}");
        assert_eq!(row.done_ns as u64, read_at, "{exchange:?} {row:?}");
    } else {
        assert!(
            !is_answer(row),
            "{exchange:?} was not given, and is {row:?}"
        );
    }
    let Some(arrived_at) = exchange.arrived_at else {
        return;
    };
    assert!(
        !is_answer(row) || row.done_ns as u64 >= arrived_at,
        "quicker than the truth"
    );
    // Our own stops are not the service's: what lay in the socket in time is in time.
    let timeout = history.plan.streams[row.stream as usize].timeout_ns;
    let is_in_time = arrived_at <= row.sent_ns as u64 + timeout;
    assert!(
        !(is(row, Outcome::Timeout) && is_in_time),
        "{exchange:?} was in time, and is {row:?}, frozen {:?}",
        told.world.frozen
    );
}
