"""A testbed of real processes, most of which misbehave."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from loadlens.errors import ExitCode, TestbedError
from loadlens.model.topology import Entry, Limits, Ready, Reset, ServerTimes, Service, Stop
from loadlens.testbed import KeeperLost, Testbed, readiness
from loadlens.testbed import ports as tcp
from loadlens.testbed.keeper import Command, Keeper
from tests.calm import where_calm
from tests.end_to_end.testbed_cases import (
    ODD_SERVICE,
    PYTHON,
    ask_to_die,
    bed_of,
    carriers,
    odd,
    said_by,
    sleepers_below,
    wait_until_gone,
)


@pytest.fixture
def marker() -> str:
    return f"test-{secrets.token_hex(6)}"


def answer(bed: Testbed, service: str = "api") -> int:
    """Status of GET / at a service."""
    target = bed.target(Entry(service))
    with urllib.request.urlopen(f"http://{target.authority}/", timeout=5) as response:
        return int(response.status)


def check_for(bed: Testbed, seconds: float) -> None:
    """Check as a running trial does."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        bed.check()
        time.sleep(0.02)


def test_services_are_ready_when_start_returns_and_gone_when_stop_returns(
    tmp_path: Path, marker: str
) -> None:
    with bed_of(odd(), folder=tmp_path, marker=marker) as bed:
        bed.start()
        status = answer(bed)
        leaks = bed.stop()

    assert status == 200
    assert leaks == ()
    assert carriers(marker) == []
    assert not (tmp_path / "scratch").exists()


def test_every_replica_has_a_port_and_a_log_of_its_own(tmp_path: Path, marker: str) -> None:
    service = odd(manners="say=I-am-$replica-at-$port.http", replicas=3)

    with bed_of(service, folder=tmp_path, marker=marker) as bed:
        bed.start()
        ports = [replica["http"] for replica in bed.ports["api"]]
        logs = [said_by(bed, process.log) for process in bed.processes()]

    assert len(set(ports)) == 3
    assert logs == [f"I-am-{number}-at-{port}\n" for number, port in enumerate(ports, 1)]


def test_a_service_starts_after_those_it_names_are_ready_and_knows_where_they_are(
    tmp_path: Path, marker: str
) -> None:
    events: list[tuple[object, object]] = []
    services = (
        odd("web", "say=$db.url|$db.host|$db.port", after=("db",)),
        odd("db"),
    )

    with bed_of(
        *services,
        folder=tmp_path,
        marker=marker,
        on_event=lambda e: events.append((e["event"], e.get("service"))),
    ) as bed:
        bed.start()
        port = bed.ports["db"][0]["http"]
        environment = said_by(bed, tmp_path / "logs" / "web.log")

    assert events[:4] == [
        ("service_started", "db"),
        ("service_ready", "db"),
        ("service_started", "web"),
        ("service_ready", "web"),
    ]
    assert environment == f"http://127.0.0.1:{port}|127.0.0.1|{port}\n"


def test_setup_runs_before_the_service_and_its_failure_says_what_it_said(tmp_path: Path, marker: str) -> None:
    good = odd(setup="touch $scratch/made")
    bad = odd(setup=f"{PYTHON} -c 'print(\"no table\"); raise SystemExit(4)'")

    with bed_of(good, folder=tmp_path, marker=marker) as bed:
        bed.start()
        was_made = (tmp_path / "scratch" / "made").exists()
    with pytest.raises(TestbedError, match=r"api\.setup failed: exit status 4") as raised:
        bed_of(bad, folder=tmp_path, marker=marker).start()

    assert was_made
    assert "no table" in raised.value.message
    assert carriers(marker) == []


def test_a_service_that_exits_at_once_is_reported_with_its_last_lines(tmp_path: Path, marker: str) -> None:
    bed = bed_of(odd(manners="say=cannot-open-database exit=3"), folder=tmp_path, marker=marker)

    with pytest.raises(TestbedError, match="api ended before it was ready, exit status 3") as raised:
        bed.start()

    assert raised.value.code is ExitCode.TESTBED
    assert "cannot-open-database" in raised.value.message
    assert raised.value.where == str(tmp_path / "logs" / "api.log")
    assert carriers(marker) == []


def test_a_service_that_never_listens_is_reported_with_what_was_seen_last(
    tmp_path: Path, marker: str
) -> None:
    service = odd(manners="listen=no", ready=Ready("/health", within_s=0.3))

    with pytest.raises(TestbedError, match=r"was not ready within 0\.3 s.*/health.*connection refused"):
        bed_of(service, folder=tmp_path, marker=marker).start()

    assert carriers(marker) == []


