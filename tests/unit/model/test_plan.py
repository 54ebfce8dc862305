"""Plans come back from their JSON as they were, with every kind of part in them."""

from __future__ import annotations

import json

from loadlens.model.profile import Profile, Segment
from loadlens.model.workload import (
    Auth,
    Body,
    Bounds,
    Check,
    Closed,
    Connection,
    Extract,
    Feed,
    Group,
    Open,
    PemFile,
    Plan,
    RecordTo,
    Replay,
    Scenario,
    Source,
    Step,
    Stream,
    Target,
    Think,
    Tls,
)

STEPS = (
    Step(
        "order",
        "POST",
        "/orders",
        headers=(("Accept", "*/*"), ("X", "{{feed.a}}")),
        auth=Auth("bearer", token_env="TOKEN"),
        body=Body("json", value={"items": [1, None, "{{id}}"]}),
        expect=(200, 201),
        checks=(
            Check("number", path="$.n", bounds=Bounds(above=1.0)),
            Check("json", path="$.ok", equals=None),
            Check("latency", below_ns=5),
        ),
        extract=(Extract("id", Source("regex", pattern="(\\d+)", group=1)),),
        think=Think("uniform", low_ns=1, high_ns=9),
    ),
    Step("pay", "GET", "/pay/{{id}}"),
)
LOAD = Stream(
    "load",
    "load",
    Target("::1", 8443, "[::1]:8443", Tls(ca=PemFile("ca.pem", "0" * 64), resume=False)),
    (Scenario("buy", 2.0, STEPS, (Group("basket", 0, 2, 3),)), Scenario("look", 1.0, STEPS[1:])),
    Closed(20, pace=Think("exponential", mean_ns=7), profile=Profile((Segment(10, 0.0, 20.0),), True)),
    Connection("requests", 100, pool=4),
    cookies="keep",
)
PROBE = Stream(
    "ping",
    "probe",
    Target("h", 80, "h:80"),
    (Scenario("ping", 1.0, STEPS[1:]),),
    Open(replay=Replay("due.csv", "1" * 64, 9, 10, 2.5, column="at"), max_in_flight=3),
    timeout_ns=1,
)
PLAN = Plan(
    7,
    (LOAD, PROBE),
    threads=2,
    cpus=(0, 3),
    warmup_ns=1,
    duration_ns=2,
    drain_ns=3,
    record=RecordTo("live", 5),
    feeds=(Feed("feed", "a.csv", "2" * 64, "csv", "unique", "stop"),),
    share=(1, 2),
)


def test_a_plan_with_every_kind_of_part_comes_back_as_it_was() -> None:
    assert Plan.from_json(json.loads(PLAN.to_json())) == PLAN


def test_what_a_short_plan_leaves_out_has_its_default() -> None:
    step = {"name": "a", "method": "GET", "path": "/"}
    stream = {
        "name": "load", "role": "load", "target": {"host": "h", "port": 80, "authority": "h:80"},
        "scenarios": [{"name": "a", "weight": 1.0, "steps": [step]}],
        "workload": {"kind": "open", "rate_per_s": 5.0},
    }  # fmt: skip

    plan = Plan.from_json({"seed": 1, "streams": [stream]})

    scenario = Scenario("a", 1.0, (Step("a", "GET", "/"),))
    assert plan == Plan(1, (Stream("load", "load", Target("h", 80, "h:80"), (scenario,), Open(5.0)),))
