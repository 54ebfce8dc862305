//! A slow cookie jar after RFC 6265, step by step, with none of the engine's code in it.
//!
//! It makes the choices that `cookies` documents: one host, 50 cookies, 4,096 bytes a cookie, 16 KiB in all; a line with a
//! control byte is ignored.

struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    path: Vec<u8>,
    domain: Vec<u8>,
    /// None: the session's.
    expires_ns: Option<u128>,
    created: u64,
}

impl Cookie {
    fn len(&self) -> usize {
        self.name.len() + self.value.len() + self.path.len()
    }
}

/// The cookies of one user at one host.
pub struct SlowJar {
    host: Vec<u8>,
    is_secure: bool,
    cookies: Vec<Cookie>,
    created: u64,
    /// Path of the last request, without its query.
    path: Vec<u8>,
}

impl SlowJar {
    pub fn new(host: &str, is_secure: bool) -> SlowJar {
        SlowJar {
            host: host.as_bytes().to_vec(),
            is_secure,
            cookies: Vec::new(),
            created: 0,
            path: Vec::new(),
        }
    }

    /// 5.2 and 5.3: takes the value of one Set-Cookie.
    pub fn set(&mut self, line: &[u8], now_ns: u64) {
        if line
            .iter()
            .any(|byte| (*byte < 32 && *byte != b'\t') || *byte == 127)
        {
            return;
        }
        let mut parts = line.split(|byte| *byte == b';');
        let pair = parts.next().unwrap_or_default();
        let Some((name, value)) = halves(pair) else {
            return; // 5.2 step 2
        };
        if name.is_empty() {
            return;
        }
        let (mut max_age, mut expires, mut domain, mut path) = (None, None, Vec::new(), Vec::new());
        let mut is_secure = false;
        for part in parts {
            let (attribute, value) = halves(part).unwrap_or((trimmed(part), b""));
            match attribute.to_ascii_lowercase().as_slice() {
                b"expires" => expires = date(value).or(expires),
                b"max-age" => max_age = seconds(value).or(max_age),
                // 5.2.3: an empty value is ignored.
                b"domain" if !value.is_empty() => {
                    domain = value
                        .strip_prefix(b".")
                        .unwrap_or(value)
                        .to_ascii_lowercase();
                }
                b"path" => path = value.to_vec(),
                b"secure" => is_secure = true,
                _ => {}
            }
        }
        if !path.starts_with(b"/") {
            path = self.default_path();
        }
        let domain = match domain.as_slice() {
            [] => self.host.clone(),
            domain if self.matches(domain) => domain.to_vec(),
            _ => return,
        };
        if is_secure && !self.is_secure {
            return;
        }
        let expires_ns = match (max_age, expires) {
            (Some(age), _) if age <= 0 => Some(0),
            (Some(age), _) => Some(u128::from(now_ns) + age as u128 * 1_000_000_000),
            (None, Some(at)) => Some((at.max(0) as u128) * 1_000_000_000),
            (None, None) => None,
        };
        let same =
            |cookie: &Cookie| cookie.name == name && cookie.domain == domain && cookie.path == path;
        let mut created = None;
        if let Some(known) = self.cookies.iter().position(same) {
            created = Some(self.cookies.remove(known).created); // 5.3 step 11
        }
        let cookie = Cookie {
            name: name.to_vec(),
            value: value.to_vec(),
            path,
            domain,
            expires_ns,
            created: created.unwrap_or(self.created + 1),
        };
        if cookie.len() > 4096 || expires_ns.is_some_and(|at| at <= u128::from(now_ns)) {
            return;
        }
        self.created = self.created.max(cookie.created);
        let held = |cookies: &[Cookie]| cookies.iter().map(Cookie::len).sum::<usize>();
        while self.cookies.len() >= 50 || held(&self.cookies) + cookie.len() > 16 << 10 {
            let oldest = self.cookies.iter().map(|cookie| cookie.created).min();
            self.cookies.retain(|cookie| Some(cookie.created) != oldest);
        }
        self.cookies.push(cookie);
    }

