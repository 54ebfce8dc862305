"""Print the development requirements of pyproject.toml, one a line."""

from __future__ import annotations

import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
print("\n".join(project["optional-dependencies"]["dev"]))
