//! What happens to requests and connections: taking a connection, sending, receiving, failing.

use crate::clock::Clock;
use crate::error::Outcome;
use crate::plan::Overflow;
use crate::program::{Judgement, RenderContext};
use crate::record::recorder::Ended;
use crate::record::rows::{ConnectionRow, SampleRow, NO_CONNECTION};
use crate::transport::{Io, Net, NetError, Ready};
use crate::user::{Action, Event, Phase, Scratch, NONE};

use super::connections::{State, Unsent};
use super::lane::Arrival;
use super::reply::{Fed, Place};
use super::timers::{Kind, Timer, UserRef};
use super::{Worker, SENDS_AT_ONCE};

/// Receives of one connection before the others have their turn.
const RECEIVES_AT_ONCE: u32 = 16;

/// Which side ended a connection, as the record numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ClosedBy {
    /// Nobody: it was open when the run ended.
    Nobody = 0,
    /// We.
    Client = 1,
    /// The service.
    Server = 2,
    /// A failure.
    Error = 3,
}

/// How a request ended.
#[derive(Clone, Copy)]
struct End {
    outcome: Outcome,
    ends_iteration: bool,
    failed_connect: bool,
    why: &'static str,
    os_error: i32,
}

impl End {
    fn failure(outcome: Outcome, why: &'static str, os_error: i32) -> End {
        End {
            outcome,
            ends_iteration: false,
            failed_connect: false,
            why,
            os_error,
        }
    }
}

/// In words, for the errors of the result.
fn why(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Resolve => "the host name has no address",
        Outcome::Refused => "the connection was refused",
        Outcome::ConnectTimeout => "no connection within the timeout",
        Outcome::ConnectFailed => "the connection could not be made",
        Outcome::Reset => "the connection was reset",
        Outcome::ClosedBeforeResponse => {
            "the connection was closed before a whole head of the answer"
        }
        Outcome::ClosedOnReuse => "the idle connection was closed as the request was sent",
        Outcome::Truncated => "the connection was closed before the announced end of the body",
        Outcome::Timeout => "no whole answer within the timeout",
        Outcome::OwnDescriptors => "this machine has no file descriptor left",
        Outcome::OwnPorts => "this machine has no local port left",
        Outcome::OwnMemory => "this machine has no memory left for the socket",
        _ => "",
    }
}

