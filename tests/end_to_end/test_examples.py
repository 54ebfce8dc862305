"""The sample projects of examples/, each tested by its own tests with the plugin."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loadlens.model.topology import Build, Service
from loadlens.temporary import default_cache
from loadlens.testbed import prepare
from tests.calm import where_calm
from tests.end_to_end.hitting import environment
from tests.scripts import ROOT
from tests.unit.api.conftest import PLUGIN


@pytest.mark.parametrize("name", ["fastapi", "flask"])
@where_calm
def test_the_load_tests_of_a_sample_project_run_and_none_is_missed(name: str, tmp_path: Path) -> None:
    folder = shutil.copytree(ROOT / "examples" / name, tmp_path / name, dirs_exist_ok=True)
    # The service runs in an environment of its own, built once; the plugin finds its program on the PATH.
    service = Service(name, "true", build=Build("python", "requirements.txt"))
    (own,) = prepare([service], cache=default_cache(), folder=folder).environment(name).path

    done = subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGIN],
        cwd=folder,
        env=environment() | {"PATH": f"{own}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "loadlens: 2 loads in" in done.stdout, done.stdout
    failures = re.findall(r"^E +assert (.*)", done.stdout, re.MULTILINE)
    # A machine that disturbs a load leaves its asserts undecided, which is a failure with the reason.
    assert [line for line in failures if "undecided" not in line] == []
    assert done.returncode == bool(failures), done.stdout
