"""k6: Go, net/http, each user a JavaScript virtual machine."""

from __future__ import annotations

import json
from pathlib import Path

from benches.generators.base import Generator, ReportedTimes, Scene, asked, on_path
from benches.works import Work

SUMMARY = "k6-summary.json"
BODY = "JSON.stringify({a: Math.ceil(Math.random() * 100), b: Math.ceil(Math.random() * 100)})"
FLOW = f"""\
  const id = http.post(`${{host}}/items`, {BODY}, json).json('data.id');
  const item = {{tags: {{name: 'item'}}}};
  http.get(`${{host}}/items/${{id}}`, item);
  http.put(`${{host}}/items/${{id}}`, {BODY}, {{...json, ...item}});
  http.get(`${{host}}/items`);
  http.del(`${{host}}/items/${{id}}`, null, item);
"""


def command(work: Work, scene: Scene) -> list[str]:
    calls = {
        "get": "  http.get(`${host}/`);\n",
        "post": f"  http.post(`${{host}}/`, {BODY}, json);\n",
        "flow": FLOW,
    }
    script = (
        "import http from 'k6/http';\n\n"
        f"const host = '{scene.host(work)}';\n"
        "const json = {headers: {'Content-Type': 'application/json'}};\n"
        f"export const options = {json.dumps(_options(work, scene))};\n"
        f"export default function () {{\n{calls[work.kind]}}}\n"
    )
    command = ["k6", "run", "--quiet", "--no-usage-report"]
    if scene.tells_times:
        command.append(f"--summary-export={scene.folder / SUMMARY}")
    return [*command, scene.file(f"k6-{work.name}.js", script)]


def _options(work: Work, scene: Scene) -> dict[str, object]:
    options: dict[str, object] = {"summaryTrendStats": ["p(50)", "p(99)", "p(99.9)", "max"]}
    if work.is_fresh:
        options["noConnectionReuse"] = True
    if work.is_tls:
        options["insecureSkipTLSVerify"] = True
    duration = f"{scene.seconds}s"
    if work.rate is None:
        return {"vus": work.connections, "duration": duration, **options}
    arrivals = {
        "executor": "constant-arrival-rate",
        "rate": work.rate,
        "timeUnit": "1s",
        "duration": duration,
        "preAllocatedVUs": work.connections,
        "maxVUs": work.connections,
    }
    return {"scenarios": {"open": arrivals}, **options}


def read(text: str, folder: Path) -> ReportedTimes:
    """From `http_req_duration` of the exported summary in milliseconds, and its dropped iterations."""
    metrics = json.loads((folder / SUMMARY).read_text())["metrics"]
    at = metrics["http_req_duration"]
    dropped = metrics.get("dropped_iterations", {}).get("count", 0)
    note = f"{dropped} dropped" if dropped else ""
    return ReportedTimes(at["p(50)"] / 1e3, at["p(99)"] / 1e3, at["p(99.9)"] / 1e3, at["max"] / 1e3, note)


K6 = Generator(
    "k6",
    command,
    on_path("k6"),
    lambda: asked("k6", "version"),
    read,
    has_random_body=True,
    is_slow=True,
)
