"""Builds in a copy of the service's folder, so that the study's own folder stays unchanged.

The copy is cached under the digest of all its inputs, and the service runs there.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from loadlens.errors import TestbedError
from loadlens.testbed.programs import NODE, Program

MOST_BYTES = 256 << 20
_NOT_SOURCE = frozenset(
    (".git", ".venv", "__pycache__", "node_modules", "target", "_build", "deps", ".elixir_ls", ".idea")
)

Argv = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """Build commands and environment for one kind of folder."""

    commands: Callable[[Path], tuple[Argv, ...]]  # argument: the copy
    tools: tuple[str, ...]  # their versions are part of the digest
    hint: str
    programs: tuple[Program, ...] = ()  # tools that a wheel may bring
    path: tuple[str, ...] = ()  # folders of the copy that are put before PATH
    variables: dict[str, str] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)  # variables that name folders of the copy
    installed: Callable[[Mapping[str, str]], dict[str, str]] = lambda _: {}  # variables that name parts

    def environment(self, place: Path, given: Mapping[str, str]) -> dict[str, str]:
        """Variables of the build and of the service that runs in the copy, given those of the lab."""
        homes = {name: str(place / folder) for name, folder in self.homes.items()}
        return self.variables | homes | self.installed(given)


DEBIAN = "debian"  # the folder of a copy for unpacked distribution packages
_UNPACKED_IN = "DEBIAN_ROOT"  # the variable that names this folder


def unpacking(packages: tuple[str, ...]) -> tuple[Argv, ...]:
    """Return commands that download and unpack distribution packages without installing them."""
    unpack = 'for file in *.deb; do dpkg -x "$file" .; rm "$file"; done'
    script = f'set -e; mkdir -p {DEBIAN}; cd {DEBIAN}; apt-get -q download "$@"; {unpack}'
    return (("sh", "-c", script, "sh", *packages),) if packages else ()


def unpacked(place: Path, packages: tuple[str, ...]) -> dict[str, str]:
    """Return the variable that holds the folder of the service's packages."""
    return {_UNPACKED_IN: str(place / DEBIAN)} if packages else {}


def _npm(copy: Path) -> tuple[Argv, ...]:
    quiet = ("--no-audit", "--no-fund", "--no-progress", "--omit=dev")
    is_locked = (copy / "package-lock.json").is_file()
    return (("npm", "ci" if is_locked else "install", *quiet),)


# `{:phoenix, "~> 1.7"}`, `{:jason, ">= 1.0.0", only: :prod}`, `{:mine, git: "..."}`
_DEPENDENCY = re.compile(r"\{\s*:\w+\s*,\s*(?:\"\s*[~=><!]|(?:git|github|path):)")


def _mix(copy: Path) -> tuple[Argv, ...]:
    """Build with Mix; Hex and rebar are installed into the copy only if the project has dependencies."""
    project = copy / "mix.exs"
    has_any = (copy / "mix.lock").is_file() or (
        project.is_file() and _DEPENDENCY.search(project.read_text(errors="replace")) is not None
    )
    fetch = (
        ("mix", "local.hex", "--force", "--if-missing"),
        ("sh", "-c", 'test -n "$MIX_REBAR3" || mix local.rebar --force --if-missing'),
        ("mix", "deps.get", "--only", "prod"),
    )
    return (*(fetch if has_any else ()), ("mix", "compile"))


def _installed_for_mix(given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that name an installed rebar3 and Hex, which a moved MIX_HOME would hide."""
    home = Path(given.get("MIX_HOME") or Path(given.get("HOME", "/"), ".mix"))
    archives = Path(given.get("MIX_ARCHIVES") or home / "archives")
    rebar = given.get("MIX_REBAR3") or shutil.which("rebar3", path=given.get("PATH"))
    names = {"MIX_REBAR3": rebar} if rebar else {}
    return names | ({"MIX_ARCHIVES": str(archives)} if any(archives.glob("hex-*")) else {})


KINDS: dict[str, Kind] = {
    "node": Kind(
        _npm,
        ("node",),
        "check package.json, and that the npm registry can be reached",
        programs=(NODE,),
        path=("node_modules/.bin",),
        variables={"NODE_ENV": "production"},
    ),
    "maven": Kind(
        lambda _: (("mvn", "-B", "-ntp", "-Dstyle.color=never", "-DskipTests", "package"),),
        ("mvn", "java", "javac"),
        "check pom.xml, and that a Maven repository can be reached",
    ),
    "mix": Kind(
        _mix,
        ("mix", "elixir"),
        "check mix.exs; dependencies come from the Hex registry, which has to be reached once",
        variables={"MIX_ENV": "prod"},
        homes={"MIX_HOME": ".mix", "HEX_HOME": ".hex"},
        installed=_installed_for_mix,
    ),
}


def digest_of(home: Path, kind: str, versions: tuple[str, ...], service: str) -> str:
    """Return the SHA-256 over names and content of the folder's sources, the kind and its tools.

    Raises:
        TestbedError: The folder is too large to be a service's sources.
    """
    digest = hashlib.sha256("\0".join((kind, *versions)).encode())
    total = 0
    for path in sources(home):
        total += path.stat().st_size
        if total > MOST_BYTES:
            raise TestbedError(
                f"the folder of {service} holds more than {MOST_BYTES >> 20} MiB of sources",
                where=str(home),
                hint="keep data elsewhere: the build copies the folder",
            )
        content = hashlib.sha256(path.read_bytes()).digest()
        digest.update(b"\0" + str(path.relative_to(home)).encode() + b"\0" + content)
    return digest.hexdigest()[:32]


def sources(home: Path) -> Iterator[Path]:
    """Yield the source files of a folder in a fixed order."""
    for folder, folders, files in os.walk(home):
        folders[:] = sorted(name for name in folders if name not in _NOT_SOURCE)
        yield from (Path(folder, name) for name in sorted(files) if Path(folder, name).is_file())


def copy(home: Path, place: Path) -> None:
    """Copy the sources to a new folder."""
    place.mkdir(parents=True)
    for path in sources(home):
        to = place / path.relative_to(home)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, to)
