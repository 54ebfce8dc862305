"""Sixty designs: thirty with a fault, and each again with the number that the advice names.

The numbers are by hand; the formulas stand next to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from loadlens.model.study import Study
from loadlens.study import lint, parse, plan

CORES = 4
SERVICE = 'services: {web: {start: "serve --port $port"}}\nentry: web\n'
BY_USERS = "experiment,users,step,metric,side,value,unit\n"
WHOLE = "experiment,step,metric,side,value,unit\n"


@dataclass(frozen=True)
class Design:
    """A study with a fault, and what makes it good."""

    rule: str
    text: str
    advice: str  # what is to be written, as far as it decides
    change: tuple[str, str]  # of the text, that follows the advice
    csv: str = ""  # published figures
    is_quick: bool = False

    @property
    def name(self) -> str:
        return f"{self.rule}: {self.advice}"


def levels(
    load: str, *more: str, before: str = SERVICE, probes: str = "{health: {get: /health, rate: 1/s}}"
) -> str:
    """A study of one experiment with a probe."""
    return "\n".join([before.rstrip(), f"probes: {probes}", f"load: {load}", *more]) + "\n"


LADDER = "{users: [1, 4, 16], think: 1s, duration: 20s}"
RATE = "{rate: 50/s, duration: 20s}"
P99 = "objectives: [{metric: response_time.p99, below: 200ms}]"
TWO_VERSIONS = (
    "params: {cmd: a, warm: 5s}\nfactors: {version: {old: {cmd: a, warm: %s}, new: {cmd: b, warm: %s}}}"
)
VERSIONS = 'services: {web: {start: "$cmd --port $port"}}\nentry: web\n'
PINNED = (
    'services:\n  web: {start: "serve --port $port", limits: {cpus: %s}}\n'
    '  db: {start: "store --port $port", limits: {cpus: %s}}\nentry: web\n'
)
CLAIM = (
    "factors: {mode: [a, b]}\nparams: {mode: a}\n"
    "claims: [{ratio: throughput, of: {mode: b}, to: {mode: a}, published: %s}]\ntrials: %d"
)
MODES = 'services: {web: {start: "serve --port $port --mode $mode"}}\nentry: web\n'
FORKING = 'services: {web: {start: "serve --workers 4 --port $port"}}\nentry: web\n'

DESIGNS = (
    # --- too short for the percentile: ln 0.025 / ln q requests bound it on both sides (p99: 368) ----------
    Design(
        "duration.quantile",
        levels("{rate: 10/s, duration: 20s}", P99),
        "duration: 37s, or p95",
        ("20s", "37s"),
    ),
    Design("duration.quantile", levels("{rate: 10/s, duration: 20s}", P99), "or p95", ("p99", "p95")),
    Design(
        "duration.quantile",
        levels("{rate: 100/s, duration: 20s}", P99.replace("p99", "p999")),
        "duration: 37s, or p99",  # 3,688 requests
        ("20s", "37s"),
    ),
    Design(
        "duration.quantile",
        levels("{rate: 50/s, requests: 300}", P99),
        "requests: 368, or p95",
        ("300", "368"),
    ),
    Design(
        "duration.quantile",
        levels("{users: 8, think: 2s, duration: 60s}", P99.replace("200ms", "2s")),
        "duration: 90s, or p95",  # 8 users, a round at the start and one each 2 s: 248 requests in 60 s
        ("60s", "92s"),
    ),
    Design("duration.intervals", levels("{rate: 50/s, duration: 10s}"), "duration: 20s", ("10s", "20s")),
    Design(
        "duration.quick",
        levels(RATE, "quick: {load: {duration: 3s}}"),
        "duration: 8s",
        ("duration: 3s", "duration: 8s"),
        is_quick=True,
    ),
    Design(
        "duration.slowest",
        levels("{users: [1, 4, 16], think: 1s, duration: 20s}"),
        "duration: 40s",  # five times 8 s
        ("20s", "40s"),
        csv=BY_USERS + "load,16,,response_time.mean,client,8,s\n",
    ),
    Design(
        "timeout.published",
        levels("{users: [1, 4, 16], think: 1s, duration: 200s, timeout: 5s}"),
        "timeout: 16s",  # twice 8 s
        ("timeout: 5s", "timeout: 16s"),
        csv=BY_USERS + "load,16,,response_time.mean,client,8,s\n",
    ),
    # --- too few trials for the difference: 2 (0.03 x 2.802 / ln ratio)^2 + 1.96^2 / 2, rounded up ----------
    Design("trials.one", levels(LADDER, "trials: 1"), "trials: 3", ("trials: 1", "trials: 3")),
    Design("trials.two", levels(LADDER, "trials: 2"), "trials: 3", ("trials: 2", "trials: 3")),
    Design(
        "trials.claim",
        levels(RATE, CLAIM % ("1.05", 3), before=MODES),
        "trials: 8",
        ("trials: 3", "trials: 8"),
    ),
    Design(
        "trials.claim",
        levels(RATE, CLAIM % ("1.02", 5), before=MODES),
        "trials: 38",
        ("trials: 5", "trials: 38"),
    ),
    Design("trials.claim", levels(RATE, CLAIM % ("0.95", 3), before=MODES), "trials: 8", ("0.95", "0.80")),
    # --- a closed loop for a bound on latency: N users within B, with pauses Z, send N / (B + Z) (Little) --
    Design(
        "load.closed-objective",
        levels("{users: 10, duration: 20s}", P99),
        "rate: 50/s",  # 10 / 0.2 s
        ("users: 10", "rate: 50/s"),
    ),
    Design(
        "load.closed-objective",
        levels("{users: 60, think: 1s, duration: 20s}", P99.replace("200ms", "2s")),
        "rate: 20/s",  # 60 / (2 s + 1 s)
        ("users: 60, think: 1s", "rate: 20/s"),
    ),
    Design(
        "load.no-think",
        levels("{users: [1, 4, 16], duration: 20s}"),
        "think: 1s",
        ("16], ", "16], think: 1s, "),
    ),
    # --- shared cores --------------------------------------------------------------------------------------
    Design(
        "cores",
        levels(LADDER, "needs_cores: 8"),
        "a machine of 8 cores",
        ("needs_cores: 8", "needs_cores: 3"),
    ),
    Design(
        "cores.shared",
        levels(LADDER, "needs_cores: 4"),
        "3 cores for the service",
        ("needs_cores: 4", "needs_cores: 3"),
    ),
    Design(
        "cores.shared",
        levels(LADDER, before=PINNED % ("[0, 1]", "[1, 2]")),
        "CPUs of their own: 4 in all",
        ("[1, 2]", "[2]"),
    ),
    Design(
        "cores.shared",
        levels(LADDER, before=PINNED % ("[0, 1]", "[2, 3]")),
        "a machine of 5 cores",
        ("[2, 3]", "[2]"),
    ),
    # --- unequal warm-up -----------------------------------------------------------------------------------
    Design(
        "warmup.none", levels("{rate: 50/s, warmup: 0s, duration: 20s}"), "warmup: auto", ("0s, d", "auto, d")
    ),
    Design(
        "warmup.unequal",
        levels("{rate: 50/s, warmup: $warm, duration: 20s}", TWO_VERSIONS % ("5s", "30s"), before=VERSIONS),
        "warmup: 30s for both",
        ("warm: 5s}, new", "warm: 30s}, new"),
    ),
    # --- a rate for each worker taken for the total --------------------------------------------------------
    Design(
        "rate.total",
        levels(
            "{rate: 100/s, duration: 20s}",
            "objectives: [{metric: throughput, above: 350/s}]",
            before=FORKING,
        ),
        "rate: 350/s or more",
        ("rate: 100/s", "rate: 400/s"),
    ),
    Design(
        "rate.total",
        levels("{users: 50, think: 1s, duration: 50s}", "objectives: [{metric: throughput, above: 102/s}]"),
        "users: 100 or more",  # 50 users, 51 rounds in 50 s: 51/s at most
        ("users: 50", "users: 101"),
    ),
    # --- a ladder that cannot bracket the knee -------------------------------------------------------------
    Design("load.no-baseline", levels(LADDER.replace("1, 4", "2, 4")), "add level 1", ("[2, 4", "[1, 4")),
    Design(
        "load.no-saturation", levels(LADDER.replace("4, 16", "2, 4")), "add level 16", ("2, 4]", "4, 16]")
    ),
    Design(
        "load.no-knee",
        levels("{rate: [50, 100], duration: 20s}"),
        "add level 250/s",  # a quarter beyond 200/s
        ("50, 100", "100, 250"),
        csv=WHOLE + "load,,throughput,client,200,1/s\n",
    ),
    Design(
        "load.no-knee",
        levels("{rate: [500, 900], duration: 20s}"),
        "add level 100/s",  # half of 200/s
        ("500, 900", "100, 500"),
        csv=WHOLE + "load,,throughput,client,200,1/s\n",
    ),
    # --- a probe that disturbs: a tenth of the load is enough ----------------------------------------------
    Design(
        "probes.heavy",
        levels(RATE, probes="{health: {get: /health, rate: 20/s}}"),
        "rate: 5/s or less",
        ("rate: 20/s", "rate: 5/s"),
    ),
    Design(
        "probes.heavy",
        levels("{users: [1, 10], think: 1s, duration: 19s}", probes="{same: {get: /, rate: 20/s}}"),
        "rate: 1.1/s or less",  # 10 users, 20 rounds in 19 s: 10.5/s at most
        ("rate: 20/s", "rate: 1/s"),
    ),
)


def planned(folder: Path, design: Design, text: str) -> Study:
    if design.csv:
        (folder / "published.csv").write_text(design.csv)
        text += "published: {file: published.csv}\n"
    (folder / "study.yaml").write_text(text)
    return plan.plan(parse.read(folder), quick=design.is_quick)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_a_bad_design_is_advised_on_with_the_number_that_is_enough(tmp_path: Path, design: Design) -> None:
    faults = lint.faults(planned(tmp_path, design, design.text), cores=CORES)

    assert [
        fault.advice for fault in faults if fault.rule == design.rule and design.advice in fault.advice
    ], faults


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_the_same_design_with_that_number_is_good(tmp_path: Path, design: Design) -> None:
    old, new = design.change
    assert design.text.count(old) == 1, old

    faults = lint.faults(planned(tmp_path, design, design.text.replace(old, new)), cores=CORES)

    assert faults == ()


def test_there_are_thirty_designs_of_each() -> None:
    assert len(DESIGNS) >= 30
