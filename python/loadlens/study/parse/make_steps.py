"""Makes the requests of a case from the keys of steps, and checks templates, files and patterns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loadlens.model.study import Probe
from loadlens.model.workload import (
    Auth,
    Body,
    Check,
    Connection,
    Extract,
    Group,
    Open,
    Scenario,
    Source,
    Step,
)
from loadlens.study.parse.case_values import CaseValues
from loadlens.study.parse.schema import At, Fields
from loadlens.study.tree import Node, Row, Tree, row_at

METHODS: Final = ("get", "post", "put", "patch", "delete")
MOST_REQUESTS: Final = 60_000  # of one iteration; the engine takes 65,000 for all scenarios of a mix
TIMEOUT_NS: Final = 30_000_000_000
_PROBE_RATE_PER_S: Final = 20.0
_MOST_BODY_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Grouped:
    """Steps and groups that belong together."""

    items: tuple[Step | Grouped, ...]
    name: str
    repeat: int


def group(fields: Fields, node: Tree, at: At) -> Grouped:
    """Steps that belong together; they may be repeated."""
    return Grouped(fields["steps"], fields.get("group", ""), fields.get("repeat", 1))


def scenario(name: str, weight: float, items: Iterable[Step | Grouped], line: int, at: At) -> Scenario:
    """One scenario of a mix, its groups as spans of its steps."""
    steps: list[Step] = []
    groups: list[Group] = []

    def add(items: Iterable[Step | Grouped]) -> None:
        for item in items:
            if isinstance(item, Step):
                steps.append(item)
                continue
            place, first = len(groups), len(steps)
            groups.append(Group("", 0, 0))  # outer before inner: its place is kept
            add(item.items)
            groups[place] = Group(item.name, first, len(steps) - first, item.repeat)

    add(items)
    made = Scenario(name, weight, tuple(steps), tuple(groups))
    if made.requests > MOST_REQUESTS:
        message = f"{name} repeats to {made.requests:,} requests an iteration, at most {MOST_REQUESTS:,}"
        at.item(0).fault(line, message, "repeat less, and let users do more iterations")
    return made


def step(fields: Fields, node: Tree, at: At) -> Step:
    """One request."""
    case = _case(at)
    method = next((key for key in METHODS if key in node.items), "get")
    path, headers = fields.get(method, "/"), fields.get("headers", {})
    _check_template(path, node, method, at)
    for name, value in headers.items():
        _check_template(value, node.items["headers"], name, at.of(node, "headers"), in_header=True)
    made = Step(
        name=fields.get("name") or at.key.split(".")[1].partition("[")[0],  # scenarios.NAME[0]
        method=method.upper(),
        path=path,
        headers=tuple(headers.items()),
        auth=_auth(fields.get("auth"), headers, node, at),
        body=_body(fields, node, at),
        expect=tuple(status for part in fields.get("expect", ()) for status in part),
        **{key: fields[key] for key in ("think",) if key in fields},
        checks=fields.get("check", ()),
        extract=tuple(Extract(name, source) for name, source in fields.get("extract", {}).items()),
    )
    case.extracted += (extract.name for extract in made.extract)
    return made


def probe(fields: Fields, node: Tree, at: At) -> Probe:
    """A thin open stream of one step."""
    case = _case(at)
    case.stream, case.extracted = at.name, []
    fields.setdefault("name", at.name)
    law = {"rate_per_s": fields.get("rate", _PROBE_RATE_PER_S), "arrivals": fields.get("arrivals", "poisson")}
    return Probe(
        name=at.name,
        scenario=Scenario(at.name, 1.0, (step(fields, node, at),)),
        workload=Open(**law, max_in_flight=fields.get("max_in_flight", 1000)),
        connection=fields.get("connection", Connection("new")),
        timeout_ns=fields.get("timeout", TIMEOUT_NS),
    )


def checks(fields: Fields, node: Tree, at: At) -> tuple[Check, ...]:
    """Demands on an answer, kind by kind."""
    for index, (pattern, item) in enumerate(zip(fields.get("regex", ()), row_at(node, "regex"), strict=True)):
        below = at.of(node, "regex")
        below = below.item(index) if isinstance(node.items["regex"], Row) else below
        _check_pattern(pattern, None, item.line, below)

    def paths(kind: Any) -> list[Check]:
        return [Check(kind, path=path, bounds=bounds) for path, bounds in fields.get(kind, {}).items()]

    return (
        *(Check("json", path=path, equals=value) for path, value in fields.get("json", {}).items()),
        *(Check("header", name=name, equals=value) for name, value in fields.get("header", {}).items()),
        *(Check("contains", text=text) for text in fields.get("contains", ())),
        *(Check("exists", path=path) for path in fields.get("exists", ())),
        *(Check("absent", path=path) for path in fields.get("absent", ())),
        *paths("number"),
        *paths("count"),
        *(Check("regex", pattern=pattern) for pattern in fields.get("regex", ())),
        *([Check("size", bounds=fields["size"])] if "size" in fields else ()),
        *([Check("latency", below_ns=fields["latency"])] if "latency" in fields else ()),
    )


def source(fields: Fields, node: Tree, at: At) -> Source:
    """Return the place in a response that a value is extracted from."""
    if "regex" in node.items:
        pattern, group = fields.get("regex", ""), fields.get("group")
        _check_pattern(pattern, group, node.items["regex"].line, at.of(node, "regex"))
        return Source("regex", pattern=pattern, group=group, header=fields.get("header"))
    if "json" in node.items:
        return Source("json", path=fields.get("json", ""))
    return Source("header", name=fields.get("header", ""))


def _case(at: At) -> CaseValues:
    assert at.case is not None, "requests are made case by case"
    return at.case


def _auth(own: Auth | None, headers: Mapping[str, str], node: Tree, at: At) -> Auth | None:
    """The step's own credentials, or the study's; a header of the step wins over the study's."""
    has_header = any(name.lower() == "authorization" for name in headers)
    if own is None:
        return None if has_header else _case(at).auth
    if own.kind != "none" and has_header:
        at.fault_of(node, "auth", "auth and an Authorization header in one step", "keep one of them")
    return None if own.kind == "none" else own


