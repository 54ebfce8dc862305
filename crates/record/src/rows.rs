//! Rows of the sample and connection logs, and the buffers that carry them from worker to collector.
//!
//! The layout is that of docs/reference/record.md. A worker fills preallocated chunks; when none is
//! free its rows are counted as lost, and counting goes on elsewhere: a slow disk never slows the load.

use zerocopy::{Immutable, IntoBytes};

use super::ring::{ring, Giver, Taker};

#[cfg(target_endian = "big")]
compile_error!("rows are written as they lie in memory, and the record is little-endian");

/// Bytes of a sample row.
pub const SAMPLE_BYTES: usize = size_of::<SampleRow>();
/// Bytes of a connection row.
pub const CONNECTION_BYTES: usize = size_of::<ConnectionRow>();
/// Rows of a full chunk.
pub const CHUNK_ROWS: usize = 4096;
/// "No connection" in a sample row.
pub const NO_CONNECTION: u32 = u32::MAX;
/// Flag: first request of its connection.
pub const FIRST_ON_CONNECTION: u8 = 1;
/// Flag: completed in the warm-up.
pub const IN_WARMUP: u8 = 2;
/// Flag: completed after the end of the measured part.
pub const AFTER_END: u8 = 4;

/// One request, laid out as in the file. Times are nanoseconds since `t0`; -1: never happened.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Immutable, IntoBytes, PartialEq)]
#[repr(C)]
pub struct SampleRow {
    /// Number of the request in its stream.
    pub seq: u64,
    /// Time at which the workload wanted it sent.
    pub due_ns: i64,
    /// Time at which it took a connection or started one.
    pub sent_ns: i64,
    /// First byte of the answer.
    pub first_ns: i64,
    /// Last byte, or the failure.
    pub done_ns: i64,
    /// Number of the user in its stream.
    pub user: u32,
    /// Number of the connection in its stream.
    pub connection: u32,
    /// Head and body as received.
    pub wire_bytes: u32,
    /// Decoded body.
    pub body_bytes: u32,
    /// Index into the stream's steps.
    pub step: u16,
    /// 0: none.
    pub status: u16,
    /// Code of the outcome.
    pub outcome: u8,
    /// Index into the plan's streams.
    pub stream: u8,
    /// k: the row stands for 2^k requests.
    pub thinned: u8,
    /// Bits above.
    pub flags: u8,
}

/// One connection, laid out as in the file.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Immutable, IntoBytes, PartialEq)]
#[repr(C)]
pub struct ConnectionRow {
    /// Number of the connection in its stream.
    pub connection: u32,
    /// User that opened it.
    pub user: u32,
    /// Time at which connecting began.
    pub opened_ns: i64,
    /// Time at which it was established.
    pub established_ns: i64,
    /// Time at which it ended.
    pub closed_ns: i64,
    /// Answers that came over it.
    pub requests: u32,
    /// 0: open at the end, 1: client, 2: server, 3: error.
    pub closed_by: u8,
    /// Index into the plan's streams.
    pub stream: u8,
    /// Outcome of connecting: 0 or an error class.
    pub outcome: u8,
    /// True if its TLS session was resumed.
    pub is_resumed: bool,
    /// Bytes that came.
    pub bytes_in: u64,
    /// The TLS handshake, which lies before `established_ns`; -1: none.
    pub tls_ns: i64,
}

/// Rows of one kind on their way to the file.
pub struct Chunk {
    /// Number of rows.
    pub rows: u32,
    /// Bytes of the rows.
    pub bytes: Vec<u8>,
}

/// The worker's end of one log.
pub struct RowLog {
    filling: Option<Box<Chunk>>,
    full: Giver<Chunk>,
    empty: Taker<Chunk>,
    /// Rows for which no chunk was free.
    pub lost: u64,
}

/// The collector's end of one log.
pub struct RowSource {
    full: Taker<Chunk>,
    empty: Giver<Chunk>,
}

