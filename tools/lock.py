"""Write requirements/*.txt: every Python package that `make` installs, at one version, with its hashes.

`uv` resolves for all supported Python versions and processors at once; what is locked already stays where
pyproject.toml still allows it. `--upgrade` takes the newest versions, `--upgrade-package NAME` one of them.

There is no uv.lock: it names the host of the package index on every line, and a machine that reaches packages
through a mirror could not use it. These files name versions and hashes only, and plain pip installs them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ["pyproject.toml", "--extra", "lab", "--group", "build"]
# `run` takes the versions of `dev`, so that both install the same.
LOCKS = {
    "requirements/dev.txt": [*PACKAGE, "--extra", "fleet", "--extra", "dev"],
    "requirements/run.txt": [*PACKAGE, "--constraint", "requirements/dev.txt"],
    "requirements/site.txt": ["--group", "site", "--constraint", "requirements/dev.txt"],
    "requirements/wheel.txt": ["--group", "wheel"],
}


def main() -> int:
    """Write all files again; extra arguments go to uv."""
    for path, wanted in LOCKS.items():
        command = [
            *(sys.executable, "-m", "uv", "pip", "compile", "--quiet"),
            *("--universal", "--generate-hashes", "--no-annotate"),
            *("--no-emit-index-url", "--no-emit-find-links", "--no-header"),
            *("--output-file", path, *wanted, *sys.argv[1:]),
        ]
        done = subprocess.run(command, cwd=ROOT, check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
