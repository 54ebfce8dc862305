"""The text of a study: block style, comments where a reader would ask, values quoted where YAML needs it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from loadlens.draft import Draft, Request, origin_of, path_of
from loadlens.errors import visible

MODELINE: Final = "# yaml-language-server: $schema="
SCHEMA_FILE: Final = "loadlens.schema.json"
LADDER: Final = "[1, 4, 16]"
_PLAIN: Final = re.compile(r"[A-Za-z/$][\w/.,;:%+?=&$()-]*(?: [\w/.,;:%+?=&$()*-]+)*|\d+(?:\.\d+)?[a-z/]*")
_WORDS: Final = ("true", "false", "null", "yes", "no", "on", "off")


def text_of(draft: Draft, *, notes: Sequence[str] = ()) -> str:
    """The study.

    Args:
        draft: Usable requests.
        notes: Remarks for the head of the file.
    """
    remarks = [
        f"From {draft.source}. `loadlens check FILE` shows what will run, `loadlens run FILE` runs it.",
        f"For completion in an editor: loadlens schema > {SCHEMA_FILE}",
        *notes,
        *(f"Export {name} first: {what}." for name, what in draft.variables.items()),
        *(f"Left out: {sentence}." for sentence in draft.left_out),
    ]
    lines = [f"{MODELINE}{SCHEMA_FILE}", *map(_comment, remarks)]
    blocks = dict(draft.blocks)
    lines += block({key: blocks.pop(key) for key in ("services",) if key in blocks}, leaf=_as_read)
    lines += block({"entry": blocks.pop("entry", origin_of(draft.requests[0].url))}, leaf=_as_read)
    lines += [*block(blocks, leaf=_as_read), "scenarios:", "  session:  # what each user does, in this order"]
    names: dict[str, int] = {}
    for request in draft.requests:
        lines += _step(request, names)
    lines += ["load:"]
    if draft.load:
        lines += block(draft.load, "  ", leaf=_as_read)
    else:
        lines += [
            f"  users: {LADDER}  # each waits for its answers; a list is run level by level",
            "  # rate: 50/s  # instead of users: arrivals that do not wait for answers",
            "  # think: 1s  # pause of a user before the next round",
            "  # duration: 20s",
        ]
    lines += [
        "# probes:  # a cheap request alongside the load: who else waits?",
        "#   health:",
        "#     get: /health",
        "# objectives:  # exit code 99 if missed",
        "#   - p99<200ms",
        "#   - failed<1%",
    ]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    """One line, whatever a name of a file or a path of the input holds."""
    return "# " + visible(text).replace("\n", "\\n")


def _step(request: Request, names: dict[str, int]) -> list[str]:
    path = path_of(request.url)
    name = f"{request.method} {re.sub(r'[?].*', '', path)}"[:70]
    names[name] = names.get(name, 0) + 1
    step: dict[str, Any] = {
        "name": literal(name if names[name] == 1 else f"{name} {names[name]}"),
        request.method.lower(): literal(path),
    }
    if request.headers:
        step["headers"] = {header: literal(value) for header, value in request.headers}
    if request.user is not None:
        step["auth"] = {"basic": {"user": literal(request.user[0]), "password": request.user[1]}}
    if request.body is not None:
        step["body"] = literal(request.body)
    if request.status is not None and not 300 <= request.status < 400:
        step["expect"] = str(request.status)
    first, *others = block(step, "      ", leaf=_as_read)
    return [f"    - {first.lstrip()}", *others]


def block(
    content: Mapping[str, Any] | Iterable[Any], indent: str = "", *, leaf: Callable[[Any], str]
) -> Iterator[str]:
    """Lines of a mapping or list in block style; what is empty, and keys, are written as `leaf` has them."""
    pairs = content.items() if isinstance(content, Mapping) else (("", item) for item in content)
    for key, value in pairs:
        head = f"{indent}{leaf(str(key))}:" if isinstance(content, Mapping) else f"{indent}-"
        if isinstance(value, Mapping | list | tuple) and value:
            nested = list(block(value, indent + "  ", leaf=leaf))
            if isinstance(content, Mapping):
                yield head
            else:
                nested[0] = f"{head} {nested[0].lstrip()}"
            yield from nested
        else:
            yield f"{head} {leaf(value)}"


def _as_read(value: object) -> str:
    """A scalar; text is a value as the study reads it."""
    return str(value).lower() if isinstance(value, bool) else quoted(str(value))


def literal(text: str) -> str:
    """Double every dollar, which would begin a name."""
    return text.replace("$", "$$")


def quoted(text: str) -> str:
    """A scalar as YAML writes it: a list of levels and plain words bare, everything else as JSON."""
    is_levels = re.fullmatch(r"\[[\w., :/]+\]", text)
    if is_levels or (
        _PLAIN.fullmatch(text) and text.lower() not in _WORDS and not re.search(r":( |$)", text)
    ):
        return text
    return as_json(text)


def as_json(text: str) -> str:
    """A scalar in double quotes."""
    # NEL, LS and PS are line breaks of YAML 1.1, and DEL and C1 are not printable.
    return re.sub(
        "[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]",
        lambda match: f"\\u{ord(match[0]):04x}",
        json.dumps(text, ensure_ascii=False),
    )
