//! Rules for the bytes of a request, and for values written into it, so that it stays one request.

use super::response::TOKEN;

/// Headers that the engine writes itself or whose meaning it does not carry out; a plan may not set them.
pub const OWN_HEADERS: [&str; 8] = [
    "host",
    "content-length",
    "connection",
    "transfer-encoding",
    "upgrade",
    "expect",
    "te",
    "trailer",
];

/// True if `text` may be a method or a header name (RFC 9110 5.6.2).
pub fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| TOKEN[*byte as usize])
}

/// True if a byte may be part of a header value: no control byte but tab (RFC 9110 5.5).
pub fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// True if a byte may be part of path and query unescaped (RFC 3986 3.3 and 3.4, `%` taken as given).
pub fn is_target_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte)
}

/// True if a text may be used unescaped in path and query: only such bytes, and `%` before two digits.
pub fn is_target(text: &[u8]) -> bool {
    text.iter().all(|byte| is_target_byte(*byte)) && percent_is_whole(text)
}

/// True if every `%` has two hexadecimal digits after it.
pub fn percent_is_whole(text: &[u8]) -> bool {
    text.iter().enumerate().all(|(at, byte)| {
        *byte != b'%'
            || text
                .get(at + 1..at + 3)
                .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// Appends `value` as one component of a path or query: all but unreserved characters as %XX (RFC 3986 2.1).
///
/// So a value never ends a component, however it was made: `a/b?c=d&e` stays one segment or one parameter.
pub fn push_component(out: &mut Vec<u8>, value: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in value {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            out.push(*byte);
        } else {
            out.extend_from_slice(&[
                b'%',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_in_a_path_stays_one_component() {
        let mut out = b"/items/".to_vec();

        push_component(&mut out, "a/b?c=d&e f\r\n\u{e9}%-._~".as_bytes());

        assert_eq!(out, b"/items/a%2Fb%3Fc%3Dd%26e%20f%0D%0A%C3%A9%25-._~");
    }

    #[test]
    fn methods_and_names_are_tokens() {
        assert!(is_token(b"GET") && is_token(b"x-my_header.1"));
        assert!(
            !is_token(b"")
                && !is_token(b"a b")
                && !is_token(b"a:")
                && !is_token("\u{e9}".as_bytes())
        );
    }
}
