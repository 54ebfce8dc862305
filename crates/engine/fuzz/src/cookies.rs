//! The jar of a user against a slow one that is written after RFC 6265.

use loadlens_http::cookies::{Jar, Site};
use loadlens_http::response::{header, parse_head, HeadResult};

use crate::literal::cookies::SlowJar;
use crate::literal::request::request;
use crate::Ending;

/// 2026-11-22, in nanoseconds.
const NOW: u64 = 1_795_305_600_000_000_000;
const SITES: [(&str, bool); 4] = [
    ("shop.test:8080", false),
    ("a.b.shop.test", true),
    ("127.0.0.1:80", false),
    ("[::1]:80", true),
];

/// Lines: one that begins with a slash is the path of a request, `@` and a digit choose the site and begin anew, `+` lets
/// an hour pass, and any other is a Set-Cookie of the answer to the last request.
pub fn cookies(bytes: &[u8]) -> Ending {
    let mut site = SITES[0];
    let mut now = NOW;
    let (mut jar, mut slow) = (Jar::default(), SlowJar::new("shop.test", false));
    let mut ending = Ending::Refused;
    for line in bytes.split(|byte| *byte == b'\n') {
        match line {
            [b'/', ..] => {
                if ask(line, site.0, &mut jar, &mut slow, now) {
                    ending = Ending::Read;
                }
            }
            [b'@', digit, ..] => {
                site = SITES[usize::from(*digit) % SITES.len()];
                let host = ["shop.test", "a.b.shop.test", "127.0.0.1", "::1"];
                (jar, slow) = (
                    Jar::default(),
                    SlowJar::new(host[usize::from(*digit) % SITES.len()], site.1),
                );
            }
            [b'+', ..] => now += 3_600_000_000_000,
            _ => {
                let head = [b"HTTP/1.1 200 OK\r\nSet-Cookie: ", line, b"\r\n\r\n"].concat();
                let HeadResult::Complete(read) = parse_head(&head, true) else {
                    continue; // no answer that is read has such a line
                };
                if read.len != head.len() {
                    continue;
                }
                jar.take(&head, &Site::new(site.0, site.1), now);
                let value = header(&head, b"set-cookie").expect("it was put there");
                slow.set(value, now);
                assert!(jar.count() <= 50);
            }
        }
    }
    ending
}

/// Adds cookies to a request and returns true if there were any. They must equal those of the slow jar, and the
/// result must still be a single request.
fn ask(path: &[u8], authority: &str, jar: &mut Jar, slow: &mut SlowJar, now: u64) -> bool {
    let plain = [
        b"GET ",
        path,
        b" HTTP/1.1\r\nHost: ",
        authority.as_bytes(),
        b"\r\nX-End: 1\r\n\r\n",
    ]
    .concat();
    let Ok(before) = request(&plain) else {
        return false; // the engine never sends such a path
    };
    let mut out = plain;
    jar.put(&mut out, true, now);
    let after = request(&out).unwrap_or_else(|why| panic!("{why}: {}", out.escape_ascii()));
    let (sent, others): (Vec<_>, Vec<_>) = after
        .fields
        .into_iter()
        .partition(|(name, _)| name == "cookie");
    assert_eq!((others, &after.target), (before.fields, &before.target));
    assert!(sent.len() <= 1);
    let sent = sent.into_iter().next().map(|(_, value)| value);
    let expected = slow.cookies_for(before.target.as_bytes(), now);
    assert_eq!(
        sent.as_ref().map(|text| text.escape_ascii().to_string()),
        expected
            .as_ref()
            .map(|text| text.escape_ascii().to_string())
    );
    sent.is_some()
}
