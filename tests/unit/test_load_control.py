"""Requests to change a running load: who may make them, and what is answered."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loadlens.errors import UsageError
from loadlens.load_control import PATIENCE_S, LoadControl, Refused, WantedChange, change_load
from loadlens.model.result import LoadChange

LIMIT_S = 20
CHANGE = LoadChange("load", "users", 4.0, 9.0, 1_500_000_000)


def asked(run: Path, wanted: WantedChange) -> LoadChange:
    """Ask a lab that makes every change of users and refuses every rate."""

    def change(wanted: WantedChange) -> LoadChange:
        if wanted.rate_per_s is not None:
            raise Refused("a closed load has users, and no rate")
        assert wanted == WantedChange(users=9)
        return CHANGE

    control = LoadControl(run)
    until = time.monotonic() + LIMIT_S
    try:
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(change_load, run, wanted)
            while not answer.done():
                assert time.monotonic() < until
                control.serve(change)
                time.sleep(0.001)
            return answer.result()
    finally:
        control.close()


def test_a_change_is_answered_with_its_moment(tmp_path: Path) -> None:
    assert asked(tmp_path, WantedChange(users=9)) == CHANGE
    assert CHANGE.words == "load: 4 users to 9 users from 1.500 s on"


def test_a_change_that_is_not_possible_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="stays as it is: a closed load has users, and no rate"):
        asked(tmp_path, WantedChange(rate_per_s=3.0))


def test_a_record_without_a_running_load_says_so(tmp_path: Path) -> None:
    LoadControl(tmp_path).close()

    for run in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UsageError, match="no load runs in this record"):
            change_load(run, WantedChange(users=9))


def test_bytes_that_are_no_request_change_nothing(tmp_path: Path) -> None:
    folder = tmp_path.stat()
    control = LoadControl(tmp_path)

    for sent in (b"\xff\n", b"{}[\n", b"[1]\n", b'{"users": "many"}\n', b"x" * 5000):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.settimeout(LIMIT_S)
            peer.connect(f"\0loadlens-load-{folder.st_dev:x}-{folder.st_ino:x}")
            peer.sendall(sent)
            control.serve(lambda wanted: pytest.fail(f"taken for {wanted}"))
            answer = peer.recv(4096)
        assert answer in (b"", b'{"error": "the request cannot be read"}\n')
    control.close()


def test_a_line_that_comes_byte_by_byte_does_not_hold_the_load(tmp_path: Path) -> None:
    folder, sent = tmp_path.stat(), 0
    control = LoadControl(tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer, ThreadPoolExecutor(1) as pool:
        peer.connect(f"\0loadlens-load-{folder.st_dev:x}-{folder.st_ino:x}")
        serving = pool.submit(control.serve, lambda wanted: pytest.fail(f"taken for {wanted}"))
        with contextlib.suppress(OSError):
            while sent < 400 and not serving.done():
                sent += peer.send(b" ")
                time.sleep(PATIENCE_S / 4)
        serving.result()
    control.close()

    assert sent < 400  # 20 s


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_another_user_of_the_machine_changes_nothing() -> None:
    with tempfile.TemporaryDirectory() as name:
        run = Path(name)
        run.chmod(0o755)
        control = LoadControl(run)
        ask = (
            "import os, sys, socket\n"
            "s = os.stat(sys.argv[1]); os.setuid(65534)\n"
            "peer = socket.socket(socket.AF_UNIX)\n"
            "peer.connect(f'\\0loadlens-load-{s.st_dev:x}-{s.st_ino:x}')\n"
            "peer.sendall(b'{\"users\": 9}\\n'); print(peer.recv(4096).decode())\n"
        )
        stranger = subprocess.Popen([sys.executable, "-c", ask, name], stdout=subprocess.PIPE, text=True)
        until = time.monotonic() + LIMIT_S
        while stranger.poll() is None and time.monotonic() < until:
            control.serve(lambda wanted: pytest.fail(f"taken for {wanted}"))
            time.sleep(0.01)
        control.close()

        assert "it is another user's" in stranger.communicate(timeout=LIMIT_S)[0]
