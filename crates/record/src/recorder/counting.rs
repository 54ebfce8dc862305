//! Additions of each event to the counts, the sums and the histograms of the current interval.

use loadlens_base::{Class, Outcome};
use loadlens_plan::program::CheckTally;

use crate::interval::{CheckCount, Course, Gap, CLASSES, COURSES};
use crate::rows::ConnectionRow;

use super::{
    size_class, AnswerNote, Ended, ErrorNote, Recorder, ANSWERS, ANSWERS_EACH, ANSWER_BODY,
    ANSWER_HEAD, ERROR_SAMPLES, USUAL, USUAL_BODY,
};

impl Recorder {
    /// A request became due.
    #[inline]
    pub fn due(&mut self, stream: u8, step: u16) {
        self.flows[stream as usize].due += 1;
        let at = self.step_index(stream, step);
        self.set.steps[at].due += 1;
    }

    /// A due request was dropped.
    pub fn dropped(&mut self, stream: u8, step: u16) {
        self.flows[stream as usize].dropped += 1;
        let at = self.step_index(stream, step);
        self.set.steps[at].dropped += 1;
    }

    /// Steps were left out.
    pub fn skipped(&mut self, stream: u8, step: u16, steps: u16) {
        let at = self.step_index(stream, step);
        self.set.steps[at].skipped += u64::from(steps);
    }

    /// A request took a connection, or began one. `ready` is when it could have: what is later is our lag.
    #[inline]
    pub fn issued(&mut self, stream: u8, step: u16, ready: u64, now: u64) {
        let at = self.step_index(stream, step);
        self.set.steps[at].issued += 1;
        let flow = &mut self.flows[stream as usize];
        let tally = &mut self.set.streams[stream as usize];
        tally.flows.in_flight_integral += u64::from(flow.in_flight) * (now - flow.since);
        flow.since = now;
        flow.in_flight += 1;
        flow.issued += 1;
        flow.issued_at += now;
        tally.in_flight_max = tally.in_flight_max.max(flow.in_flight);
        tally
            .lag
            .record(now.saturating_sub(ready), &mut self.set.pool);
    }

    /// An issued request ended, well or not.
    #[inline]
    pub fn ended(&mut self, end: &Ended) {
        let at = self.step_index(end.stream, end.step);
        let set = &mut *self.set;
        let flow = &mut self.flows[end.stream as usize];
        let tally = &mut set.streams[end.stream as usize];
        let service = end.done - end.sent;

        tally.flows.in_flight_integral += u64::from(flow.in_flight) * (end.done - flow.since);
        flow.since = end.done;
        flow.in_flight -= 1;
        flow.issued_at -= end.sent;
        tally.flows.ended_service += service;
        tally.flows.bytes_in_body += end.body_bytes;
        if end.outcome.is_answered() {
            flow.answered += 1;
            flow.ok += u64::from(end.outcome == Outcome::Ok);
            tally.status[end.status as usize] += 1;
            tally.note_gap(Gap {
                from: flow.last_answer,
                to: end.done,
            });
            flow.last_answer = end.done;
        } else {
            flow.failed += 1;
            set.steps[at].failed += 1;
            tally.failed[end.outcome.code() as usize] += 1;
            self.note_error(end);
        }
        if end.outcome == Outcome::Ok {
            let set = &mut *self.set;
            let phases = &mut set.phases[at];
            phases
                .first_byte
                .record(end.first - end.asked, &mut set.pool);
            if end.first == end.done {
                phases.at_once += 1;
            } else {
                phases.last_byte.record(end.done - end.first, &mut set.pool);
            }
        }
        if let Some(class) = end.outcome.class() {
            let cell = &mut self.set.cells[at * CLASSES + class as usize];
            cell.response.record(end.done - end.due, &mut self.set.pool);
            cell.service.record(service, &mut self.set.pool);
        }
        self.log_sample(end);
    }

    #[cold]
    fn note_error(&mut self, end: &Ended) {
        let step = self.first_step[end.stream as usize] + u32::from(end.step);
        let log = &mut self.errors[end.stream as usize][end.outcome.code() as usize];
        log.first = log.first.min(end.done);
        log.last = log.last.max(end.done);
        if log.samples.len() < ERROR_SAMPLES {
            // Capacity for all of them was reserved before the run.
            log.samples.push(ErrorNote {
                at: end.done,
                step,
                user: end.user,
                why: end.why,
                os_error: end.os_error,
            });
        }
    }

    /// Keeps what a failing answer says, of each status the first few.
    #[cold]
    pub fn note_answer(
        &mut self,
        stream: u8,
        step: u16,
        status: u16,
        at: u64,
        (head, body): (&[u8], &[u8]),
    ) {
        let step = self.first_step[stream as usize] + u32::from(step);
        let log = &mut self.answers[stream as usize];
        let alike = log.notes.iter().filter(|note| note.status == status);
        if log.notes.len() == ANSWERS || alike.count() == ANSWERS_EACH {
            return;
        }
        let from = log.bytes.len();
        log.bytes
            .extend_from_slice(&head[..head.len().min(ANSWER_HEAD)]);
        let between = log.bytes.len();
        log.bytes
            .extend_from_slice(&body[..body.len().min(ANSWER_BODY)]);
        log.notes.push(AnswerNote {
            at,
            step,
            status,
            body_bytes: body.len() as u64,
            place: (from, between, log.bytes.len()),
        });
    }

