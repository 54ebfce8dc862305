//! Changes of users, requests and connections between sending and receiving: the next step, the end
//! of a request, the release and the end of a connection.

use loadlens_base::Outcome;
use loadlens_plan::program::Judgement;
use loadlens_plan::{Cookies, Overflow, Think};
use loadlens_record::recorder::Ended;
use loadlens_record::rows::{ConnectionRow, SampleRow, NO_CONNECTION};
use loadlens_transport::{Handshake, Net, NetError};

use crate::clock::Clock;
use crate::script::Script;
use crate::user::{Action, Event, Phase, Scratch, NONE};

use super::connections::{State, Unsent};
use super::shard::Arrival;
use super::timers::{Kind, Timer, UserRef};
use super::Worker;

/// Side that ended a connection, as the record numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ClosedBy {
    /// Neither side: it was open when the run ended.
    Nobody = 0,
    /// We.
    Client = 1,
    /// The service.
    Server = 2,
    /// A failure.
    Error = 3,
}

/// End of a request.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) outcome: Outcome,
    pub(super) ends_iteration: bool,
    pub(super) failed_connect: bool,
    pub(super) why: &'static str,
    pub(super) os_error: i32,
}

impl End {
    /// A failure of the network.
    pub(super) fn of(error: NetError) -> End {
        End::failure(error.outcome, why(error), error.os_error)
    }

    pub(super) fn failure(outcome: Outcome, why: &'static str, os_error: i32) -> End {
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
fn why(error: NetError) -> &'static str {
    match error.outcome {
        _ if !error.why.is_empty() => error.why,
        Outcome::Resolve => "the host name has no address",
        Outcome::Refused => "the connection was refused",
        Outcome::ConnectTimeout => "no connection within the timeout",
        Outcome::ConnectFailed => "the connection could not be made",
        Outcome::Reset => "the connection was reset",
        Outcome::ClosedBeforeResponse => "the connection was closed before any byte of the answer",
        Outcome::ClosedOnReuse => "the idle connection was closed as the request was sent",
        Outcome::Truncated => "the connection was closed before the end of the answer",
        Outcome::Timeout => "no whole answer within the timeout",
        Outcome::TlsTimeout => "no whole TLS handshake within the timeout",
        Outcome::OwnDescriptors => "this machine has no file descriptor left",
        Outcome::OwnPorts => "this machine has no local port left",
        Outcome::OwnMemory => "this machine has no memory left for the socket",
        _ => "",
    }
}

impl<C: Clock, N: Net, S: Script> Worker<'_, C, N, S> {
    /// Takes one event to a user and does what it answers.
    #[inline]
    pub(super) fn step_user(&mut self, who: UserRef, event: Event, now: u64) {
        let think = if S::IS_THERE {
            self.pause_by_script(who, event, now)
        } else {
            self.shards[who.shard as usize].think
        };
        let shard = &mut self.shards[who.shard as usize];
        let mut scratch = Scratch {
            program: shard.program,
            random: &mut shard.random,
            think,
            timing: shard
                .timetable
                .as_mut()
                .map(|timetable| timetable.of(who.user)),
            quota: &mut shard.quota,
            values: shard.values.get_mut(who.user as usize),
            feed_cursors: shard.feed_cursors.as_deref_mut(),
            index: who.user,
            skipped: 0,
            has_begun: false,
        };
        let user = &mut shard.users[who.user as usize];
        let step_before = user.step;
        let action = user.step(event, now, &mut scratch);
        if scratch.has_begun && shard.program.cookies == Cookies::Iteration {
            shard.jars[who.user as usize].clear();
        }
        if scratch.skipped > 0 {
            self.recorder
                .skipped(shard.stream, step_before, scratch.skipped);
        }
        match action {
            Action::Ask => {
                if !matches!(event, Event::Arrive { .. }) {
                    self.recorder.due(shard.stream, user.step);
                }
                self.ready.push_back(who);
            }
            Action::Pause => {
                self.timers.push(Timer {
                    at: user.ready,
                    who,
                    kind: Kind::Due,
                });
                shard.pausing += 1;
                self.end_shard_if_over(who.shard as usize, now);
            }
            Action::Leave => {
                shard.leave(who.user);
                if shard.open_runs.is_some() {
                    self.leave_groups(who, now);
                }
                let shard = &mut self.shards[who.shard as usize];
                if let Some(arrival) = shard.take_backlog() {
                    self.start_arrival(who.shard as usize, arrival, now, now);
                }
                self.end_shard_if_over(who.shard as usize, now);
            }
        }
    }

    /// The pause before the next request of a user, where its script makes pauses.
    fn pause_by_script(&mut self, who: UserRef, event: Event, now: u64) -> Option<Think> {
        let shard = &mut self.shards[who.shard as usize];
        let think = shard.think;
        let is_before_a_request = matches!(event, Event::Join | Event::Ended { .. });
        if !is_before_a_request || !self.script.pauses() || shard.quota.is_used_up() {
            return think;
        }
        let ns = self.script.pause_ns(now);
        if event == Event::Join {
            shard.users[who.user as usize].due += ns;
        }
        self.heed_script(who.shard, now);
        Some(Think::Fixed { ns })
    }

