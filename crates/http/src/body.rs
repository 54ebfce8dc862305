//! The body of a response, taken apart as its bytes arrive.

use super::response::{Framing, Violation, MAX_HEADERS, MAX_HEAD_BYTES, TOKEN};
use Violation::{Limit, Malformed};

/// The most digits of a chunk size, leading zeros included.
const MAX_SIZE_DIGITS: u32 = 64;
/// The longest chunk extension, in bytes.
const MAX_EXTENSION_BYTES: u32 = 4096;

/// Decodes one body. It holds no bytes, only where it is.
///
/// In chunks only CR LF ends a line: RFC 9112 2.2 lets a recipient take a lone LF in the head, not here.
/// White space after a chunk size is malformed unless an extension follows (7.1.1). Extensions are ignored (7.1.1 MUST)
/// and trailers are checked for form and discarded (7.1.2 MAY).
#[derive(Clone, Copy, Debug)]
pub struct BodyDecoder {
    /// Length and chunk data: bytes to come. Chunk size: its value so far.
    remaining: u64,
    /// Size: digits seen. Extension: its bytes. Trailers: their bytes.
    seen: u32,
    /// Trailer lines.
    trailers: u16,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Length,
    UntilClose,
    Size,
    /// White space after the size: an extension must follow.
    SizeSpace,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    EndLf,
    Done,
}

/// Result of one call of [`BodyDecoder::decode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes of the input that belong to this body; when done, what follows them does not.
    pub consumed: usize,
    /// Bytes of content among them.
    pub body_bytes: u64,
    /// True if the body is complete.
    pub done: bool,
}

/// The connection ended before the body was whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

impl BodyDecoder {
    /// A decoder at the first byte after the head.
    pub fn new(framing: Framing) -> Self {
        let (state, remaining) = match framing {
            Framing::None | Framing::Length(0) => (State::Done, 0),
            Framing::Length(length) => (State::Length, length),
            Framing::Chunked => (State::Size, 0),
            Framing::UntilClose => (State::UntilClose, 0),
        };
        BodyDecoder {
            remaining,
            seen: 0,
            trailers: 0,
            state,
        }
    }

