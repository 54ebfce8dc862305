//! The course of one exchange: bytes become requests, requests become answers or scripts, answers become
//! bytes, and every step is counted.

use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

use crate::answer::Answer;
use crate::bad::{Act, Moment};
use crate::connection::{ClosedBy, Connection, Phase};
use crate::counts::{Served, ThreadCounts, INVALID};
use crate::heads::Known;
use crate::request::{parse, BodyLeft, ChunkAt, Framing, Method, Parsed, Persistence, MAX_HEAD};
use crate::route::{lock, Items, Route};
use crate::sys;
use crate::worker::{Worker, PATIENCE_NS, WATCHED};

/// Longest request body that is kept for an echo.
const MAX_KEPT: usize = 16 << 20;
/// Most that a client may send before its turn.
const MAX_EARLY: usize = 1 << 20;

/// Most items of a list.
const LISTED: usize = 10;

/// Reply to a complete request.
enum Reply {
    /// These bytes, at this time (0: at once).
    Answer(u64),
    /// These acts.
    Script(Vec<Act>),
}

impl Worker {
    pub(crate) fn on_event(&mut self, token: u64, events: u32, counts: &mut ThreadCounts) {
        if events & libc::EPOLLOUT as u32 != 0 {
            if let Some(connection) = self.connections.get(token) {
                if connection.waits_for_room {
                    self.to_send.push(token);
                }
            }
        }
        if events & !(libc::EPOLLOUT as u32) != 0 {
            let ended = events & (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0;
            self.receive(token, ended, counts);
        }
    }

    /// Reads what is there. With edges, a read that does not fill the buffer has emptied the socket; only
    /// the end of the other side has to be fetched by a read of its own.
    fn receive(&mut self, token: u64, ended: bool, counts: &mut ThreadCounts) {
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(connection) = self.connections.get(token) {
            let is_secured = connection.tls.is_some();
            let handshakes = &mut counts.handshakes;
            match connection.receive(&mut buffer, &mut |shaken| handshakes.note(shaken)) {
                Ok(0) => {
                    self.peer_ended(token, counts);
                    break;
                }
                Ok(count) => {
                    counts.bytes_in += count as u64;
                    self.arrived(token, &buffer[..count], counts);
                    if count < buffer.len() && !ended && !is_secured {
                        break;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {
                    self.close(token, ClosedBy::Server, counts);
                    break;
                }
                Err(_) => {
                    self.lost(token, counts);
                    break;
                }
            }
        }
        self.buffer = buffer;
    }

    fn arrived(&mut self, token: u64, bytes: &[u8], counts: &mut ThreadCounts) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        if connection.input.is_empty() {
            let used = self.read(token, bytes, counts);
            if let Some(connection) = self.connections.get(token) {
                connection.input.extend_from_slice(&bytes[used..]);
            }
        } else {
            connection.input.extend_from_slice(bytes);
            self.read_input(token, counts);
        }
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        if connection.input.len() > MAX_EARLY {
            self.violation(token, "more than 1 MiB before its turn", &[], counts);
            self.close(token, ClosedBy::Server, counts);
        }
    }

    /// Reads what came early or in part.
    fn read_input(&mut self, token: u64, counts: &mut ThreadCounts) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        let input = std::mem::take(&mut connection.input);
        let used = self.read(token, &input, counts);
        if let Some(connection) = self.connections.get(token) {
            connection.input.extend_from_slice(&input[used..]);
        }
    }

    /// Reads heads and bodies from `bytes` as far as the exchange lets it; gives the number of bytes used.
    fn read(&mut self, token: u64, bytes: &[u8], counts: &mut ThreadCounts) -> usize {
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            let Some(connection) = self.connections.get(token) else {
                return bytes.len();
            };
            if let Some(left) = &mut connection.early_body {
                let Ok(read) = left.read(rest, None) else {
                    return bytes.len();
                };
                used += read.used;
                counts.path(connection.path).body_bytes_in += read.used as u64;
                if read.done {
                    connection.early_body = None;
                } else if read.used == 0 {
                    return used;
                }
                continue;
            }
            match &mut connection.phase {
                Phase::Idle => match self.read_head(token, rest, counts) {
                    Some(count) => used += count,
                    None => return used,
                },
                Phase::Body(left) => {
                    let wants = wants_body(connection.target.as_ref().map(|target| &*target.route));
                    let wants = wants && connection.kept.len() < MAX_KEPT;
                    match left.read(rest, wants.then_some(&mut connection.kept)) {
                        Ok(read) => {
                            used += read.used;
                            counts.path(connection.path).body_bytes_in += read.used as u64;
                            if read.done {
                                self.serve(token, counts);
                            } else if read.used == 0 {
                                return used;
                            }
                        }
                        Err(fault) => {
                            self.refuse(token, fault, rest, counts);
                            return bytes.len();
                        }
                    }
                }
                Phase::Over if connection.is_unsaid => {
                    counts.crossed += 1;
                    connection.is_unsaid = false;
                    connection.violated = true; // what follows is the rest of the same request
                    return bytes.len();
                }
                Phase::Over => {
                    let rule = "bytes after the end of the connection was said";
                    self.violation(token, rule, rest, counts);
                    return bytes.len();
                }
                Phase::Stalled => return bytes.len(),
                Phase::Serving | Phase::Writing => {
                    counts.pipelined += 1;
                    return used;
                }
            }
        }
        used
    }

