"""Format, lint, types, floors and stubs: everything that needs no test run. All run, then the verdict."""

from __future__ import annotations

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
    "rooms, stubs, generated pages": [sys.executable, "-m", "pytest", "-q", "tests/contract"],
}


def main() -> int:
    """Exit 1 if any check fails; each failure is shown whole."""
    failed = []
    for name, command in CHECKS.items():
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        print(f"{'ok    ' if done.returncode == 0 else 'FAILED'} {name}", flush=True)
        if done.returncode:
            failed.append(name)
            print(done.stdout + done.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
