//! The cookies of one user (RFC 6265), without I/O.
//!
//! A jar serves one target, so of a domain only its length is kept: how much of the host it covers. Cookies stand in the
//! order in which they are sent; their bytes stand in one buffer that is used again, so that a session that goes on and on
//! needs no memory of its own for each request. What a service writes is read in `line`.

mod line;

use line::{read_line, Line};

/// Cookies of one user at most, as many as RFC 6265 6.1 asks for; beyond, the oldest goes.
pub const MAX_COOKIES: usize = 50;
/// The longest cookie, name, value and path together; a longer one is not kept (RFC 6265 6.1).
pub const MAX_COOKIE_BYTES: usize = 4096;
/// Bytes that a user keeps in all; beyond, the oldest goes.
pub const MAX_JAR_BYTES: usize = 16 << 10;
/// The longest path of a request that cookies are matched with.
const MAX_PATH_BYTES: usize = 4096;
const NEVER: u64 = u64::MAX;

/// Site by which cookies are judged: the same for all users of a stream.
#[derive(Clone, Debug, Default)]
pub struct Site {
    host: String,
    is_address: bool,
    is_secure: bool,
}

impl Site {
    /// The site of a target: `authority` is the value of its Host header.
    pub fn new(authority: &str, is_secure: bool) -> Self {
        let host = match authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => authority.split(':').next().unwrap_or_default(),
        };
        Site {
            is_address: host.parse::<std::net::IpAddr>().is_ok(),
            host: host.to_ascii_lowercase(),
            is_secure,
        }
    }

    /// Length of the part of the host that a Domain attribute covers; none: another host (RFC 6265 5.1.3).
    fn covers(&self, domain: &[u8]) -> Option<u16> {
        let host = self.host.as_bytes();
        let tail = host.len().checked_sub(domain.len())?;
        let is_tail = host[tail..].eq_ignore_ascii_case(domain);
        let is_parent = tail > 0 && host[tail - 1] == b'.' && !self.is_address;
        (is_tail && (tail == 0 || is_parent)).then_some(domain.len() as u16)
    }
}

#[derive(Clone, Copy, Debug)]
struct Cookie {
    /// Start of its name, value and path, which follow one another.
    start: u32,
    name: u16,
    value: u16,
    path: u16,
    /// Length of the part of the host that its domain covers; all of it when it was set without one.
    domain: u16,
    /// Number of its creation: kept when its value is replaced.
    created: u32,
    /// Nanoseconds since 1970.
    expires: u64,
}

impl Cookie {
    fn len(&self) -> usize {
        usize::from(self.name) + usize::from(self.value) + usize::from(self.path)
    }
}

/// The cookies of one user. An empty one owns no memory.
#[derive(Clone, Default)]
pub struct Jar {
    bytes: Vec<u8>,
    /// Longer paths first, among equal ones the older first (RFC 6265 5.4).
    cookies: Vec<Cookie>,
    /// Path of the last request, without its query.
    path: Vec<u8>,
    created: u32,
}

/// Never prints the cookies: they are users' sessions.
impl std::fmt::Debug for Jar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Jar({} cookies)", self.cookies.len())
    }
}

