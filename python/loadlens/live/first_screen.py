"""The first screen of the page in lines: load, generator and service in the last seconds, levels, cases.

Pure functions of what `follow` knows; every line fits into 79 columns, or into fewer on request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from loadlens.follow.runs import Cell
from loadlens.follow.service import Course
from loadlens.follow.trial import Recent
from loadlens.live.screen import WIDTH, health, sparkline
from loadlens.model.trial import TrialStatus
from loadlens.present import numbers, words

PER_SECOND: Final = numbers.scale("1/s")
LABEL: Final = 13  # columns of `  per second `
CELL: Final = 16
MOST_LOADS = 2  # whose response times are shown
MOST_COURSES = 8
COURSE, NARROWEST_COURSE = 38, 27  # columns of a series, at most and where two share a line
COURSE_VALUE = 9
BAR = 12
LEVELS = 76  # columns of levels with their bars
STATES: Final[Mapping[str, str]] = {
    "planned": "○ planned",
    "running": "▶ runs",
    TrialStatus.COMPLETE.value: "● valid",
    TrialStatus.INVALID.value: "■ invalid",
    TrialStatus.ABORTED.value: "▲ stopped early",
    TrialStatus.EXPLORATORY.value: "▲ exploratory",
}


class _Row(NamedTuple):
    """One line on the load, with a course over time if it has one."""

    label: str
    cells: Sequence[str]
    course: Sequence[float | None] = ()


def load_lines(recent: Recent, columns: int = WIDTH) -> list[str]:
    """Return rates, response times, requests in flight, failures and the generator's state."""
    lines = []
    for row in _rows(recent.load):
        label = f"  {words.cut(words.plain(row.label), LABEL - 3):<{LABEL - 2}}"
        line = f"{label}{''.join(f'{cell:<{CELL}}' for cell in row.cells)}"
        if len(line) > columns:
            line = f"{label}{'  '.join(row.cells)}"
        points = row.course[-max(0, columns - len(line) - 1) :] if len(line) + 1 < columns else ()
        lines.append(f"{line} {sparkline(points, from_zero=True)}".rstrip())
    return lines


def in_one_line(recent: Recent) -> str:
    """Return the last second as one line, for logs."""
    rows = [f"{row.label} {', '.join(row.cells)}" for row in _rows(recent.load)]
    inside = [course for course in recent.service if course.newest is not None][:MOST_COURSES]
    return "; ".join([*rows, *(f"{course.name} {_value(course.newest, course.unit)}" for course in inside)])


def _rows(load: Mapping[str, Any]) -> list[_Row]:
    shown = [at for at, phase in enumerate(load["points"]["phase"]) if phase != "drain"]

    def course(columns: Mapping[str, Any], name: str) -> list[float | None]:
        return [columns[name][at] for at in shown]

    loads = [stream for stream in load["streams"] if stream["role"] == "load"]
    rates = {
        name: _summed([course(stream, f"{name}_per_s") for stream in loads])
        for name in ("due", "sent", "answered")
    }
    in_flight = _summed([course(stream, "in_flight") for stream in loads])
    sent = sum(stream["totals"]["issued"] for stream in loads)
    not_sent = sum(stream["totals"]["dropped"] + stream["totals"]["waiting"] for stream in loads)
    rows = [
        _Row("per second", [f"{n} {_value(_last(of), '1/s')}" for n, of in rates.items()], rates["answered"])
    ]
    probes = [stream for stream in load["streams"] if stream["role"] != "load"]
    for stream in [*loads[:MOST_LOADS], *probes[:1]]:
        label = "probe" if stream in probes else "response" if len(loads) == 1 else stream["name"]
        times = {name: course(stream, f"{name}_s") for name in ("p50", "p95", "p99")}
        highest = next((of for of in reversed(times.values()) if any(of)), times["p50"])
        rows.append(_Row(label, [f"{name} {_time(_last(of))}" for name, of in times.items()], highest))
    counts = [f"in flight {_value(_last(in_flight), '')}", f"sent {numbers.count(sent)}"]
    rows.append(_Row("requests", [*counts, f"not sent {numbers.count(not_sent)}"], in_flight))
    rows.append(_Row("failures", [_failures(loads)]))
    own = load["generator"]
    busy, late_s = _last(course(own, "busy")), _last(course(own, "lag_p99_s"))
    rows.append(_Row("generator", [health(busy or 0.0, late_s).replace("generator ", "")]))
    return rows


