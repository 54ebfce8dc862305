//! TLS against the origin: who is let in, what is counted, and what becomes of servers that break it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use loadlens_origin::tls::{Certificate, Pem, Shake, TlsConfig, Versions};
use loadlens_origin::{Admission, Config, Origin};
use serde_json::{json, Value};

use crate::harness::{
    closed, digest, meet, origin, plan, run, settled, shared, stream, Run, LIMIT, MS,
};

/// A folder with the origin's certificates, gone when this is dropped.
pub struct Certificates(std::path::PathBuf);

impl Certificates {
    pub fn of(origin: &Origin) -> Certificates {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("loadlens-tls-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir(&dir).expect("a folder");
        let Pem {
            ca,
            client,
            client_key,
        } = origin.pem.as_ref().expect("an origin with TLS");
        for (name, text) in [("ca", ca), ("client", client), ("key", client_key)] {
            std::fs::write(dir.join(name), text).expect("a file");
        }
        Certificates(dir)
    }

    pub fn file(&self, name: &str) -> Value {
        let path = self.0.join(name);
        let digest = digest(&std::fs::read(&path).expect("the file"));
        json!({"path": path, "digest": digest})
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn with(tls: TlsConfig) -> Config {
    Config {
        tls: Some(tls),
        ..Config::default()
    }
}

/// A stream to an origin that trusts its CA.
fn secured(origin: &Origin, certificates: &Certificates, path: &str) -> Value {
    let mut stream = stream("load", origin.port, path);
    stream["target"]["tls"] = json!({"ca": certificates.file("ca")});
    stream
}

/// Runs requests against a server of that kind, the stream changed.
fn against(config: Config, change: impl FnOnce(&mut Value, &Certificates)) -> Run {
    let _machine = shared();
    let origin = origin(config);
    let certificates = Certificates::of(&origin);
    let mut stream = secured(&origin, &certificates, "/");
    stream["timeout_ns"] = json!(10_000 * MS);
    change(&mut stream, &certificates);
    let done = run(&plan(vec![stream]), LIMIT);
    done.only().check_law();
    done
}

/// All requests failed as `class`, and the first sample says `words`.
fn check_failed(done: &Run, class: &str, words: &str) {
    let load = done.only();
    let issued = load.requests("issued");
    assert_eq!(load.outcomes(), [(class.to_owned(), issued)], "{words}");
    let sample = load.0["errors"][class]["samples"][0].as_str().expect("one");
    assert!(sample.contains(words), "{sample}");
}

fn check_ok(done: &Run) {
    assert_eq!(
        done.only().outcomes(),
        [("ok".to_owned(), 10)],
        "{}",
        done.only().0["errors"]
    );
}

#[test]
fn requests_sessions_and_handshakes_are_those_of_the_counts() {
    let _machine = shared();
    for (versions, suite) in [
        (Versions::Tls12, "TLSv1_2 TLS_ECDHE_ECDSA"),
        (Versions::Tls13, "TLSv1_3 TLS13_"),
    ] {
        let origin = origin(with(TlsConfig {
            versions,
            ..TlsConfig::default()
        }));
        let certificates = Certificates::of(&origin);

        let (done, counts) = meet(
            &origin,
            &plan(vec![secured(&origin, &certificates, "/json")]),
        );

        let load = done.only();
        check_ok(&done);
        assert_eq!((counts.received, counts.answered), (10, 10));
        // A user who comes late may resume the session of the other one.
        let (full, resumed) = (counts.handshakes.full, counts.handshakes.resumed);
        assert!(full >= 1 && full + resumed == 2, "{full} {resumed}");
        assert_eq!(counts.connections.reset_by_client, 0);
        let tls = &load.0["tls"];
        assert_eq!(
            (&tls["full"], &tls["resumed"], &tls["verified"]),
            (&json!(full), &json!(resumed), &json!(true))
        );
        let (name, sessions) = tls["sessions"].as_object().unwrap().iter().next().unwrap();
        assert!(name.starts_with(suite) && sessions == 2, "{tls}");
        assert_eq!(load.0["phases_s"]["tls"]["count"], 2);
        assert_eq!(load.0["phases_s"]["connect"]["count"], 2);
    }
}

#[test]
fn new_connections_take_up_earlier_sessions_unless_they_must_not() {
    let _machine = shared();
    for versions in [Versions::Tls12, Versions::Tls13] {
        for (resume, expected) in [(true, (1, 9)), (false, (10, 0))] {
            let origin = origin(with(TlsConfig {
                versions,
                ..TlsConfig::default()
            }));
            let certificates = Certificates::of(&origin);
            let mut stream = secured(&origin, &certificates, "/");
            stream["workload"] = closed(1, 10);
            stream["connection"] = json!({"reuse": {"kind": "new"}});
            stream["target"]["tls"]["resume"] = json!(resume);

            let (done, counts) = meet(&origin, &plan(vec![stream]));

            check_ok(&done);
            let tls = &done.only().0["tls"];
            assert_eq!(
                (counts.handshakes.full, counts.handshakes.resumed),
                expected
            );
            assert_eq!(
                (&tls["full"], &tls["resumed"]),
                (&json!(expected.0), &json!(expected.1)),
                "{versions:?}"
            );
        }
    }
}

#[test]
fn a_certificate_that_does_not_hold_is_a_failure_of_tls_that_says_why() {
    let cases = [
        (Certificate::Expired, "has expired"),
        (Certificate::WrongName, "for another name"),
        (Certificate::SelfSigned, "issuer is not trusted"),
    ];
    for (certificate, words) in cases {
        let config = || TlsConfig {
            certificate,
            ..TlsConfig::default()
        };

        let refused = against(with(config()), |_, _| {});
        let taken = against(with(config()), |stream, _| {
            stream["target"]["tls"] = json!({"insecure": true});
        });

        check_failed(&refused, "tls", words);
        check_ok(&taken);
        assert_eq!(taken.only().0["tls"]["verified"], false);
    }
}

#[test]
fn the_name_that_is_asked_for_is_the_one_that_is_verified() {
    let config = TlsConfig {
        certificate: Certificate::WrongName,
        ..TlsConfig::default()
    };

    let done = against(with(config), |stream, _| {
        stream["target"]["tls"]["server_name"] = json!("elsewhere.test");
    });

    check_ok(&done);
}

#[test]
fn a_client_certificate_is_shown_to_a_server_that_wants_one() {
    for versions in [Versions::Tls12, Versions::Tls13] {
        let config = || TlsConfig {
            wants_certificate: true,
            versions,
            ..TlsConfig::default()
        };

        let shown = against(with(config()), |stream, certificates| {
            stream["target"]["tls"]["certificate"] = certificates.file("client");
            stream["target"]["tls"]["key"] = certificates.file("key");
        });
        let none = against(with(config()), |_, _| {});

        check_ok(&shown);
        check_failed(&none, "tls", "client certificate");
    }
}

#[test]
fn a_server_of_another_protocol_is_a_failure_of_tls() {
    let other = against(
        with(TlsConfig {
            alpn: vec!["h2".to_owned()],
            ..TlsConfig::default()
        }),
        |_, _| {},
    );
    let same = against(
        with(TlsConfig {
            alpn: vec!["h2".to_owned(), "http/1.1".to_owned()],
            ..TlsConfig::default()
        }),
        |_, _| {},
    );

    check_failed(&other, "tls", "does not speak http/1.1");
    check_ok(&same);
}

#[test]
fn plain_text_where_tls_is_expected_is_said_to_be_no_tls() {
    let _machine = shared();
    let plain = origin(Config::default());
    let mut stream = stream("load", plain.port, "/");
    stream["target"]["tls"] = json!({"insecure": true});
    let answered = run(&plan(vec![stream]), LIMIT);
    let greeted = against(
        Config {
            admission: Admission::Greet,
            ..with(TlsConfig::default())
        },
        |_, _| {},
    );

    check_failed(&answered, "tls", "does not speak TLS");
    check_failed(&greeted, "tls", "does not speak TLS");
}

#[test]
fn handshakes_that_break_off_or_stall_end_in_time_and_are_told_apart() {
    let timeout = Duration::from_millis(400);
    let cases = [
        (Shake::Close, "tls", "closed in the TLS handshake"),
        (Shake::Reset, "tls", "reset in the TLS handshake"),
        (Shake::Stall, "tls_timeout", "within the timeout"),
    ];
    for (handshake, class, words) in cases {
        let config = TlsConfig {
            handshake,
            ..TlsConfig::default()
        };

        let done = against(with(config), |stream, _| {
            if class == "tls_timeout" {
                stream["timeout_ns"] = json!(timeout.as_nanos() as u64);
            }
            stream["workload"] = closed(2, 4);
        });

        check_failed(&done, class, words);
        // Two users, two requests each, a pause after a failed connect; what stalls would else take 20 s.
        let limit_s = 2.0 * timeout.as_secs_f64() + 5.0;
        let elapsed_s = done.result["elapsed_s"].as_f64().unwrap();
        assert!(elapsed_s < limit_s, "{elapsed_s}");
    }
    // What timed out may yet have been answered: it is no failure in the times, it lasted longer.
}

#[test]
fn records_that_come_byte_by_byte_and_answers_of_many_records_are_whole() {
    let _machine = shared();
    for (dribbles, path, bytes) in [
        (true, "/bytes/700", 700),
        (false, "/bytes/1000003", 1_000_003),
    ] {
        let origin = origin(with(TlsConfig {
            dribbles,
            ..TlsConfig::default()
        }));
        let certificates = Certificates::of(&origin);

        let (done, _) = meet(&origin, &plan(vec![secured(&origin, &certificates, path)]));

        check_ok(&done);
        assert_eq!(done.only().0["bytes"]["in_body"], 10 * bytes);
    }
}

#[test]
fn a_request_that_is_larger_than_the_socket_goes_out_whole() {
    let _machine = shared();
    let origin = origin(with(TlsConfig::default()));
    let certificates = Certificates::of(&origin);
    let mut stream = secured(&origin, &certificates, "/echo");
    let text: String = (0..700_000).map(|at| format!("{at:07}\n")).collect();
    stream["scenarios"][0]["steps"][0]["method"] = json!("POST");
    stream["scenarios"][0]["steps"][0]["body"] = json!({"kind": "text", "text": text});
    stream["workload"] = closed(2, 4);

    let (done, counts) = meet(&origin, &plan(vec![stream]));

    assert_eq!(done.only().outcomes(), [("ok".to_owned(), 4)]);
    assert_eq!(counts.path("/echo").body_bytes_in, 4 * text.len() as u64);
    assert_eq!(
        done.only().0["bytes"]["in_body"],
        json!(4 * text.len() as u64)
    );
}

#[test]
fn keys_that_change_in_the_middle_lose_nothing() {
    let config = TlsConfig {
        versions: Versions::Tls13,
        rekeys_every: 2,
        ..TlsConfig::default()
    };

    let done = against(with(config), |_, _| {});

    check_ok(&done);
    assert_eq!(done.only().connections("opened"), 2);
}

#[test]
fn only_a_body_that_says_where_it_ends_is_whole_without_an_end_of_tls() {
    let _machine = shared();
    for (ends_rudely, path, expected) in [
        (false, "/bad/no_length", "ok"),
        (true, "/bad/no_length", "truncated"),
        (true, "/bad/close_said", "ok"),
    ] {
        let origin = origin(with(TlsConfig {
            ends_rudely,
            ..TlsConfig::default()
        }));
        let certificates = Certificates::of(&origin);

        let done = run(&plan(vec![secured(&origin, &certificates, path)]), LIMIT);

        let outcomes = done.only().outcomes();
        assert_eq!(
            outcomes,
            [(expected.to_owned(), 10)],
            "{path} {ends_rudely}"
        );
    }
}

#[test]
fn streams_with_and_without_tls_share_a_run() {
    let _machine = shared();
    let (plain, tls) = (
        origin(Config::default()),
        origin(with(TlsConfig::default())),
    );
    let certificates = Certificates::of(&tls);
    let mut other = stream("plain", plain.port, "/json");
    other["connection"] = json!({"reuse": {"kind": "new"}});

    let done = run(
        &plan(vec![secured(&tls, &certificates, "/json"), other]),
        LIMIT,
    );

    for stream in done.streams() {
        stream.check_law();
        assert_eq!(stream.outcomes(), [("ok".to_owned(), 10)]);
    }
    assert_eq!(settled(&plain).received, 10);
    assert_eq!(settled(&tls).received, 10);
    assert_eq!(done.stream("plain").0["tls"], Value::Null);
}

#[test]
fn files_that_hold_no_certificate_or_have_changed_are_refused_before_the_start() {
    let _machine = shared();
    let origin = origin(with(TlsConfig::default()));
    let certificates = Certificates::of(&origin);
    let refused = |tls: Value| {
        let mut stream = stream("load", origin.port, "/");
        stream["target"]["tls"] = tls;
        match loadlens_engine::run::Run::new(&plan(vec![stream]).to_string()) {
            Err(loadlens_engine::run::Refusal::Plan(faults)) => faults
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n"),
            _ => panic!("taken"),
        }
    };
    let mut changed = certificates.file("ca");
    changed["digest"] = json!("00");

    let both = refused(
        json!({"ca": certificates.file("key"), "certificate": certificates.file("ca"), "key": certificates.file("ca")}),
    );
    let mismatch = refused(
        json!({"insecure": true, "certificate": certificates.file("ca"), "key": certificates.file("key")}),
    );

    assert!(both.contains("holds no certificate"), "{both}");
    assert!(both.contains("holds no private key"), "{both}");
    assert!(mismatch.contains("do not go together"), "{mismatch}");
    assert!(refused(json!({"ca": changed})).contains("has changed"));
    assert!(
        refused(json!({"insecure": true, "key": certificates.file("key")}))
            .contains("without its certificate")
    );
    assert!(
        refused(json!({"insecure": true, "server_name": "a b"})).contains("neither a host name")
    );
}