    /// An arrival became due: starts it, keeps it in the backlog or drops it.
    pub(super) fn take_arrival(&mut self, index: usize, arrival: Arrival, now: u64) {
        let shard = &mut self.shards[index];
        let step = shard.program.scenarios[arrival.scenario].first_step;
        self.recorder.due(shard.stream, step);
        let Some(open) = &shard.open else { return };
        // A place that becomes free is taken at once by the oldest arrival: where there is a place, no arrival waits.
        if shard.has_place() {
            if let Some(arrival) = shard.take_backlog() {
                self.start_arrival(index, arrival, arrival.due, now);
            }
        } else if open.overflow == Overflow::Drop {
            shard.take_backlog();
            if let Some(feed_cursors) = &mut shard.feed_cursors {
                feed_cursors.skip(&shard.program.scenarios[arrival.scenario]);
            }
            let row = SampleRow {
                seq: shard.quota.number(),
                ..shard.unissued(step, arrival.due, Outcome::Dropped)
            };
            self.recorder.dropped(shard.stream, step);
            self.recorder.sample(row);
        }
    }

    fn start_arrival(&mut self, index: usize, arrival: Arrival, ready: u64, now: u64) {
        let Some(user) = self.shards[index].take_place() else {
            return;
        };
        let who = UserRef::new(index, user);
        let (due, scenario) = (arrival.due, arrival.scenario);
        let event = Event::Arrive {
            due,
            ready,
            scenario,
        };
        self.step_user(who, event, now);
    }

    /// Ends the request of a connection's user with a failure, and the connection.
    pub(super) fn fail(&mut self, index: u32, end: End, side: ClosedBy, now: u64) {
        let connection = self.connections.get(index);
        let who = connection.who();
        let status = connection.reply.status();
        self.record_end(who, Some(index), status, end, now);
        self.close(index, side, Outcome::Ok, now);
        self.go_on(who, end, now);
    }

    /// The deadline of a request has passed.
    pub(super) fn time_out(&mut self, who: UserRef, now: u64) {
        let user = &self.shards[who.shard as usize].users[who.user as usize];
        let index = user.connection;
        let is_connecting = user.phase == Phase::Connecting;
        if is_connecting {
            // The request has had its time; the next one need not spend it there too.
            let address = usize::from(self.connections.get(index).address);
            self.shards[who.shard as usize].destination.give_up(address);
        }
        let outcome = match (is_connecting, self.handshake(index)) {
            (false, _) => Outcome::Timeout,
            (true, Handshake::Underway) => Outcome::TlsTimeout,
            (true, _) => Outcome::ConnectTimeout,
        };
        let end = End {
            failed_connect: is_connecting,
            ..End::of(NetError::new(outcome, 0))
        };
        let status = self.connections.get(index).reply.status();
        self.record_end(who, Some(index), status, end, now);
        let of_connect = if is_connecting { outcome } else { Outcome::Ok };
        self.close(index, ClosedBy::Client, of_connect, now);
        self.go_on(who, end, now);
    }

    /// Counts the end of a request.
    #[inline]
    pub(super) fn record_end(
        &mut self,
        who: UserRef,
        index: Option<u32>,
        status: u16,
        end: End,
        now: u64,
    ) {
        self.in_flight -= 1;
        let ended = self.account(who, index, status, end, now);
        self.recorder.ended(&ended);
        if S::IS_THERE && !self.is_closing {
            self.script.ended(&ended);
        }
    }

    /// Everything that the record wants to know about a request that is issued, as it stands at `now`.
    #[inline]
    pub(super) fn account(
        &self,
        who: UserRef,
        index: Option<u32>,
        status: u16,
        end: End,
        now: u64,
    ) -> Ended {
        let shard = &self.shards[who.shard as usize];
        let user = &shard.users[who.user as usize];
        let connection = index.map(|index| self.connections.get(index));
        Ended {
            stream: shard.stream,
            step: user.step,
            outcome: end.outcome,
            status,
            seq: user.seq,
            due: user.due,
            sent: user.sent,
            // A connection that stood before has an earlier time than any request on it.
            asked: connection.map_or(user.sent, |connection| {
                connection.established.max(user.sent)
            }),
            first: user.first,
            done: now,
            user: user.number,
            connection: connection.map_or(NO_CONNECTION, |connection| connection.number),
            first_on_connection: connection.is_some_and(|connection| connection.issued <= 1),
            wire_bytes: connection.map_or(0, |connection| connection.reply.wire_bytes),
            body_bytes: connection.map_or(0, |connection| connection.reply.body_bytes),
            why: end.why,
            os_error: end.os_error,
        }
    }

