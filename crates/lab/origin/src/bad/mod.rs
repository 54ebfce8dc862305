//! The catalogue of misbehaviour: each entry says what the server does and what a correct client makes of it.
//!
//! A behaviour is a script of acts that is run for each request. Outcomes are named as in
//! docs/reference/record.md. Where the RFC leaves a client a choice, all of its choices are listed, the
//! better one first.

mod chunked;
mod close;
mod early;
mod framing;
mod head;
mod interim;
mod length;
mod stall;
mod unasked;

use std::borrow::Cow;

use serde::Serialize;

/// One act of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Sends bytes.
    Send(Cow<'static, [u8]>),
    /// Does nothing for so many ns.
    Wait(u64),
    /// The request counts as answered. Stands behind the bytes of the answer, or before them where others follow
    /// in the same piece: a client may go away as soon as it has its answer, and what is left is never sent.
    Answered,
    /// Goes on to the next request of the connection.
    Next,
    /// Ends our side and reads on until the client ends its own.
    Finish,
    /// Ends our side without having said so: a request that comes may have crossed the end and is no violation.
    HangUp,
    /// Keeps both sides open and expects no further request: what comes is a violation.
    Linger,
    /// Closes at once.
    Close,
    /// Resets.
    Reset,
    /// Says nothing until the client goes away.
    Stall,
    /// Sends these bytes again and again until the client goes away.
    Endless(Cow<'static, [u8]>),
}

/// Position of a request among earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Earlier requests for the same behaviour.
    pub nth: u64,
    /// Earlier requests on the same connection.
    pub on_connection: u64,
}

/// Use of the connection by a correct client after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    /// Keeps it.
    Kept,
    /// Needs a new one for each request.
    Fresh,
    /// May do either.
    Either,
}

/// One behaviour.
#[derive(Clone, Debug, Serialize)]
pub struct Behaviour {
    /// Its name in the path.
    pub name: &'static str,
    /// Behaviour of the server, in a few words.
    pub what: &'static str,
    /// The section of RFC 9112 (or another, when said) that it is about.
    pub rfc: &'static str,
    /// Outcomes that a correct client may record, the best first.
    pub expected: &'static [&'static str],
    /// Use of the connection by a correct client after the answer.
    pub reuse: Reuse,
    /// The method to ask with.
    pub method: &'static str,
    /// Pause between requests, for behaviours that act on an idle connection.
    pub pause_ms: u64,
    /// Bytes of body to ask with.
    pub body_bytes: usize,
    /// The script begins when the head of the request is there, not when its body is.
    #[serde(skip)]
    pub(crate) is_early: bool,
    #[serde(skip)]
    script: Script,
}

impl Behaviour {
    /// Answers a POST of so many bytes before they have come.
    const fn early(mut self, body_bytes: usize) -> Behaviour {
        self.method = "POST";
        self.body_bytes = body_bytes;
        self.is_early = true;
        self
    }

    const fn method(mut self, method: &'static str) -> Behaviour {
        self.method = method;
        self
    }

    const fn pause_ms(mut self, pause_ms: u64) -> Behaviour {
        self.pause_ms = pause_ms;
        self
    }

    /// The acts for one request.
    pub fn script(&self, moment: Moment) -> Vec<Act> {
        (self.script)(moment)
    }
}

/// The acts for one request.
type Script = fn(Moment) -> Vec<Act>;

const fn behaviour(
    reuse: Reuse,
    name: &'static str,
    rfc: &'static str,
    expected: &'static [&'static str],
    what: &'static str,
    script: Script,
) -> Behaviour {
    Behaviour {
        name,
        what,
        rfc,
        expected,
        reuse,
        method: "GET",
        pause_ms: 0,
        body_bytes: 0,
        is_early: false,
        script,
    }
}

/// A behaviour after which a client may keep the connection or not.
const fn either(
    name: &'static str,
    rfc: &'static str,
    expected: &'static [&'static str],
    what: &'static str,
    script: Script,
) -> Behaviour {
    behaviour(Reuse::Either, name, rfc, expected, what, script)
}

/// A behaviour after which a client keeps the connection.
const fn kept(
    name: &'static str,
    rfc: &'static str,
    expected: &'static [&'static str],
    what: &'static str,
    script: Script,
) -> Behaviour {
    behaviour(Reuse::Kept, name, rfc, expected, what, script)
}

/// A behaviour after which a client needs a new connection.
const fn fresh(
    name: &'static str,
    rfc: &'static str,
    expected: &'static [&'static str],
    what: &'static str,
    script: Script,
) -> Behaviour {
    behaviour(Reuse::Fresh, name, rfc, expected, what, script)
}

