"""Reports with every state that a page must show; figures follow one model, so that they agree."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from loadlens.model.finding import (
    Absent,
    Counter,
    Estimate,
    Evidence,
    Figure,
    Finding,
    Grade,
    NotAssessed,
    NotMeasured,
    Prediction,
    Undecided,
)
from loadlens.model.report import (
    AccountingRow,
    Badge,
    CaseDetail,
    ClaimRow,
    Column,
    Line,
    Matrix,
    MatrixCell,
    ObjectiveRow,
    PredictionRow,
    PredictionSection,
    PublishedRow,
    PublishedSection,
    Report,
    Table,
    TrialRow,
)
from tests.unit.report.write import sample_charts
from tests.unit.report.write.sample_charts import closed

METRICS = (
    ("response_time.mean", "mean", "s"),
    ("response_time.p99", "p99", "s"),
    ("throughput", "registrations/s", "1/s"),
    ("failed.share", "failed", "share"),
    ("probe.p99", "probe p99", "s"),
    ("limit", "limit", ""),
)


def seconds(
    point: float, spread: float = 0.03, trials: int = 3, samples: int = 1830, metric: str = "mean"
) -> Estimate:
    low, high = point * (1 - spread), point * (1 + spread)
    return Estimate(metric, "s", point, low, high, trials, samples, "t on log of trials")


def rate(point: float, trials: int = 3) -> Estimate:
    return Estimate(
        "throughput", "1/s", point, point * 0.98, point * 1.02, trials, 5490, "t on log of trials"
    )


def count(number: int, unit: str = "requests") -> Estimate:
    return Estimate("count", unit, number, number, number, 1, number, "exact count")


def predicted(figure: Figure) -> Figure:
    return replace(figure, method="predicted by the model") if isinstance(figure, Estimate) else figure


def share(point: float, trials: int = 3) -> Estimate:
    return Estimate(
        "failed.share", "share", point, point * 0.7, point * 1.4, trials, 5490, "cluster by interval"
    )


def cell(workers: int, users: int, **other: Any) -> MatrixCell:
    x, r = closed(users, workers)
    figures: dict[str, Figure] = {
        "response_time.mean": seconds(r),
        "response_time.p99": seconds(r * 1.6, 0.12) if users > 1 else Undecided("p99", "s", "needs 21 s"),
        "throughput": rate(x),
        "failed.share": share(0.021) if (workers, users) == (1, 20) else count(0, "share"),
        "probe.p99": seconds(r * 0.9, 0.2)
        if users > 1
        else NotMeasured("probe.p99", "fewer than 368 probes"),
        "limit": NotMeasured("limit", "below the knee"),
    }
    return MatrixCell(
        **(
            {"case": f"workers={workers},users={users}", "figures": figures, "state": "ok", "word": ""}
            | other
        )
    )


def matrix() -> Matrix:
    rows, columns = ("1", "2", "4"), ("1", "5", "10", "15", "20")
    cells = {(w, u): cell(int(w), int(u)) for w in rows for u in columns}
    cells["1", "20"] = cell(1, 20, state="caution", word="2.1 % failed")
    cells["2", "15"] = cell(2, 15, state="bad", word="invalid")
    cells["2", "20"] = MatrixCell("workers=2,users=20", {}, "unknown", "not run")
    for users in columns:
        shown = cell(4, int(users), state="unknown", word="not judged: 2 cores", judged=False)
        cells["4", users] = replace(shown, figures={k: predicted(f) for k, f in shown.figures.items()})
    return Matrix(
        experiment="alone",
        title="register alone",
        row_factor="workers",
        column_factor="users",
        rows=rows,
        columns=columns,
        cells=cells,
        metrics=METRICS,
        knee_after={"1": "1", "2": "1"},
    )


def blocked() -> Finding:
    return Finding(
        rule="eventloop.blocked",
        grade=Grade.STRONG,
        impact=0.97,
        scope="POST /api/users/register/ · workers=1",
        statement="The password hash blocks the event loop: 4.6 registrations/s per worker.",
        explanation="Every request of a worker waits while it hashes for 218 ms (214–222).",
        evidence=(
            Evidence(
                "worker.cpu",
                "worker CPU 0.99 of 1 core (0.98–1.00, 15 trials), others idle",
                "CPU 0.99 of 1 core",
                0.99,
                0.98,
                1.0,
                0.85,
                True,
                "chart-heat",
            ),
            Evidence(
                "probe.coupling",
                "GET /health waits 0.97 of what register waits (0.91–1.03)",
                "health waits 0.97 as long",
                0.97,
                0.91,
                1.03,
                0.5,
                True,
                "chart-bystander",
            ),
            Evidence(
                "probe.late",
                "82 % of probes met a busy loop",
                "82 % of probes late",
                0.82,
                0.78,
                0.86,
                0.75,
                True,
            ),
        ),
        counter=(
            Counter("thread pool", "CPU is full", True),
            Counter("GC", "no period", True),
            Counter("generator", "4 % CPU", True),
            Counter("a lock inside bcrypt", "no counter for it on this machine", None),
        ),
        advice="hash in a thread pool instead of in the handler",
        confirm="loadlens run studies/register --set hash=threads",
        predictions=(
            Prediction("health mean at 20 users", seconds(2.31, 0.06), seconds(0.009, 0.5, 1, 400)),
            Prediction("registrations/s", rate(4.6), rate(9.1)),
        ),
        unknown=("lock inside bcrypt: no counter for it on this machine",),
    )


def findings() -> tuple[Finding, ...]:
    base = blocked()
    return (
        base,
        replace(
            base,
            rule="saturation.plateau",
            statement="From 1.7 users a worker on, more users only wait: 4.6 registrations/s stay 4.6.",
            explanation="Throughput of the last two steps differs by 0.4 %.",
            explained_by="eventloop.blocked",
            predictions=(),
            unknown=(),
            counter=base.counter[:1],
            impact=0.9,
        ),
        Finding(
            rule="hash.threads",
            grade=Grade.CONFIRMED,
            impact=0.8,
            scope="hash=threads · workers=1 · users=20",
            statement="A thread pool for the hash brings the health check from 2.31 s to 11.0 ms.",
            explanation="Predicted before it was run 9.00 ms (4.00–16.0); measured 11.0 ms (9.10–14.2).",
            evidence=(
                Evidence(
                    "heldout",
                    "health mean 11.0 ms (9.10–14.2), predicted 9.00 (4.00–16.0)",
                    "11.0 ms, predicted 9.00",
                    0.011,
                    0.0091,
                    0.0142,
                    0.016,
                    True,
                    "chart-bystander",
                ),
            ),
            counter=(Counter("chance", "interval of the ratio 0.0039–0.0062 excludes 1", True),),
            advice="keep the pool and size it by the cores: 2 threads on 2 cores",
            confirm="done: held-out case hash=threads, users=20",
        ),
        Finding(
            rule="quantile.boundary",
            grade=Grade.PROBABLE,
            impact=0.3,
            scope="GET /health · workers=2 · users=5",
            statement="p90 of the health check jumps between 43 and 512 ms from run to run.",
            explanation="10 % of requests take 500 ms longer (499–501): p90 falls between two populations.",
            evidence=(
                Evidence(
                    "mixture",
                    "second population 10.0 % (9.6–10.4), 500 ms later",
                    "10.0 % are 500 ms later",
                    0.1,
                    0.096,
                    0.104,
                    0.005,
                    True,
                    "chart-density",
                ),
                Evidence("ratio", "p92 is 11 times p88", "p92 is 11 times p88", 11.0, 8.0, 15.0, 2.0, True),
            ),
            counter=(
                Counter("drift", "no trend over the trials", True),
                Counter("a pause of the server", "no CPU per thread", None),
            ),
            advice="quote p85 and p95 instead",
            confirm="loadlens run studies/register --set trials=9",
        ),
        Finding(
            rule="host.interference",
            grade=Grade.SUSPECTED,
            impact=0.05,
            scope="block 2",
            statement="Block 2 may have shared its CPU: steal was 1.4 % in one trial.",
            explanation="One trial of 45; the figures with and without it agree within 0.3 %.",
            evidence=(
                Evidence(
                    "steal",
                    "steal 1.4 % of 2 cores in one trial",
                    "steal 1.4 %",
                    0.014,
                    None,
                    None,
                    0.01,
                    True,
                ),
                Evidence(
                    "frequency",
                    "CPU frequency could not be read",
                    "frequency not read",
                    None,
                    None,
                    None,
                    None,
                    None,
                ),
            ),
            counter=(),
            advice="repeat block 2 on an idle machine",
            confirm="loadlens run studies/register --resume",
        ),
    )


def absent() -> tuple[Absent, ...]:
    return (
        Absent(
            "threads.pool-limit",
            "A pool of threads is the limit",
            "CPU is 0.99 of 1 core: the worker is not waiting",
        ),
        Absent(
            "gc.pauses", "Garbage collection stops the service", "no period between 0.1 and 30 s (p = 0.41)"
        ),
        Absent("gen.bottleneck", "The generator is the limit", "busy 4 %, late 0.06 ms at p99 (limit 0.10)"),
        Absent("ratelimit.active", "A limiter rejects or delays", "no answer 429 in 5,490"),
        Absent("retrograde", "More load gives less throughput", "largest drop 0.4 % (limit 5 %)"),
    )


def not_assessed() -> tuple[NotAssessed, ...]:
    return (
        NotAssessed("db.lock", "One lock serialises requests", "no database in this study"),
        NotAssessed(
            "memory.bandwidth", "Memory bandwidth is the limit", "no counter: perf is not allowed here"
        ),
        NotAssessed("payload.length", "Answers differ in length", "bodies were not kept; --set bodies=keep"),
    )


def published() -> PublishedSection:
    def row(
        case: str, step: str, told: float, ours: Figure, ratio: float | None, shape: str, note: str = ""
    ) -> PublishedRow:
        return PublishedRow(case, step, "response_time.mean", told, "s", ours, ratio, shape, note)

    return PublishedSection(
        agreement=(
            "order of cases agrees (Kendall τ 0.94, 0.81–1.00)",
            "9 of 10 ratios within 20 %",
            "same plateau, same limit",
            "absolute values: other machine (4 cores, ours 2)",
        ),
        claims=(
            ClaimRow(
                "register at 20 users takes 4.5 times as long as at 5",
                "4.50",
                Estimate("ratio", "ratio", 4.49, 4.2, 4.8, 3, 0, "t on log"),
                "within 30 %",
                True,
            ),
            ClaimRow("health rises with users", "rises", seconds(2.31), "every step", True),
            ClaimRow(
                "four workers bring 3.5 times the throughput",
                "3.50",
                Estimate("ratio", "ratio", 1.97, 1.9, 2.05, 3, 0, "t on log"),
                "within 20 %",
                False,
                "2 cores: two workers fill them",
            ),
            ClaimRow(
                "register is slower than login",
                "order",
                Undecided("order", "", "intervals overlap; needs 7 trials"),
                "",
                None,
            ),
        ),
        rows=(
            row("health, 1 worker, 1 user", "health", 0.00625, seconds(0.0064, 0.08), 1.0, "reference"),
            row("health, 1 worker, 5 users", "health", 0.338, seconds(0.341, 0.06), 1.01, "agrees"),
            row("health, 1 worker, 20 users", "health", 2.34, seconds(2.31, 0.06), 0.99, "agrees"),
            row(
                "register, 2 workers, 5 users",
                "register",
                0.267,
                seconds(0.43),
                1.61,
                "differs",
                "2 cores here, 4 there",
            ),
            row(
                "register, 4 workers, 20 users",
                "register",
                0.360,
                NotMeasured("mean", "4 workers need 4 cores"),
                None,
                "not judged",
            ),
            row(
                "register, 1 worker, 15 users",
                "register",
                3.1,
                NotMeasured("mean", "both trials invalid"),
                None,
                "not measured",
            ),
            row(
                "sum, 100 connections",
                "sum",
                0.0134,
                seconds(0.0041, 0.02),
                0.31,
                "impossible",
                "24,387 /s x 13.4 ms = 327 in flight, with 100 connections",
            ),
        ),
    )


def phases() -> Table:
    """Parts of a request of two steps on new connections; p99 of the last one undecided."""
    parts = (
        "connect p50",
        "connect p99",
        "first byte p50",
        "first byte p99",
        "last byte p50",
        "last byte p99",
    )
    ends = (Column("connections"), Column("successes"))
    columns = (Column("step", align="left"), *(Column(part, "s") for part in parts), *ends)
    unknown = Undecided("last_byte.p99", "s", "needs 21 s")
    of_bytes = (seconds(0.21), seconds(0.33), seconds(0.0002), unknown)
    rows = (
        ("all", seconds(0.0001), seconds(0.0004), *of_bytes, 610, 610),
        ("register", "not by step", "not by step", *of_bytes, "not by step", 305),
    )
    return Table(columns, rows, "of successes")


def checks() -> Table:
    """One check that some answers failed, one that nothing was judged by."""
    columns = (
        Column("step", align="left"),
        Column("check", align="left"),
        Column("passed"),
        Column("failed"),
        Column("share failed", "share"),
        Column("not judged"),
        Column("first that failed", align="left"),
    )
    rows = (
        ("register", "status 200", 598, 12, count(0, "share"), 0, "block-1: 3.100 s, user 4: status 500"),
        ("register", "json ok", 0, 0, NotMeasured("check.failed", "no answer was judged"), 610, "none"),
    )
    return Table(columns, rows, "whole trials, warm-up included")


def setup() -> Table:
    """A generator without bounds, a service whose limits hold and one whose do not."""
    titles = ("part", "runs", "CPUs", "CPU time", "memory", "limits", "cases")
    rows = (
        ("generator", "1 thread", "0, 1", "no limit", "no limit", "none asked", "all"),
        (
            "web, 2 replicas each",
            "variant uvicorn",
            "0, 1",
            "0.3 cores, every 10 ms",
            "no limit",
            "held",
            "all",
        ),
        ("db", "postgres", "1", "no limit", "256 MiB", "asked and not held: cpus", "alone workers=1 users=1"),
    )
    return Table(tuple(Column(title, align="left") for title in titles), rows, "as the kernel said")


def reasons() -> Table:
    """Why requests failed."""
    titles = ("outcome", "why", "of the samples", "first seen", "try")
    row = (
        "TLS failed",
        "the certificate has expired",
        "all",
        "0.010 s, step register, user 1",
        "another one",
    )
    return Table(tuple(Column(title, align="left") for title in titles), (row,))


def detail(workers: int, users: int, *, opened: bool = False, charts: bool = False) -> CaseDetail:
    x, r = closed(users, workers)
    trials = tuple(
        TrialRow(
            name=f"block-{block}",
            status="invalid" if (block, users) == (2, 20) else "complete",
            position=block * 7 + users,
            note="reset not verified: 3 users left in the table" if (block, users) == (2, 20) else "",
            figures=(
                seconds(r * (1 + 0.01 * block), 0.02, 1, 610),
                rate(x * (1 - 0.01 * block), 1),
                count(3 if users == 20 else 0),
            ),
        )
        for block in (1, 2, 3)
    )
    failures = Table(
        columns=(
            Column("class", align="left"),
            Column("requests"),
            Column("first", "s"),
            Column("last", "s"),
        ),
        rows=(("timed out", 11, 3.1, 19.2), ("connection reset", 1, 7.2, 7.2)),
        note="timeout 30 s",
    )
    return CaseDetail(
        slug=f"workers={workers},users={users}",
        name=f"alone workers={workers} users={users}",
        plan=f"{users} users in a closed loop, think 150 ms, 5 s warm-up, then 20 s; probe GET /health 20 /s",
        trial_columns=(Column("mean", "s"), Column("throughput", "1/s"), Column("failed")),
        trials=trials,
        failures=failures if users == 20 else None,
        charts=(sample_charts.heat(24), sample_charts.resources()) if charts else (),
        phases=phases(),
        checks=checks() if users == 20 else None,
        reasons=reasons() if users == 20 else None,
        log_tail="INFO  started\n\x1b[31mERROR\x1b[0m database is locked\n" if users == 20 else "",
        open=opened,
    )


def sample() -> Report:
    """15 cases, every state."""
    return Report(
        schema_version=1,
        study="register",
        question="What does a blocking password hash do to an async server?",
        answer=(
            (
                "It stops everything. One worker registers 4.6 users/s (4.5–4.7), and while it hashes "
                "nothing else is answered: the health check takes 6.4 ms at 1 user and 2.3 s (2.2–2.5) at 20."
            ),
            "A thread pool brings that to 11 ms (9–14); predicted were 9.",
        ),
        lines=(
            Line("capacity", "4.60 /s (4.51–4.69; 3 trials, 5,490 requests), knee at 1.7 users"),
            Line("fix", "hash in a thread pool instead of in the handler"),
            Line("who waits", "GET /health takes 2.31 s (2.17–2.45) at 20 users, 6.40 ms at 1"),
            Line("next", "loadlens run studies/register", is_command=True),
        ),
        pictures=("chart-load", "chart-demand"),
        badges=(
            Badge("caution", "129 of 132 trials valid", "details"),
            Badge("ok", "books balance", "accounting"),
            Badge("ok", "shape agrees 9 of 10", "published"),
            Badge("bad", "objective missed: p99 4.2 s, limit 1 s", "objectives"),
            Badge("unknown", "not judged: 5 cases need 4 cores; not measured: memory bandwidth", "limits"),
        ),
        conditions=("21 Nov 2025", "2 cores", "3 trials a case", "record 7c1e9a"),
        findings=findings(),
        absent=absent(),
        not_assessed=not_assessed(),
        matrices=(matrix(),),
        published=published(),
        charts=sample_charts.all_charts(),
        details=tuple(
            detail(w, u, charts=(w, u) == (1, 20))
            for w in (1, 2)
            for u in (1, 5, 10, 15, 20)
            if (w, u) != (2, 20)
        ),
        accounting=(
            AccountingRow("POST /api/users/register/", 5490, 5490, 5490, 5490, 0, "", "ok"),
            AccountingRow("GET /api/health/", 1200, 1200, 1205, 1203, 3, "readiness: 3", "ok"),
            AccountingRow("GET /metrics", 0, 20, 22, 81, 59, "not explained", "bad"),
            AccountingRow("database", None, None, None, None, None, "no counter there", "unknown"),
        ),
        environment=(
            ("machine", "2 cores, 8 GiB, Linux 6.8"),
            ("python", "3.11.2"),
            ("CPU frequency", "not readable"),
        ),
        environment_differences=("block 2 began at load 1.9, blocks 1 and 3 at 0.1",),
        limits=(
            "Quick run: 2 of 3 experiments were thinned to 4 cases.",
            "Not watched: memory bandwidth (perf is not allowed here).",
            "Not identifiable: think time of the published run; 150 ms is inferred from its figures.",
            "The model assumes that one hash keeps one core busy for 218 ms (214–222).",
        ),
        commands=("loadlens run studies/register --seed 1", "loadlens show runs/register-7c1e9a"),
        versions=(("loadlens", "0.1.0"), ("engine", "0.1.0"), ("uvicorn", "0.34.0")),
        digests=(("study", "9f2c" * 16), ("engine", "77aa" * 16)),
        record_digest="7c1e9a" + "0" * 58,
        setup=setup(),
        predictions=predictions(),
        objectives=(
            ObjectiveRow(
                "p99 of response time, register",
                "below 1 s",
                seconds(4.2, 0.08),
                "bad",
                "missed",
                "workers=1,users=20",
            ),
            ObjectiveRow("failed, register", "below 1 %", share(0.004), "ok", "met", "workers=1,users=5"),
            ObjectiveRow(
                "p99 of response time, health",
                "below 50 ms",
                seconds(0.049, 0.1),
                "unknown",
                "undecided: the interval covers the limit",
            ),
        ),
    )


def predictions() -> PredictionSection:
    """Two figures of a held-out case, and one that nothing foretold."""
    name = "alone hash=threads workers=1 users=20"
    rate = Estimate(
        "throughput", "1/s", 7.9, 7.5, 8.3, 15, 0, "predicted by simulation, 100 draws of parameters"
    )
    seen = Estimate("throughput", "1/s", 8.1, 8.0, 8.2, 3, 900, "t on log of trials")
    return PredictionSection(
        (
            "1 of 2 predicted figures were measured inside their intervals; off by 2.5 % at the median",
            "alone hash=processes: not predicted: env of api differs, and its `model:` does not say what",
        ),
        (
            PredictionRow(
                "threads", name, "throughput", None, rate, seen, -0.025, "ok", "inside its interval"
            ),
            PredictionRow(
                "threads",
                name,
                "response_time.mean",
                "health",
                seconds(0.0035, 0.2),
                seconds(0.0025, 0.1),
                0.4,
                "bad",
                "outside its interval",
            ),
        ),
        Table(
            (Column("case", align="left"), Column("what requests wait for", align="left")),
            ((name, "one event loop a process: who computes holds up everyone"),),
        ),
    )


def many() -> Report:
    """36 cases."""
    factors = tuple(str(n) for n in (1, 2, 3, 4, 5, 6)), tuple(str(n) for n in (1, 2, 5, 10, 20, 50))
    big = replace(
        matrix(),
        rows=factors[0],
        columns=factors[1],
        cells={(w, u): cell(int(w), int(u)) for w in factors[0] for u in factors[1]},
        knee_after={"1": "1", "2": "2", "3": "2", "4": "5", "5": "5", "6": "5"},
    )
    return replace(
        sample(),
        matrices=(big,),
        charts=(sample_charts.small_multiples(), sample_charts.bystander()),
        details=tuple(
            detail(int(w), int(u), charts=(w, u) in (("1", "1"), ("1", "50")))
            for w in factors[0]
            for u in factors[1]
        ),
    )


def one() -> Report:
    """One case in one trial: no matrix to speak of, detail open."""
    only = matrix()
    return replace(
        sample(),
        question="How fast is POST /api/sum?",
        answer=("24,390 requests/s; half within 2.10 ms, 99 % within 39.0 ms; no failures.",),
        badges=(
            Badge("ok", "valid"),
            Badge("ok", "books balance", "accounting"),
            Badge("caution", "1 trial"),
        ),
        lines=(),
        pictures=(),
        findings=(),
        not_assessed=(),
        published=None,
        predictions=None,
        objectives=(),
        matrices=(
            replace(
                only,
                row_factor="",
                rows=("",),
                columns=("100",),
                cells={("", "100"): replace(cell(1, 5), case="only")},
                knee_after={},
                column_factor="connections",
            ),
        ),
        charts=(sample_charts.quantiles(1), sample_charts.heat(12), sample_charts.demand()),
        details=(replace(detail(1, 5, opened=True), slug="only", name="sum, 100 connections"),),
        environment_differences=(),
    )


def minimal() -> Report:
    """Nothing was measured: the page says so and still stands."""
    return Report(
        schema_version=1,
        study="empty",
        question="What happens when nothing runs?",
        answer=("Undecided: no trial is complete; the service did not come up.",),
        badges=(Badge("bad", "0 of 4 trials valid"),),
        conditions=(),
        findings=(),
        absent=(),
        not_assessed=(),
        matrices=(),
        published=None,
        charts=(),
        details=(),
        accounting=(),
        environment=(),
        environment_differences=(),
        limits=(),
        commands=(),
        versions=(),
        digests=(),
        record_digest="",
    )


HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>&\"'`|*_[x](javascript:alert(1)) "
    "=1+1\u202e\x1b[31m"
)
_FIXED = frozenset({"state", "shape", "align", "kind", "status", "unit", "trial_columns"})

Part = TypeVar("Part")


def hostile(part: Part, text: str = HOSTILE) -> Part:
    """The same report with every free text replaced, keys and names of cases included."""
    if isinstance(part, str):
        return text  # type: ignore[return-value]
    if isinstance(part, tuple):
        return tuple(hostile(p, text) for p in part)  # type: ignore[return-value]
    if is_dataclass(part) and not isinstance(part, type):
        changed: dict[str, Any] = {}
        for field in fields(part):
            value = getattr(part, field.name)
            if field.name in _FIXED or isinstance(value, Grade):
                continue
            if field.name == "datasets":
                changed[field.name] = {
                    name: tuple({c: _cell(c, v, text) for c, v in row.items()} for row in rows)
                    for name, rows in value.items()
                }
            elif field.name in ("options", "entities"):
                changed[field.name] = {} if field.name == "options" else None
            elif field.name == "metrics":
                changed[field.name] = tuple((key, text, unit) for key, _, unit in value)
            elif field.name == "cells":
                changed[field.name] = {(text + r, text + c): hostile(v, text) for (r, c), v in value.items()}
            elif field.name in ("rows", "columns") and value and isinstance(value[0], str):
                changed[field.name] = tuple(text + v for v in value)
            elif field.name == "knee_after":
                changed[field.name] = {text + k: text + v for k, v in value.items()}
            elif field.name == "figures" and isinstance(value, dict):
                changed[field.name] = {k: hostile(v, text) for k, v in value.items()}
            elif isinstance(value, str | tuple) or is_dataclass(value):
                changed[field.name] = hostile(value, text)
        return replace(part, **changed)
    return part


def _cell(column: str, value: object, text: str) -> object:
    return text if isinstance(value, str) and column != "part" else value
