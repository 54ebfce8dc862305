//! Reading one answer as its bytes arrive: head, interim responses, body; what must be kept is kept.
//!
//! An answer that comes in one piece is parsed in the thread's receive buffer and owns no memory. One
//! that is split, or whose body is wanted, borrows a buffer from the worker's capped store.

use loadlens_base::Outcome;
use loadlens_http::known::KnownHead;
use loadlens_http::response::{BodyDecoder, Framing, Head, HeadResult, Violation, MAX_HEAD_BYTES};
use loadlens_plan::program::Need;
use loadlens_record::recorder::ANSWER_BODY;

use crate::user::NONE;

/// Interim responses that one answer may have.
pub const MAX_INTERIM: u16 = 1_000;
/// The longest body that is kept for checks and extractions.
pub const MAX_KEPT_BODY: usize = 4 << 20;
/// A returned buffer above this is given back to the system.
const RETAINED: usize = 64 << 10;

const NO_ROOM: Violation =
    Violation::Limit("the answers being kept are over the engine's memory bound");

/// Buffers for split and wanted answers, with a bound on their bytes in all.
#[derive(Debug)]
pub struct Store {
    buffers: Vec<Vec<u8>>,
    free: Vec<u32>,
    held: usize,
    bound: usize,
}

impl Store {
    /// A store of `bound` bytes in all.
    pub fn new(bound: usize) -> Self {
        Store {
            buffers: Vec::new(),
            free: Vec::new(),
            held: 0,
            bound,
        }
    }

    /// Allows so many bytes more.
    pub fn widen(&mut self, bytes: usize) {
        self.bound += bytes;
    }

    /// The bytes of a buffer.
    pub fn bytes(&self, buffer: u32) -> &[u8] {
        &self.buffers[buffer as usize]
    }

    /// An empty buffer.
    pub fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.buffers.push(Vec::new());
            self.buffers.len() as u32 - 1
        })
    }

    /// Appends to a buffer; false: over the bound, nothing was appended.
    pub fn append(&mut self, buffer: u32, bytes: &[u8]) -> bool {
        if self.held + bytes.len() > self.bound {
            return false;
        }
        self.held += bytes.len();
        self.buffers[buffer as usize].extend_from_slice(bytes);
        true
    }

    /// Removes the first `count` bytes of a buffer.
    fn remove_front(&mut self, buffer: u32, count: usize) {
        self.held -= count;
        self.buffers[buffer as usize].drain(..count);
    }

    /// Cuts a buffer off after `length` bytes and hands out what followed.
    fn split_off(&mut self, buffer: u32, length: usize) -> Vec<u8> {
        let rest = self.buffers[buffer as usize].split_off(length);
        self.held -= rest.len();
        rest
    }

    /// Buffers that were taken and not given back.
    pub fn lent(&self) -> usize {
        self.buffers.len() - self.free.len()
    }

    /// Gives a buffer back.
    pub fn give_back(&mut self, buffer: u32) {
        let bytes = &mut self.buffers[buffer as usize];
        self.held -= bytes.len();
        bytes.clear();
        if bytes.capacity() > RETAINED {
            *bytes = Vec::new();
        }
        self.free.push(buffer);
    }
}

/// State of an answer after the bytes so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// The answer goes on.
    More,
    /// The answer is whole; so many bytes of the input belong to it.
    Whole {
        /// Bytes of the input that belong to the answer.
        consumed: usize,
        /// Positions of head and body.
        place: Place,
    },
    /// It cannot be read on.
    Broken(Violation),
}

/// Positions of those parts of a whole answer that the step needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the input: the head from..to, then the body up to `end`.
    Input {
        /// First byte of the head.
        head: usize,
        /// First byte of the body.
        body: usize,
        /// After the last byte of the body.
        end: usize,
    },
    /// In the store: `head_len` bytes of head, then the body.
    Store {
        /// Index of the buffer.
        buffer: u32,
        /// Length of the head.
        head_len: usize,
    },
}

