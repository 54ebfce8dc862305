"""Lines of curl, as typed or as a browser copies them."""

from __future__ import annotations

import argparse
import re
import shlex
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import quote

from loadlens import named_pipes
from loadlens.draft import Draft, Request
from loadlens.errors import UsageError

_MOST_BYTES: Final = 64 << 20  # of a body in a file
_ENDS: Final = (";", "&&", "||", "|", "&")
_DATA: Final = ("-d", "--data", "--data-ascii", "--data-raw", "--data-binary", "--data-urlencode", "--json")
_SILENT: Final = ("-s", "-S", "-v", "-i", "-f", "-#", "-N", "-g")
_WITH_VALUE: Final = ("-o", "-w", "-m", "-c", "-D", "--connect-timeout", "--retry", "--resolve", "--cacert")
_ESCAPE: Final = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|([abeEfnrtv'\"?\\]))")
_LETTERS: Final = {
    **dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True)),
    **{letter: letter for letter in "'\"?\\"},
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(
            f"not a line of curl: {message}", hint="curl -H 'Accept: */*' http://127.0.0.1:8080/"
        )


def _parser() -> _Parser:
    parser = _Parser(add_help=False, allow_abbrev=False)
    add = parser.add_argument
    add("urls", nargs="*", default=[])
    add("--url", action="append", default=[], dest="more_urls")
    add("-X", "--request")
    add("-H", "--header", action="append", default=[])
    for flag in _DATA:
        add(flag, action="append", default=[], dest="data", type=partial(_flagged, flag))
    add("-F", "--form", "--form-string", action="append", default=[])
    add("-u", "--user")
    add("-A", "--user-agent")
    add("-e", "--referer")
    add("-b", "--cookie")
    add("-G", "--get", action="store_true")
    add("-I", "--head", action="store_true")
    add("-k", "--insecure", action="store_true")
    add("-L", "--location", action="store_true")
    add("--compressed", action="store_true")
    for flag in _SILENT:
        add(flag, action="store_true", dest="silent")
    for flag in _WITH_VALUE:
        add(flag, dest="ignored")
    return parser


def _flagged(flag: str, text: str) -> tuple[str, str]:
    return flag, text


def read(text: str, source: str) -> Draft:
    """The request of each line of curl.

    Raises:
        UsageError: A line cannot be read.
    """
    unfolded = re.sub(r"\\\r?\n", " ", text)
    plain = re.sub(r"\$'((?:[^'\\]|\\.)*)'", lambda match: shlex.quote(_ansi(match[1])), unfolded)
    try:
        words = shlex.split(plain, comments=True)
    except ValueError as fault:
        raise UsageError(f"not a line of curl: {str(fault).lower()}", where=source) from None
    commands: list[list[str]] = []
    is_curl = False
    for word in words:
        if word == "curl" or word.endswith("/curl"):
            commands.append([])
            is_curl = True
        elif word in _ENDS:
            is_curl = False
        elif is_curl:
            commands[-1].append(word)
    requests: list[Request] = []
    left_out: list[str] = []
    blocks: dict[str, Any] = {}
    for command in commands:
        given, unknown = _parser().parse_known_intermixed_args(command)
        left_out += [f"curl's {flag}" for flag in unknown]
        left_out += [f"form fields of curl's -F: {field}" for field in given.form]
        left_out += ["curl's -L: redirects are not followed"] if given.location else []
        if given.insecure:
            blocks["tls"] = {"insecure": True}
        for url in (*given.urls, *given.more_urls):
            requests.append(_request(given, url if "://" in url else f"http://{url}"))
    return Draft(tuple(requests), tuple(dict.fromkeys(left_out)), source, blocks=blocks)


def _request(given: argparse.Namespace, url: str) -> Request:
    headers = [
        (name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in given.header)
    ]
    flags = {"User-Agent": given.user_agent, "Referer": given.referer, "Cookie": given.cookie}
    headers += [(name, value) for name, value in flags.items() if value]
    if given.compressed:
        headers.append(("Accept-Encoding", "gzip"))
    body = "&".join(_data(flag, text) for flag, text in given.data) if given.data else None
    named = {name.lower() for name, _ in headers}
    if body is not None and given.get:
        url, body = f"{url}{'&' if '?' in url else '?'}{body}", None
    if body is not None and "content-type" not in named:
        is_json = given.data[0][0] == "--json"
        kind = "application/json" if is_json else "application/x-www-form-urlencoded"
        headers.append(("Content-Type", kind))
    method = given.request or ("HEAD" if given.head else "POST" if body is not None else "GET")
    name, colon, password = (given.user or "").partition(":")
    return Request(method.upper(), url, tuple(headers), body, user=(name, password) if colon else None)


def _data(flag: str, text: str) -> str:
    if flag == "--data-urlencode":
        name, equals, value = text.partition("=")
        return f"{name}={quote(value, safe='')}" if equals and name else quote(value or name, safe="")
    if not text.startswith("@") or flag == "--data-raw":
        return text
    try:
        raw = named_pipes.read(Path(text[1:]), _MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise ValueError("it is longer than 64 MiB")
        content = raw.decode()
    except (OSError, ValueError) as fault:
        raise UsageError(f"cannot read {text[1:]!r}: {fault}", where=flag) from None
    return content if flag in ("--data-binary", "--json") else re.sub(r"[\r\n]", "", content)


def _ansi(text: str) -> str:
    """Undo the escapes of the shell's $'...'; any other backslash stays."""
    plain = _ESCAPE.sub(lambda match: _letter(*match.groups()), text)
    # Letters beyond 16 bits come as two escapes, as JavaScript has them.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _letter(octal: str | None, byte: str | None, code: str | None, letter: str | None) -> str:
    if letter is not None:
        return _LETTERS[letter]
    return chr(int(octal, 8) & 0xFF if octal else int(byte or code or "", 16))
