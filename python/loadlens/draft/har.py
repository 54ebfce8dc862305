"""HAR 1.2, as browsers and proxies export it."""

from __future__ import annotations

from loadlens.draft import Draft, Request, json_in, query_of


def read(text: str, source: str) -> Draft:
    """The requests of all entries, in their order.

    Raises:
        UsageError: It is no HAR file.
    """
    entries = json_in(text, source).get("log", {}).get("entries", [])
    requests, left_out = [], []
    for entry in entries:
        sent = entry["request"]
        posted = sent.get("postData") or {}
        body = posted.get("text")
        if body is None and posted.get("params"):
            body = query_of((each["name"], each.get("value", "")) for each in posted["params"])
        if posted.get("encoding") == "base64" or posted.get("mimeType", "").startswith("multipart/"):
            left_out.append(
                f"the body of {sent['method']} {sent['url']}: {posted.get('mimeType') or 'binary'}"
            )
            body = None
        headers = tuple((header["name"], header["value"]) for header in sent.get("headers", ()))
        status = int(entry.get("response", {}).get("status") or 0) or None
        requests.append(Request(sent["method"].upper(), sent["url"], headers, body, status))
    if len(requests) > 1:
        left_out.append("pauses between the requests: `think` of a step is one")
    return Draft(tuple(requests), tuple(left_out), source)
