//! Whole, correct answers, rendered once and sent many times.

use crate::request::Persistence;

/// An answer in the three forms that persistence asks for.
#[derive(Debug)]
pub struct Answer {
    kept: Form,
    asked: Form,
    close: Form,
}

#[derive(Debug)]
struct Form {
    bytes: Vec<u8>,
    head: usize,
}

impl Answer {
    /// An answer with `Content-Length`, but for statuses that have no body (1xx, 204, 304).
    pub fn new(status: u16, fields: &[(&str, &str)], body: &[u8]) -> Answer {
        let form = |connection: &str| {
            let mut bytes = format!("HTTP/1.1 {status:03} {}\r\n", reason(status)).into_bytes();
            for (name, value) in fields {
                bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
            }
            bytes.extend_from_slice(connection.as_bytes());
            let has_body = status >= 200 && status != 204 && status != 304;
            if has_body {
                bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
            }
            bytes.extend_from_slice(b"\r\n");
            let head = bytes.len();
            if has_body {
                bytes.extend_from_slice(body);
            }
            Form { bytes, head }
        };
        Answer {
            kept: form(""),
            asked: form("Connection: keep-alive\r\n"),
            close: form("Connection: close\r\n"),
        }
    }

    /// A JSON answer.
    pub fn json(status: u16, body: &str) -> Answer {
        Answer::new(
            status,
            &[("Content-Type", "application/json")],
            body.as_bytes(),
        )
    }

    /// A plain text answer that says what is wrong with the request.
    pub fn refusal(status: u16, why: &str) -> Answer {
        Answer::new(
            status,
            &[("Content-Type", "text/plain")],
            format!("{why}\n").as_bytes(),
        )
    }

    /// The bytes to send.
    pub fn bytes(&self, is_head: bool, persistence: Persistence) -> &[u8] {
        let form = match persistence {
            Persistence::Kept => &self.kept,
            Persistence::Asked => &self.asked,
            Persistence::Close => &self.close,
        };
        if is_head {
            &form.bytes[..form.head]
        } else {
            &form.bytes
        }
    }
}

/// The answer of `/` and `/json`: 218 bytes in all, 121 of them body.
pub fn standard() -> Answer {
    let body = concat!(
        r#"{"message":"This body is always the same, so that only the generator "#,
        r#"that asks for it can make a difference.","ok":"yes"}"#
    );
    Answer::new(
        200,
        &[
            ("Server", "loadlens-origin"),
            ("Content-Type", "application/json"),
        ],
        body.as_bytes(),
    )
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_answer_has_218_bytes_of_which_121_are_body() {
        let answer = standard();

        assert_eq!(answer.bytes(false, Persistence::Kept).len(), 218);
        assert_eq!(answer.bytes(true, Persistence::Kept).len(), 218 - 121);
    }

    #[test]
    fn an_answer_to_a_client_that_closes_says_close() {
        let answer = Answer::json(200, "{}");
        let text = String::from_utf8_lossy(answer.bytes(false, Persistence::Close)).into_owned();

        assert!(text.contains("\r\nConnection: close\r\n"), "{text}");
        assert!(text.ends_with("Content-Length: 2\r\n\r\n{}"), "{text}");
    }

    #[test]
    fn statuses_without_a_body_carry_none() {
        for status in [204, 304] {
            let answer = Answer::json(status, "{}");
            assert!(answer
                .bytes(false, Persistence::Kept)
                .ends_with(b"\r\n\r\n"));
        }
    }
}
