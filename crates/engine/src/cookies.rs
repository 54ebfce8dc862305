//! The cookies of one user (RFC 6265), without I/O.
//!
//! A jar serves one target, so of a domain only its length is kept: how much of the host it covers. Cookies stand in the
//! order in which they are sent; their bytes stand in one buffer that is used again, so that a session that goes on and on
//! needs no memory of its own for each request.

/// Cookies of one user at most, as many as RFC 6265 6.1 asks for; beyond, the oldest goes.
pub const MAX_COOKIES: usize = 50;
/// The longest cookie, name, value and path together; a longer one is not kept (RFC 6265 6.1).
pub const MAX_COOKIE_BYTES: usize = 4096;
/// Bytes that a user keeps in all; beyond, the oldest goes.
pub const MAX_JAR_BYTES: usize = 16 << 10;
/// The longest path of a request that cookies are matched with.
const MAX_PATH_BYTES: usize = 4096;
const NEVER: u64 = u64::MAX;

/// What a cookie must be judged by: the same for all users of a stream.
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

    /// How much of the host a Domain attribute covers; none: it is not about this host (RFC 6265 5.1.3).
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
    /// Where its name, value and path stand, one after the other.
    start: u32,
    name: u16,
    value: u16,
    path: u16,
    /// How much of the host its domain covers; all of it when it was set without one.
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

/// Never the cookies: they are sessions of somebody.
impl std::fmt::Debug for Jar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Jar({} cookies)", self.cookies.len())
    }
}

/// A Set-Cookie line taken apart.
struct Line<'a> {
    name: &'a [u8],
    value: &'a [u8],
    path: Option<&'a [u8]>,
    domain: &'a [u8],
    max_age: Option<i64>,
    expires: Option<u64>,
    is_secure: bool,
}

impl Jar {
    /// Forgets all cookies.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.cookies.clear();
        self.created = 0;
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.cookies.len()
    }

    /// Takes every Set-Cookie line of the head of an answer to the last request.
    pub fn take(&mut self, head: &[u8], site: &Site, unix_ns: u64) {
        crate::http1::response::each_header(head, b"set-cookie", |line| {
            if let Some(line) = read_line(line) {
                self.set(&line, site, unix_ns);
            }
        });
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
        let known = self
            .cookies
            .iter()
            .position(|cookie| cookie.domain == domain && self.is(cookie, line.name, path));
        let created = known.map(|index| self.remove(index).created);
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

/// Takes a Set-Cookie value apart (RFC 6265 5.2); none: it is to be ignored.
fn read_line(text: &[u8]) -> Option<Line<'_>> {
    let is_control = |byte: &u8| *byte < b' ' && *byte != b'\t' || *byte == 0x7f;
    if text.iter().any(is_control) {
        return None; // it would be a control byte in our request
    }
    let mut parts = text.split(|byte| *byte == b';');
    let pair = parts.next()?;
    let equals = memchr::memchr(b'=', pair)?;
    let mut line = Line {
        name: pair[..equals].trim_ascii(),
        value: pair[equals + 1..].trim_ascii(),
        path: None,
        domain: b"",
        max_age: None,
        expires: None,
        is_secure: false,
    };
    if line.name.is_empty() {
        return None;
    }
    for part in parts {
        let equals = memchr::memchr(b'=', part).unwrap_or(part.len());
        let name = part[..equals].trim_ascii();
        let value = part.get(equals + 1..).unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"path") {
            line.path = Some(value);
        } else if name.eq_ignore_ascii_case(b"domain") {
            if !value.is_empty() {
                line.domain = value.strip_prefix(b".").unwrap_or(value);
            }
        } else if name.eq_ignore_ascii_case(b"max-age") {
            line.max_age = read_max_age(value).or(line.max_age);
        } else if name.eq_ignore_ascii_case(b"expires") {
            line.expires = read_date(value).or(line.expires);
        } else if name.eq_ignore_ascii_case(b"secure") {
            line.is_secure = true;
        }
    }
    Some(line)
}

/// Digits with or without a minus before them; more than fit are as many as fit.
fn read_max_age(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if digits.len() < text.len() {
        return Some(-1);
    }
    Some(read_number(digits).map_or(i64::MAX, |number| number as i64))
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

fn read_number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(
        digits
            .iter()
            .fold(0, |number, digit| number * 10 + u64::from(digit - b'0')),
    )
}

