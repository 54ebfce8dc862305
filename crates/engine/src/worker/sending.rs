//! From a request that is due to its bytes on a connection: taking or beginning a connection, sending,
//! going on after a short write.

use loadlens_base::Outcome;
use loadlens_plan::program::{Records, RenderContext};
use loadlens_record::rows::ConnectionRow;
use loadlens_transport::{Io, Net, NetError};

use crate::clock::Clock;
use crate::script::Script;
use crate::user::{Phase, NONE};

use super::connections::Unsent;
use super::exchange::{ClosedBy, End};
use super::timers::{Kind, Timer, UserRef};
use super::{Worker, SENDS_AT_ONCE};

/// One in this many connects is tried as if it completed at once, even where earlier ones did not.
const TRY_AGAIN: u64 = 64;

impl<C: Clock, N: Net, S: Script> Worker<'_, C, N, S> {
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
    pub(super) fn issue(&mut self, who: UserRef) {
        let now = self.now();
        let shard = &mut self.shards[who.shard as usize];
        let user = &mut shard.users[who.user as usize];
        let was_called = user.phase == Phase::Queueing;
        if user.phase != Phase::Asking && !was_called {
            return; // the measured part ended in between
        }
        shard.pool.called -= u32::from(was_called);
        let mut index = user.connection;
        while index == NONE && !shard.pool.is_sticky {
            match shard.pool.idle.pop_front() {
                Some(token) => index = self.connections.find(token).unwrap_or(NONE),
                None => break,
            }
        }
        // What room there is belongs first to those who were called.
        if index == NONE && shard.pool.open + shard.pool.called >= shard.pool.most {
            user.phase = Phase::Queueing;
            shard.pool.queue.push_back(who.user);
            return;
        }
        user.sent = now;
        self.recorder
            .issued(shard.stream, user.step, user.ready, now);
        self.in_flight += 1;
        if !user.watched {
            user.watched = true;
            let at = now.saturating_add(shard.timeout);
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
    pub(super) fn open_connection(&mut self, who: UserRef, now: u64) {
        let shard = &mut self.shards[who.shard as usize];
        let tried = shard.destination.address;
        let Some(&address) = shard.destination.addresses.get(tried) else {
            let error = NetError::new(Outcome::Resolve, 0);
            self.fail_unconnected(who, error, now);
            return;
        };
        let tries_again = shard.pool.begun % TRY_AGAIN == 0;
        let number = shard.pool.next_number();
        self.recorder.opened(shard.stream);
        let (index, token) = self.connections.reserve();
        let may_stand = shard.destination.stands_at_once || tries_again;
        let begun = if may_stand {
            self.net.connect_quietly(&address, shard.stream, token)
        } else {
            self.net.connect(&address, shard.stream, token)
        };
        match begun {
            Ok(handle) => {
                shard.pool.open += 1;
                shard.users[who.user as usize].connection = index;
                self.connections
                    .begin(index, handle, who.shard, who.user, number, now);
                self.connections.get_mut(index).address = tried as u8;
                if may_stand {
                    self.send_first(index, handle, token);
                }
            }
            Err(error) => {
                self.connections.free(index);
                self.recorder.closed(&ConnectionRow {
                    connection: number,
                    user: shard.users[who.user as usize].number,
                    opened_ns: now as i64,
                    established_ns: -1,
                    closed_ns: now as i64,
                    requests: 0,
                    closed_by: ClosedBy::Error as u8,
                    stream: shard.stream,
                    outcome: error.outcome.code(),
                    is_resumed: false,
                    bytes_in: 0,
                    tls_ns: -1,
                    thinned: 0, // the recorder says
                });
                self.try_next_address(who, tried, error, now);
            }
        }
    }

    /// Sends the request of a connection that was just begun, if it stands already.
    fn send_first(&mut self, index: u32, handle: N::Handle, token: u64) {
        let now = self.now();
        let connection = self.connections.get(index);
        let who = connection.who();
        let shard = &mut self.shards[who.shard as usize];
        let step = shard.users[who.user as usize].step;
        let fixed = shard.program.steps[step as usize].static_bytes();
        let bytes = fixed.unwrap_or_default();
        match self.net.send_first(handle, token, bytes) {
            Ok(Some(sent)) => {
                shard.destination.stands_at_once = true;
                self.establish(index, now);
                if fixed.is_some() {
                    self.connections.get_mut(index).issue();
                    self.note_static(index, sent, bytes.len());
                } else {
                    self.transmit(index, now);
                }
            }
            Ok(None) => shard.destination.stands_at_once = false,
            Err(error) => {
                let tried = usize::from(self.connections.get(index).address);
                self.end_connection(index, ClosedBy::Error, error.outcome, now);
                self.try_next_address(who, tried, error, now);
            }
        }
    }

    /// Notes how much of a request that is always the same has left.
    #[inline]
    fn note_static(&mut self, index: u32, sent: usize, of: usize) {
        let connection = self.connections.get_mut(index);
        if sent < of {
            connection.unsent = Unsent::Static(sent);
        }
        let stream = self.shards[connection.shard as usize].stream;
        self.recorder.bytes_out(stream, sent);
    }

    /// Until a connection has once stood, a connect that failed at an address goes on to the target's next one;
    /// then to the one where it stood.
    pub(super) fn try_next_address(
        &mut self,
        who: UserRef,
        tried: usize,
        error: NetError,
        now: u64,
    ) {
        let shard = &mut self.shards[who.shard as usize];
        let user = &mut shard.users[who.user as usize];
        user.tried = user.tried.saturating_add(1);
        // An address that TCP reached is the right one, whatever TLS says.
        let destination = &mut shard.destination;
        destination.connected_once |= error.outcome == Outcome::Tls;
        let has_stood_elsewhere = destination.connected_once && destination.address != tried;
        let may_go_on = !destination.connected_once || has_stood_elsewhere;
        if !may_go_on || usize::from(user.tried) >= destination.addresses.len() {
            self.fail_unconnected(who, error, now);
            return;
        }
        destination.give_up(tried);
        self.open_connection(who, now);
    }

    /// A request ends without ever having had a connection.
    fn fail_unconnected(&mut self, who: UserRef, error: NetError, now: u64) {
        let end = End {
            failed_connect: true,
            ..End::of(error)
        };
        self.record_end(who, None, 0, end, now);
        self.go_on(who, end, now);
        // The failed connection leaves room for a request that waits for one.
        self.call_next(who.shard, now);
    }

    /// Sends the request of a connection's user.
    #[inline]
    pub(super) fn transmit(&mut self, index: u32, now: u64) {
        let connection = self.connections.get_mut(index);
        connection.issue();
        let Some(handle) = connection.handle else {
            return;
        };
        let shard = &mut self.shards[connection.shard as usize];
        let user = &mut shard.users[connection.user as usize];
        let step = &shard.program.steps[user.step as usize];
        match step.static_bytes() {
            Some(bytes) => match self.net.send(handle, bytes) {
                Io::Bytes(sent) => self.note_static(index, sent, bytes.len()),
                Io::Later | Io::End | Io::Cut => self.note_static(index, 0, bytes.len()),
                Io::Broken(error) => self.break_connection(index, error, now),
            },
            None => {
                let who = connection.who();
                self.transmit_rendered(index, who, now);
            }
        }
    }

    fn transmit_rendered(&mut self, index: u32, who: UserRef, now: u64) {
        if S::IS_THERE && self.script.makes_requests() {
            return self.transmit_made(index, who, now);
        }
        let shard = &mut self.shards[who.shard as usize];
        let user = &shard.users[who.user as usize];
        let step = &shard.program.steps[user.step as usize];
        let nothing = Default::default();
        let values = shard.values.get(who.user as usize).unwrap_or(&nothing);
        let mut context = RenderContext {
            random: &mut shard.random,
            seq: user.seq,
            user: user.number,
            unix_ns: self.settings.t0_unix_ns + now,
            t0_unix_ns: self.settings.t0_unix_ns,
            records: match &shard.feed_cursors {
                Some(feed_cursors) => feed_cursors.records_of(shard.program, who.user),
                None => Records::default(),
            },
        };
        self.rendered.clear();
        if let Err(fault) = step.render(values, &mut context, &mut self.rendered) {
            // Nothing was sent: the connection is as good as before.
            self.connections.get_mut(index).issued -= 1;
            let end = End {
                ends_iteration: true,
                ..End::failure(Outcome::Limit, fault.what(), 0)
            };
            self.record_end(who, Some(index), 0, end, now);
            self.release(index, now);
            self.go_on(who, end, now);
            return;
        }
        if let Some(jar) = shard.jars.get_mut(who.user as usize) {
            let unix_ns = self.settings.t0_unix_ns + now;
            jar.put(&mut self.rendered, !step.has_own_cookie, unix_ns);
        }
        self.send_rendered(index, now);
    }

    /// Sends the request that the script makes.
    fn transmit_made(&mut self, index: u32, who: UserRef, now: u64) {
        self.rendered.clear();
        let made = self.script.request(now, &mut self.rendered);
        self.heed_script(who.shard, now);
        let Some(framing) = made else {
            // Nothing was sent: the connection is as good as before.
            self.connections.get_mut(index).issued -= 1;
            let end = End::failure(Outcome::Limit, "the script has made no request", 0);
            self.record_end(who, Some(index), 0, end, now);
            self.release(index, now);
            self.go_on(who, end, now);
            return;
        };
        self.connections.get_mut(index).framing = framing;
        self.send_rendered(index, now);
    }

    /// Sends what was rendered for the user of a connection.
    #[inline]
    fn send_rendered(&mut self, index: u32, now: u64) {
        let connection = self.connections.get_mut(index);
        let Some(handle) = connection.handle else {
            return;
        };
        let stream = self.shards[connection.shard as usize].stream;
        let sent = match self.net.send(handle, &self.rendered) {
            Io::Bytes(sent) => sent,
            Io::Later | Io::End | Io::Cut => 0,
            Io::Broken(error) => return self.break_connection(index, error, now),
        };
        self.recorder.bytes_out(stream, sent);
        if sent < self.rendered.len() {
            let buffer = self.store.take();
            if self.store.append(buffer, &self.rendered[sent..]) {
                connection.unsent = Unsent::Kept(buffer, 0);
            } else {
                self.store.give_back(buffer);
                let error = NetError::new(Outcome::OwnMemory, 0);
                self.break_connection(index, error, now);
            }
        }
    }

    /// Goes on with a request that did not fit into the socket's buffer.
    pub(super) fn resume_sending(&mut self, index: u32) {
        loop {
            let connection = self.connections.get_mut(index);
            let Some(handle) = connection.handle else {
                return;
            };
            let shard = &self.shards[connection.shard as usize];
            let rest = match connection.unsent {
                Unsent::Nothing => return,
                Unsent::Static(from) => {
                    let user = &shard.users[connection.user as usize];
                    &shard.program.steps[user.step as usize]
                        .static_bytes()
                        .unwrap_or_default()[from..]
                }
                Unsent::Kept(buffer, from) => &self.store.bytes(buffer)[from..],
            };
            let (sent, is_all) = match self.net.send(handle, rest) {
                Io::Bytes(sent) => (sent, sent == rest.len()),
                Io::Later | Io::End | Io::Cut => return,
                Io::Broken(error) => {
                    let now = self.now();
                    return self.break_connection(index, error, now);
                }
            };
            self.recorder.bytes_out(shard.stream, sent);
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
}
