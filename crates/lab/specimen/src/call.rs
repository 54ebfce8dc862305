//! Asking another service of this machine, on a connection that each thread keeps, or on a new one each time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use crate::settings::Call;

const PATIENCE: Duration = Duration::from_secs(30);

/// Outcome of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Called {
    /// A success.
    Well,
    /// The last try ended with this status; 502: with none.
    Badly(u16),
}

thread_local! {
    static KEPT: RefCell<HashMap<u16, TcpStream>> = RefCell::new(HashMap::new());
}

/// Asks until it is answered well, at most as often as is allowed.
pub fn call(call: &Call) -> Called {
    let mut last = 502;
    for _ in 0..call.tries.max(1) {
        last = KEPT.with_borrow_mut(|kept| ask(kept, call).unwrap_or(502));
        if last < 400 {
            return Called::Well;
        }
    }
    Called::Badly(last)
}

/// Asks once for a path on a new connection; the status.
pub fn visit(port: u16, path: &str) -> io::Result<u16> {
    exchange(&mut connect(port)?, path, "close").map(|(status, _)| status)
}

fn ask(kept: &mut HashMap<u16, TcpStream>, call: &Call) -> io::Result<u16> {
    let old = call.keep.then(|| kept.remove(&call.port)).flatten();
    let mut stream = match old {
        Some(stream) => stream,
        None => connect(call.port)?,
    };
    let (status, goes_on) = exchange(&mut stream, &call.path, "keep-alive")?;
    if goes_on && call.keep {
        kept.insert(call.port, stream); // else it is closed here, first: our side keeps the port in TIME_WAIT
    }
    Ok(status)
}

fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sends a request and reads its answer; the status, and whether the connection goes on.
fn exchange(stream: &mut TcpStream, path: &str, connection: &str) -> io::Result<(u16, bool)> {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: {connection}\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let (mut heard, mut piece) = (Vec::new(), [0u8; 16 * 1024]);
    loop {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        heard.extend_from_slice(&piece[..count]);
        let Some(end) = heard.windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&heard[..end]).to_ascii_lowercase();
        let length = field(&head, "content-length").and_then(|text| text.parse().ok());
        if heard.len() < end + 4 + length.unwrap_or(0usize) {
            continue;
        }
        let status = head.get(9..12).and_then(|text| text.parse().ok());
        let goes_on = field(&head, "connection") != Some("close");
        return Ok((status.ok_or(io::ErrorKind::InvalidData)?, goes_on));
    }
}

fn field<'head>(head: &'head str, name: &str) -> Option<&'head str> {
    head.split("\r\n")
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.trim())
}
