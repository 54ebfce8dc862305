"""wrk: C, epoll, one event loop a thread; bodies by a Lua script."""

from __future__ import annotations

import re
from pathlib import Path

from benches.generators.base import Generator, ReportedTimes, Scene, asked, on_path, refuse_flow, refuse_rate
from benches.works import Work

POST = """\
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
request = function()
  return wrk.format(nil, nil, nil, '{"a":' .. math.random(100) .. ',"b":' .. math.random(100) .. "}")
end
"""
UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


def command(work: Work, scene: Scene) -> list[str]:
    refuse_flow(work)
    refuse_rate(work)
    command = ["wrk", "-t1", f"-c{work.connections}", f"-d{scene.seconds}s"]
    if scene.tells_times:
        command += ["--latency", "--timeout", "10s"]
    if work.kind == "post":
        command += ["-s", scene.file("post.lua", POST)]
    if work.is_fresh:
        command += ["-H", "Connection: close"]
    return [*command, scene.url(work)]


def read(text: str, folder: Path) -> ReportedTimes:
    """From the `Latency Distribution` and the `Max` of `Thread Stats`; no p99.9 is printed."""

    def seconds(pattern: str) -> float:
        match = re.search(pattern + r"\s+([\d.]+)(us|ms|s|m)\b", text)
        assert match is not None, text
        return float(match[1]) * UNITS_S[match[2]]

    return ReportedTimes(seconds(r"\b50%"), seconds(r"\b99%"), None, seconds(r"Latency\s+\S+\s+\S+"))


WRK = Generator(
    "wrk",
    command,
    on_path("wrk"),
    lambda: asked("wrk", "-v").partition(" Copyright")[0],
    read,
    has_random_body=True,
)
