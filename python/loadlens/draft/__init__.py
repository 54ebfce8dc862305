"""Drafts of studies: requests from a URL, a HAR file, OpenAPI, curl, Postman or wrk, as a commented study.

Each reader gives a `Draft`: requests as they would be sent, and what it could not convert. Secrets are
taken out here, once for all of them; `write.py` makes the text. Nothing here needs more than the core.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final
from urllib.parse import quote, urlsplit

from loadlens.credentials import Hiding
from loadlens.errors import UsageError

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_ENGINES: Final = ("host", "content-length", "connection", "transfer-encoding", "expect")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_NO_TEXT: Final = re.compile(r"[\0\ud800-\udfff]")
_CONTROL: Final = re.compile(r"[\0-\x1f\x7f]")
_MOST_REASONS: Final = 600  # characters
_FILLED: Final = re.compile(r"\s*\{\{[^{}]*\}\}\s*")


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it would be sent: templates such as `{{uuid}}` may stand in its texts."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    status: int | None = None  # of the answer that it had
    user: tuple[str, str] | None = None  # name and password of basic credentials


@dataclass(frozen=True, slots=True)
class Draft:
    """Requests and notes that a study is written from."""

    requests: tuple[Request, ...]
    left_out: tuple[str, ...] = ()  # what could not be converted, one sentence each
    source: str = ""  # for the head of the file
    load: Mapping[str, str] = field(default_factory=dict)  # keys and values as written; empty: the default
    blocks: Mapping[str, Any] = field(default_factory=dict)  # further keys at the top: services, tls, feeds
    variables: Mapping[str, str] = field(default_factory=dict)  # of the environment, and what each holds


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL.

    Raises:
        UsageError: It is no http or https URL.
    """
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and parts.port != 0 and _is_host(parts.hostname or "")
    except ValueError:
        is_usable = False
    if not is_usable:
        raise UsageError(f"not an http or https URL: {url!r}", hint="loadlens init http://127.0.0.1:8080")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _is_host(text: str) -> bool:
    return re.fullmatch(r"[!-~]+", text) is not None


def path_of(url: str) -> str:
    """Return the path and query of a URL; what may not stand there is percent-encoded, templates are kept."""
    rest = re.sub(r"^[A-Za-z]+://[^/?#]*", "", url).partition("#")[0]
    path = rest if rest.startswith("/") else f"/{rest}"
    pieces = re.split(r"(\{\{[^{}]*\}\})", path)
    return "".join(
        piece if number % 2 else re.sub(r"[^!-~]|[{}]", lambda match: quote(match[0]), piece)
        for number, piece in enumerate(pieces)
    )


def usable(draft: Draft) -> Draft:
    """The draft with what a study can hold: one origin, known methods, no secrets.

    Raises:
        UsageError: There is no request left, or a text is none.
    """
    if not all(map(_is_text, draft.requests)):
        raise UsageError(f"a URL, header or body in {draft.source or 'the input'} is no text")
    origins = Counter(origin_of(request.url) for request in draft.requests)
    entry = max(origins, key=lambda origin: origins[origin], default="")
    before = tuple(" ".join(sentence.split()) for sentence in draft.left_out)
    left_out, requests = Counter[str](), []
    variables, secrets = dict(draft.variables), dict[str, str]()
    for request in draft.requests:
        origin = origin_of(request.url)
        if origin != entry:
            left_out[f"requests to {origin}: a study has one entry"] += 1
        elif request.method not in METHODS:
            named = request.method if re.fullmatch("[A-Z]{1,20}", request.method) else "other"
            left_out[f"{named} requests: a step is one of {', '.join(METHODS)}"] += 1
        elif (fault := _fault_of(request)) is not None:
            left_out[f"requests with {fault}"] += 1
        elif request.body is not None and re.search(r"\{\{(?!\s*\w+[^{}]*\}\})", request.body):
            left_out["requests with {{ in the body, which is a template here: use file: BODY"] += 1
        else:
            requests.append(without_secrets(request, variables, secrets))
    if not requests:
        reasons = "; ".join((*left_out, *before))[:_MOST_REASONS] or "it is empty"
        raise UsageError(f"no request in {draft.source or 'the input'} can be used: {reasons}")
    sentences = [f"{number} {text}" for text, number in left_out.items()]
    blocks = {key: block for key, block in draft.blocks.items() if key != "tls" or entry.startswith("https")}
    return replace(
        draft,
        requests=tuple(requests),
        left_out=(*before, *sentences),
        variables=variables,
        blocks=blocks,
    )


