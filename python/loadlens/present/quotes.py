"""Quotes of what a service answered: one line, without markup, cut to length; nothing where it is no text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping

from loadlens.model.result import FailingAnswer
from loadlens.present import words

LONGEST = 100
_UNSEEN = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_TEXT_SHARE = 0.9  # of its characters; a compressed body has far fewer


def quote(body: str, length: int = LONGEST) -> str:
    """Return a body as one line to quote; empty if there is nothing to read in it."""
    if re.match(r"\s*<(?:!doctype|html|\?xml)", body, re.IGNORECASE):
        body = html.unescape(_TAG.sub(" ", _UNSEEN.sub(" ", body)))
    readable = sum(character.isprintable() or character.isspace() for character in body)
    if not body.strip() or "\ufffd" in body[:-1] or readable < _TEXT_SHARE * len(body):
        return ""
    text = words.plain(" ".join(body.split()))
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def by_status(answers: Iterable[FailingAnswer], counts: Mapping[str, int]) -> list[str]:
    """Return `503, 12 answers: "the pool is full"` for each readable status, the most frequent first.

    Args:
        answers: Those that are kept.
        counts: Answers by status.
    """
    texts: dict[int, str] = {}
    for answer in answers:
        text = quote(answer.body)
        if text:
            texts.setdefault(answer.status, text)
    ordered = sorted(texts, key=lambda status: -counts.get(str(status), 0))
    return [
        f'{status}, {words.plural(counts.get(str(status), 1), "answer")}: "{texts[status]}"'
        for status in ordered
    ]
