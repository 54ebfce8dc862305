"""Every kind of part misbehaving in every way: a clear message, the right error, nothing left over.

The bad manners of `odd_service.py` on each way to run a service (a process, replicas, builds of Node and of
Elixir), and real PostgreSQL and nginx servers stopped, killed and crowded out.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from loadlens.errors import ExitCode, TestbedError
from loadlens.model.topology import Build, Ready, Service, Stop
from loadlens.testbed import Testbed, prepare
from loadlens.testbed import ports as tcp
from tests.calm import where_calm
from tests.end_to_end.testbed_cases import (
    ask_to_die,
    bed_of,
    busy_in,
    carriers,
    odd,
    still_there,
    wait_until_gone,
)

HOMES = Path(__file__).parents[1] / "data" / "odd"
KINDS: dict[str, dict[str, Any]] = {
    "process": {},
    "replicas": {"replicas": 3},
    "node": {"dir": str(HOMES / "node"), "build": Build("node", "package.json")},
    "mix": {"dir": str(HOMES / "mix"), "build": Build("mix", "mix.exs")},
}
START = {
    "node": "node odd.js $port {manners}",
    "mix": "elixir -pa _build/prod/lib/odd/ebin -e 'Odd.main(System.argv())' $port {manners}",
}
PROGRAMS = {"node": "npm", "mix": "mix"}


@dataclass(frozen=True)
class Kind:
    """One way to run a service, and the testbed folder and cache that its tests share."""

    name: str
    folder: Path
    cache: Path
    marker: str

    def service(self, manners: str, **others: Any) -> Service:
        made = odd(manners=manners, **{**KINDS[self.name], **others})
        start = START.get(self.name)
        return made if start is None else replace(made, start=start.format(manners=manners))

    def bed(self, manners: str, **others: Any) -> Testbed:
        service = self.service(manners, **others)
        prepared = prepare([service], cache=self.cache, folder=self.folder)
        scratch, logs = self.folder / "scratch", self.folder / "logs"
        return Testbed([service], prepared, marker=self.marker, scratch=scratch, logs=logs)


@pytest.fixture(scope="module")
def cache() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="loadlens-test-") as folder:
        yield Path(folder)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path: Path, cache: Path) -> Iterator[Kind]:
    yield from made(request.param, tmp_path, cache)


@pytest.fixture(params=["process", "replicas"])
def plain_kind(request: pytest.FixtureRequest, tmp_path: Path, cache: Path) -> Iterator[Kind]:
    """A kind without a build, for what does not depend on how the service was built."""
    yield from made(request.param, tmp_path, cache)


def made(name: str, tmp_path: Path, cache: Path) -> Iterator[Kind]:
    """Make a kind; nothing of it may be left at the end."""
    if name in PROGRAMS and shutil.which(PROGRAMS[name]) is None:
        pytest.skip(f"no {PROGRAMS[name]} here")
    kind = Kind(name, tmp_path, cache, f"test-{secrets.token_hex(6)}")
    yield kind
    assert wait_until_gone(kind.marker) == []
    assert not (tmp_path / "scratch").exists()


# --- services of every kind -----------------------------------------------------------------------------


def test_one_that_exits_at_once_is_named_with_its_last_words(kind: Kind) -> None:
    with pytest.raises(TestbedError, match=r"api(\.\d)? ended before it was ready, exit status 3") as raised:
        kind.bed("say=no-such-table exit=3").start()

    assert raised.value.code is ExitCode.TESTBED
    assert "no-such-table" in raised.value.message
    assert (raised.value.where or "").endswith(".log")


@pytest.mark.parametrize(
    ("manners", "seen"), [("listen=no", "connection refused"), ("status=503", "status 503")]
)
@where_calm
def test_one_that_never_is_ready_is_named_with_what_was_seen(
    plain_kind: Kind, manners: str, seen: str
) -> None:
    within = 1.0 if seen == "connection refused" else 2.5  # to come up

    with pytest.raises(TestbedError, match=rf"api(\.\d)? was not ready within .*last: {seen}") as raised:
        plain_kind.bed(f"say=still-thinking {manners}", ready=Ready("/", within_s=within)).start()

    assert raised.value.code == ExitCode.TESTBED
    assert "allow more time" in (raised.value.hint or "")


def test_one_that_ignores_its_signal_is_killed_and_told(kind: Kind) -> None:
    with kind.bed("ignore=TERM", stop=Stop(within_s=0.3)) as bed:
        bed.start()
        leaks = bed.stop()

    replicas = bed_names(kind)
    assert leaks == tuple(f"{name} did not end within 0.3 s of SIGTERM and was killed" for name in replicas)


def test_grandchildren_in_a_session_of_their_own_are_ended_and_told(kind: Kind) -> None:
    with kind.bed("descendants=session", stop=Stop(within_s=20.0)) as bed:
        bed.start()
        until = time.monotonic() + 10
        while len(sleepers(kind)) < len(bed_names(kind)) and time.monotonic() < until:
            time.sleep(0.02)
        left = sleepers(kind)
        leaks = bed.stop()

    assert len(left) == len(bed_names(kind))
    assert sum("sleep 600" in words for words in leaks) == len(left), leaks


def test_a_flood_of_output_is_drained_and_bounded(kind: Kind) -> None:
    # the service listens only after it has said it all
    with kind.bed("flood=20000000", ready=Ready("/", within_s=60.0)) as bed:
        bed.start()
    logs = [path.read_bytes() for path in (kind.folder / "logs").glob("api*.log")]

    assert len(logs) == len(bed_names(kind))
    assert all(len(log) <= 1 << 20 and log.startswith(b"[first]") for log in logs)
    assert all(b"[last]" in log[-100:] and b"[loadlens left out" in log for log in logs)


def test_one_that_dies_under_test_is_named_with_its_last_words(plain_kind: Kind) -> None:
    with plain_kind.bed("") as bed:
        bed.start()
        ask_to_die(bed)
        with pytest.raises(TestbedError, match=r"ended while it was under test, exit status 7") as raised:
            check_for(bed, 30.0)

    assert "now I die" in raised.value.message


def test_a_port_that_was_taken_is_exchanged(plain_kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = hand_out_first(monkeypatch, other)
        with plain_kind.bed("") as bed:
            bed.start()
            ports = [ports["http"] for ports in bed.ports["api"]]

    assert taken not in ports


def check_for(bed: Testbed, seconds: float) -> None:
    """Check as a running trial does."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        bed.check()
        time.sleep(0.02)


