"""Draw the pictures of ARCHITECTURE.md and docs/concepts.md as SVG: `make docs` writes, a test compares them.

Positions are set by hand, on a canvas 900 wide. Rooms and crates come from pyproject.toml and the Cargo.toml
files. A text that does not fit its box, or a path that does not exist, is an error here and not on the page.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "images" / "architecture"
WIDTH = 900
PADDING = 8
LINE = 16  # height of a line of small text

STYLE = """
  .page { fill: #ffffff; stroke: #d1d9e0 }
  text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
  .name { font-size: 14px; font-weight: 600 }
  .small { font-size: 12px; fill: #59636e }
  .code { font-family: ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", monospace; font-size: 11.5px }
  .middle { text-anchor: middle }
  .end { text-anchor: end }
  .box { stroke-width: 1.2 }
  .python { fill: #ddf4ff; stroke: #54aeff }
  .rust { fill: #fff1e5; stroke: #fb8f44 }
  .disk { fill: #dafbe1; stroke: #4ac26b }
  .other { fill: #f6f8fa; stroke: #afb8c1 }
  .region { fill: none; stroke: #afb8c1; stroke-dasharray: 4 4 }
  .band { fill: #f6f8fa }
  .rule { stroke: #d1d9e0; fill: none }
  .arrow { stroke: #59636e; fill: none; stroke-width: 1.4; marker-end: url(#head) }
  .back { stroke-dasharray: 5 4 }
  .mark { stroke: #cf222e; stroke-width: 1.4; stroke-dasharray: 3 3 }
  .tick { stroke: #59636e; fill: none }
  .python-dot { fill: #0969da }
  .rust-dot { fill: #bc4c00 }
  .head { fill: #59636e }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #3d444d }
    text { fill: #f0f6fc }
    .small { fill: #9198a1 }
    .python { fill: #0c2d4a; stroke: #316dca }
    .rust { fill: #3d2413; stroke: #bd561d }
    .disk { fill: #12361f; stroke: #347d39 }
    .other { fill: #1c2129; stroke: #656c76 }
    .region { stroke: #656c76 }
    .band { fill: #151b23 }
    .rule { stroke: #3d444d }
    .arrow { stroke: #9198a1 }
    .mark { stroke: #f85149 }
    .tick { stroke: #9198a1 }
    .python-dot { fill: #4493f8 }
    .rust-dot { fill: #db6d28 }
    .head { fill: #9198a1 }
  }
"""
HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path class="head" d="M0,0.5 L7.5,4 L0,7.5 z"/></marker>'
)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with a name and small lines below it; arrows begin and end at its sides."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> tuple[float, float]:
        """Middle of the left side."""
        return self.x, self.y + self.height / 2

    @property
    def right(self) -> tuple[float, float]:
        """Middle of the right side."""
        return self.x + self.width, self.y + self.height / 2

    def top(self, share: float = 0.5) -> tuple[float, float]:
        """Point on the upper side, `share` of the width from the left."""
        return self.x + share * self.width, self.y

    def bottom(self, share: float = 0.5) -> tuple[float, float]:
        """Point on the lower side, `share` of the width from the left."""
        return self.x + share * self.width, self.y + self.height


@dataclass(slots=True)
class Drawing:
    """SVG elements in the order in which they are painted."""

    height: int
    title: str
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, words: str, style: str = "small") -> None:
        """Write one line; `y` is its baseline."""
        self.parts.append(f'<text class="{style}" x="{x:g}" y="{y:g}">{escape(words)}</text>')

    def box(self, x: float, y: float, width: float, kind: str, name: str, *lines: str) -> Box:
        """Draw a box as high as its lines: its name, then small text; a line in backticks is code."""
        height = 2 * PADDING + LINE + LINE * len(lines) - 2
        self.parts.append(
            f'<rect class="box {kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>'
        )
        for number, line in enumerate((name, *lines)):
            is_code = line.startswith("`")
            style = "name" if number == 0 else "small code" if is_code else "small"
            words = line.strip("`")
            if width_of(words, style) > width - PADDING:
                raise ValueError(f"{words!r} is wider than its box of {width:g}")
            self.text(x + width / 2, y + PADDING + 12 + LINE * number, words, f"{style} middle")
        return Box(x, y, width, height)

    def bar(self, x: float, y: float, width: float, kind: str, words: str) -> None:
        """Draw a flat box with one line of small text: what runs from `x` on."""
        self.parts.append(
            f'<rect class="box {kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="34" rx="6"/>'
        )
        if width_of(words, "small") > width - PADDING:
            raise ValueError(f"{words!r} is wider than its bar of {width:g}")
        self.text(x + width / 2, y + 21, words, "small middle")

    def region(self, x: float, y: float, width: float, height: float, words: str) -> None:
        """Draw a dashed frame around boxes, with a label in its upper left corner."""
        self.parts.append(
            f'<rect class="region" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8"/>'
        )
        self.text(x + 10, y + 17, words)

    def arrow(self, *points: tuple[float, float], style: str = "") -> None:
        """Draw a line through the points with a head at its end."""
        path = " L".join(f"{x:g},{y:g}" for x, y in points)
        self.parts.append(f'<path class="arrow {style}" d="M{path}"/>'.replace(' "', '"'))

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str = "rule") -> None:
        """Draw a straight line."""
        self.parts.append(f'<path class="{style}" d="M{x1:g},{y1:g} L{x2:g},{y2:g}"/>')

    def rectangle(self, x: float, y: float, width: float, height: float, style: str) -> None:
        """Draw a filled rectangle without text."""
        self.parts.append(
            f'<rect class="{style}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3"/>'
        )

    def legend(self, x: float, y: float, *kinds: tuple[str, str]) -> None:
        """Explain the colours, from left to right."""
        for kind, words in kinds:
            self.parts.append(
                f'<rect class="box {kind}" x="{x:g}" y="{y - 10:g}" width="12" height="12" rx="3"/>'
            )
            self.text(x + 18, y, words)
            x += 18 + width_of(words, "small") + 22

    def svg(self) -> str:
        """Return the whole file."""
        size = f'viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" height="{self.height}"'
        page = f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{self.height - 1}" rx="8"/>'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
        body = "\n".join(self.parts)
        title = f"<title>{escape(self.title)}</title>"
        note = "<!-- made by `make docs` from tools/drawings.py -->"
        return (
            f"{head}\n{note}\n{title}\n<style>{STYLE}</style>\n<defs>{HEAD}</defs>\n{page}\n{body}\n</svg>\n"
        )


def width_of(words: str, style: str) -> float:
    """Return the width of a text in pixels, estimated from DejaVu Sans, the widest of the fonts."""
    if "code" in style:
        return 7.0 * len(words)
    narrow = sum(letter in "iljtfr.,:;'|()[] " for letter in words)
    return (9.7 if style.startswith("name") else 7.4) * (len(words) - 0.45 * narrow)


def data_flow() -> Drawing:
    """Draw what becomes of a study: trials, the record, figures, findings, pages."""
    it = Drawing(520, "Data flow: a study becomes trials, trials become a record, a record becomes reports")
    file = it.box(20, 45, 104, "disk", "study file", "YAML")
    study = it.box(164, 37, 124, "python", "study", "parses, checks,", "plans the cases")
    run = it.box(328, 37, 124, "python", "run", "trials in", "random order")
    search = it.box(328, 137, 124, "python", "search", "picks the next", "level of load")
    it.region(492, 14, 388, 190, "one trial")
    testbed = it.box(508, 40, 132, "python", "testbed", "starts services")
    engine = it.box(508, 94, 132, "rust", "engine", "makes the load")
    signals = it.box(508, 148, 132, "python", "signals", "runs monitors")
    service = it.box(704, 86, 160, "other", "service under test", "with its database,", "balancer, proxy")
    record = it.box(
        20, 242, 860, "disk", "record on disk", "study, plan, requests, histograms, readings, logs, digests"
    )
    it.arrow(file.right, study.left)
    it.arrow(study.right, run.left)
    for part in (testbed, engine, signals):
        it.arrow(run.right, (472, run.right[1]), (472, part.left[1]), part.left)
    it.arrow(testbed.right, (service.top()[0], testbed.right[1]), service.top())
    it.arrow(engine.right, service.left)
    it.arrow(service.bottom(), (service.bottom()[0], signals.right[1]), signals.right)
    it.arrow(search.top(0.3), run.bottom(0.3), style="back")
    it.arrow(run.bottom(0.7), search.top(0.7), style="back")
    it.arrow(study.bottom(), (study.bottom()[0], record.y))
    it.arrow((signals.bottom()[0], 204), (signals.bottom()[0], record.y))

    measure = it.box(164, 334, 152, "python", "measure", "figures of trials,", "cases and curves")
    diagnose = it.box(356, 334, 124, "python", "diagnose", "rules: findings", "with evidence")
    whatif = it.box(520, 334, 124, "python", "whatif", "what a remedy", "would bring")
    report = it.box(684, 334, 196, "python", "report", "answer, tables, charts", "as one frozen object")
    notebook = it.box(20, 342, 104, "other", "notebook", "loadlens.open")
    it.arrow((notebook.top()[0], record.bottom()[1]), notebook.top())
    it.arrow((measure.top()[0], record.bottom()[1]), measure.top())
    it.arrow(measure.right, diagnose.left)
    it.arrow(diagnose.right, whatif.left)
    it.arrow(whatif.right, report.left)
    it.arrow(whatif.top(), (whatif.top()[0], record.bottom()[1]), style="back")
    it.text(whatif.top()[0] + 8, 314, "predictions of held-out cases, before they run")
    estimate = it.box(164, 430, 152, "python", "estimate", "quantiles, intervals")
    it.arrow(measure.bottom(0.4), estimate.top(0.4))
    it.arrow(estimate.top(0.6), measure.bottom(0.6))
    bus = 414
    for x, width, name, words in (
        (356, 124, "terminal", "colour or plain"),
        (490, 92, "JSON", "versioned"),
        (592, 112, "Markdown", "with charts"),
        (714, 166, "HTML page", "one file, no server"),
    ):
        page = it.box(x, 430, width, "other", name, words)
        it.arrow(report.bottom(), (report.bottom()[0], bus), (page.top()[0], bus), page.top())
    it.legend(
        20,
        502,
        ("python", "Python, per trial or per study"),
        ("rust", "Rust, per request"),
        ("disk", "files"),
        ("other", "other programs, outputs"),
    )
    it.arrow((690, 498), (730, 498), style="back")
    it.text(738, 502, "only when needed")
    return it


def rooms() -> Drawing:
    """Draw the table of allowed imports, and what each crate is built on."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    table: dict[str, list[str]] = settings["tool"]["loadlens"]["rooms"]
    rust = crates()
    cell, top = 17, 124
    size = cell * max(len(table), len(rust))
    it = Drawing(top + size + 44, "Rooms of the Python package and crates, with what each may import")
    it.text(20, 30, "Rooms of python/loadlens", "name")
    it.text(20, 48, "A dot: the row's room may import the column's.")
    it.text(556, 30, "Crates", "name")
    it.text(556, 48, "A dot: the row's crate is built on the column's.")
    _matrix(it, 104, top, cell, _lowest_first(table), table, "python")
    _matrix(it, 640, top, cell, _lowest_first(rust), rust, "rust")
    x, y = 104 + cell * len(table) - 8, top + cell * len(table) - 44
    for number, words in enumerate(
        ("Nothing here: no room imports", "a higher one, except that cli", "offers the verbs of compat.")
    ):
        it.text(x, y + LINE * number, words, "small end")
    it.text(20, it.height - 16, "The highest is on top. Rooms of one band do not import each other.")
    return it


def crates() -> dict[str, list[str]]:
    """Return every crate with our crates that it is built on, the lowest first, from the Cargo.toml files."""
    built_on = {}
    folder = ROOT / "crates"
    for path in sorted((*folder.glob("*/Cargo.toml"), *folder.glob("lab/*/Cargo.toml"))):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        ours = [name.removeprefix("loadlens-") for name in content["dependencies"] if "loadlens-" in name]
        built_on[content["package"]["name"].removeprefix("loadlens-")] = ours
    return {name: built_on[name] for name in TopologicalSorter(built_on).static_order()}


def _lowest_first(table: dict[str, list[str]]) -> dict[str, int]:
    """Return names with their levels, the lowest first: each is above all earlier names that it imports."""
    levels = {name: _depth(name, table) for name in table}
    return dict(sorted(levels.items(), key=lambda item: item[1]))


def _depth(name: str, table: dict[str, list[str]]) -> int:
    """Return the longest chain of imports below a name; an import of a later name of the table is no step."""
    order = list(table)
    below = [other for other in table[name] if order.index(other) < order.index(name)]
    return 1 + max((_depth(other, table) for other in below), default=-1)


def _matrix(
    it: Drawing,
    x: float,
    y: float,
    cell: float,
    levels: dict[str, int],
    table: dict[str, list[str]],
    style: str,
) -> None:
    """Draw a row and a column for each name; rows from the top down, columns from low to high."""
    names = list(levels)
    for row, name in enumerate(reversed(names)):
        at, steps = y + cell * row, len(names) - row
        if levels[name] % 2 == 0:
            it.rectangle(x - 84, at, 84 + cell * steps, cell, "band")
        it.text(x - 8, at + cell - 5, name, "small end")
        it.line(x, at, x + cell * steps, at)
        it.line(x + cell * steps, y, x + cell * steps, at + cell)
        it.rectangle(x + cell * (steps - 1) + 3, at + 3, cell - 6, cell - 6, f"box {style}")
        for column in (names.index(below) for below in table[name]):
            centre = x + cell * (column + 0.5)
            it.parts.append(f'<circle class="{style}-dot" cx="{centre:g}" cy="{at + cell / 2:g}" r="4"/>')
    it.line(x, y, x, y + cell * len(names))
    it.line(x, y + cell * len(names), x + cell, y + cell * len(names))
    for column, name in enumerate(names):
        at = x + cell * (column + 0.5) + 4
        it.parts.append(
            f'<text class="small" transform="translate({at:g},{y - 6:g}) rotate(-60)">{escape(name)}</text>'
        )


def one_trial() -> Drawing:
    """Draw what runs while one trial is made: processes and threads from top to bottom, time to the right."""
    it = Drawing(572, "Processes and clocks of one trial")
    t0, measured, drain, end = 392, 470, 690, 744
    phases = (
        (170, "services,", "data reset"),
        (290, "first", "reading"),
        (342, "engine", "starts"),
        (t0, "warm-up", ""),
        (measured, "measured part", ""),
        (drain, "drain", ""),
        (end, "last", "reading"),
        (796, "services", "end"),
        (880, "", ""),
    )
    for number, ((begin, first, second), (until, *_)) in enumerate(pairwise(phases)):
        if number % 2 == 0:
            it.rectangle(begin, 16, until - begin, 466, "band")
        it.text((begin + until) / 2, 32, first, "small middle")
        it.text((begin + until) / 2, 47, second, "small middle")
    it.line(t0, 56, t0, 500, "mark")
    it.region(12, 62, 876, 186, "process loadlens")
    lanes = (
        (88, "control thread", "Python"),
        (140, "engine threads", "Rust"),
        (192, "collector thread", "Rust"),
        (264, "keeper process", "one per testbed"),
        (318, "services", "processes under test"),
        (372, "monitor process", "one per trial"),
        (430, "record on disk", "one folder per trial"),
    )
    for y, name, words in lanes:
        it.text(24, y + 19, name, "name")
        it.text(24, y + 35, words)
    it.bar(170, 88, 172, "python", "starts services, monitors")
    it.bar(350, 88, 36, "python", "plan")
    it.bar(t0, 88, end - t0, "python", "polls progress every 0.1 s, can stop the load")
    it.bar(end + 4, 88, 132, "python", "last reading, seal")
    it.bar(370, 140, end - 370, "rust", "due? send. receive? record. One loop per thread, no lock")
    it.bar(370, 192, end - 370, "rust", "every 20 ms: merges interval sets, writes live files")
    it.bar(
        170, 264, 706, "python", "starts the services, drains their output, ends them when loadlens is gone"
    )
    it.bar(
        200, 318, 650, "other", "read from outside: /proc, cgroups, sockets; from inside: their own samples"
    )
    it.bar(
        290,
        372,
        506,
        "python",
        "one reading per second on a monotonic grid, one before and one after the load",
    )
    it.bar(214, 430, 76, "disk", "plan.json")
    it.bar(296, 430, 500, "disk", "live/: samples, connections, intervals.hlog, counters, readings")
    it.bar(802, 430, 78, "disk", "trial.json")
    for x in range(measured, drain + 1, 11):
        it.line(x, 176, x, 182, "tick")
    it.text(drain + 4, 186, "250 ms")
    for x in range(290, 797, 44):
        it.line(x, 408, x, 414, "tick")
    it.arrow((170, 500), (880, 500))
    it.text(24, 505, "one clock", "name")
    it.text(t0, 518, "t0", "name middle")
    it.text(
        170,
        538,
        "CLOCK_MONOTONIC in every process. t0 is 1 ms after all engine threads are ready. The record holds",
    )
    it.text(
        170,
        554,
        "nanoseconds since t0, and t0 itself as monotonic and as Unix time, to align the logs of services.",
    )
    return it


def one_number() -> Drawing:
    """Draw the way of one p99: every form it takes, and the file that gives it this form."""
    it = Drawing(460, "The way of one number: p99 from the recorder to the page")
    rows = (
        (
            20,
            "rust",
            ("response time", "done - due, one request", "crates/record/src/recorder/counting.rs"),
            ("Histogram", "3 digits, one per thread", "crates/record/src/histogram.rs"),
            ("IntervalSet", "250 ms, through a ring", "crates/record/src/interval.rs"),
            ("Collector", "all threads, one interval", "crates/record/src/collector.rs"),
        ),
        (
            220,
            "python",
            ("IntervalHistogram", "buckets and counts", "python/loadlens/record/histogram_log.py"),
            ("IntervalCounts", "of the measured part", "python/loadlens/measure/trial.py"),
            ("Interval", "p99 within one trial", "python/loadlens/estimate/within_trial.py"),
            ("Estimate", "over trials, or Undecided", "python/loadlens/measure/case.py"),
        ),
        (
            346,
            "python",
            ("MatrixCell", "case and metric", "python/loadlens/report/build/matrix.py"),
            ("Shown", "39.0 ms (35.4–43.6)", "python/loadlens/present/numbers.py"),
            ("CellView", "value, interval or reason", "python/loadlens/report/write/cells.py"),
            ("page", "HTML, Markdown, terminal", "python/loadlens/report/write/html"),
        ),
    )
    width, step = 200, 220
    drawn = []
    for y, kind, *stations in rows:
        boxes = []
        for column, (name, words, path) in enumerate(stations):
            x = 20 + step * column
            boxes.append(it.box(x, y, width, kind, name, words, f"`{_short(path, name)}`"))
        for first, second in pairwise(boxes):
            it.arrow(first.right, second.left)
        drawn.append(boxes)
    record = it.box(
        20, 134, 860, "disk", "record on disk", "intervals.hlog: a compressed histogram per interval"
    )
    it.arrow(drawn[0][-1].bottom(), (drawn[0][-1].bottom()[0], record.y))
    it.arrow((drawn[1][0].top()[0], record.bottom()[1]), drawn[1][0].top())
    end, start = drawn[1][-1].bottom(), drawn[2][0].top()
    it.arrow(end, (end[0], 316), (start[0], 316), start)
    it.legend(
        20,
        440,
        ("rust", "paths below crates/, without src"),
        ("python", "paths below python/loadlens/"),
    )
    return it


def _short(path: str, name: str) -> str:
    """Return the path as a box shows it; it must exist, and a type must be named in it."""
    place = ROOT / path
    if not place.exists() or (name[0].isupper() and name not in place.read_text(encoding="utf-8")):
        raise LookupError(f"no {name} in {path}: correct tools/drawings.py")
    return path.removeprefix("python/loadlens/").removeprefix("crates/").replace("/src/", "/")


def concepts() -> Drawing:
    """Draw how a study becomes experiments, cases and trials, with the file on the left."""
    it = Drawing(432, "A study has experiments, an experiment has cases, a case has trials")
    lines = (
        "entry: http://127.0.0.1:8080",
        "trials: 3",
        "probes:",
        "  health: {get: /health}",
        "experiments:",
        "  reading:",
        "    mix: read",
        "    load: {users: $users}",
        "    factors:",
        "      users: [1, 16]",
        "      pool: [2, 4]",
        "  writing:",
        "    ...",
    )
    it.rectangle(20, 40, 236, 24 + LINE * len(lines), "box disk")
    it.text(20, 28, "study.yaml", "name")
    for number, line in enumerate(lines):
        y = 62 + LINE * number
        it.parts.append(f'<text class="small code" xml:space="preserve" x="32" y="{y}">{escape(line)}</text>')
    it.text(300, 28, "experiments", "name")
    reading = it.box(300, 40, 140, "python", "reading", "users who read")
    it.box(300, 296, 140, "python", "writing", "users who write")
    it.text(500, 28, "cases", "name")
    it.text(700, 28, "trials, in blocks", "name")
    cases = []
    for number, (users, pool) in enumerate(((1, 2), (1, 4), (16, 2), (16, 4))):
        y = 40 + 62 * number
        case = it.box(500, y, 150, "python", f"users={users}, pool={pool}", "a level of each factor")
        cases.append(case)
        it.arrow(reading.right, (470, reading.right[1]), (470, case.left[1]), case.left)
        for block in range(3):
            x = 700 + 60 * block
            it.rectangle(x, y + 4, 48, 38, "box rust")
            order = ((3, 1, 4, 2), (2, 4, 3, 1), (1, 3, 2, 4))[block][number]
            it.text(x + 24, y + 28, str(order), "small middle")
        it.arrow(case.right, (698, case.right[1]))
    for block in range(3):
        it.text(724 + 60 * block, 300, f"block {block + 1}", "small middle")
    it.text(700, 322, "number: place in the block;")
    it.text(700, 338, "every block is shuffled")
    it.region(300, 360, 580, 56, "in every trial: start, reset, warm-up, measured part, drain, seal")
    it.text(310, 400, "The load runs, and alongside it the thin stream of each probe.")
    return it


PICTURES = {"data-flow": data_flow, "rooms": rooms, "one-trial": one_trial, "one-number": one_number}


def drawings() -> dict[Path, str]:
    """Return every drawing's file with what it should hold."""
    pictures = {FOLDER / f"{name}.svg": draw().svg() for name, draw in PICTURES.items()}
    return pictures | {FOLDER.parent / "concepts.svg": concepts().svg()}


def main() -> None:
    """Write the drawings."""
    for path, text in drawings().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