impl Jar {
    /// Forgets all cookies.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.cookies.clear();
        self.created = 0;
    }

    /// Number of cookies.
    pub fn count(&self) -> usize {
        self.cookies.len()
    }

    /// Takes every Set-Cookie line of the head of an answer to the last request.
    pub fn take(&mut self, head: &[u8], site: &Site, unix_ns: u64) {
        for line in crate::response::headers(head, b"set-cookie").filter_map(read_line) {
            self.set(&line, site, unix_ns);
        }
    }

    /// Puts a Cookie line into a rendered request, behind its request line, when there is something to send and the
    /// request may carry it.
    pub fn put(&mut self, request: &mut Vec<u8>, may_carry: bool, unix_ns: u64) {
        self.note_path(request);
        if !may_carry || self.cookies.is_empty() {
            return;
        }
        self.drop_expired(unix_ns);
        let Some(end) = memchr::memchr(b'\n', request) else {
            return;
        };
        let old = request.len();
        let mut separator: &[u8] = b"Cookie: ";
        for cookie in &self.cookies {
            let at = cookie.start as usize;
            let value_at = at + usize::from(cookie.name);
            let path_at = value_at + usize::from(cookie.value);
            let path = &self.bytes[path_at..path_at + usize::from(cookie.path)];
            if !path_matches(&self.path, path) {
                continue;
            }
            request.extend_from_slice(separator);
            request.extend_from_slice(&self.bytes[at..value_at]);
            request.push(b'=');
            request.extend_from_slice(&self.bytes[value_at..path_at]);
            separator = b"; ";
        }
        if request.len() > old {
            request.extend_from_slice(b"\r\n");
            let added = request.len() - old;
            request[end + 1..].rotate_right(added);
        }
    }

    /// Keeps the path of a request: what its answer's cookies belong to, unless they say.
    fn note_path(&mut self, request: &[u8]) {
        self.path.clear();
        let Some(begin) = memchr::memchr(b' ', request) else {
            return;
        };
        let path = &request[begin + 1..];
        let end = path
            .iter()
            .position(|byte| matches!(byte, b' ' | b'?' | b'\r'));
        let end = end.unwrap_or(path.len()).min(MAX_PATH_BYTES);
        self.path.extend_from_slice(&path[..end]);
    }

    /// RFC 6265 5.3.
    fn set(&mut self, line: &Line<'_>, site: &Site, unix_ns: u64) {
        if line.is_secure && !site.is_secure {
            return; // it would never be sent
        }
        let domain = match line.domain {
            [] => site.host.len() as u16,
            domain => match site.covers(domain) {
                Some(length) => length,
                None => return,
            },
        };
        let expires = match (line.max_age, line.expires) {
            (Some(seconds), _) if seconds <= 0 => 0,
            (Some(seconds), _) => {
                unix_ns.saturating_add((seconds as u64).saturating_mul(1_000_000_000))
            }
            (None, Some(at)) => at,
            (None, None) => NEVER,
        };
        let own_path = std::mem::take(&mut self.path);
        let path = match line.path {
            Some(path) if path.first() == Some(&b'/') => path,
            _ => default_path(&own_path),
        };
        self.replace(line, path, domain, expires, unix_ns);
        self.path = own_path;
    }

    fn replace(&mut self, line: &Line<'_>, path: &[u8], domain: u16, expires: u64, unix_ns: u64) {
        let before = self
            .cookies
            .iter()
            .position(|cookie| cookie.domain == domain && self.is(cookie, line.name, path));
        let created = before.map(|index| self.remove(index).created);
        let length = line.name.len() + line.value.len() + path.len();
        if expires <= unix_ns || length > MAX_COOKIE_BYTES {
            return;
        }
        while self.cookies.len() >= MAX_COOKIES || self.bytes.len() + length > MAX_JAR_BYTES {
            self.remove_oldest();
        }
        let created = created.unwrap_or_else(|| {
            self.created += 1;
            self.created
        });
        let cookie = Cookie {
            start: self.bytes.len() as u32,
            name: line.name.len() as u16,
            value: line.value.len() as u16,
            path: path.len() as u16,
            domain,
            created,
            expires,
        };
        for part in [line.name, line.value, path] {
            self.bytes.extend_from_slice(part);
        }
        let goes_before = |other: &Cookie| {
            cookie.path > other.path || cookie.path == other.path && created < other.created
        };
        let place = self.cookies.iter().position(goes_before);
        self.cookies
            .insert(place.unwrap_or(self.cookies.len()), cookie);
    }

    fn is(&self, cookie: &Cookie, name: &[u8], path: &[u8]) -> bool {
        let at = cookie.start as usize;
        let path_at = at + cookie.len() - usize::from(cookie.path);
        &self.bytes[at..at + usize::from(cookie.name)] == name
            && &self.bytes[path_at..at + cookie.len()] == path
    }

    fn remove(&mut self, index: usize) -> Cookie {
        let cookie = self.cookies.remove(index);
        let at = cookie.start as usize;
        self.bytes.drain(at..at + cookie.len());
        for other in &mut self.cookies {
            if other.start > cookie.start {
                other.start -= cookie.len() as u32;
            }
        }
        cookie
    }

    fn remove_oldest(&mut self) {
        let oldest = (0..self.cookies.len()).min_by_key(|index| self.cookies[*index].created);
        if let Some(index) = oldest {
            self.remove(index);
        }
    }

    fn drop_expired(&mut self, unix_ns: u64) {
        while let Some(index) = self
            .cookies
            .iter()
            .position(|cookie| cookie.expires <= unix_ns)
        {
            self.remove(index);
        }
    }
}

/// RFC 6265 5.1.4: up to the last slash, without it.
fn default_path(path: &[u8]) -> &[u8] {
    match memchr::memrchr(b'/', path) {
        Some(last) if last > 0 && path.first() == Some(&b'/') => &path[..last],
        _ => b"/",
    }
}

/// RFC 6265 5.1.4.
fn path_matches(request: &[u8], cookie: &[u8]) -> bool {
    request.starts_with(cookie)
        && (request.len() == cookie.len()
            || cookie.last() == Some(&b'/')
            || request[cookie.len()] == b'/')
}

#[cfg(test)]
mod tests;
