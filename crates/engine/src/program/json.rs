//! One value of a JSON body, found by scanning: no tree is built and nothing after the value is read.
//!
//! What lies on the way is skipped by its brackets and quotes; the value itself must be valid JSON.
//! Of members with the same name the first counts.

use std::borrow::Cow;

use serde_json::Value;

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
                "`{text}` is no JSON path: example data.items[0].id"
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

    /// How many elements the array at this path has, or members the object; none when there is neither.
    pub fn count(&self, body: &[u8]) -> Option<u64> {
        let raw = self.find(body)?;
        let mut scanner = Scanner { bytes: raw, at: 0 };
        match raw.first()? {
            b'[' => scanner.count_elements(),
            b'{' => scanner.count_members(),
            _ => None,
        }
    }

    /// To the place in the body that it leads to.
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

/// What stands between `[` and `]`, and what follows.
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
            "`[{index}]` in JSON path `{text}` is no index: a number from 0, -1 for the last, or [\"a key\"]"
        )),
    }
}

/// Whether a body is one JSON value, as far as brackets and quotes tell.
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

    /// To the value of the member `key` of the object that begins here.
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

    /// To element `index` of the array that begins here.
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

    /// To the element that is so many from the end of the array that begins here; 1 is the last.
    fn enter_from_end(&mut self, back: usize) -> Option<()> {
        let start = self.at;
        let count = usize::try_from(self.count_elements()?).ok()?;
        self.at = start;
        self.enter_element(count.checked_sub(back)?)
    }

    /// Past the array that begins here; how many elements it has.
    fn count_elements(&mut self) -> Option<u64> {
        self.pass(b'[')?;
        if self.pass(b']').is_some() {
            return Some(0);
        }
        let mut count = 0;
        loop {
            self.skip_value()?;
            count += 1;
            if self.pass(b',').is_none() {
                return self.pass(b']').map(|()| count);
            }
        }
    }

    /// Past the object that begins here; how many members it has.
    fn count_members(&mut self) -> Option<u64> {
        self.pass(b'{')?;
        if self.pass(b'}').is_some() {
            return Some(0);
        }
        let mut count = 0;
        loop {
            self.space();
            self.skip_string()?;
            self.pass(b':')?;
            self.skip_value()?;
            count += 1;
            if self.pass(b',').is_none() {
                return self.pass(b'}').map(|()| count);
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
            let found = memchr::memchr2(b'"', b'\\', rest)?;
            if rest[found] == b'"' {
                self.at += found + 1;
                return Some(&self.bytes[start..self.at]);
            }
            self.at += found + 2; // the byte after a backslash never ends a string
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

/// A JSON value to compare with.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    value: Value,
    /// As serde_json writes it: the same bytes need no parsing.
    bytes: Vec<u8>,
}

impl Expected {
    pub fn new(value: &Value) -> Self {
        Expected {
            value: value.clone(),
            bytes: value.to_string().into_bytes(),
        }
    }

    /// Whether `raw` is the same JSON value: numbers by their value, members in any order.
    pub fn is(&self, raw: &[u8]) -> bool {
        raw == self.bytes
            || serde_json::from_slice(raw).is_ok_and(|found: Value| same(&found, &self.value))
    }
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        _ => a == b,
    }
}

fn same_number(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    let whole = |n: &serde_json::Number| {
        n.as_i64()
            .map(i128::from)
            .or_else(|| n.as_u64().map(i128::from))
    };
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.as_f64() == b.as_f64(),
        (Some(whole), None) => is_float(whole, b),
        (None, Some(whole)) => is_float(whole, a),
    }
}