impl Place {
    /// Place of an answer of which nothing is needed.
    const NOWHERE: Place = Place::Input {
        head: 0,
        body: 0,
        end: 0,
    };
}

/// Progress of reading one answer.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// Head of the final response, once it is whole.
    head: Option<Head>,
    body: BodyDecoder,
    /// Bytes of the answer as received.
    pub wire_bytes: u64,
    /// Bytes of its decoded body.
    pub body_bytes: u64,
    /// Bytes of the heads of interim responses.
    interim_bytes: u32,
    interim: u16,
    /// Bytes of a split head at the last attempt to parse it.
    tried: u32,
    buffer: u32,
    /// True if the beginning of its body is kept to quote it, whatever its status.
    pub is_quoted: bool,
}

impl Default for Reply {
    fn default() -> Self {
        Reply {
            head: None,
            body: BodyDecoder::new(Framing::None),
            wire_bytes: 0,
            body_bytes: 0,
            interim_bytes: 0,
            interim: 0,
            tried: 0,
            buffer: NONE,
            is_quoted: false,
        }
    }
}

impl Reply {
    /// The head of the final response, once it is whole.
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Status of the answer; 0 before its head.
    pub fn status(&self) -> u16 {
        self.head.map_or(0, |head| head.status)
    }

    /// Gives back what it holds and is ready for the next answer.
    #[inline]
    pub fn reset(&mut self, store: &mut Store) {
        if self.buffer != NONE {
            store.give_back(self.buffer);
        }
        *self = Reply::default();
    }

    /// Takes the next bytes.
    #[inline]
    pub fn feed(
        &mut self,
        input: &[u8],
        need: Need,
        known: &mut KnownHead,
        store: &mut Store,
    ) -> Fed {
        if self.head.is_some() {
            return self.read_body(input, 0, need, store);
        }
        if self.buffer != NONE {
            return self.read_split_head(input, need, known, store);
        }
        let mut at = 0;
        loop {
            match known.parse(&input[at..]) {
                HeadResult::Complete(head) if head.is_interim() => {
                    if let Err(violation) = self.note_interim(&head) {
                        return Fed::Broken(violation);
                    }
                    at += head.len;
                }
                HeadResult::Complete(head) => {
                    return self.read_first_body(input, at, head, need, store)
                }
                HeadResult::Partial => return self.keep_partial_head(input, at, store),
                HeadResult::Invalid(violation) => return Fed::Broken(violation),
            }
        }
    }

    /// The connection ended; says whether that makes the answer whole.
    pub fn at_end(&self) -> Result<Place, Outcome> {
        match self.head {
            // Something of a head is there: the answer had begun (RFC 9112 8). Whole interim answers do not count.
            None if self.buffer != NONE => Err(Outcome::Truncated),
            None => Err(Outcome::ClosedBeforeResponse),
            Some(head) => match self.body.at_eof() {
                Ok(()) if self.buffer != NONE => Ok(Place::Store {
                    buffer: self.buffer,
                    head_len: head.len,
                }),
                Ok(()) => Ok(Place::NOWHERE),
                Err(_) => Err(Outcome::Truncated),
            },
        }
    }

    /// Part of the answer to keep: what its step needs, and of a failing or quoted one the beginning.
    fn wanted(&self, need: Need, head: &Head) -> Need {
        if head.status >= 400 || self.is_quoted {
            need.max(Need::Beginning)
        } else {
            need
        }
    }

    fn note_interim(&mut self, head: &Head) -> Result<(), Violation> {
        self.interim += 1;
        self.interim_bytes += head.len as u32;
        self.wire_bytes += head.len as u64;
        if self.interim > MAX_INTERIM {
            return Err(Violation::Limit("over 1,000 interim responses"));
        }
        self.check_head_bytes(0)
    }

