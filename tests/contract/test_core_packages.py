"""Every verb that does not belong to the extra `lab` runs where only the core packages are installed."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
import venv
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
import typer
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.edges.commands import possible
from tests.tiny import write_study
from tools.wheel import CORE_RUNS, INSTALL_LAB, MOST_PACKAGES, hello_server

from loadlens.cli import LAB_VERBS, app, lab
from loadlens.model.trial import TrialStatus
from loadlens.record import layout, open_run

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REQUESTS = 20
PROGRAMS = {"py-spy"}  # packages of the extra that nothing imports


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with hello_server() as address:
        yield address


def core_packages() -> set[str]:
    """Return the names of the packages that pip installs for `loadlens` without an extra."""
    names: set[str] = set()
    wanted = list(PROJECT["dependencies"])
    while wanted:
        requirement = Requirement(wanted.pop())
        name = canonicalize_name(requirement.name)
        if name not in names and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            names.add(name)
            wanted += metadata.requires(name) or []
    return names


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the core packages and no other."""
    folder = tmp_path_factory.mktemp("core")
    venv.create(folder, with_pip=False)
    site = next(folder.glob("lib/python3*/site-packages"))
    for name in core_packages():
        package = metadata.distribution(name)
        tops = {file.parts[0] for file in package.files or () if ".." not in file.parts}
        for top in tops - {"__pycache__"}:
            (site / top).symlink_to(str(package.locate_file(top)))
    (site / "loadlens.pth").write_text(f"{ROOT / 'python'}\n")
    return folder / "bin" / "python"


def loadlens(core: Path, *words: str, cache: Path) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        [core, "-m", "loadlens", *words],
        env={**kept, "LOADLENS_CACHE": str(cache), "LOADLENS_DEBUG": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_core_is_a_handful_of_packages() -> None:
    assert len(core_packages()) <= MOST_PACKAGES


def test_the_packages_that_verbs_of_the_lab_look_for_are_those_of_the_extra() -> None:
    extra = {canonicalize_name(Requirement(text).name) for text in PROJECT["optional-dependencies"]["lab"]}
    owners = metadata.packages_distributions()

    assert {canonicalize_name(name) for module in lab.PACKAGES for name in owners[module]} == extra - PROGRAMS


def test_every_verb_of_the_core_is_run_here() -> None:
    verbs = typer.main.get_command(app).commands.keys()  # type: ignore[attr-defined]

    assert CORE_RUNS.keys() == verbs - LAB_VERBS


@pytest.mark.parametrize("verb", CORE_RUNS)
def test_a_verb_of_the_core_runs_with_the_core_packages(
    verb: str, core: Path, url: str, tmp_path: Path
) -> None:
    write_study(tmp_path)
    words = [word.format(url=url, folder=tmp_path) for word in CORE_RUNS[verb]]

    done = loadlens(core, *words, cache=tmp_path / "cache")

    assert done.returncode in possible(0, f"$L {verb} $U"), done.stderr


@pytest.mark.parametrize("verb", sorted(LAB_VERBS))
def test_a_verb_of_the_lab_names_the_command_that_installs_it(verb: str, core: Path, tmp_path: Path) -> None:
    done = loadlens(core, verb, "there", cache=tmp_path / "cache")

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"loadlens: {verb} needs more packages: {INSTALL_LAB}\n"


def test_python_has_figures_with_the_core_packages_and_names_what_frames_need(core: Path, url: str) -> None:
    code = (
        "import loadlens\n"
        f"made = loadlens.hit({url!r}, requests={REQUESTS}, connections=2)\n"
        "print(made.failed.value, '<table>' in made._repr_html_())\n"
        "try:\n    made.figures\nexcept loadlens.errors.UsageError as fault:\n    print(fault)\n"
    )

    done = subprocess.run([core, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == f"0.0 True\nframes need more packages: {INSTALL_LAB}\n"


def test_a_record_written_with_the_core_packages_opens_with_all_rows(
    core: Path, url: str, tmp_path: Path
) -> None:
    done = loadlens(
        core,
        *("hit", url, "-n", str(REQUESTS), "-c", "2", "--json", "-o", str(tmp_path / "run")),
        cache=tmp_path / "cache",
    )

    assert done.returncode in possible(0, "$L hit $U"), done.stderr
    assert json.loads(done.stdout)["requests"]["ok"] == REQUESTS
    record = open_run(tmp_path / "run")
    (trial,) = record.trials
    assert (record.damage, trial.damage()) == ((), ())
    assert (trial.status is TrialStatus.INVALID) == (done.returncode == 4) == bool(trial.reasons)
    assert not (trial.path / layout.LIVE).exists()
    assert trial.samples(["status", "body_bytes"]).rows() == [(200, 6)] * REQUESTS
    assert sum(len(part) for part in trial.sample_parts(["status"])) == REQUESTS
    assert trial.connections()["requests"].sum() == REQUESTS
    assert trial.readings().is_empty()


def test_damage_of_rows_kept_as_written_is_named(core: Path, url: str, tmp_path: Path) -> None:
    loadlens(core, "hit", url, "-n", "20", "-o", str(tmp_path / "run"), cache=tmp_path / "cache")
    (trial,) = open_run(tmp_path / "run").trials
    rows = trial.path / layout.SAMPLES_BIN
    rows.write_bytes(rows.read_bytes()[:-1] + b"\xff")

    assert trial.damage() == (
        f"{layout.SAMPLES_BIN}: damaged: its SHA-256 is not the one it was sealed with",
    )
