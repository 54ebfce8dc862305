"""Connections that a service opens for its requests, from counts made up by hand."""

from __future__ import annotations

import pytest

from loadlens.diagnose.observe import opened_connections
from loadlens.model.facts import KernelWatch, Step
from tests.unit.diagnose.build import connections, curve, step

OWN = 50  # connections of the load, at each level


def level(answered: int, *, opened: float | None) -> Step:
    """So many answers, while programs of the machine asked for so many connections."""
    kernel = None if opened is None else KernelWatch(None, None, 0.0, 0.0, 0.0, OWN + opened, 20.0)
    return step(1.0, answered / 20, 0.02, kernel=kernel, connections=connections(OWN, answered))


@pytest.mark.parametrize(
    ("levels", "each"),
    [
        ([(400, 400), (1_000, 1_000)], 1.0),
        ([(400, 1_240), (1_000, 3_040)], 3.0),  # 40 of another program at both
        ([(40, 80), (400, 440), (1_000, 1_040)], 1.0),
        ([(40, 80), (400, 800), (1_000, 1_040)], None),  # 360 more were opened between, for something else
        ([(400, 400), (500, 500)], None),  # 25 % more answers: another program may open as many
        ([(400, 400), (1_000, 400)], None),  # as many at both
        ([(400, 0), (1_000, 0)], None),
        ([(400, 200), (1_000, 500)], None),  # every second request: what most of them use stands
        ([(400, 400)], None),
        ([(400, None), (1_000, 1_000)], None),
        ([(20, 20), (110, 110)], None),  # too few answers to count
    ],
)
def test_what_grows_with_the_answers_is_opened_by_them(
    levels: list[tuple[int, float | None]], each: float | None
) -> None:
    seen = opened_connections.per_request(curve(*(level(count, opened=opened) for count, opened in levels)))

    assert seen == (each if each is None else pytest.approx(each))


def test_connections_of_the_load_are_no_others() -> None:
    assert opened_connections.besides_load(level(400, opened=7.0)) == 7.0


def test_advice_says_how_many() -> None:
    single, triple = (
        opened_connections.advice(curve(level(400, opened=400 * n), level(1_000, opened=1_000 * n)))
        for n in (1, 3)
    )

    assert (
        single
        == " Each request opens a new connection to another program: keep them open and use them again."
    )
    assert " opens 3 new connections " in triple