    fn check_head_bytes(&self, more: usize) -> Result<(), Violation> {
        if self.interim_bytes as usize + more > MAX_HEAD_BYTES {
            return Err(Violation::Limit("the heads of one answer are over 64 KiB"));
        }
        Ok(())
    }

    /// The final head stands whole in the input at `at`.
    #[inline]
    fn read_first_body(
        &mut self,
        input: &[u8],
        at: usize,
        head: Head,
        need: Need,
        store: &mut Store,
    ) -> Fed {
        if self.interim > 0 {
            if let Err(violation) = self.check_head_bytes(head.len) {
                return Fed::Broken(violation);
            }
        }
        self.wire_bytes += head.len as u64;
        self.head = Some(head);
        self.body = BodyDecoder::new(head.framing);
        let body_at = at + head.len;
        let in_place = match head.framing {
            Framing::None | Framing::Length(0) => Some(body_at),
            Framing::Length(length) => {
                let end = usize::try_from(length)
                    .ok()
                    .and_then(|length| body_at.checked_add(length));
                end.filter(|end| *end <= input.len())
            }
            Framing::Chunked | Framing::UntilClose => None,
        };
        if let Some(end) = in_place {
            self.wire_bytes += (end - body_at) as u64;
            self.body_bytes = (end - body_at) as u64;
            return Fed::Whole {
                consumed: end,
                place: Place::Input {
                    head: at,
                    body: body_at,
                    end,
                },
            };
        }
        let wanted = self.wanted(need, &head);
        if wanted >= Need::Head {
            self.buffer = store.take();
            if !store.append(self.buffer, &input[at..body_at]) {
                if need >= Need::Head {
                    return Fed::Broken(NO_ROOM);
                }
                store.give_back(self.buffer);
                self.buffer = NONE;
            }
        }
        self.read_body(input, body_at, need, store)
    }

    /// Bytes of the body stand in the input from `from` on.
    fn read_body(&mut self, input: &[u8], from: usize, need: Need, store: &mut Store) -> Fed {
        let Some(head) = self.head else {
            return Fed::More;
        };
        let (buffer, mut fits) = (self.buffer, true);
        let decoded = match self.wanted(need, &head) {
            Need::Body => {
                let mut kept = store.bytes(buffer).len() - head.len;
                self.body.decode(&input[from..], &mut |bytes| {
                    kept += bytes.len();
                    fits = fits && kept <= MAX_KEPT_BODY && store.append(buffer, bytes);
                })
            }
            Need::Beginning if buffer != NONE => {
                let mut room = (head.len + ANSWER_BODY).saturating_sub(store.bytes(buffer).len());
                self.body.decode(&input[from..], &mut |bytes| {
                    let quoted = &bytes[..room.min(bytes.len())];
                    room = if store.append(buffer, quoted) {
                        room - quoted.len()
                    } else {
                        0
                    };
                })
            }
            _ => self.body.decode(&input[from..], &mut |_| {}),
        };
        let decoded = match decoded {
            Ok(decoded) if fits => decoded,
            Ok(_) => return Fed::Broken(Violation::Limit(
                "a body to be checked is over 4 MiB, or all of them over the engine's memory bound",
            )),
            Err(violation) => return Fed::Broken(violation),
        };
        self.wire_bytes += decoded.consumed as u64;
        self.body_bytes += decoded.body_bytes;
        if !decoded.done {
            return Fed::More;
        }
        let place = if buffer == NONE {
            Place::NOWHERE // nothing of it is needed
        } else {
            Place::Store {
                buffer,
                head_len: head.len,
            }
        };
        Fed::Whole {
            consumed: from + decoded.consumed,
            place,
        }
    }

    fn keep_partial_head(&mut self, input: &[u8], at: usize, store: &mut Store) -> Fed {
        if at == input.len() {
            return Fed::More;
        }
        self.buffer = store.take();
        if !store.append(self.buffer, &input[at..]) {
            return Fed::Broken(NO_ROOM);
        }
        self.tried = (input.len() - at) as u32;
        match self.check_head_bytes(input.len() - at) {
            Ok(()) => Fed::More,
            Err(violation) => Fed::Broken(violation),
        }
    }

