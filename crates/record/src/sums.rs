//! `sums.bin`: every interval of every thread before it is added to others, and the end of the run; from these files of
//! several machines one result is made. Written whole while a load runs, read piece by piece.
//!
//! Chunks have a head of 16 bytes: magic, kind, CRC-32 of kind and payload, length of the payload, which is in the format
//! of postcard.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::interval::{Shape, CLASSES, COURSES, STATUSES};
use super::merge::{IntervalSum, TimingSum};

const MAGIC: &[u8; 4] = b"LLM1";
const HEAD: usize = 16;
/// Bytes that a reader takes at once; there may be a reader for each of many machines.
const READ: usize = 64 << 10;
/// No chunk is longer.
const LONGEST: usize = 256 << 20;

/// Kind of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// [`Begin`]; the first chunk.
    Begin = 0,
    /// Thread and [`IntervalSum`].
    Interval = 1,
    /// The end of the run; the last chunk.
    End = 2,
}

/// Shape of the intervals of a file.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Begin {
    /// Counts of the plan.
    pub shape: Shape,
    /// Threads of the machine.
    pub threads: u32,
}

/// A chunk as it is written.
pub(super) fn chunk(kind: Kind, content: &impl Serialize) -> Vec<u8> {
    let payload = postcard::to_allocvec(content).unwrap_or_default(); // memory does not refuse
    let kind = (kind as u32).to_le_bytes();
    let mut chunk = Vec::with_capacity(HEAD + payload.len());
    chunk.extend_from_slice(MAGIC);
    chunk.extend_from_slice(&kind);
    chunk.extend_from_slice(&crc_of(&kind, &payload).to_le_bytes());
    chunk.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    chunk.extend_from_slice(&payload);
    chunk
}

fn crc_of(kind: &[u8], payload: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(kind);
    crc.update(payload);
    crc.finalize()
}

/// Next part of a file whose last chunk holds an `E`.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // taken apart at once
pub enum Next<E> {
    /// An interval of a thread.
    Interval(usize, IntervalSum),
    /// The end of the run, and of the file.
    End(E),
    /// The file ends before the run did.
    Torn,
}

/// Reads one file from its begin to its end. The file is open only while bytes are taken from it, so there may be more
/// readers than open files.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    /// Place in the file of the first byte that was not taken yet.
    at: u64,
    taken: Vec<u8>,
    /// First byte of `taken` that was not used.
    used: usize,
    begin: Option<Begin>,
}

impl Reader {
    /// A reader of `sums.bin` in this folder, which was written for a plan of this shape.
    pub fn open(folder: &Path, shape: Shape) -> io::Result<Reader> {
        let mut reader = Reader {
            path: folder.join("sums.bin"),
            at: 0,
            taken: Vec::new(),
            used: 0,
            begin: None,
        };
        if let Some((kind, payload)) = reader.chunk()? {
            let begin: Begin = reader.decoded(payload)?;
            if kind != Kind::Begin as u32 || begin.shape != shape {
                return Err(reader.fault("it was written for another plan"));
            }
            reader.begin = Some(begin);
        }
        Ok(reader)
    }

    /// Threads of the machine; 0: it sent nothing.
    pub fn threads(&self) -> usize {
        self.begin.map_or(0, |begin| begin.threads as usize)
    }

    /// The next interval, or the end.
    pub fn read<E: DeserializeOwned>(&mut self) -> io::Result<Next<E>> {
        let Some((begin, (kind, payload))) = self.begin.zip(self.chunk()?) else {
            return Ok(Next::Torn);
        };
        if kind == Kind::End as u32 {
            return Ok(Next::End(self.decoded(payload)?));
        }
        let (thread, sum): (u32, IntervalSum) = self.decoded(payload)?;
        if thread >= begin.threads || !fits(&sum, &begin.shape) {
            return Err(self.fault("an interval is not of its plan"));
        }
        Ok(Next::Interval(thread as usize, sum))
    }

