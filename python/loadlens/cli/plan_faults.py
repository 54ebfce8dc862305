"""Faults that the engine finds in a plan made from flags, with the flag instead of the place in the plan."""

from __future__ import annotations

import re
from typing import Final

from loadlens.errors import PlanError, UsageError

# A part of the place in the plan, and the flag that it comes from.
_FLAGS: Final = (
    (r"\.path$", "the path of the URL"),
    (r"\.method$", "--method"),
    (r"\.headers", "--header"),
    (r"\.body\.(path|digest)", "--body-file"),
    (r"\.body", "--body"),
    (r"\.timeout_ns", "--timeout"),
    (r"\.checks", "--check"),
    (r"\.tls\.ca", "--cacert"),
    (r"\.tls\.certificate", "--cert"),
    (r"\.tls\.key", "--key"),
    (r"\.tls", "--servername"),
    (r"target\.", "the URL"),
    (r"\.rate_per_s", "--rate"),
    (r"\.users|\.max_in_flight", "--connections"),
    (r"\.requests", "--requests"),
    (r"^threads", "--threads"),
    (r"^warmup_ns", "--warmup"),
    (r"^duration_ns", "--duration"),
    (r"^seed", "--seed"),
    (r"^feeds", "--feed"),
)


def error_of(fault: PlanError) -> PlanError | UsageError:
    """Return the first fault of a plan in terms of flags; one without a flag stays as it is."""
    for place, words in fault.faults:
        for pattern, flag in _FLAGS:
            if re.search(pattern, place):
                return _as_usage(words, flag)
    return fault


def _as_usage(words: str, flag: str) -> UsageError:
    if "target.authority" in words:
        hint = "the host in the URL, and --resolve HOST:PORT:ADDRESS to connect elsewhere"
        return UsageError("the Host header is that of the URL", where=flag, hint=hint)
    message, _, suggestion = words.partition("; did you mean ")
    unknown, _, forms = words.partition(" is unknown; ")
    if forms and not suggestion:
        feed, dot, _ = unknown.rpartition("`: `")[2].partition(".")
        hint = f"--feed {feed}=FILE.csv, whose columns are its fields" if dot else forms
        return UsageError(f"{unknown} is unknown", where=flag, hint=hint)
    if suggestion:
        return UsageError(message, where=flag, hint=f"did you mean {suggestion.partition('?')[0]}?")
    message, _, advice = words.partition(": ") if words.count(": ") == 1 else (words, "", "")
    return UsageError(message, where=flag, hint=advice or None)