    /// Reads one head; none: it is not whole yet.
    fn read_head(&mut self, token: u64, bytes: &[u8], counts: &mut ThreadCounts) -> Option<usize> {
        let head = match self.heads.recall(bytes) {
            Some(head) => head,
            None => match parse(bytes) {
                Parsed::Partial => return None,
                Parsed::Invalid(fault) => {
                    self.refuse(token, fault, bytes, counts);
                    return Some(bytes.len());
                }
                Parsed::Whole(head) => {
                    let shared = self.shared.clone();
                    self.heads.learn(bytes, &head, &shared.routes, counts)
                }
            },
        };
        let len = head.len;
        self.begin(token, head, &bytes[..len], counts);
        Some(len)
    }

    /// A head is whole: the request counts as received.
    fn begin(&mut self, token: u64, head: Known, bytes: &[u8], counts: &mut ThreadCounts) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        let tally = counts.path(head.target.path);
        tally.received += 1;
        if connection.path == u32::MAX {
            tally.connections += 1;
        }
        connection.path = head.target.path;
        connection.method = head.method;
        connection.persistence = head.persistence;
        connection.kept.clear();
        if matches!(*head.target.route, Route::EchoHead) {
            connection.kept.extend_from_slice(bytes);
        }
        let is_early =
            matches!(&*head.target.route, Route::Bad(behaviour, _) if behaviour.is_early);
        connection.target = Some(head.target);
        let left = match head.framing {
            Framing::Length(0) => return self.serve(token, counts),
            Framing::Length(length) => BodyLeft::Length(length),
            Framing::Chunked => BodyLeft::Chunked(ChunkAt::Size),
        };
        if is_early {
            connection.early_body = Some(left);
            return self.serve(token, counts);
        }
        connection.phase = Phase::Body(left);
        if head.expects_continue {
            // If it does not fit, the client sends its body after its own time limit.
            let _ = connection.send(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }

    /// The request is whole: decides what is answered, and when.
    fn serve(&mut self, token: u64, counts: &mut ThreadCounts) {
        let logs = counts.logs();
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        let Some(target) = connection.target.clone() else {
            return;
        };
        let is_timed = !matches!(*target.route, Route::Fixed(_) | Route::Statuses(..));
        if logs || is_timed {
            connection.received_ns = sys::monotonic_ns();
        }
        let reply = decide(&target.route, connection);
        connection.requests += 1;
        match reply {
            Reply::Script(acts) => {
                connection.script = Some(acts.into());
                connection.phase = Phase::Serving;
                self.advance(token, counts);
            }
            Reply::Answer(at) if at > connection.received_ns => {
                connection.phase = Phase::Serving;
                self.set_timer(token, at);
            }
            Reply::Answer(_) => {
                connection.phase = Phase::Writing;
                self.to_send.push(token);
            }
        }
    }

    /// Sends what there is to send.
    pub(crate) fn send(&mut self, token: u64, counts: &mut ThreadCounts) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        if connection.phase != Phase::Writing {
            return;
        }
        match connection.send_output() {
            Ok(count) => {
                connection.sent += count;
                let tally = counts.path(connection.path);
                tally.bytes_out += count as u64;
                if connection.sent == connection.output.len() {
                    self.sent_all(token, counts);
                } else {
                    self.wait_for_room(token);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                self.wait_for_room(token);
            }
            Err(_) => self.lost(token, counts),
        }
    }

    fn wait_for_room(&mut self, token: u64) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        if !connection.waits_for_room {
            connection.waits_for_room = true;
            // Adding EPOLLOUT reports at once if there is room by now, so no edge is lost.
            let _ = self.epoll.modify(
                connection.socket.as_raw_fd(),
                WATCHED | libc::EPOLLOUT as u32,
                token,
            );
        }
    }

