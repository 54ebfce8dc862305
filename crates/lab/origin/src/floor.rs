//! The floor: what a generator costs that does nothing but receive and send.
//!
//! No parser, no timers, no histogram, no epoll: `recv` and `send` in turn on blocking sockets. No generator
//! on sockets can cost less, so a ratio to it says how much of a generator's cost is its own.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use serde::Serialize;

/// Result of the floor client.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Floor {
    /// Answers received.
    pub requests: u64,
    /// Elapsed time.
    pub seconds: f64,
}

/// Sends the same request on all connections and answers every answer with the next request.
///
/// It takes one `recv` for one answer, so it is right only against a server that sends small answers whole.
pub fn run(port: u16, connections: usize, duration: Duration, request: &[u8]) -> io::Result<Floor> {
    let connect = |_| {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        Ok(stream)
    };
    let mut streams: Vec<TcpStream> = (0..connections.max(1))
        .map(connect)
        .collect::<io::Result<_>>()?;
    let mut buffer = vec![0; 64 * 1024];
    let began = Instant::now();
    let mut requests = 0;
    for stream in &mut streams {
        stream.write_all(request)?;
    }
    while began.elapsed() < duration {
        for stream in &mut streams {
            if stream.read(&mut buffer)? == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the server ended a connection",
                ));
            }
            requests += 1;
            stream.write_all(request)?;
        }
    }
    for stream in &mut streams {
        requests += u64::from(stream.read(&mut buffer)? > 0);
    }
    Ok(Floor {
        requests,
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// A GET for `/`, or a POST of a small JSON body.
pub fn request(port: u16, is_post: bool) -> Vec<u8> {
    let head = format!("Host: 127.0.0.1:{port}\r\n");
    if is_post {
        let body = r#"{"a":42,"b":57}"#;
        let fields = format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        format!("POST / HTTP/1.1\r\n{head}{fields}\r\n{body}").into_bytes()
    } else {
        format!("GET / HTTP/1.1\r\n{head}\r\n").into_bytes()
    }
}