def _is_text(request: Request) -> bool:
    """False if the input had another kind of value in the place of a text."""
    body = () if request.body is None else (request.body,)
    texts: Iterable[object] = (
        request.url,
        *chain.from_iterable(request.headers),
        *(request.user or ()),
        *body,
    )
    return all(isinstance(text, str) for text in texts)


def _fault_of(request: Request) -> str | None:
    """Return what of a request no study can hold; none: nothing."""
    names = [name for name, _ in request.headers if not name.startswith(":")]
    if any(_HEADER.fullmatch(name) is None for name in names):
        return "a header that HTTP has no such name for"
    values = [value for _, value in request.headers]
    if any(_CONTROL.search(text) for text in (request.url, *values, *(request.user or ()))):
        return "a control character in the URL, a header or a user"
    if any(_NO_TEXT.search(text) for text in (request.url, *values, request.body or "")):
        return "a NUL or half a surrogate pair"
    return None


def without_secrets(
    request: Request, variables: dict[str, str], secrets: dict[str, str], hiding: Hiding | None = None
) -> Request:
    """The request with `{{env NAME}}` for each secret; the engine's own headers are left to it."""
    hiding = hiding or Hiding()
    in_json = re.compile(rf'("({hiding.field})"\s*:\s*")((?:[^"\\]|\\.)*)(?=")', re.IGNORECASE)
    in_form = re.compile(rf"((?:^|[?&])({hiding.field})=)([^&#\s]*)", re.IGNORECASE)

    def variable(name: str, secret: str, what: str) -> str:
        plain = key = re.sub(r"\W+", "_", name).strip("_").upper()
        number = 1
        while secrets.setdefault(key, secret) != secret:  # another secret of this name
            number += 1
            key = f"{plain}_{number}"
        variables.setdefault(key, what)
        return f"{{{{env {key}}}}}"

    def hidden(kind: str) -> Callable[[re.Match[str]], str]:
        def replaced(match: re.Match[str]) -> str:
            is_filled = not match[3] or _FILLED.fullmatch(match[3])
            return (
                match[0] if is_filled else match[1] + variable(match[2], match[3], f"`{match[2]}` in {kind}")
            )

        return replaced

    headers = []
    for name, value in request.headers:
        if name.lower() in _ENGINES or name.startswith(":"):
            continue
        if hiding.is_header(name) and not _FILLED.fullmatch(value):
            value = variable(name, value, f"the header {name}")
        else:  # such as a Referer
            value = in_form.sub(hidden(f"the header {name}"), value)
        headers.append((name, value))
    user = request.user
    if any(name.lower() == "authorization" for name, _ in headers):
        user = None  # as curl does
    if user is not None:
        user = (user[0], variable("password", user[1], f"the password of {user[0]}"))
    body = request.body
    if body is not None:
        body = in_json.sub(hidden("a body"), body)
        body = in_form.sub(hidden("a body"), body) if not body.lstrip().startswith(("{", "[")) else body
    return replace(
        request,
        url=in_form.sub(hidden("a URL"), request.url),
        headers=tuple(headers),
        user=user,
        body=body,
    )


def query_of(pairs: Iterable[tuple[str, str]]) -> str:
    """Encode fields for a query or a form; templates stay as they are."""
    return "&".join(f"{quote(n, safe='')}={v if '{{' in v else quote(v, safe='')}" for n, v in pairs)


def json_in(text: str, what: str) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        UsageError: It is none.
    """
    try:
        content = json.loads(text)
    except ValueError as fault:
        raise UsageError(f"not JSON: {fault}", where=what) from None
    if not isinstance(content, dict):
        raise UsageError("not a JSON object", where=what)
    return content