    /// Goes on with a head whose beginning is in the store.
    fn read_split_head(
        &mut self,
        input: &[u8],
        need: Need,
        known: &mut KnownHead,
        store: &mut Store,
    ) -> Fed {
        let before = store.bytes(self.buffer).len();
        if !store.append(self.buffer, input) {
            return Fed::Broken(NO_ROOM);
        }
        let length = before + input.len();
        // Parsing begins anew each time, so it is tried only when a line ended or the head has doubled:
        // a server that sends single bytes costs no more than one that sends lines.
        if memchr::memchr(b'\n', input).is_none()
            && length < 2 * self.tried as usize
            && length < MAX_HEAD_BYTES
        {
            return Fed::More;
        }
        self.tried = length as u32;
        loop {
            match known.parse(store.bytes(self.buffer)) {
                HeadResult::Complete(head) if head.is_interim() => {
                    if let Err(violation) = self.note_interim(&head) {
                        return Fed::Broken(violation);
                    }
                    store.remove_front(self.buffer, head.len);
                    if store.bytes(self.buffer).is_empty() {
                        store.give_back(self.buffer);
                        self.buffer = NONE;
                        return Fed::More;
                    }
                }
                HeadResult::Complete(head) => {
                    return self.leave_split_head(input, head, need, store)
                }
                HeadResult::Partial => {
                    return match self.check_head_bytes(store.bytes(self.buffer).len()) {
                        Ok(()) => Fed::More,
                        Err(violation) => Fed::Broken(violation),
                    }
                }
                HeadResult::Invalid(violation) => return Fed::Broken(violation),
            }
        }
    }

