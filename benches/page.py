"""The data of docs/benchmarks.md and its appendix, between markers; the prose there is written by hand."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from benches import chart, truth
from benches.bars import verdicts
from benches.cost import Row, summary
from benches.estimates import Middle
from benches.generators import GENERATORS
from benches.measuring import ROOT
from benches.results import Claim, Results
from benches.works import FLOW, FRESH, GET, POST, TLS, WORKS, Work, chosen, title

DOCS = ROOT / "docs"
PAGE, APPENDIX, CHART = "benchmarks.md", "appendix/benchmarks.md", "images/benchmarks.svg"
ALONE = "–"  # not measured, or it cannot do it
FEWEST = 3  # rounds below which a generator is not compared
TOO_FEW = f"fewer than {FEWEST} rounds"
CHARTED = ("get-1", "get-100", "get-1000", "post-100", "tls-100", "fresh-100", "flow-100")
AT_100 = chosen(("get-100", "post-100", "tls-100", "fresh-100", "flow-100"))
GROUPS: Sequence[tuple[str, Sequence[Work]]] = (
    ("GET", GET),
    ("POST with two random numbers", POST),
    ("GET over TLS", TLS),
    ("A new connection for each request", FRESH),
    ("A flow of five steps", FLOW),
)


def write(results: Results, docs: Path = DOCS) -> list[Path]:
    """Write both pages and the chart again; gives what was written."""
    rows = summary(results, WORKS, GENERATORS)
    page, appendix, picture = docs / PAGE, docs / APPENDIX, docs / CHART
    for path, text in zip(
        (page, appendix), filled(page.read_text(), appendix.read_text(), results), strict=True
    ):
        path.write_text(text)
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_text(chart.svg([row for row in rows if is_compared(row)], chosen(CHARTED)))
    return [page, appendix, picture]


def filled(page: str, appendix: str, results: Results) -> tuple[str, str]:
    """Both pages with every block made from the data.

    Raises:
        ValueError: A marker names no block, or a block has no marker, or several.
    """
    rows = summary(results, WORKS, GENERATORS)
    blocks: dict[str, Callable[[], str]] = {
        "result": lambda: result(results, rows),
        "picture": lambda: picture(rows),
        "at_100": lambda: at_100(rows),
        "environment": lambda: environment(results),
        "bars": lambda: bars(results, rows),
        "cost": lambda: cost_tables(rows),
        "rates": lambda: rate_tables(rows),
        "truth": lambda: truth_tables(results.claims),
        "commands": lambda: commands(results),
    }
    marked = re.findall(r"<!-- data: (\w+) -->", page + appendix)
    if sorted(marked) != sorted(blocks):
        raise ValueError(f"markers {sorted(marked)}, blocks {sorted(blocks)}")
    made = {name: block().strip() for name, block in blocks.items()}
    place = re.compile(r"(<!-- data: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
    return tuple(  # type: ignore[return-value]
        place.sub(lambda at: f"{at[1]}\n{made[at[2]]}\n\n{at[3]}", text) for text in (page, appendix)
    )


def is_compared(row: Row) -> bool:
    """True if a generator has enough rounds to be compared with its peer."""
    return row.to_peer is not None and row.to_peer.rounds >= FEWEST


def result(results: Results, rows: Sequence[Row]) -> str:
    """The answer in a few lines: our cost per request, and the limits that are met and missed."""
    ours = {row.work: row for row in rows if row.generator == "loadlens" and is_compared(row)}
    lines = ["CPU time per request of Loadlens at 100 connections, with 95 % intervals:", ""]
    for work in AT_100:
        if work.name in ours:
            ratio = _times(ours[work.name].to_peer)
            lines.append(f"- {title(work, is_counted=False)}: {ratio} times that of {work.peer}.")
    judged = [verdict for verdict in verdicts(results, rows) if verdict.verdict]
    missed = [f"{verdict.name} ({verdict.bar})" for verdict in judged if "missed" in verdict.verdict]
    lines += ["", f"Of {len(judged)} limits that Loadlens is held to, {len(judged) - len(missed)} are met."]
    if missed:
        lines.append(f"Missed: {'; '.join(missed)}.")
    return "\n".join(lines)


def at_100(rows: Sequence[Row]) -> str:
    """One table: each generator's CPU time per request as a multiple of the peer's, at 100 connections."""
    works = [work for work in AT_100 if any(row.work == work.name for row in rows)]
    if not works:
        return "Not measured yet."
    at = {(row.work, row.generator): row.to_peer for row in rows if is_compared(row)}
    heads = [f"{title(work, is_counted=False)}, × {work.peer}" for work in works]
    lines = [
        "CPU time per request at 100 connections, as a multiple of the peer's in the same rounds:",
        "",
        f"| | {' | '.join(heads)} |",
        "| --- |" + " ---: |" * len(heads),
    ]
    for name, generator in GENERATORS.items():
        cells = []
        for work in works:
            ratio = at.get((work.name, name))
            note = ", fixed body" if ratio and work.kind == "post" and not generator.has_random_body else ""
            cells.append("1" if name == work.peer else f"{_times(ratio)}{note}" if ratio else ALONE)
        if any(cell != ALONE for cell in cells):
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _times(ratio: Middle | None) -> str:
    """`0.70 (0.58–0.83)`, or without the interval where there is none."""
    if ratio is None:
        return ALONE
    digits = 2 if ratio.value < 10 else 0
    ends = (f"{end:.{digits}f}" for end in (ratio.low, ratio.high) if end is not None)
    interval = "–".join(ends)
    return f"{ratio.value:.{digits}f}" + (f" ({interval})" if interval else "")


def picture(rows: Sequence[Row]) -> str:
    """The chart, when there is something in it."""
    return f"![CPU per request of each generator, less is better]({CHART})" if rows else ""


def environment(results: Results) -> str:
    """The machine, the versions, and the disturbance during the measurement, as a list."""
    about = results.machine
    first, last = results.sets[0]["began"], results.sets[-1].get("ended", results.sets[-1]["began"])
    virtual = "virtual " if about["hypervisor"] else ""
    left_out = sum(cost.left_out is not None for cost in results.cost)
    failed = sum(len(series.get("failed", ())) for series in results.sets)
    lines = [
        f"**When**: {first} to {last}, commit {results.subject['commit']}, release build.",
        (
            f"**Machine**: {about['processors']} {virtual}processors ({about['processor']}), "
            f"{about['memory_gib']} GiB, {about['distribution']}, kernel {about['kernel']}, "
            f"{about['congestion_control']}, loopback."
        ),
        f"**Amount**: {len(results.cost)} measurements, {left_out} of them left out; {failed} runs failed.",
        *_disturbance(results),
    ]
    if counts := books(results):
        lines.append(f"**Counts**: {counts}")
    versions: dict[str, str] = {}
    for series in results.sets:
        versions |= {name: version for name, version in series["versions"].items() if version}
    lines.append(f"**Versions**: {'; '.join(versions.values())}.")
    return "\n".join(
        textwrap.fill(
            f"- {line}", 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
        for line in lines
    )


def _disturbance(results: Results) -> list[str]:
    """Return the time tasks waited for a processor, and the time that the host gave to other machines."""
    kept = [cost.marginal for cost in results.cost if cost.left_out is None]
    if not kept:
        return []
    waits = sorted(used.waited for used in kept)
    stolen = max(used.stolen for used in kept)
    return [
        (
            f"**Disturbance**: some task of the machine waited for a processor during "
            f"{waits[len(waits) // 2]:.0%} of a measurement in the median and {waits[-1]:.0%} at most "
            "(pressure stall information; threads of a generator that share its core count too). The "
            f"machine's host gave at most {stolen:.0%} of its processor time to others."
        )
    ]


def books(results: Results) -> str:
    """Compare our counts with the server's books over every run, left-out ones too; empty without runs."""
    runs = [run for cost in results.cost for run in (cost.short, cost.long) if run.unexplained is not None]
    if not runs:
        return ""
    answered, violations = sum(run.requests for run in runs), sum(run.violations for run in runs)
    unexplained = sum(run.unexplained or 0 for run in runs)
    return (
        f"Of {answered:,} requests that the server answered to Loadlens in {len(runs)} runs, {unexplained} "
        f"were lost, doubled or invented in its own counts, and {violations} broke a rule of HTTP, by the "
        "server's books; what was in flight when a run stopped may be in them or not."
    )