/// A log of `row_bytes` rows with `chunks` chunks of [`CHUNK_ROWS`].
pub fn row_log(row_bytes: usize, chunks: usize) -> (RowLog, RowSource) {
    let (full_in, full_out) = ring(chunks);
    let (mut empty_in, empty_out) = ring(chunks);
    for _ in 0..chunks {
        let chunk = Box::new(Chunk {
            rows: 0,
            bytes: Vec::with_capacity(row_bytes * CHUNK_ROWS),
        });
        let refused = empty_in.give(chunk).is_err();
        debug_assert!(!refused, "the ring has a place for every chunk");
    }
    let log = RowLog {
        filling: None,
        full: full_in,
        empty: empty_out,
        lost: 0,
    };
    (
        log,
        RowSource {
            full: full_out,
            empty: empty_in,
        },
    )
}

impl RowLog {
    /// Appends one row; says whether a chunk became full by it.
    #[inline]
    pub fn push(&mut self, row: &(impl IntoBytes + Immutable)) -> bool {
        if self.filling.is_none() {
            self.filling = self.empty.take();
        }
        let Some(chunk) = &mut self.filling else {
            self.lost += 1;
            return false;
        };
        chunk.bytes.extend_from_slice(row.as_bytes());
        chunk.rows += 1;
        if chunk.rows as usize == CHUNK_ROWS {
            self.hand_over();
            return true;
        }
        false
    }

    /// Gives the rows so far to the collector.
    pub fn hand_over(&mut self) {
        if let Some(chunk) = self.filling.take().filter(|chunk| chunk.rows > 0) {
            if let Err(back) = self.full.give(chunk) {
                // There are as many places as chunks, so this cannot happen; if it does, it is counted.
                self.lost += u64::from(back.rows);
            }
        }
    }
}

impl RowSource {
    /// Calls `write` with every chunk that is full and gives it back empty.
    pub fn drain(&mut self, mut write: impl FnMut(&Chunk)) {
        while let Some(mut chunk) = self.full.take() {
            write(&chunk);
            chunk.rows = 0;
            chunk.bytes.clear();
            let _ = self.empty.give(chunk); // as many places as chunks
        }
    }
}

/// A pace is that of this part of the bound,
const PACE_ROWS: u64 = 64;
/// or of this part of the run.
const PACE_TIME: u64 = 128;

/// Choice of rows that keeps a log under its bound: rows whose hash has `k` zero bits.
#[derive(Clone, Copy, Debug)]
pub struct Thinning {
    k: u8,
    kept: u64,
    bound: u64,
    /// Rows and time at the last look.
    looked: (u64, u64),
}

impl Thinning {
    /// Keeps everything while `bound` rows are not in sight.
    pub fn new(bound: u64) -> Self {
        Thinning {
            k: 0,
            kept: 0,
            bound,
            looked: (0, 0),
        }
    }

    /// The exponent now: a row stands for 2^k requests.
    pub fn k(&self) -> u8 {
        self.k
    }

    /// True if the row of request `seq` is kept.
    #[inline]
    pub fn keeps(&mut self, seq: u64) -> bool {
        let mut hash = seq.wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash ^= hash >> 27;
        let kept = hash & ((1 << self.k) - 1) == 0 && self.kept < self.bound;
        self.kept += u64::from(kept);
        kept
    }

