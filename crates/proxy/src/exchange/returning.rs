//! The answer's way back: its head read, held back, passed on, broken off; its body; its end.

use loadlens_http::response::{parse_head, BodyDecoder, Framing, Head, HeadResult, MAX_HEAD_BYTES};

use loadlens_sys as sys;

use crate::connection::{Part, Stage};
use crate::counts::{Failure, Injected, Outcome};
use crate::head;
use crate::settings::Moment;
use crate::wire::Peer;
use crate::worker::Worker;

impl Worker {
    /// Reads on in what the service has said.
    pub fn read_answer(&mut self, token: u64) {
        loop {
            let Some(upstream) = self.upstreams.get(token) else {
                return;
            };
            match upstream.part {
                Part::Connecting | Part::Idle | Part::Held => return,
                Part::Body(decoder) => return self.pass_body(token, decoder),
                Part::Head => {}
            }
            match parse_head(upstream.wire.unread(), upstream.request.is_head) {
                HeadResult::Complete(head) if head.is_interim() => {
                    self.pass_interim(token, head.len);
                }
                HeadResult::Complete(head) => self.begin_answer(token, head),
                HeadResult::Invalid(_) => return self.fail(token, Failure::Malformed),
                HeadResult::Partial => {
                    let is_long = upstream.wire.unread().len() > MAX_HEAD_BYTES;
                    let failure = match upstream.wire.peer {
                        Peer::There if is_long => Failure::Malformed,
                        Peer::There => return,
                        Peer::Reset => Failure::Reset,
                        Peer::Ended if upstream.wire.unread().is_empty() => Failure::Closed,
                        Peer::Ended => Failure::Truncated,
                    };
                    return self.fail(token, failure);
                }
            }
        }
    }

    /// An interim answer goes on as it is; clients of HTTP/1.0 do not know any.
    fn pass_interim(&mut self, token: u64, len: usize) {
        let Some(upstream) = self.upstreams.get(token) else {
            return;
        };
        let to = upstream.client.filter(|_| !upstream.request.is_http10);
        if let Some(client) = to.and_then(|to| self.clients.get(to)) {
            client.wire.put(&upstream.wire.unread()[..len]);
        }
        upstream.wire.take(len);
        if let Some(to) = to {
            self.flush_client(to);
        }
    }

    /// The head of the answer is there.
    fn begin_answer(&mut self, token: u64, head: Head) {
        let Some(upstream) = self.upstreams.get(token) else {
            return;
        };
        upstream.keeps = head.keep_alive && !upstream.request.is_http10;
        let Some(client_token) = upstream.client else {
            upstream.wire.take(head.len);
            upstream.part = Part::Body(BodyDecoder::new(head.framing));
            return;
        };
        let Some(client) = self.clients.get(client_token) else {
            return;
        };
        let fate = client.fate;
        if fate.response_delay_ns > 0 && !upstream.was_held {
            self.counts.inject(Injected::DelayResponse);
            self.counts.delayed_ns += fate.response_delay_ns;
            upstream.part = Part::Held;
            upstream.at_ns = sys::monotonic_ns().saturating_add(fate.response_delay_ns);
            let at_ns = upstream.at_ns;
            return self.set_timer(token, at_ns);
        }
        if fate.reset == Some(Moment::Response) {
            return self.reset_within(client_token, token);
        }
        let bytes = &upstream.wire.unread()[..head.len];
        // What a client makes of the connection follows from what it reads, and that is passed on.
        client.closes |= head.framing == Framing::UntilClose
            || bytes.starts_with(b"HTTP/1.0")
            || !client.body.is_done();
        let add: &[u8] = match (client.closes, client.request.is_http10) {
            (true, _) => b"Connection: close\r\n",
            (false, true) => b"Connection: keep-alive\r\n",
            (false, false) => b"",
        };
        let before = client.wire.pending();
        head::pass_on(bytes, client.wire.output(), add);
        client.is_answered = true;
        upstream.wire.take(head.len);
        upstream.part = Part::Body(BodyDecoder::new(head.framing));
        if fate.reset != Some(Moment::Body) {
            return;
        }
        match head.framing {
            Framing::None | Framing::Length(0) => {
                let half = before + (client.wire.pending() - before) / 2;
                client.wire.keep_pending(half);
                self.flush_client(client_token);
                self.reset_within(client_token, token);
            }
            Framing::Length(length) => {
                upstream.cut = Some(usize::try_from(length / 2).unwrap_or(usize::MAX));
            }
            Framing::Chunked | Framing::UntilClose => upstream.cut = Some(usize::MAX),
        }
    }

