"""Words of a server about its own failures, in its log and in failing answers, counted by kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from loadlens.model.facts import LogSign

MOST_BYTES = 1 << 20  # of each log, from its end
LONGEST_SAMPLE = 80
AROUND = 300  # characters around the words of a time-out that may say of what

# Words in which databases and their drivers say that a lock was waited for in vain.
LOCK = re.compile(
    r"database is locked|database table is locked|lock wait timeout exceeded|deadlock (?:found|detected)"
    r"|could not obtain lock|canceling statement due to lock timeout|lock request time out"
    r"|ORA-00054|ORA-30006|Timeout trying to lock table|could not serialize access",
    re.IGNORECASE,
)
# Words in which pools of connections say that none became free in time, or databases that they take no more.
POOL = re.compile(
    r"QueuePool limit [^\n]{0,60}"
    r"|connection is not available, request timed out[^\n]{0,40}"
    r"|(?:couldn't|could not|cannot|unable to) (?:get|acquire|obtain|borrow) "
    r"(?:a |an |any )?(?:\w+ )?connection[^\n]{0,60}"
    r"|timeout exceeded when trying to connect"
    r"|time[d -]*out (?:acquiring|waiting for|getting)[^\n]{0,30}connection"
    r"|connection not available and request was dropped from queue"
    r"|\bPoolTimeout(?:Error)?\b|no (?:free|available) connections?\b[^\n]{0,30}"
    r"|no (?:\w+ )?connections? (?:within|in|after|for) [\d.]+ ?m?s\b"
    r"|pool (?:is )?(?:exhausted|full)\b"
    r"|remaining connection slots are reserved|too many clients already|too many (?:database )?connections",
    re.IGNORECASE,
)
# EADDRNOTAVAIL of a connection; a process that cannot listen at an address gets it too, and logs that.
PORTS = re.compile(
    r"^(?!.*\b(?:bind|listen)).*?(?:cannot assign requested address|EADDRNOTAVAIL).*$",
    re.IGNORECASE | re.MULTILINE,
)
DESCRIPTORS = re.compile(r"too many open files|\bEMFILE\b|\bENFILE\b", re.IGNORECASE)
THREADS = re.compile(
    r"can't start new thread|unable to create (?:new )?native thread|RejectedExecution(?:Exception)?"
    r"|pthread_create failed|Resource temporarily unavailable.{0,20}fork",
    re.IGNORECASE,
)
MEMORY = re.compile(
    r"cannot allocate memory|java\.lang\.OutOfMemoryError|\bMemoryError\b|JavaScript heap out of memory"
    r"|\bENOMEM\b|out of memory",
    re.IGNORECASE,
)
QUOTA = re.compile(
    r"(?<!disk )(?<![/\w-])quota\b.{0,30}?\b(?:exceeded|exhausted|used up|reached|spent)\b"
    r"|\b(?:exceeded|exhausted|used up|over) (?:\w+ ){0,2}(?<!disk )quota\b"
    r"|\btoo many requests\b|\busage limit\b|\brate[ -]limited\b|\brate limit (?:exceeded|reached|hit)\b"
    r"|\b(?:\w+ )?(?:allows?|allowance|limited to)\b.{0,30}\b(?:an?|per|each|every) "
    r"(?:second|minute|hour|day|week|month)\b"
    r"|\b(?:plan|allowance|(?<!retry )budget|credits?) (?:(?:is|are|was|were) )?"
    r"(?:exceeded|exhausted|used up|spent)\b"
    r"|\b(?:daily|hourly|monthly|request|api|call|plan) limit (?:is |was )?(?:exceeded|reached|used up)\b",
    re.IGNORECASE,
)
# Words of any time-out, whatever was waited for.
TIMEOUT = re.compile(
    r"\btimed[ -]out\b|\b\w*Timeout(?:Error|Exception|Expired)\b"
    r"|\btime-?out (?:exceeded|expired|reached|after)\b"
    r"|\bdeadline exceeded\b|\btook too long\b|\bgave up (?:after|waiting)\b",
    re.IGNORECASE,
)
KINDS = {
    "lock": LOCK,
    "pool": POOL,
    "ports": PORTS,
    "descriptors": DESCRIPTORS,
    "threads": THREADS,
    "memory": MEMORY,
    "quota": QUOTA,
}


def signs(logs: Iterable[str], answers: Iterable[tuple[str, int]] = ()) -> tuple[LogSign, ...]:
    """Kinds of failures that a server speaks of, how often, and the words of the first.

    Args:
        logs: Texts of logs.
        answers: Texts of failing answers, each with the number of answers for which it stands. A kind that
            a log names too is counted there.
    """
    of_log: dict[str, int] = {}
    of_answers: dict[str, int] = {}
    samples: dict[str, str] = {}
    for log in logs:
        for kind, words in _said(log[-MOST_BYTES:]):
            of_log[kind] = of_log.get(kind, 0) + 1
            samples.setdefault(kind, words[:LONGEST_SAMPLE])
    for text, count in answers:
        for kind, words in dict(reversed(list(_said(text)))).items():
            if kind not in of_log:
                of_answers[kind] = of_answers.get(kind, 0) + count
                samples.setdefault(kind, words[:LONGEST_SAMPLE])
    return (
        *(LogSign(kind, count, samples[kind]) for kind, count in of_log.items()),
        *(LogSign(kind, count, samples[kind], "answers") for kind, count in of_answers.items()),
    )


def _said(text: str) -> Iterator[tuple[str, str]]:
    """Yield kinds with the words; a time-out only where the line does not say of what."""
    for kind, pattern in KINDS.items():
        yield from ((kind, match.group(0)) for match in pattern.finditer(text))
    for match in TIMEOUT.finditer(text):
        begin, end = max(0, match.start() - AROUND), match.end() + AROUND
        line = text[begin : match.start()].rpartition("\n")[2] + text[match.start() : end].partition("\n")[0]
        # A limit of the time is no quota.
        if not any(pattern.search(line) for kind, pattern in KINDS.items() if kind != "quota"):
            yield "timeout", match.group(0)


def tail(log: str, lines: int = 20) -> str:
    """The last lines of a log."""
    return "\n".join(log.splitlines()[-lines:])
