"""Run format, lint, words, types and stubs: everything that needs no test. All run, then the verdict.

The check of the workflow is skipped by name where `actionlint` is not installed: pip and cargo lack it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
CHECKS = {
    "rust format": ["cargo", "fmt", "--all", "--check"],
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
    "python format": [str(BIN / "ruff"), "format", "--check", "--quiet", "."],
    "python lint": [str(BIN / "ruff"), "check", "--quiet", "."],
    "words": [sys.executable, str(ROOT / "tools" / "words.py")],
    "types": [str(BIN / "mypy")],
    "stubs": [sys.executable, "-m", "mypy.stubtest", "--mypy-config-file=pyproject.toml", "loadlens._engine"],
    "workflow": ["actionlint"],
}

OPTIONAL = {"workflow"}


def main() -> int:
    """Exit 1 if any check fails; each failure is shown whole."""
    failed = []
    for name, command in CHECKS.items():
        if name in OPTIONAL and shutil.which(command[0]) is None:
            print(f"skipped {name}: {command[0]} is not installed", flush=True)
            continue
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        print(f"{'FAILED' if done.returncode else 'ok':<8}{name}", flush=True)
        if done.returncode:
            failed.append(name)
            print(done.stdout + done.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
