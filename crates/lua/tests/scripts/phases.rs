//! Steps before the first request.

use loadlens_lua::{Fault, Session};
use loadlens_origin::{Admission, Config, Origin};

use crate::harness::*;

#[test]
fn init_is_given_the_url_and_what_follows_it() {
    let origin = origin();
    let file =
        File::new("function init(args) wrk.path = '/bytes/' .. #args .. args[1] .. args[2] end");
    let mut asked = asked(origin.port, Some(&file));
    asked.args.extend(["3".to_owned(), "4".to_owned()]);
    let session = Session::prepare(&asked).unwrap();

    assert_eq!(session.first_line(), Some("GET /bytes/234 HTTP/1.1"));
}

#[test]
fn setup_and_init_of_a_thread_come_before_those_of_the_next() {
    let origin = origin();
    let script = "
        local n = 0
        function setup(thread)
            n = n + 1
            thread:set('id', n)
            if n > 1 then first:set('late', n) end
            first = first or thread
        end
        function init() wrk.path = '/bytes/' .. id end";
    let file = File::new(script);
    let mut asked = asked(origin.port, Some(&file));
    asked.threads = 3;

    assert_eq!(
        Session::prepare(&asked).unwrap().first_line(),
        Some("GET /bytes/1 HTTP/1.1")
    );
}

#[test]
fn the_table_wrk_holds_the_parts_of_the_url() {
    let origin = origin();
    let script = "
        function init()
            local s = tostring
            wrk.path = '/' .. table.concat({wrk.scheme, wrk.host, s(wrk.port == '0'), wrk.path:sub(2), wrk.method,
                s(wrk.body), s(wrk.thread.addr):match('^[%d.]+'), #wrk.addrs ~= nil and 'no' or 'addrs'}, '-')
        end
        wrk.addrs = wrk.addrs or {}";
    let file = File::new(script);
    let session = Session::prepare(&asked(origin.port, Some(&file))).unwrap();

    assert_eq!(
        session.first_line(),
        Some("GET /http-127.0.0.1-false-json-GET-nil-127.0.0.1-no HTTP/1.1")
    );
}

#[test]
fn modules_and_a_first_line_of_a_shell_are_read() {
    let origin = origin();
    let script = "#!/usr/bin/wrk -s\nlocal w, b = require 'wrk', require 'bit'\nw.path = '/bytes/' .. b.bor(8, 4)";
    let file = File::new(script);
    let session = Session::prepare(&asked(origin.port, Some(&file))).unwrap();

    assert_eq!(session.first_line(), Some("GET /bytes/12 HTTP/1.1"));
}

#[test]
fn a_port_where_nobody_listens_is_unreachable() {
    // The port stays taken, so that no other process listens there.
    let deaf = Origin::start(Config {
        admission: Admission::Refuse,
        ..Config::default()
    })
    .unwrap();
    let port = deaf.port;

    match Session::prepare(&asked(port, None)).map(|_| ()) {
        Err(Fault::Unreachable(what)) => {
            assert!(
                what.starts_with(&format!("unable to connect to 127.0.0.1:{port}: ")),
                "{what}"
            );
            assert!(what.contains("refused"), "{what}");
        }
        other => panic!("{other:?}"),
    }
}