    /// Looks ahead after a chunk: raises k when the bound would be passed before `end` at the pace since
    /// the last look; without an end at 1/2, 3/4, 7/8 ... of the bound.
    ///
    /// A pace needs a stretch that is long for the run or holds a good part of the bound: two looks in one turn
    /// of the loop see the answers of one batch and no time.
    pub fn look(&mut self, now: u64, end: Option<u64>) {
        let room = self.bound.saturating_sub(self.kept);
        let raises = match end {
            None => room <= self.bound >> (u32::from(self.k) + 1).min(63),
            Some(end) => {
                let (rows, at) = self.looked;
                let (rows, lasted) = (self.kept - rows, now.saturating_sub(at));
                if rows < self.bound / PACE_ROWS && lasted <= end / PACE_TIME {
                    return;
                }
                self.looked = (self.kept, now);
                let pace = rows as f64 / lasted.max(1) as f64;
                pace * end.saturating_sub(now) as f64 > room as f64
            }
        };
        if raises && self.k < 40 {
            self.k += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_laid_out_as_the_record_says() {
        let sample = SampleRow {
            seq: 1,
            due_ns: 2,
            sent_ns: 3,
            first_ns: -1,
            done_ns: 5,
            user: 6,
            connection: NO_CONNECTION,
            wire_bytes: 8,
            body_bytes: 9,
            step: 10,
            status: 200,
            outcome: 19,
            stream: 2,
            thinned: 3,
            flags: 5,
        };
        let connection = ConnectionRow {
            connection: 1,
            user: 2,
            opened_ns: 3,
            established_ns: -1,
            closed_ns: 5,
            requests: 6,
            closed_by: 2,
            stream: 1,
            outcome: 11,
            is_resumed: true,
            bytes_in: 7,
            tls_ns: 9,
        };

        let bytes = sample.as_bytes();
        let row = connection.as_bytes();

        assert_eq!(bytes[24..32], [0xff; 8]);
        assert_eq!((bytes[40], bytes[48], bytes[52], bytes[56]), (6, 8, 9, 10));
        assert_eq!(bytes[58..64], [200, 0, 19, 2, 3, 5]);
        assert_eq!((row[0], row[4], row[8], row[24], row[32]), (1, 2, 3, 5, 6));
        assert_eq!(row[36..41], [2, 1, 11, 1, 7]);
        assert_eq!(row[48..50], [9, 0]);
    }

    #[test]
    fn a_log_without_free_chunks_counts_lost_rows_and_goes_on_when_one_comes_back() {
        let (mut log, mut source) = row_log(SAMPLE_BYTES, 1);
        let row = SampleRow::default();
        for _ in 0..CHUNK_ROWS + 5 {
            log.push(&row);
        }
        let mut written = 0;

        source.drain(|chunk| written += chunk.rows);
        log.push(&row);
        log.hand_over();
        source.drain(|chunk| written += chunk.rows);

        assert_eq!((written as usize, log.lost), (CHUNK_ROWS + 1, 5));
    }

    #[test]
    fn thinning_keeps_under_the_bound_at_a_steady_pace_and_spreads_over_the_run() {
        let (bound, total) = (20_000, 1_000_000u64);
        let mut thinning = Thinning::new(bound);
        let (mut kept, mut late) = (0, 0);

        for seq in 0..total {
            if thinning.keeps(seq) {
                kept += 1;
                late += u64::from(seq > total * 3 / 4);
                if kept % 512 == 0 {
                    thinning.look(seq * 1_000, Some(total * 1_000));
                }
            }
        }

        assert!(kept <= bound && kept > bound / 4, "{kept}");
        assert!(
            late > kept / 10,
            "the last quarter of the run has {late} of {kept} rows"
        );
    }

    #[test]
    fn two_looks_in_one_turn_do_not_thin_a_log_with_room_for_every_row() {
        // 20,000 rows a second for a minute are a quarter of the bound.
        let mut thinning = Thinning::new(5_000_000);
        for seq in 0..4_096u64 {
            thinning.keeps(seq);
        }
        thinning.look(204_800_000, Some(60_000_000_000));
        (4_096..4_112).for_each(|seq| assert!(thinning.keeps(seq)));

        thinning.look(204_790_000, Some(60_000_000_000)); // the batch began before its last answer ended
        thinning.look(204_801_000, Some(60_000_000_000));

        assert_eq!(thinning.k(), 0);
    }

    #[test]
    fn thinning_without_a_known_end_never_passes_the_bound() {
        let mut thinning = Thinning::new(1_000);
        let mut kept = 0;

        for seq in 0..1_000_000u64 {
            if thinning.keeps(seq) {
                kept += 1;
                if kept % 16 == 0 {
                    thinning.look(seq, None);
                }
            }
        }

        assert!((500..=1_000).contains(&kept), "{kept}");
    }
}
