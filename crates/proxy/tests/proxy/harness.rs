//! A proxy in a thread, clients that read to the byte, and its counts.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadlens_proxy::{Proxy, Settings};
use serde_json::{json, Value};

/// More time than any step of these tests needs.
pub const LIMIT: Duration = Duration::from_secs(20);

/// A proxy that ends when this is dropped.
pub struct Running {
    pub port: u16,
    control_port: u16,
    ends: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

/// Starts one before a port of loopback; `with` replaces and adds settings.
pub fn proxy(upstream: u16, with: Value) -> Running {
    let mut settings = json!({
        "listen": "127.0.0.1:0", "control": "127.0.0.1:0",
        "upstreams": [SocketAddrV4::new(Ipv4Addr::LOCALHOST, upstream).to_string()],
    });
    for (key, value) in with.as_object().expect("settings are a mapping") {
        settings[key] = value.clone();
    }
    let settings = Settings::read(&settings.to_string()).expect("the settings are good");
    let proxy = Proxy::bind(settings).expect("ports are free");
    let (port, control_port) = (proxy.port, proxy.control_port);
    let (ends, ended) = UnixStream::pair().expect("a pair of sockets");
    let serve = move || {
        proxy.serve(&[ended.as_raw_fd()]).expect("the proxy serves");
    };
    Running {
        port,
        control_port,
        ends: Some(ends),
        thread: Some(std::thread::spawn(serve)),
    }
}

impl Running {
    /// The proxy's counts: `outcomes_total{outcome="passed"}` -> 3.
    pub fn counts(&self) -> Counts {
        let (status, page) = get(self.control_port, "/metrics");
        assert_eq!(status, 200);
        let figures = page
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| {
                let (name, value) = line.strip_prefix("loadlens_proxy_")?.rsplit_once(' ')?;
                Some((name.to_owned(), value.parse().ok()?))
            })
            .collect();
        Counts(figures)
    }

    /// The counts as soon as `is_so` holds for them, or as they are after a while.
    pub fn counts_when(&self, is_so: impl Fn(&Counts) -> bool) -> Counts {
        let began = Instant::now();
        loop {
            let counts = self.counts();
            if is_so(&counts) || began.elapsed() > LIMIT {
                return counts;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.port)
    }

    /// Bytes that reach a client that sends nothing. A reset may come before its `connect` has returned.
    pub fn hear_unasked(&self) -> Heard {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) {
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                Heard::Reset(Vec::new())
            }
            connected => Client::over(connected.expect("the proxy listens")).hear(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.ends.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

/// Figures by name.
#[derive(Debug)]
pub struct Counts(BTreeMap<String, f64>);

impl Counts {
    pub fn get(&self, name: &str) -> u64 {
        self.exact(name) as u64
    }

    pub fn exact(&self, name: &str) -> f64 {
        *self
            .0
            .get(name)
            .unwrap_or_else(|| panic!("no figure {name} in {self:?}"))
    }

    pub fn outcome(&self, name: &str) -> u64 {
        self.get(&format!("outcomes_total{{outcome=\"{name}\"}}"))
    }

    pub fn injected(&self, name: &str) -> u64 {
        self.get(&format!("injected_total{{fault=\"{name}\"}}"))
    }

    pub fn failures(&self, name: &str) -> u64 {
        self.get(&format!("upstream_errors_total{{kind=\"{name}\"}}"))
    }

    /// The law: every request that was read has exactly one outcome, once nothing is on its way.
    pub fn assert_balanced(&self) {
        let outcomes: f64 = self
            .0
            .iter()
            .filter(|(name, _)| name.starts_with("outcomes_total"))
            .map(|(_, count)| count)
            .sum();
        assert_eq!(outcomes, self.exact("requests_total"), "{self:?}");
        assert_eq!(self.get("in_flight"), 0, "{self:?}");
        assert_eq!(self.get("queue_length"), 0, "{self:?}");
    }
}

/// A connection that reads to the byte.
pub struct Client(pub TcpStream);

/// Result: an answer, or the end of the connection instead.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    Answer {
        status: u16,
        head: String,
        body: Vec<u8>,
    },
    Ended(Vec<u8>),
    Reset(Vec<u8>),
}

impl Heard {
    pub fn status(&self) -> u16 {
        match self {
            Heard::Answer { status, .. } => *status,
            other => panic!("no answer: {other:?}"),
        }
    }

