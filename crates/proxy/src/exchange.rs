//! The way of a request: read, its fate drawn, admitted, handed to the service; failures of the service; answers of the
//! proxy itself. `returning` is the way back of the answer.

use std::os::fd::AsRawFd;

use loadlens_http::response::{BodyDecoder, Framing};

use loadlens_sys as sys;

use crate::admission::Decision;
use crate::answers;
use crate::connection::{Client, Part, Stage, Upstream};
use crate::counts::{Failure, Injected, Outcome, Total};
use crate::head::{self, Read};
use crate::settings::{Direction, Failures, Moment};
use crate::wire::{Peer, Wire, HIGH};
use crate::worker::{Job, Worker};

mod returning;

impl Worker {
    // ------------------------------------------------------------------------------------------ the request

    /// Looks for the next request of a client.
    pub fn next_request(&mut self, token: u64) {
        let Some(client) = self.clients.get(token) else {
            return;
        };
        if client.stage != Stage::Idle {
            return;
        }
        while client.wire.unread().starts_with(b"\r\n") {
            client.wire.take(2); // RFC 9112 2.2: a blank line before a request means nothing
        }
        if client.wire.unread().is_empty() {
            return;
        }
        match head::read(client.wire.unread()) {
            Read::Partial => {}
            Read::Whole(request) if client.is_control => self.answer_control(token, request.len),
            Read::Whole(request) => {
                client.request = request;
                client.closes = !request.keeps;
                client.is_answered = false;
                client.body = BodyDecoder::new(request.framing);
                client.head.clear();
                let Client { wire, head, .. } = client;
                head::pass_on(&wire.unread()[..request.len], head, b"");
                wire.take(request.len);
                self.begin(token);
            }
            Read::Invalid(why) => {
                client.closes = true;
                client.body = BodyDecoder::new(Framing::None);
                self.counts.add(Total::Requests);
                self.answer(token, 400, why, Some(Outcome::Malformed));
            }
        }
        self.watch_client(token);
    }

    /// A request is there: what happens to it is drawn.
    fn begin(&mut self, token: u64) {
        self.counts.add(Total::Requests);
        let fate = self.draws.next();
        let Some(client) = self.clients.get(token) else {
            return;
        };
        client.fate = fate;
        if fate.is_dropped {
            self.counts.inject(Injected::Drop);
            self.counts.end(Outcome::Dropped);
            client.stage = Stage::Silent;
            client.wire.take_all();
            return;
        }
        if fate.request_delay_ns > 0 {
            self.counts.inject(Injected::DelayRequest);
            self.counts.delayed_ns += fate.request_delay_ns;
            let at_ns = sys::monotonic_ns().saturating_add(fate.request_delay_ns);
            client.stage = Stage::Delayed;
            client.at_ns = at_ns;
            self.set_timer(token, at_ns);
            return;
        }
        self.ask(token);
    }

    /// The request asks to go on to the service.
    pub fn ask(&mut self, token: u64) {
        let Some(client) = self.clients.get(token) else {
            return;
        };
        if client.fate.reset == Some(Moment::Request) {
            self.counts.inject(Injected::Reset);
            self.counts.end(Outcome::Reset);
            return self.reset_client(token);
        }
        if client.fate.is_error {
            self.counts.inject(Injected::Error);
            let status = self.settings.faults.errors.status;
            return self.answer(token, status, "an injected error", Some(Outcome::Error));
        }
        let now = sys::monotonic_ns();
        match self.admission.ask(token, now) {
            Decision::Admitted => self.forward(token),
            Decision::Rejected => self.reject(token, Outcome::QueueFull),
            Decision::Waits(until_ns) => {
                client.stage = Stage::Waiting(now);
                client.at_ns = until_ns.unwrap_or(0);
                if let Some(until_ns) = until_ns {
                    self.set_timer(token, until_ns);
                }
                let waiting = self.admission.waiting();
                self.counts.waiting_most = self.counts.waiting_most.max(waiting);
            }
        }
    }

    /// The request has waited as long as it may.
    pub fn give_up_waiting(&mut self, token: u64) {
        let Some(client) = self.clients.get(token) else {
            return;
        };
        if let Stage::Waiting(since_ns) = client.stage {
            self.admission.leave(token);
            self.counts.wait(sys::monotonic_ns() - since_ns);
            self.reject(token, Outcome::Waited);
        }
    }

