"""`loadlens init URL`: a commented study to start from."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from loadlens import named_pipes
from loadlens.cli.hit_requests import parts_of
from loadlens.cli.options import Example, argument, choice, option, read_file, verb
from loadlens.credentials import Hiding
from loadlens.errors import (
    FULL,
    DefinitionErrors,
    ExitCode,
    PlanError,
    RecordError,
    TestbedError,
    UsageError,
    reason_of,
)

if TYPE_CHECKING:
    from loadlens.draft import Draft

KINDS: Final = ("har", "openapi", "curl", "postman", "wrk.lua")
PROBE_NS: Final = 5_000_000_000  # longest wait for the one request to the URL
START: Final = "start the service first, or let the study start it: --start CMD"


@dataclass(frozen=True, slots=True)
class InitOptions:
    """Options of `init`."""

    url: str | None = argument("[URL]", "The service, with a path: http://127.0.0.1:8080/orders.", None)
    file: str | None = argument("[FILE]", "What --from reads; - for standard input.", None)
    kind: str | None = option(
        "--from KIND",
        "Take the requests from FILE: har, openapi, curl, postman or wrk.lua. A URL before FILE is the "
        "server to use. Example: --from har shop.har",
    )
    start: str | None = option(
        "--start CMD",
        "Let the study start the service with CMD, which listens on $port; the port of URL is replaced by "
        "it. Example: --start 'python -m app --port 8080'",
    )
    out: str = option(
        "-o --out FILE", "Write the study to FILE; - for standard output. Default: study.yaml.", "study.yaml"
    )
    force: bool = option("--force", "Overwrite FILE.")


@verb(
    InitOptions,
    Example("loadlens init http://127.0.0.1:8080/orders", "writes study.yaml"),
    Example("loadlens init --from har shop.har", "from requests of a browser"),
)
def init(given: InitOptions) -> None:
    """Write a commented study for a URL, or from requests that you have, to run as it is.

    The URL is asked once. Secrets in the requests become environment variables; what cannot be converted is
    listed at the head of the study.
    """
    from loadlens.draft import usable
    from loadlens.draft.write import text_of

    if given.kind is None and given.file is not None:
        raise UsageError("a FILE without --from", hint=f"--from {'|'.join(KINDS)} {given.file}")
    read = draft_of(given)
    draft = usable(read)
    notes: list[str] = []
    if given.start is not None:
        draft = _started(draft, given.start, Path(given.out).parent if given.out != "-" else Path())
    elif given.kind is None:
        draft, notes = _asked(draft, read.requests[0].url)
    text = text_of(draft, notes=notes)
    if given.kind is not None:
        refuse_unreadable(text, draft.source)
    save(text, given.out, force=given.force)
    for name, what in draft.variables.items():
        sys.stderr.write(f"loadlens: export {name} before the study runs: {what}\n")
    for sentence in draft.left_out:
        sys.stderr.write(f"loadlens: left out: {sentence}\n")


def refuse_unreadable(text: str, source: str) -> None:
    """Refuse a study that `check` would refuse: nothing is written."""
    from loadlens.study import parse

    try:
        parse.read_text(text, Path("study.yaml"))
    except DefinitionErrors as caught:
        fault = caught.faults[0]
        raise UsageError(f"no study can be made of {source}: {fault.message}", hint=fault.hint) from None
    except OSError:
        return  # the working directory was deleted, so nothing can be looked up below it


def save(text: str, out: str, *, force: bool) -> None:
    """Write a study, or print it.

    Raises:
        UsageError: The file stands already, or cannot be opened.
        RecordError: The disk is full.
    """
    if out == "-":
        print(text, end="")
        return
    try:
        named_pipes.write(Path(out), text, is_new=not force)
    except FileExistsError:
        raise UsageError(f"{out} exists", where="--out", hint="another -o FILE, or --force") from None
    except OSError as fault:
        kind = RecordError if fault.errno in FULL else UsageError
        hint = "another -o FILE, or -o - for standard output"
        raise kind(f"cannot write {out!r}: {reason_of(fault)}", where="--out", hint=hint) from None
    file = shlex.quote(out)
    sys.stderr.write(f"wrote {out}; next: loadlens check {file}, then loadlens run {file} --quick\n")


def draft_of(given: InitOptions) -> Draft:
    """Read what the study is to be written from.

    Raises:
        UsageError: It cannot be read, or is not of its kind.
    """
    from loadlens.draft import Draft, Request, wrk_script

    url, file = given.url, given.file
    if given.kind is not None and file is None:
        url, file = None, url
    if url is not None:
        url = parts_of(url).geturl()
    if given.kind is None:
        if url is None:
            raise UsageError(
                "init needs a URL or --from KIND FILE", hint="loadlens init http://127.0.0.1:8080/path"
            )
        return Draft((Request("GET", url),), source=Hiding().text(f"loadlens init {url}"))
    choice(given.kind, KINDS, "--from", "kind")
    if file is None:
        raise UsageError("--from without its FILE", hint=f"loadlens init --from {given.kind} FILE")
    if "://" in file:
        hint = f"printf %s {shlex.quote(file)} | loadlens init --from curl -"
        if given.kind != "curl":
            hint = f"curl -so FILE {file}, then loadlens init --from {given.kind} FILE"
        raise UsageError(f"--from takes a file, got {file!r}", where="--from", hint=hint)
    if given.kind == "wrk.lua":
        if url is None:
            raise UsageError("a script of wrk needs a URL", hint=f"loadlens init URL --from wrk.lua {file}")
        return wrk_script.read(Path(file), url)
    return _read(given.kind, file, url)


def _read(kind: str, file: str, url: str | None) -> Draft:
    """The draft that a file holds; what is not of the shape that its format has is a UsageError."""
    from loadlens.draft import curl, har, openapi, postman

    try:
        text = read_file(file, "--from", is_stdin=file == "-").decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8 text", where="--from", hint="iconv -t UTF-8") from None
    except ValueError as fault:
        raise UsageError(f"cannot read {file!r}: {fault}", where="--from") from None
    source = "standard input" if file == "-" else file
    try:
        if kind == "openapi":
            return openapi.read(text, source, url)
        draft = {"har": har.read, "curl": curl.read, "postman": postman.read}[kind](text, source)
        return draft if url is None else _moved(draft, url)
    except (AttributeError, TypeError):
        why = "a part of it is empty or of another type"
    except KeyError as fault:
        why = f"{fault} is missing"
    except ValueError as fault:
        why = str(fault)
    except RecursionError:
        why = "nested too deep to be read"
    raise UsageError(f"not {kind}: {why}", where=source, hint=f"one of {', '.join(KINDS)}, and its FILE")


def _moved(draft: Draft, url: str) -> Draft:
    """The draft with another server."""
    from loadlens.draft import origin_of, path_of

    origin = origin_of(url)
    moved = (replace(each, url=origin + path_of(each.url)) for each in draft.requests)
    return replace(draft, requests=tuple(moved))


def _asked(draft: Draft, url: str) -> tuple[Draft, list[str]]:
    """The draft of a URL that answers, and what it answered to one request by the engine.

    Args:
        draft: Without secrets, as it is shown.
        url: As it was given, with them.
    """
    from loadlens.cli import plan_faults, preflight
    from loadlens.cli.hit_requests import target_of
    from loadlens.draft import origin_of, path_of
    from loadlens.model import workload
    from loadlens.present import failure_text, words
    from loadlens.run.single_load import run_hit

    shown = draft.requests[0].url
    target, path = target_of(origin_of(url) + path_of(url))  # without a name and a password
    scenario = workload.Scenario("url", 1.0, (workload.Step(path, "GET", path),))
    stream = workload.Stream(
        "load", "load", target, (scenario,), workload.Closed(1, requests=1), timeout_ns=PROBE_NS
    )
    plan = workload.Plan(seed=0, streams=(stream,))
    try:
        done = run_hit(plan, on_ready=lambda: preflight.connect_once(plan))
    except PlanError as fault:
        raise plan_faults.error_of(fault) from None
    except TestbedError as fault:
        hint = fault.hint if fault.hint and "start the service" not in fault.hint else START
        raise TestbedError(f"no answer from {shown}: {fault.message}", hint=hint) from None
    if done.exit_code not in (ExitCode.OK, ExitCode.INVALID):  # Ctrl-C
        sys.exit(int(done.exit_code))
    result = done.result["streams"][0]
    for kind, error in result["errors"].items():
        why = next((reason.words for reason in failure_text.reasons(kind, error["samples"])), "")
        what = f"{words.outcome(kind)}: {why}" if why else words.outcome(kind)
        hint = f"loadlens hit {shlex.quote(shown)} -n 1"
        raise TestbedError(f"no answer from {shown} that can be used: {what}", hint=hint)
    status = next(map(int, result["status"]), 0)
    if not 200 <= status <= 599:
        hint = "the URL of a service that answers over HTTP/1.1"
        raise TestbedError(f"{shown} answers with {status}, which is no status of a final answer", hint=hint)
    notes = [f"It answered {status} when this file was written."]
    if 300 <= status < 400:
        notes.append("That is a redirect, which is not followed: load the page that it leads to.")
    return replace(draft, requests=(replace(draft.requests[0], status=status),)), notes


def _started(draft: Draft, command: str, folder: Path) -> Draft:
    """The draft with a service that runs the command, on the port that the study chooses."""
    from loadlens.draft import origin_of, path_of

    port = str(urlsplit(origin_of(draft.requests[0].url)).port or 80)
    words = command.replace(f":{port}", ":$port").split(" ")
    start = " ".join("$port" if word == port else word.replace(f"={port}", "=$port") for word in words)
    service: dict[str, Any] = {"start": start}
    if "$port" not in start:
        service["env"] = {"PORT": "$port"}
    where = os.path.relpath(Path.cwd(), folder.resolve())
    if where != ".":
        service["dir"] = where
    reads = [request for request in draft.requests if request.method == "GET" and "{{" not in request.url]
    ready: Mapping[str, str] = {"get": path_of(reads[0].url).replace("$", "$$") if reads else "/"}
    service["ready"] = ready
    return replace(draft, blocks={**draft.blocks, "services": {"app": service}, "entry": "app"})
