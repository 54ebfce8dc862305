"""The register study's service on its real stack: FastAPI, uvicorn, bcrypt, SQLite.

Its environment is built once into the usual cache; after that this takes seconds.
"""

from __future__ import annotations

import json
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from loadlens.model.topology import Build, Entry, Ready, ServerTimes, Service
from loadlens.temporary import default_cache
from loadlens.testbed import Testbed, prepare, readiness

STUDY = Path(__file__).parents[2] / "studies" / "register"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request that asks whether it is ready is answered, and so written down."""
    monkeypatch.setattr(readiness, "ATTEMPT_WITHIN_S", 20.0)


@pytest.fixture(params=[(1, "blocking"), (2, "threads")], ids=["1 worker, blocking", "2 workers, threads"])
def bed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Testbed]:
    workers, hashing = request.param
    service = Service(
        "api",
        f"uvicorn api.main:app --host $host --port $port --workers {workers} --no-access-log",
        dir="service",
        build=Build("python", "requirements.txt"),
        setup="python -m api.schema",
        env=(
            ("HASH", hashing),
            ("BCRYPT_COST", "4"),  # the behaviour under test does not depend on the cost of a hash
            ("DATABASE_URL", "sqlite+aiosqlite:///$scratch/users.db"),
            ("TIMES", "$scratch/times.jsonl"),
        ),
        ready=Ready("/api/health/"),
        server_times=ServerTimes("$scratch/times.jsonl", "path", "status", "duration_s"),
    )
    prepared = prepare([service], cache=default_cache(), folder=STUDY)
    with Testbed(
        [service],
        prepared,
        marker=f"test-{secrets.token_hex(6)}",
        scratch=tmp_path / "scratch",
        logs=tmp_path / "logs",
    ) as testbed:
        testbed.start()
        yield testbed


def ask(bed: Testbed, path: str, content: dict[str, str] | None = None) -> tuple[int, Any]:
    """Status and JSON of one request."""
    request = urllib.request.Request(
        f"http://{bed.target(Entry('api')).authority}{path}",
        data=None if content is None else json.dumps(content).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def lines_of(path: Path, count: int) -> list[dict[str, Any]]:
    """The lines, once there are so many: one is written a moment after its answer has been sent."""
    until = time.monotonic() + 10
    while (lines := path.read_text().splitlines()) and len(lines) < count and time.monotonic() < until:
        time.sleep(0.01)
    return [json.loads(line) for line in lines]


def test_users_register_once_and_log_in_and_every_request_is_written_down(bed: Testbed) -> None:
    ada = {"username": "ada", "password": "lovelace"}

    answers = [
        ask(bed, "/api/health/"),
        ask(bed, "/api/users/register/", ada),
        ask(bed, "/api/users/register/", ada),
        ask(bed, "/api/users/login/", ada),
        ask(bed, "/api/users/login/", ada | {"password": "byron"}),
        ask(bed, "/api/users/login/", ada | {"username": "charles"}),
        ask(bed, "/api/users/register/", ada | {"password": "x" * 73}),  # bcrypt would cut it at 72 bytes
    ]
    with ThreadPoolExecutor(8) as pool:
        names = [{"username": f"user {number}", "password": "x"} for number in range(40)]
        crowd = list(pool.map(lambda name: ask(bed, "/api/users/register/", name)[0], names))
    (file,) = bed.server_times_files()
    asked = bed.readiness_requests["api"] + len(answers) + len(crowd)
    lines = lines_of(file.path, asked)

    assert answers[0] == (200, {"status": "OK"})
    assert answers[1] == (201, {"id": 1, "username": "ada"})
    assert [status for status, _ in answers[2:]] == [409, 200, 401, 401, 422]
    assert crowd == [201] * 40
    assert len(lines) == asked  # whole lines, also from several workers
    assert sum(line["status"] == 201 for line in lines) == 41
    assert all(0 < line["duration_s"] < 30 for line in lines)