    /// Kind of the next chunk, and place of its payload in `taken`; none: the file ends before it does.
    fn chunk(&mut self) -> io::Result<Option<(u32, Range<usize>)>> {
        if !self.has(HEAD)? {
            return Ok(None);
        }
        let head = &self.taken[self.used..self.used + HEAD];
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (kind, crc, length) = (word(4), word(8), word(12) as usize);
        if &head[..4] != MAGIC || length > LONGEST {
            return Err(self.fault("no chunk of counts begins there"));
        }
        if !self.has(HEAD + length)? {
            return Ok(None);
        }
        let payload = self.used + HEAD..self.used + HEAD + length;
        let kind_bytes = &self.taken[self.used + 4..self.used + 8];
        if crc_of(kind_bytes, &self.taken[payload.clone()]) != crc {
            return Err(self.fault("a chunk is damaged"));
        }
        self.used = payload.end;
        Ok(Some((kind, payload)))
    }

    /// Makes so many bytes available, if the file has them.
    fn has(&mut self, bytes: usize) -> io::Result<bool> {
        if self.taken.len() - self.used < bytes {
            self.taken.drain(..self.used);
            self.used = 0;
            let wanted = READ.max(bytes) - self.taken.len();
            let mut file = File::open(&self.path).map_err(|error| self.named(&error))?;
            let read = file
                .seek(SeekFrom::Start(self.at))
                .and_then(|_| file.take(wanted as u64).read_to_end(&mut self.taken));
            self.at += read.map_err(|error| self.named(&error))? as u64;
        }
        Ok(self.taken.len() - self.used >= bytes)
    }

    fn decoded<T: DeserializeOwned>(&self, payload: Range<usize>) -> io::Result<T> {
        postcard::from_bytes(&self.taken[payload])
            .map_err(|_| self.fault("a chunk is not of this version"))
    }

    fn fault(&self, what: &str) -> io::Error {
        let at = self.at - (self.taken.len() - self.used) as u64;
        let what = format!("{}: {what} (byte {at})", self.path.display());
        io::Error::new(io::ErrorKind::InvalidData, what)
    }

    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
    }
}

/// True if nothing of an interval lies beyond its shape.
fn fits(sum: &IntervalSum, shape: &Shape) -> bool {
    let lengths = [
        (sum.streams.len(), shape.streams),
        (sum.steps.len(), shape.steps),
        (sum.cells.len(), shape.steps * CLASSES),
        (sum.phases.len(), shape.steps),
        (sum.groups.len(), shape.groups),
        (sum.group_cells.len(), shape.groups * COURSES),
        (sum.checks.len(), shape.checks),
        (sum.threads.len(), 1),
    ];
    lengths.iter().all(|(found, planned)| found == planned)
        && sum.start < sum.end
        && sum
            .streams
            .iter()
            .all(|stream| stream.status.len() == STATUSES)
        && sum.timings().all(TimingSum::is_sound)
}

/// Counts by place, most of them 0: their number, and those that are not 0 as [`Packed`] has them.
pub(super) mod sparse {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::super::packed::Packed;

    #[derive(Deserialize, Serialize)]
    struct Sparse {
        length: u16,
        counts: Packed,
    }

    pub fn serialize<S: Serializer>(counts: &impl AsRef<[u64]>, to: S) -> Result<S::Ok, S::Error> {
        let counts = counts.as_ref();
        let pairs: Vec<(u32, u64)> = (0..)
            .zip(counts.iter().copied())
            .filter(|(_, count)| *count > 0)
            .collect();
        Sparse {
            length: counts.len() as u16,
            counts: Packed::of(&pairs),
        }
        .serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>, T: TryFrom<Vec<u64>>>(
        from: D,
    ) -> Result<T, D::Error> {
        let Sparse { length, counts } = Sparse::deserialize(from)?;
        if !counts.is_sound(length.into()) {
            return Err(D::Error::custom("too far"));
        }
        let mut dense = vec![0; length.into()];
        counts.for_each(|place, count| dense[place as usize] = count);
        T::try_from(dense).map_err(|_| D::Error::custom("another length"))
    }
}
