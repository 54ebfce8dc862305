"""Prometheus as a part of the testbed, its answers in the record, next to ours."""

from __future__ import annotations

import json
import math
import os
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadlens import promql
from loadlens.errors import TestbedError
from loadlens.model.report import Report
from loadlens.model.topology import Ready, Scrape, Service
from loadlens.model.workload import Tls
from loadlens.promql import Series
from loadlens.record import RunRecord, open_run
from loadlens.report.build import report
from loadlens.run.study_runner import run_study
from loadlens.study import parse, plan
from loadlens.temporary import default_cache
from loadlens.testbed import build, prepare, programs, testbed
from loadlens.testbed.parts.prometheus import Prometheus
from loadlens.testbed.ports import Ports
from tests.calm import where_calm
from tests.end_to_end.testbed_cases import bed_of, carriers
from tests.secured import FOLDER, pem

SERVICE = Path(__file__).with_name("metrics_service.py")
START = f"{sys.executable} -I -S {SERVICE} $port"


@pytest.fixture(scope="module")
def server() -> Path:
    """The folder of a Prometheus: the machine's, or the distribution's package unpacked."""
    try:
        made = build._program("prom", Prometheus.program, default_cache(), lambda _: None)
    except TestbedError as fault:
        pytest.skip(f"no Prometheus can be had here: {fault.message.splitlines()[0]}")
    return made.path[0]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, server: Path) -> Iterator[Path]:
    """One that another user may enter; the server is found on the PATH."""
    monkeypatch.setenv("PATH", f"{server}:{os.environ['PATH']}")
    with tempfile.TemporaryDirectory(prefix="loadlens-test-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


def ask(url: str, path: str, **parameters: str) -> Any:
    with urllib.request.urlopen(f"{url}{path}?{urllib.parse.urlencode(parameters)}", timeout=10) as answer:
        return json.loads(answer.read())["data"]


# --- the part of the testbed ------------------------------------------------------------------------------

TRUSTED = {  # a certificate, and how it is trusted
    "elsewhere": Tls(ca=pem("ca"), server_name="elsewhere.test"),
    "alone": Tls(insecure=True),
}


def test_every_replica_is_scraped_under_its_name_and_trusted_as_the_load_trusts_it(folder: Path) -> None:
    marker = f"test-{secrets.token_hex(6)}"
    api = Service("api", START, replicas=2, ready=Ready("/"), scrape=Scrape(every_s=0.5))
    over_tls = [
        Service(
            certificate,
            f"{START} --tls {FOLDER / certificate}.pem",
            ready=Ready("/", tls=tls),
            scrape=Scrape(every_s=0.5, tls=tls),
        )
        for certificate, tls in TRUSTED.items()
    ]
    prom = Service("prom", use="prometheus", over=("api", *TRUSTED))

    with bed_of(api, *over_tls, prom, folder=folder, marker=marker) as bed:
        bed.start()  # it is ready once it has scraped all
        url = bed.metric_servers()["prom"]
        series = ask(url, "/api/v1/query", query="up")["result"]
        owner = Path(f"/proc/{next(p.pid for p in bed.processes() if p.service == 'prom')}").stat().st_uid
        leaks = bed.stop()

    labels = {tuple(sorted(row["metric"].items())): row["value"][1] for row in series}
    assert labels == {
        (
            ("__name__", "up"),
            ("instance", instance),
            ("job", job),
            ("replica", replica),
            ("service", job),
        ): "1"
        for instance, job, replica in (
            ("api.1", "api", "1"),
            ("api.2", "api", "2"),
            *((certificate, certificate, "1") for certificate in TRUSTED),
        )
    }
    assert owner != 0 or os.geteuid() != 0
    assert leaks == ()
    assert carriers(marker) == []


def test_a_target_without_metrics_is_named_with_what_the_server_saw(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = f"test-{secrets.token_hex(6)}"
    api = Service("api", START, ready=Ready("/"), scrape=Scrape(every_s=0.25, path="/no-metrics"))
    prom = Service("prom", use="prometheus", over=("api",))
    # parts that say nothing of it have little time to be ready
    monkeypatch.setattr(testbed, "Ready", lambda path: Ready(path, within_s=11.0))
    bed = bed_of(api, prom, folder=folder, marker=marker)

    with pytest.raises(TestbedError, match=r"prom was not ready within .*the scrape of api failed: "):
        bed.start()

    assert carriers(marker) == []


def test_a_machine_without_it_leaves_it_out_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "find", lambda program, path=None: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    prom = Service("prom", use="prometheus", over=())

    prepared = prepare([prom], cache=tmp_path, folder=tmp_path)

    assert "there is no prometheus on this machine" in prepared.absent["prom"]
    needed = Service("web", f"{sys.executable} app.py --metrics $prom.url")
    with pytest.raises(TestbedError, match="web needs prom, and there is no prometheus"):
        prepare([prom, needed], cache=tmp_path, folder=tmp_path)


# --- a run ------------------------------------------------------------------------------------------------

STUDY = """\
schema: 1
study: counted
question: how many came?
services:
  api: {{start: "{start}", ready: {{get: /}}, scrape: {{every: 250ms}}}}
  {prom}
entry: api
scenarios: {{look: [{{get: /}}]}}
trials: 1
experiments:
  one: {{mix: look, load: {{rate: 40/s, arrivals: constant, warmup: 1s, duration: 4500ms}}}}
report:
  window: {{from: 1s, to: 4s}}
  promql:
    received: increase(hits_total[$__range])
    rate: {{expr: "rate(hits_total[2s])", unit: 1/s, step: 500ms}}
    threads: max(threads)
"""


def reported(folder: Path, prom: str) -> tuple[RunRecord, Report]:
    (folder / "study.yaml").write_text(STUDY.format(start=START, prom=prom))
    path = run_study(
        plan.plan(parse.read(folder)), folder / f"record-{secrets.token_hex(2)}", cache=folder / "cache"
    )
    record = open_run(path)
    return record, report(record)


def figures(report: Report) -> dict[str, tuple[float, str]]:
    """Query -> value, who answered."""
    table = report.details[0].queries
    assert table is not None
    return {str(row[0]): (row[3].point, str(row[4])) for row in table.rows}  # type: ignore[union-attr]


@where_calm
def test_the_server_answers_the_report_as_our_own_evaluation_does_without_it(folder: Path) -> None:
    record, report = reported(folder, "prom: {use: prometheus}")
    alone, without = reported(folder, "")
    (trial,) = record.trials
    theirs, own = figures(report), figures(without)

    assert trial.answers()["by"]["server"] == "prometheus"
    version = trial.answers()["by"]["version"]
    assert f"version {version} " in record.environment["parts"]["prom"]
    assert {by for _, by in theirs.values()} == {f"Prometheus {version}"}
    assert {by for _, by in own.values()} == {"Loadlens, from its scrapes"}
    # 40 a second over the 3 s of the window; a scrape may see a request more or less than the ideal
    for answers in (theirs, own):
        assert answers["received"][0] == pytest.approx(120, abs=6)
        assert answers["rate"][0] == pytest.approx(40, abs=2)
        assert answers["threads"][0] == 7
    chart = next(c for c in report.details[0].charts if c.anchor.startswith("chart-promql"))
    assert {row["resource"] for row in chart.datasets["readings"]} == {"rate, 1/s", "threads"}
    assert any("figures are taken from 1 s to 4 s" in limit for limit in report.limits)
    (trial,) = alone.trials
    assert trial.answers()["by"] is None
    assert trial.answers()["why"] == "the study runs no Prometheus"


# --- our evaluation against the server --------------------------------------------------------------------

EXPRESSIONS = (
    "rate(a_total[10s])",
    "increase(a_total[10s])",
    "increase(a_total[1m])",
    "increase(a_total[3m])",
    "rate(a_total[3s])",
    "irate(a_total[10s])",
    "delta(g[10s])",
    "idelta(g[10s])",
    "changes(g[30s])",
    "resets(a_total[1m])",
    "avg_over_time(g[15s])",
    "min_over_time(g[15s])",
    "max_over_time(g[15s])",
    "sum_over_time(g[15s])",
    "count_over_time(g[15s])",
    "last_over_time(g[15s])",
    "stddev_over_time(g[15s])",
    "quantile_over_time(0.9, g[30s])",
    "sum(rate(a_total[10s]))",
    "sum by (method) (rate(a_total[10s]))",
    "avg without (code) (rate(a_total[10s]))",
    "max(a_total) - min(a_total)",
    "stddev(g)",
    "count by (code) (a_total)",
    "quantile(0.3, g)",
    'rate(a_total{method=~"g.*", code!="500"}[10s])',
    'sum(rate(a_total{code="500"}[20s])) / sum(rate(a_total[20s]))',
    'rate(a_total{code="500"}[20s]) / ignoring(code) rate(a_total{code="200"}[20s])',
    'rate(a_total{code="500"}[20s]) * on(method) rate(a_total{code="200"}[20s])',
    "a_total > 200",
    "a_total > bool 200",
    "g offset 13s",
    "increase(a_total[20s] offset 7s)",
    "-g + 2 ^ 3 ^ 0.5 % 3",
    "round(g, 0.25)",
    "clamp_max(clamp_min(g, 2), 5)",
    "abs(floor(-g))",
    "scalar(sum(g)) * 2",
    "vector(3)",
    "histogram_quantile(0.5, sum by (le) (rate(h_bucket[20s])))",
    "histogram_quantile(0.99, rate(h_bucket[20s]))",
)


def made_up(seed: int, begin: float) -> list[Series]:
    """Counters with resets, gauges and a histogram; scrapes that are late and some that were missed."""
    draw = random.Random(seed)
    times = [round(begin + second + draw.uniform(0, 0.2), 3) for second in range(240) if draw.random() > 0.05]
    made = []
    for method in ("get", "post"):
        for code in ("200", "500"):
            value, values = float(draw.randrange(3)), []
            for _ in times:
                value = 0.0 if draw.random() < 0.02 else value + draw.randrange(9)
                values.append(value)
            made.append(Series({"__name__": "a_total", "method": method, "code": code}, times, values))
        made.append(Series({"__name__": "g", "method": method}, times, [draw.gauss(3, 4) for _ in times]))
    counts = [0.0, 0.0, 0.0, 0.0]
    rows: list[list[float]] = []
    for _ in times:
        for _ in range(draw.randrange(6)):
            place = draw.randrange(4)
            counts = [count + (i >= place) for i, count in enumerate(counts)]
        rows.append(list(counts))
    for place, le in enumerate(("0.1", "0.5", "2.0", "+Inf")):
        made.append(Series({"__name__": "h_bucket", "le": le}, times, [row[place] for row in rows]))
    return made


def open_metrics(series: list[Series]) -> str:
    lines = []
    for line in series:
        inside = ",".join(f'{k}="{v}"' for k, v in line.labels.items() if k != "__name__")
        for when, value in zip(line.times, line.values, strict=True):
            lines.append(f"{line.labels['__name__']}{{{inside}}} {value!r} {when:.3f}")
    return "\n".join([*lines, "# EOF", ""])


def since(begin: float, series: Series) -> Series:
    """The same with times as in a record: since 1970 they would be exact to 0.2 microseconds only."""
    return Series(series.labels, [round(when - begin, 3) for when in series.times], series.values)


def test_our_evaluation_is_the_servers_on_the_same_samples(folder: Path, server: Path) -> None:
    promtool = shutil.which("promtool", path=str(server))
    if promtool is None:
        pytest.skip("no promtool to hand samples over with")
    begin = float(int(time.time()) - 3600)
    series = made_up(7, begin)
    recorded = [since(begin, line) for line in series]
    (folder / "samples.om").write_text(open_metrics(series))
    (folder / "empty.yml").write_text("{}")
    subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", folder / "samples.om", folder / "data"],
        check=True,
        capture_output=True,
        timeout=120,
    )
    ports = Ports()
    port = ports.take()
    process = subprocess.Popen(
        [
            server / "prometheus",
            f"--config.file={folder / 'empty.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
        ]
    )
    url = f"http://127.0.0.1:{port}"
    compared = 0
    try:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(f"{url}/-/ready", timeout=2)
                break
            except OSError:
                time.sleep(0.1)
        for text in EXPRESSIONS:
            expression = promql.parse(text)
            for after in (4.0, 61.123, 120.0, 199.5, 239.0):
                answer = ask(url, "/api/v1/query", query=text, time=f"{begin + after:.3f}")
                answered = (
                    answer["result"]
                    if answer["resultType"] == "vector"
                    else [{"metric": {}, "value": answer["result"]}]
                )
                theirs = {tuple(sorted(row["metric"].items())): float(row["value"][1]) for row in answered}
                ours = {
                    point.labels: point.value
                    for point in promql.evaluate(expression, recorded, at_s=after, range_s=60.0)
                }
                assert ours.keys() == theirs.keys(), (text, after)
                for labels, value in theirs.items():
                    mine = ours[labels]
                    same = math.isnan(mine) if math.isnan(value) else mine == pytest.approx(value, rel=1e-9)
                    assert same, (text, after, labels, mine, value)
                    compared += 1
    finally:
        process.terminate()
        process.wait(timeout=20)
        ports.release()

    assert compared > 400
