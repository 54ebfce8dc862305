//! The control port: counts are read here, so that reading them adds no request.
//!
//! `GET /books`, `GET /log`, `POST /books/reset`; one request per connection.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use crate::answer::Answer;
use crate::request::{parse, Method, Parsed, Persistence, MAX_HEAD};
use crate::sys::wait_readable;
use crate::Ledger;

pub(crate) fn bind() -> std::io::Result<(TcpListener, u16)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// Answers until the bell rings.
pub(crate) fn serve(listener: &TcpListener, ledger: &Ledger) {
    let watched = [listener.as_raw_fd(), ledger.bell().as_raw_fd()];
    loop {
        let ready = wait_readable(&watched, None);
        if ready[1] {
            return;
        }
        if ready[0] {
            if let Ok((stream, _)) = listener.accept() {
                // A reader who goes away before the answer has lost only its own answer.
                let _ = converse(stream, ledger);
            }
        }
    }
}

fn converse(mut stream: TcpStream, ledger: &Ledger) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    let mut input = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer)?;
        input.extend_from_slice(&buffer[..count]);
        match parse(&input) {
            Parsed::Partial if count > 0 && input.len() <= MAX_HEAD => {}
            Parsed::Partial => return Ok(()),
            Parsed::Invalid(fault) => {
                let answer = Answer::refusal(400, fault);
                return stream.write_all(answer.bytes(false, Persistence::Close));
            }
            Parsed::Whole(head) => {
                let answer = answer(head.method, head.target, ledger);
                return stream.write_all(answer.bytes(false, Persistence::Close));
            }
        }
    }
}

fn answer(method: Method, target: &str, ledger: &Ledger) -> Answer {
    let as_json = |value: serde_json::Result<String>| match value {
        Ok(text) => Answer::json(200, &text),
        Err(error) => Answer::refusal(500, &error.to_string()),
    };
    match (method, target) {
        (Method::Get, "/books") => as_json(serde_json::to_string(&ledger.counts())),
        (Method::Get, "/log") => as_json(serde_json::to_string(&ledger.log())),
        (Method::Post, "/books/reset") => {
            ledger.reset();
            Answer::json(200, "{}")
        }
        _ => Answer::refusal(404, "GET /books, GET /log, POST /books/reset"),
    }
}
