"""Refusals, command lines and reports of the drivers; the tools' sources are the oracle."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadlens.model import external_load
from loadlens.model.workload import Body, Check, Closed, Connection, Open, Plan, Think, Tls
from loadlens.run.external import DRIVERS, Printed
from loadlens.run.external.wrk import without_additions
from tests.unit.report.write import hit_result

SECOND = 1_000_000_000


def plan(**stream: Any) -> Plan:
    made = hit_result.plan(stream.pop("workload", Closed(users=4)))
    return replace(made, streams=(replace(made.streams[0], **stream),), duration_ns=3 * SECOND)


def with_step(made: Plan, **step: Any) -> Plan:
    stream = made.streams[0]
    scenario = stream.scenarios[0]
    bent = replace(scenario, steps=(replace(scenario.steps[0], **step),))
    return replace(made, streams=(replace(stream, scenarios=(bent,)),))


@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize(
    ("made", "words"),
    [
        (plan(workload=Open(rate_per_s=5.0)), "keeps no rate"),
        (plan(workload=Closed(users=2, think=Think("fixed", ns=5))), "neither think"),
        (plan(workload=Closed(users=2, ramp_ns=5)), "one level of load"),
        (replace(plan(), warmup_ns=5), "no warm-up"),
        (with_step(plan(), path="/{{uuid}}"), "fills no {{...}}"),
        (with_step(plan(), checks=(Check("contains", text="a"),)), "checks no answers"),
        (plan(connection=Connection("requests", requests=5)), "a new one for each request"),
        (plan(cookies="keep"), "no cookies"),
        (plan(target=replace(plan().streams[0].target, tls=Tls())), "verifies no certificates"),
    ],
)
def test_what_a_driver_cannot_do_is_named(name: str, made: Plan, words: str) -> None:
    faults = DRIVERS[name].faults(made)

    assert [fault for fault in faults if words in fault.words and name in fault.words], faults


SECRET = "Zq01secret"


@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize(
    ("named", "step"),
    [
        ("Cookie", {"headers": (("Accept", "*/*"), ("Cookie", f"sid={SECRET}"))}),
        ("X-Partner", {"headers": (("X-Partner", SECRET),)}),
        ("the query", {"path": f"/?page=1&token={SECRET}"}),
    ],
)
def test_no_credential_is_in_a_command_line(
    name: str, named: str, step: dict[str, Any], tmp_path: Path
) -> None:
    made, driver = with_step(plan(), **step), DRIVERS[name]

    words = [fault.words for fault in driver.faults(made, hide=["X-Partner"]) if fault.feature == "secrets"]

    if driver.shows:
        assert [f"would show {named} to everyone" in text for text in words] == [True]
    else:
        assert words == []
        assert SECRET not in " ".join(driver.command(made, tmp_path))
        assert SECRET in "".join(file.read_text() for file in tmp_path.iterdir())


def test_studies_know_every_driver_by_name() -> None:
    assert set(external_load.DRIVERS) == set(DRIVERS)
    assert all(driver.name == name for name, driver in DRIVERS.items())


def several_steps() -> Plan:
    made = plan()
    stream = made.streams[0]
    scenario = stream.scenarios[0]
    twice = replace(scenario, steps=scenario.steps * 2)
    return replace(made, streams=(replace(stream, scenarios=(twice,)),))


@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize(
    ("made", "feature"),
    [
        (several_steps(), "mix"),
        (replace(plan(), streams=(*plan().streams, *plan().streams)), "probes"),
        (plan(workload=Closed(users=2, iterations=5)), "iterations"),
        (plan(workload=Closed(users=2, pace=Think("fixed", ns=5))), "pauses"),
        (plan(connection=Connection(pool=2)), "connections"),
        (with_step(plan(), body=Body("json", value={"a": ["{{int 1 2}}"]})), "templates"),
        (with_step(plan(), expect=(200,)), "expect"),
    ],
)
def test_what_only_a_study_asks_for_is_named_by_its_feature(name: str, made: Plan, feature: str) -> None:
    assert feature in [fault.feature for fault in DRIVERS[name].faults(made)]


@pytest.mark.parametrize("name", ["wrk", "ab", "hey"])
def test_what_counts_in_seconds_is_given_no_half_ones(name: str) -> None:
    made = replace(plan(timeout_ns=SECOND // 2), duration_ns=SECOND // 2)

    words = [fault.words for fault in DRIVERS[name].faults(made)]

    assert all(f"{name} counts its {what} in whole seconds" in words for what in ("duration", "time-out"))


def test_a_body_of_json_is_the_one_that_our_engine_sends(tmp_path: Path) -> None:
    made = with_step(plan(), method="POST", body=Body("json", value={"b": [1, None], "a": "é"}))

    words = DRIVERS["ab"].command(made, tmp_path)

    # Keys in order and no spaces, as the plan's canonical JSON has them; the type as the engine gives it.
    assert Path(words[words.index("-p") + 1]).read_bytes() == '{"a":"é","b":[1,null]}'.encode()
    assert words[words.index("-T") + 1] == "application/json"


@pytest.mark.parametrize("name", DRIVERS)
def test_a_plain_load_has_no_faults(name: str) -> None:
    assert DRIVERS[name].faults(plan()) == []


@pytest.mark.parametrize("name", ["ab", "k6", "locust", "oha"])
def test_each_user_has_a_request_to_send(name: str) -> None:
    def asked(requests: int) -> list[str]:
        made = replace(plan(workload=Closed(users=4, requests=requests)), duration_ns=None)
        return [fault.feature for fault in DRIVERS[name].faults(made)]

    assert asked(3) == ["requests"]
    assert asked(4) == []


def test_wrk_counts_to_no_number_of_requests() -> None:
    assert DRIVERS["wrk"].faults(plan(workload=Closed(users=2, requests=10)))


@pytest.mark.parametrize(("users", "threads"), [(1, 1), (4, 2), (5, 1), (6, 2)])
def test_wrk_gets_threads_that_divide_its_connections(tmp_path: Path, users: int, threads: int) -> None:
    # wrk.c: t->connections = cfg.connections / cfg.threads; the rest is never opened.
    made = replace(plan(workload=Closed(users=users)), threads=2)

    words = DRIVERS["wrk"].command(made, tmp_path)

    assert words[:5] == ["wrk", "-t", str(threads), "-c", str(users)]


def test_ab_gets_the_time_limit_before_the_number_that_it_sets(tmp_path: Path) -> None:
    words = DRIVERS["ab"].command(plan(workload=Closed(users=2, requests=50)), tmp_path)

    assert words.index("-t") < words.index("-n")
    assert words[words.index("-n") + 1] == "50"
    assert "-k" in words
    assert words[-1] == "http://127.0.0.1:8080/json"


def test_a_body_reaches_ab_by_a_file(tmp_path: Path) -> None:
    made = with_step(
        plan(), method="PUT", body=Body("text", text="é"), headers=(("Content-Type", "text/x"), ("A", "b"))
    )

    words = DRIVERS["ab"].command(made, tmp_path)

    assert Path(words[words.index("-u") + 1]).read_bytes() == "é".encode()
    assert words[words.index("-T") + 1] == "text/x"
    assert words[words.index("-H") + 1] == "A: b"
    assert words.count("-H") == 1


def shown_by_wrk(measured: dict[int, int], expected: int) -> dict[int, int]:
    """stats_correct of wrk's src/stats.c, line by line."""
    data = Counter(measured)
    for n in range(expected * 2, max(measured) + 1):
        count = data[n]
        m = n - expected
        while count and m > expected:
            data[m] += count
            m -= expected
    return {value: count for value, count in data.items() if count}