    /// 5.4: what the request for this target carries; none: no cookie.
    pub fn cookies_for(&mut self, target: &[u8], now_ns: u64) -> Option<Vec<u8>> {
        let path = target
            .split(|byte| *byte == b'?')
            .next()
            .unwrap_or_default();
        self.path = path.to_vec();
        self.cookies
            .retain(|cookie| cookie.expires_ns.is_none_or(|at| at > u128::from(now_ns)));
        let mut sent: Vec<&Cookie> = self
            .cookies
            .iter()
            .filter(|cookie| {
                path == cookie.path
                    || path.starts_with(&cookie.path)
                        && (cookie.path.ends_with(b"/") || path[cookie.path.len()] == b'/')
            })
            .collect();
        sent.sort_by_key(|cookie| (usize::MAX - cookie.path.len(), cookie.created));
        let pairs: Vec<Vec<u8>> = sent
            .iter()
            .map(|cookie| [cookie.name.as_slice(), b"=", &cookie.value].concat())
            .collect();
        (!pairs.is_empty()).then(|| trimmed(&pairs.join(&b"; "[..])).to_vec())
    }

    /// 5.1.3: the domain is the host or a parent of it, which an address does not have.
    fn matches(&self, domain: &[u8]) -> bool {
        let is_address =
            self.host.iter().all(|b| b.is_ascii_digit() || *b == b'.') || self.host.contains(&b':');
        let is_parent = || self.host.ends_with(&[b".", domain].concat());
        self.host == domain || (!is_address && is_parent())
    }

    /// 5.1.4.
    fn default_path(&self) -> Vec<u8> {
        if !self.path.starts_with(b"/") || self.path.iter().filter(|b| **b == b'/').count() < 2 {
            return b"/".to_vec();
        }
        let last = self.path.iter().rposition(|byte| *byte == b'/');
        self.path[..last.unwrap_or(0)].to_vec()
    }
}

fn trimmed(text: &[u8]) -> &[u8] {
    let mut text = text;
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

/// Splits a text at its first equals sign.
fn halves(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| *byte == b'=')?;
    Some((trimmed(&text[..at]), trimmed(&text[at + 1..])))
}

/// 5.2.2.
fn seconds(text: &[u8]) -> Option<i128> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0i128, |number, digit| {
        (number * 10 + i128::from(digit - b'0')).min(1 << 70)
    });
    Some(if text.len() > digits.len() {
        -number
    } else {
        number
    })
}

/// 5.1.1: seconds since 1970; none: the parse failed.
fn date(text: &[u8]) -> Option<i64> {
    let is_delimiter =
        |b: &u8| matches!(b, 0x09 | 0x20..=0x2f | 0x3b..=0x40 | 0x5b..=0x60 | 0x7b..=0x7e);
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        if time.is_none() && hms(token).is_some() {
            time = hms(token);
        } else if day.is_none() && number(token, 1, 2).is_some() {
            day = number(token, 1, 2);
        } else if month.is_none() && month_of(token).is_some() {
            month = month_of(token);
        } else if year.is_none() {
            year = number(token, 2, 4);
        }
    }
    let ((hour, minute, second), day, month, year) = (time?, day?, month?, year?);
    let year = match year {
        70..=99 => year + 1900,
        0..=69 => year + 2000,
        _ => year,
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [
        31,
        if is_leap { 29 } else { 28 },
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    if day < 1 || day > lengths[month - 1] || year < 1601 || hour > 23 || minute > 59 || second > 59
    {
        return None;
    }
    let leap_days = |year: i64| year / 4 - year / 100 + year / 400;
    let before = lengths[..month - 1].iter().sum::<i64>();
    let days = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969) + before + day - 1;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// From `least` to `most` digits, and then none.
fn number(token: &[u8], least: usize, most: usize) -> Option<i64> {
    let digits = token.iter().take_while(|b| b.is_ascii_digit()).count();
    let text = std::str::from_utf8(&token[..digits]).ok()?;
    (least..=most)
        .contains(&digits)
        .then(|| text.parse().ok())?
}

/// Three fields of one or two digits; what follows the last is no digit.
fn hms(token: &[u8]) -> Option<(i64, i64, i64)> {
    let fields: Vec<&[u8]> = token.splitn(3, |byte| *byte == b':').collect();
    let [hour, minute, second] = fields[..] else {
        return None;
    };
    let is_whole = |field: &[u8]| field.iter().all(u8::is_ascii_digit);
    if !is_whole(hour) || !is_whole(minute) {
        return None;
    }
    Some((
        number(hour, 1, 2)?,
        number(minute, 1, 2)?,
        number(second, 1, 2)?,
    ))
}

fn month_of(token: &[u8]) -> Option<usize> {
    let names = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let name = token.get(..3)?.to_ascii_lowercase();
    names
        .iter()
        .position(|known| known.as_bytes() == name)
        .map(|at| at + 1)
}
