"""A finding is one file, one line, one fixture with a near miss, one page: what is missing is named."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from loadlens import diagnose

ROOT = Path(__file__).parents[2]
HEADS = ("**Means.**", "**Needs.**", "**Ruled out by.**", "**Thresholds.**", "**Do.**", "**Confirm.**")
RULES = ROOT / "python/loadlens/diagnose/rules"
FILES = {path.stem: path.parent.name for path in sorted(RULES.glob("*/*.py")) if path.stem != "__init__"}


def test_every_finding_is_registered() -> None:
    registered = {rule.__name__.rpartition(".")[2] for rule in diagnose.PAGES}

    assert set(FILES) == registered


@pytest.mark.parametrize("rule", diagnose.PAGES, ids=lambda rule: rule.ID)
def test_a_finding_has_an_id_a_title_what_it_explains_and_how_to_assess_it(rule: Any) -> None:
    assert all(isinstance(text, str) for text in (rule.ID, rule.TITLE, *rule.EXPLAINS))
    assert callable(rule.assess if rule in diagnose.RULES else rule.assess_after)


@pytest.mark.parametrize("name", FILES)
def test_a_finding_has_a_page_with_every_head(name: str) -> None:
    page = importlib.import_module(f"loadlens.diagnose.rules.{FILES[name]}.{name}").__doc__ or ""

    assert [head for head in HEADS if head not in page] == []


@pytest.mark.parametrize("name", FILES)
def test_a_finding_has_a_test_with_a_hit_and_a_near_miss(name: str) -> None:
    path = ROOT / "tests/unit/diagnose/rules" / FILES[name] / f"test_{name}.py"

    assert path.exists(), f"write {path.relative_to(ROOT)}"
    text = path.read_text()
    assert "Finding)" in text, "one record where it fires"
    assert "Absent" in text or "NotAssessed" in text, "one near miss where it stays silent"
