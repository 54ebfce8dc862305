"""A study from a load of `hit`: the same requests, load, feeds and bounds, three trials of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from loadlens.credentials import Hiding
from loadlens.draft import METHODS, Request, path_of, without_secrets
from loadlens.draft.write import MODELINE, SCHEMA_FILE, as_json, block, literal, quoted
from loadlens.errors import UsageError
from loadlens.model.workload import KEPT_ROWS, Check, Feed, Scenario, Step, Target

FLAG: Final = "--save-study"


def text_of(
    target: Target,
    scenarios: Sequence[Scenario],
    load: Mapping[str, Any],
    *,
    expect: str | None,
    feeds: Sequence[Feed],
    objectives: Sequence[str],
    seed: int | None,
    samples: int | None = KEPT_ROWS,
    hide: tuple[str, ...] = (),
) -> tuple[str, dict[str, str]]:
    """Return the study and the environment variables that it needs, with what each holds.

    Args:
        target: Where the load goes.
        scenarios: Its requests, one in each.
        load: Keys of a study's `load`.
        expect: Statuses as they were given.
        feeds: Files of records.
        objectives: Bounds that must hold, as they were given.
        seed: Of the draws; none: the study's own.
        samples: Rows of requests that a record keeps of each stream; None: all.
        hide: Names whose values are secrets, besides those that look like credentials.

    Raises:
        UsageError: A study cannot hold one of the requests.
    """
    variables: dict[str, str] = {}
    secrets: dict[str, str] = {}
    study: dict[str, Any] = {"entry": target.origin, **_tls(target), "scenarios": {}}
    for number, scenario in enumerate(scenarios, 1):
        (step,) = scenario.steps
        name = {"name": literal(step.name)} if len(scenarios) > 1 else {}
        request = _step(step, target.origin, expect, variables, secrets, Hiding(hide))
        study["scenarios"][f"request_{number}" if name else "request"] = {**name, **request}
    if len(scenarios) > 1:
        study["mix"] = dict.fromkeys(study["scenarios"], 1)
    if feeds:
        study["feeds"] = {feed.name: {"file": feed.path, "pick": feed.pick} for feed in feeds}
    study["load"] = dict(load)
    if samples != KEPT_ROWS:
        study["samples"] = {None: "all", 0: "none"}.get(samples, samples)
    if hide:
        study["hide"] = list(hide)
    if objectives:
        study["objectives"] = list(objectives)
    if seed is not None:
        study["order"] = {"seed": seed}
    head = [
        f"{MODELINE}{SCHEMA_FILE}",
        "# From `loadlens hit`. A list, such as users: [1, 4, 16], is run level by level, three times each.",
        *(f"# Export {name} first: {what}." for name, what in variables.items()),
    ]
    return "\n".join((*head, *block(study, leaf=_leaf))) + "\n", variables


def _tls(target: Target) -> dict[str, Any]:
    tls = target.tls
    if tls is None:
        return {}
    files = {"ca": tls.ca, "cert": tls.certificate, "key": tls.key}
    keys: dict[str, Any] = {key: file.path for key, file in files.items() if file is not None}
    if tls.server_name is not None:
        keys["servername"] = tls.server_name
    if tls.insecure:
        keys["insecure"] = True
    if not tls.resume:
        keys["resume"] = False
    return {"tls": keys} if keys else {}


def _step(
    step: Step,
    origin: str,
    expect: str | None,
    variables: dict[str, str],
    secrets: dict[str, str],
    hiding: Hiding,
) -> dict[str, Any]:
    if step.method not in METHODS:
        raise UsageError(f"a step of a study is one of {', '.join(METHODS)}, not {step.method}", where=FLAG)
    names = [name.lower() for name, _ in step.headers]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"a step of a study has one header {twice}", where=FLAG)
    written = Request(step.method, origin + step.path, step.headers, step.body.text)
    request = without_secrets(written, variables, secrets, hiding)
    keys: dict[str, Any] = {step.method.lower(): literal(path_of(request.url))}
    if request.headers:
        keys["headers"] = {name: literal(value) for name, value in request.headers}
    auth = step.auth
    if auth is not None and auth.kind == "bearer":
        keys["auth"] = {"bearer": f"{{{{env {auth.token_env}}}}}"}
    elif auth is not None:
        password = f"{{{{env {auth.password_env}}}}}"
        keys["auth"] = {"basic": {"user": literal(auth.user or ""), "password": password}}
    if request.body is not None:
        keys["body"] = literal(request.body)
    elif step.body.path is not None:
        keys["file"] = literal(step.body.path)
    if expect is not None:
        keys["expect"] = [int(part) if part.isdecimal() else part for part in expect.split(",")]
    if step.checks:
        keys["check"] = _checks(step.checks, hiding)
    return keys


def _checks(checks: Sequence[Check], hiding: Hiding) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for check in checks:
        name: str = check.kind
        place = check.name or check.path or ""
        if check.equals is not None and (hiding.is_header(place) or hiding.is_field(place.split(".")[-1])):
            message = f"a check of {place} would leave a secret in the study"
            raise UsageError(message, where=FLAG, hint="the same without that --check")
        value: Any
        match check.kind:
            case "contains" | "regex" | "exists":
                keys.setdefault(name, []).append(literal(check.text or check.pattern or check.path or ""))
                continue
            case "json":
                value = {check.path: literal(check.equals) if isinstance(check.equals, str) else check.equals}
            case "header":
                value = {check.name: literal(str(check.equals))}
            case "size" if check.bounds is not None and check.bounds.equals is not None:
                value = check.bounds.equals
            case "size" if check.bounds is not None:
                bounds = {"above": check.bounds.above, "below": check.bounds.below}
                value = {key: bound for key, bound in bounds.items() if bound is not None}
            case _:
                value = f"{(check.below_ns or 0) / 1e6:g}ms"
        before = keys.setdefault(name, {} if isinstance(value, dict) else value)
        if isinstance(value, dict) and not before.keys() & value.keys():
            before.update(value)
        elif before is not value:
            raise UsageError(f"a step of a study has one such check of kind {name}", where=FLAG)
    return keys


def _leaf(value: object) -> str:
    """A scalar or what is empty; text that would be read as anything else is quoted."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z/$]", value[:1]):
        return quoted(value)
    return as_json(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
