"""Start one service of this folder, wait until it answers, and end every process of it.

A service is a folder with a `wild.yaml` (README.md lists its keys). Python services share one virtual
environment in the user's cache, made from requirements.txt when it is first needed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
from ruamel.yaml import YAML

HERE: Final = Path(__file__).resolve().parent
VARIANTS: Final = ("flawed", "mended", "healthy")
KEYS: Final = ("description", "kind", "start", "url", "metrics", "tier", "capacity", "line", "needs")
KINDS: Final = frozenset(
    "event-loop-blocked gil cpu thread-pool connection-pool lock lock-retrograde database-lock database-query "
    "downstream rate-limit-rejects rate-limit-delays shedding memory-leak data-growth gc logging disk descriptors "
    "accept-queue keepalive tcp-delay retries timeouts deadlock cache skew slow-path answers-changed quota tls "
    "network".split()
)
START_S: Final = 120.0  # a service that has not answered by then has failed
END_S: Final = 6.0  # from the request to stop until processes are killed
MARK: Final = "LOADLENS_WILD_RUN"  # in the environment of every process of one run


class CannotServe(Exception):
    """The service cannot be started; the text says why and where."""


@dataclass(frozen=True, slots=True)
class Service:
    """One folder with a wild.yaml."""

    name: str
    folder: Path
    about: dict[str, Any]

    @property
    def is_sealed(self) -> bool:
        """True for the third that is only scored at the end."""
        return self.folder.parent.name == "sealed"

    @property
    def paths(self) -> list[str]:
        """Paths to load, first one first."""
        url = self.about["url"]
        return [url] if isinstance(url, str) else list(url)


def services() -> list[Service]:
    """Return every service, by name."""
    reader = YAML(typ="safe")
    return sorted(
        (Service(file.parent.name, file.parent, reader.load(file)) for file in HERE.rglob("wild.yaml")),
        key=lambda service: service.name,
    )


def service(name: str) -> Service:
    """Return the service of that name."""
    by_name = {each.name: each for each in services()}
    if name not in by_name:
        raise CannotServe(f"no service {name!r} in {HERE}; `python -m catalogue.wild list` shows all")
    return by_name[name]


def faults(each: Service) -> list[str]:
    """Return the errors of a wild.yaml: missing keys, an unknown kind, a line that is not in its file once."""
    missing = [f"key {key} is missing" for key in KEYS if key not in each.about]
    if missing:
        return missing
    about = each.about
    wrong = []
    if about["kind"] not in KINDS:
        wrong.append(f"kind {about['kind']!r} is not in KINDS of serve.py")
    if about["tier"] not in ("B", "C") or (about["tier"] == "C") != (about["metrics"] is not None):
        wrong.append("tier is B without metrics, C with metrics")
    if about["line"] is not None:
        lines = (each.folder / about["line"]["file"]).read_text().splitlines()
        times = sum(line.strip() == about["line"]["text"].strip() for line in lines)
        if times != 1:
            wrong.append(f"line {about['line']['text']!r} is in {about['line']['file']} {times} times, not once")
    return wrong


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "loadlens" / "wild"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def environment() -> Path:
    """Return the virtual environment of the Python services, made if it is not there."""
    pins = HERE / "requirements.txt"
    digest = hashlib.sha256(pins.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = _cache() / f"venv-{digest}"
    with _alone(_cache() / "venv.lock"):
        if not (folder / "complete").exists():
            print(f"installing {pins.name} into {folder}", file=sys.stderr)
            shutil.rmtree(folder, ignore_errors=True)
            venv.create(folder, with_pip=True)
            pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "-r", str(pins)]
            if subprocess.run(pip, check=False).returncode != 0:
                raise CannotServe(f"pip could not install {pins}")
            (folder / "complete").touch()
    return folder


def _needs_python(each: Service) -> bool:
    """Return true if a package it needs is in requirements.in; others, such as `java`, are on the machine."""
    packages = {re.split(r"\W*\[", line)[0].lower() for line in (HERE / "requirements.in").read_text().split()}
    return any(str(name).lower() in packages for name in each.about["needs"])


def _set_up(each: Service, around: dict[str, str]) -> None:
    """Run `setup` unless the folder is as it was when it last succeeded."""
    if not each.about.get("setup"):
        return
    build = Path(around["WILD_BUILD"])
    build.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    for file in sorted(each.folder.rglob("*")):
        if file.is_file() and not {"node_modules", "target", "__pycache__"} & set(file.parts):
            digest.update(str(file.relative_to(each.folder)).encode() + file.read_bytes())
    stamp = build / ".set-up"
    with _alone(build / ".lock"):
        if stamp.exists() and stamp.read_text() == digest.hexdigest():
            return
        done = subprocess.run(each.about["setup"], shell=True, cwd=each.folder, env=around, check=False)
        if done.returncode != 0:
            raise CannotServe(f"setup of {each.name} failed: {each.about['setup']}")
        stamp.write_text(digest.hexdigest())


def _processes(mark: str) -> list[psutil.Process]:
    """Return every process of a run and their children, also those that became daemons or another user.

    The mark alone misses programs that write their title over their environment, as PostgreSQL's backends do.
    """
    ours: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        try:
            if process.pid in ours or process.environ().get(MARK) != mark:
                continue
            ours |= {each.pid: each for each in [process, *process.children(recursive=True)]}
        except (psutil.Error, OSError):
            continue
    return [process for process in ours.values() if process.is_running() and not _is_zombie(process)]


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return True


def _end(mark: str, child: subprocess.Popen[bytes]) -> None:
    for sign, wait_s in ((signal.SIGTERM, END_S), (signal.SIGKILL, END_S)):
        until = time.monotonic() + wait_s
        for process in _processes(mark):
            try:
                process.send_signal(sign)
            except psutil.Error:
                continue
        while time.monotonic() < until:
            child.poll()
            if not _processes(mark):
                child.wait()
                return
            time.sleep(0.05)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status < 500)
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except OSError:
        return False
    return True


@contextmanager
def running(name: str, variant: str, port: int) -> Iterator[Service]:
    """Run a variant of a service on a port of this machine, from its first answer on until the block ends."""
    each = service(name)
    if variant not in VARIANTS:
        raise CannotServe(f"no variant {variant!r}; write one of {', '.join(VARIANTS)}")
    if _listens(port):
        raise CannotServe(f"port {port} is in use: write --port with another one")
    mark = uuid.uuid4().hex
    room = Path(tempfile.mkdtemp(prefix="wild-"))
    (room / "work").mkdir()
    for folder in (room, room / "work"):
        folder.chmod(0o711)  # a service's database may run as another user, in a folder below
    around = os.environ | {
        "VARIANT": variant,
        "PORT": str(port),
        "TMPDIR": str(room / "work"),
        "WILD_BUILD": str(_cache() / "build" / each.name),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        MARK: mark,
    }
    around.pop("PYTHONPATH", None)
    try:
        if _needs_python(each):
            around["PATH"] = f"{environment() / 'bin'}:{around['PATH']}"
        _set_up(each, around)
        # The truth is not to lie next to the service.
        home = shutil.copytree(each.folder, room / "service", ignore=shutil.ignore_patterns("wild.yaml"))
        log = room / "service.log"
        start = each.about["start"].replace("{port}", str(port))
        with log.open("wb") as out:
            child = subprocess.Popen(
                ["bash", "-c", start],
                cwd=home,
                env=around,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        try:
            ready = f"http://127.0.0.1:{port}{each.about.get('ready', each.paths[0])}"
            until = time.monotonic() + START_S
            while not _answers(ready):
                if child.poll() is not None or time.monotonic() > until:
                    tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
                    raise CannotServe(f"{name} ({variant}) does not answer {ready}; its last lines:\n{tail}")
                time.sleep(0.1)
            yield each
        finally:
            _end(mark, child)
    finally:
        shutil.rmtree(room, ignore_errors=True)
