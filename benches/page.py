"""The tables of docs/benchmarks.md: its prose is written by hand, what stands between markers is data."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from benches import chart, truth
from benches.bars import verdicts
from benches.cost import Row, summary
from benches.estimates import Middle
from benches.generators import GENERATORS
from benches.measuring import ROOT
from benches.results import Claim, Results
from benches.works import FLOW, FRESH, GET, POST, TLS, WORKS, Work, chosen

DOCS = ROOT / "docs"
PAGE, CHART = "benchmarks.md", "images/benchmarks.svg"
ALONE = "–"  # not measured, or it cannot do it
CHARTED = ("get-1", "get-100", "get-1000", "post-100", "tls-100", "fresh-100", "flow-100")
GROUPS: Sequence[tuple[str, Sequence[Work]]] = (
    ("GET", GET),
    ("POST with two random numbers", POST),
    ("GET over TLS", TLS),
    ("A new connection for each request", FRESH),
    ("A flow of five steps", FLOW),
)


def write(results: Results, docs: Path = DOCS) -> list[Path]:
    """Write page and chart again; gives what was written."""
    rows = summary(results, WORKS, GENERATORS)
    page, picture = docs / PAGE, docs / CHART
    page.write_text(filled(page.read_text(), results))
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_text(chart.svg(rows, chosen(CHARTED)))
    return [page, picture]


def filled(text: str, results: Results) -> str:
    """The page with every block made from the data.

    Raises:
        ValueError: A marker names no block, or a block has no marker.
    """
    rows = summary(results, WORKS, GENERATORS)
    blocks: dict[str, Callable[[], str]] = {
        "picture": lambda: picture(rows),
        "environment": lambda: environment(results),
        "bars": lambda: bars(results, rows),
        "cost": lambda: cost_tables(rows),
        "rates": lambda: rate_tables(rows),
        "truth": lambda: truth_tables(results.claims),
        "commands": lambda: commands(results),
    }
    marked = re.findall(r"<!-- data: (\w+) -->", text)
    if sorted(marked) != sorted(blocks):
        raise ValueError(f"markers {sorted(marked)}, blocks {sorted(blocks)}")
    for name, block in blocks.items():
        begin, end = f"<!-- data: {name} -->", "<!-- end -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        made = f"{begin}\n\n{block().strip()}\n\n{end}"
        text = pattern.sub(lambda _, made=made: made, text)  # type: ignore[misc]
    return text


def picture(rows: Sequence[Row]) -> str:
    """The chart, when there is something in it."""
    return f"![CPU per request of each generator, less is better]({CHART})" if rows else ""


def environment(results: Results) -> str:
    """The machine and versions of the measurement, and the disturbance during it."""
    about = results.machine
    first, last = results.sets[0]["began"], results.sets[-1].get("ended", results.sets[-1]["began"])
    virtual = "virtual " if about["hypervisor"] else ""
    lines = [
        f"Measured {first} to {last}, commit {results.subject['commit']}, release build.",
        (
            f"{about['processors']} {virtual}processors ({about['processor']}), {about['memory_gib']} GiB, "
            f"{about['distribution']}, kernel {about['kernel']}, {about['congestion_control']}, loopback."
        ),
    ]
    waits = sorted(cost.marginal.waited for cost in results.cost if cost.left_out is None)
    if waits:
        middle, most = waits[len(waits) // 2], waits[-1]
        lines.append(
            f"Some task of the machine waited for a processor during {middle:.0%} of a measurement in the "
            f"median and {most:.0%} at most (pressure stall information; threads of a generator that share "
            "its core count too)."
        )
        most_stolen = max(cost.marginal.stolen for cost in results.cost if cost.left_out is None)
        lines.append(f"The machine's host gave at most {most_stolen:.0%} of its processor time to others.")
    left_out = sum(cost.left_out is not None for cost in results.cost)
    failed = sum(len(series.get("failed", ())) for series in results.sets)
    lines.append(f"{len(results.cost)} measurements, {left_out} of them left out; {failed} runs failed.")
    if counts := books(results):
        lines.append(counts)
    versions: dict[str, str] = {}
    for series in results.sets:
        versions |= {name: version for name, version in series["versions"].items() if version}
    lines.append(f"Versions: {'; '.join(version for version in versions.values())}.")
    return "\n".join(lines)


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
    return _tables(rows, lambda row: f"{_ratio(row.to_peer)}{row.cpu_us.value:.1f} µs", "CPU per request")


def rate_tables(rows: Sequence[Row]) -> str:
    """Requests per second, and how busy both sides were."""

    def cell(row: Row) -> str:
        return f"{row.requests_per_s.value / 1e3:.1f}k ({row.busy_generator:.2f}/{row.busy_server:.2f})"

    return _tables(rows, cell, "requests/s (share of a core used by generator/server)")


def _tables(rows: Sequence[Row], cell: Callable[[Row], str], what: str) -> str:
    at = {(row.work, row.generator): row for row in rows}
    parts = []
    for title, works in GROUPS:
        measured = [work for work in works if any(row.work == work.name for row in rows)]
        if not measured:
            continue
        heads = [f"{work.connections:,} connections" for work in measured]
        heads = [
            head.replace("1 connections", "1 connection") if head[:2] == "1 " else head for head in heads
        ]
        lines = [f"**{title}**, {what}:", "", f"| | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
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
