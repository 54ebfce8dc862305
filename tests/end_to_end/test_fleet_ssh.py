"""A fleet over SSH: a real sshd on loopback, reached as two hosts."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from benches.measuring import ROOT, Origin

from loadlens.errors import UsageError
from loadlens.fleet import ssh
from loadlens.fleet.cluster import connect
from loadlens.fleet.place import place_of
from loadlens.fleet.trial import run_trial
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import Open
from loadlens.record import open_run
from tests import tiny
from tests.calm import assert_ran
from tests.end_to_end.fleets import MARK, plan_of, reached
from tests.end_to_end.hitting import settled_books
from tests.end_to_end.test_fleet_verbs import verb

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
SERVER = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
StrictModes no
PidFile none
AcceptEnv PYTHONPATH TMPDIR {mark}
"""
CLIENT = """
Host gen1 gen2
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/user
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
  SendEnv PYTHONPATH TMPDIR {mark}
"""

pytestmark = pytest.mark.skipif(SSHD is None, reason="no sshd: apt-get install openssh-server")


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let `ssh gen1` and `ssh gen2` reach a server of the test's own; return the hosts' temporary folder."""
    assert SSHD is not None
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    (tmp_path / "sshd_config").write_text(SERVER.format(port=port, folder=tmp_path, mark=MARK))
    (tmp_path / "config").write_text(CLIENT.format(port=port, folder=tmp_path, mark=MARK))
    client = tmp_path / "bin" / "ssh"
    client.parent.mkdir()
    client.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {tmp_path}/config "$@"\n')
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{client.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with open(tmp_path / "sshd.log", "wb") as log:
        server = subprocess.Popen([SSHD, "-D", "-e", "-f", tmp_path / "sshd_config"], stderr=log)
    try:
        if not reached(lambda: answers("gen1"), 5):
            pytest.skip(f"sshd does not run here: {(tmp_path / 'sshd.log').read_text().strip()[-200:]}")
        yield temporary
    finally:
        server.kill()
        server.wait()


def answers(host: str) -> bool:
    return subprocess.run(["ssh", host, "true"], capture_output=True, check=False).returncode == 0


def workers() -> list[psutil.Process]:
    """Return Dask's workers on the hosts of this test; others run theirs meanwhile."""
    running = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            is_worker = process.cmdline()[1:4] == ["-m", "dask", "worker"]
            if is_worker and process.environ().get(MARK) == os.environ[MARK]:
                running.append(process)
    return running


def test_hosts_carry_a_load_through_tunnels_and_keep_nothing(hosts: Path, server: Origin) -> None:
    server.new_books()

    with connect(place_of("ssh:gen1,gen2")) as fleet:
        result = run_trial(fleet, plan_of(server, Open(200.0), seconds=1.0))
        assert not fleet.is_insecure
        assert len(workers()) == 2
        assert len(list(hosts.glob("*/dask-scratch-space"))) == 2

    assert [node["name"] for node in result["nodes"]] == ["gen1", "gen2"]
    assert result["streams"][0]["requests"]["issued"] == settled_books(server)["received"]
    assert result["streams"][0]["requests"]["due"] == 200
    assert reached(lambda: not workers() and not list(hosts.iterdir()), within_s=5)


@pytest.mark.usefixtures("hosts")
def test_a_study_is_run_by_hosts_that_keep_nothing(tmp_path: Path) -> None:
    study = tiny.write_study(tmp_path / "study", trials=1, users="[4]")

    done = verb("run", str(study), "-q", "--out", str(tmp_path / "run"), "--fleet", "ssh:gen1,gen2")

    assert_ran(done)
    (trial,) = open_run(tmp_path / "run").trials
    assert trial.status is TrialStatus.COMPLETE
    assert trial.nodes == ("gen1", "gen2")
    assert reached(lambda: not workers(), within_s=5)


@pytest.mark.usefixtures("hosts")
def test_a_host_without_loadlens_is_named_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ssh.PYTHON, "/nowhere/python")

    with pytest.raises(UsageError) as refused, connect(place_of("ssh:gen1")):
        pass

    assert str(refused.value).startswith("no node on gen1: ")
    assert "/nowhere/python" in str(refused.value).splitlines()[0]
    assert refused.value.hint == "ssh gen1 /nowhere/python -m dask --version"
