//! Servers of a world: they answer, stall, cut, reset, flood, and send bytes without a request.

use super::{Piece, World};

const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";

impl World {
    /// A whole request has come: decides what happens.
    pub(super) fn answer(&mut self, at: usize) {
        let delay = 1_000 + self.random.below(self.nature.longest);
        if self.links[at].is_left {
            // No one reads it any more.
            self.later(at, delay, Piece::Reset);
            return;
        }
        self.requests += 1;
        self.links[at].owes = true;
        if let Some(mut script) = self.script.take() {
            let pieces = script(self.asked.last().map_or("", String::as_str));
            self.script = Some(script);
            self.give_pieces(at, pieces);
        } else if self.chance(self.mischief()) {
            match self.random.below(17) {
                kind @ 0..=5 => self.give_none(at, delay, kind),
                kind @ 6..=9 => self.give_without_end(at, delay, kind),
                kind => self.give_oddly(at, delay, kind),
            }
        } else {
            let answer = self.good_answer();
            self.give(at, delay, answer);
        }
    }

    /// In the middle of a request: a reset, or an answer that does not wait for the rest.
    pub(super) fn interrupt(&mut self, at: usize) {
        let delay = self.random.below(100_000);
        if self.links[at].is_left || self.chance(500) {
            return self.later(at, delay, Piece::Reset);
        }
        self.requests += 1;
        self.links[at].spoil(LAST.len());
        self.give(at, delay, LAST.to_vec());
        self.links[at].is_left = true;
        if self.chance(500) {
            self.later(at, delay, Piece::End);
        }
    }

    /// No whole answer.
    fn give_none(&mut self, at: usize, delay: u64, kind: u64) {
        let end = if self.chance(500) {
            Piece::End
        } else {
            Piece::Reset
        };
        match kind {
            0 => {} // stalls for ever
            1 => self.later(at, delay, Piece::Reset),
            2 => self.later(at, delay, Piece::End),
            3 | 4 => {
                // cut short, then the end, a reset or silence
                let mut answer = self.good_answer();
                let length = self.random.below(answer.len() as u64) as usize;
                answer.truncate(length);
                self.put(at, delay, answer);
                if kind == 3 {
                    self.later(at, delay + 50_000, end);
                }
            }
            _ => self.put(at, delay, b"SSH-2.0-nonsense\r\n".to_vec()),
        }
    }

    fn give_without_end(&mut self, at: usize, delay: u64, kind: u64) {
        let begin = match kind {
            6 => "",
            7 => "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
            8 => "HTTP/1.1 200 OK\r\nX-Endless: ",
            _ => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n",
        };
        if !begin.is_empty() {
            self.put(at, delay, begin.into());
        }
        self.later(at, delay + 10, Piece::Flood(400));
    }

    /// A whole answer, and something about it.
    fn give_oddly(&mut self, at: usize, delay: u64, kind: u64) {
        match kind {
            10 => {
                // unrequested bytes behind it, in one piece: were the answer read alone, the next request
                // could be on its way already
                let mut answer = self.good_answer();
                let length = answer.len();
                answer.extend_from_slice(&self.good_answer());
                self.links[at].spoil(length + 1);
                self.links[at].settle(length);
                self.answers += 1;
                self.later(at, delay, Piece::Bytes(answer));
            }
            11 => {
                // unrequested bytes, later
                let answer = self.good_answer();
                self.give(at, delay, answer);
                self.poison(at, delay);
            }
            12 => {
                // said to be the last
                self.links[at].spoil(LAST.len());
                self.give(at, delay, LAST.to_vec());
                if self.chance(500) {
                    self.later(at, delay, Piece::End);
                }
            }
            13 => {
                // the end right after it, unsaid
                let answer = self.good_answer();
                self.give(at, delay, answer);
                let late = if self.chance(500) {
                    0
                } else {
                    self.random.below(200_000)
                };
                self.later(at, delay + late, Piece::End);
            }
            14 => {
                let answer = b"HTTP/1.1 200 OK\r\n\r\nuntil the end".to_vec();
                let link = &mut self.links[at];
                link.spoil(answer.len());
                link.settle(answer.len());
                link.exchanges.last_mut().unwrap().until_close = true;
                self.answers += 1;
                self.put(at, delay, answer);
                self.later(at, delay + 100_000, Piece::End);
            }
            15 => {
                // interim responses, at times more than needed
                let hints = self.random.below(1_200);
                for number in 0..hints {
                    let hint = b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec();
                    self.later(at, delay + number, Piece::Bytes(hint));
                }
                let answer = self.good_answer();
                self.give(at, delay + 2_000, answer);
                if hints > 1_000 {
                    self.links[at].exchanges.last_mut().unwrap().ends = None; // refused before
                }
            }
            _ => {
                let answer = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_vec();
                self.give(at, delay, answer);
            }
        }
    }

    /// Something that looks like an answer and is none.
    pub(super) fn poison(&mut self, at: usize, delay: u64) {
        self.late_poison += 1;
        self.links[at].is_poisoned = true;
        let late = self.random.below(5_000_000);
        let poison = self.good_answer();
        self.put(at, delay + late, poison);
    }

    fn good_answer(&mut self) -> Vec<u8> {
        let kind = if self.nature.is_plain {
            4
        } else {
            self.random.below(5)
        };
        match kind {
            0 => &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"id\":1}\r\n0\r\n\r\n"[..],
            1 => b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"id\":2}",
            2 => b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"nothing\":[0]}",
            3 => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nSet-Cookie: sid=a b; Path=/\r\n\r\n5;x=y\r\n{\"id\"\r\n3\r\n:4}\r\n0\r\nA: b\r\n\r\n",
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nX-Id: 7\r\n\r\n{\"id\":3}",
        }
        .to_vec()
    }

    /// Sends a whole answer.
    fn give(&mut self, at: usize, delay: u64, answer: Vec<u8>) {
        self.answers += 1;
        self.links[at].settle(answer.len());
        self.put(at, delay, answer);
    }

    /// Sends a whole answer in pieces, each so long after the one before.
    fn give_pieces(&mut self, at: usize, pieces: Vec<(u64, Vec<u8>)>) {
        self.answers += 1;
        let length = pieces.iter().map(|(_, bytes)| bytes.len()).sum();
        self.links[at].settle(length);
        let mut delay = 0;
        for (after, bytes) in pieces {
            delay += after;
            self.later(at, delay, Piece::Bytes(bytes));
        }
    }

    /// Sends bytes, in one piece or in several.
    fn put(&mut self, at: usize, mut delay: u64, mut bytes: Vec<u8>) {
        if self.chance(self.nature.splits) {
            while bytes.len() > 1 && self.chance(700) {
                let cut = if self.chance(300) {
                    1
                } else {
                    1 + self.random.below(bytes.len() as u64 - 1) as usize
                };
                let rest = bytes.split_off(cut);
                self.later(at, delay, Piece::Bytes(bytes));
                bytes = rest;
                delay += self.random.below(40_000);
            }
        }
        self.later(at, delay, Piece::Bytes(bytes));
    }
}
