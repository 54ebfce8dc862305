"""The generators that are compared, and how each is told to do the same work.

A recipe gives the command line for a piece of work, or none when the generator cannot do it. To add a
generator, add one function to `GENERATORS`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of load: what is sent, over how many connections, and what becomes of them."""

    name: str
    connections: int
    method: str = "GET"  # a POST has a random JSON body
    is_fresh: bool = False  # a new connection for each request

    @property
    def is_latency_bound(self) -> bool:
        """With one connection neither side can be busy: each waits for the other."""
        return self.connections == 1


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a piece of work is done, and for how long."""

    port: int
    seconds: int
    cpu: int
    origin: Path
    folder: Path  # for files that a generator reads

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


Recipe = Callable[[Work, Scene], "list[str] | None"]


def loadlens(work: Work, scene: Scene) -> list[str] | None:
    """Our engine through its door, every statistic on, as `hit` uses it."""
    plan = scene.folder / f"{work.name}-{scene.seconds}.json"
    plan.write_text(json.dumps(loadlens_plan(work, scene)))
    return [sys.executable, "-S", str(HERE / "drive.py"), str(plan)]


def loadlens_plan(work: Work, scene: Scene) -> dict[str, object]:
    """The plan of a closed load, one user for each connection."""
    step: dict[str, object] = {"name": "step", "method": work.method, "path": "/"}
    if work.method == "POST":
        step["headers"] = [["Content-Type", "application/json"]]
        step["body"] = {"kind": "text", "text": '{"a":{{int 1 100}},"b":{{int 1 100}}}'}
    authority = f"127.0.0.1:{scene.port}"
    stream = {
        "name": "load",
        "role": "load",
        "target": {"host": "127.0.0.1", "port": scene.port, "authority": authority},
        "scenarios": [{"name": "scenario", "weight": 1.0, "steps": [step]}],
        "workload": {"kind": "closed", "users": work.connections},
        "connection": {"reuse": {"kind": "new" if work.is_fresh else "keep"}},
        "timeout_ns": 10_000_000_000,
    }
    return {
        "schema_version": 1,
        "seed": 1,
        "threads": 1,
        "cpus": [scene.cpu],
        "duration_ns": scene.seconds * 1_000_000_000,
        "streams": [stream],
    }


def loadlens_hit(work: Work, scene: Scene) -> list[str] | None:
    """The same through the command line that users type."""
    program = Path(sys.executable).parent / "loadlens"
    command = [
        str(program),
        "hit",
        scene.url,
        "-c",
        str(work.connections),
        "-d",
        f"{scene.seconds}s",
        "-t",
        "1",
    ]
    if work.is_fresh:
        command += ["--connection", "new"]
    if work.method == "POST":
        body = '{"a":{{int 1 100}},"b":{{int 1 100}}}'
        command += ["-m", "POST", "-H", "Content-Type: application/json", "-b", body]
    return [*command, "-q", "--json"]


def floor(work: Work, scene: Scene) -> list[str] | None:
    """Bare recv and send in turn: the least that a generator on sockets can cost. Its POST body is fixed."""
    if work.is_fresh:
        return None
    command = [str(scene.origin), "floor", "--port", str(scene.port), "--connections", str(work.connections)]
    return [*command, "--seconds", str(scene.seconds), *(["--post"] if work.method == "POST" else [])]


def wrk(work: Work, scene: Scene) -> list[str] | None:
    command = ["wrk", "-t1", f"-c{work.connections}", f"-d{scene.seconds}s"]
    if work.method == "POST":
        command += ["-s", str(HERE / "post.lua")]
    if work.is_fresh:
        command += ["-H", "Connection: close"]
    return [*command, scene.url]


def ab(work: Work, scene: Scene) -> list[str] | None:
    """ab sends one body for all requests."""
    command = ["ab", "-q", "-c", str(work.connections), "-t", str(scene.seconds), "-n", "50000000"]
    if not work.is_fresh:
        command.append("-k")
    if work.method == "POST":
        body = _fixed_body(scene)
        command += ["-p", str(body), "-T", "application/json"]
    return [*command, scene.url]


def h2load(work: Work, scene: Scene) -> list[str] | None:
    if work.is_fresh:
        return None
    command = ["h2load", "--h1", "-t1", "-c", str(work.connections), "-D", str(scene.seconds)]
    if work.method == "POST":
        command += ["-d", str(_fixed_body(scene)), "-H", "Content-Type: application/json"]
    return [*command, scene.url]


def oha(work: Work, scene: Scene) -> list[str] | None:
    command = ["oha", "-c", str(work.connections), "-z", f"{scene.seconds}s", "--no-tui"]
    if work.method == "POST":
        command += ["-m", "POST", "-T", "application/json", "-D", str(_fixed_body(scene))]
    return [*command, *(["--disable-keepalive"] if work.is_fresh else []), scene.url]


def hey(work: Work, scene: Scene) -> list[str] | None:
    command = ["hey", "-cpus", "1", "-c", str(work.connections), "-z", f"{scene.seconds}s"]
    if work.method == "POST":
        command += ["-m", "POST", "-T", "application/json", "-D", str(_fixed_body(scene))]
    return [*command, *(["-disable-keepalive"] if work.is_fresh else []), scene.url]


def bombardier(work: Work, scene: Scene) -> list[str] | None:
    command = ["bombardier", "-c", str(work.connections), "-d", f"{scene.seconds}s", "-l", "-p", "r"]
    if work.method == "POST":
        command += ["-m", "POST", "-H", "Content-Type: application/json", "-f", str(_fixed_body(scene))]
    return [*command, *(["-a"] if work.is_fresh else []), scene.url]


def vegeta(work: Work, scene: Scene) -> list[str] | None:
    targets = scene.folder / f"vegeta-{work.name}.txt"
    lines = [f"{work.method} {scene.url}"]
    if work.method == "POST":
        lines += ["Content-Type: application/json", f"@{_fixed_body(scene)}"]
    targets.write_text("\n".join(lines) + "\n")
    command = ["vegeta", "attack", "-rate=0", f"-duration={scene.seconds}s", f"-targets={targets}"]
    count = work.connections
    command += [f"-workers={count}", f"-max-workers={count}", f"-keepalive={str(not work.is_fresh).lower()}"]
    return [*command, "-output=/dev/null"]


def k6(work: Work, scene: Scene) -> list[str] | None:
    body = "JSON.stringify({a: Math.ceil(Math.random() * 100), b: Math.ceil(Math.random() * 100)})"
    call = f"http.post(url, {body}, json)" if work.method == "POST" else "http.get(url)"
    script = scene.folder / f"k6-{work.name}-{scene.seconds}.js"
    script.write_text(
        "import http from 'k6/http';\n"
        f"const url = '{scene.url}';\n"
        "const json = {headers: {'Content-Type': 'application/json'}};\n"
        f"export const options = {{vus: {work.connections}, duration: '{scene.seconds}s', "
        f"noConnectionReuse: {str(work.is_fresh).lower()}}};\n"
        f"export default function () {{ {call}; }}\n"
    )
    return ["k6", "run", "--quiet", "--no-usage-report", str(script)]


def locust(work: Work, scene: Scene) -> list[str] | None:
    if work.is_fresh:
        return None
    post = "self.client.post('/', json={'a': randint(1, 100), 'b': randint(1, 100)})"
    call = post if work.method == "POST" else "self.client.get('/')"
    script = scene.folder / f"locust_{work.method.lower()}.py"
    script.write_text(
        "from random import randint\n"
        "from locust import FastHttpUser, constant, task\n\n\n"
        "class User(FastHttpUser):\n"
        "    wait_time = constant(0)\n\n"
        "    @task\n"
        "    def ask(self):\n"
        f"        {call}\n"
    )
    users = str(work.connections)
    command = ["locust", "-f", str(script), "--headless", "-u", users, "-r", users, "--only-summary"]
    return [*command, "-t", f"{scene.seconds}s", "-H", scene.url.rstrip("/")]


GENERATORS: dict[str, Recipe] = {
    "loadlens": loadlens,
    "loadlens hit": loadlens_hit,
    "floor": floor,
    "wrk": wrk,
    "ab": ab,
    "h2load": h2load,
    "oha": oha,
    "hey": hey,
    "bombardier": bombardier,
    "vegeta": vegeta,
    "k6": k6,
    "locust": locust,
}


def why_missing(name: str) -> str | None:
    """Why a generator cannot take part; none: it can."""
    if name == "floor":
        return None
    if name == "loadlens":
        checked = subprocess.run(
            [sys.executable, "-S", str(HERE / "drive.py")], capture_output=True, text=True
        )
        return None if checked.returncode == 0 else checked.stderr.strip().splitlines()[-1]
    if name == "loadlens hit":
        program = Path(sys.executable).parent / "loadlens"
        return None if program.exists() else f"{program} is not installed"
    if shutil.which(name) is None:
        return "not installed"
    if name == "bombardier":
        told = subprocess.run(["bombardier", "--version"], capture_output=True, text=True, check=False)
        if "bombardier version" not in told.stdout + told.stderr:
            return "the program of that name here is a game"
    return None


def _fixed_body(scene: Scene) -> Path:
    path = scene.folder / "body.json"
    path.write_text('{"a":42,"b":57}')
    return path


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """Where generators' own files go; removed at the end."""
    return tempfile.TemporaryDirectory(prefix="loadlens-bench-")
