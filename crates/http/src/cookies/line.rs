//! One Set-Cookie line (RFC 6265 5.1.1 and 5.2): its attributes, and dates in every form that servers write.

/// A Set-Cookie line taken apart.
pub(super) struct Line<'a> {
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
    pub(super) path: Option<&'a [u8]>,
    pub(super) domain: &'a [u8],
    pub(super) max_age: Option<i64>,
    pub(super) expires: Option<u64>,
    pub(super) is_secure: bool,
}

/// Takes a Set-Cookie value apart (RFC 6265 5.2); none: it is to be ignored.
pub(super) fn read_line(text: &[u8]) -> Option<Line<'_>> {
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
}
