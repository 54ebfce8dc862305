"""Refusals before anything is connected or started."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadlens.errors import UsageError
from loadlens.fleet.cluster import connect
from loadlens.fleet.place import place_of


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("tcp://192.0.2.1:8786", "is not encrypted"),
        ("tcp://gen1.example:8786", "is not encrypted"),
        ("tcp://[2001:db8::1]:8786", "is not encrypted"),
        ("tls://192.0.2.1:8786", "needs a certificate, and Dask's configuration names none"),
        ("gen1", "a fleet is not named like this: gen1"),
        ("local:0", "local:0 is no number of nodes"),
        ("local:many", "local:many is no number of nodes"),
        ("local:65", "at most 64"),
        ("nowhere.json", "nowhere.json is no file of a scheduler"),
    ],
)
def test_a_fleet_that_cannot_be_used_is_refused_in_a_line(where: str, words: str) -> None:
    with pytest.raises(UsageError) as refused, connect(place_of(where)):
        pass

    assert words in str(refused.value)
    assert refused.value.hint


def test_the_address_in_a_file_must_be_encrypted_too(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text('{"address": "tcp://192.0.2.1:8786"}')

    with pytest.raises(UsageError, match="is not encrypted"), connect(place_of(str(file))):
        pass
