//! Rows of the sample and connection logs, thinned by their bound.

use loadlens_base::Outcome;

use crate::grid::Phase;
use crate::rows::{RowLog, SampleRow, Thinning, AFTER_END, FIRST_ON_CONNECTION, IN_WARMUP};

use super::{Ended, Recorder};

/// Sample and connection logs of one thread.
pub struct RowLogs {
    /// Requests.
    pub samples: RowLog,
    /// Connections.
    pub connections: RowLog,
    /// Bound of the sample log.
    pub thinning: Thinning,
}

impl Recorder {
    pub(super) fn log_sample(&mut self, end: &Ended) {
        let row = SampleRow {
            seq: end.seq,
            due_ns: end.due as i64,
            sent_ns: end.sent as i64,
            first_ns: if end.first == 0 { -1 } else { end.first as i64 },
            done_ns: if end.outcome == Outcome::InFlight {
                -1
            } else {
                end.done as i64
            },
            user: end.user,
            connection: end.connection,
            wire_bytes: u32::try_from(end.wire_bytes).unwrap_or(u32::MAX),
            body_bytes: u32::try_from(end.body_bytes).unwrap_or(u32::MAX),
            step: end.step,
            status: end.status,
            outcome: end.outcome.code(),
            stream: end.stream,
            thinned: 0,
            flags: if end.first_on_connection {
                FIRST_ON_CONNECTION
            } else {
                0
            },
        };
        self.sample(row, end.done);
    }

    /// A request had not ended when the run did.
    pub fn unfinished(&mut self, end: &Ended) {
        if self.logs.is_some() {
            self.log_sample(end);
        }
    }

    /// Writes one row of the sample log; `now` says in which phase the request ended.
    pub fn sample(&mut self, mut row: SampleRow, now: u64) {
        let end = (self.grid.end < u64::MAX).then_some(self.grid.end);
        let Some(logs) = &mut self.logs else { return };
        if !logs.thinning.keeps(row.seq) {
            return;
        }
        row.thinned = logs.thinning.k();
        row.flags |= match self.phase {
            Phase::Warmup => IN_WARMUP,
            Phase::Measure => 0,
            Phase::Drain => AFTER_END,
        };
        if logs.samples.push(&row) {
            logs.thinning.look(now, end);
        }
    }

    /// Hands over the rows so far, so that a killed run has lost little.
    pub fn hand_over_rows(&mut self, now: u64) {
        let end = (self.grid.end < u64::MAX).then_some(self.grid.end);
        if let Some(logs) = &mut self.logs {
            logs.samples.hand_over();
            logs.connections.hand_over();
            logs.thinning.look(now, end);
        }
    }

    /// True if rows are wanted.
    pub fn has_logs(&self) -> bool {
        self.logs.is_some()
    }
}
