"""Flaws that show in the distribution of response times, or only over time."""

from __future__ import annotations

from typing import Final

from catalogue.drawing import Draws
from catalogue.families.waiting import LOCK
from catalogue.family import LIMITS_OF_THE_MACHINE, Drawn, Family, Label, Number, need
from catalogue.parts import holding, lock, ms, pair, per_s, plateau, seconds, server, share, threads, wait

NEVER_MS: Final = 3_600_000
_OF_32_THREADS: Final = frozenset({"threads.pool-limit", "outside.handler-wait", "downstream.serialised"})


def _slow_path(draws: Draws) -> Drawn:
    base, shift, weight = draws.scaled(5, 25), draws.scaled(150, 600), draws.by_severity(0.02, 0.2)
    return pair(
        server(draws, wait(base), wait(shift, only={"share": weight})),
        Label((need("mixture.slow-path"),), LIMITS_OF_THE_MACHINE),
        {"weight": share(weight), "shift": ms(shift), "alone": ms(base + weight * shift)},
        server(draws, wait(base)),
    )


def _stuck(draws: Draws) -> Drawn:
    """Draw a share such that each user is stuck with a chance of 5 to 30 % within five seconds."""
    base = draws.scaled(5, 25)
    weight = draws.by_severity(0.05, 0.3) * base / 5_000
    return pair(
        server(draws, wait(base), wait(NEVER_MS, only={"share": weight})),
        Label((need("requests.stuck"),), LIMITS_OF_THE_MACHINE | {"fairness.starvation"}),
        {"weight": share(weight)},
        server(draws, wait(base)),
    )


def _pauses(draws: Draws) -> Drawn:
    base, length, every = draws.scaled(2, 8), draws.by_severity(120, 400), draws.scaled(1_000, 4_000)
    return pair(
        server(draws, wait(base), pauses={"every_ms": every, "length_ms": length}),
        Label((need("pause.periodic"),), LIMITS_OF_THE_MACHINE),
        {"period": ms(every), "length": ms(length), "alone": ms(base)},
        server(draws, wait(base)),
    )


def _irregular(draws: Draws) -> Drawn:
    base, length, every = draws.scaled(2, 8), draws.by_severity(150, 500), draws.scaled(2_000, 5_000)
    pauses = {"every_ms": every, "length_ms": length, "law": "exponential"}
    return pair(
        server(draws, wait(base), pauses=pauses),
        Label((need("pause.aperiodic"),), LIMITS_OF_THE_MACHINE),
        {"mean_distance": ms(every), "length": ms(length), "alone": ms(base)},
        server(draws, wait(base)),
    )


def _leak(draws: Draws) -> Drawn:
    # The server keeps at most 256 MiB; a leak that stopped during a diagnosis would look like a cache.
    base, kept = draws.scaled(10, 30), round(draws.by_severity(1_000, 2_500))
    return pair(
        server(draws, wait(base), {"do": "leak", "bytes": kept}, serve=threads(32)),
        Label((need("drift.leak", tier="B"),), LIMITS_OF_THE_MACHINE | _OF_32_THREADS),
        {"kept": Number(kept, "bytes"), "alone": ms(base)},
        server(draws, wait(base), serve=threads(32)),
        Label((), LIMITS_OF_THE_MACHINE | _OF_32_THREADS),
    )


def _growth(draws: Draws) -> Drawn:
    base, doubling = draws.scaled(10, 30), draws.by_severity(12_000, 3_000)
    work = wait(base, per_row_us=base * 1e3 / doubling)
    more = {"do": "grow", "rows": 1}
    return pair(
        server(draws, work, more, serve=threads(32)),
        Label((need("drift.data-growth", "drift.leak"),), LIMITS_OF_THE_MACHINE | _OF_32_THREADS),
        {"alone": ms(base), "doubling": Number(doubling, "requests")},
        server(draws, work, serve=threads(32)),
        Label((), LIMITS_OF_THE_MACHINE | _OF_32_THREADS),
    )


def _cold(draws: Draws) -> Drawn:
    base, factor, time = draws.scaled(5, 20), draws.by_severity(3, 8), draws.scaled(4, 12)
    return pair(
        server(draws, wait(base), warmup={"factor": factor, "time_s": time}),
        Label((need("warmup.incomplete"),), LIMITS_OF_THE_MACHINE),
        {"factor": Number(factor, "ratio"), "time": seconds(time)},
        server(draws, wait(base)),
    )


