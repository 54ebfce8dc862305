"""Print the requirements of pyproject.toml, one a line: to run with, or with `dev` to develop with."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
wanted = project["optional-dependencies"]["dev"] if "dev" in sys.argv[1:] else project["dependencies"]
print("\n".join(wanted))
