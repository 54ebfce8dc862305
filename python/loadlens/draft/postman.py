"""Postman collections, version 2: folders, variables and credentials."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from loadlens.draft import Draft, Request, json_in, query_of

_GENERATED: Final = {
    "$guid": "uuid",
    "$randomUUID": "uuid",
    "$timestamp": "timestamp",
    "$randomInt": "int 0 1000",
}


def read(text: str, source: str) -> Draft:
    """The requests of all folders, in their order.

    Raises:
        UsageError: It is no collection.
    """
    content = json_in(text, source)
    values = {each.get("key"): str(each.get("value", "")) for each in content.get("variable", ())}
    variables: dict[str, str] = {}
    left_out: list[str] = []

    def filled(text: str) -> str:
        def value(match: re.Match[str]) -> str:
            name = match[1].strip()
            if name in values:
                return filled(values[name]) if name not in values[name] else values[name]
            if name in _GENERATED:
                return f"{{{{{_GENERATED[name]}}}}}"
            key = re.sub(r"\W+", "_", name).strip("_").upper()
            variables[key] = f"Postman's variable {name}"
            return f"{{{{env {key}}}}}"

        return re.sub(r"\{\{([^{}]+)\}\}", value, text)

    requests = []
    for item, auth in _items(content, content.get("auth")):
        if item.get("event"):
            left_out.append(f"scripts of {item.get('name', 'a request')}")
        sent = item["request"]
        sent = {"url": sent} if isinstance(sent, str) else sent
        requests.append(_request(sent, sent.get("auth") or auth, filled, left_out))
    return Draft(tuple(requests), tuple(left_out), source, variables=variables)


def _items(folder: dict[str, Any], auth: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    for item in folder.get("item", ()):
        if "request" in item:
            yield item, auth
        yield from _items(item, item.get("auth") or auth)


def _request(sent: dict[str, Any], auth: Any, filled: Any, left_out: list[str]) -> Request:
    url = sent.get("url") or ""
    url = filled(url if isinstance(url, str) else url.get("raw", ""))
    url = url if "://" in url else f"http://{url}"
    headers = [(each["key"], filled(each.get("value", ""))) for each in _enabled(sent.get("header"))]
    method, body, user = sent.get("method", "GET").upper(), None, None
    content = sent.get("body") or {}
    mode = content.get("mode")
    named = {name.lower() for name, _ in headers}
    kind = None
    if mode == "raw":
        body = filled(content.get("raw", ""))
        language = content.get("options", {}).get("raw", {}).get("language")
        kind = {"json": "application/json", "xml": "application/xml"}.get(language, "text/plain")
    elif mode == "urlencoded":
        fields = [
            (each["key"], filled(each.get("value", ""))) for each in _enabled(content.get("urlencoded"))
        ]
        body, kind = query_of(fields), "application/x-www-form-urlencoded"
    elif mode is not None:
        left_out.append(f"the body of {method} {url}: {mode}")
    if kind is not None and "content-type" not in named:
        headers.append(("Content-Type", kind))
    scheme = (auth or {}).get("type")
    given = {each["key"]: filled(str(each.get("value", ""))) for each in (auth or {}).get(scheme, ())}
    if scheme == "bearer":
        headers.append(("Authorization", f"Bearer {given.get('token', '')}"))
    elif scheme == "basic":
        user = (given.get("username", ""), given.get("password", ""))
    elif scheme == "apikey" and given.get("in", "header") == "header":
        headers.append((given.get("key", "X-API-Key"), given.get("value", "")))
    elif scheme not in (None, "noauth"):
        left_out.append(f"credentials of {method} {url}: {scheme}")
    return Request(method, url, tuple(headers), body or None, user=user)


def _enabled(rows: Any) -> list[dict[str, Any]]:
    return [row for row in rows or () if isinstance(row, dict) and not row.get("disabled")]