impl<C: Clock, N: Net> Worker<'_, C, N> {
    /// Takes one event to a user and does what it answers.
    #[inline]
    pub(super) fn step_user(&mut self, who: UserRef, event: Event, now: u64) {
        let lane = &mut self.lanes[who.lane as usize];
        let mut scratch = Scratch {
            program: lane.program,
            random: &mut lane.random,
            think: lane.think,
            quota: &mut lane.quota,
            values: lane.values.get_mut(who.user as usize),
            skipped: 0,
        };
        let user = &mut lane.users[who.user as usize];
        let step_before = user.step;
        let action = user.step(event, now, &mut scratch);
        if scratch.skipped > 0 {
            self.recorder
                .skipped(lane.stream, step_before, scratch.skipped);
        }
        match action {
            Action::Ask => {
                if !matches!(event, Event::Arrive { .. }) {
                    self.recorder.due(lane.stream, user.step);
                }
                self.ready.push_back(who);
            }
            Action::Pause => self.timers.push(Timer {
                at: user.due,
                who,
                kind: Kind::Due,
            }),
            Action::Leave => {
                lane.leave(who.user);
                if let Some(arrival) = lane.take_backlog() {
                    self.start_arrival(who.lane as usize, arrival, now, now);
                }
            }
        }
    }

    /// An arrival became due: starts it, keeps it in the backlog or drops it.
    pub(super) fn take_arrival(&mut self, index: usize, arrival: Arrival, now: u64) {
        let lane = &mut self.lanes[index];
        let step = lane.program.scenarios[arrival.scenario].first_step;
        self.recorder.due(lane.stream, step);
        let Some(open) = &lane.open else { return };
        if open.backlog > 1 {
            return; // older ones wait
        }
        if lane.has_place() {
            if let Some(arrival) = lane.take_backlog() {
                self.start_arrival(index, arrival, arrival.due, now);
            }
        } else if open.overflow == Overflow::Drop {
            lane.take_backlog();
            let row = SampleRow {
                seq: lane.quota.number(),
                ..lane.unissued(step, arrival.due, Outcome::Dropped)
            };
            self.recorder.dropped(lane.stream, step);
            self.recorder.sample(row, now);
        }
    }

    fn start_arrival(&mut self, index: usize, arrival: Arrival, ready: u64, now: u64) {
        let Some(user) = self.lanes[index].take_place() else {
            return;
        };
        let who = UserRef {
            lane: index as u8,
            user,
        };
        self.step_user(
            who,
            Event::Arrive {
                due: arrival.due,
                ready,
                scenario: arrival.scenario,
            },
            now,
        );
    }

    /// Issues everything in the ready queue.
    #[inline]
    pub(super) fn send_ready(&mut self) {
        // What is added on the way (a failed send, say) waits for the next turn, or this might not end.
        for _ in 0..self.ready.len().min(SENDS_AT_ONCE) {
            let Some(who) = self.ready.pop_front() else {
                return;
            };
            self.issue(who);
        }
    }

    /// Gives a user a connection and sends its request, or lets it wait for one.
    #[inline]
    fn issue(&mut self, who: UserRef) {
        let now = self.now();
        let lane = &mut self.lanes[who.lane as usize];
        let user = &mut lane.users[who.user as usize];
        if user.phase != Phase::Asking {
            return; // the measured part ended in between
        }
        let mut index = user.connection;
        while index == NONE && !lane.is_sticky {
            match lane.idle.pop_front() {
                Some(token) => index = self.connections.find(token).unwrap_or(NONE),
                None => break,
            }
        }
        if index == NONE && lane.connections >= lane.max_connections {
            user.phase = Phase::Queueing;
            lane.queue.push_back(who.user);
            return;
        }
        user.sent = now;
        self.recorder
            .issued(lane.stream, user.step, user.ready, now);
        self.in_flight += 1;
        if !user.watched {
            user.watched = true;
            let at = now.saturating_add(lane.timeout);
            self.timers.push(Timer {
                at,
                who,
                kind: Kind::Deadline,
            });
        }
        if index == NONE {
            user.phase = Phase::Connecting;
            self.open_connection(who, now);
            return;
        }
        user.phase = Phase::InFlight;
        user.connection = index;
        self.connections.get_mut(index).user = who.user;
        self.transmit(index, now);
    }

    /// Begins a connection for a user whose request is issued.
    fn open_connection(&mut self, who: UserRef, now: u64) {
        let lane = &mut self.lanes[who.lane as usize];
        let Some(&address) = lane.addresses.get(lane.address) else {
            let error = NetError {
                outcome: Outcome::Resolve,
                os_error: 0,
            };
            self.fail_unconnected(who, error, now);
            return;
        };
        let number = lane.number_connection();
        self.recorder.opened(lane.stream);
        let (index, token) = self.connections.reserve();
        match self.net.connect(&address, token) {
            Ok(handle) => {
                lane.connections += 1;
                lane.users[who.user as usize].connection = index;
                self.connections
                    .begin(index, handle, who.lane, who.user, number, now);
            }
            Err(error) => {
                self.connections.free(index);
                self.recorder.closed(&ConnectionRow {
                    connection: number,
                    user: lane.users[who.user as usize].number,
                    opened_ns: now as i64,
                    established_ns: -1,
                    closed_ns: now as i64,
                    requests: 0,
                    closed_by: ClosedBy::Error as u8,
                    stream: lane.stream,
                    outcome: error.outcome.code(),
                    bytes_in: 0,
                });
                self.try_next_address(who, error, now);
            }
        }
    }

    /// Until a connection has once stood, a failed connect goes on to the target's next address.
    fn try_next_address(&mut self, who: UserRef, error: NetError, now: u64) {
        let lane = &mut self.lanes[who.lane as usize];
        let user = &mut lane.users[who.user as usize];
        user.tried = user.tried.saturating_add(1);
        if lane.connected_once || usize::from(user.tried) >= lane.addresses.len() {
            self.fail_unconnected(who, error, now);
            return;
        }
        lane.address = (lane.address + 1) % lane.addresses.len();
        self.open_connection(who, now);
    }

    /// A request ends without ever having had a connection.
    fn fail_unconnected(&mut self, who: UserRef, error: NetError, now: u64) {
        let why = why(error.outcome);
        let end = End {
            failed_connect: true,
            ..End::failure(error.outcome, why, error.os_error)
        };
        self.record_end(who, None, 0, end, now);
        self.go_on(who, end, now);
        // The connection that did not come about leaves room for somebody who waits for one.
        self.next_in_queue(who.lane, now);
    }

    /// Sends the request of a connection's user.
    #[inline]
    fn transmit(&mut self, index: u32, now: u64) {
        let connection = self.connections.get_mut(index);
        connection.state = State::Busy;
        connection.issued += 1;
        let Some(handle) = connection.handle else {
            return;
        };
        let lane = &mut self.lanes[connection.lane as usize];
        let user = &mut lane.users[connection.user as usize];
        let step = &lane.program.steps[user.step as usize];
        let sent = match step.static_bytes() {
            Some(bytes) => match self.net.send(handle, bytes) {
                Io::Bytes(sent) if sent == bytes.len() => Ok(sent),
                Io::Bytes(sent) => {
                    connection.unsent = Unsent::Static(sent);
                    Ok(sent)
                }
                Io::Later => {
                    connection.unsent = Unsent::Static(0);
                    Ok(0)
                }
                Io::End => Ok(0),
                Io::Broken(error) => Err(error),
            },
            None => {
                let who = UserRef {
                    lane: connection.lane,
                    user: connection.user,
                };
                return self.transmit_rendered(index, who, now);
            }
        };
        match sent {
            Ok(sent) => self.recorder.bytes_out(lane.stream, sent),
            Err(error) => self.break_connection(index, error, now),
        }
    }

    fn transmit_rendered(&mut self, index: u32, who: UserRef, now: u64) {
        let lane = &mut self.lanes[who.lane as usize];
        let user = &lane.users[who.user as usize];
        let step = &lane.program.steps[user.step as usize];
        let nothing = Default::default();
        let values = lane.values.get(who.user as usize).unwrap_or(&nothing);
        let mut context = RenderContext {
            random: &mut lane.random,
            seq: user.seq,
            unix_ns: self.settings.t0_unix_ns + now,
        };
        self.rendered.clear();
        if let Err(fault) = step.render(values, &mut context, &mut self.rendered) {
            // Nothing was sent: the connection is as good as before.
            let end = End {
                ends_iteration: true,
                ..End::failure(Outcome::Limit, fault.what(), 0)
            };
            self.record_end(who, Some(index), 0, end, now);
            self.release(index, now);
            self.go_on(who, end, now);
            return;
        }
        let connection = self.connections.get_mut(index);
        let Some(handle) = connection.handle else {
            return;
        };
        let sent = match self.net.send(handle, &self.rendered) {
            Io::Bytes(sent) => sent,
            Io::Later | Io::End => 0,
            Io::Broken(error) => return self.break_connection(index, error, now),
        };
        self.recorder.bytes_out(lane.stream, sent);
        if sent < self.rendered.len() {
            let buffer = self.store.take();
            if self.store.append(buffer, &self.rendered[sent..]) {
                connection.unsent = Unsent::Kept(buffer, 0);
            } else {
                self.store.give_back(buffer);
                let error = NetError {
                    outcome: Outcome::OwnMemory,
                    os_error: 0,
                };
                self.break_connection(index, error, now);
            }
        }
    }

    /// Goes on with a request that did not fit into the socket's buffer.
    fn resume_sending(&mut self, index: u32) {
        loop {
            let connection = self.connections.get_mut(index);
            let Some(handle) = connection.handle else {
                return;
            };
            let lane = &self.lanes[connection.lane as usize];
            let rest = match connection.unsent {
                Unsent::Nothing => return,
                Unsent::Static(from) => {
                    let user = &lane.users[connection.user as usize];
                    &lane.program.steps[user.step as usize]
                        .static_bytes()
                        .unwrap_or_default()[from..]
                }
                Unsent::Kept(buffer, from) => &self.store.bytes(buffer)[from..],
            };
            let (sent, is_all) = match self.net.send(handle, rest) {
                Io::Bytes(sent) => (sent, sent == rest.len()),
                Io::Later | Io::End => return,
                Io::Broken(error) => {
                    let now = self.now();
                    return self.break_connection(index, error, now);
                }
            };
            self.recorder.bytes_out(lane.stream, sent);
            connection.unsent = match connection.unsent {
                Unsent::Kept(buffer, _) if is_all => {
                    self.store.give_back(buffer);
                    Unsent::Nothing
                }
                _ if is_all => Unsent::Nothing,
                Unsent::Kept(buffer, from) => Unsent::Kept(buffer, from + sent),
                Unsent::Static(from) => Unsent::Static(from + sent),
                Unsent::Nothing => Unsent::Nothing,
            };
        }
    }

    /// Does what one event asks for; returns the time.
    #[inline]
    pub(super) fn serve(&mut self, ready: Ready) -> u64 {
        let Some(index) = self.connections.find(ready.token) else {
            return self.now();
        };
        let connection = self.connections.get(index);
        if connection.state == State::Connecting {
            if !ready.writable || !self.finish_connecting(index) {
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

    /// Connecting has ended; says whether the connection stands.
    fn finish_connecting(&mut self, index: u32) -> bool {
        let now = self.now();
        let connection = self.connections.get_mut(index);
        let who = UserRef {
            lane: connection.lane,
            user: connection.user,
        };
        let Some(handle) = connection.handle else {
            return false;
        };
        match self.net.connected(handle) {
            Ok(()) => {
                connection.established = now.max(1);
                let lane = &mut self.lanes[who.lane as usize];
                lane.connected_once = true;
                lane.users[who.user as usize].phase = Phase::InFlight;
                self.recorder
                    .established(lane.stream, now - connection.opened);
                self.transmit(index, now);
                true
            }
            Err(error) => {
                self.close(index, ClosedBy::Error, error.outcome, now);
                self.try_next_address(who, error, now);
                false
            }
        }
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
                    let goes_on = has_ended || count == self.buffer.len();
                    if !self.take_bytes(index, count, goes_on, now) || !goes_on {
                        return now;
                    }
                }
                Io::End => {
                    let now = self.now();
                    self.take_end(index, now);
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
        // Edge-triggered: nobody will tell again of what is already there.
        self.more.push(token);
        self.now()
    }

    /// Takes `count` bytes of the receive buffer; says whether the answer goes on.
    #[inline]
    fn take_bytes(&mut self, index: u32, count: usize, look_again: bool, now: u64) -> bool {
        let connection = self.connections.get_mut(index);
        connection.bytes_in += count as u64;
        let lane = &mut self.lanes[connection.lane as usize];
        self.recorder.bytes_in(lane.stream, count);
        if connection.state != State::Busy {
            self.recorder.unsolicited(lane.stream);
            self.close(index, ClosedBy::Client, Outcome::Ok, now);
            return false;
        }
        let user = &mut lane.users[connection.user as usize];
        if user.first == 0 {
            user.first = now.max(1);
        }
        let step = &lane.program.steps[user.step as usize];
        let input = &self.buffer[..count];
        match connection
            .reply
            .feed(input, step.need, step.request_is_head, &mut self.store)
        {
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
        let who = UserRef {
            lane: connection.lane,
            user: connection.user,
        };
        let lane = &mut self.lanes[who.lane as usize];
        let step = &lane.program.steps[lane.users[who.user as usize].step as usize];
        let Some(head) = connection.reply.head().copied() else {
            return;
        };
        let (head_bytes, body) = match place {
            Place::Input { head, body, end } => (&self.buffer[head..body], &self.buffer[body..end]),
            Place::Store { buffer, head_len } => self.store.bytes(buffer).split_at(head_len),
        };
        let mut nothing = Default::default();
        let values = lane
            .values
            .get_mut(who.user as usize)
            .unwrap_or(&mut nothing);
        let judgement = step.judge(&head, head_bytes, body, values);
        let end = End {
            outcome: judgement.outcome(),
            ends_iteration: judgement != Judgement::Ok && step.ends_iteration(judgement),
            failed_connect: false,
            why: "an extracted value is over its bound",
            os_error: 0,
        };
        connection.answered += u32::from(end.outcome.is_answered());
        self.record_end(who, Some(index), head.status, end, now);
        match closed.or_else(|| self.reason_to_close(index, head.keep_alive, excess, look_again)) {
            None => self.release(index, now),
            Some(side) => self.close(index, side, Outcome::Ok, now),
        }
        self.go_on(who, end, now);
    }

    /// Who ends the connection after an answer; none: it is used again.
    #[inline]
    fn reason_to_close(
        &mut self,
        index: u32,
        keep_alive: bool,
        excess: bool,
        look_again: bool,
    ) -> Option<ClosedBy> {
        let connection = self.connections.get(index);
        let lane = &self.lanes[connection.lane as usize];
        if excess {
            self.recorder.unsolicited(lane.stream);
            return Some(ClosedBy::Client);
        }
        if connection.issued >= lane.requests_per_connection || connection.unsent != Unsent::Nothing
        {
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
            Io::End => Some(ClosedBy::Server),
            Io::Broken(_) => Some(ClosedBy::Error),
            Io::Bytes(count) => {
                self.recorder.bytes_in(lane.stream, count);
                self.recorder.unsolicited(lane.stream);
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
                self.finish_answer(index, place, false, false, Some(ClosedBy::Server), now)
            }
            Err(outcome) => {
                let outcome = self.as_seen_on_reuse(index, outcome);
                self.fail(
                    index,
                    End::failure(outcome, why(outcome), 0),
                    ClosedBy::Server,
                    now,
                );
            }
        }
    }

    /// A connection that stood is broken.
    fn break_connection(&mut self, index: u32, error: NetError, now: u64) {
        if self.connections.get(index).state != State::Busy {
            self.close(index, ClosedBy::Error, Outcome::Ok, now);
            return;
        }
        let outcome = match error.outcome {
            Outcome::Reset => self.as_seen_on_reuse(index, Outcome::Reset),
            other => other,
        };
        self.fail(
            index,
            End::failure(outcome, why(outcome), error.os_error),
            ClosedBy::Error,
            now,
        );
    }

    /// The end of a reused connection before any byte of the answer is a class of its own: the server may
    /// have closed it while it was idle.
    fn as_seen_on_reuse(&self, index: u32, outcome: Outcome) -> Outcome {
        let connection = self.connections.get(index);
        let user = &self.lanes[connection.lane as usize].users[connection.user as usize];
        if connection.issued > 1 && user.first == 0 {
            Outcome::ClosedOnReuse
        } else {
            outcome
        }
    }

    /// Ends the request of a connection's user with a failure, and the connection.
    fn fail(&mut self, index: u32, end: End, side: ClosedBy, now: u64) {
        let connection = self.connections.get(index);
        let who = UserRef {
            lane: connection.lane,
            user: connection.user,
        };
        let status = connection.reply.head().map_or(0, |head| head.status);
        self.record_end(who, Some(index), status, end, now);
        self.close(index, side, Outcome::Ok, now);
        self.go_on(who, end, now);
    }

    /// The deadline of a request has passed.
    pub(super) fn time_out(&mut self, who: UserRef, now: u64) {
        let user = &self.lanes[who.lane as usize].users[who.user as usize];
        let index = user.connection;
        let is_connecting = user.phase == Phase::Connecting;
        let outcome = if is_connecting {
            Outcome::ConnectTimeout
        } else {
            Outcome::Timeout
        };
        let end = End {
            failed_connect: is_connecting,
            ..End::failure(outcome, why(outcome), 0)
        };
        let status = self
            .connections
            .get(index)
            .reply
            .head()
            .map_or(0, |head| head.status);
        self.record_end(who, Some(index), status, end, now);
        let of_connect = if is_connecting { outcome } else { Outcome::Ok };
        self.close(index, ClosedBy::Client, of_connect, now);
        self.go_on(who, end, now);
    }

    /// Counts the end of a request.
    #[inline]
    fn record_end(&mut self, who: UserRef, index: Option<u32>, status: u16, end: End, now: u64) {
        let lane = &self.lanes[who.lane as usize];
        let user = &lane.users[who.user as usize];
        let connection = index.map(|index| self.connections.get(index));
        self.in_flight -= 1;
        self.recorder.ended(&Ended {
            stream: lane.stream,
            step: user.step,
            outcome: end.outcome,
            status,
            seq: user.seq,
            due: user.due,
            sent: user.sent,
            first: user.first,
            done: now,
            user: user.number,
            connection: connection.map_or(NO_CONNECTION, |connection| connection.number),
            first_on_connection: connection.is_some_and(|connection| connection.issued <= 1),
            wire_bytes: connection.map_or(0, |connection| connection.reply.wire_bytes),
            body_bytes: connection.map_or(0, |connection| connection.reply.body_bytes),
            why: end.why,
            os_error: end.os_error,
        });
    }

    /// Lets a user go on after its request ended.
    #[inline]
    fn go_on(&mut self, who: UserRef, end: End, now: u64) {
        if self.is_closing {
            let lane = &mut self.lanes[who.lane as usize];
            lane.users[who.user as usize].phase = Phase::Absent;
            lane.leave(who.user);
            return;
        }
        // Without an answer there is nothing to extract from either.
        let lane = &self.lanes[who.lane as usize];
        let step = &lane.program.steps[lane.users[who.user as usize].step as usize];
        let ends_iteration = end.ends_iteration
            || (end.outcome.is_failure() && step.ends_iteration(Judgement::UnexpectedStatus));
        let event = Event::Ended {
            ends_iteration,
            failed_connect: end.failed_connect,
        };
        self.step_user(who, event, now);
    }

    /// Makes a connection free for the next request: its own user's, the longest waiting one's, or anyone's.
    #[inline]
    fn release(&mut self, index: u32, now: u64) {
        let token = self.connections.token(index);
        let connection = self.connections.get_mut(index);
        connection.state = State::Idle;
        connection.reply.reset(&mut self.store);
        let lane = &mut self.lanes[connection.lane as usize];
        if lane.is_sticky {
            return;
        }
        lane.part_from_connection(connection.user);
        connection.user = NONE;
        let lane_index = connection.lane;
        match self.next_in_queue(lane_index, now) {
            Some(user) => {
                self.connections.get_mut(index).user = user;
                self.lanes[lane_index as usize].users[user as usize].connection = index;
            }
            None => self.lanes[lane_index as usize].idle.push_back(token),
        }
    }

    /// Takes the user who has waited longest for a connection and makes it ready.
    fn next_in_queue(&mut self, lane_index: u8, now: u64) -> Option<u32> {
        if self.is_closing {
            return None;
        }
        let lane = &mut self.lanes[lane_index as usize];
        let user = lane.queue.pop_front()?;
        lane.users[user as usize].phase = Phase::Asking;
        lane.users[user as usize].ready = now;
        self.ready.push_back(UserRef {
            lane: lane_index,
            user,
        });
        Some(user)
    }

    /// Ends a connection. `outcome` is that of connecting.
    pub(super) fn close(&mut self, index: u32, side: ClosedBy, outcome: Outcome, now: u64) {
        let connection = self.connections.get_mut(index);
        if let Some(handle) = connection.handle.take() {
            self.net.close(handle);
        }
        connection.reply.reset(&mut self.store);
        if let Unsent::Kept(buffer, _) = connection.unsent {
            self.store.give_back(buffer);
        }
        let lane_index = connection.lane;
        let lane = &mut self.lanes[lane_index as usize];
        let user = lane.users.get(connection.user as usize);
        self.recorder.closed(&ConnectionRow {
            connection: connection.number,
            user: user.map_or(NONE, |user| user.number),
            opened_ns: connection.opened as i64,
            established_ns: if connection.established == 0 {
                -1
            } else {
                connection.established as i64
            },
            closed_ns: if side == ClosedBy::Nobody {
                -1
            } else {
                now as i64
            },
            requests: connection.answered,
            closed_by: side as u8,
            stream: lane.stream,
            outcome: outcome.code(),
            bytes_in: connection.bytes_in,
        });
        lane.connections -= 1;
        let user = connection.user;
        lane.part_from_connection(user);
        self.connections.free(index);
        // There is room for a connection of somebody who waits for one.
        self.next_in_queue(lane_index, now);
    }
}