def bars(results: Results, rows: Sequence[Row]) -> str:
    """The table of bars, measured values and verdicts."""
    head = "| | bar | measured | |\n| --- | --- | --- | --- |\n"
    return head + "\n".join(
        f"| {verdict.name} | {verdict.bar} | {verdict.measured} | {verdict.verdict} |"
        for verdict in verdicts(results, rows)
    )


def cost_tables(rows: Sequence[Row]) -> str:
    """CPU per request by group of works: the ratio to the peer with its interval, and microseconds."""

    def cell(row: Row) -> str:
        if row.cpu_us.rounds < FEWEST:
            return TOO_FEW
        return f"{_ratio(row.to_peer)}{row.cpu_us.value:.1f} µs"

    return _tables(rows, cell, "CPU per request")


def rate_tables(rows: Sequence[Row]) -> str:
    """Requests per second, and how busy both sides were."""

    def cell(row: Row) -> str:
        if row.requests_per_s.rounds < FEWEST:
            return TOO_FEW
        return f"{row.requests_per_s.value / 1e3:.1f}k ({row.busy_generator:.2f}/{row.busy_server:.2f})"

    return _tables(rows, cell, "requests/s (share of a core used by generator/server)")


def _tables(rows: Sequence[Row], cell: Callable[[Row], str], what: str) -> str:
    at = {(row.work, row.generator): row for row in rows}
    parts = []
    for group, works in GROUPS:
        measured = [work for work in works if any(row.work == work.name for row in rows)]
        if not measured:
            continue
        heads = [f"{work.connections:,} connections" for work in measured]
        heads = [
            head.replace("1 connections", "1 connection") if head[:2] == "1 " else head for head in heads
        ]
        lines = [f"**{group}**, {what}:", "", f"| | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
        for name, generator in GENERATORS.items():
            if not any((work.name, name) in at for work in measured):
                continue
            is_fixed = works is POST and not generator.has_random_body
            shown = f"{name} (fixed body)" if is_fixed else name
            cells = [cell(at[work.name, name]) if (work.name, name) in at else ALONE for work in measured]
            lines.append(f"| {shown} | {' | '.join(cells)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) or "Not measured yet."


def _ratio(ratio: Middle | None) -> str:
    """`**0.70** (0.66–0.75; 8), `: the median of the rounds' ratios, its interval and the rounds."""
    if ratio is None:
        return ""
    interval = "" if ratio.low is None or ratio.high is None else f"{ratio.low:.2f}–{ratio.high:.2f}; "
    return f"**{ratio.value:.2f}** ({interval}{ratio.rounds}), "


def truth_tables(claims: Sequence[Claim]) -> str:
    """Reported times next to true ones, in milliseconds."""
    parts = []
    for case in truth.CASES:
        mine = [claim for claim in claims if claim.case == case.work.name]
        if not mine:
            continue
        true = case.truth
        p99 = "10 or 200" if true.p99_s is None else _ms(true.p99_s)
        lines = [
            f"**{case.title}**",
            "",
            "| | p50 | p99 | p99.9 | max | |",
            "| --- | --- | --- | --- | --- | --- |",
            f"| *true* | *{_ms(true.p50_s)}* | *{p99}* | *{_ms(true.p999_s)}* | *{_ms(true.max_s)}* | |",
        ]
        if case.work.name == "freeze-closed":
            steady = [truth.steady_quantile(share) for share in (0.5, 0.99, 0.999)]
            lines.append(
                f"| *true for users who arrive steadily* | {' | '.join(f'*{_ms(at)}*' for at in steady)} "
                f"| *{_ms(true.max_s)}* | |"
            )
        names = list(dict.fromkeys(claim.generator for claim in mine))
        for name in names:
            lines.append(_claimed(name, [claim for claim in mine if claim.generator == name]))
        parts.append("\n".join(lines))
    return "\n\n".join(parts) or "Not measured yet."


def _claimed(name: str, claims: Sequence[Claim]) -> str:
    cells = []
    for field in ("p50_s", "p99_s", "p999_s", "max_s"):
        claimed = [value for claim in claims if (value := getattr(claim, field)) is not None]
        low, high = (_ms(min(claimed)), _ms(max(claimed))) if claimed else (ALONE, ALONE)
        cells.append(low if low == high else f"{low}–{high}")
    notes = "; ".join(dict.fromkeys(claim.note for claim in claims if claim.note))
    return f"| {name} | {' | '.join(cells)} | {notes} |"


def _ms(seconds: float) -> str:
    ms = seconds * 1e3
    return f"{ms:.2f}" if ms < 10 else f"{ms:.1f}"


def commands(results: Results) -> str:
    """The command of each generator, verbatim, and the files that it was given."""
    parts = []
    for work, by_generator in results.commands.items():
        lines = "\n".join(by_generator.values())
        parts.append(f"<details><summary>{work}</summary>\n\n```\n{lines}\n```\n\n</details>")
    for name, content in sorted(results.files.items()):
        parts.append(f"<details><summary>{name}</summary>\n\n```\n{content.strip()}\n```\n\n</details>")
    return "\n\n".join(parts) or "Not measured yet."
