"""Fixtures of the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from benches.measuring import Origin, origin

from tests.end_to_end.hitting import origin_program


@pytest.fixture(scope="module")
def server() -> Iterator[Origin]:
    """An origin of a module's own, which the tests of `loadlens hit` drive."""
    with origin(origin_program(), cpu=0) as running:
        yield running
