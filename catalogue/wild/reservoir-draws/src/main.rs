//! Reservoir draws: farms report the water that they take from a shared reservoir.

mod book;
mod gauge;

use book::{Book, Draw};
use gauge::Gauge;
use std::io::{BufRead, BufReader, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::{env, thread};

#[derive(Clone, Copy)]
struct Options {
    in_turn: bool,
    gauge_port: Option<u16>,
}

struct Request {
    path: String,
    farm: u32,
    litres: u64,
    keep_alive: bool,
}

fn read_request(input: &mut impl BufRead) -> Result<Option<Request>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let target = line.split(' ').nth(1).unwrap_or("/").to_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let value = |name: &str| {
        query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let mut request = Request {
        path: path.to_owned(),
        farm: value("farm").and_then(|text| text.parse().ok()).unwrap_or(1),
        litres: value("litres").and_then(|text| text.parse().ok()).unwrap_or(1000),
        keep_alive: line.trim_end().ends_with("1.1"),
    };
    loop {
        let mut header = String::new();
        if input.read_line(&mut header)? == 0 || header.trim().is_empty() {
            return Ok(Some(request));
        }
        if header.trim().eq_ignore_ascii_case("connection: close") {
            request.keep_alive = false;
        }
    }
}

fn entry(draw: Draw) -> String {
    format!("{{\"farm\":{},\"litres\":{},\"seal\":\"{:016x}\"}}", draw.farm, draw.litres, draw.seal)
}

fn converse(stream: TcpStream, book: &Book, options: Options) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut out = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    let mut gauge = options.gauge_port.map(Gauge::connect).transpose()?;
    while let Some(request) = read_request(&mut input)? {
        let (status, body) = match request.path.as_str() {
            "/health" => ("200 OK", "{\"ok\":true}".to_owned()),
            "/draws" => {
                let level = gauge.as_mut().map_or(Ok(u64::MAX), Gauge::level)?;
                let enter = if options.in_turn { Book::enter_in_turn } else { Book::enter };
                match enter(book, request.farm, request.litres.min(level)) {
                    Some(draw) => ("200 OK", entry(draw)),
                    None => ("409 Conflict", "{\"error\":\"season's share is used up\"}".to_owned()),
                }
            }
            _ => ("404 Not Found", "{\"error\":\"no such page\"}".to_owned()),
        };
        let connection = if request.keep_alive { "keep-alive" } else { "close" };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n",
            body.len()
        );
        out.write_all((head + &body).as_bytes())?;
        if !request.keep_alive {
            break;
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let port: u16 = env::var("PORT").ok().and_then(|text| text.parse().ok()).unwrap_or(8080);
    let variant = env::var("VARIANT").unwrap_or_default();
    let gauge_port = (variant == "healthy").then_some(port + 1);
    gauge_port.into_iter().for_each(gauge::start);
    let options = Options { in_turn: variant == "flawed", gauge_port };
    let book = Arc::new(Book::open());
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    for stream in listener.incoming() {
        let stream = stream?;
        let book = Arc::clone(&book);
        thread::spawn(move || converse(stream, &book, options));
    }
    Ok(())
}
