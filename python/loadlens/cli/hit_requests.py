"""The requests of `hit`, from URLs and from a file of targets: a step each, in one scenario each."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, quote, urlsplit

from loadlens import units
from loadlens.cli import answers
from loadlens.cli.grammar import foreign
from loadlens.cli.hit_options import HitOptions
from loadlens.cli.options import hiding_of, read_file
from loadlens.credentials import Hiding
from loadlens.errors import UsageError
from loadlens.model.workload import Auth, Body, Plan, Scenario, Step, Target, Tls

_URL_EXAMPLE: Final = "http://127.0.0.1:8080/path"

_HEADER_NAME: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)  # RFC 9110, 5.6.2
_METHOD_AND_URL: Final = re.compile(r"(?:([A-Z]+)\s+)?(\S+)")
_TARGETS_FORM: Final = "lines such as GET http://127.0.0.1:8080/path, then its headers, then @FILE for a body"


@dataclass(frozen=True, slots=True)
class _Entry:
    """A request as it was given; where it was given, if that is a file."""

    url: str
    where: str | None = None
    method: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: Body | None = None


def requests_of(given: HitOptions) -> tuple[Target, tuple[Scenario, ...]]:
    """Return the service and the requests, each a scenario of the same weight.

    Raises:
        UsageError: A request cannot be read, there is none, or they go to several services.
    """
    asked = [_Entry(url) for url in given.urls]
    if given.targets is not None:
        asked += _targets(given.targets)
    if not asked:
        raise UsageError("hit needs a URL", hint="loadlens hit http://127.0.0.1:8080/")
    if len(asked) > 1:
        for each in asked:
            _refuse_stray(each.url, given)
    body = _body(given.body, given.body_file)
    headers = tuple(header_of(text) for text in given.headers)
    step = Step(
        "request",
        "GET",
        "/",
        auth=_auth(given.auth, given.headers),
        expect=answers.expected(given.expect),
        checks=answers.checks(given.checks),
    )
    first: Target | None = None
    steps = []
    for each in asked:
        _refuse_stray_objective(each.url)
        target, path = target_of(each.url)
        first = first or target
        if (target.host, target.port, target.tls) != (first.host, first.port, first.tls):
            raise UsageError(
                f"one load goes to one service, not to {first.origin} and {target.origin}",
                where=each.where,
                hint="loadlens hit for each of them",
            )
        own = body if each.body is None else each.body
        method = method_of(each.method or given.method, own)
        asking = replace(step, method=method, path=path, headers=headers + each.headers, body=own)
        steps.append(asking.traced() if given.traceparent else asking)
    assert first is not None
    if len(steps) == 1:
        return first, (Scenario("request", 1.0, (steps[0],)),)
    return first, tuple(
        Scenario(name, 1.0, (replace(each, name=name),))
        for name, each in zip(_names(steps, hiding_of(given.hide)), steps, strict=True)
    )


def _names(steps: Sequence[Step], hiding: Hiding) -> list[str]:
    """Return `GET /path` for each step, numbered where that is not unique; results are found by it."""
    plain = [f"{step.method} {hiding.text(step.path)}"[:70] for step in steps]
    return [
        name if plain.count(name) == 1 else f"{name} ({plain[: index + 1].count(name)})"
        for index, name in enumerate(plain)
    ]


def _refuse_stray(word: str, given: HitOptions) -> None:
    """Refuse what is no URL among several: mostly the value of an option that takes none."""
    if word[:1] in ("{", "["):
        raise UsageError(
            f"not a URL: {word[:40]!r}",
            hint=f"curl calls a JSON body --json; here: -b '{word[:40]}' -H 'Content-Type: application/json'",
        )
    if re.fullmatch(r"[\d.]+[a-z/%]*", word) and word.count(".") < 3:
        hint = (
            "hey and oha call the rate -q; here: -r " + word
            if given.quiet
            else f"-c {word}, -n {word} or -d {word}"
        )
        raise UsageError(f"not a URL: {word!r}", hint=hint)
    if re.fullmatch(r"[\w-]+", word) and word != "localhost":
        raise UsageError(f"not a URL: {word!r}", hint=f"quotes around a value with blanks, or http://{word}/")


def _targets(file: str) -> list[_Entry]:
    """Read requests as vegeta has them: a method and a URL, or a URL alone; headers; @FILE with the body."""
    try:
        text = read_file(file, "--targets", is_stdin=file == "-").decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8", where="--targets", hint=_TARGETS_FORM) from None
    asked = list(_requests_in(text.splitlines(), "standard input" if file == "-" else file))
    if not asked:
        raise UsageError(f"no request in {file}", where="--targets", hint=_TARGETS_FORM)
    return asked


def _requests_in(lines: Iterable[str], file: str) -> Iterator[_Entry]:
    latest: _Entry | None = None
    for number, line in enumerate(lines, 1):
        text, where = line.strip(), f"{file}:{number}"
        if not text or text.startswith("#"):
            continue
        request = _METHOD_AND_URL.fullmatch(text)
        if request is not None and "://" in request[2]:
            if latest is not None:
                yield latest
            latest = _Entry(request[2], where, request[1])
        elif latest is not None and text.startswith("@"):
            latest = replace(latest, body=_body(None, Path(text[1:]), where))
        elif latest is not None and ":" in text:
            header = header_of(text)
            if not _HEADER_NAME.fullmatch(header[0]):
                hint = "letters, digits and hyphens, then a colon"
                raise UsageError(f"not a header name: {header[0]!r}", where=where, hint=hint)
            latest = replace(latest, headers=(*latest.headers, header))
        else:
            raise UsageError(f"not a request: {text[:60]!r}", where=where, hint=_TARGETS_FORM)
    if latest is not None:
        yield latest


def _refuse_stray_objective(word: str) -> None:
    """Refuse `'failed<1%'` where a URL is wanted: each objective needs its own --objective."""
    from loadlens.study.objectives import objective

    if "<" in word or ">" in word:
        with suppress(units.UnitError):
            objective(word)
            raise UsageError(f"not a URL: {word!r}", hint=f"--objective {shlex.quote(word)}")


def target_of(url: str) -> tuple[Target, str]:
    """Split a URL into its target and its path with query.

    Raises:
        UsageError: It cannot be read, or carries credentials.
    """
    parts = parts_of(url)
    if parts.username is not None or parts.password is not None:
        raise UsageError("credentials in a URL would end up in records", hint="--auth basic:USER:NAME")
    host = parts.hostname or ""
    literal = f"[{host}]" if ":" in host else host
    port = parts.port
    authority = literal if port is None else f"{literal}:{port}"
    path = parts.path or "/"
    secured = parts.scheme == "https"
    target = Target(
        host, port if port is not None else 443 if secured else 80, authority, Tls() if secured else None
    )
    return target, path + (f"?{parts.query}" if parts.query else "")


def parts_of(url: str) -> SplitResult:
    """Split a URL, which may do without `http://`.

    Raises:
        UsageError: It cannot be read, or its path holds what no request line can.
    """
    given = url
    if control := next((sign for sign in url if ord(sign) < 32 or ord(sign) == 127), ""):
        # urlsplit would drop some of them without a word.
        raise UsageError(f"control character in a URL: {url!r}", hint=f"write %{ord(control):02X}")
    if "://" not in url:
        foreign.refuse_file(url)
        url = f"http://{url}"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  # raises
    except ValueError as fault:
        raise UsageError(f"not a URL: {url!r} ({str(fault).lower()})", hint=_URL_EXAMPLE) from None
    if slip := re.fullmatch(r"(https?):/(?=[^/])(.*)|(https?)//:?(.*)", given):
        scheme, rest = slip[1] or slip[3], slip[2] or slip[4]
        raise UsageError(f"not a URL: {given!r}", hint=f"{scheme}://{rest}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"not an http or https URL: {given!r}", hint=_URL_EXAMPLE)
    beyond = next((sign for sign in f"{parts.path}{parts.query}" if not "!" <= sign <= "~"), "")
    if beyond and "{{" not in url:  # in which a blank may stand
        raise UsageError(
            f"`{beyond}` may not stand in a path or query",
            where="the path of the URL",
            hint=f"write {quote(beyond, errors='surrogateescape')}",
        )
    return parts


def shown_plan(plan: Plan, hiding: Hiding) -> Plan:
    """Return a plan as it may be shown and kept: without literal credentials."""
    return Plan.from_json(hiding.content(json.loads(plan.to_json())))


def method_of(given: str | None, body: Body) -> str:
    """Return the given method; else GET, or POST with a body."""
    return (given or ("GET" if body.kind == "none" else "POST")).upper()


def header_of(text: str) -> tuple[str, str]:
    """Split `Name: value`."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        first = text.split(" ")[0]  # what follows may be a secret
        raise UsageError(f"not a header: {first!r}", where="--header", hint="-H 'Name: value'")
    return name.strip(), value.strip()


