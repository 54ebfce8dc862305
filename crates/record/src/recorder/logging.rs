//! Rows of the sample and connection logs, thinned by their bound.

use loadlens_base::Outcome;

use crate::grid::Phase;
use crate::rows::{
    ConnectionRow, RowLog, SampleRow, Thinning, AFTER_END, FIRST_ON_CONNECTION, IN_WARMUP,
};

use super::{Ended, Recorder};

/// Sample and connection logs of one thread.
pub struct RowLogs {
    /// Requests.
    pub samples: RowLog,
    /// Connections.
    pub connections: RowLog,
    /// By stream: the requests that have a row.
    pub kept_samples: Vec<Thinning>,
    /// By stream: the connections that have a row.
    pub kept_connections: Vec<Thinning>,
}

impl Recorder {
    #[inline]
    pub(super) fn log_sample(&mut self, end: &Ended) {
        self.log_kept(end.stream, end.seq, || SampleRow {
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
        });
    }

    /// A request had not ended when the run did.
    pub fn unfinished(&mut self, end: &Ended) {
        self.log_sample(end);
    }

    /// Writes the row of a request that was never issued.
    pub fn sample(&mut self, row: SampleRow) {
        self.log_kept(row.stream, row.seq, || row);
    }

    /// Writes the row of a request, if it is one of those that are kept.
    #[inline]
    fn log_kept(&mut self, stream: u8, seq: u64, row: impl FnOnce() -> SampleRow) {
        let Some(logs) = &mut self.logs else { return };
        let Some(thinned) = logs.kept_samples[stream as usize].keeps(seq) else {
            return;
        };
        let row = row();
        logs.samples.push(&SampleRow {
            thinned,
            flags: row.flags
                | match self.phase {
                    Phase::Warmup => IN_WARMUP,
                    Phase::Measure => 0,
                    Phase::Drain => AFTER_END,
                },
            ..row
        });
    }

    /// Writes the row of a connection, if it is one of those that are kept.
    pub(super) fn log_connection(&mut self, row: &ConnectionRow) {
        let Some(logs) = &mut self.logs else { return };
        let kept = &mut logs.kept_connections[row.stream as usize];
        if let Some(thinned) = kept.keeps(u64::from(row.connection)) {
            logs.connections.push(&ConnectionRow {
                thinned: u64::from(thinned),
                ..*row
            });
        }
    }

    /// Hands over the rows so far, so that a killed run has lost little.
    pub fn hand_over_rows(&mut self) {
        if let Some(logs) = &mut self.logs {
            logs.samples.hand_over();
            logs.connections.hand_over();
        }
    }

    /// True if rows are wanted.
    pub fn has_logs(&self) -> bool {
        self.logs.is_some()
    }
}