    /// True if the body is complete; true from the start when there is none.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes the next bytes; `sink` gets the content among them, in order, in one or more pieces.
    #[inline]
    pub fn decode(
        &mut self,
        input: &[u8],
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<Decoded, Violation> {
        let (consumed, body_bytes) = match self.state {
            State::Done => (0, 0),
            State::UntilClose => {
                sink(input);
                (input.len(), input.len() as u64)
            }
            State::Length => {
                let content = self.take(input, sink);
                if self.remaining == 0 {
                    self.state = State::Done;
                }
                (content, content as u64)
            }
            _ => self.chunks(input, sink)?,
        };
        Ok(Decoded {
            consumed,
            body_bytes,
            done: self.is_done(),
        })
    }

    /// Returns an error unless the body is complete when the connection ends here.
    pub fn at_eof(self) -> Result<(), Truncated> {
        match self.state {
            State::Done | State::UntilClose => Ok(()),
            _ => Err(Truncated),
        }
    }

    /// Hands on content of the current length or chunk; returns how much there was.
    fn take(&mut self, input: &[u8], sink: &mut impl FnMut(&[u8])) -> usize {
        let length = usize::try_from(self.remaining)
            .unwrap_or(usize::MAX)
            .min(input.len());
        if length > 0 {
            sink(&input[..length]);
            self.remaining -= length as u64;
        }
        length
    }

    fn chunks(
        &mut self,
        input: &[u8],
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<(usize, u64), Violation> {
        let mut at = 0;
        let mut body_bytes = 0;
        while at < input.len() && self.state != State::Done {
            if self.state == State::Data {
                let content = self.take(&input[at..], sink);
                body_bytes += content as u64;
                at += content;
                if self.remaining == 0 {
                    self.state = State::DataCr;
                }
            } else {
                self.state = self.step(input[at])?;
                at += 1;
            }
        }
        Ok((at, body_bytes))
    }

    /// The state after one byte that is not content.
    fn step(&mut self, byte: u8) -> Result<State, Violation> {
        match (self.state, byte) {
            (State::Size, _) => self.size(byte),
            (State::SizeSpace, b' ' | b'\t') | (State::Extension, b'\t' | b' '..=b'~' | 0x80..) => {
                self.seen += 1;
                if self.seen > MAX_EXTENSION_BYTES {
                    return Err(Limit("a chunk extension is over 4 KiB"));
                }
                Ok(self.state)
            }
            (State::SizeSpace, b';') => Ok(State::Extension),
            (State::SizeSpace, _) => {
                Err(Malformed("white space after a chunk size (RFC 9112 7.1.1)"))
            }
            (State::Extension, b'\r') => Ok(State::SizeLf),
            (State::Extension, _) => Err(Malformed(
                "a control byte in a chunk extension (RFC 9112 7.1.1)",
            )),
            (State::SizeLf, b'\n') => {
                self.seen = 0;
                Ok(if self.remaining == 0 {
                    State::TrailerStart
                } else {
                    State::Data
                })
            }
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => Ok(State::Size),
            (State::DataCr | State::DataLf, _) => Err(Malformed(
                "no CR LF after the data of a chunk (RFC 9112 7.1)",
            )),
            (State::SizeLf | State::TrailerLf | State::EndLf, byte) if byte != b'\n' => Err(
                Malformed("a CR without LF in a chunked body (RFC 9112 2.2)"),
            ),
            (State::EndLf, _) => Ok(State::Done),
            (State::TrailerLf, _) => Ok(State::TrailerStart),
            _ => self.trailer(byte),
        }
    }

    fn size(&mut self, byte: u8) -> Result<State, Violation> {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ if self.seen == 0 => {
                return Err(Malformed(
                    "a chunk size that is not hexadecimal (RFC 9112 7.1)",
                ))
            }
            b'\r' => return Ok(State::SizeLf),
            b' ' | b'\t' | b';' => {
                self.seen = 0;
                return Ok(if byte == b';' {
                    State::Extension
                } else {
                    State::SizeSpace
                });
            }
            _ => {
                return Err(Malformed(
                    "a chunk size that is not hexadecimal (RFC 9112 7.1)",
                ))
            }
        };
        if self.remaining >> 60 != 0 {
            return Err(Malformed("a chunk size of 2^64 or more (RFC 9112 7.1)"));
        }
        self.remaining = self.remaining << 4 | u64::from(digit);
        self.seen += 1;
        if self.seen > MAX_SIZE_DIGITS {
            return Err(Limit("a chunk size has over 64 digits"));
        }
        Ok(State::Size)
    }

    /// One byte of the trailers: form of the header lines, content discarded.
    fn trailer(&mut self, byte: u8) -> Result<State, Violation> {
        self.seen += 1;
        if self.seen as usize > MAX_HEAD_BYTES {
            return Err(Limit("the trailers are over 64 KiB"));
        }
        match (self.state, byte) {
            (State::TrailerStart, b'\r') => Ok(State::EndLf),
            (State::TrailerStart, b' ' | b'\t') if self.trailers > 0 => Ok(State::TrailerValue),
            (State::TrailerStart, _) if TOKEN[byte as usize] => {
                self.trailers += 1;
                if self.trailers as usize > MAX_HEADERS {
                    return Err(Limit("the answer has over 256 trailer lines"));
                }
                Ok(State::TrailerName)
            }
            (State::TrailerName, _) if TOKEN[byte as usize] => Ok(State::TrailerName),
            (State::TrailerName, b':') => Ok(State::TrailerValue),
            (State::TrailerValue, b'\t' | b' '..=b'~' | 0x80..) => Ok(State::TrailerValue),
            (State::TrailerValue, b'\r') => Ok(State::TrailerLf),
            _ => Err(Malformed(
                "a trailer that is not a header line (RFC 9112 7.1.2)",
            )),
        }
    }
}
