//! Reuse of the connection for the next request: RFC 9112 9.

use super::{closed, kept, last, open, spare};
use crate::Case;
use crate::Ending::{Malformed, Truncated};

fn with(version: &str, connection: &str) -> Vec<u8> {
    format!("HTTP/{version} 200 OK\r\n{connection}Content-Length: 2\r\n\r\nhi").into_bytes()
}

#[rustfmt::skip] // one case a line
pub(super) fn cases() -> Vec<Case> {
    vec![
        open("9.3", "HTTP/1.1 keeps", with("1.1", ""), kept(200, "hi")),
        open("9.3", "HTTP/1.0 closes", with("1.0", ""), last(200, "hi")),
        open("9.3", "HTTP/1.0 keeps when it says so", with("1.0", "Connection: keep-alive\r\n"), kept(200, "hi")),
        open("9.3", "HTTP/1.0 says so in capitals", with("1.0", "CONNECTION: KEEP-ALIVE\r\n"), kept(200, "hi")),
        open("9.3", "HTTP/1.0 with Keep-Alive parameters only", with("1.0", "Keep-Alive: timeout=5\r\n"), last(200, "hi")),
        open("9.3", "HTTP/1.0 says both", with("1.0", "Connection: keep-alive, close\r\n"), last(200, "hi")),
        open("9.6", "HTTP/1.1 says close", with("1.1", "Connection: close\r\n"), last(200, "hi")),
        open("9.6", "close in capitals", with("1.1", "Connection: CLOSE\r\n"), last(200, "hi")),
        open("9.6", "close without white space", with("1.1", "Connection:close\r\n"), last(200, "hi")),
        open("9.6", "close with white space", with("1.1", "Connection:  close \t\r\n"), last(200, "hi")),
        open("9110 7.6.1", "close first in a list", with("1.1", "Connection: close, X-A\r\n"), last(200, "hi")),
        open("9110 7.6.1", "close last in a list", with("1.1", "Connection: X-A,close\r\n"), last(200, "hi")),
        open("9110 7.6.1", "close in the second header", with("1.1", "Connection: X-A\r\nConnection: close\r\n"), last(200, "hi")),
        open("9110 7.6.1", "close and keep-alive", with("1.1", "Connection: keep-alive\r\nConnection: close\r\n"), last(200, "hi")),
        open("9110 7.6.1", "a word that contains close", with("1.1", "Connection: disclose\r\n"), kept(200, "hi")),
        open("9110 7.6.1", "a word that begins with close", with("1.1", "Connection: closed\r\n"), kept(200, "hi")),
        open("9110 7.6.1", "close as part of two words", with("1.1", "Connection: not close\r\n"), kept(200, "hi")),
        open("9110 7.6.1", "keep-alive in HTTP/1.1", with("1.1", "Connection: keep-alive\r\n"), kept(200, "hi")),
        open("9110 7.6.1", "another option in HTTP/1.1", with("1.1", "Connection: Upgrade\r\nUpgrade: h2c\r\n"), kept(200, "hi")),
        open("9110 7.6.1", "no option", with("1.1", "Connection:\r\n"), kept(200, "hi")),
        open("C.2.2", "Proxy-Connection means nothing here", with("1.1", "Proxy-Connection: close\r\n"), kept(200, "hi")),
        closed("9.6", "close said and done", with("1.1", "Connection: close\r\n"), last(200, "hi")),
        closed("9.3", "closed without a word", with("1.1", ""), kept(200, "hi")),
        closed("8", "close said before the body was whole", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nhi", Truncated),
        open("9.3.2", "two answers to one request", [with("1.1", ""), with("1.1", "")].concat(), spare(200, "hi", 40)),
        open("9.2", "a line end behind the body", [with("1.1", ""), b"\r\n".to_vec()].concat(), spare(200, "hi", 2)),
        open("9.2", "408 that comes before any request ends the connection", "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", last(408, "")),
        open("9.3", "HTTP/1.2 keeps like 1.1", with("1.2", ""), kept(200, "hi")),
        open("2.3", "HTTP/1.0 is not guessed from nothing", "HTTP/1. 200 OK\r\n\r\n", Malformed),
    ]
}
