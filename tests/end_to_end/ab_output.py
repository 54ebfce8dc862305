"""Output in ab's layout, from ab or from us: figures by label, and the layout without its figures."""

from __future__ import annotations

import re

OWN = "Loadlens on the same requests"  # below it nothing is of the other program
FIGURE = re.compile(r"\d+(\.\d+)?")


def results(stdout: str) -> list[str]:
    """The lines from `Benchmarking` to the end of ab's layout."""
    lines = stdout.partition(OWN)[0].rstrip("\n").splitlines()
    begins = next(place for place, line in enumerate(lines) if line.startswith("Benchmarking"))
    return lines[begins:]


def figures(stdout: str) -> dict[str, str]:
    """Text behind each label; repeated labels are numbered."""
    by_label: dict[str, str] = {}
    for line in results(stdout):
        label, colon, rest = line.partition(":")
        if colon and not label.startswith(" "):
            twice = f"{label} 2" if label in by_label else label
            by_label[twice] = rest.strip()
    return by_label


def number(stdout: str, label: str) -> float:
    """The first number behind a label."""
    figure = FIGURE.search(figures(stdout)[label])
    assert figure is not None, label
    return float(figure[0])


def layout(stdout: str) -> list[str]:
    """Each line with its figures taken out: digits as `#`, decimals one by one, columns by their width."""
    return [_shape(line) for line in _without_doubts(results(stdout))]


def _without_doubts(lines: list[str]) -> list[str]:
    """Without the two lines each of ab's warnings, which come and go with the spread of times."""
    doubts = {n for n, line in enumerate(lines) if line.startswith(("WARNING", "ERROR"))}
    return [line for n, line in enumerate(lines) if n not in doubts and n - 1 not in doubts]


def _shape(line: str) -> str:
    if line.startswith("Server Software:"):
        return "Server Software:        "  # not read by us
    if re.match(r"(Connect|Processing|Waiting|Total): +\d|^ +\d+% ", line):
        return _columns(line)
    return FIGURE.sub(lambda figure: "#" + "." * bool(figure[1]) + "d" * (len(figure[1] or ".") - 1), line)


def _columns(line: str) -> str:
    """A row of right-aligned figures: where each column ends, and how many decimals it has."""
    name = re.match(r"\D+|^ +\d+%", line)
    assert name is not None
    columns = FIGURE.finditer(line, name.end())
    ends = [f"{match.end()}:{len(match[1] or '.') - 1}" for match in columns]
    words = re.sub(r"[\d.]+", "", line[name.end() :]).split()
    return " ".join([name[0].strip(), *ends, *words])
