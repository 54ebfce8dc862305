//! Answers of the proxy itself. Each has a `Loadlens-Proxy` field, so that it is not taken for the
//! service's.

use std::fmt::Write;

use crate::counts::Failure;

/// An answer to a request that the service does not answer.
pub(crate) struct Own<'a> {
    pub status: u16,
    pub why: &'a str,
    pub retry_after_s: Option<u64>,
    pub closes: bool,
    pub is_http10: bool,
    pub is_head: bool,
}

impl Own<'_> {
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut head = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nLoadlens-Proxy: {}\r\n",
            self.status,
            reason(self.status),
            self.why.len() + 1,
            self.why,
        );
        if let Some(seconds) = self.retry_after_s {
            // Writing into a String cannot fail.
            let _ = write!(head, "Retry-After: {seconds}\r\n");
        }
        match (self.closes, self.is_http10) {
            (true, _) => head.push_str("Connection: close\r\n"),
            (false, true) => head.push_str("Connection: keep-alive\r\n"),
            (false, false) => {}
        }
        head.push_str("\r\n");
        out.extend_from_slice(head.as_bytes());
        if !self.is_head {
            out.extend_from_slice(self.why.as_bytes());
            out.push(b'\n');
        }
    }
}

/// The reason phrase of a status; empty where there is no usual one.
fn reason(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        408 => "Request Timeout",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

/// Status and words for a service that failed.
pub(crate) fn of_failure(failure: Failure) -> (u16, &'static str) {
    match failure {
        Failure::Refused => (502, "the service refused the connection"),
        Failure::Connect => (502, "no connection to the service could be made"),
        Failure::Reset => (502, "the service reset the connection"),
        Failure::Closed => (502, "the service closed the connection without a response"),
        Failure::Truncated => (502, "the service closed the connection within its response"),
        Failure::Malformed => (502, "the service sent something that is not a response"),
        Failure::Timeout => (504, "the service sent nothing before the timeout"),
    }
}

/// A page of the control port.
pub(crate) fn page(status: u16, text: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{text}",
        if status == 200 { "OK" } else { reason(status) },
        text.len(),
    )
    .into_bytes()
}

/// The target of a request, without its query.
pub(crate) fn target(head: &[u8]) -> &[u8] {
    let word = head.split(|&byte| byte == b' ').nth(1).unwrap_or(b"");
    word.split(|&byte| byte == b'?').next().unwrap_or(b"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_our_own_says_that_it_is() {
        let mut out = Vec::new();

        let own = Own {
            status: 503,
            why: "full",
            retry_after_s: Some(2),
            closes: true,
            is_http10: false,
            is_head: false,
        };
        own.write(&mut out);

        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\
             Loadlens-Proxy: full\r\nRetry-After: 2\r\nConnection: close\r\n\r\nfull\n"
        );
    }
}
