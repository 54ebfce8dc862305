//! One value of a JSON body, found by scanning: no tree is built and nothing after the value is read.
//!
//! What lies on the way is skipped by its brackets and quotes; the value itself must be valid JSON.
//! Of members with the same name the first counts. What a found value is compared with is in `expected`.

mod expected;

use std::borrow::Cow;

pub(super) use expected::Expected;

/// The deepest nesting that is followed.
const MAX_DEPTH: u32 = 128;

/// A dotted path: `data.items[0].id`, `items[-1]`, `["a key"].x`, with or without a leading `$` (RFC 9535's shorthand for
/// one value: no wildcards, slices or filters).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path(Vec<Member>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Member {
    Key(String),
    Index(usize),
    /// 1 is the last element.
    FromEnd(usize),
}

impl Path {
    /// Reads a path; a fault says what is wrong and where.
    pub fn parse(text: &str) -> Result<Path, String> {
        let mut members = Vec::new();
        let mut rest = text.strip_prefix('$').unwrap_or(text);
        if text.trim() != text || text.is_empty() {
            return Err(format!(
                "`{text}` is not a JSON path: example data.items[0].id"
            ));
        }
        while !rest.is_empty() {
            let (member, after) = if let Some(inside) = rest.strip_prefix('[') {
                bracket(inside, text)?
            } else {
                let key = if members.is_empty() && !text.starts_with('$') {
                    rest
                } else {
                    rest.strip_prefix('.').ok_or_else(|| {
                        format!("a dot is missing in JSON path `{text}` before `{rest}`")
                    })?
                };
                let end = key.find(['.', '[']).unwrap_or(key.len());
                if end == 0 {
                    return Err(format!("JSON path `{text}` has an empty name: write [\"\"] for a key without letters"));
                }
                (Member::Key(key[..end].to_owned()), &key[end..])
            };
            members.push(member);
            rest = after;
        }
        if members.len() > MAX_DEPTH as usize {
            return Err(format!(
                "a JSON path has at most {MAX_DEPTH} parts, this one has {}",
                members.len()
            ));
        }
        Ok(Path(members))
    }

    /// The bytes of the value at this path; none when it is not there or not valid JSON.
    pub fn find<'a>(&self, body: &'a [u8]) -> Option<&'a [u8]> {
        let mut scanner = self.enter(body)?;
        scanner.space();
        let start = scanner.at;
        scanner.skip_value()?;
        let raw = &scanner.bytes[start..scanner.at];
        is_valid(raw).then_some(raw)
    }

    /// Number of elements of the array at this path, or of members of the object; none when there is neither.
    pub fn count(&self, body: &[u8]) -> Option<u64> {
        let raw = self.find(body)?;
        let mut scanner = Scanner { bytes: raw, at: 0 };
        match raw.first()? {
            b'[' => scanner.count(b'[', b']'),
            b'{' => scanner.count(b'{', b'}'),
            _ => None,
        }
    }

    /// Returns a scanner at the place in the body that the path leads to.
    fn enter<'a>(&self, body: &'a [u8]) -> Option<Scanner<'a>> {
        let mut scanner = Scanner::new(body);
        for member in &self.0 {
            match member {
                Member::Key(key) => scanner.enter_member(key)?,
                Member::Index(index) => scanner.enter_element(*index)?,
                Member::FromEnd(back) => scanner.enter_from_end(*back)?,
            }
        }
        Some(scanner)
    }
}

/// The text between `[` and `]`, and the rest after it.
fn bracket<'a>(inside: &'a str, text: &str) -> Result<(Member, &'a str), String> {
    for quote in ['"', '\''] {
        let Some(quoted) = inside.strip_prefix(quote) else {
            continue;
        };
        let end = quoted
            .find(&format!("{quote}]"))
            .ok_or_else(|| format!("`[{quote}` is not closed in JSON path `{text}`"))?;
        return Ok((Member::Key(quoted[..end].to_owned()), &quoted[end + 2..]));
    }
    let end = inside
        .find(']')
        .ok_or_else(|| format!("`[` is not closed in JSON path `{text}`"))?;
    let (index, after) = (&inside[..end], &inside[end + 1..]);
    let digits = index.strip_prefix('-').unwrap_or(index);
    let number: Option<usize> = digits.parse().ok();
    let number = number.filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
    match number {
        Some(number) if digits.len() == index.len() => Ok((Member::Index(number), after)),
        Some(number) if number > 0 => Ok((Member::FromEnd(number), after)),
        _ => Err(format!(
            "`[{index}]` in JSON path `{text}` is not an index: a number from 0, -1 for the last, or [\"a key\"]"
        )),
    }
}

/// True if a body is one JSON value, judged by brackets and quotes only.
pub(super) fn is_document(body: &[u8]) -> bool {
    let mut scanner = Scanner::new(body);
    let is_value = scanner.skip_value().is_some();
    scanner.space();
    is_value && scanner.at == scanner.bytes.len()
}

