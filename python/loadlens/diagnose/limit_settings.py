"""Lines of a service's files, command line and environment that may set the number that limits it.

A finding gives the number: so many places, so many per second, or the time of a time-out. A line counts if
this number follows a word for such a setting. That connections are closed is a setting without a number.
Lines of the command line, the environment, and files in which the service's threads were come first; other
files count if these have none. More than two lines of one finding name none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from loadlens.model.finding import Finding, Grade, Setting
from loadlens.model.stacks import CLOSING, SettingPlace, SourceLine, StackSamples, short_name

MOST: Final = 2  # of a finding
MOST_IN_ALL: Final = 3
_NUMBER: Final = re.compile(
    r"(?<![\w.])\d[\d_]*(?:\.\d+)?(?=(?:[ui]\d\d)?(?![\w.]))(?!\s*(?:[*%]|(?:ms|sec|min|h|kb|mb|gb)\b))"
    r"|(?<==)\d+(?=r/s)",  # of nginx
    re.IGNORECASE,
)
_WORDS: Final[Mapping[str, re.Pattern[str]]] = {
    "places": re.compile(
        r"max|limit|size|pool|worker|thread|conn|concurr|parallel|simultan|semaphore|permit|slot|capacity|executor|"
        r"\bplaces\b|"
        r"in.?flight|at.?once|lanes|jobs|processes|channel|buffer_unordered|chan\b|-w\b|\w+(ers|ors|ets|ees)\s*[:=(]",
        re.IGNORECASE,
    ),
    "rate": re.compile(
        r"rate|rps|qps|per.?s|limit|quota|tokens|permits|allow|reservoir|points|bandwidth|pacer|throttl",
        re.IGNORECASE,
    ),
    "pace": re.compile(
        r"(?<![a-z])rate|rps|qps|per[-_ ]?s(?:ec(?:ond)?s?)?(?![a-z])|(?<=[a-z])Rate|pacer", re.IGNORECASE
    ),
    "backlog": re.compile(
        r"backlog|listen|queue|accept|somaxconn|ServerSocket|HttpServer\.create", re.IGNORECASE
    ),
    "processes": re.compile(
        r"(?<![a-z])workers?\W|WEB_CONCURRENCY|processes|instances|max_children|^-[wi] ", re.IGNORECASE
    ),
    "files": re.compile(r"nofile|ulimit|files|descriptor|fds", re.IGNORECASE),
}
_TIME: Final = re.compile(  # number and unit
    r"(?<![\w.])(\d[\d_]*(?:\.\d+)?|\.\d+)(?:_?[ui]\d\d|L)?(?:\s*(ms|s)(?!\w))?(?![\w]|\.\d)", re.IGNORECASE
)
_TIMED: Final = re.compile(
    r"time_?out|deadline|duration|millis|sec(ond)?s?\b|_m?s\b|patience|\.(get|poll|await|wait)\(",
    re.IGNORECASE,
)
_UNIT_BEHIND: Final = re.compile(
    r"\s*(?:\*\s*time\.|,\s*TimeUnit\.|\.)(milli|sec)(?:second|s|onds?)?", re.IGNORECASE
)
_OTHER_TIME: Final = re.compile(  # nearest before a number: of another time
    r"(interval|delay|ttl|age|period|keep_?alive\w*|minutes?|hours?|days?|retr(y|ies)\w*)\W*$", re.IGNORECASE
)
_OTHER_UNIT: Final = re.compile(r"\s*(min|hour|h\b|m\b|\*(?!\s*time\.(milli|sec))|days?)", re.IGNORECASE)
_OTHER: Final = re.compile(  # the name of another number than a limit of what may be at work
    r"time_?out|ttl|interval|seconds|millis|_ms$|_s$|delay|(?<!im)(?<!ex)(?<!sup)port$|version$|bytes|retr(y|ies)|"
    r"attempts|duration|length|depth|age$|wait|header|max_requests|page_?size|chunk|batch|min_?(size|idle)|"
    r"termination|(?-i:^LIMIT$)",
    re.IGNORECASE,
)
_OTHER_RATE: Final = re.compile(  # shares, prices and sampling
    r"(vat|tax|fee|interest|exchange|discount|tariff|sampl\w*|frame|bit|error|hit|miss|success|fail\w*|trace\w*)"
    r"[_ -]?rates?",
    re.IGNORECASE,
)


def places(stacks: StackSamples, limits: Iterable[Finding]) -> tuple[SettingPlace, ...]:
    """Return the lines that may set the numbers of the limits, those of the weightiest first; none: not seen.

    Args:
        stacks: Of the highest level.
        limits: Findings of limits, the weightiest first.
    """
    settings = (f.setting for f in limits if f.setting is not None and f.grade >= Grade.PROBABLE)
    every = (place for each in settings for place in lines_of(stacks.settings, each, stacks.own_files))
    return tuple(dict.fromkeys(every))[:MOST_IN_ALL]


def lines_of(
    lines: Sequence[SourceLine], setting: Setting, own_files: Iterable[str] = ()
) -> tuple[SettingPlace, ...]:
    """Return the lines that may set a number, two at most; none: there is no line, or there are more.

    Args:
        lines: Of the service's files, command lines and environment.
        setting: The number.
        own_files: In which the service's threads were; their lines come first.
    """
    ends = tuple(f"/{file.lstrip('/')}" for file in own_files)
    near: list[tuple[str, SourceLine]] = []
    others: list[tuple[str, SourceLine]] = []
    for line in lines:
        number = next(_numbers(setting, line.text), None)
        if number is not None:
            is_near = not line.line or f"/{line.file}".endswith(ends)
            (near if is_near else others).append((number, line))
    best, files = near or others, {line.file for line in lines if line.line}
    return tuple(_place(number, line, files) for number, line in best) if len(best) <= MOST else ()


def _numbers(setting: Setting, text: str) -> Iterator[str]:
    """Yield the numbers of a line that are the setting's, behind a word for it; empty: it has none."""
    if setting.kind == "closing":
        yield from [""] if CLOSING.search(text) else []
        return
    if setting.kind == "timeout":
        yield from _times(setting, text)
        return
    begin = 0
    for match in _NUMBER.finditer(text):
        before, begin = text[begin : match.start()], match.end()
        is_near = setting.low <= float(match[0].replace("_", "")) <= setting.high
        is_share = setting.kind == "pace" and _OTHER_RATE.search(before)
        if is_near and not is_share and _WORDS[setting.kind].search(before) and not _is_other(before):
            yield match[0]


