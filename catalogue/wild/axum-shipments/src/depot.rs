//! Stand-in for the depot's scanner system: any number of callers, each answered after a fixed time.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const PLACES: [&str; 5] = ["Bergen", "Voss", "Geilo", "Oslo", "Drammen"];

fn answer(mut caller: TcpStream, after: Duration) -> std::io::Result<()> {
    let mut line = String::new();
    BufReader::new(caller.try_clone()?).read_line(&mut line)?;
    thread::sleep(after);
    let id: usize = line.trim().trim_start_matches("SCAN ").parse().unwrap_or(0);
    writeln!(caller, "{}", PLACES[id % PLACES.len()])
}

pub fn start(after: Duration) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for caller in listener.incoming().flatten() {
            thread::spawn(move || answer(caller, after));
        }
    });
    Ok(address)
}
