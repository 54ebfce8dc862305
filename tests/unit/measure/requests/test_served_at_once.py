"""Requests in service at failures, from logs of small services that are simulated here, event by event."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

import polars as pl
import pytest

from loadlens.measure.requests.served_at_once import of_trials
from loadlens.model.shapes import FailedAtOnce
from loadlens.model.trial import Outcome

WORK_S, REFUSAL_S, SECONDS = 0.050, 0.001, 2.0


class Room:
    """Admits a request while fewer than `size` are served."""

    def __init__(self, size: int) -> None:
        self.size = size

    def admits(self, now: float, served: int) -> bool:
        return served < self.size


class Bucket:
    """Admits a request for each token, of which `rate` come per second and `burst` are saved up."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst, self.tokens, self.at = rate, burst, burst, 0.0

    def admits(self, now: float, served: int) -> bool:
        self.tokens = min(self.burst, self.tokens + self.rate * (now - self.at))
        self.at = now
        has_one = self.tokens >= 1
        self.tokens -= has_one
        return has_one


class Chance:
    """Admits all but a share."""

    def __init__(self, fails: float) -> None:
        self.fails, self.random = fails, random.Random(7)

    def admits(self, now: float, served: int) -> bool:
        return self.random.random() >= self.fails


def log(users: int, door: Room | Bucket | Chance, *, status: int = 500, thinned: int = 0) -> pl.DataFrame:
    """Return the requests of users who send the next one as soon as the last has ended."""
    rows: list[tuple[float, float, Outcome]] = []
    ends: list[float] = []  # of those in service
    due = [(user * 1e-6, user) for user in range(users)]
    while due and due[0][0] < SECONDS:
        now, user = heapq.heappop(due)
        while ends and ends[0] <= now:
            heapq.heappop(ends)
        if door.admits(now, len(ends)):
            done, outcome = now + WORK_S, Outcome.OK
            heapq.heappush(ends, done)
        else:
            done, outcome = now + REFUSAL_S, Outcome.UNEXPECTED_STATUS
        rows.append((now, done, outcome))
        heapq.heappush(due, (done, user))
    return pl.DataFrame(
        {
            "stream": [0] * len(rows),
            "step": [0] * len(rows),
            "outcome": [int(outcome) for _, _, outcome in rows],
            "status": [200 if outcome is Outcome.OK else status for _, _, outcome in rows],
            "due_ns": [round(begin * 1e9) for begin, _, _ in rows],
            "sent_ns": [round(begin * 1e9) for begin, _, _ in rows],
            "done_ns": [round(done * 1e9) for _, done, _ in rows],
            "thinned": [thinned] * len(rows),
        }
    )


def seen(users: int, door: Callable[[], Room | Bucket | Chance], trials: int = 2) -> FailedAtOnce:
    level = of_trials(float(users), [log(users, door()) for _ in range(trials)])
    assert level is not None
    return level


@pytest.mark.parametrize("users", [7, 12, 40])
def test_a_room_for_six_is_full_at_every_failure_and_never_holds_more(users: int) -> None:
    level = seen(users, lambda: Room(6))

    assert (level.served, level.first, level.beyond) == (6, (6.0, 6.0), 0.0)
    assert level.same > 0.95  # a place is free for the millisecond until the next one asks
    assert level.successes == 2 * 6 * round(SECONDS / WORK_S) or level.successes < 2 * 6 * SECONDS / WORK_S
    assert (level.outcome, level.status) == ("unexpected_status", 500)
    assert level.failure_s == pytest.approx(REFUSAL_S)
    assert level.success_s == pytest.approx(WORK_S)


def test_what_a_limit_of_the_rate_saved_up_is_in_service_at_its_first_failures() -> None:
    """100/s for 50 ms each are 5 at a time, but first there are as many as were saved up, if users ask."""
    few, many = seen(12, lambda: Bucket(100.0, 2.0)), seen(12, lambda: Bucket(100.0, 30.0))

    assert few.first != (few.served, few.served)
    assert many.first != (many.served, many.served)


def test_failures_by_chance_come_while_all_other_users_are_served() -> None:
    for users in (4, 12):
        level = seen(users, lambda: Chance(0.1))

        assert level.served in (users - 1, users - 2)
        assert level.beyond > 0.5  # while all were served


def test_only_the_most_frequent_kind_of_failure_is_looked_at() -> None:
    often, once = log(8, Room(6), status=503), log(8, Room(6), status=500).tail(3)

    level = of_trials(8.0, [pl.concat([often, once])])

    assert level is not None
    assert level.status == 503


def test_a_connection_that_is_refused_counts_from_when_the_request_was_due() -> None:
    rows = log(8, Room(6)).with_columns(
        outcome=pl.when(pl.col("outcome") == 0).then(0).otherwise(int(Outcome.REFUSED)),
        sent_ns=pl.when(pl.col("outcome") == 0).then(pl.col("sent_ns")).otherwise(-1),
    )

    level = of_trials(8.0, [rows])

    assert level is not None
    assert (level.served, level.outcome) == (6, "refused")


def test_without_failures_there_is_nothing_to_say() -> None:
    assert of_trials(6.0, [log(6, Room(6))]) is None
