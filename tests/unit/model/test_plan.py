"""Plans come back from their JSON as they were, with every kind of part in them."""

from __future__ import annotations

import json

import pytest

from loadlens.model.profile import Profile, Segment
from loadlens.model.workload import (
    TRACE_SLOT,
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
    Share,
    Source,
    Step,
    Stream,
    Target,
    Think,
    Tls,
    shares_of,
)

TRACE = ("traceparent", TRACE_SLOT)


@pytest.mark.parametrize(
    ("step", "is_varied"),
    [
        (Step("a", "GET", "/users/7"), False),
        (Step("a", "GET", "/users/7", headers=(TRACE,)), False),
        (Step("a", "GET", "/users/{{user.id}}"), True),
        (Step("a", "GET", "/me", headers=(("Authorization", "Bearer {{user.token}}"),)), True),
        (Step("a", "POST", "/x", body=Body("text", text="{{user.id}}")), True),
        (Step("a", "POST", "/x", body=Body("json", value={"user": ["{{user.id}}"]})), True),
        (Step("a", "POST", "/x", body=Body("json", value={"user": [7]})), False),
    ],
)
def test_requests_vary_where_a_template_is_filled_in(step: Step, is_varied: bool) -> None:
    assert step.is_varied is is_varied


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
    record=RecordTo("live", 5, sums=True),
    feeds=(Feed("feed", "a.csv", "2" * 64, "csv", "unique", "stop"),),
    share=Share(4, 9, 9),
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


def test_weights_become_shares_without_their_common_factor() -> None:
    assert shares_of([2, 6, 10]) == (Share(0, 1, 9), Share(1, 4, 9), Share(4, 9, 9))
    assert shares_of([7]) == (Share(),)
    assert [share.weight for share in shares_of([3, 1])] == [0.75, 0.25]


@pytest.mark.parametrize(
    ("weights", "fault"),
    [
        ([], "from 1 on, got none"),
        ([1, 0, 2], "from 1 on, got 1, 0, 2"),
        ([9_999, 2], "10,001 parts, at most 10,000"),
    ],
)
def test_weights_that_make_no_shares_are_refused(weights: list[int], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        shares_of(weights)


def test_a_share_of_an_early_record_is_one_part() -> None:
    content = json.loads(PLAN.to_json())

    assert Plan.from_json({**content, "share": {"index": 2, "of": 3}}).share == Share(2, 3, 3)