@pytest.mark.parametrize("seed", range(20))
def test_what_wrk_adds_is_taken_away_exactly(seed: int) -> None:
    import random

    draw = random.Random(seed)
    measured = dict(Counter(int(draw.expovariate(1 / 900)) for _ in range(400)))
    requests, connections = sum(measured.values()), draw.randint(1, 20)
    duration = requests // connections * draw.randint(100, 800)
    shown = shown_by_wrk(measured, duration // (requests // connections))

    left = without_additions(shown, requests=requests, connections=connections, duration_us=duration)

    assert left == measured
    assert sum(shown.values()) > requests  # there was something to take away


WRK_SAID: dict[str, Any] = {
    "duration_us": 2_000_000, "requests": 10, "bytes": 4200, "connect": 1, "read": 2, "write": 3,
    "status": 4, "timeout": 0, "latency_us": [[1000, 5], [2000, 4], [100_000, 1]],
}  # fmt: skip


def read_wrk(tmp_path: Path, **bent: Any) -> Any:
    (tmp_path / "loadlens.json").write_text(json.dumps(WRK_SAID | bent))
    return DRIVERS["wrk"].read(Printed("", tmp_path), plan())


def test_counts_and_times_of_wrk(tmp_path: Path) -> None:
    # Ten requests over 4 connections in 2 s: one a connection each second, far above every latency.
    report = read_wrk(tmp_path)

    assert (report.answered, report.unexpected_status, report.failed, report.bytes_in) == (10, 4, 6, 4200)
    assert report.seconds == 2
    assert report.times.count == 10
    assert report.times.mean == pytest.approx((5 * 1 + 4 * 2 + 100) / 10 / 1e3)
    assert report.times.quantiles["p50"] == 0.001
    assert report.times.quantiles["p75"] == 0.002
    assert report.times.quantiles["p99"] == report.times.most == 0.1


def test_answers_after_the_timeout_are_longer_than_all_that_wrk_timed(tmp_path: Path) -> None:
    report = read_wrk(tmp_path, timeout=1, latency_us=[[1000, 5], [2000, 4]])

    assert report.times.censored == 1
    assert report.times.quantiles["p90"] == 0.002  # the ninth of ten
    assert "p95" not in report.times.quantiles
    assert report.times.mean is None
    assert report.times.most is None


def test_latencies_of_wrk_that_do_not_come_out_even_are_left_out(tmp_path: Path) -> None:
    report = read_wrk(tmp_path, latency_us=[[1000, 5]])

    assert report.times is None
    assert "left out" in report.notes[0]


def test_wrk_that_did_not_end_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ended before its report"):
        DRIVERS["wrk"].read(Printed("", tmp_path), plan())


AB_SAID = """
Concurrency Level:      4
Time taken for tests:   0.500 seconds
Complete requests:      30
Failed requests:        23
   (Connect: 1, Receive: 1, Length: 21, Exceptions: 0)
Non-2xx responses:      3
Total transferred:      3000 bytes
HTML transferred:       300 bytes

Connection Times (ms)
              min  mean[+/-sd] median   max
Total:          1    7   2.5      6      12
"""


def test_counts_of_ab(tmp_path: Path) -> None:
    report = DRIVERS["ab"].read(Printed(AB_SAID, tmp_path), plan())

    assert (report.answered, report.failed, report.unexpected_status) == (29, 2, None)
    assert report.errors == {"connect": 1, "receive": 1, "length": 21, "exceptions": 0}
    assert (report.seconds, report.bytes_in, report.bytes_in_bodies, report.bytes_out) == (
        0.5,
        3000,
        300,
        None,
    )
    assert report.times is None  # no file of percentages


def test_times_of_ab_come_from_its_file_of_percentages(tmp_path: Path) -> None:
    rows = "".join(f"{percent},{percent + 0.125:.3f}\n" for percent in range(101))
    (tmp_path / "served.csv").write_text(f"Percentage served,Time in ms\n{rows}")

    times = DRIVERS["ab"].read(Printed(AB_SAID, tmp_path), plan()).times

    assert times is not None
    assert times.quantiles == pytest.approx(
        {"p50": 0.050125, "p75": 0.075125, "p90": 0.090125, "p95": 0.095125, "p99": 0.099125}
    )
    assert (times.least, times.most) == pytest.approx((0.000125, 0.100125))
    assert (times.mean, times.deviation) == (0.007, 0.0025)


@pytest.mark.parametrize("text", ["", "Complete requests:      30\n"])
def test_output_of_ab_without_its_counts_is_no_result(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match="no line"):
        DRIVERS["ab"].read(Printed(text, tmp_path), plan())


def test_hey_is_read_from_its_summary(tmp_path: Path) -> None:
    # What hey 0.1.5 printed, read by eye; the error line behind it is that of its template.
    printed = (Path(__file__).parents[2] / "data" / "bench" / "hey.txt").read_text()
    printed += "Error distribution:\n  [3]\tGet: connection refused\n"

    report = DRIVERS["hey"].read(Printed(printed, tmp_path), plan())

    assert (report.seconds, report.answered, report.unexpected_status, report.failed) == (2.1980, 1178, 0, 3)
    assert report.statuses == {"200": 1178}
    assert report.errors == {"Get: connection refused": 3}
    assert report.bytes_in_bodies == 12958
    assert report.times is not None
    assert (report.times.mean, report.times.least, report.times.most) == (0.0348, 0.0101, 0.2598)
    assert report.times.quantiles == {"p50": 0.0179, "p75": 0.05, "p90": 0.0806, "p95": 0.1015, "p99": 0.2158}


def test_k6_is_read_from_its_exported_summary(tmp_path: Path) -> None:
    times = {"avg": 5, "min": 1, "max": 90} | {
        f"p({p})": 10 * n for n, p in enumerate((50, 75, 90, 95, 99, 99.9))
    }
    metrics = {
        "http_reqs": {"count": 100, "rate": 50},
        "http_reqs{status:0}": {"count": 4},
        "http_req_failed": {"passes": 10, "fails": 90},
        "http_req_duration{expected_response:true}": times,
        "data_sent": {"count": 1000},
        "data_received": {"count": 2000},
    }
    (tmp_path / "loadlens.json").write_text(json.dumps({"metrics": metrics}))

    report = DRIVERS["k6"].read(Printed("", tmp_path), plan())

    # Of 100 requests 4 had no answer; 10 did not end as expected, those 4 among them.
    assert (report.seconds, report.answered, report.unexpected_status, report.failed) == (2, 96, 6, 4)
    assert (report.bytes_out, report.bytes_in) == (1000, 2000)
    assert report.times is not None
    assert (report.times.count, report.times.mean, report.times.quantiles["p999"]) == (90, 0.005, 0.05)


def test_times_carry_the_steps_that_a_driver_rounds_to(tmp_path: Path) -> None:
    rows = "".join(f"{percent},{percent + 0.125:.3f}\n" for percent in range(101))
    (tmp_path / "served.csv").write_text(f"Percentage served,Time in ms\n{rows}")
    by_ab = DRIVERS["ab"].read(Printed(AB_SAID, tmp_path), plan()).times

    assert by_ab is not None
    # -e has three digits of a millisecond; the table of ab has whole ones, and one digit of the deviation.
    assert by_ab.rounding["quantiles"] == 1e-6
    assert (by_ab.rounding["mean"], by_ab.rounding["stdev"]) == (1e-3, 1e-4)
    assert read_wrk(tmp_path).times.rounding["quantiles"] == 1e-6


# The keys of `print_json` in src/printer.rs of oha 1.15.0; the values are made up.
OHA_SAID: dict[str, Any] = {
    "summary": {
        "successRate": 0.99, "total": 2.001, "slowest": 0.09, "fastest": 0.0005, "average": 0.004,
        "requestsPerSec": 52.47, "totalData": 1300, "sizePerRequest": 13, "sizePerSec": 649.6,
    },
    "metrics": {
        "success_rate": 0.99, "requests_per_sec": 52.47,
        "latency_ms": {"min": 0.5, "mean": 4.0, "p50": 3.0, "p95": 9.5, "p99": 80.0, "max": 90.0},
    },
    "responseTimeHistogram": {"0.0005": 1, "0.09": 1},
    "latencyPercentiles": {
        "p10": 0.001, "p25": 0.002, "p50": 0.003, "p75": 0.0075, "p90": 0.009, "p95": 0.0095, "p99": 0.08,
        "p99.9": 0.0899, "p99.99": 0.09,
    },
    "firstByteHistogram": {}, "firstBytePercentiles": {},
    "rps": {"mean": 50.0, "stddev": 1.0, "max": 60.0, "min": 40.0, "percentiles": {"p50": 50.0}},
    "details": {
        "DNSDialup": {"average": 0.001, "fastest": 0.001, "slowest": 0.001},
        "DNSLookup": {"average": 0.0, "fastest": 0.0, "slowest": 0.0},
        "firstByte": {"average": 0.001, "fastest": 0.001, "slowest": 0.001},
    },
    "statusCodeDistribution": {"200": 90, "302": 4, "503": 6},
    "errorDistribution": {"aborted due to deadline": 4, "timeout": 1},
}  # fmt: skip


def read_oha(tmp_path: Path, **bent: Any) -> Any:
    (tmp_path / "loadlens.json").write_text(json.dumps(OHA_SAID | bent))
    return DRIVERS["oha"].read(Printed("", tmp_path), plan())


def test_oha_is_read_from_its_json(tmp_path: Path) -> None:
    report = read_oha(tmp_path)

    assert (report.seconds, report.answered, report.unexpected_status, report.failed) == (2.001, 100, 6, 1)
    assert report.errors == {"timeout": 1}
    assert report.statuses == {"200": 90, "302": 4, "503": 6}
    assert report.in_flight == 4  # given up at the end: neither answered nor failed
    assert (report.bytes_in_bodies, report.bytes_in) == (1300, None)
    assert report.times is not None
    assert (report.times.count, report.times.mean) == (100, 0.004)
    assert (report.times.least, report.times.most) == (0.0005, 0.09)
    assert report.times.quantiles == {
        "p50": 0.003, "p75": 0.0075, "p90": 0.009, "p95": 0.0095, "p99": 0.08, "p999": 0.0899
    }  # fmt: skip
    assert report.times.rounding == {}


def test_oha_without_an_answer_has_no_times(tmp_path: Path) -> None:
    # serde_json writes the mean of nothing, NaN, as null.
    nothing = OHA_SAID["summary"] | {"average": None, "fastest": None, "slowest": None, "totalData": 0}

    report = read_oha(
        tmp_path, summary=nothing, statusCodeDistribution={}, errorDistribution={"Connection refused": 9}
    )

    assert (report.answered, report.failed, report.times) == (0, 9, None)


def test_oha_is_told_the_load(tmp_path: Path) -> None:
    made = with_step(plan(connection=Connection("new")), method="POST", body=Body("text", text="x"))

    words = DRIVERS["oha"].command(made, tmp_path)

    for flag, value in (("-c", "4"), ("-z", "3000ms"), ("-m", "POST"), ("-t", "30000ms"), ("-r", "0")):
        assert words[words.index(flag) + 1] == value
    assert "--disable-keepalive" in words
    assert Path(words[words.index("-D") + 1]).read_bytes() == b"x"
    counted = replace(plan(workload=Closed(users=2, requests=8)), duration_ns=None)
    assert {"-n", "8"} <= set(DRIVERS["oha"].command(counted, tmp_path))


LOCUST_ROWS = """\
1000.0,2.0,200,13,answered
1000.002,4.0,200,13,answered
1000.006,3.0,503,5,answered
1000.5,1.5,0,0,ConnectionRefusedError
1000.009,6.0,200,13,answered
"""


def read_locust(tmp_path: Path, counted: int = 5, rows: str = LOCUST_ROWS) -> Any:
    (tmp_path / "requests.csv").write_text(rows)
    # What locust 2.47 writes of an entry, as far as it is looked at.
    (tmp_path / "loadlens.json").write_text(json.dumps([{"name": "request", "num_requests": counted}]))
    return DRIVERS["locust"].read(Printed("", tmp_path), plan())


def test_locust_tells_every_request(tmp_path: Path) -> None:
    report = read_locust(tmp_path)

    assert (report.answered, report.unexpected_status, report.failed) == (4, 1, 1)
    assert report.errors == {"ConnectionRefusedError": 1}
    assert report.statuses == {"200": 3, "503": 1}
    assert report.seconds == pytest.approx(0.5015)  # from the first sent to the last ended
    assert report.began_s == 1000.0
    assert [round(request.sent_s, 3) for request in report.requests] == [
        0.0,
        0.002,
        0.006,
        0.009,
        0.5,
    ]  # in order
    assert report.requests[-1].is_failed
    assert report.times is not None
    assert (report.times.count, report.times.mean) == (
        3,
        pytest.approx(0.004),
    )  # of the successes: 2, 4 and 6 ms
    assert report.times.deviation == pytest.approx(0.002)
    assert (report.times.quantiles["p50"], report.times.quantiles["p99"]) == (0.004, 0.006)


def test_locust_whose_listener_missed_requests_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="counts 6 requests and gave its listener 5"):
        read_locust(tmp_path, counted=6)


def test_the_locustfile_is_python_and_holds_the_load(tmp_path: Path) -> None:
    made = with_step(
        plan(workload=Closed(users=4, requests=9), connection=Connection("new")),
        method="POST",
        headers=(("X-Quote", "a'\"b"),),
        body=Body("text", text="é"),
    )

    DRIVERS["locust"].command(made, tmp_path)
    script = (tmp_path / "locustfile.py").read_text()

    names: dict[str, Any] = {}
    exec(next(line for line in script.splitlines() if line.startswith("METHOD")), names)
    assert (names["METHOD"], names["LEFT"], names["SECONDS"]) == ("POST", 9, 3.0)
    assert names["HEADERS"] == {"X-Quote": "a'\"b", "Accept-Encoding": "identity", "Connection": "close"}
    compile(script, "locustfile.py", "exec")
    assert (tmp_path / "body").read_bytes() == "é".encode()
