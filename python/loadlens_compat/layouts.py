"""Shared parts of the verbs in other tools' layouts: literal requests, and our own report at the end."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loadlens.cli.hit_requests import shown_plan
from loadlens.credentials import Hiding
from loadlens.errors import UsageError
from loadlens.model.workload import (
    Closed,
    Connection,
    Plan,
    Scenario,
    Step,
    Stream,
    Target,
)

if TYPE_CHECKING:
    from loadlens.engine import Result

TITLE: Final = "Loadlens on the same requests"
_ENGINES_HEADERS: Final = ("connection", "content-length", "transfer-encoding")


def only_url(rest: Sequence[str], verb: str) -> str:
    """The one word behind the flags of ab and hey.

    Raises:
        UsageError: There is none, or another.
    """
    if len(rest) == 1:
        return rest[0]
    what = "no URL" if not rest else f"flags come before the URL, and one URL: {' '.join(rest[:3])}"
    hint = f"loadlens {verb} -n 1000 -c 10 http://127.0.0.1:8080/"
    raise UsageError(what, where=f"loadlens {verb}", hint=hint)


def plan_of(
    target: Target,
    step: Step,
    workload: Closed,
    *,
    is_kept: bool,
    timeout_ns: int,
    duration_ns: int | None,
    drain_ns: int = 0,
    threads: int | None = None,
) -> Plan:
    """One request over and over; a header Host is the authority, and certificates are not verified."""
    hosts = [value for name, value in step.headers if name.lower() == "host"]
    if hosts:
        target = replace(target, authority=hosts[-1])
        step = replace(step, headers=tuple(pair for pair in step.headers if pair[0].lower() != "host"))
    if target.tls is not None:
        target = replace(target, tls=replace(target.tls, insecure=True, resume=False))
    return Plan(
        seed=secrets.randbits(48),
        streams=(
            Stream(
                name="load",
                role="load",
                target=target,
                scenarios=(Scenario("request", 1.0, (step,)),),
                workload=workload,
                connection=Connection() if is_kept else Connection("new"),
                timeout_ns=timeout_ns,
                cookies="off",
            ),
        ),
        threads=threads,
        duration_ns=duration_ns,
        drain_ns=drain_ns,
    )


def plain_path(path: str) -> str:
    """A path that the engine sends as it is."""
    return path.replace("{{", "%7B%7B")


def refuse_engines_header(name: str) -> None:
    """Raise for a header that the engine sets itself."""
    if name.lower() in _ENGINES_HEADERS:
        raise UsageError(
            f"the engine sets {name} itself", where="-H", hint="the flags for connections and bodies"
        )


def basic(credentials: str) -> tuple[str, str]:
    """The header for `user:password`."""
    return "Authorization", f"Basic {base64.b64encode(credentials.encode()).decode()}"


def own_account(plan: Plan, result: Result, notes: list[str]) -> list[str]:
    """Return Loadlens' own report of the same requests, under a heading of its own."""
    from loadlens.model.result import EngineResult
    from loadlens.report.write.terminal.hit_summary import Screen, summary

    shown = shown_plan(plan, Hiding())
    lines = summary(EngineResult.from_json(result), shown, Screen(has_hint=False))
    return [TITLE, "=" * len(TITLE), *(f"  {note}" for note in notes), *lines]