    /// The head in the store is whole; what follows it there goes on as body.
    fn leave_split_head(&mut self, input: &[u8], head: Head, need: Need, store: &mut Store) -> Fed {
        if let Err(violation) = self.check_head_bytes(head.len) {
            return Fed::Broken(violation);
        }
        let rest = store.split_off(self.buffer, head.len);
        self.wire_bytes += head.len as u64;
        self.head = Some(head);
        self.body = BodyDecoder::new(head.framing);
        if self.wanted(need, &head) == Need::Nothing {
            store.give_back(self.buffer);
            self.buffer = NONE;
        }
        match self.read_body(&rest, 0, need, store) {
            // The rest is the tail of this input: what was not consumed of it is at the input's end.
            Fed::Whole { consumed, place } => Fed::Whole {
                consumed: input.len() - (rest.len() - consumed),
                place,
            },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_holds_its_bound_to_the_byte_however_its_buffers_come_and_go() {
        let mut store = Store::new(10);
        let (first, second) = (store.take(), store.take());

        assert!(store.append(first, b"123456") && store.append(second, b"7890"));
        assert!(!store.append(second, b"x"), "11 of 10 bytes");
        assert_eq!(store.bytes(second), b"7890");
        store.remove_front(first, 2); // 3456 and 7890: 2 are left
        assert!(!store.append(second, b"xyz") && store.append(second, b"xy"));
        assert_eq!(store.split_off(second, 1), b"890xy"); // 3456 and 7: 5 are left
        assert!(!store.append(first, b"abcdef") && store.append(first, b"abcde"));
        store.give_back(first); // 7: 9 are left
        assert!(!store.append(second, &[b'x'; 10]) && store.append(second, &[b'x'; 9]));
        store.give_back(second);

        assert_eq!((store.lent(), store.held), (0, 0));
    }

    /// Result of an answer fed in these pieces: outcome, head, body, bytes counted.
    #[derive(Debug, PartialEq)]
    struct Read {
        fed: Result<usize, &'static str>,
        head: Vec<u8>,
        body: Vec<u8>,
        counted: (u64, u64),
    }

    fn read(pieces: &[&[u8]], need: Need) -> Read {
        let mut store = Store::new(1 << 20);
        let mut reply = Reply::default();
        let mut heads = KnownHead::new(false);
        let (mut head, mut body) = (Vec::new(), Vec::new());
        let mut fed = Err("more");
        for piece in pieces {
            match reply.feed(piece, need, &mut heads, &mut store) {
                Fed::More => continue,
                Fed::Whole { consumed, place } => {
                    let (of_head, of_body) = match place {
                        Place::Input { head, body, end } => (&piece[head..body], &piece[body..end]),
                        Place::Store { buffer, head_len } => store.bytes(buffer).split_at(head_len),
                    };
                    if need >= Need::Head {
                        head.extend_from_slice(of_head);
                    }
                    if need == Need::Body {
                        body.extend_from_slice(of_body);
                    }
                    fed = Ok(piece.len() - consumed);
                }
                Fed::Broken(violation) => fed = Err(violation.what()),
            }
            break;
        }
        let counted = (reply.wire_bytes, reply.body_bytes);
        reply.reset(&mut store);
        assert_eq!(store.lent(), 0);
        Read {
            fed,
            head,
            body,
            counted,
        }
    }

    const ANSWERS: [&[u8]; 4] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nA: b\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ];

    #[test]
    fn an_answer_in_two_pieces_reads_as_the_whole_wherever_it_is_split() {
        for answer in ANSWERS {
            for need in [Need::Nothing, Need::Head, Need::Body] {
                let whole = read(&[answer], need);
                assert_eq!((whole.fed, whole.counted.0), (Ok(0), answer.len() as u64));
                for at in 1..answer.len() {
                    assert_eq!(
                        read(&[&answer[..at], &answer[at..]], need),
                        whole,
                        "split at {at}"
                    );
                }
                let bytes: Vec<&[u8]> = answer.chunks(1).collect();
                assert_eq!(read(&bytes, need), whole, "byte by byte");
            }
        }
        assert_eq!(read(&[ANSWERS[1]], Need::Body).body, b"hello");
        assert!(read(&[ANSWERS[2]], Need::Head)
            .head
            .starts_with(b"HTTP/1.1 200"));
    }

    #[test]
    fn what_follows_an_answer_is_not_consumed_wherever_the_answer_is_split() {
        for answer in ANSWERS {
            let with_more = [answer, b"HTTP/1.1 200 OK\r\n"].concat();
            for at in 1..answer.len() {
                let read = read(&[&with_more[..at], &with_more[at..]], Need::Body);
                assert_eq!(
                    (read.fed, read.counted.0),
                    (Ok(17), answer.len() as u64),
                    "split at {at}"
                );
            }
        }
    }

    #[test]
    fn of_a_failing_answer_the_beginning_is_kept_however_it_is_split() {
        let long = "x".repeat(2 * ANSWER_BODY);
        let chunked = format!(
            "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n3\r\nend\r\n0\r\n\r\n",
            long.len()
        );
        let fixed = format!(
            "HTTP/1.1 500 Oh\r\nContent-Length: {}\r\n\r\n{long}",
            long.len()
        );
        for (answer, whole_in_place) in [(&chunked, false), (&fixed, true)] {
            let bytes = answer.as_bytes();
            for size in [1, 7, 100, bytes.len()] {
                let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
                let (head, body) = kept(&pieces);
                let length = if whole_in_place && size == bytes.len() {
                    long.len() // stands in the input: nothing was copied
                } else {
                    ANSWER_BODY
                };
                assert!(head.starts_with(b"HTTP/1.1 50") && head.ends_with(b"\r\n\r\n"));
                assert_eq!(body, long.as_bytes()[..length], "pieces of {size}");
            }
        }
    }

    #[test]
    fn of_an_answer_that_may_be_quoted_the_beginning_is_kept_too() {
        let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbusy\r\n0\r\n\r\n";
        for (is_quoted, body) in [(true, &b"busy"[..]), (false, b"")] {
            let mut store = Store::new(1 << 20);
            let mut reply = Reply {
                is_quoted,
                ..Reply::default()
            };

            let fed = reply.feed(
                answer,
                Need::Nothing,
                &mut KnownHead::new(false),
                &mut store,
            );

            let Fed::Whole { place, .. } = fed else {
                panic!("{fed:?}");
            };
            let kept = match place {
                Place::Store { buffer, head_len } => &store.bytes(buffer)[head_len..],
                Place::Input { body, end, .. } => &answer[body..end],
            };
            assert_eq!(kept, body);
        }
    }

    #[test]
    fn without_room_a_failing_answer_is_read_and_not_kept() {
        let answer = b"HTTP/1.1 500 Oh\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n";
        let mut store = Store::new(10);
        let mut reply = Reply::default();

        let fed = reply.feed(
            answer,
            Need::Nothing,
            &mut KnownHead::new(false),
            &mut store,
        );

        assert_eq!(
            fed,
            Fed::Whole {
                consumed: answer.len(),
                place: Place::NOWHERE
            }
        );
        assert_eq!((reply.body_bytes, store.lent()), (2, 0));
    }

    /// Head and body of an answer of which no step needs anything.
    fn kept(pieces: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
        let mut store = Store::new(1 << 20);
        let (mut reply, mut heads) = (Reply::default(), KnownHead::new(false));
        for piece in pieces {
            if let Fed::Whole { place, .. } =
                reply.feed(piece, Need::Nothing, &mut heads, &mut store)
            {
                let (head, body) = match place {
                    Place::Input { head, body, end } => (&piece[head..body], &piece[body..end]),
                    Place::Store { buffer, head_len } => store.bytes(buffer).split_at(head_len),
                };
                return (head.to_vec(), body.to_vec());
            }
        }
        panic!("the answer did not end");
    }

    #[test]
    fn interim_responses_are_bounded_in_number_and_in_bytes() {
        let small = b"HTTP/1.1 103 E\r\n\r\n".repeat(1_001);
        let large = [
            b"HTTP/1.1 103 E\r\nLink: ".as_slice(),
            &[b'x'; 30_000],
            b"\r\n\r\n",
        ]
        .concat()
        .repeat(3);

        assert_eq!(
            read(&[&small], Need::Nothing).fed,
            Err("over 1,000 interim responses")
        );
        assert_eq!(
            read(&[&large], Need::Nothing).fed,
            Err("the heads of one answer are over 64 KiB")
        );
    }

    #[test]
    fn a_head_without_end_is_broken_off_at_its_bound() {
        let head = [b"HTTP/1.1 200 OK\r\nX: ".as_slice(), &[b'x'; 70_000]].concat();
        let pieces: Vec<&[u8]> = head.chunks(1_000).collect();

        assert_eq!(
            read(&pieces, Need::Nothing).fed,
            Err("the head of the answer is over 64 KiB")
        );
    }

    #[test]
    fn a_body_that_is_only_counted_needs_no_memory_and_a_wanted_one_is_bounded() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 8000000\r\n\r\n";
        let body = vec![b'x'; 8_000_000];
        let mut pieces: Vec<&[u8]> = vec![head];
        pieces.extend(body.chunks(65_536));
        let mut store = Store::new(0);
        let mut reply = Reply::default();
        let mut heads = KnownHead::new(false);

        let counted = pieces
            .iter()
            .map(|piece| reply.feed(piece, Need::Nothing, &mut heads, &mut store))
            .last();

        assert!(matches!(counted, Some(Fed::Whole { .. })));
        assert_eq!(reply.body_bytes, 8_000_000);
        assert!(read(&pieces, Need::Body)
            .fed
            .unwrap_err()
            .starts_with("a body to be checked is over"));
    }
}