def sleepers(kind: Kind) -> list[str]:
    return [line for line in carriers(kind.marker) if line.partition(" ")[2].strip() == "sleep 600"]


def bed_names(kind: Kind) -> list[str]:
    count = KINDS[kind.name].get("replicas", 1)
    return ["api"] if count == 1 else [f"api.{number}" for number in range(1, count + 1)]


def hand_out_first(monkeypatch: pytest.MonkeyPatch, other: socket.socket) -> int:
    """Make the search for free ports hand out one that is taken, as if it had been free a moment ago."""
    taken = int(other.getsockname()[1])
    waiting = [taken]
    take = tcp.Ports.take
    monkeypatch.setattr(tcp.Ports, "take", lambda self: waiting.pop() if waiting else take(self))
    return taken


# --- PostgreSQL and nginx -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Farm:
    """A database, and two services behind nginx."""

    folder: Path
    marker: str

    def bed(self, **of_db: Any) -> Testbed:
        quick = Stop(within_s=2.0)
        return bed_of(
            Service("db", use="postgres", ports=("sql",), stop=quick, **of_db),
            odd("web", replicas=2, after=("db",)),
            Service("lb", use="nginx", over=("web",), stop=quick),
            folder=self.folder,
            marker=self.marker,
        )


@pytest.fixture
def farm() -> Iterator[Farm]:
    with tempfile.TemporaryDirectory(prefix="loadlens-test-") as made:
        folder = Path(made)
        folder.chmod(0o755)  # another user than we runs the servers
        farm = Farm(folder, f"test-{secrets.token_hex(6)}")
        yield farm
        assert wait_until_gone(farm.marker) == []
        # PostgreSQL and nginx write over their environment, and so over the mark
        assert still_there(lambda: busy_in(folder), within_s=3.0) == []
        assert not (folder / "scratch").exists()


