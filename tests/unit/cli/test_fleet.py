"""`--fleet` from the command line: what is refused before anything is started."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loadlens.cli import app
from loadlens.cli.fleet import nodes
from loadlens.cli.fleet.nodes import Nodes
from loadlens.errors import UsageError
from tests import tiny

URL = "http://127.0.0.1:9/"


def refused(*arguments: str) -> str:
    """The error that the command line prints."""
    fault = CliRunner().invoke(app, list(arguments)).exception
    assert isinstance(fault, UsageError)
    return str(fault)


def test_without_a_fleet_there_is_none_to_be_insecure() -> None:
    assert "there is no fleet\n  at --insecure-fleet\n  try --fleet WHERE" in refused(
        "hit", URL, "--insecure-fleet"
    )


def test_a_fleet_divides_no_load_of_another_program() -> None:
    shown = refused("hit", URL, "--fleet", "local:2", "--driver", "wrk")

    assert "a fleet cannot divide a load of wrk\n  at --fleet\n  try without --driver" in shown


def test_a_study_of_a_fleet_says_what_to_add(tmp_path: Path) -> None:
    file = tiny.write_study(tmp_path, study="fleet: {nodes: 3}")

    shown = refused("run", str(file))

    assert "the study divides its load among 3 nodes" in shown
    assert "try --fleet WHERE, such as --fleet local:3" in shown


def test_packages_that_a_fleet_needs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(nodes, "find_spec", lambda name: None if name == "distributed" else there(name))

    assert "a fleet needs more packages: pip install 'loadlens[fleet]'" in refused(
        "hit", URL, "--fleet", "local:2"
    )


@pytest.mark.parametrize("target", ["127.0.0.1", "localhost", "::1", "web.localhost", "127.8.9.10"])
def test_machines_elsewhere_have_a_loopback_of_their_own(target: str) -> None:
    fleet = Nodes(make_load=none, hosts=("gen1.example",))

    with pytest.raises(UsageError, match=f"{target} is another machine on each node, such as gen1.example"):
        fleet.refuse_loopback(["10.0.0.1", target])


def test_machines_elsewhere_reach_other_addresses() -> None:
    Nodes(make_load=none, hosts=("gen1.example",)).refuse_loopback(["10.0.0.1", "api.example", "::2"])


def none(*_: Any, **__: Any) -> Any:
    raise AssertionError("no load is made")