/// The number that a JSON value is; none: it is no number.
pub(super) fn number(raw: &[u8]) -> Option<f64> {
    let is_number = matches!(raw.first()?, b'-' | b'0'..=b'9');
    let text = std::str::from_utf8(raw).ok()?;
    is_number.then(|| text.parse().ok()).flatten()
}

fn is_valid(raw: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(raw) else {
        return false;
    };
    match raw {
        [b'"', inner @ .., b'"'] if inner.iter().all(|byte| *byte >= b' ' && *byte != b'\\') => {
            true
        }
        _ => serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok(),
    }
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn new(body: &'a [u8]) -> Self {
        let bytes = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body); // RFC 8259 8.1 lets a reader ignore it
        Scanner { bytes, at: 0 }
    }

    fn space(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Passes one byte and the space before it.
    fn pass(&mut self, byte: u8) -> Option<()> {
        self.space();
        (*self.bytes.get(self.at)? == byte).then(|| self.at += 1)
    }

    /// Moves to the value of the member `key` of the object that begins here.
    fn enter_member(&mut self, key: &str) -> Option<()> {
        self.pass(b'{')?;
        loop {
            self.space();
            let name = self.skip_string()?;
            self.pass(b':')?;
            if is_name(name, key) {
                return Some(());
            }
            self.skip_value()?;
            self.pass(b',')?; // a closing brace: not there
        }
    }

    /// Moves to element `index` of the array that begins here.
    fn enter_element(&mut self, index: usize) -> Option<()> {
        self.pass(b'[')?;
        self.space();
        if self.bytes.get(self.at) == Some(&b']') {
            return None;
        }
        for _ in 0..index {
            self.skip_value()?;
            self.pass(b',')?;
        }
        Some(())
    }

    /// Moves to the element at this distance from the end of the array that begins here; 1 is the last.
    fn enter_from_end(&mut self, back: usize) -> Option<()> {
        let start = self.at;
        let count = usize::try_from(self.count(b'[', b']')?).ok()?;
        self.at = start;
        self.enter_element(count.checked_sub(back)?)
    }

    /// Past the array or object that begins here; its number of elements or members.
    fn count(&mut self, open: u8, close: u8) -> Option<u64> {
        self.pass(open)?;
        if self.pass(close).is_some() {
            return Some(0);
        }
        let mut count = 0;
        loop {
            if open == b'{' {
                self.space();
                self.skip_string()?;
                self.pass(b':')?;
            }
            self.skip_value()?;
            count += 1;
            if self.pass(b',').is_none() {
                return self.pass(close).map(|()| count);
            }
        }
    }

    /// Past the string that begins here; returns it with its quotes.
    fn skip_string(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        if *self.bytes.get(start)? != b'"' {
            return None;
        }
        self.at += 1;
        loop {
            let rest = &self.bytes[self.at..];
            let length = memchr::memchr2(b'"', b'\\', rest)?;
            if rest[length] == b'"' {
                self.at += length + 1;
                return Some(&self.bytes[start..self.at]);
            }
            self.at += length + 2; // the byte after a backslash never ends a string
            if self.at > self.bytes.len() {
                return None;
            }
        }
    }

    /// Past the value that begins here, by its brackets and quotes.
    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0u32;
        let mut arrays = 0u128; // bit 0: whether the innermost open bracket is an array's
        self.space();
        loop {
            match *self.bytes.get(self.at)? {
                b'"' => {
                    self.skip_string()?;
                }
                open @ (b'{' | b'[') => {
                    if depth == MAX_DEPTH {
                        return None;
                    }
                    depth += 1;
                    arrays = arrays << 1 | u128::from(open == b'[');
                    self.at += 1;
                    continue;
                }
                close @ (b'}' | b']') => {
                    if depth == 0 || (close == b']') != (arrays & 1 == 1) {
                        return None;
                    }
                    depth -= 1;
                    arrays >>= 1;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                _ => self.skip_scalar()?,
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// Past a number, `true`, `false` or `null`.
    fn skip_scalar(&mut self) -> Option<()> {
        let rest = &self.bytes[self.at..];
        let len = rest
            .iter()
            .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')))
            .unwrap_or(rest.len());
        self.at += len;
        (len > 0).then_some(())
    }
}

fn is_name(quoted: &[u8], key: &str) -> bool {
    let inner = &quoted[1..quoted.len() - 1];
    if memchr::memchr(b'\\', inner).is_none() {
        return inner == key.as_bytes();
    }
    unescaped(quoted).is_some_and(|name| name == key.as_bytes())
}

/// The content of a JSON string that is given with its quotes; none when it is not valid.
pub(super) fn unescaped(quoted: &[u8]) -> Option<Vec<u8>> {
    serde_json::from_slice::<String>(quoted)
        .ok()
        .map(String::into_bytes)
}

/// Appends `text` as the inside of a JSON string; bytes that are not UTF-8 become U+FFFD.
pub(super) fn push_escaped(out: &mut Vec<u8>, text: &[u8]) {
    let text: Cow<'_, str> = String::from_utf8_lossy(text);
    for byte in text.bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..=0x1f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests;
