"""The page of `loadlens ui` is what `web/` builds, and takes colours, words and numbers from Python."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tools import page

BUILT = page.ROOT / "python/loadlens/ui/page.html"


@pytest.mark.parametrize(
    ("path", "made"),
    [(page.TOKENS, page.css), (page.WORDS, page.vocabulary), (page.NUMBERS, page.texts)],
    ids=["tokens", "words", "numbers"],
)
def test_what_the_page_takes_from_python_is_up_to_date(path: Path, made: Callable[[], str]) -> None:
    assert path.read_text(encoding="utf-8") == made(), "run `make page`"


def test_the_committed_page_is_what_its_sources_build() -> None:
    reason = page.why_not()
    if reason or not (page.WEB / "node_modules/esbuild").exists():
        pytest.skip(f"the page cannot be built here: {reason or 'npm packages are not installed'}")

    built = subprocess.run(
        ["node", "build.mjs", "--check"], cwd=page.WEB, capture_output=True, text=True, check=False
    )

    assert built.returncode == 0, built.stderr


def test_the_page_is_one_file_that_asks_for_no_other_and_runs_under_a_strict_policy() -> None:
    html = BUILT.read_text(encoding="utf-8")
    script = "".join(re.findall(r"<script>(.*?)</script>", html, re.DOTALL))
    markup = html.replace(script, "")

    assert not re.findall(r"""(?:src|href)=["']?(?!data:,|#main)[^"'> ]+""", markup)
    assert not re.findall(r"@import|url\(|@font-face", markup)
    assert not re.findall(r""" (?:style|on[a-z]+)=["']""", markup), "the policy of the server refuses these"
    assert not re.findall(r"\beval\(|new Function\(|\.innerHTML|insertAdjacentHTML|document\.write", script)
    assert html.count("<script>") == html.count("<style>") == 1


def test_the_lock_of_npm_names_versions_and_no_host() -> None:
    lock = (page.WEB / "package-lock.json").read_text(encoding="utf-8")

    assert "resolved" not in lock
    packages = [item for path, item in json.loads(lock)["packages"].items() if path]
    assert all("integrity" in item for item in packages)