    fn reject(&mut self, token: u64, outcome: Outcome) {
        let status = self.settings.faults.admit.map_or(503, |admit| admit.status);
        let why = match outcome {
            Outcome::Waited => "no place was free in time",
            _ => "no place is free, and none to wait",
        };
        self.answer(token, status, why, Some(outcome));
    }

    /// The request goes to the service, on a kept connection or a new one.
    pub fn forward(&mut self, token: u64) {
        let in_flight = self.admission.in_flight();
        self.counts.in_flight_most = self.counts.in_flight_most.max(in_flight);
        if self.clients.get(token).is_none() {
            return; // it left while it was about to go on, and gave its place back
        }
        self.counts.add(Total::Forwarded);
        let backend = self.turn % self.settings.upstreams.len();
        self.turn = backend + 1;
        let upstream = match self.idle[backend].pop() {
            Some(kept) => {
                self.counts.add(Total::UpstreamReused);
                Ok(kept)
            }
            None => self.connect(backend),
        };
        match upstream {
            Ok(upstream) => self.hand_over(token, upstream),
            Err(failure) => {
                self.fail_client(token, failure, &[], false);
                self.release();
            }
        }
    }

    fn connect(&mut self, backend: usize) -> Result<u64, Failure> {
        let socket = sys::connect(&self.settings.upstreams[backend].into())
            .map_err(|error| failure_of(&error))?;
        self.counts.add(Total::UpstreamConnections);
        let fd = socket.as_raw_fd();
        let pacing = self.pacing(Direction::Request);
        let token = self.upstreams.insert(|token| Upstream {
            wire: Wire::new(socket, token, pacing),
            backend,
            part: Part::Connecting,
            client: None,
            request: head::Request::NONE,
            has_all: false,
            was_held: false,
            keeps: false,
            cut: None,
            patience: 0,
            deadline_ns: 0,
            is_timed: false,
            at_ns: 0,
        });
        let events = libc::EPOLLOUT as u32;
        if self.epoll.add(fd, events, token).is_err() {
            self.upstreams.remove(token);
            return Err(Failure::Connect);
        }
        if let Some(upstream) = self.upstreams.get(token) {
            upstream.wire.watched = events;
        }
        Ok(token)
    }

    fn hand_over(&mut self, token: u64, on: u64) {
        let (Some(client), Some(upstream)) = (self.clients.get(token), self.upstreams.get(on))
        else {
            return;
        };
        client.stage = Stage::Served(on);
        upstream.client = Some(token);
        upstream.request = client.request;
        upstream.has_all = false;
        upstream.was_held = false;
        upstream.keeps = false;
        upstream.cut = None;
        upstream.deadline_ns = sys::monotonic_ns().saturating_add(self.settings.timeout_ns);
        if matches!(upstream.part, Part::Idle) {
            upstream.part = Part::Head;
        }
        upstream.wire.put(&client.head);
        self.time_upstream(on);
        self.pump_request(token, on);
        self.watch_client(token);
    }

    /// The connection to the service is there, or it is not.
    pub fn on_connected(&mut self, token: u64) {
        let Some(upstream) = self.upstreams.get(token) else {
            return;
        };
        match sys::connected(&upstream.wire.socket) {
            Ok(()) => {
                upstream.part = Part::Head;
                self.flush_upstream(token);
                self.watch_upstream(token);
            }
            Err(error) => self.fail(token, failure_of(&error)),
        }
    }

    /// Passes on what has come of a request's body.
    pub fn pump_request(&mut self, token: u64, to: u64) {
        let (Some(client), Some(upstream)) = (self.clients.get(token), self.upstreams.get(to))
        else {
            return;
        };
        while !client.body.is_done()
            && upstream.wire.pending() < HIGH
            && !client.wire.unread().is_empty()
        {
            match client.body.decode(client.wire.unread(), &mut |_| {}) {
                Ok(decoded) => {
                    upstream.wire.put(&client.wire.unread()[..decoded.consumed]);
                    client.wire.take(decoded.consumed);
                }
                Err(violation) => return self.refuse_body(token, to, violation.what()),
            }
        }
        upstream.has_all = client.body.is_done();
        self.flush_upstream(to);
    }