def _times(setting: Setting, text: str) -> Iterator[str]:
    """Yield the numbers of a line that are its seconds, or milliseconds, next to a word for a time."""
    begin = 0
    for match in _TIME.finditer(text):
        number, unit = float(match[1].replace("_", "")), match[2] or ""
        before, after, begin = text[begin : match.start()], text[match.end() :], match.end()
        if _OTHER_TIME.search(before) or _OTHER_UNIT.match(after):
            continue
        behind = _UNIT_BEHIND.match(after)
        unit = unit or (behind[1] if behind is not None else "")
        factors = (1e-3,) if unit.lower().startswith("m") else (1.0,) if unit else (1.0, 1e-3)
        is_time = bool(unit or _TIMED.search(before))
        if is_time and any(setting.low <= number * factor <= setting.high for factor in factors):
            yield match[0].strip()


def _is_other(before: str) -> bool:
    """True if the name nearest to a number is that of another one, unless it is of so many per second."""
    names = re.findall(r"[A-Za-z_]\w*", before)
    return bool(names and _OTHER.search(names[-1]) and "per" not in names[-1].lower())


def _place(number: str, line: SourceLine, files: Collection[str]) -> SettingPlace:
    where = f"at {short_name(line.file, files)}:{line.line}" if line.line else line.file
    text = f"{number} may be set {where}" if number else f"connections may be closed {where}"
    return SettingPlace(number, line.file, line.line, line.text, text)