    /// Keeps the beginning of an answer as expected, if it is the first of its size at its step.
    #[inline]
    pub fn note_usual(
        &mut self,
        (stream, step, status, at): (u8, u16, u16, u64),
        body: &[u8],
        body_bytes: u64,
    ) {
        let step = self.first_step[stream as usize] + u32::from(step);
        let size = 1 << size_class(body_bytes);
        if self.sizes_kept[step as usize] & size == 0 && !body.is_empty() {
            self.sizes_kept[step as usize] |= size;
            let note = AnswerNote {
                at,
                step,
                status,
                body_bytes,
                place: (0, 0, 0),
            };
            self.keep_usual(stream, note, body);
        }
    }

    #[cold]
    fn keep_usual(&mut self, stream: u8, note: AnswerNote, body: &[u8]) {
        let log = &mut self.usual[stream as usize];
        if log.notes.len() < USUAL {
            let from = log.bytes.len();
            log.bytes
                .extend_from_slice(&body[..body.len().min(USUAL_BODY)]);
            let place = (from, from, log.bytes.len());
            log.notes.push(AnswerNote { place, ..note });
        }
    }

    /// A request had not ended when the measured part did: it lasted longer than `at - due`.
    pub fn censored(&mut self, stream: u8, step: u16, due: u64, sent: Option<u64>, at: u64) {
        let index = self.step_index(stream, step) * CLASSES + Class::Censored as usize;
        let cell = &mut self.set.cells[index];
        cell.response
            .record(at.saturating_sub(due), &mut self.set.pool);
        if let Some(sent) = sent {
            cell.service
                .record(at.saturating_sub(sent), &mut self.set.pool);
        }
    }

    /// Takes the check results so far of a stream, `first` of all and those after it. Counted in the current
    /// interval is what is new, so this is called before a cut.
    pub fn checked(&mut self, first: usize, tallies: &[CheckTally]) {
        let before = &self.checked[first..];
        let counts = self.set.checks[first..].iter_mut().zip(before);
        for ((count, before), tally) in counts.zip(tallies) {
            *count = CheckCount {
                passed: tally.passed - before.passed,
                failed: tally.failed - before.failed,
                not_judged: tally.not_judged - before.not_judged,
            };
        }
    }

    /// The first request of a run of a group became due.
    pub fn group_due(&mut self, group: usize) {
        self.set.groups[group].due += 1;
    }

    /// A run of a group ended with its last answer, or failed.
    pub fn group_ended(&mut self, group: usize, course: Course, response: u64, service: u64) {
        let tally = &mut self.set.groups[group];
        match course {
            Course::Completed => tally.completed += 1,
            Course::Failed | Course::Censored => tally.failed += 1,
        }
        self.group_lasted(group, course, response, Some(service));
    }

    /// The load ended before a run of a group; its first request may never have been issued.
    pub fn group_unfinished(&mut self, group: usize, response: u64, service: Option<u64>) {
        self.set.groups[group].unfinished += 1;
        self.group_lasted(group, Course::Censored, response, service);
    }

    fn group_lasted(&mut self, group: usize, course: Course, response: u64, service: Option<u64>) {
        let set = &mut *self.set;
        let cell = &mut set.group_cells[group * COURSES + course as usize];
        cell.response.record(response, &mut set.pool);
        if let Some(service) = service {
            cell.service.record(service, &mut set.pool);
        }
    }

    /// A connection was begun.
    pub fn opened(&mut self, stream: u8) {
        self.set.streams[stream as usize].flows.opened += 1;
    }

    /// A connection stands, but for TLS.
    pub fn established(&mut self, stream: u8, took: u64) {
        self.set.streams[stream as usize]
            .connect
            .record(took, &mut self.set.pool);
    }

    /// A connection is secured.
    pub fn secured(&mut self, stream: u8, took: u64, resumed: bool) {
        let tally = &mut self.set.streams[stream as usize];
        tally.tls.record(took, &mut self.set.pool);
        tally.flows.full_handshakes += u64::from(!resumed);
        tally.flows.resumed_handshakes += u64::from(resumed);
    }

    /// A connection ended; `row.closed_by` says by whom.
    pub fn closed(&mut self, row: &ConnectionRow) {
        let flows = &mut self.set.streams[row.stream as usize].flows;
        flows.closed_by_client += u64::from(row.closed_by == 1);
        flows.closed_by_server += u64::from(row.closed_by == 2);
        flows.closed_by_error += u64::from(row.closed_by == 3);
        self.log_connection(row);
    }

    /// Bytes came without a request.
    pub fn unsolicited(&mut self, stream: u8) {
        self.set.streams[stream as usize].flows.unsolicited += 1;
    }

    /// Request bytes left.
    #[inline]
    pub fn bytes_out(&mut self, stream: u8, bytes: usize) {
        self.set.streams[stream as usize].flows.bytes_out += bytes as u64;
    }

    /// Bytes came.
    #[inline]
    pub fn bytes_in(&mut self, stream: u8, bytes: usize) {
        self.set.streams[stream as usize].flows.bytes_in_wire += bytes as u64;
    }

    #[inline]
    fn step_index(&self, stream: u8, step: u16) -> usize {
        self.first_step[stream as usize] as usize + step as usize
    }
}
