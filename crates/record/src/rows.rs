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
    /// k: the row stands for 2^k connections.
    pub thinned: u64,
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
    /// Appends one row.
    #[inline]
    pub fn push(&mut self, row: &(impl IntoBytes + Immutable)) {
        if self.filling.is_none() {
            self.filling = self.empty.take();
        }
        let Some(chunk) = &mut self.filling else {
            self.lost += 1;
            return;
        };
        chunk.bytes.extend_from_slice(row.as_bytes());
        chunk.rows += 1;
        if chunk.rows as usize == CHUNK_ROWS {
            self.hand_over();
        }
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

/// Highest exponent: one row stands for 2^40 requests.
const MOST_THINNED: usize = 40;

/// Choice of the rows of one stream that a thread keeps: those whose hash ends in `k` zero bits.
///
/// k begins at 0 and grows by one whenever more rows than the bound would have k zero bits. Rows written before
/// stay in the log; a reader leaves out those without the last k, and what it has then is a uniform choice.
#[derive(Clone, Debug)]
pub struct Thinning {
    k: usize,
    bound: u64,
    /// Rows whose hash ends in at least `k` zero bits.
    kept: u64,
    /// Rows so far by the zero bits at the end of their hash.
    by_zeros: [u64; MOST_THINNED + 1],
}

impl Thinning {
    /// Keeps every row up to `bound`; of bound 0 none.
    pub fn new(bound: u64) -> Self {
        Thinning {
            k: 0,
            bound,
            kept: 0,
            by_zeros: [0; MOST_THINNED + 1],
        }
    }

    /// The exponent of the row with this number in its stream: it stands for 2^k. None: it is not kept.
    #[inline]
    pub fn keeps(&mut self, number: u64) -> Option<u8> {
        let zeros = (hashed(number).trailing_zeros() as usize).min(MOST_THINNED);
        if zeros < self.k || self.bound == 0 {
            return None;
        }
        self.by_zeros[zeros] += 1;
        self.kept += 1;
        while self.kept > self.bound && self.k < MOST_THINNED {
            self.kept -= self.by_zeros[self.k];
            self.k += 1;
        }
        (zeros >= self.k).then_some(self.k as u8)
    }
}

/// The hash by which rows are thinned: the first two steps of SplitMix64 (Steele, Lea and Flood 2014).
#[inline]
pub fn hashed(number: u64) -> u64 {
    let mut hash = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ (hash >> 27)
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
            thinned: 4,
        };

        let bytes = sample.as_bytes();
        let row = connection.as_bytes();

        assert_eq!(bytes[24..32], [0xff; 8]);
        assert_eq!((bytes[40], bytes[48], bytes[52], bytes[56]), (6, 8, 9, 10));
        assert_eq!(bytes[58..64], [200, 0, 19, 2, 3, 5]);
        assert_eq!((row[0], row[4], row[8], row[24], row[32]), (1, 2, 3, 5, 6));
        assert_eq!(row[36..41], [2, 1, 11, 1, 7]);
        assert_eq!((row[48], row[56], row.len()), (9, 4, 64));
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

    /// Numbers that a reader keeps of `total` rows under a bound, and the last exponent.
    fn read(bound: u64, total: u64) -> (Vec<u64>, u8) {
        let mut thinning = Thinning::new(bound);
        let written: Vec<(u64, u8)> = (0..total)
            .filter_map(|number| Some((number, thinning.keeps(number)?)))
            .collect();
        let k = written.iter().map(|(_, k)| *k).max().unwrap_or(0);
        let mut kept: Vec<u64> = written.into_iter().map(|(number, _)| number).collect();
        kept.retain(|number| hashed(*number).trailing_zeros() >= u32::from(k));
        (kept, k)
    }

    #[test]
    fn every_row_is_kept_up_to_the_bound() {
        assert_eq!(read(1_000, 1_000), ((0..1_000).collect(), 0));
    }

    #[test]
    fn beyond_the_bound_the_rows_are_exactly_those_whose_hash_ends_in_k_zeros() {
        for (bound, total) in [(1_000, 1_001), (1_000, 40_000), (20_000, 1_000_000)] {
            let (kept, k) = read(bound, total);

            let whole = (0..total)
                .filter(|number| hashed(*number) % (1 << k) == 0)
                .collect::<Vec<u64>>();
            assert_eq!(kept, whole, "{bound} of {total}");
            assert!(kept.len() as u64 <= bound, "{} of {bound}", kept.len());
            let without_last = (0..total).filter(|number| hashed(*number) % (1 << (k - 1)) == 0);
            assert!(
                without_last.count() as u64 > bound,
                "{bound} of {total}: k is too high"
            );
        }
    }

    #[test]
    fn a_bound_of_0_keeps_nothing() {
        assert_eq!(read(0, 1_000), (vec![], 0));
    }

    #[test]
    fn the_log_as_written_grows_with_the_logarithm_of_the_requests() {
        let mut thinning = Thinning::new(1_000);

        let written = (0..1_000_000u64).filter(|number| thinning.keeps(*number).is_some());

        // Each of 10 doublings beyond the bound adds half of it: 1,000 + 10 * 500, and chance.
        assert!((5_500..6_500).contains(&written.count()));
    }
}
