//! From an event on a connection to a judged answer: connected, bytes, the end, a break.

use loadlens_base::Outcome;
use loadlens_plan::program::{Answer, Judgement};
use loadlens_transport::{Handshake, Io, Net, NetError, Ready};

use crate::clock::Clock;
use crate::script::Script;
use crate::user::Phase;

use super::connections::{State, Unsent};
use super::exchange::{ClosedBy, End};
use super::reply::{Fed, Place};
use super::Worker;

/// Receives of one connection before the others have their turn.
const RECEIVES_AT_ONCE: u32 = 16;
/// Of so many answers on a connection one may be quoted; others only where they cost no copy.
const QUOTED_ONE_IN: u32 = 32;

impl<C: Clock, N: Net, S: Script> Worker<'_, C, N, S> {
    /// Does what one event asks for; returns the time.
    #[inline]
    pub(super) fn serve(&mut self, mut ready: Ready) -> u64 {
        let Some(index) = self.connections.find(ready.token) else {
            return self.now();
        };
        let connection = self.connections.get(index);
        if connection.state == State::Connecting {
            if !self.finish_connecting(index, &mut ready) {
                return self.now();
            }
        } else if ready.writable && connection.unsent != Unsent::Nothing {
            self.resume_sending(index);
        }
        if ready.readable && self.connections.find(ready.token).is_some() {
            return self.receive(index, ready.ended);
        }
        self.now()
    }

    /// Goes on with connecting; says whether the connection stands.
    fn finish_connecting(&mut self, index: u32, ready: &mut Ready) -> bool {
        let connection = self.connections.get(index);
        let who = connection.who();
        let tried = usize::from(connection.address);
        let Some(handle) = connection.handle else {
            return false;
        };
        let Some(established) = self.net.establish(handle, ready) else {
            return false;
        };
        let now = self.now();
        match established {
            Ok(()) => {
                self.establish(index, now);
                self.transmit(index, now);
                true
            }
            Err(error) => {
                self.end_connection(index, ClosedBy::Error, error.outcome, now);
                self.try_next_address(who, tried, error, now);
                false
            }
        }
    }

    /// A connection stands.
    pub(super) fn establish(&mut self, index: u32, now: u64) {
        let connection = self.connections.get_mut(index);
        connection.established = now.max(1);
        let shard = &mut self.shards[connection.shard as usize];
        let address = usize::from(connection.address);
        shard.destination.established(address, now);
        shard.users[connection.user as usize].phase = Phase::InFlight;
        let mut took = now - connection.opened;
        let handshake = connection.handle.map(|handle| self.net.handshake(handle));
        if let Some(Handshake::Done { took_ns, resumed }) = handshake {
            took = took.saturating_sub(took_ns);
            self.recorder.secured(shard.stream, took_ns, resumed);
        }
        self.recorder.established(shard.stream, took);
    }

    /// Receives what a connection has; returns the time of the last byte.
    #[inline]
    fn receive(&mut self, index: u32, has_ended: bool) -> u64 {
        let token = self.connections.token(index);
        for _ in 0..RECEIVES_AT_ONCE {
            let Some(handle) = self.connections.get(index).handle else {
                return self.now();
            };
            match self.net.receive(handle, &mut self.buffer) {
                Io::Bytes(count) => {
                    let now = self.now();
                    let goes_on = has_ended || self.net.has_more(count, self.buffer.len());
                    if !self.take_bytes(index, count, goes_on, now) || !goes_on {
                        return now;
                    }
                }
                Io::End => {
                    let now = self.now();
                    self.take_end(index, now);
                    return now;
                }
                Io::Cut => {
                    let now = self.now();
                    self.take_cut(index, now);
                    return now;
                }
                Io::Later => return self.now(),
                Io::Broken(error) => {
                    let now = self.now();
                    self.break_connection(index, error, now);
                    return now;
                }
            }
        }
        // Edge-triggered: no further event reports bytes that are already there.
        self.more.push(token);
        self.now()
    }

    /// Takes `count` bytes of the receive buffer; says whether the answer goes on.
    #[inline]
    fn take_bytes(&mut self, index: u32, count: usize, look_again: bool, now: u64) -> bool {
        let connection = self.connections.get_mut(index);
        connection.bytes_in += count as u64;
        let shard = &mut self.shards[connection.shard as usize];
        self.recorder.bytes_in(shard.stream, count);
        if connection.state != State::Busy {
            self.recorder.unsolicited(shard.stream);
            self.close(index, ClosedBy::Client, Outcome::Ok, now);
            return false;
        }
        let user = &mut shard.users[connection.user as usize];
        if user.first == 0 {
            user.first = now.max(1);
        }
        let need = shard.program.steps[user.step as usize].need;
        let remembered = if S::IS_THERE && connection.framing.is_head() {
            shard.program.steps.len()
        } else {
            user.step as usize
        };
        let head = &mut shard.known[remembered];
        let input = &self.buffer[..count];
        connection.reply.is_quoted = connection.answered % QUOTED_ONE_IN == 0;
        match connection.reply.feed(input, need, head, &mut self.store) {
            Fed::More => true,
            Fed::Whole { consumed, place } => {
                let excess = consumed < count;
                self.finish_answer(index, place, excess, look_again, None, now);
                false
            }
            Fed::Broken(violation) => {
                let end = End::failure(violation.outcome(), violation.what(), 0);
                self.fail(index, end, ClosedBy::Client, now);
                false
            }
        }
    }

    /// Judges a whole answer, decides what becomes of the connection and lets the user go on.
    #[inline]
    fn finish_answer(
        &mut self,
        index: u32,
        place: Place,
        excess: bool,
        look_again: bool,
        closed: Option<ClosedBy>,
        now: u64,
    ) {
        let connection = self.connections.get_mut(index);
        let who = connection.who();
        let shard = &mut self.shards[who.shard as usize];
        let step = &shard.program.steps[shard.users[who.user as usize].step as usize];
        let Some(head) = connection.reply.head().copied() else {
            return;
        };
        let (head_bytes, body) = match place {
            Place::Input { head, body, end } => (&self.buffer[head..body], &self.buffer[body..end]),
            Place::Store { buffer, head_len } => self.store.bytes(buffer).split_at(head_len),
        };
        if let Some(jar) = shard.jars.get_mut(who.user as usize) {
            jar.take(head_bytes, &shard.site, self.settings.t0_unix_ns + now);
        }
        let mut nothing = Default::default();
        let values = shard
            .values
            .get_mut(who.user as usize)
            .unwrap_or(&mut nothing);
        let user = &shard.users[who.user as usize];
        let answer = Answer {
            status: head.status,
            head: head_bytes,
            body,
            body_bytes: connection.reply.body_bytes,
            response_ns: now - user.due,
            at: now,
            user: user.number,
        };
        let judgement = step.judge(&answer, values, &mut shard.judging);
        let end = End {
            outcome: judgement.outcome(),
            ends_iteration: judgement != Judgement::Ok && step.ends_iteration(judgement),
            failed_connect: false,
            why: "an extracted value is over its bound",
            os_error: 0,
        };
        if judgement == Judgement::Ok {
            let note = (shard.stream, user.step, head.status, now);
            self.recorder.note_usual(note, body, answer.body_bytes);
        } else {
            let (stream, step) = (shard.stream, user.step);
            let parts = (head_bytes, body);
            self.recorder
                .note_answer(stream, step, head.status, now, parts);
        }
        connection.answered += u32::from(end.outcome.is_answered());
        if S::IS_THERE && self.script.reads_answers() && !self.is_closing {
            self.script.answer(now, head.status, head_bytes, body);
        }
        self.record_end(who, Some(index), head.status, end, now);
        if S::IS_THERE {
            self.heed_script(who.shard, now);
        }
        match closed.or_else(|| self.reason_to_close(index, head.keep_alive, excess, look_again)) {
            None => self.release(index, now),
            Some(side) => self.close(index, side, Outcome::Ok, now),
        }
        self.go_on(who, end, now);
    }

    /// Side that ends the connection after an answer; none: it is used again.
    #[inline]
    fn reason_to_close(
        &mut self,
        index: u32,
        keep_alive: bool,
        excess: bool,
        look_again: bool,
    ) -> Option<ClosedBy> {
        let connection = self.connections.get(index);
        let shard = &self.shards[connection.shard as usize];
        if excess {
            self.recorder.unsolicited(shard.stream);
            return Some(ClosedBy::Client);
        }
        if connection.issued >= shard.pool.requests_per_connection
            || connection.unsent != Unsent::Nothing
        {
            return Some(ClosedBy::Client);
        }
        if S::IS_THERE && connection.framing.closes() {
            return Some(ClosedBy::Client);
        }
        if !keep_alive {
            return Some(ClosedBy::Server);
        }
        if !look_again {
            return None;
        }
        match self.net.receive(connection.handle?, &mut self.buffer) {
            Io::Later => None,
            Io::End | Io::Cut => Some(ClosedBy::Server),
            Io::Broken(_) => Some(ClosedBy::Error),
            Io::Bytes(count) => {
                let stream = shard.stream;
                self.recorder.bytes_in(stream, count);
                self.recorder.unsolicited(stream);
                self.connections.get_mut(index).bytes_in += count as u64;
                Some(ClosedBy::Client)
            }
        }
    }

    /// The other side has ended its stream.
    fn take_end(&mut self, index: u32, now: u64) {
        let connection = self.connections.get(index);
        if connection.state != State::Busy {
            self.close(index, ClosedBy::Server, Outcome::Ok, now);
            return;
        }
        match connection.reply.at_end() {
            Ok(place) => {
                self.finish_answer(index, place, false, false, Some(ClosedBy::Server), now);
            }
            Err(outcome) => {
                let outcome = self.as_seen_on_reuse(index, outcome);
                let end = End::of(NetError::new(outcome, 0));
                self.fail(index, end, ClosedBy::Server, now);
            }
        }
    }

    /// The other side has ended its stream, and TLS not before it: only an answer that says where it ends is whole
    /// (RFC 9112 9.8).
    #[cold]
    fn take_cut(&mut self, index: u32, now: u64) {
        let connection = self.connections.get(index);
        if connection.state != State::Busy || connection.reply.at_end().is_err() {
            return self.take_end(index, now);
        }
        let why = "the connection was closed without an end of TLS, which alone ends this body";
        let end = End::failure(Outcome::Truncated, why, 0);
        self.fail(index, end, ClosedBy::Server, now);
    }

    /// A connection that stood is broken.
    pub(super) fn break_connection(&mut self, index: u32, error: NetError, now: u64) {
        if self.connections.get(index).state != State::Busy {
            self.close(index, ClosedBy::Error, Outcome::Ok, now);
            return;
        }
        let outcome = match error.outcome {
            Outcome::Reset => self.as_seen_on_reuse(index, Outcome::Reset),
            other => other,
        };
        let end = End::of(NetError { outcome, ..error });
        self.fail(index, end, ClosedBy::Error, now);
    }

    /// The end of a reused connection before any byte of the answer is a class of its own: the server may
    /// have closed it while it was idle.
    fn as_seen_on_reuse(&self, index: u32, outcome: Outcome) -> Outcome {
        let connection = self.connections.get(index);
        let user = &self.shards[connection.shard as usize].users[connection.user as usize];
        if connection.issued > 1 && user.first == 0 {
            Outcome::ClosedOnReuse
        } else {
            outcome
        }
    }
}
