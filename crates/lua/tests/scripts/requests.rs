//! Requests sent: by the script, or in its place.

use loadlens_lua::Session;

use crate::harness::*;

#[test]
fn a_script_without_a_function_request_sends_what_the_table_says() {
    let origin = origin();
    let done = drive(
        &origin,
        "wrk.method = 'POST'\nwrk.path = '/echo'\nwrk.body = 'foo=bar'\nwrk.headers['Content-Type'] = 'text/plain'",
        20,
    );

    assert_eq!(done.requests("ok"), 20);
    assert_eq!(done.session.first_line(), Some("POST /echo HTTP/1.1"));
    let counts = settled(&origin);
    assert_eq!(counts.paths["/echo"].answered, 20);
    assert_eq!(counts.paths["/echo"].body_bytes_in, 20 * 7);
    assert_eq!(counts.violations, 0);
}

#[test]
fn without_a_script_the_headers_of_the_command_line_are_sent() {
    let origin = origin();
    let mut asked = asked(origin.port, None);
    asked.path = "/head?a=b".to_owned();
    asked.headers = vec![("X-One".to_owned(), "1".to_owned())];
    let session = Session::prepare(&asked).unwrap();
    let done = run(session, &plan(&asked, 1, 3));

    assert_eq!(done.requests("ok"), 3);
    assert_eq!(settled(&origin).paths["/head?a=b"].answered, 3);
}

#[test]
fn each_request_of_a_script_is_sent_once_and_in_order() {
    let origin = origin();
    let script = "
        local n = 0
        function request()
            n = n + 1
            return wrk.format('POST', '/echo', {['X-Number'] = n}, string.rep('x', n))
        end";
    let done = drive(&origin, script, 30);

    assert_eq!(done.requests("ok"), 30);
    // 1 + 2 + ... + 30: the request that was made to be looked at is the first one sent.
    assert_eq!(settled(&origin).paths["/echo"].body_bytes_in, 30 * 31 / 2);
}

#[test]
fn the_head_of_a_request_is_the_one_that_the_script_made() {
    let origin = origin();
    let script = "
        function request()
            return 'GET /head HTTP/1.1\\r\\nHost: a.example:8\\r\\nX-Odd:  kept \\r\\n\\r\\n'
        end
        function response(status, headers, body)
            seen = status .. '|' .. headers['Content-Type'] .. '|' .. body
        end
        function done() end";
    let mut done = drive(&origin, script, 2);

    assert_eq!((done.requests("ok"), done.fault()), (2, None));
    assert_eq!(settled(&origin).violations, 0);
}

#[test]
fn answers_to_head_have_no_body_and_those_between_have_theirs() {
    let origin = origin();
    let script = "
        local n = 0
        function request()
            n = n + 1
            return wrk.format(n % 2 == 0 and 'HEAD' or 'GET', '/bytes/1000')
        end";
    let done = drive(&origin, script, 40);

    assert_eq!(done.requests("ok"), 40);
    let counts = settled_after(&origin, 2);
    assert_eq!((counts.connections.accepted, counts.violations), (2, 0)); // one is that of wrk.connect
    let result = done.result.unwrap();
    let bytes = &result["streams"][0]["bytes"]["in_body"];
    assert_eq!(bytes.as_u64(), Some(20 * 1000));
}

#[test]
fn a_request_that_closes_its_connection_is_the_last_on_it() {
    let origin = origin();
    let every_third = "
        local n = 0
        function request()
            n = n + 1
            wrk.headers['Connection'] = n % 3 == 0 and 'close' or nil
            return wrk.format()
        end";
    let done = drive(&origin, every_third, 30);

    assert_eq!(done.requests("ok"), 30);
    assert_eq!(settled_after(&origin, 11).connections.accepted, 1 + 10);

    let origin = self::origin();
    let done = drive(&origin, "wrk.headers['Connection'] = 'close'", 30);

    assert_eq!(done.requests("ok"), 30);
    assert_eq!(settled_after(&origin, 31).connections.accepted, 1 + 30);
}

#[test]
fn each_thread_has_its_own_requests_and_its_own_address() {
    let (first, second) = (origin(), origin());
    let script = format!(
        "local port, n = {{'{}', '{}'}}, 0
        function setup(thread)
            n = n + 1
            thread.addr = wrk.lookup(wrk.host, port[n])[1]
            thread:set('id', n)
        end
        function init(args) wrk.path = '/bytes/' .. id end",
        first.port, second.port
    );
    let file = File::new(&script);
    let mut asked = asked(first.port, Some(&file));
    asked.threads = 2;
    let done = run(Session::prepare(&asked).unwrap(), &plan(&asked, 2, 20));

    assert_eq!(done.requests("ok"), 20);
    assert_eq!(settled(&first).paths["/bytes/1"].answered, 10);
    assert_eq!(settled(&second).paths["/bytes/2"].answered, 10);
}
