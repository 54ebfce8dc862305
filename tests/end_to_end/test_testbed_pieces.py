"""The parts of a testbed that are not processes of the study: each with the real program."""

from __future__ import annotations

import collections
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from loadlens.errors import TestbedError
from loadlens.model.topology import Entry, Ready, Reset, Service
from loadlens.testbed import Testbed, prepare, programs
from tests.end_to_end.testbed_cases import bed_of, carriers, odd, said_by, shared_memory_of


@pytest.fixture
def marker() -> str:
    return f"test-{secrets.token_hex(6)}"


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that another user may enter: pytest's own is closed to all but us."""
    with tempfile.TemporaryDirectory(prefix="loadlens-test-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.fixture
def caveats() -> list[object]:
    return []


def bed_with(caveats: list[object], *services: Service, folder: Path, marker: str) -> Testbed:
    def listen(event: object) -> None:
        if isinstance(event, dict) and event["event"] == "caveat":
            caveats.append(event["words"])

    return bed_of(*services, folder=folder, marker=marker, on_event=listen)


def psql(bed: Testbed, sql: str) -> str:
    port = bed.ports["db"][0]["sql"]
    server = Path(next(p.command[0] for p in bed.processes() if p.service == "db"))
    done = subprocess.run(
        [
            server.with_name("psql"),
            "-X",
            "-A",
            "-t",
            "-c",
            sql,
            f"postgresql://lab@127.0.0.1:{port}/postgres",
        ],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    return done.stdout.strip()


# --- postgres -------------------------------------------------------------------------------------------


def test_postgres_is_empty_private_and_set_as_the_study_says(
    folder: Path, marker: str, caveats: list[object]
) -> None:
    database = Service(
        "db", use="postgres", ports=("sql",), settings=(("max_connections", "17"), ("fsync", "off"))
    )

    with bed_with(caveats, database, folder=folder, marker=marker) as bed:
        bed.start()
        tables = psql(bed, "select count(*) from pg_stat_user_tables")
        settings = psql(bed, "select current_setting('max_connections'), current_setting('fsync')")
        listens = psql(bed, "select current_setting('listen_addresses')")
        owner = Path(f"/proc/{bed.processes()[0].pid}").stat().st_uid
        leaks = bed.stop()

    assert (tables, settings, listens) == ("0", "17|off", "127.0.0.1")
    assert owner != 0
    assert caveats == [
        "db runs with fsync off: a commit does not wait for the disk, so writes are faster than in production"
    ]
    assert leaks == ()
    assert carriers(marker) == []
    assert not (folder / "scratch").exists()


def test_postgres_leaves_no_shared_memory_when_it_is_killed(folder: Path, marker: str) -> None:
    database = Service("db", use="postgres", ports=("sql",))

    with bed_of(database, folder=folder, marker=marker) as bed:
        bed.start()
        segments = list((folder / "scratch" / "db" / "data" / "pg_dynshmem").iterdir())
        pids = [carrier.split()[0] for carrier in carriers(marker) if "postgres" in carrier]
        elsewhere = shared_memory_of(pids)
        for pid in pids:
            os.kill(int(pid), signal.SIGKILL)
        bed.stop()

    assert segments  # it has some, but in the folder of its data
    assert elsewhere == {}
    table = Path("/proc/sysvipc/shm").read_text()  # the fifth column is the process that made a segment
    assert not {line.split()[4] for line in table.splitlines()[1:]} & set(pids)
    assert not (folder / "scratch").exists()


def test_a_service_finds_its_database_by_url(folder: Path, marker: str) -> None:
    database = Service("db", use="postgres", ports=("sql",))
    api = odd(manners="say=$db.url", after=("db",))

    with bed_of(database, api, folder=folder, marker=marker) as bed:
        bed.start()
        port = bed.ports["db"][0]["sql"]
        address = said_by(bed, folder / "logs" / "api.log").strip()

    assert address == f"postgresql://lab@127.0.0.1:{port}/postgres"


def test_postgres_says_in_its_own_words_why_it_does_not_start(folder: Path, marker: str) -> None:
    database = Service("db", use="postgres", ports=("sql",), settings=(("shared_bufers", "1MB"),))

    with pytest.raises(TestbedError, match="db ended before it was ready") as raised:
        bed_of(database, folder=folder, marker=marker).start()

    assert "unrecognized configuration parameter" in raised.value.message
    assert "shared_bufers" in raised.value.message
    assert carriers(marker) == []


def test_a_wheel_brings_postgres_where_the_system_has_none(
    folder: Path, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "find", lambda program, path=None: None)

    with bed_of(Service("db", use="postgres", ports=("sql",)), folder=folder, marker=marker) as bed:
        bed.start()
        command = bed.processes()[0].command[0]
        version = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=20).stdout

    assert version.startswith("postgres (PostgreSQL) 18.")


# --- nginx ----------------------------------------------------------------------------------------------


def answers(bed: Testbed, count: int) -> collections.Counter[str]:
    """Number of answers of each backend."""
    target = bed.target(Entry("lb"))
    seen: collections.Counter[str] = collections.Counter()
    for _ in range(count):
        with urllib.request.urlopen(f"http://{target.authority}/", timeout=5) as response:
            seen[response.headers["X-Port"]] += 1
    return seen


def logged(path: Path, count: int) -> list[dict[str, str]]:
    """The lines about `/`, once there are so many: nginx writes them every 0.2 s."""
    until = time.monotonic() + 20
    while True:
        whole = path.read_text().rpartition("\n")[0]
        lines = [line for line in map(json.loads, whole.splitlines()) if line["path"] == "/"]
        if len(lines) >= count or time.monotonic() > until:
            return lines
        time.sleep(0.05)


def test_nginx_gives_each_replica_its_turn_and_writes_down_who_answered(folder: Path, marker: str) -> None:
    balancer = Service("lb", use="nginx", over=("api",))

    with bed_of(balancer, odd(replicas=3), folder=folder, marker=marker) as bed:
        bed.start()
        seen = answers(bed, 30)
        ports = sorted(str(ports["http"]) for ports in bed.ports["api"])
        (log,) = bed.access_logs()
        owner = Path(f"/proc/{next(p.pid for p in bed.processes() if p.service == 'lb')}").stat().st_uid
        lines = logged(log.path, 30)

    assert sorted(seen) == ports
    assert set(seen.values()) == {10}
    assert owner != 0 or os.geteuid() != 0
    by_backend = collections.Counter(line["backend"] for line in lines)
    assert by_backend == {f"127.0.0.1:{port}": 10 for port in ports}
    assert all(float(line["backend_s"]) <= float(line["seconds"]) + 0.002 for line in lines)
    assert carriers(marker) == []


def test_a_failed_backend_is_seen_by_the_client_and_not_hidden_by_a_second_try(
    folder: Path, marker: str
) -> None:
    balancer = Service("lb", use="nginx", over=("api",))

    with bed_of(balancer, odd(replicas=2), folder=folder, marker=marker) as bed:
        bed.start()
        victim = next(p for p in bed.processes() if p.service == "api")
        os.kill(victim.pid, signal.SIGKILL)
        target = bed.target(Entry("lb"))
        statuses: collections.Counter[int] = collections.Counter()
        for _ in range(20):
            try:
                with urllib.request.urlopen(f"http://{target.authority}/", timeout=5) as response:
                    statuses[response.status] += 1
            except urllib.error.HTTPError as error:
                statuses[error.code] += 1

    assert statuses == {200: 10, 502: 10}


def test_a_policy_reaches_the_configuration(folder: Path, marker: str) -> None:
    balancer = Service(
        "lb", use="nginx", over=("api",), policy="least-connections", settings=(("keepalive", "0"),)
    )

    with bed_of(balancer, odd(replicas=2), folder=folder, marker=marker) as bed:
        bed.start()
        assert sum(answers(bed, 6).values()) == 6
        text = (folder / "scratch" / "lb" / "nginx.conf").read_text()

    assert "least_conn;" in text
    assert "proxy_http_version" not in text


def test_a_wheel_brings_nginx_where_the_system_has_none(
    folder: Path, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "find", lambda program, path=None: None)

    with bed_of(
        Service("lb", use="nginx", over=("api",)), odd(replicas=2), folder=folder, marker=marker
    ) as bed:
        bed.start()
        assert sum(answers(bed, 4).values()) == 4


# --- what is missing ------------------------------------------------------------------------------------


def test_missing_programs_are_named_all_at_once_with_the_command_that_installs_them(folder: Path) -> None:
    services = (
        odd(start="no-such-server --port $port"),
        replace(odd("web"), needs=("elixir", "no-such-tool")),
        replace(odd("job"), needs=("elixir",)),
    )
    if shutil.which("elixir"):
        pytest.skip("elixir is here")

    with pytest.raises(TestbedError) as raised:
        prepare(services, cache=folder / "cache", folder=folder)

    assert raised.value.message == (
        "this machine lacks no-such-server (for api), elixir (for web, job), no-such-tool (for web)"
    )
    assert raised.value.hint == (
        "apt-get install elixir; put no-such-server, no-such-tool on the PATH, or check the spelling"
    )
    assert not (folder / "cache").exists()


# --- data -----------------------------------------------------------------------------------------------


def test_a_reset_by_sql_puts_the_data_back_and_sees_that_it_did(folder: Path, marker: str) -> None:
    services = (odd(), Service("db", use="postgres", ports=("sql",)))
    put_back = Reset(before="trial", sql="truncate t", verify_sql="select count(*) = 0 from t")

    with bed_of(*services, folder=folder, marker=marker) as bed:
        bed.start()
        psql(bed, "create table t (n int); insert into t values (1), (2)")
        bed.reset(put_back)
        left = psql(bed, "select count(*) from t")
        psql(bed, "insert into t values (3)")
        with pytest.raises(TestbedError, match="the data are not as expected") as untrue:
            bed.reset(replace(put_back, sql=None))
        with pytest.raises(TestbedError, match=r"db\.reset\.sql failed") as wrong:
            bed.reset(replace(put_back, sql="truncate nothing"))

    assert left == "0"
    assert "answered 'f'" in untrue.value.message
    assert 'relation "nothing" does not exist' in wrong.value.message


def test_a_reset_by_sql_without_a_database_is_refused(folder: Path, marker: str) -> None:
    with bed_of(odd(), folder=folder, marker=marker) as bed:
        bed.start()
        with pytest.raises(TestbedError, match="the reset needs a database for its SQL, got none"):
            bed.reset(Reset(before="trial", sql="truncate t"))


# --- runtimes that report on themselves -------------------------------------------------------------------


def samples_of(bed: Testbed, service: str) -> Path:
    return Path(next(p.samples for p in bed.processes() if p.service == service))


def sampled_within(folder: Path, seconds: float) -> list[str]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sampled = sorted(path.name for path in folder.glob("*.jsonl") if path.stat().st_size)
        if sampled:
            return sampled
        time.sleep(0.05)
    return []


def test_node_samples_itself_beside_the_studys_own_options_and_leaves_nothing(
    folder: Path, marker: str
) -> None:
    path = folder / "app.js"
    path.write_text(
        "require('http').createServer((q, a) => a.end(JSON.stringify({own: process.execArgv,"
        " limit: require('v8').getHeapStatistics().heap_size_limit})))"
        ".listen(process.argv[2], '127.0.0.1');"
    )
    service = Service(
        "app",
        start=f"node {path} $port",
        runtime="node",
        replicas=2,
        setup="node -e setTimeout(()=>{},1500)",
        env=(("NODE_OPTIONS", "--max-old-space-size=64"),),
        ready=Ready("/"),
    )
    with bed_of(service, folder=folder, marker=marker) as bed:
        bed.start()
        folders = [Path(p.samples) for p in bed.processes()]
        pids = [p.pid for p in bed.processes()]
        seen = [sampled_within(place, 15) for place in folders]
        port = bed.ports["app"][0]["http"]
        answer = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10))

    assert seen == [[f"{pid}-0.jsonl"] for pid in pids]  # the setup is no part of the service
    assert answer["limit"] < 128 << 20
    assert not (folder / "scratch").exists()
    assert carriers(marker) == []


