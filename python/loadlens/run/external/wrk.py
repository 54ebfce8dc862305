"""wrk: its own script interface gives whole counts, and every latency that it kept.

wrk adds to its latencies before it shows them: for each that took more than twice the mean interval between
a connection's requests it invents earlier ones (`stats_correct`, src/stats.c). What it adds follows from what
it measured, so it can be taken away again, and the sum says whether that came out: as many are left as
requests were timed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from loadlens.model.external_load import CannotDo
from loadlens.run.external.base import (
    QUANTILES,
    Driver,
    Printed,
    Times,
    ToolReport,
    Work,
    seconds,
    whole_seconds,
    written,
)

SCRIPT = "loadlens.lua"
REPORT = "loadlens.json"
USUAL_THREADS = 2
DONE = """
function done(summary, latency, requests)
   local out = assert(io.open(%s, "w"))
   local e = summary.errors
   out:write(string.format(
      '{"duration_us":%%.0f,"requests":%%.0f,"bytes":%%.0f,"connect":%%.0f,"read":%%.0f,"write":%%.0f,' ..
      '"status":%%.0f,"timeout":%%.0f,"latency_us":[',
      summary.duration, summary.requests, summary.bytes, e.connect, e.read, e.write, e.status, e.timeout))
   for i = 1, #latency do
      local value, count = latency(i)
      out:write(string.format("%%s[%%.0f,%%.0f]", i > 1 and "," or "", value, count))
   end
   out:write("]}\\n")
   out:close()
end
"""


def lacks(work: Work) -> Iterator[CannotDo]:
    if work.requests is not None or work.plan.duration_ns is None:
        yield CannotDo("requests", "wrk runs for a time and counts to no number of requests")
    yield from whole_seconds(work, "wrk")
    if work.step.method == "HEAD":
        yield CannotDo("method", "wrk waits for the body of an answer to HEAD")


def command(work: Work, folder: Path) -> list[str]:
    script = folder / SCRIPT
    script.write_text(_script(work, folder / REPORT))
    users = work.users
    words = ["wrk", "-t", str(_threads(work, users)), "-c", str(users)]
    words += ["-d", f"{seconds(work.plan.duration_ns or 0)}s", "-T", f"{seconds(work.stream.timeout_ns)}s"]
    return [*words, "-s", str(script), work.stream.target.origin + "/"]  # the path may hold a secret


def _threads(work: Work, users: int) -> int:
    """As many as divide the connections: wrk leaves out those that are over."""
    wanted = work.plan.threads or min(USUAL_THREADS, os.cpu_count() or 1)
    return next(threads for threads in range(min(wanted, users), 0, -1) if users % threads == 0)


def _script(work: Work, report: Path) -> str:
    step = work.step
    lines = [f"wrk.method = {_quoted(step.method.encode())}", f"wrk.path = {_quoted(step.path.encode())}"]
    for name, value in work.headers:
        lines.append(f"wrk.headers[{_quoted(name.encode())}] = {_quoted(value.encode())}")
    if work.stream.connection.reuse == "new":
        lines.append('wrk.headers["Connection"] = "close"')
    if step.body.kind != "none":
        lines.append(f"wrk.body = {_quoted(work.body)}")
    return "\n".join(lines) + "\n" + DONE % _quoted(str(report).encode())


def _quoted(content: bytes) -> str:
    """A Lua string of any bytes."""
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03d}" for byte in content)
    return f'"{"".join(plain)}"'


def read(printed: Printed, work: Work) -> ToolReport:
    report: dict[str, Any] = written(printed, REPORT)
    requests, users = report["requests"], work.users
    shown = {int(value): int(count) for value, count in report["latency_us"]}
    measured = without_additions(
        shown, requests=requests, connections=users, duration_us=report["duration_us"]
    )
    timed = requests - report["timeout"]
    if sum(measured.values()) == timed:
        notes = _added(sum(shown.values()) - timed)
        times: Times | None = _times(measured, censored=report["timeout"])
    else:
        notes, times = ("wrk's latencies are left out: what it added to them does not come out even",), None
    if report["timeout"]:
        notes += (f"{report['timeout']} answers took longer than the time-out; wrk leaves out their times",)
    return ToolReport(
        seconds=report["duration_us"] / 1e6,
        answered=requests,
        unexpected_status=report["status"],
        failed=report["connect"] + report["read"] + report["write"],
        errors={name: report[name] for name in ("connect", "read", "write", "timeout")},
        times=times,
        bytes_in=report["bytes"],
        notes=notes,
    )


def _added(count: int) -> tuple[str, ...]:
    return (f"{count} latencies that wrk adds and no request had are taken away again",) if count else ()


def without_additions(
    shown: Mapping[int, int], *, requests: int, connections: int, duration_us: int
) -> dict[int, int]:
    """The latencies that wrk measured, in microseconds with their counts, from those that it shows.

    From the largest down, so that each count is free of what larger ones added to it when its turn comes.
    """
    left = dict(shown)
    if requests // connections == 0:
        return left
    expected = duration_us // (requests // connections)
    for value in sorted(shown, reverse=True):
        count = left[value]
        if value < 2 * expected or count <= 0:
            continue
        earlier = value - expected
        while earlier > expected:
            left[earlier] = left.get(earlier, 0) - count
            earlier -= expected
    return {value: count for value, count in left.items() if count}


def _times(measured: Mapping[int, int], *, censored: int) -> Times | None:
    """Counts by microsecond as a distribution; what took too long lies above all of them."""
    rows = sorted(measured.items())
    count = sum(measured.values())
    if not count:
        return None
    mean = sum(value * n for value, n in rows) / count
    squares = sum(n * (value - mean) ** 2 for value, n in rows)
    quantiles: dict[str, float] = {}
    for name, share in QUANTILES.items():
        rank, below = math.ceil(share * (count + censored)), 0
        for value, n in rows:
            below += n
            if below >= rank:
                quantiles[name] = value / 1e6
                break
    return Times(
        count=count,
        censored=censored,
        mean=None if censored else mean / 1e6,
        deviation=None if censored or count < 2 else math.sqrt(squares / (count - 1)) / 1e6,
        least=rows[0][0] / 1e6,
        most=None if censored else rows[-1][0] / 1e6,
        quantiles=quantiles,
        rounding=dict.fromkeys(("min", "max", "quantiles"), 1e-6),
    )


WRK = Driver(
    name="wrk",
    install="apt-get install wrk",
    version=("wrk", "-v"),
    lacks=lacks,
    words=command,
    report=read,
)
