//! The registry of lifting gear: a blocking client, and a stand-in of the registry itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader as AsyncReader};
use tokio::net::TcpListener;

/// Connections to the registry that are kept open.
pub struct Client {
    port: u16,
    idle: Mutex<Vec<BufReader<TcpStream>>>,
}

impl Client {
    pub fn new(port: u16) -> Self {
        Self { port, idle: Mutex::new(Vec::new()) }
    }

    /// Return the registry's record of a winch as JSON.
    pub fn record(&self, winch: &str) -> std::io::Result<String> {
        let kept = self.idle.lock().unwrap().pop();
        let mut connection = match kept {
            Some(connection) => connection,
            None => {
                let stream = TcpStream::connect(("127.0.0.1", self.port))?;
                stream.set_nodelay(true)?;
                BufReader::new(stream)
            }
        };
        let call = format!("GET /gear/{winch} HTTP/1.1\r\nHost: registry\r\n\r\n");
        connection.get_mut().write_all(call.as_bytes())?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            if connection.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        connection.read_exact(&mut body)?;
        self.idle.lock().unwrap().push(connection);
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

/// Answer as the registry does, on its port.
pub async fn stand_in(port: u16, latency: Duration) -> std::io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let mut stream = AsyncReader::new(stream);
            let mut line = String::new();
            let mut gear = String::new();
            while matches!(stream.read_line(&mut line).await, Ok(read) if read > 0) {
                if let Some(rest) = line.strip_prefix("GET /gear/") {
                    gear = rest.split(' ').next().unwrap_or("").to_owned();
                }
                if line == "\r\n" {
                    tokio::time::sleep(latency).await;
                    let body = format!("{{\"gear\":\"{gear}\",\"swl_kg\":5500,\"certificate\":\"LOLER-88213\"}}");
                    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                    if stream.get_mut().write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
                line.clear();
            }
        });
    }
}