@where_calm
def test_an_answer_with_another_status_is_not_ready(
    tmp_path: Path, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "ATTEMPT_WITHIN_S", 20.0)  # one request, however late its answer
    service = odd(manners="status=503", ready=Ready("/", within_s=4.0))  # time to come up, on any machine
    same_service_wanted_so = replace(service, ready=Ready("/", status=503))

    with pytest.raises(TestbedError, match=r"wanted status 200 from GET .*, last: status 503"):
        bed_of(service, folder=tmp_path, marker=marker).start()
    with bed_of(same_service_wanted_so, folder=tmp_path, marker=marker) as bed:
        bed.start()
        requests = bed.readiness_requests

    assert requests == {"api": 1}


def test_a_command_that_is_not_there_is_named(tmp_path: Path, marker: str) -> None:
    service = odd(start="no-such-server --port $port")

    with pytest.raises(TestbedError, match=r"lacks no-such-server \(for api\)"):
        bed_of(service, folder=tmp_path, marker=marker).start()


def test_a_service_that_dies_under_test_is_noticed_by_the_next_check(tmp_path: Path, marker: str) -> None:
    with bed_of(odd(), folder=tmp_path, marker=marker) as bed:
        bed.start()
        bed.check()
        ask_to_die(bed)
        with pytest.raises(TestbedError, match="api ended while it was under test, exit status 7") as raised:
            check_for(bed, 20.0)

    assert "now I die" in raised.value.message


def test_a_service_that_ignores_term_is_killed_and_reported(tmp_path: Path, marker: str) -> None:
    service = odd(manners="ignore=TERM", stop=Stop(within_s=0.2))

    with bed_of(service, folder=tmp_path, marker=marker) as bed:
        bed.start()
        leaks = bed.stop()

    assert leaks == ("api did not end within 0.2 s of SIGTERM and was killed",)
    assert carriers(marker) == []


def test_each_replica_has_a_folder_for_temporary_files_that_is_gone_after_a_kill(
    tmp_path: Path, marker: str
) -> None:
    script = tmp_path / "untidy.py"
    script.write_text("import tempfile, time\nprint(tempfile.mkdtemp(), flush=True)\ntime.sleep(600)\n")
    service = Service("api", start=f"{PYTHON} {script}", replicas=2, ports=())

    with bed_of(service, folder=tmp_path, marker=marker) as bed:
        bed.start()
        logs = [tmp_path / "logs" / f"api.{number}.log" for number in (1, 2)]
        until = time.monotonic() + 20
        while not all(said_by(bed, log) for log in logs) and time.monotonic() < until:
            time.sleep(0.05)
        made = [Path(said_by(bed, log).strip()) for log in logs]
        were_there = [folder.is_dir() for folder in made]
        for process in bed.processes():
            os.kill(process.pid, signal.SIGKILL)
        bed.stop()

    assert were_there == [True, True]
    assert made[0].parent != made[1].parent
    assert not made[0].parent.parent.exists()


def test_the_stop_signal_is_the_one_that_was_asked_for(tmp_path: Path, marker: str) -> None:
    service = odd(manners="ignore=TERM", stop=Stop("INT", within_s=20.0))

    with bed_of(service, folder=tmp_path, marker=marker) as bed:
        bed.start()
        leaks = bed.stop()

    assert leaks == ()


def test_descendants_in_their_own_session_or_without_the_marker_are_ended_and_reported(
    tmp_path: Path, marker: str
) -> None:
    service = odd(manners="descendants=child,session,orphan,cleared")

    with bed_of(service, folder=tmp_path, marker=marker) as bed:
        bed.start()
        assert bed.keeper_pid is not None
        sleepers = sleepers_below(bed.keeper_pid)
        leaks = bed.stop()

    assert len(sleepers) == 4
    assert wait_until_gone(marker, sleepers) == []
    assert len(leaks) == 4
    assert all("sleep 600" in words for words in leaks)
    assert sum(words.startswith("api left process") for words in leaks) == 3
    assert sum(words.startswith("the testbed left process") for words in leaks) == 1  # its service is unknown


def test_200_mb_without_a_newline_are_drained_and_head_and_tail_are_kept(tmp_path: Path, marker: str) -> None:
    # the service listens only after it has said it all: readiness shows that nothing blocked it
    service = odd(manners="flood=200000000", ready=Ready("/", within_s=30.0))

    with bed_of(service, folder=tmp_path, marker=marker) as bed:
        bed.start()
    log = (tmp_path / "logs" / "api.log").read_bytes()

    assert len(log) <= 1 << 20
    assert log.startswith(b"[first]xxx")
    assert log.endswith(b"xxx[last]")
    assert b"[loadlens left out" in log


