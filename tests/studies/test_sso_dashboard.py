"""The provisioned Grafana dashboard of the sso study: what the SDK makes of it, and what it asks for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ruamel.yaml import YAML

from loadlens import promql
from loadlens.study import parse
from loadlens.study.tree import Leaf, at
from tests.scripts import loaded

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "studies" / "sso"
GRAFANA = STUDY / "grafana"


def made() -> ModuleType:
    pytest.importorskip("grafana_foundation_sdk", reason="only `make studies` installs Grafana's SDK")
    return loaded("studies/sso/grafana/dashboard.py")


def kept() -> dict[str, Any]:
    return dict(json.loads((GRAFANA / "dashboard.json").read_text()))


def yaml(path: str) -> Any:
    return YAML(typ="safe").load((GRAFANA / path).read_text())


def panels() -> list[dict[str, Any]]:
    return [panel for panel in kept()["panels"] if panel["type"] != "row"]


def test_the_dashboard_is_what_grafanas_sdk_makes() -> None:
    assert json.loads(made().dashboard()) == kept()


def test_the_dashboard_of_exports_is_what_grafanas_sdk_makes_too() -> None:
    made()
    folder = ROOT / "docs" / "examples" / "grafana"
    of_exports = loaded("docs/examples/grafana/dashboard.py")

    assert json.loads(of_exports.dashboard()) == json.loads((folder / "dashboard.json").read_text())


@pytest.mark.parametrize("folder", [GRAFANA, ROOT / "docs" / "examples" / "grafana"])
def test_a_dashboard_has_no_value_that_grafanas_types_refuse(folder: Path) -> None:
    """`@grafana/schema` 11 has no null options, and `auto` only for intervals."""
    board = json.loads((folder / "dashboard.json").read_text())

    graphs = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert all(set(panel["options"]) == {"legend", "tooltip"} for panel in graphs)
    assert "null" not in (folder / "dashboard.json").read_text()
    variables = board.get("templating", {}).get("list", [])
    assert [key for of in variables for key in of if key.startswith("auto") or key == "id"] == []


def test_every_panel_asks_the_provisioned_source_in_sound_promql() -> None:
    (source,) = yaml("provisioning/datasources/prometheus.yml")["datasources"]

    for panel in panels():
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == panel["datasource"]["uid"] == source["uid"]
            assert promql.metrics_of(promql.parse(target["expr"].replace("$__rate_interval", "5s")))


def test_panels_do_not_cover_each_other() -> None:
    places = [tuple(panel["gridPos"][side] for side in "xywh") for panel in panels()]
    cells = [(x + i, y + j) for x, y, w, h in places for i in range(w) for j in range(h)]

    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_prometheus_scrapes_what_the_study_scrapes() -> None:
    (job,) = yaml("prometheus.yml")["scrape_configs"]
    path = at(parse.read(STUDY).tree, "services", "api", "scrape", "get")
    assert isinstance(path, Leaf)

    assert job["metrics_path"] == path.written
    assert re.fullmatch(r"127\.0\.0\.1:[0-9]+", job["static_configs"][0]["targets"][0])