/// A cookie's date in nanoseconds since 1970 (RFC 6265 5.1.1): whatever order its parts stand in.
fn read_date(text: &[u8]) -> Option<u64> {
    let is_delimiter =
        |byte: &u8| matches!(byte, b'\t' | b' '..=b'/' | b';'..=b'@' | b'['..=b'`' | b'{'..=b'~');
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        if time.is_none() && read_time(token).is_some() {
            time = read_time(token);
        } else if day.is_none() && leading_number(token, 2).is_some() {
            day = leading_number(token, 2);
        } else if month.is_none() && read_month(token).is_some() {
            month = read_month(token);
        } else if year.is_none() && token.len() >= 2 {
            year = leading_number(token, 4).filter(|_| token[1].is_ascii_digit());
        }
    }
    let year = match year? {
        short @ 70..=99 => 1900 + short,
        short @ 0..=69 => 2000 + short,
        long => long,
    };
    let ([hour, minute, second], day, month) = (time?, day?, month?);
    let days = days_since_1970(year as i64, month as i64, day as i64);
    let next_month = days_since_1970(year as i64, month as i64 + 1, 1);
    if day < 1 || days >= next_month || year < 1601 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days * 86_400 + (hour * 3600 + minute * 60 + second) as i64;
    Some(
        u64::try_from(seconds)
            .unwrap_or(0)
            .saturating_mul(1_000_000_000),
    )
}

/// The number that at most so many digits at the beginning of a token make; none where there are more, or none.
fn leading_number(token: &[u8], most: usize) -> Option<u64> {
    let digits = token
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    (1..=most)
        .contains(&digits)
        .then(|| read_number(&token[..digits]))
        .flatten()
}

/// The numbers of `H:M:S`, however high.
fn read_time(token: &[u8]) -> Option<[u64; 3]> {
    let mut parts = token.splitn(3, |byte| *byte == b':');
    let mut whole = || {
        let part = parts.next()?;
        (part.len() <= 2).then(|| read_number(part)).flatten()
    };
    let (hour, minute) = (whole()?, whole()?);
    Some([hour, minute, leading_number(parts.next()?, 2)?])
}

fn read_month(token: &[u8]) -> Option<u64> {
    const MONTHS: &[u8; 36] = b"janfebmaraprmayjunjulaugsepoctnovdec";
    let name = token.get(..3)?;
    let month = MONTHS
        .chunks(3)
        .position(|month| month.eq_ignore_ascii_case(name))?;
    Some(month as u64 + 1)
}