    /// The client is reset on purpose; the service is heard to the end.
    fn reset_within(&mut self, client: u64, upstream: u64) {
        self.counts.inject(Injected::Reset);
        self.counts.end(Outcome::Reset);
        self.break_off(client);
        self.orphan(upstream);
    }

    /// Passes on what has come of the body.
    fn pass_body(&mut self, token: u64, mut decoder: BodyDecoder) {
        let Some(upstream) = self.upstreams.get(token) else {
            return;
        };
        let Ok(decoded) = decoder.decode(upstream.wire.unread(), &mut |_| {}) else {
            return self.fail(token, Failure::Malformed);
        };
        upstream.part = Part::Body(decoder);
        let consumed = decoded.consumed;
        if let Some(client_token) = upstream.client {
            let piece = match &mut upstream.cut {
                None => consumed,
                Some(left) if *left == usize::MAX && consumed > 0 => {
                    *left = 0;
                    consumed / 2
                }
                Some(left) => {
                    let piece = consumed.min(*left);
                    *left -= if *left == usize::MAX { 0 } else { piece };
                    piece
                }
            };
            let is_cut = upstream.cut == Some(0);
            if let Some(client) = self.clients.get(client_token) {
                client.wire.put(&upstream.wire.unread()[..piece]);
            }
            upstream.wire.take(consumed);
            if !decoded.done || is_cut {
                self.flush_client(client_token);
            }
            if is_cut {
                self.reset_within(client_token, token);
            }
        } else {
            upstream.wire.take(consumed);
        }
        self.go_on(token, decoder);
    }

    /// After a piece of the body: is it whole, or will no more come?
    fn go_on(&mut self, token: u64, decoder: BodyDecoder) {
        let Some(upstream) = self.upstreams.get(token) else {
            return;
        };
        if decoder.is_done() {
            return self.finish(token);
        }
        match upstream.wire.peer {
            Peer::There => {}
            Peer::Reset => self.fail(token, Failure::Reset),
            Peer::Ended if decoder.at_eof().is_ok() => {
                upstream.keeps = false;
                self.finish(token);
            }
            Peer::Ended => self.fail(token, Failure::Truncated),
        }
    }

    /// The answer is whole: the connection is kept, the place is free, the client gets the rest.
    fn finish(&mut self, token: u64) {
        let Some(upstream) = self.upstreams.get(token) else {
            return;
        };
        let client = upstream.client.take();
        let is_clean = upstream.keeps
            && upstream.has_all
            && upstream.wire.pending() == 0
            && upstream.wire.unread().is_empty()
            && upstream.wire.peer == Peer::There;
        let backend = upstream.backend;
        if is_clean && self.idle[backend].len() < self.settings.keepalive {
            upstream.part = Part::Idle;
            upstream.deadline_ns = 0;
            self.idle[backend].push(token);
            self.watch_upstream(token);
        } else {
            self.remove_upstream(token);
        }
        self.release();
        if let Some(client_token) = client {
            if let Some(client) = self.clients.get(client_token) {
                client.stage = Stage::Writing(Some(Outcome::Passed));
            }
            self.flush_client(client_token);
        }
    }

    /// Everything of an answer has gone to the client.
    pub fn written(&mut self, token: u64) {
        let Some(client) = self.clients.get(token) else {
            return;
        };
        let Stage::Writing(outcome) = client.stage else {
            return;
        };
        if let Some(outcome) = outcome {
            self.counts.end(outcome);
        }
        client.stage = Stage::Skipping;
        if client.closes {
            self.end_client(token);
        } else {
            self.skip(token);
        }
    }
}