    fn sent_all(&mut self, token: u64, counts: &mut ThreadCounts) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        connection.output.clear();
        if connection.output.capacity() > 64 * 1024 {
            connection.output = Vec::new();
        }
        connection.sent = 0;
        if std::mem::take(&mut connection.waits_for_room) {
            let _ = self
                .epoll
                .modify(connection.socket.as_raw_fd(), WATCHED, token);
        }
        if connection.script.is_some() {
            self.advance(token, counts);
        } else {
            self.answered(token, counts);
            self.after_answer(token, counts);
        }
    }

    /// Counts the answer, which is out.
    fn answered(&mut self, token: u64, counts: &mut ThreadCounts) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        counts.path(connection.path).answered += 1;
        if counts.logs() {
            counts.served(Served {
                received_ns: connection.received_ns,
                answered_ns: sys::monotonic_ns(),
                path: connection.path,
                connection: connection.id,
            });
        }
    }

    fn after_answer(&mut self, token: u64, counts: &mut ThreadCounts) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        if connection.peer_ended {
            self.close(token, ClosedBy::Client, counts);
        } else if connection.persistence == Persistence::Close {
            self.finish(token, counts);
        } else {
            connection.phase = Phase::Idle;
            if !connection.input.is_empty() {
                self.read_input(token, counts);
            }
        }
    }

    /// Goes on with the script until an act has to wait for something.
    pub(crate) fn advance(&mut self, token: u64, counts: &mut ThreadCounts) {
        loop {
            let Some(connection) = self.connections.get(token) else {
                return;
            };
            let Some(act) = connection.script.as_mut().and_then(|acts| acts.pop_front()) else {
                return;
            };
            match act {
                Act::Answered => self.answered(token, counts),
                Act::Send(bytes) => return self.put(token, &bytes),
                Act::Endless(bytes) => {
                    let again = Act::Endless(bytes.clone());
                    if let Some(script) = connection.script.as_mut() {
                        script.push_front(again);
                        // Paced, so that a client that goes on reading does not starve the others.
                        script.push_front(Act::Wait(200_000));
                    }
                    return self.put(token, &bytes);
                }
                Act::Wait(ns) => {
                    connection.phase = Phase::Serving;
                    return self.set_timer(token, sys::monotonic_ns() + ns);
                }
                Act::Next => {
                    connection.script = None;
                    return self.after_answer(token, counts);
                }
                Act::Finish => return self.finish(token, counts),
                Act::HangUp => {
                    connection.is_unsaid = true;
                    return self.finish(token, counts);
                }
                Act::Linger => return self.over(token, Phase::Over, counts),
                Act::Stall => return self.over(token, Phase::Stalled, counts),
                Act::Close => return self.close(token, ClosedBy::Server, counts),
                Act::Reset => {
                    sys::reset_on_close(connection.socket.as_raw_fd());
                    return self.close(token, ClosedBy::Server, counts);
                }
            }
        }
    }

    fn put(&mut self, token: u64, bytes: &[u8]) {
        if let Some(connection) = self.connections.get(token) {
            connection.output.extend_from_slice(bytes);
            connection.phase = Phase::Writing;
            self.to_send.push(token);
        }
    }

    /// Ends our side and waits for the client to end its own.
    fn finish(&mut self, token: u64, counts: &mut ThreadCounts) {
        if let Some(connection) = self.connections.get(token) {
            connection.we_ended = true;
            connection.end_sending();
            self.over(token, Phase::Over, counts);
        }
    }

    /// Nothing more is said on this connection.
    fn over(&mut self, token: u64, phase: Phase, counts: &mut ThreadCounts) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        if connection.peer_ended {
            return self.close(token, ClosedBy::Client, counts);
        }
        connection.phase = phase;
        connection.script = None;
        let early = std::mem::take(&mut connection.input);
        self.set_timer(token, sys::monotonic_ns() + PATIENCE_NS);
        if !early.is_empty() {
            self.read(token, &early, counts);
        }
    }

    /// The client has ended its side.
    fn peer_ended(&mut self, token: u64, counts: &mut ThreadCounts) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        connection.peer_ended = true;
        match connection.phase {
            Phase::Idle if connection.input.is_empty() => {}
            Phase::Idle | Phase::Body(_) => counts.cut += 1,
            Phase::Serving if connection.script.is_none() => counts.abandoned += 1,
            // What is on its way is sent; then the connection is closed.
            Phase::Writing if !is_endless(connection) => return,
            Phase::Serving | Phase::Writing | Phase::Stalled | Phase::Over => {}
        }
        self.close(token, ClosedBy::Client, counts);
    }

    /// The connection broke: a reset, or no answer from the other side.
    fn lost(&mut self, token: u64, counts: &mut ThreadCounts) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        match connection.phase {
            Phase::Body(_) => counts.cut += 1,
            Phase::Serving | Phase::Writing if connection.script.is_none() => counts.abandoned += 1,
            _ => {}
        }
        self.close(token, ClosedBy::ClientReset, counts);
    }

    /// The request breaks a rule: says so, and ends the connection.
    fn refuse(&mut self, token: u64, fault: &str, bytes: &[u8], counts: &mut ThreadCounts) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        if matches!(connection.phase, Phase::Idle) {
            let path = counts.path_index(INVALID);
            let tally = counts.path(path);
            tally.received += 1;
            if connection.path == u32::MAX {
                tally.connections += 1;
            }
            connection.path = path;
        }
        connection.violated = false;
        self.violation(token, fault, bytes, counts);
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        connection.violated = true; // what follows is the rest of the same request
        let refusal = Answer::refusal(400, fault);
        connection
            .output
            .extend_from_slice(refusal.bytes(false, Persistence::Close));
        connection.script = Some([Act::Finish].into());
        connection.phase = Phase::Writing;
        self.to_send.push(token);
    }

    /// Writes a violation down, once for each connection.
    fn violation(&mut self, token: u64, rule: &str, bytes: &[u8], counts: &mut ThreadCounts) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        if std::mem::replace(&mut connection.violated, true) {
            return;
        }
        if connection.path == u32::MAX {
            connection.path = counts.path_index(INVALID);
        }
        counts.violation(rule, connection.path, bytes);
    }
}