def pid_of(bed: Testbed, name: str) -> int:
    return next(process.pid for process in bed.processes() if process.service == name)


@pytest.mark.parametrize("part", ["db", "lb"])
def test_a_server_that_dies_under_test_is_named_and_what_it_forked_is_ended(farm: Farm, part: str) -> None:
    with farm.bed() as bed:
        bed.start()
        before = len(busy_in(farm.folder))
        os.kill(pid_of(bed, part), signal.SIGKILL)
        with pytest.raises(TestbedError, match=f"{part} ended while it was under test, ended by SIGKILL"):
            check_for(bed, 10.0)

    assert before > 4  # the four servers, and what they forked


def test_servers_that_do_not_hear_their_signals_are_killed_and_told(farm: Farm) -> None:
    with farm.bed() as bed:
        bed.start()
        for part in ("db", "lb"):
            os.kill(pid_of(bed, part), signal.SIGSTOP)
        leaks = bed.stop()

    for part, number in (("db", "SIGINT"), ("lb", "SIGQUIT")):
        assert f"{part} did not end within 2 s of {number} and was killed" in leaks


@pytest.mark.parametrize("place", [0, 3], ids=["db", "lb"])  # of its port among those that are taken
def test_a_server_whose_port_was_taken_gets_another(
    farm: Farm, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    take = tcp.Ports.take
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = int(other.getsockname()[1])

        def taken_once(self: tcp.Ports) -> int:
            calls.append(taken if len(calls) == place else take(self))
            return calls[-1]

        monkeypatch.setattr(tcp.Ports, "take", taken_once)
        with farm.bed() as bed:
            bed.start()
            ports = {port for parts in bed.ports.values() for replica in parts for port in replica.values()}

    assert taken in calls
    assert taken not in ports
    assert len(calls) == 8  # two rounds of four


def test_a_flood_in_the_log_of_the_database_is_drained_and_bounded(farm: Farm) -> None:
    loop = "do $$ begin for i in 1..2000 loop raise log '%', repeat('x', 10000); end loop; end $$"

    with farm.bed() as bed:
        bed.start()
        (sql,) = (parts[0]["sql"] for name, parts in bed.ports.items() if name == "db")
        server = Path(next(p.command[0] for p in bed.processes() if p.service == "db"))
        command = [str(server.with_name("psql")), "-X", "-q", "-c", loop]
        url = f"postgresql://lab@127.0.0.1:{sql}/postgres"
        subprocess.run([*command, url], check=True, timeout=60, capture_output=True)

    assert (farm.folder / "logs" / "db.log").stat().st_size <= 1 << 20


def test_a_database_that_is_never_ready_is_named(farm: Farm) -> None:
    late = Ready("/", within_s=0.5)  # it speaks no HTTP: asked for it, PostgreSQL never answers so

    with pytest.raises(TestbedError, match=r"db was not ready within 0\.5 s: wanted status 200"):
        farm.bed(ready=late).start()


def test_a_balancer_with_a_setting_that_nginx_refuses_speaks_with_its_words(farm: Farm) -> None:
    balancer = Service("lb", use="nginx", over=("web",), settings=(("next_upstream", "sometimes"),))

    with pytest.raises(TestbedError, match=r"lb\.first\.1 failed") as raised:
        bed_of(odd("web"), balancer, folder=farm.folder, marker=farm.marker).start()

    assert 'invalid value "sometimes"' in raised.value.message