def test_a_port_taken_by_somebody_else_is_exchanged_once(
    tmp_path: Path, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        _hand_out_first(monkeypatch, [taken])
        with bed_of(
            odd(), folder=tmp_path, marker=marker, on_event=lambda event: events.append(event["event"])
        ) as bed:
            bed.start()
            port = bed.ports["api"][0]["http"]

    assert port != taken
    assert events.count("port_taken") == 1


def test_a_port_taken_twice_is_an_error_that_names_it(
    tmp_path: Path, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        _hand_out_first(monkeypatch, [taken, taken])
        with pytest.raises(TestbedError, match=f"port {taken} of api was taken by another process"):
            bed_of(odd(), folder=tmp_path, marker=marker).start()


def test_a_service_that_ends_because_its_port_was_taken_under_its_feet_starts_once_more(
    tmp_path: Path, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[object] = []
    held = tcp.Ports()
    taken = held.take()
    really_free = tcp.is_free
    looked_at: list[int] = []

    def free_at_the_first_look(port: int) -> bool:
        looked_at.append(port)
        return looked_at.count(taken) == 1 or really_free(port)

    monkeypatch.setattr(tcp, "is_free", free_at_the_first_look)
    _hand_out_first(monkeypatch, [taken])
    with subprocess.Popen([sys.executable, "-S", ODD_SERVICE, str(taken), "status=404"]) as other:
        with bed_of(
            odd(), folder=tmp_path, marker=marker, on_event=lambda e: events.append(e["event"])
        ) as bed:
            while really_free(taken):
                time.sleep(0.005)
            bed.start()
            port = bed.ports["api"][0]["http"]
        other.kill()
    held.release()

    assert port != taken
    assert events[:3] == ["service_started", "service_stopped", "port_taken"]


def _hand_out_first(monkeypatch: pytest.MonkeyPatch, ports: list[int]) -> None:
    """Make the search for free ports hand out these ones first, as if they had been free a moment ago."""
    take = tcp.Ports.take
    monkeypatch.setattr(tcp.Ports, "take", lambda self: ports.pop(0) if ports else take(self))


def test_two_testbeds_at_once_do_not_share_ports_and_end_separately(tmp_path: Path, marker: str) -> None:
    for name in ("1", "2"):
        (tmp_path / name).mkdir()

    with (
        bed_of(odd(), folder=tmp_path / "1", marker=marker) as first,
        bed_of(odd(), folder=tmp_path / "2", marker=marker) as second,
    ):
        first.start()
        second.start()
        ports = {first.ports["api"][0]["http"], second.ports["api"][0]["http"]}
        first.stop()  # same run, same marker: the other one must not be touched
        second.check()
        status = answer(second)

    assert len(ports) == 2
    assert status == 200
    assert carriers(marker) == []


def test_when_the_keeper_is_killed_the_lab_notices_and_ends_everything(tmp_path: Path, marker: str) -> None:
    with bed_of(odd(manners="descendants=child,session"), folder=tmp_path, marker=marker) as bed:
        bed.start()
        assert bed.keeper_pid is not None
        os.kill(bed.keeper_pid, 9)
        with pytest.raises(KeeperLost, match=r"keeper of the testbed was lost \(ended by SIGKILL\)"):
            bed.check()
        left = carriers(marker)

    assert left == []


def test_a_process_that_ended_leaves_its_cpu_time_and_when_that_was(tmp_path: Path) -> None:
    burn = "import time\nwhile time.process_time() < 0.2: pass"
    with Keeper(marker=f"test-{secrets.token_hex(4)}") as keeper:
        before = time.monotonic_ns()
        keeper.spawn("one", Command((sys.executable, "-c", burn), {"PATH": "/usr/bin:/bin"}, tmp_path))
        until = time.monotonic() + 30
        while (standing := keeper.standing()["one"]).status is None:
            assert standing.cpu_s is None
            assert time.monotonic() < until
            time.sleep(0.01)

    assert standing.cpu_s is not None
    assert 0.2 <= standing.cpu_s < 5  # CPU time, not the clock's
    assert standing.ended_ns is not None
    assert before + 200_000_000 <= standing.ended_ns <= time.monotonic_ns()


def test_a_request_that_was_interrupted_does_not_disturb_the_next(tmp_path: Path) -> None:
    with Keeper(marker="test-interrupted") as keeper:
        keeper.spawn("one", Command(("sleep", "60"), {"PATH": "/usr/bin:/bin"}, tmp_path))
        keeper._door.sendall(
            b'{"op": "tail", "number": -1, "id": "one", "size": 9}\n'
        )  # its reply is not read
        standing = keeper.standing()

    assert standing["one"].status is None


def test_reset_removes_files_runs_the_command_and_verifies(tmp_path: Path, marker: str) -> None:
    (tmp_path / "outside.txt").touch()
    good = Reset(
        "trial", files=("$scratch/*.db",), run="touch $scratch/fresh", verify="test -e $scratch/fresh"
    )
    unverified = Reset("trial", verify="test -e $scratch/absent")
    outside = Reset("trial", files=(f"{tmp_path}/outside.txt",))
    service = odd(dir="home")
    (tmp_path / "home").mkdir()

    with bed_of(service, folder=tmp_path, marker=marker) as bed:
        bed.start()
        scratch = tmp_path / "scratch"
        (scratch / "users.db").touch()
        bed.reset(good)
        remaining = sorted(path.name for path in scratch.iterdir())
        with pytest.raises(TestbedError, match=r"api\.reset\.verify failed: exit status 1"):
            bed.reset(unverified)
        with pytest.raises(TestbedError, match=r"reset would remove .*outside\.txt"):
            bed.reset(outside)

    assert remaining == ["fresh"]
    assert (tmp_path / "outside.txt").exists()


def test_a_secret_reaches_the_service_and_is_masked_in_its_log(
    tmp_path: Path, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", "correct horse battery")
    events: list[object] = []
    code = (
        'import os,time; print("got", len(os.environ["PW"]), os.environ["PW"], flush=True); time.sleep(600)'
    )
    service = odd(
        start=f"{PYTHON} -c '{code}'", env=(("PW", "{{env DB_PASSWORD}}"),), ready=None, stop=Stop(within_s=5)
    )

    with bed_of(service, folder=tmp_path, marker=marker, on_event=events.append) as bed:
        bed.start()
        log, until = tmp_path / "logs" / "api.log", time.monotonic() + 10
        while not log.read_text() and time.monotonic() < until:
            time.sleep(0.01)
        shown = repr(bed.processes())

    assert log.read_text() == "got 21 ********\n"
    assert "correct horse" not in repr(events) + shown


def test_files_with_server_times_are_found_once_for_all_replicas(tmp_path: Path, marker: str) -> None:
    keys = ServerTimes("$scratch/times.jsonl", "path", "status", "seconds")
    own_keys = replace(keys, file="$scratch/times-$replica.jsonl")
    services = (
        odd("shared", replicas=2, server_times=keys),
        odd("own", replicas=2, server_times=own_keys),
    )

    with bed_of(*services, folder=tmp_path, marker=marker) as bed:
        bed.start()
        files = [(file.service, file.path.name) for file in bed.server_times_files()]

    assert files == [("shared", "times.jsonl"), ("own", "times-1.jsonl"), ("own", "times-2.jsonl")]


def test_a_url_needs_no_services_and_starts_nothing(tmp_path: Path, marker: str) -> None:
    with bed_of(folder=tmp_path, marker=marker) as bed:
        bed.start()
        bed.check()
        target = bed.target(Entry(url="http://example.test:8080/base"))
        default_port = bed.target(Entry(url="http://[::1]"))
        keeper = bed.keeper_pid
        with pytest.raises(TestbedError, match="not an HTTP URL: ftp://"):
            bed.target(Entry(url="ftp://example.test"))

    assert (target.host, target.port, target.authority) == ("example.test", 8080, "example.test:8080")
    assert (default_port.host, default_port.port, default_port.authority) == ("::1", 80, "[::1]")
    assert keeper is None


def test_a_cpu_set_holds_for_the_service_and_what_it_starts(tmp_path: Path, marker: str) -> None:
    cpu = min(os.sched_getaffinity(0))
    service = odd(manners="descendants=child", limits=Limits(cpus=(cpu,)))

    with bed_of(service, folder=tmp_path, marker=marker) as bed:
        bed.start()
        (process,) = bed.processes()
        (child,) = sleepers_below(process.pid)
        sets = [os.sched_getaffinity(process.pid), os.sched_getaffinity(child)]

    assert sets == [{cpu}, {cpu}]


def test_a_quota_of_cpu_time_holds_or_the_limit_is_refused(tmp_path: Path, marker: str) -> None:
    code = (
        "import time; began, used = time.monotonic(), time.process_time()\n"
        "while time.monotonic() < began + 1.0: pass\n"
        "print((time.process_time() - used) / (time.monotonic() - began), flush=True); time.sleep(600)"
    )
    service = odd(start=f"{PYTHON} -c '{code}'", ready=None, limits=Limits(cpu=0.2))

    with bed_of(service, folder=tmp_path, marker=marker) as bed:
        try:
            bed.start()
        except TestbedError as refused:
            pytest.skip(f"control groups are not ours to make here: {refused.message}")
        (group,) = bed.processes()[0].groups
        log, until = tmp_path / "logs" / "api.log", time.monotonic() + 20
        while not log.read_text() and time.monotonic() < until:
            time.sleep(0.01)
    share = float(log.read_text())

    assert share < 0.25  # of a core; a period more, and what the kernel deals out at once
    assert not Path(group).exists()