fn wants_body(route: Option<&Route>) -> bool {
    matches!(route, Some(Route::Echo))
}

fn is_endless(connection: &Connection) -> bool {
    let mut to_come = connection.script.iter().flatten();
    to_come.any(|act| matches!(act, Act::Endless(_)))
}

/// Decides the reply to a complete request; a plain answer is put into the output of the connection.
fn decide(route: &Route, connection: &mut Connection) -> Reply {
    let now = connection.received_ns;
    match route {
        Route::Fixed(answer) => put_answer(connection, answer, 0),
        Route::Delay(draws, answer) => {
            let service = lock(draws).next_ns();
            put_answer(connection, answer, now + service)
        }
        Route::Queue(station, answer, turned_away) => {
            let admitted = lock(station).admit(now);
            match admitted {
                Some(done) => put_answer(connection, answer, done),
                None => put_answer(connection, turned_away, 0),
            }
        }
        Route::Statuses(rotation, answers) => {
            let position = lock(rotation).next();
            put_answer(connection, &answers[position], 0)
        }
        Route::Echo | Route::EchoHead => {
            let kept = std::mem::take(&mut connection.kept);
            let kind = if kept.len() > MAX_HEAD {
                "application/octet-stream"
            } else {
                "text/plain"
            };
            let answer = Answer::new(200, &[("Content-Type", kind)], &kept);
            put_answer(connection, &answer, 0)
        }
        Route::Items(items) => {
            let answer = collection(items, connection.method);
            put_answer(connection, &answer, 0)
        }
        Route::Item(items, id) => {
            let answer = match connection.method {
                Method::Get | Method::Head | Method::Put if items.has(*id) => {
                    Answer::json(200, &item(*id))
                }
                Method::Delete if items.delete(*id) => Answer::json(204, ""),
                _ => Answer::json(404, r#"{"error":"no such item"}"#),
            };
            put_answer(connection, &answer, 0)
        }
        Route::Bad(behaviour, count) => Reply::Script(behaviour.script(Moment {
            nth: count.fetch_add(1, Ordering::Relaxed),
            on_connection: connection.requests,
        })),
    }
}

/// The answer of the collection of items: POST makes one, GET lists the newest.
fn collection(items: &Items, method: Method) -> Answer {
    match method {
        Method::Post => {
            let id = items.create();
            let location = format!("/items/{id}");
            let fields = [
                ("Content-Type", "application/json"),
                ("Location", location.as_str()),
            ];
            Answer::new(201, &fields, item(id).as_bytes())
        }
        Method::Get | Method::Head => {
            let listed: Vec<String> = items.newest(LISTED).into_iter().map(item).collect();
            Answer::json(200, &format!(r#"{{"items":[{}]}}"#, listed.join(",")))
        }
        _ => Answer::refusal(405, "items are made with POST and listed with GET"),
    }
}

fn item(id: u64) -> String {
    format!(r#"{{"data":{{"id":{id}}}}}"#)
}

fn put_answer(connection: &mut Connection, answer: &Answer, at_ns: u64) -> Reply {
    let bytes = answer.bytes(connection.method == Method::Head, connection.persistence);
    connection.output.extend_from_slice(bytes);
    Reply::Answer(at_ns)
}
