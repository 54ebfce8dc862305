//! Silence at every stage, slow answers, and answers cut into pieces.

use super::{either, fresh, good, keep, kept, ok, send, Act, Behaviour, Moment, BODY, MS};

const OK: &[&str] = &["ok"];
const TIMEOUT: &[&str] = &["timeout"];

const fn silent(
    name: &'static str,
    what: &'static str,
    script: fn(Moment) -> Vec<Act>,
) -> Behaviour {
    fresh(name, "9.5", TIMEOUT, what, script)
}

/// `text` in two pieces, 1 ms apart.
fn split(text: &str, at: usize) -> Vec<Act> {
    vec![
        send(text[..at].to_owned()),
        Act::Wait(MS),
        send(text[at..].to_owned()),
        Act::Answered,
        Act::Next,
    ]
}

/// `text` in single bytes, `gap_ns` apart.
fn trickle(text: &str, gap_ns: u64) -> Vec<Act> {
    let mut acts = Vec::with_capacity(2 * text.len() + 2);
    for at in 0..text.len() {
        if at > 0 {
            acts.push(Act::Wait(gap_ns));
        }
        acts.push(send(text[at..=at].to_owned()));
    }
    acts.extend([Act::Answered, Act::Next]);
    acts
}

fn chunked() -> String {
    ok(
        "Transfer-Encoding: chunked\r\n",
        "1a;x=y\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nX-Sum: 1\r\n\r\n",
    )
}

/// A position inside `text` that moves on by one with every request.
fn moving(moment: Moment, text: &str) -> usize {
    1 + moment.nth as usize % (text.len() - 1)
}

pub(super) const ALL: &[Behaviour] = &[
    silent("stall", "no answer at all", |_| vec![Act::Stall]),
    silent("stall_in_status_line", "HTTP/1.1 2, then silence", |_| {
        vec![send("HTTP/1.1 2"), Act::Stall]
    }),
    silent("stall_in_head", "half of the head, then silence", |_| {
        vec![send("HTTP/1.1 200 OK\r\nContent-Len"), Act::Stall]
    }),
    silent("stall_before_body", "the head, then silence", |_| {
        vec![send(ok("Content-Length: 26\r\n", "")), Act::Stall]
    }),
    silent("stall_in_body", "half of the body, then silence", |_| {
        vec![
            send(ok("Content-Length: 26\r\n", "abcdefghijklm")),
            Act::Stall,
        ]
    }),
    silent("stall_in_chunk", "half of a chunk, then silence", |_| {
        vec![
            send(ok("Transfer-Encoding: chunked\r\n", "1a\r\nabc")),
            Act::Stall,
        ]
    }),
    silent(
        "stall_before_last_chunk",
        "all but the last chunk, then silence",
        |_| {
            vec![
                send(ok("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n")),
                Act::Stall,
            ]
        },
    ),
    silent("stall_no_length", "no length, a body, no end", |_| {
        vec![send(ok("", BODY)), Act::Stall]
    }),
    either(
        "stall_second",
        "9.5",
        &["ok", "timeout"],
        "one answer a connection, then silence",
        |moment| {
            if moment.on_connection == 0 {
                keep(good())
            } else {
                vec![Act::Stall]
            }
        },
    ),
    kept(
        "slow_head",
        "2.2",
        OK,
        "the head in three pieces, 10 ms apart",
        |_| {
            let mut acts = Vec::new();
            for piece in [
                "HTTP/1.1 20",
                "0 OK\r\nContent-Le",
                "ngth: 26\r\n\r\nabcdefghijklmnopqrstuvwxyz",
            ] {
                acts.extend([Act::Wait(10 * MS), send(piece)]);
            }
            acts.extend([Act::Answered, Act::Next]);
            acts
        },
    ),
    kept(
        "slow_body",
        "6.2",
        OK,
        "the body in two pieces, 30 ms apart",
        |_| {
            let head = ok("Content-Length: 26\r\n", "abcdefghijklm");
            vec![
                send(head),
                Act::Wait(30 * MS),
                send("nopqrstuvwxyz"),
                Act::Answered,
                Act::Next,
            ]
        },
    ),
    kept(
        "single_bytes",
        "2.2",
        OK,
        "one byte at a time, 0.3 ms apart",
        |_| trickle(&good(), MS * 3 / 10),
    ),
    kept(
        "single_bytes_chunked",
        "2.2",
        OK,
        "a chunked answer one byte at a time",
        |_| trickle(&chunked(), MS / 5),
    ),
    kept(
        "split_anywhere",
        "2.2",
        OK,
        "two pieces, cut one byte later with every request",
        |moment| {
            let text = good();
            split(&text, moving(moment, &text))
        },
    ),
    kept(
        "split_anywhere_chunked",
        "2.2",
        OK,
        "a chunked answer in two pieces, cut one byte later each time",
        |moment| {
            let text = chunked();
            split(&text, moving(moment, &text))
        },
    ),
    kept("body_1m", "6.2", OK, "1 MiB", |_| {
        keep(ok("Content-Length: 1048576\r\n", &"x".repeat(1 << 20)))
    }),
    fresh(
        "body_endless",
        "7.1",
        &["timeout", "limit"],
        "chunks without end",
        |_| {
            let chunk = format!("1000\r\n{}\r\n", "x".repeat(4096));
            vec![
                send(ok("Transfer-Encoding: chunked\r\n", "")),
                Act::Endless(chunk.into_bytes().into()),
            ]
        },
    ),
    fresh(
        "body_endless_no_length",
        "6.3",
        &["timeout", "limit"],
        "no length and no end",
        |_| {
            vec![
                send(ok("", "")),
                Act::Endless("x".repeat(4096).into_bytes().into()),
            ]
        },
    ),
];
