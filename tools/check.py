"""Run format, lint, words, types, stubs and the page: all that needs no test. All run, then the verdict.

Two run at a time, the longest first: mypy uses one core, and clippy waits for single crates.
The check of the workflow is skipped by name where `actionlint` is not installed: pip and cargo lack it,
that of the page where there is no Node, or an old one (tools/page.py).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
CHECKS = {
    "rust lint": [
        "cargo",
        "clippy",
        "--quiet",
        "--release",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ],
    "types": [str(BIN / "mypy")],
    "page": [sys.executable, str(ROOT / "tools" / "page.py"), "check"],
    "stubs": [sys.executable, "-m", "mypy.stubtest", "--mypy-config-file=pyproject.toml", "loadlens._engine"],
    "rust format": ["cargo", "fmt", "--all", "--check"],
    "python format": [str(BIN / "ruff"), "format", "--check", "--quiet", "."],
    "python lint": [str(BIN / "ruff"), "check", "--quiet", "."],
    "words": [sys.executable, str(ROOT / "tools" / "words.py")],
    "workflow": ["actionlint"],
}
AT_A_TIME = 2
OPTIONAL = {"workflow"}


def run(name: str) -> subprocess.CompletedProcess[str] | None:
    """Run a check to its end; None if what it needs is not installed."""
    command = CHECKS[name]
    if name in OPTIONAL and shutil.which(command[0]) is None:
        return None
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def main() -> int:
    """Exit 1 if any check fails; each failure is shown whole."""
    failed = []
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for name, done in zip(CHECKS, pool.map(run, CHECKS), strict=True):
            if done is None:
                print(f"skipped {name}: {CHECKS[name][0]} is not installed", flush=True)
                continue
            if done.stdout.startswith("skipped"):
                print(done.stdout.strip(), flush=True)
                continue
            print(f"{'FAILED' if done.returncode else 'ok':<8}{name}", flush=True)
            if done.returncode:
                failed.append(name)
                print(done.stdout + done.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