    /// Lets a user go on after its request ended.
    #[inline]
    pub(super) fn go_on(&mut self, who: UserRef, end: End, now: u64) {
        if self.is_closing {
            let shard = &mut self.shards[who.shard as usize];
            shard.users[who.user as usize].phase = Phase::Absent;
            shard.leave(who.user);
            return;
        }
        // Without an answer there is nothing to extract from either.
        let shard = &self.shards[who.shard as usize];
        let step = &shard.program.steps[shard.users[who.user as usize].step as usize];
        let ends_iteration = end.ends_iteration
            || (end.outcome.is_failure() && step.ends_iteration(Judgement::UnexpectedStatus));
        let event = Event::Ended {
            ends_iteration,
            backs_off: end.failed_connect && shard.destination.backs_off(now),
        };
        let is_present = shard.users[who.user as usize].number < shard.present;
        if shard.open_runs.is_some() {
            self.end_in_groups(who, end.outcome, ends_iteration, now);
        }
        if is_present {
            self.step_user(who, event, now);
        } else {
            self.dismiss(who, now);
        }
    }

    /// Makes a connection free for the next request: its own user's, the longest waiting one's, or anyone's.
    #[inline]
    pub(super) fn release(&mut self, index: u32, now: u64) {
        let token = self.connections.token(index);
        let connection = self.connections.get_mut(index);
        connection.state = State::Idle;
        connection.reply.reset(&mut self.store);
        let shard = &mut self.shards[connection.shard as usize];
        if shard.pool.is_sticky {
            return;
        }
        shard.part_from_connection(connection.user);
        connection.user = NONE;
        let shard_index = connection.shard;
        match self.next_in_queue(shard_index, now) {
            Some(user) => {
                self.connections.get_mut(index).user = user;
                let user = &mut self.shards[shard_index as usize].users[user as usize];
                user.connection = index;
                user.phase = Phase::Asking;
            }
            None => self.shards[shard_index as usize].pool.idle.push_back(token),
        }
    }

    /// There is room for one more connection: it is that of the user who has waited longest for one.
    pub(super) fn call_next(&mut self, shard_index: u8, now: u64) {
        if self.next_in_queue(shard_index, now).is_some() {
            self.shards[shard_index as usize].pool.called += 1;
        }
    }

    /// Takes the user who has waited longest for a connection and makes it ready.
    fn next_in_queue(&mut self, shard_index: u8, now: u64) -> Option<u32> {
        if self.is_closing {
            return None;
        }
        let shard = &mut self.shards[shard_index as usize];
        let user = shard.pool.queue.pop_front()?;
        shard.users[user as usize].ready = now;
        self.ready.push_back(UserRef {
            shard: shard_index,
            user,
        });
        Some(user)
    }

    /// State of a connection's TLS handshake.
    pub(super) fn handshake(&self, index: u32) -> Handshake {
        let handle = self.connections.get(index).handle;
        handle.map_or(Handshake::None, |handle| self.net.handshake(handle))
    }

    /// Ends a connection, which leaves room for that of a waiting request. `outcome` is that of connecting.
    pub(super) fn close(&mut self, index: u32, side: ClosedBy, outcome: Outcome, now: u64) {
        let connection = self.connections.get(index);
        let (shard_index, user) = (connection.shard, connection.user);
        self.end_connection(index, side, outcome, now);
        let shard = &mut self.shards[shard_index as usize];
        match shard.users.get_mut(user as usize) {
            // It was just given this connection and has not used it: the room is still its own.
            Some(user) if user.phase == Phase::Asking && !shard.pool.is_sticky => {
                user.phase = Phase::Queueing;
                shard.pool.called += 1;
            }
            _ => self.call_next(shard_index, now),
        }
    }

    /// Ends a connection whose user begins another one, or gives the room away.
    pub(super) fn end_connection(
        &mut self,
        index: u32,
        side: ClosedBy,
        outcome: Outcome,
        now: u64,
    ) {
        let (tls_ns, is_resumed) = match self.handshake(index) {
            Handshake::Done { took_ns, resumed } => (took_ns as i64, resumed),
            _ => (-1, false),
        };
        let connection = self.connections.get_mut(index);
        if let Some(handle) = connection.handle.take() {
            self.net.close(handle);
        }
        connection.reply.reset(&mut self.store);
        if let Unsent::Kept(buffer, _) = connection.unsent {
            self.store.give_back(buffer);
        }
        let shard = &mut self.shards[connection.shard as usize];
        let user = shard.users.get(connection.user as usize);
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
            stream: shard.stream,
            outcome: outcome.code(),
            is_resumed,
            bytes_in: connection.bytes_in,
            tls_ns,
            thinned: 0, // the recorder says
        });
        shard.pool.open -= 1;
        let user = connection.user;
        shard.part_from_connection(user);
        self.connections.free(index);
    }
}
