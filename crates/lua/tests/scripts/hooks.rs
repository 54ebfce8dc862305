//! Arguments of a script's functions, and its requests to the engine while it runs.

use loadlens_lua::Summary;

use crate::harness::*;

/// A script whose `done` fails with what it has seen, which is how a test sees it.
fn told(
    origin: &loadlens_origin::Origin,
    script: &str,
    requests: u64,
    summary: &Summary,
) -> String {
    let mut done = drive(origin, script, requests);
    assert_eq!(done.fault(), None);
    done.finish(summary).unwrap_err().to_string()
}

const KEEPS_THREADS: &str = "
    local threads = {}
    function setup(thread) threads[#threads + 1] = thread end
    function done(summary, latency, requests)
        error(tostring(threads[1]:get('seen')), 0)
    end
    ";

#[test]
fn a_script_sees_status_headers_and_body_of_each_answer() {
    let origin = origin();
    let script = format!(
        "{KEEPS_THREADS}
        seen = ''
        wrk.path = '/echo'
        wrk.method, wrk.body = 'POST', 'some text'
        function response(status, headers, body)
            seen = seen .. type(status) .. status .. headers['Content-Length'] .. body .. ';'
        end"
    );

    assert_eq!(
        told(&origin, &script, 2, &Summary::default()),
        "number2009some text;number2009some text;"
    );
}

#[test]
fn a_script_changes_its_requests_by_what_it_saw() {
    let origin = origin();
    let script = "
        local path = '/status/404'
        function request() return wrk.format('GET', path) end
        function response(status) if status == 404 then path = '/json' end end";
    let done = drive(&origin, script, 10);

    assert_eq!(
        (done.requests("ok"), done.requests("unexpected_status")),
        (9, 1)
    );
}

#[test]
fn a_body_that_comes_in_chunks_is_whole() {
    let origin = origin();
    let script = format!(
        "{KEEPS_THREADS}
        wrk.path = '/bytes/300000'
        seen = 0
        function response(status, headers, body) seen = seen + #body end"
    );

    assert_eq!(told(&origin, &script, 3, &Summary::default()), "900000");
}

#[test]
fn a_thread_that_stops_sends_nothing_more() {
    let origin = origin();
    let script = "
        local n = 0
        function response()
            n = n + 1
            if n == 100 then wrk.thread:stop() end
        end";
    let done = drive(&origin, script, 1_000_000);

    assert_eq!(done.requests("ok"), 100);
    assert_eq!(done.requests("in_flight"), 0);
    assert_eq!(done.result.as_ref().unwrap()["status"], "complete");
    assert_eq!(settled(&origin).answered, 100);
}

#[test]
fn stopping_before_and_after_the_run_means_nothing() {
    let origin = origin();
    let mut done = drive(&origin, "function setup(thread) thread:stop() end", 5);

    assert_eq!((done.requests("ok"), done.fault()), (5, None));
}

#[test]
fn a_pause_comes_before_each_request_and_is_no_response_time() {
    let origin = origin();
    let file = File::new("function delay() return 50 end");
    let mut asked = asked(origin.port, Some(&file));
    asked.threads = 1;
    let session = loadlens_lua::Session::prepare(&asked).unwrap();
    let mut done = run(session, &plan(&asked, 1, 6));

    assert_eq!(done.requests("ok"), 6);
    assert!(done.measured_ns() >= 300_000_000); // six pauses, the first one before the first request
    let (latencies, _) = done.session.statistics(done.measured_ns());
    assert!(
        latencies.percentile(50.0) < 50_000,
        "{}",
        latencies.percentile(50.0)
    );
}

#[test]
fn done_is_told_the_summary_and_exact_statistics() {
    let origin = origin();
    let script = "
        function done(summary, latency, requests)
            local e = summary.errors
            local sum, rows, least = 0, #latency, latency(1)
            for i = 1, rows do
                local value, count = latency(i)
                sum = sum + count
            end
            error(string.format('%d %d %d|%d %d %d %d %d|%d %s %s %s %s', summary.duration, summary.requests,
                summary.bytes, e.connect, e.read, e.write, e.status, e.timeout, sum,
                least == latency.min, latency:percentile(100) == latency.max,
                latency.mean >= latency.min and latency.stdev >= 0,
                requests.max >= requests.min), 0)
        end";
    let summary: Summary = serde_json::from_str(
        r#"{"duration_us": 1, "requests": 2, "bytes": 3,
            "errors": {"connect": 4, "read": 5, "write": 6, "status": 7, "timeout": 8}}"#,
    )
    .unwrap();

    assert_eq!(
        told(&origin, script, 200, &summary),
        "1 2 3|4 5 6 7 8|200 true true true true"
    );
}

#[test]
fn tables_travel_between_states_and_functions_do_not() {
    let origin = origin();
    let script = "
        local thread
        function setup(t)
            thread = t
            t:set('given', {1, {x = 'y'}, true})
        end
        function init() seen = {given[1] + 1, given[2].x .. 'z', not given[3], nothing = nil} end
        function done()
            local seen = thread:get('seen')
            local ok, why = pcall(thread.get, thread, 'init')
            error(seen[1] .. seen[2] .. tostring(seen[3]) .. tostring(thread:get('nowhere')) ..
                tostring(ok) .. tostring(why):match('cannot transfer[^\\n]*'), 0)
        end";

    assert_eq!(
        told(&origin, script, 1, &Summary::default()),
        "2yzfalsenilfalsecannot transfer 'function' to thread"
    );
}
