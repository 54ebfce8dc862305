"""The pytest plugin with real services and real loads."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.unit.api.conftest import PLUGIN

SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *_): pass
print("about to listen", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
USES = """
import pytest

@pytest.fixture
def service(loadlens_service):
    return loadlens_service("python3 server.py $port", ready="/ready")

@pytest.mark.parametrize("number", [1, 2])
def test_load(loadlens, service, number):
    made = loadlens.hit(service.url, requests=20, connections=2)
    assert made.to_dict()["requests"]["ok"] == 20
    print("at", service.url, service.pid)
"""
WRONG = """
def test_it(loadlens_service):
    loadlens_service("python3 -c 'raise SystemExit(\\"no database\\")'")
"""
STAMPS = """
import time, pytest
from pathlib import Path

@pytest.mark.parametrize("number", range(4))
def test_load(loadlens, number, monkeypatch):
    def load(*_, **__):
        began = time.monotonic()
        time.sleep(0.1)
        with Path("stamps").open("a") as file:
            file.write(f"{began} {time.monotonic()}\\n")
        raise RuntimeError
    monkeypatch.setattr("loadlens.cli.hit.load", load)
    with pytest.raises(RuntimeError):
        loadlens.hit("http://127.0.0.1:9/")
"""


def test_a_service_is_kept_for_its_module_and_then_ended(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(server=SERVER, test_a=USES)

    done = pytester.runpytest_subprocess(*PLUGIN, "-s", "-p", "no:xdist")

    done.assert_outcomes(passed=2)
    first, second = re.findall(r"at (\S+) (\d+)", done.stdout.str())
    assert first == second
    assert not Path(f"/proc/{first[1]}").exists()


def test_a_service_that_does_not_start_is_an_error_with_its_last_output(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(WRONG)

    done = pytester.runpytest_subprocess(*PLUGIN, "-p", "no:xdist")

    done.assert_outcomes(failed=1)
    assert "no database" in done.stdout.str()


def test_loads_never_run_side_by_side(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=STAMPS, test_b=STAMPS)

    done = pytester.runpytest_subprocess(*PLUGIN, "-n", "2")

    done.assert_outcomes(passed=8)
    stamps = sorted(tuple(map(float, line.split())) for line in Path("stamps").read_text().splitlines())
    assert len(stamps) == 8
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(stamps))