/// Days from 1970-01-01 in the Gregorian calendar (Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let shifted = (month + 9) % 12; // March is 0
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000 * 1_000_000_000; // 2023-11-14T22:13:20Z

    struct Browser {
        jar: Jar,
        site: Site,
        now: u64,
    }

    impl Browser {
        fn at(authority: &str) -> Self {
            Browser {
                jar: Jar::default(),
                site: Site::new(authority, false),
                now: NOW,
            }
        }

        /// Sends a request and takes the cookies of its answer; gives what its Cookie line held.
        fn get(&mut self, path: &str, set: &[&str]) -> String {
            let plain = format!("GET {path} HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\nbody");
            let mut request = plain.clone().into_bytes();
            self.jar.put(&mut request, true, self.now);
            let request = String::from_utf8(request).unwrap();
            let cookie = request
                .lines()
                .find_map(|line| line.strip_prefix("Cookie: "))
                .unwrap_or_default()
                .to_owned();
            let without = request.replacen(&format!("Cookie: {cookie}\r\n"), "", 1);
            assert_eq!(
                if cookie.is_empty() {
                    &request
                } else {
                    &without
                },
                &plain
            );
            let lines: String = set
                .iter()
                .map(|set| format!("sEt-cookie: {set}\r\n"))
                .collect();
            let head = format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 0\r\n\r\n");
            self.jar.take(head.as_bytes(), &self.site, self.now);
            cookie
        }
    }

    #[test]
    fn what_a_service_sets_is_sent_back() {
        // The examples of RFC 6265 3.1.
        let mut browser = Browser::at("www.example.com:8080");

        browser.get(
            "/login",
            &[
                "SID=31d4d96e407aad42; Path=/; HttpOnly",
                "lang=en-US; Path=/; Domain=example.com",
            ],
        );
        assert_eq!(
            browser.get(
                "/any/where?a=/b",
                &["lang=; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Path=/; Domain=example.com"]
            ),
            "SID=31d4d96e407aad42; lang=en-US"
        );
        assert_eq!(browser.get("/", &[]), "SID=31d4d96e407aad42");
    }

    #[test]
    fn a_cookie_belongs_to_a_path() {
        for (set_at, path, sent_to, not_to) in [
            ("/a/b/c", "", "/a/b/x", "/a"), // default: up to the last slash
            ("/a/b/c", "", "/a/b", "/a/bc"),
            ("/x", "", "/anything", ""),
            ("/x", "; Path=/docs", "/docs/web?q", "/docsets"),
            ("/x", "; Path=/docs/", "/docs/web", "/docs"),
            ("/x", "; path=docs", "/other", ""), // not absolute: the default
            ("/x", "; Path=/a; Path=/b", "/b", "/a"), // the last one counts
            ("/x?y=/z/", "", "/q", ""),          // a query is no path
        ] {
            let mut browser = Browser::at("h");
            browser.get(set_at, &[&format!("k=v{path}")]);
            assert_eq!(
                browser.get(sent_to, &[]),
                "k=v",
                "{set_at} {path} {sent_to}"
            );
            if !not_to.is_empty() {
                assert_eq!(browser.get(not_to, &[]), "", "{set_at} {path} {not_to}");
            }
        }
    }

    #[test]
    fn longer_paths_are_sent_first_and_then_older_ones() {
        let mut browser = Browser::at("h");

        browser.get(
            "/",
            &[
                "a=1; Path=/",
                "b=2; Path=/x",
                "c=3; Path=/",
                "d=4; Path=/x/y",
            ],
        );
        browser.get("/", &["a=5; Path=/", "b=6; Path=/x"]); // replaced: as old as before

        assert_eq!(browser.get("/x/y", &[]), "d=4; b=6; a=5; c=3");
    }

    #[test]
    fn a_domain_must_be_of_the_host() {
        for (authority, domain, is_kept) in [
            ("www.example.com", "example.com", true),
            ("www.example.com", ".Example.COM", true),
            ("www.example.com:80", "www.example.com", true),
            ("www.example.com", "ww.example.com", false),
            ("www.example.com", "w.example.com", false),
            ("www.example.com", "a.www.example.com", false),
            ("www.example.com", "other.org", false),
            ("example.com", "ample.com", false),
            ("127.0.0.1:8080", "127.0.0.1", true),
            ("127.0.0.1:8080", "0.0.1", false),
            ("[::1]:80", "::1", true),
            ("h", "", true),
        ] {
            let mut browser = Browser::at(authority);
            browser.get("/", &[&format!("k=v; Domain={domain}")]);
            assert_eq!(
                browser.get("/", &[]) == "k=v",
                is_kept,
                "{authority} {domain}"
            );
        }
    }

    #[test]
    fn cookies_of_two_domains_with_one_name_are_two() {
        let mut browser = Browser::at("www.example.com");

        browser.get(
            "/",
            &[
                "k=1",
                "k=2; Domain=example.com",
                "k=3; Domain=www.example.com",
            ],
        );

        assert_eq!(browser.get("/", &["k=4; Domain=example.com"]), "k=3; k=2");
        assert_eq!(browser.get("/", &[]), "k=3; k=4");
    }

    #[test]
    fn a_cookie_ends_when_it_said() {
        let mut browser = Browser::at("h");
        browser.get(
            "/",
            &[
                "age=1; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT", // Max-Age counts
                "date=2; Expires=Tue, 14 Nov 2023 22:13:25 GMT",            // 5 s from now
                "broken=3; Expires=never; Max-Age=1e3",                     // neither: a session
                "gone=4; Max-Age=0",
            ],
        );

        assert_eq!(browser.get("/", &[]), "age=1; date=2; broken=3");
        browser.now += 5 * 1_000_000_000;
        assert_eq!(browser.get("/", &[]), "age=1; broken=3");
        browser.now += 5 * 1_000_000_000;
        assert_eq!(browser.get("/", &["broken=x; Max-Age=-1"]), "broken=3");
        assert_eq!(browser.get("/", &[]), "");
        assert_eq!(browser.jar.count(), 0);
    }

    #[test]
    fn secure_cookies_are_for_https_only() {
        let mut plain = Browser::at("h");
        let mut secure = Browser::at("h");
        secure.site = Site::new("h", true);

        for browser in [&mut plain, &mut secure] {
            browser.get("/", &["a=1; secure", "b=2"]);
        }

        assert_eq!(plain.get("/", &[]), "b=2");
        assert_eq!(secure.get("/", &[]), "a=1; b=2");
    }

    #[test]
    fn lines_are_read_as_leniently_as_rfc_6265_5_2_asks() {
        for (set, sent) in [
            ("  k =  v w ; x", "k=v w"),
            ("k=\"v\"", "k=\"v\""),
            ("k=a=b==", "k=a=b=="),
            ("k=", "k="),
            ("=v", ""),
            ("k", ""),
            ("", ""),
            ("k=a\x01b", ""),
            ("k=v; =; ;; Path", "k=v"),
        ] {
            let mut browser = Browser::at("h");
            browser.get("/", &[set]);
            assert_eq!(browser.get("/", &[]), sent, "{set}");
        }
    }

    #[test]
    fn dates_are_read_in_every_form_that_servers_write() {
        let second = |seconds: u64| Some(seconds * 1_000_000_000);
        for (text, date) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", second(784_111_777)), // RFC 9110 5.6.7, all three forms
            ("Sunday, 06-Nov-94 08:49:37 GMT", second(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", second(784_111_777)),
            ("Tue, 29-Feb-2000 23:59:59 GMT", second(951_868_799)),
            ("1 march 2100 0:0:0", second(4_107_542_400)),
            ("Fri, 31 Dec 1965 00:00:00 GMT", second(0)), // before 1970: long gone
            ("06 Nov 24:00:00 1994", None),
            ("32 Nov 1994 00:00:00", None),
            ("25:00:00 06 Nov 1994 08:49:37", None), // the time is the first that is written as one
            ("29 Feb 2100 00:00:00", None),          // there is no such day
            ("31 Dec 2026 00:00:00", second(1_798_675_200)),
            ("06 Nov 1994", None),
            ("06 Now 1994 00:00:00", None),
            ("", None),
        ] {
            assert_eq!(read_date(text.as_bytes()), date, "{text}");
        }
    }

    #[test]
    fn an_empty_domain_leaves_the_one_before_it() {
        // RFC 6265 5.2.3
        let mut browser = Browser::at("h");

        assert_eq!(browser.get("/", &["a=1; Domain=other; Domain="]), "");

        assert_eq!(browser.jar.count(), 0);
    }

    #[test]
    fn a_jar_is_bounded_and_the_oldest_goes_first() {
        let mut browser = Browser::at("h");
        for number in 0..60 {
            browser.get("/", &[&format!("k{number}=v")]);
        }
        assert_eq!(browser.jar.count(), MAX_COOKIES);
        assert!(browser.get("/", &[]).starts_with("k10=v; k11=v"));

        browser.get("/", &[&format!("long={}", "x".repeat(MAX_COOKIE_BYTES))]); // not kept
        assert_eq!(browser.jar.count(), MAX_COOKIES);
        for number in 0..10 {
            browser.get("/", &[&format!("big{number}={}", "x".repeat(4_000))]);
        }
        assert_eq!(browser.get("/", &[]).matches("big").count(), 4); // 16 KiB
        assert!(browser.jar.bytes.len() <= MAX_JAR_BYTES);
        browser.jar.clear();
        assert_eq!(browser.get("/", &[]), "");
    }

    #[test]
    fn a_session_that_is_renewed_with_each_answer_needs_no_more_memory() {
        let mut browser = Browser::at("h");
        for number in 0..100 {
            browser.get("/a/b", &[&format!("sid={number:08}; Path=/"), "lang=en"]);
        }
        let sizes = |jar: &Jar| {
            (
                jar.bytes.capacity(),
                jar.cookies.capacity(),
                jar.path.capacity(),
            )
        };
        let before = sizes(&browser.jar);

        for number in 0..1000 {
            browser.get("/a/b", &[&format!("sid={number:08}; Path=/"), "lang=en"]);
        }

        assert_eq!(sizes(&browser.jar), before);
        assert_eq!(browser.get("/a/b", &[]), "lang=en; sid=00000999");
    }
}