def _starved(draws: Draws) -> Drawn:
    base, slower, one_in = draws.scaled(3, 10), draws.by_severity(8, 40), draws.whole(3, 5)
    more = wait(base * (slower - 1), only={"connection_in": one_in})
    return pair(
        server(draws, wait(base), more),
        # From outside, a balancer that keeps connections on a slow replica looks the same.
        Label((need("fairness.starvation", tier="B"),), LIMITS_OF_THE_MACHINE | {"mixture.slow-path"}),
        {"slower": Number(slower, "ratio"), "starved": share(1 / one_in), "alone": ms(base)},
        server(draws, wait(base)),
    )


def _logged(draws: Draws) -> Drawn:
    base, line = draws.scaled(2, 6), draws.whole(80, 400)
    write = {"do": "write", "file": "access.log", "bytes": line, "sync": True}
    return pair(
        server(draws, wait(base), write, folder="@folder"),
        Label(
            (need("logging.per-request", tier="B"),),
            LIMITS_OF_THE_MACHINE | {"disk.bound", "downstream.serialised", "db.lock"},
        ),
        {"line": Number(line, "bytes")},
        server(draws, wait(base), folder="@folder"),
    )


def _disk(draws: Draws) -> Drawn:
    # Past the page cache: on a fast disk, copying into the cache takes more time than the disk does.
    base, pages = draws.scaled(2, 6), round(draws.by_severity(50, 250))
    store = {"do": "store", "file": "table.data", "pages": pages}
    return pair(
        server(draws, wait(base), store, folder="@folder"),
        Label(
            (need("disk.bound", tier="B"),),
            frozenset({"saturation.plateau", "downstream.serialised", "db.lock", "logging.per-request"}),
        ),
        {"written": Number(4096 * pages, "bytes")},
        server(draws, wait(base), folder="@folder"),
    )


def _stored_and_logged(draws: Draws) -> Drawn:
    # Requests wait for the page only; the log line stays in the page cache until the kernel writes it.
    base, pages, line = draws.scaled(2, 6), draws.whole(1, 4), draws.whole(80, 400)
    log = {"do": "write", "file": "access.log", "bytes": line}
    store = {"do": "store", "file": "table.data", "pages": pages}
    allowed = LIMITS_OF_THE_MACHINE | {"saturation.plateau", "downstream.serialised", "db.lock"}
    return pair(
        server(draws, wait(base), log, store, folder="@folder"),
        Label((need("disk.bound", tier="B"),), allowed),
        {"written": Number(4096 * pages, "bytes"), "line": Number(line, "bytes")},
        server(draws, wait(base), log, folder="@folder"),
        Label((), LIMITS_OF_THE_MACHINE),
    )


def _varied_lock(draws: Draws) -> Drawn:
    """Draw a near miss of drifts and pauses: a lock whose holding times vary widely."""
    base, hold = draws.scaled(1, 4), draws.scaled(6, 15)
    return pair(
        server(draws, wait(base), *holding("db", wait(hold, law="exponential")), resources={"db": lock()}),
        Label((LOCK, need("saturation.plateau"))),
        plateau(1e3 / hold, base + hold, rate=per_s(1e3 / hold)),
        server(draws, wait(base), wait(hold, law="exponential"), resources={"db": lock()}),
    )


FAMILIES: Final = (
    Family(
        "slow-path",
        "a proportion of the requests takes a fixed time longer",
        _slow_path,
        looks_like=("pauses", "dear-connections"),
    ),
    Family("pauses", "all requests stop at regular intervals", _pauses, looks_like=("slow-path", "quota")),
    Family(
        "irregular-pauses",
        "all requests stop at irregular intervals",
        _irregular,
        looks_like=("slow-path", "pauses"),
    ),
    Family("stuck", "a few requests are never answered", _stuck, looks_like=("slow-path",)),
    Family("leak", "every request leaks memory", _leak),
    Family("data-growth", "every request makes the next ones slower", _growth, looks_like=("cold-start",)),
    Family(
        "cold-start", "slow at first, as before just-in-time compilation", _cold, looks_like=("data-growth",)
    ),
    Family("starved-connections", "some connections are served last", _starved, looks_like=("slow-path",)),
    Family(
        "synced-log", "each request waits until its log line is on disk", _logged, looks_like=("db-lock",)
    ),
    Family("disk-bound", "each request waits until its data is on disk", _disk, looks_like=("synced-log",)),
    Family(
        "stored-and-logged",
        "each request waits until its page is on disk, and writes a log line without waiting for it",
        _stored_and_logged,
        looks_like=("synced-log",),
    ),
    Family("varied-lock", "a lock with exponential holding times", _varied_lock, looks_like=("db-pool",)),
)
