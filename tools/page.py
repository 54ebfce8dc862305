"""Write what the browser page takes from Python, then build it: `python tools/page.py`, or `make page`.

Colours and sizes of type become `web/src/tokens.css`, words `web/src/words.json`, and values with their text
`web/tests/numbers.json`, so that the page shows a figure as the report does. `web/` builds
`python/loadlens/ui/page.html` from them. `tests/contract/test_page.py` checks all four files.

    python tools/page.py install   its npm packages, as locked
    python tools/page.py check     types, lint, and that page.html is what `web/` builds
    python tools/page.py test      unit tests of the TypeScript

These three say why they were skipped where there is no Node, or one that is too old.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from loadlens.present import numbers, tokens, words

ROOT = Path(__file__).parent.parent
WEB = ROOT / "web"
TOKENS = WEB / "src" / "tokens.css"
WORDS = WEB / "src" / "words.json"
NUMBERS = WEB / "tests" / "numbers.json"
OLDEST_NODE = (20, 19)

_VALUES = (
    0,
    1e-9,
    9.996e-4,
    0.001,
    0.0123456,
    0.5,
    0.9996,
    1,
    1.5,
    12.345,
    59.6,
    119.6,
    999.4,
    999.6,
    1234.5,
)
_LARGE = (24_390.4, 999_999, 1_234_567.0, 7_654_321_000.0, 3.2e12)
_UNITS = ("s", "1/s", "bytes", "bytes/s", "share", "ratio", "cores", "requests")


def css() -> str:
    """Return the page's variables: light, dark by the system's choice, and either by the reader's."""
    light, dark = (f"color-scheme:{theme};{tokens.css_variables(theme)}" for theme in ("light", "dark"))
    return "\n".join(
        (
            "/* made by tools/page.py from python/loadlens/present/tokens.py */",
            f":root{{{light}{tokens.css_type()}}}",
            f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}",
            f":root[data-theme=dark]{{{dark}}}\n",
        )
    )


def vocabulary() -> str:
    """Return the report's words for outcomes of requests and for metrics, as JSON."""
    named = {outcome.name.lower(): text for outcome, text in words.OUTCOMES.items()}
    texts = {"outcomes": named, "metrics": dict(words.METRICS)}
    return json.dumps(texts, indent=2, ensure_ascii=False) + "\n"


def texts() -> str:
    """Return values with the text that `present/numbers.py` makes of them, as JSON."""
    cases: list[dict[str, Any]] = [
        {"value": value, "unit": unit, "text": numbers.with_unit(value, unit)}
        for unit in _UNITS
        for value in (*_VALUES, *_LARGE)
    ]
    durations = [{"seconds": value, "text": numbers.duration(value)} for value in (*_VALUES, *_LARGE[:3])]
    counts = [{"value": value, "text": numbers.count(value)} for value in (0, 7, 1000, *_LARGE)]
    return json.dumps({"values": cases, "durations": durations, "counts": counts}, indent=1) + "\n"


def why_not() -> str:
    """Return why the page cannot be built here; empty if it can."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return "node and npm are not installed"
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if tuple(int(part) for part in version.lstrip("v").split(".")[:2]) < OLDEST_NODE:
        return f"node is {version}, the page needs {'.'.join(map(str, OLDEST_NODE))}"
    return ""


def npm(*words: str) -> int:
    """Run npm in `web/`."""
    return subprocess.run(["npm", *words], cwd=WEB, check=False).returncode


def main(task: str = "build") -> int:
    """Exit 0 if the task was done, or if it is one that may be skipped and cannot be done here."""
    reason = why_not()
    if not reason and task != "install" and not (WEB / "node_modules" / "esbuild").exists():
        reason = "npm packages are not installed (make tools)"
    if reason:
        print(f"skipped {task} of the page: {reason}")
        return int(task == "build")
    if task == "install":
        return npm("ci", "--ignore-scripts", "--silent")
    if task == "build":
        for path, text in ((TOKENS, css()), (WORDS, vocabulary()), (NUMBERS, texts())):
            path.write_text(text, encoding="utf-8")
    return npm("run", "--silent", task)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
