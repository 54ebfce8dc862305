//! A browser of one tab: what a service sets, and what is sent back.

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
