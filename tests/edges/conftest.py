"""Subjects of the commands of this folder: a server that answers, a study, a record."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches.measuring import origin

from tests.edges import forked, forking
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


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The socket of a process that forks for every command."""
    path = tmp_path_factory.mktemp("forks") / "socket"
    words = [sys.executable, "-m", forked.__name__, str(path)]
    few = {"OPENBLAS_NUM_THREADS": "1"}  # no thread when it forks
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **few}
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b""  # closed when it listens
        yield path


@pytest.fixture(scope="session")
def forking_settings(settings: dict[str, str], forks: Path) -> dict[str, str]:
    """The same variables, with an $L that forks and starts no interpreter of the program."""
    return {**settings, "L": f"{sys.executable} -I -S {forking.__file__} {forks}"}