def _check_template(text: str, node: Node, key: str, at: At, *, in_header: bool = False) -> None:
    assert isinstance(node, Tree)
    if key in node.items:
        fault = _case(at).feeds.check(text, at.of(node, key), node.items[key].line, in_header=in_header)
        if fault is not None:
            hint = "{{uuid}}, {{word 12}} and values that earlier steps extract"
            at.fault_of(node, key, fault, hint)


def _check_pattern(text: str, group: int | None, line: int, at: At) -> None:
    templates = _case(at).feeds.files.templates
    fault = None if templates is None else templates.check_pattern(text, group)
    if fault is not None:
        at.fault(line, fault, "the syntax is that of Rust's regex crate: 'id=(\\d+)'")


def _body(fields: Fields, node: Tree, at: At) -> Body:
    if "json" in fields:
        for text in _texts_in(fields["json"]):
            _check_template(text, node, "json", at)
        return Body("json", value=fields["json"])
    if "body" in fields:
        _check_template(fields["body"], node, "body", at)
        return Body("text", text=fields["body"])
    return _file_body(Path(at.folder) / fields["file"], node, at) if "file" in fields else Body()


def _file_body(path: Path, node: Tree, at: At) -> Body:
    try:
        if not path.is_file():
            at.fault_of(node, "file", f"there is no file {path.name!r}", f"make {path}")
            return Body()
        if path.stat().st_size > _MOST_BODY_BYTES:
            message = f"{path.name!r} has {path.stat().st_size:,} bytes"
            at.fault_of(node, "file", message, "at most 64 MiB")
            return Body()
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        at.fault_of(node, "file", f"{path.name!r} cannot be read: {error}")
        return Body()
    return Body("file", path=str(path), digest=digest)


def _texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _texts_in(item)]
