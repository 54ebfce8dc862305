"""A monitor is one file, one line, one fixture, one page: what is missing is named."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from loadlens.model.readings import METRICS
from loadlens.signals.collect import MONITORS, make

ROOT = Path(__file__).parents[4]
SHARED = {
    "__init__",
    "__main__",
    "kernel_numbers",
    "launch",
    "monitor",
    "otlp_messages",
    "runtime_samples",
    "scene",
    "tail",
}  # files that are no monitors


def test_every_file_with_a_monitor_is_registered() -> None:
    files = {path.stem for path in (ROOT / "python/loadlens/signals/collect").glob("*.py")} - SHARED

    assert files == set(MONITORS)


@pytest.mark.parametrize("name", MONITORS)
def test_a_monitor_is_made_by_its_name_and_its_spec_names_it(name: str) -> None:
    monitor = make(name)
    module = importlib.import_module(f"loadlens.signals.collect.{name}")
    specs = [kind for kind in vars(module).values() if getattr(kind, "monitor", None) == name]

    assert monitor.name == name
    assert len(specs) == 1


@pytest.mark.parametrize("name", MONITORS)
def test_a_monitor_has_tests_and_a_page(name: str) -> None:
    assert (ROOT / "tests/unit/signals/collect" / f"test_{name}.py").exists()
    assert (ROOT / "docs/reference/monitors" / f"{name}.md").exists()


@pytest.mark.parametrize("name", MONITORS)
def test_the_page_says_of_each_metric_what_it_is(name: str) -> None:
    page = (ROOT / "docs/reference/monitors" / f"{name}.md").read_text()

    assert METRICS[name]
    for metric in METRICS[name]:
        assert f"| `{metric.name}` | {metric.unit} | {metric.kind} | {metric.what} |" in page
