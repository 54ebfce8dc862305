//! Answers to a request whose body is still on its way, as servers give them that refuse or do not care.

use super::{either, finish, fresh, keep, send, Act, Behaviour, MS};

const REFUSAL: &str =
    "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
/// More than a socket takes in one piece.
const LARGE: usize = 2 << 20;

pub(super) const ALL: &[Behaviour] = &[
    fresh(
        "early_413",
        "9.3",
        &["unexpected_status"],
        "413 at once; the body is read on until the end",
        |_| finish(REFUSAL),
    )
    .early(100_000),
    fresh(
        "early_413_large",
        "9.3",
        &["unexpected_status"],
        "413 at once to a body of 2 MiB",
        |_| finish(REFUSAL),
    )
    .early(LARGE),
    fresh(
        "early_413_closed",
        "9.6",
        &["unexpected_status", "reset"],
        "413 and both sides closed while the body is on its way",
        |_| vec![send(REFUSAL), Act::Answered, Act::Wait(2 * MS), Act::Close],
    )
    .early(LARGE),
    either(
        "early_ok",
        "9.3",
        &["ok"],
        "200 at once; the body is read, and the next request",
        |_| keep(super::good()),
    )
    .early(100_000),
    fresh(
        "early_reset",
        "9.5",
        &["reset"],
        "a reset while the body is on its way",
        |_| vec![Act::Reset],
    )
    .early(LARGE),
];