def test_a_scratch_folder_of_the_callers_own_is_left_as_it_was(folder: Path, marker: str) -> None:
    (folder / "scratch").mkdir()
    (folder / "scratch" / "mine").write_text("kept")
    with bed_of(replace(odd(), runtime="node"), folder=folder, marker=marker) as bed:
        bed.start()

    assert [path.name for path in (folder / "scratch").rglob("*")] == ["mine"]


def test_the_beam_samples_itself(folder: Path, marker: str) -> None:
    service = Service("app", start="erl -noshell", runtime="beam", ports=())
    with bed_of(service, folder=folder, marker=marker) as bed:
        bed.start()
        (process,) = bed.processes()
        seen = sampled_within(samples_of(bed, "app"), 15)

    assert seen == [f"{process.pid}.jsonl"]


def test_a_sampler_that_cannot_be_compiled_is_said_aloud_and_the_service_runs(
    folder: Path, marker: str, caveats: list[object]
) -> None:
    tools = folder / "tools"
    tools.mkdir()
    (tools / "erlc").write_text("#!/bin/sh\necho no compiler here; exit 3\n")
    (tools / "erlc").chmod(0o755)
    path = f"{tools}:{os.environ['PATH']}"
    service = Service("app", start="erl -noshell", runtime="beam", ports=(), env=(("PATH", path),))
    with bed_with(caveats, service, folder=folder, marker=marker) as bed:
        bed.start()
        bed.check()
        is_sampled = list(samples_of(bed, "app").glob("*.jsonl"))

    (caveat,) = caveats
    assert "beam is not sampled" in str(caveat)
    assert is_sampled == []
