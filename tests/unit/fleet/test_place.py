"""Where a fleet is, as it is written."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from loadlens.errors import UsageError
from loadlens.fleet.place import Place, place_of


def test_each_form_names_a_place(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text('{"address": "tcp://127.0.0.1:8786"}')

    assert place_of("tls://far:8786") == Place(scheduler="tls://far:8786")
    assert place_of(str(file)) == Place(scheduler="tcp://127.0.0.1:8786")
    assert place_of("local:4") == Place(local=4)
    assert place_of("ssh:gen1,gen2") == Place(hosts=("gen1", "gen2"))
    assert [place_of(where).nodes for where in ("tls://far:8786", "local:4", "ssh:gen1,gen2")] == [1, 4, 2]


def test_the_file_of_a_scheduler_that_just_started_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text('{"address": "tcp://127')  # as Dask leaves it for a moment
    written = threading.Timer(0.2, file.write_text, ['{"address": "tcp://127.0.0.1:8786"}'])
    written.start()

    assert place_of(str(file)).scheduler == "tcp://127.0.0.1:8786"
    written.join()


@pytest.mark.parametrize(
    "where",
    ["nosuch", "local:0", "local:65", "local:-1", "local:", "ssh:", "ssh:-oProxyCommand=x", "none.json"],
)
def test_anything_else_is_refused_before_dask_is_loaded(where: str) -> None:
    with pytest.raises(UsageError):
        place_of(where)

    code = (
        "import runpy, sys, atexit\n"
        "atexit.register(lambda: print('distributed' in sys.modules))\n"
        f"sys.argv = ['loadlens', 'hit', 'http://127.0.0.1:9/', '--fleet', {where!r}]\n"
        "runpy.run_module('loadlens', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 2, done.stderr
    assert done.stdout == "False\n"
    assert done.stderr.startswith("loadlens: ")
