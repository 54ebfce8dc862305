"""Subjects of the commands of this folder: a server that answers, a study, a record."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from benches.measuring import origin

from tests.edges.commands import possible, run
from tests.end_to_end.hitting import origin_program, url_of

STUDY = """\
entry: URL
scenarios: {look: [{get: /}]}
load: {users: 2, requests: 20, warmup: 0s}
probes: {}
trials: 1
"""


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """A URL that answers."""
    with origin(origin_program(), cpu=0) as server:
        yield url_of(server)


@pytest.fixture(scope="session")
def settings(url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables of commands: $U a URL, $S a study that asks it, $R a record of that study."""
    folder = tmp_path_factory.mktemp("made")
    study, record = folder / "study.yaml", folder / "record"
    study.write_text(STUDY.replace("URL", url))
    made = run(f"$L run {study} -o {record} -q", folder)
    assert made.code in possible(0, "$L run study"), made.shown
    return {"U": url, "S": str(study), "R": str(record)}