def _auth(text: str | None, headers: Sequence[str]) -> Auth | None:
    if text is None:
        return None
    if any(header_of(header)[0].lower() == "authorization" for header in headers):
        raise UsageError(
            "credentials given twice", where="--auth and -H Authorization", hint="one of the two"
        )
    kind, _, rest = text.partition(":")
    user, _, name = rest.rpartition(":")
    if kind == "bearer" and rest and ":" not in rest:
        variable, auth = rest, Auth("bearer", token_env=rest)
    elif kind == "basic" and user and name and ":" not in user:
        variable, auth = name, Auth("basic", user=user, password_env=name)
    else:
        # The text itself may be a secret by mistake, so it is not shown.
        raise UsageError(
            "not a form of credentials",
            where="--auth",
            hint="basic:USER:NAME or bearer:NAME, where NAME is an environment variable",
        )
    if variable not in os.environ:
        raise UsageError(
            "the environment variable that --auth names is not set",
            where="--auth",
            hint="export it first; --auth takes the name of the variable, not the secret",
        )
    return auth


def _body(text: str | None, file: Path | None, flag: str = "--body-file") -> Body:
    if text is not None and file is not None:
        raise UsageError("body given twice", where="--body and --body-file", hint="one of the two")
    if text is not None and text.startswith("@"):
        file, text, flag = Path(text[1:]), None, "--body"
    if text is not None:
        return Body(kind="text", text=text)
    if file is None:
        return Body()
    return file_body(file, flag, is_stdin=str(file) == "-")


def file_body(file: Path, flag: str, *, is_stdin: bool = False) -> Body:
    """Return the bytes of a file, a pipe or a device as a body."""
    content = read_file(str(file), flag, is_stdin=is_stdin)
    return bytes_body(content, file.resolve() if file.is_file() else None)


def bytes_body(content: bytes, path: Path | None = None) -> Body:
    """Return bytes as a body; `path` is the file that holds them, if one does."""
    import hashlib

    from loadlens.temporary import memory_file

    return Body(
        kind="file", path=str(path or memory_file(content)), digest=hashlib.sha256(content).hexdigest()
    )