def service_lines(courses: Sequence[Course], columns: int = WIDTH) -> list[str]:
    """Return what the service did, two series in a line if there is room."""
    shown = [course for course in courses if course.newest is not None][:MOST_COURSES]
    per_line = 2 if (columns - 3) // 2 >= NARROWEST_COURSE else 1
    width = min(COURSE, (columns - 3) // 2 if per_line == 2 else columns - 2)
    points = 7 if width == COURSE else 4
    name = width - COURSE_VALUE - 1 - points
    cells = [
        f"{words.cut(words.plain(course.name), name):<{name}}"
        f"{_value(course.newest, course.unit):>{COURSE_VALUE}} "
        f"{sparkline(list(course.values[-points:]), from_zero=True):<{points}}"
        for course in shown
    ]
    return [f"  {' '.join(cells[at : at + per_line])}".rstrip() for at in range(0, len(cells), per_line)]


def level_lines(
    levels: Sequence[Mapping[str, Any]], cells: Sequence[Cell], rows: int, columns: int = WIDTH
) -> list[str]:
    """Return the levels of a search with their figures, the highest ones if there is no room for all.

    Args:
        levels: As `RunState.levels` has them.
        cells: The planned trials.
        rows: Most lines.
        columns: Width; there are no bars where it is small.
    """
    if not levels or rows < 2:
        return []
    named, bars, wide = (15, BAR, 13) if columns >= LEVELS else (12, 0, 11)
    most = max((_rate(level) or 0.0 for level in levels), default=0.0)
    lines = [f"  {'level':<{named}}{'throughput':<{bars + 12}}{'p50':<{wide}}{'p99':<{wide}}"]
    for level in levels[-(rows - 1) :]:
        last = [cell for cell in cells if cell.case == level["case"]][-1:]
        state = STATES.get(last[0].state, last[0].state) if last else ""
        figures = level["figures"][-1] if level["figures"] else None
        rate = _rate(level)
        bar = "█" * round(bars * (rate or 0.0) / most) if most else ""
        texts = (
            ["", "", ""]
            if figures is None
            else [
                _figure(figures[name], unit)
                for name, unit in (("throughput_per_s", "1/s"), ("p50_s", "s"), ("p99_s", "s"))
            ]
        )
        name = f"{words.cut(words.plain(level['name']), named - 1):<{named}}"
        times = f"{texts[1]:<{wide}}{texts[2]:<{wide}}"
        lines.append(f"  {name}{bar:<{bars}}{texts[0]:>10}  {times}{state}".rstrip())
    return lines


def grid_lines(cells: Sequence[Cell], names: Mapping[str, str], rows: int, columns: int = WIDTH) -> list[str]:
    """Return the cases of a study as a grid that fills: a line per case, or per block where cases are many.

    Args:
        cells: The planned trials.
        names: Of cases, by slug.
        rows: Most lines.
        columns: Width.
    """
    cases = list(dict.fromkeys(cell.case for cell in cells))
    blocks = sorted({cell.block for cell in cells})
    glyph = {(cell.case, cell.block): STATES.get(cell.state, "■")[0] for cell in cells}
    if len(cells) < 2 or rows < 1:
        return []
    if len(cases) <= rows:
        room = max(8, columns - 3 - len(blocks))
        return [
            f"  {''.join(glyph.get((case, block), ' ') for block in blocks)} "
            f"{words.cut(words.plain(names.get(case, case)), room)}"
            for case in cases
        ]
    label = len(f"block {blocks[-1]} ")
    lines = [
        f"  {f'block {block}':<{label}}{''.join(glyph.get((case, block), ' ') for case in part)}".rstrip()
        for block in blocks
        for part in _parts(cases, columns - 2 - label)
    ]
    return lines if len(lines) <= rows else [f"  {_counted(cells)}"]


def _failures(loads: Sequence[Mapping[str, Any]]) -> str:
    kinds: Counter[str] = Counter()
    for stream in loads:
        kinds.update(stream["totals"]["failed_by"])
        kinds.update({name: stream["totals"][name] for name in ("unexpected_status", "check_failed")})
    parts = [
        f"{words.outcome(kind)} {numbers.count(number)}" for kind, number in kinds.most_common() if number
    ]
    return f"▲ {' · '.join(parts)}" if parts else "none"


def _summed(columns: Sequence[Sequence[float | None]]) -> list[float | None]:
    return [sum(value for value in values if value is not None) for values in zip(*columns, strict=True)]


def _last(values: Sequence[float | None]) -> float | None:
    return values[-1] if values else None


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "none"
    whole = unit == "" and float(value).is_integer()
    return numbers.count(value) if whole else numbers.with_unit(value, unit)


def _time(value: float | None) -> str:
    return "too few" if value is None else numbers.with_unit(value, "s")


def _rate(level: Mapping[str, Any]) -> float | None:
    return level["figures"][-1]["throughput_per_s"]["value"] if level["figures"] else None


def _figure(figure: Mapping[str, Any], unit: str) -> str:
    if figure["value"] is None:
        return "undecided"
    return f"{numbers.with_unit(figure['value'], unit)}{' ○' if figure['marked'] else ''}"


def _counted(cells: Sequence[Cell]) -> str:
    states = Counter(STATES.get(cell.state, f"■ {cell.state}") for cell in cells)
    return " · ".join(f"{numbers.count(number)} {state}" for state, number in states.most_common())


def _parts(cases: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for at in range(0, len(cases), size):
        yield cases[at : at + size]
