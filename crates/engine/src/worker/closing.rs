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
use crate::feed_cursor::FeedCursors;
use crate::script::Script;
use crate::user::{Phase, NONE};

use super::exchange::{ClosedBy, End};
use super::shard::StreamShard;
use super::timers::UserRef;
use super::{Worker, WorkerEnd};

impl StreamShard<'_> {
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
        for index in 0..self.shards.len() {
            self.close_paces(index);
            self.close_users(index);
            self.close_arrivals(index);
            self.shards[index].pool.queue.clear();
        }
        self.ready.clear();
    }

    /// Iterations of paced users that were due while they were at an earlier one.
    fn close_paces(&mut self, index: usize) {
        let shard = &self.shards[index];
        let timetable = shard.timetable.as_ref();
        if !timetable.is_some_and(|table| table.is_paced()) {
            return;
        }
        for at in 0..shard.users.len() {
            loop {
                let shard = &mut self.shards[index];
                let user = &mut shard.users[at];
                let Some(timetable) = &mut shard.timetable else {
                    break;
                };
                if user.phase == Phase::Absent || user.iterations <= 1 {
                    break;
                }
                let due = timetable
                    .of(at as u32)
                    .next(user.number, self.end, &mut shard.random);
                if due.is_none_or(|due| due >= self.end) {
                    break;
                }
                let scenario = shard.program.draw_scenario(&mut shard.random);
                let scenario = &shard.program.scenarios[scenario];
                // As for an arrival: without a record it would not have become due.
                let has_records =
                    |feed_cursors: &mut Box<FeedCursors>| feed_cursors.claim(scenario);
                if !shard.feed_cursors.as_mut().is_none_or(has_records) || !shard.quota.claim() {
                    break;
                }
                if user.iterations != u64::MAX {
                    user.iterations -= 1;
                }
                let (stream, number) = (shard.stream, user.number);
                let (step, begins) = (scenario.first_step, scenario.begins);
                let seq = shard.quota.number();
                self.recorder.due(stream, step);
                let due = due.unwrap_or(self.end);
                self.leave_waiting(index, (step, begins), due, seq, number);
            }
        }
    }

    fn close_users(&mut self, index: usize) {
        let end = self.end;
        for at in 0..self.shards[index].users.len() {
            let shard = &mut self.shards[index];
            if shard.open_runs.is_some() {
                self.leave_groups(UserRef::new(index, at as u32), end);
            }
            let shard = &mut self.shards[index];
            let (stream, user) = (shard.stream, &mut shard.users[at]);
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
                    shard.leave(at as u32);
                    // Due within the measured part, and this thread came too late to see it.
                    if due < end && shard.quota.claim() {
                        self.recorder.due(stream, step);
                        let seq = self.shards[index].quota.number();
                        self.leave_waiting(index, place, due, seq, number);
                    }
                }
                Phase::Asking | Phase::Queueing => {
                    user.phase = Phase::Absent;
                    let (due, seq, number) = (user.due, user.seq, user.number);
                    shard.leave(at as u32);
                    self.leave_waiting(index, place, due, seq, number);
                }
            }
        }
    }

    fn close_arrivals(&mut self, index: usize) {
        let last = self.end.saturating_sub(1);
        while let Some(arrival) = self.shards[index].arrive(last) {
            let shard = &mut self.shards[index];
            let step = shard.program.scenarios[arrival.scenario].first_step;
            self.recorder.due(shard.stream, step);
            let drops = shard
                .open
                .as_ref()
                .is_some_and(|open| open.overflow == Overflow::Drop);
            if drops && !shard.has_place() {
                shard.take_backlog();
                let seq = shard.quota.number();
                let row = SampleRow {
                    seq,
                    ..shard.unissued(step, arrival.due, Outcome::Dropped)
                };
                self.recorder.dropped(shard.stream, step);
                self.recorder.sample(row);
            }
        }
        while let Some(arrival) = self.shards[index].take_backlog() {
            let shard = &mut self.shards[index];
            let scenario = &shard.program.scenarios[arrival.scenario];
            let place = (scenario.first_step, scenario.begins);
            let seq = shard.quota.number();
            self.leave_waiting(index, place, arrival.due, seq, NONE);
        }
    }

    /// Counts one request that was due and will never be issued; `place` is its step and its position in the flow.
    fn leave_waiting(&mut self, index: usize, place: (u16, u16), due: u64, seq: u64, user: u32) {
        let (step, at) = place;
        self.censor_groups(index, at, due, None);
        let shard = &self.shards[index];
        self.recorder
            .censored(shard.stream, step, due, None, self.end);
        self.unfinished[shard.program.first_step + step as usize].waiting += 1;
        if self.recorder.has_logs() {
            let row = SampleRow {
                seq,
                user,
                ..shard.unissued(step, due, Outcome::Waiting)
            };
            self.recorder.sample(row);
        }
    }

    /// Ends the run: counts what is still in flight, closes every connection, hands everything over.
    pub fn finish(mut self) -> (WorkerEnd, S) {
        let now = self.now();
        for index in 0..self.shards.len() {
            for at in 0..self.shards[index].users.len() {
                self.leave_in_flight(index, at, now);
            }
        }
        let open: Vec<u32> = self.connections.all().collect();
        for index in open {
            self.close(index, ClosedBy::Nobody, Outcome::Ok, now);
        }
        self.note_checks();
        self.note_thread_times();
        let mut checks = vec![Vec::new(); self.recorder.streams()];
        for shard in &mut self.shards {
            checks[shard.stream as usize] = std::mem::take(&mut shard.judging.tallies);
        }
        let used = |shard: &StreamShard| {
            let feed_cursors = shard.feed_cursors.as_ref()?;
            Some((shard.stream, feed_cursors.used().collect()))
        };
        let feeds = self.shards.iter().filter_map(used).collect();
        let end = WorkerEnd {
            checks,
            feeds,
            negotiated: self.net.negotiated(),
            unfinished: self.unfinished,
            leftover: self.recorder.finish(now),
            start_late_ns: 0, // only a real thread is late
            at: now,
            buffers_lost: self.store.lent(),
        };
        (end, self.script)
    }

    fn leave_in_flight(&mut self, index: usize, at: usize, now: u64) {
        let shard = &self.shards[index];
        let user = &shard.users[at];
        if !user.is_in_flight() {
            return;
        }
        let step = shard.program.first_step + user.step as usize;
        self.unfinished[step].in_flight += 1;
        let connection = Some(user.connection).filter(|connection| *connection != NONE);
        let who = UserRef::new(index, at as u32);
        let end = End::failure(Outcome::InFlight, "", 0);
        let unfinished = self.account(who, connection, 0, end, now);
        self.recorder.unfinished(&unfinished);
    }
}
