//! The end of the measured part, and the end of the run.
//!
//! At the end of the measured part nothing new is sent. What is due and was not issued waits for ever;
//! what is in flight may finish within the drain. Both enter the latency of the measured part as
//! censored: all that is known is that they lasted longer than until then.

use loadlens_base::Outcome;
use loadlens_plan::Overflow;
use loadlens_record::rows::{SampleRow, NO_CONNECTION};
use loadlens_transport::Net;

use crate::clock::Clock;
use crate::feeding::Feeding;
use crate::script::Script;
use crate::user::{Phase, NONE};

use super::exchange::{ClosedBy, End};
use super::lane::Lane;
use super::timers::UserRef;
use super::{Worker, WorkerEnd};

impl Lane<'_> {
    /// The row of a request that was due and never issued.
    pub(super) fn unissued(&self, step: u16, due: u64, outcome: Outcome) -> SampleRow {
        SampleRow {
            due_ns: due as i64,
            sent_ns: -1,
            first_ns: -1,
            done_ns: -1,
            user: NONE,
            connection: NO_CONNECTION,
            step,
            outcome: outcome.code(),
            stream: self.stream,
            ..SampleRow::default()
        }
    }
}

impl<C: Clock, N: Net, S: Script> Worker<'_, C, N, S> {
    /// Ends the measured part at `self.end`: counts what waits, censors what is in flight.
    pub(super) fn close_measured_part(&mut self) {
        // Intervals that ended before must not get what is recorded now.
        self.recorder.cross(self.end - u64::from(self.end > 0));
        self.is_closing = true;
        for index in 0..self.lanes.len() {
            self.close_paces(index);
            self.close_users(index);
            self.close_arrivals(index);
            self.lanes[index].queue.clear();
        }
        self.ready.clear();
    }

    /// Iterations of paced users that were due while they were at an earlier one.
    fn close_paces(&mut self, index: usize) {
        let lane = &self.lanes[index];
        if !lane
            .timetable
            .as_ref()
            .is_some_and(|table| table.is_paced())
        {
            return;
        }
        for at in 0..lane.users.len() {
            loop {
                let lane = &mut self.lanes[index];
                let user = &mut lane.users[at];
                let Some(timetable) = &mut lane.timetable else {
                    break;
                };
                if user.phase == Phase::Absent || user.iterations <= 1 {
                    break;
                }
                let due = timetable
                    .of(at as u32)
                    .next(user.number, self.end, &mut lane.random);
                if due.is_none_or(|due| due >= self.end) {
                    break;
                }
                let scenario = lane.program.draw_scenario(&mut lane.random);
                let scenario = &lane.program.scenarios[scenario];
                // As for an arrival: without a record it would not have become due.
                let has_records = |feeding: &mut Box<Feeding>| feeding.claim(scenario);
                if !lane.feeding.as_mut().is_none_or(has_records) || !lane.quota.claim() {
                    break;
                }
                if user.iterations != u64::MAX {
                    user.iterations -= 1;
                }
                let (stream, number) = (lane.stream, user.number);
                let (step, begins) = (scenario.first_step, scenario.begins);
                let seq = lane.quota.number();
                self.recorder.due(stream, step);
                let due = due.unwrap_or(self.end);
                self.leave_waiting(index, (step, begins), due, seq, number);
            }
        }
    }

    fn close_users(&mut self, index: usize) {
        let end = self.end;
        for at in 0..self.lanes[index].users.len() {
            let lane = &mut self.lanes[index];
            if lane.open_runs.is_some() {
                let (lane, user) = (index as u8, at as u32);
                self.leave_groups(UserRef { lane, user }, end);
            }
            let lane = &mut self.lanes[index];
            let (stream, user) = (lane.stream, &mut lane.users[at]);
            let place = (user.step, user.at);
            match user.phase {
                Phase::Absent => {}
                Phase::Connecting | Phase::InFlight => {
                    let (due, sent) = (user.due, Some(user.sent));
                    self.recorder.censored(stream, user.step, due, sent, end);
                    self.censor_groups(index, place.1, due, sent);
                }
                Phase::Pausing => {
                    user.phase = Phase::Absent;
                    let (step, due, number) = (user.step, user.due, user.number);
                    lane.leave(at as u32);
                    // Due within the measured part, and this thread came too late to see it.
                    if due < end && lane.quota.claim() {
                        self.recorder.due(stream, step);
                        let seq = self.lanes[index].quota.number();
                        self.leave_waiting(index, place, due, seq, number);
                    }
                }
                Phase::Asking | Phase::Queueing => {
                    user.phase = Phase::Absent;
                    let (due, seq, number) = (user.due, user.seq, user.number);
                    lane.leave(at as u32);
                    self.leave_waiting(index, place, due, seq, number);
                }
            }
        }
    }

    fn close_arrivals(&mut self, index: usize) {
        let last = self.end.saturating_sub(1);
        while let Some(arrival) = self.lanes[index].arrive(last) {
            let lane = &mut self.lanes[index];
            let step = lane.program.scenarios[arrival.scenario].first_step;
            self.recorder.due(lane.stream, step);
            let drops = lane
                .open
                .as_ref()
                .is_some_and(|open| open.overflow == Overflow::Drop);
            if drops && !lane.has_place() {
                lane.take_backlog();
                let seq = lane.quota.number();
                let row = SampleRow {
                    seq,
                    ..lane.unissued(step, arrival.due, Outcome::Dropped)
                };
                self.recorder.dropped(lane.stream, step);
                self.recorder.sample(row, last);
            }
        }
        while let Some(arrival) = self.lanes[index].take_backlog() {
            let lane = &mut self.lanes[index];
            let scenario = &lane.program.scenarios[arrival.scenario];
            let place = (scenario.first_step, scenario.begins);
            let seq = lane.quota.number();
            self.leave_waiting(index, place, arrival.due, seq, NONE);
        }
    }

    /// Counts one request that was due and will never be issued; `place` is its step and its position in the flow.
    fn leave_waiting(&mut self, index: usize, place: (u16, u16), due: u64, seq: u64, user: u32) {
        let (step, at) = place;
        self.censor_groups(index, at, due, None);
        let lane = &self.lanes[index];
        self.recorder
            .censored(lane.stream, step, due, None, self.end);
        self.left[self.first_step[lane.stream as usize] as usize + step as usize].waiting += 1;
        if self.recorder.has_logs() {
            let row = SampleRow {
                seq,
                user,
                ..lane.unissued(step, due, Outcome::Waiting)
            };
            self.recorder.sample(row, self.end.saturating_sub(1));
        }
    }

    /// Ends the run: counts what is still in flight, closes every connection, hands everything over.
    pub fn finish(mut self) -> WorkerEnd {
        let now = self.now();
        for index in 0..self.lanes.len() {
            for at in 0..self.lanes[index].users.len() {
                self.leave_in_flight(index, at, now);
            }
        }
        let open: Vec<u32> = self.connections.all().collect();
        for index in open {
            self.close(index, ClosedBy::Nobody, Outcome::Ok, now);
        }
        self.note_checks();
        let times = self.clock.thread_times();
        let engine = self.recorder.engine();
        engine.cpu_ns += times.cpu_ns.saturating_sub(self.times.cpu_ns);
        engine.runq_wait_ns += times.runq_wait_ns.saturating_sub(self.times.runq_wait_ns);
        let mut checks = vec![Vec::new(); self.first_step.len()];
        for lane in &mut self.lanes {
            checks[lane.stream as usize] = std::mem::take(&mut lane.judging.tallies);
        }
        let used = |lane: &Lane| {
            let feeding = lane.feeding.as_ref()?;
            Some((lane.stream, feeding.used().collect()))
        };
        let feeds = self.lanes.iter().filter_map(used).collect();
        WorkerEnd {
            checks,
            feeds,
            negotiated: self.net.negotiated(),
            left: self.left,
            remains: self.recorder.finish(now),
            at: now,
            buffers_lost: self.store.lent(),
        }
    }

    fn leave_in_flight(&mut self, index: usize, at: usize, now: u64) {
        let lane = &self.lanes[index];
        let user = &lane.users[at];
        if !user.is_in_flight() {
            return;
        }
        let step = self.first_step[lane.stream as usize] as usize + user.step as usize;
        self.left[step].in_flight += 1;
        let connection = Some(user.connection).filter(|connection| *connection != NONE);
        let who = UserRef {
            lane: index as u8,
            user: at as u32,
        };
        let end = End::failure(Outcome::InFlight, "", 0);
        let unfinished = self.account(who, connection, 0, end, now);
        self.recorder.unfinished(&unfinished);
    }
}