/// Whether a float is exactly this whole number: 2^53 + 1 is not 2^53.
fn is_float(whole: i128, float: &serde_json::Number) -> bool {
    float
        .as_f64()
        .is_some_and(|float| float == whole as f64 && float as i128 == whole)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn found<'a>(path: &str, body: &'a str) -> Option<&'a str> {
        Path::parse(path)
            .unwrap()
            .find(body.as_bytes())
            .map(|raw| std::str::from_utf8(raw).unwrap())
    }

    #[test]
    fn a_path_leads_to_the_bytes_of_its_value() {
        let body = r#" { "a" : {"b": [10, {"c": "x"}, [true, null] ] } , "n": -1.5e3, "": 0 } "#;

        for (path, value) in [
            ("a.b[1].c", r#""x""#),
            ("$.a.b[0]", "10"),
            ("a.b[2][1]", "null"),
            ("a.b[2]", "[true, null]"),
            ("n", "-1.5e3"),
            (r#"[""]"#, "0"),
            (r#"["a"].b[0]"#, "10"),
            ("['a'].b[0]", "10"),
            ("a.b[-1]", "[true, null]"),
            ("a.b[-1][-2]", "true"),
            ("a.b[-3]", "10"),
            (
                "$",
                r#"{ "a" : {"b": [10, {"c": "x"}, [true, null] ] } , "n": -1.5e3, "": 0 }"#,
            ),
        ] {
            assert_eq!(found(path, body), Some(value), "{path}");
        }
        for path in [
            "a.b[-4]",
            "a[-1]",
            "n[-1]",
            "b",
            "a.c",
            "a.b[3]",
            "a.b.c",
            "a[0]",
            "n.x",
            "a.b[1].c.d",
        ] {
            assert_eq!(found(path, body), None, "{path}");
        }
    }

    #[test]
    fn brackets_and_quotes_within_strings_are_passed_over() {
        let body = r#"{"skip":"}]\"{[\\","also":["\u007d",{"k\"":"]"}],"k\u0065y":"gr\u00fcn \ud83d\ude00"}"#;

        assert_eq!(found("key", body), Some(r#""gr\u00fcn \ud83d\ude00""#));
        assert_eq!(
            unescaped(found("key", body).unwrap().as_bytes()).unwrap(),
            "grün \u{1f600}".as_bytes()
        );
    }

    #[test]
    fn what_is_not_json_has_no_value() {
        for body in [
            "",
            "{",
            r#"{"a""#,
            r#"{"a":"#,
            r#"{"a":}"#,
            r#"{"a" 1}"#,
            r#"{a:1}"#,
            r#"{"a":01}"#,
            r#"{"a":tru}"#,
            r#"{"a":"x}"#,
            r#"{"a":"\x"}"#,
            r#"{"a":[1}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":+1}"#,
            r#"{"a":1.}"#,
            r#"{"x":[1},"a":2}"#,
            r#"{"x":{"y":1],"a":2}"#,
            r#"{"a":NaN}"#,
            "{\"a\":\"line\nend\"}",
            r#"["a"]"#,
            "<html>",
        ] {
            assert_eq!(found("a", body), None, "{body}");
        }
        assert_eq!(found("a", r#"{"a":1"#), Some("1")); // nothing after the value is read
        assert_eq!(Path::parse("a").unwrap().find(b"{\"a\":\"\xff\"}"), None);
    }

    #[test]
    fn elements_and_members_are_counted() {
        let body = br#"{"a":[1,[2,3],{"b":4}],"none":[ ],"o":{"x":[1,2],"y":"}"},"empty":{ },"n":7,"bad":[1,]}"#;

        for (path, count) in [
            ("a", Some(3)),
            ("a[1]", Some(2)),
            ("none", Some(0)),
            ("o", Some(2)),
            ("empty", Some(0)),
            ("n", None),
            ("missing", None),
            ("bad", None),
        ] {
            assert_eq!(Path::parse(path).unwrap().count(body), count, "{path}");
        }
    }

    #[test]
    fn a_document_is_one_value_to_its_end() {
        for (body, is) in [
            (" {\"a\":[1,{}]} \n", true),
            ("\u{feff}7", true),
            ("", false),
            ("<html>", false),
            ("{}{}", false),
            ("{\"a\":1", false),
            ("[1] x", false),
        ] {
            assert_eq!(is_document(body.as_bytes()), is, "{body}");
        }
    }

    #[test]
    fn only_json_numbers_are_numbers() {
        for (raw, value) in [
            ("7", Some(7.0)),
            ("-1.5e3", Some(-1500.0)),
            ("\"7\"", None),
            ("true", None),
            ("null", None),
        ] {
            assert_eq!(number(raw.as_bytes()), value, "{raw}");
        }
    }

    #[test]
    fn nesting_is_followed_to_128_levels() {
        let nested = |depth: usize| {
            format!(
                r#"{{"deep":{}1{},"a":2}}"#,
                "[".repeat(depth),
                "]".repeat(depth)
            )
        };

        assert_eq!(found("a", &nested(128)), Some("2"));
        assert_eq!(found("a", &nested(129)), None);
        assert_eq!(found("deep", &nested(100_000)), None);
    }

    #[test]
    fn paths_that_cannot_be_read_are_refused_with_their_fault() {
        for (path, part) in [
            ("", "no JSON path"),
            ("a..b", "empty name"),
            (".a", "empty name"),
            ("a.", "empty name"),
            ("a[", "not closed"),
            ("a[x]", "no index"),
            ("a[-0]", "no index"),
            ("a[--1]", "no index"),
            ("a[+1]", "no index"),
            ("a[*]", "no index"),
            ("a['b", "not closed"),
            ("a[]", "no index"),
            ("a[\"b", "not closed"),
            ("a[0]b", "a dot is missing"),
            ("$a", "a dot is missing"),
            (" a", "no JSON path"),
        ] {
            let fault = Path::parse(path).unwrap_err();
            assert!(fault.contains(part), "{path}: {fault}");
        }
    }

    #[test]
    fn values_are_equal_as_json_not_as_text() {
        for (expected, raw, equal) in [
            (json!(1), "1.0", true),
            (json!(1.0), "1", true),
            (json!(1), "1e0", true),
            (json!(100), "1E2", true),
            (json!(1), "2", false),
            (json!(1), "\"1\"", false),
            (json!(-0.0), "0", true),
            (
                json!(9_007_199_254_740_993_u64),
                "9007199254740992.0",
                false,
            ), // 2^53 + 1 is no float
            (json!(9_007_199_254_740_992_u64), "9007199254740992.0", true),
            (
                json!(18_446_744_073_709_551_615_u64),
                "18446744073709551615",
                true,
            ),
            (json!("grün"), "\"gr\\u00fcn\"", true),
            (json!("a/b"), "\"a\\/b\"", true),
            (json!("OK"), "\"ok\"", false),
            (json!(null), "null", true),
            (json!(null), "false", false),
            (
                json!([1, {"a": 2.0, "b": []}]),
                "[1.0,{\"b\":[ ],\"a\":2}]",
                true,
            ),
            (json!([1, 2]), "[2,1]", false),
            (json!({"a": 1}), "{\"a\":1,\"b\":2}", false),
        ] {
            assert_eq!(
                Expected::new(&expected).is(raw.as_bytes()),
                equal,
                "{expected} {raw}"
            );
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e9..1e9).prop_map(Value::from),
            "[ -~\u{e9}\u{1f600}\n\"\\\\{}\\[\\]]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::hash_map("[ab\"\u{e9}. ]{0,3}", inner, 0..5)
                    .prop_map(Value::from_iter),
            ]
        })
    }

    /// All members and elements of a value, with the way to them.
    fn walk(value: &Value, way: &mut Vec<Member>, visit: &mut impl FnMut(&[Member], &Value)) {
        visit(way, value);
        let steps: Vec<(Member, &Value)> = match value {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(i, item)| (Member::Index(i), item))
                .collect(),
            Value::Object(members) => members
                .iter()
                .map(|(k, item)| (Member::Key(k.clone()), item))
                .collect(),
            _ => Vec::new(),
        };
        for (step, inner) in steps {
            way.push(step);
            walk(inner, way, visit);
            way.pop();
        }
    }

    proptest! {
        #[test]
        fn every_value_of_a_document_is_found_as_a_tree_of_it_would_give(document in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&document) } else { serde_json::to_string(&document) };
            let text = text.unwrap();
            walk(&document, &mut Vec::new(), &mut |way, value| {
                let raw = Path(way.to_vec()).find(text.as_bytes()).expect("found");
                assert_eq!(&serde_json::from_slice::<Value>(raw).unwrap(), value);
                assert!(Expected::new(value).is(raw));
            });
        }

        #[test]
        fn no_bytes_make_the_scanner_panic(bytes in "[{}\\[\\]\",:a0\\\\ \n]{0,40}", cut in any::<proptest::sample::Index>()) {
            let bytes = &bytes.as_bytes()[..cut.index(bytes.len() + 1)];
            for path in ["a", "[0]", "a[1].a", "$"] {
                if let Some(raw) = Path::parse(path).unwrap().find(bytes) {
                    prop_assert!(serde_json::from_slice::<Value>(raw).is_ok());
                }
            }
        }

        #[test]
        fn escaped_text_is_read_back(text in any::<String>()) {
            let mut quoted = vec![b'"'];
            push_escaped(&mut quoted, text.as_bytes());
            quoted.push(b'"');
            prop_assert_eq!(unescaped(&quoted), Some(text.into_bytes()));
        }
    }
}
