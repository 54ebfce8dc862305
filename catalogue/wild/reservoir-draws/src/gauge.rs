//! Stand-in of the dam's level gauge, a line protocol, and its client.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const LATENCY: Duration = Duration::from_millis(400);

fn serve(stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut out = stream.try_clone()?;
    for line in BufReader::new(stream).lines() {
        thread::sleep(LATENCY);
        writeln!(out, "{}", 412_000 + line?.len())?;
    }
    Ok(())
}

pub fn start(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("port of the gauge");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
}

pub struct Gauge(BufReader<TcpStream>);

impl Gauge {
    pub fn connect(port: u16) -> std::io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Ok(Gauge(BufReader::new(stream)))
    }

    pub fn level(&mut self) -> std::io::Result<u64> {
        self.0.get_mut().write_all(b"LEVEL\n")?;
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        line.trim().parse().map_err(|_| std::io::ErrorKind::InvalidData.into())
    }
}
