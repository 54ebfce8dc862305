//! The head that came last, so that the same bytes are not read again.
//!
//! Most answers of one step begin with the very same bytes, at least for a second until a `Date` moves on. What a head says
//! depends on nothing but its bytes, so comparing them is enough; reading them costs some ten times as much.

use super::response::{parse_head, Head, HeadResult};

/// Longer heads are not kept.
const LONGEST: usize = 1024;

/// Reads the heads of the answers of one step and knows the last one again.
#[derive(Debug)]
pub struct KnownHead {
    /// Bytes of the last head; empty: none yet.
    bytes: Vec<u8>,
    head: Option<Head>,
    request_was_head: bool,
}

impl KnownHead {
    /// Nothing known yet; `request_was_head`: the answers have no bodies, whatever their heads say.
    pub fn new(request_was_head: bool) -> Self {
        KnownHead {
            bytes: Vec::new(),
            head: None,
            request_was_head,
        }
    }

    /// Reads the head at the beginning of `buf`, as [`parse_head`] does.
    #[inline]
    pub fn parse(&mut self, buf: &[u8]) -> HeadResult {
        match self.head {
            Some(head) if buf.starts_with(&self.bytes) => HeadResult::Complete(head),
            _ => self.parse_unknown(buf),
        }
    }

    #[inline(never)]
    fn parse_unknown(&mut self, buf: &[u8]) -> HeadResult {
        let result = parse_head(buf, self.request_was_head);
        if let HeadResult::Complete(head) = result {
            // An interim head is followed by another one, so keeping it would lose the one that comes again.
            if head.len <= LONGEST && !head.is_interim() {
                self.bytes.clear();
                self.bytes.reserve_exact(LONGEST);
                self.bytes.extend_from_slice(&buf[..head.len]);
                self.head = Some(head);
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heads that differ in one byte, in length, in framing, and not at all.
    const HEADS: [&[u8]; 8] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5 5\r\n\r\n",
    ];

    #[test]
    fn a_head_reads_the_same_whatever_came_before_it() {
        for request_was_head in [false, true] {
            for before in HEADS {
                for head in HEADS {
                    let mut reader = KnownHead::new(request_was_head);
                    let body = [head, b"HTTP/1.1 500 X\r\n\r\n"].concat();

                    reader.parse(before);

                    assert_eq!(reader.parse(&body), parse_head(&body, request_was_head));
                    for to in 0..head.len() {
                        let part = &head[..to];
                        assert_eq!(reader.parse(part), parse_head(part, request_was_head));
                    }
                }
            }
        }
    }

    #[test]
    fn a_long_head_is_read_and_not_kept() {
        let long = [
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: ".as_slice(),
            &[b'x'; LONGEST],
            b"\r\n\r\n",
        ]
        .concat();
        let mut reader = KnownHead::new(false);

        assert_eq!(reader.parse(&long), parse_head(&long, false));
        assert!(reader.bytes.is_empty());
    }
}