    pub fn head(&self) -> &str {
        match self {
            Heard::Answer { head, .. } => head,
            other => panic!("no answer: {other:?}"),
        }
    }

    pub fn body(&self) -> &[u8] {
        match self {
            Heard::Answer { body, .. } => body,
            other => panic!("no answer: {other:?}"),
        }
    }
}

impl Client {
    pub fn connect(port: u16) -> Client {
        Client::over(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the proxy listens"))
    }

    fn over(stream: TcpStream) -> Client {
        stream.set_nodelay(true).expect("an option");
        stream.set_read_timeout(Some(LIMIT)).expect("an option");
        Client(stream)
    }

    pub fn say(&mut self, bytes: impl AsRef<[u8]>) {
        // A peer that has reset shows when we read.
        let _ = self.0.write_all(bytes.as_ref());
    }

    pub fn get(&mut self, path: &str) -> Heard {
        self.say(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        self.hear()
    }

    /// Reads one answer: by its length, in chunks (which stay as they are), or to the end.
    pub fn hear(&mut self) -> Heard {
        self.hear_of(false)
    }

    pub fn hear_of(&mut self, is_head: bool) -> Heard {
        let mut got = Vec::new();
        let mut buffer = [0; 64 * 1024];
        loop {
            if let Some(heard) = whole(&got, is_head) {
                return heard;
            }
            match self.0.read(&mut buffer) {
                Ok(0) => return ended(got),
                Ok(count) => got.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                    return Heard::Reset(got)
                }
                Err(error) => panic!("neither answer nor end: {error} after {} bytes", got.len()),
            }
        }
    }

    /// Everything until the connection ends.
    pub fn hear_all(&mut self) -> Heard {
        let mut got = Vec::new();
        let mut buffer = [0; 64 * 1024];
        loop {
            match self.0.read(&mut buffer) {
                Ok(0) => return Heard::Ended(got),
                Ok(count) => got.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                    return Heard::Reset(got)
                }
                Err(error) => panic!("no end: {error} after {} bytes", got.len()),
            }
        }
    }
}

fn head_end(got: &[u8]) -> Option<usize> {
    got.windows(4)
        .position(|four| four == b"\r\n\r\n")
        .map(|at| at + 4)
}

fn value<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

fn answer_of(got: &[u8], end: usize, body_end: usize) -> Heard {
    let head = String::from_utf8_lossy(&got[..end]).into_owned();
    let status = head[9..12].parse().expect("a status");
    assert_eq!(got.len(), body_end, "nothing follows an answer: {head}");
    Heard::Answer {
        status,
        head,
        body: got[end..body_end].to_vec(),
    }
}

fn whole(got: &[u8], is_head: bool) -> Option<Heard> {
    let end = head_end(got)?;
    let head = String::from_utf8_lossy(&got[..end]).into_owned();
    if head[9..12].starts_with('1') {
        return whole(&got[end..], is_head);
    }
    if is_head || matches!(&head[9..12], "204" | "304") {
        return Some(answer_of(got, end, end));
    }
    if let Some(length) = value(&head, "content-length") {
        let body_end = end + length.parse::<usize>().expect("a length");
        return (got.len() >= body_end).then(|| answer_of(got, end, body_end));
    }
    let is_chunked = value(&head, "transfer-encoding").is_some();
    (is_chunked && got.ends_with(b"0\r\n\r\n")).then(|| answer_of(got, end, got.len()))
}

fn ended(got: Vec<u8>) -> Heard {
    let Some(end) = head_end(&got) else {
        return Heard::Ended(got);
    };
    let head = String::from_utf8_lossy(&got[..end]).into_owned();
    if value(&head, "content-length").is_some() || value(&head, "transfer-encoding").is_some() {
        return Heard::Ended(got);
    }
    answer_of(&got, end, got.len())
}

/// One request on a connection of its own.
pub fn get(port: u16, path: &str) -> (u16, String) {
    let heard = Client::connect(port).get(path);
    (
        heard.status(),
        String::from_utf8_lossy(heard.body()).into_owned(),
    )
}