/// All behaviours, in the order of the catalogue.
pub fn all() -> impl Iterator<Item = &'static Behaviour> {
    [
        length::ALL,
        framing::ALL,
        chunked::ALL,
        close::ALL,
        interim::ALL,
        stall::ALL,
        early::ALL,
        head::ALL,
        unasked::ALL,
    ]
    .into_iter()
    .flatten()
}

/// The behaviour of that name.
pub fn find(name: &str) -> Option<&'static Behaviour> {
    all().find(|behaviour| behaviour.name == name)
}

/// The catalogue as JSON.
pub fn list() -> String {
    let all: Vec<&Behaviour> = all().collect();
    serde_json::to_string(&all).unwrap_or_default()
}

/// The body that answers carry when nothing else is said: 26 bytes.
const BODY: &str = "abcdefghijklmnopqrstuvwxyz";

const MS: u64 = 1_000_000;

fn send(text: impl Into<Cow<'static, str>>) -> Act {
    Act::Send(match text.into() {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    })
}

/// A 200 with these header lines (each with its CRLF) and then `rest`.
fn ok(fields: &str, rest: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n{rest}")
}

/// A correct answer.
fn good() -> String {
    ok("Content-Length: 26\r\n", BODY)
}

/// Sends a whole answer and goes on.
fn keep(text: impl Into<Cow<'static, str>>) -> Vec<Act> {
    vec![send(text), Act::Answered, Act::Next]
}

/// Sends a whole answer and ends the connection.
fn finish(text: impl Into<Cow<'static, str>>) -> Vec<Act> {
    vec![send(text), Act::Answered, Act::Finish]
}

/// Sends a whole answer and ends the connection, which the answer does not say.
fn hang_up(text: impl Into<Cow<'static, str>>) -> Vec<Act> {
    vec![send(text), Act::Answered, Act::HangUp]
}

/// Sends a whole answer with bytes behind it that do not belong to it; nothing else may be asked then.
fn spoil(text: impl Into<Cow<'static, str>>) -> Vec<Act> {
    vec![Act::Answered, send(text), Act::Linger]
}

/// Sends something that is not a whole answer and ends the connection.
fn cut(text: impl Into<Cow<'static, str>>) -> Vec<Act> {
    vec![send(text), Act::Finish]
}

/// Sends something that cannot be read as an answer and leaves it to the client to end the connection.
fn broken(text: impl Into<Cow<'static, str>>) -> Vec<Act> {
    vec![send(text), Act::Stall]
}

/// Sends something that is not a whole answer and resets a moment later.
fn reset(text: impl Into<Cow<'static, str>>) -> Vec<Act> {
    vec![send(text), Act::Wait(2 * MS), Act::Reset]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const OUTCOMES: [&str; 12] = [
        "ok",
        "unexpected_status",
        "check_failed",
        "refused",
        "connect_failed",
        "reset",
        "closed_before_response",
        "closed_on_reuse",
        "truncated",
        "malformed",
        "timeout",
        "limit",
    ];

    #[test]
    fn names_are_unique_and_outcomes_are_those_of_the_record() {
        let mut names = HashSet::new();
        for behaviour in all() {
            assert!(names.insert(behaviour.name), "twice: {}", behaviour.name);
            assert!(!behaviour.expected.is_empty(), "{}", behaviour.name);
            for outcome in behaviour.expected {
                assert!(OUTCOMES.contains(outcome), "{}: {outcome}", behaviour.name);
            }
        }
        assert!(names.len() >= 60, "{}", names.len());
    }

    #[test]
    fn every_script_ends_in_an_act_that_decides_what_becomes_of_the_connection() {
        for behaviour in all() {
            for nth in 0..5 {
                let script = behaviour.script(Moment {
                    nth,
                    on_connection: nth,
                });
                let last = script.last().expect(behaviour.name);
                let decides = !matches!(last, Act::Send(_) | Act::Wait(_) | Act::Answered);
                assert!(decides, "{}: {last:?}", behaviour.name);
            }
        }
    }

    #[test]
    fn what_may_come_out_as_an_answer_is_one_and_nothing_else_is() {
        for behaviour in all() {
            let moment = Moment {
                nth: 0,
                on_connection: 0,
            };
            let answers = behaviour.script(moment).contains(&Act::Answered);
            let judged = ["ok", "unexpected_status"]
                .iter()
                .any(|outcome| behaviour.expected.contains(outcome));
            assert_eq!(answers, judged, "{}", behaviour.name);
        }
    }
}