    /// The body of a request cannot be read on: the service never gets the rest, so its connection ends.
    fn refuse_body(&mut self, token: u64, to: u64, why: &str) {
        self.remove_upstream(to);
        self.release();
        let Some(client) = self.clients.get(token) else {
            return;
        };
        if client.is_answered {
            self.counts.end(Outcome::Malformed);
            return self.reset_client(token);
        }
        client.closes = true;
        client.body = BodyDecoder::new(Framing::None);
        client.wire.take_all();
        self.answer(token, 400, why, Some(Outcome::Malformed));
    }

    /// Throws away the rest of a body that is not wanted.
    pub fn skip(&mut self, token: u64) {
        let Some(client) = self.clients.get(token) else {
            return;
        };
        while !client.body.is_done() && !client.wire.unread().is_empty() {
            match client.body.decode(client.wire.unread(), &mut |_| {}) {
                Ok(decoded) => client.wire.take(decoded.consumed),
                Err(_) => return self.end_client(token),
            }
        }
        if client.body.is_done() {
            client.stage = Stage::Idle;
            self.jobs.push_back(Job::Next(token));
        }
    }

    // ---------------------------------------------------------------------------------------------- failures

    /// The service has been silent for too long.
    pub fn time_out(&mut self, token: u64) {
        self.fail(token, Failure::Timeout);
    }

    /// The service failed: its connection ends, its place is free, and the client sees it as the settings say.
    pub fn fail(&mut self, token: u64, failure: Failure) {
        let Some(upstream) = self.upstreams.remove(token) else {
            return;
        };
        let was_reset = upstream.wire.peer == Peer::Reset;
        match upstream.client {
            Some(client) => self.fail_client(client, failure, upstream.wire.unread(), was_reset),
            None => self.counts.fail(failure),
        }
        self.release();
    }

    /// `rest`: what the service said last and was not passed on.
    fn fail_client(&mut self, token: u64, failure: Failure, rest: &[u8], was_reset: bool) {
        self.counts.fail(failure);
        let Some(client) = self.clients.get(token) else {
            return;
        };
        if self.settings.failures == Failures::Answer && !client.is_answered {
            let (status, why) = answers::of_failure(failure);
            client.closes |= !client.body.is_done();
            return self.answer(token, status, why, Some(Outcome::Failed));
        }
        client.wire.put(rest);
        let resets = was_reset
            || matches!(
                failure,
                Failure::Refused | Failure::Connect | Failure::Reset | Failure::Timeout
            );
        if resets {
            self.counts.end(Outcome::Failed);
            self.flush_client(token);
            return self.break_off(token);
        }
        client.closes = true;
        client.stage = Stage::Writing(Some(Outcome::Failed));
        self.flush_client(token);
    }

    // ------------------------------------------------------------------------------------- the proxy's own

    /// Answers a request itself.
    fn answer(&mut self, token: u64, status: u16, why: &str, outcome: Option<Outcome>) {
        let retry_after_s = match outcome {
            Some(Outcome::QueueFull | Outcome::Waited) => {
                self.settings.faults.admit.map(|admit| admit.retry_after_s)
            }
            _ => None,
        };
        let Some(client) = self.clients.get(token) else {
            return;
        };
        // Who waits for a word before the body may never send it: only the end of the connection is clear.
        client.closes |= client.request.expects && !client.body.is_done();
        let answer = answers::Own {
            status,
            why,
            retry_after_s,
            closes: client.closes,
            is_http10: client.request.is_http10,
            is_head: client.request.is_head,
        };
        answer.write(client.wire.output());
        client.at_ns = 0;
        client.stage = Stage::Writing(outcome);
        self.flush_client(token);
    }

    /// Answers a reader of the counts.
    fn answer_control(&mut self, token: u64, len: usize) {
        let now = self.now();
        let Some(client) = self.clients.get(token) else {
            return;
        };
        let target = answers::target(&client.wire.unread()[..len]);
        let answer = match target {
            b"/metrics" => answers::page(200, &self.counts.text(now)),
            b"/ready" => answers::page(200, "ready\n"),
            _ => answers::page(404, "GET /metrics, GET /ready\n"),
        };
        client.wire.take_all();
        client.wire.put(&answer);
        client.closes = true;
        client.body = BodyDecoder::new(Framing::None);
        client.stage = Stage::Writing(None);
        self.flush_client(token);
    }
}

fn failure_of(error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => Failure::Refused,
        std::io::ErrorKind::TimedOut => Failure::Timeout,
        _ => Failure::Connect,
    }
}
