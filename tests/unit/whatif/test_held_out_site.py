"""Cases that say something about another one, and where their work is done."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from loadlens.model.plain import read
from loadlens.model.recorded import PlannedCase
from loadlens.model.workload import Connection
from loadlens.whatif.held_out.site import site_of, why_not_kin
from loadlens.whatif.queueing import NoModel

APP: dict[str, Any] = {
    "name": "app", "use": "process", "start": "node app.js", "env": {"A": "1"}, "replicas": 1, "over": [],
    "limits": {"cpu": 0.3, "cpus": None}, "model": {"workers": 1, "threads": 0}, "policy": None,
    "faults": None,
}  # fmt: skip
BALANCER: dict[str, Any] = {
    "name": "lb", "use": "nginx", "start": "", "env": {}, "replicas": 1, "over": ["app"], "limits": {},
    "model": {"workers": 1, "threads": 0}, "policy": "random-two", "faults": None,
}  # fmt: skip


def case(*services: dict[str, Any], entry: str = "app", path: str = "/", think: int = 0) -> PlannedCase:
    step = {"name": "page", "method": "GET", "path": path, "think": {"kind": "fixed", "ns": think}}
    content = {
        "slug": "page",
        "services": list(services),
        "entry": {"service": entry},
        "connection": {"reuse": "new"},
        "scenarios": [{"name": "page", "weight": 1, "steps": [step]}],
        "workload": {"kind": "closed", "users": 1},
    }
    return read(PlannedCase, content)


def changed(service: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {**copy.deepcopy(service), **keys}


def test_the_work_is_done_behind_the_balancer() -> None:
    site = site_of(case(changed(APP, replicas=3), BALANCER, entry="lb"))

    assert (site.service, site.replicas, site.members, site.policy) == ("app", 3, 3, "random-two")
    assert (site.quota, site.speed) == (0.3, 0.3)


def test_a_balancer_before_two_services_has_no_model() -> None:
    with pytest.raises(NoModel, match="stands before 2"):
        site_of(case(APP, changed(BALANCER, over=["app", "other"]), entry="lb"))


def test_more_replicas_behind_a_balancer_are_kin() -> None:
    single, three = case(APP), case(changed(APP, replicas=3), BALANCER, entry="lb")

    assert why_not_kin(single, three) is None
    assert why_not_kin(three, single) is None


def test_another_pause_is_kin_and_another_path_is_not() -> None:
    assert why_not_kin(case(APP), case(APP, think=5)) is None
    assert why_not_kin(case(APP), case(APP, path="/other")) == "it sends other requests"


def test_another_environment_needs_another_model() -> None:
    bare = changed(APP, env={"A": "2"})
    declared = changed(bare, model={"workers": 1, "threads": 8})

    assert (
        why_not_kin(case(APP), case(bare))
        == "env of app differs, and its `model:` does not say what that changes"
    )
    assert why_not_kin(case(APP), case(declared)) is None


def test_connections_that_are_kept_are_no_kin_of_new_ones() -> None:
    kept = replace(case(APP), connection=Connection("keep"))

    assert why_not_kin(kept, case(APP)) == "connections are used in another way"


def test_a_database_that_is_set_otherwise_is_no_kin() -> None:
    first, second = (changed(APP, name="db", use="postgres", settings={"a": value}) for value in ("1", "2"))

    assert "settings of db" in str(why_not_kin(case(APP, first), case(APP, second)))
