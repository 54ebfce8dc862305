"""Environments made once for each digest."""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from loadlens.errors import TestbedError
from loadlens.model.topology import Build, Service
from loadlens.temporary import default_cache
from loadlens.testbed import build
from loadlens.testbed.build import Prepared, prepare, python_digest


def service(build: Build) -> Service:
    return Service("api", "python -V", build=build)


def test_the_digest_sees_the_requirements_and_what_they_include(tmp_path: Path) -> None:
    requirements, included = tmp_path / "requirements.txt", tmp_path / "base.txt"
    requirements.write_text("-r base.txt\nb==1\n")
    included.write_text("a==1\n")
    first = python_digest(requirements, "api")

    included.write_text("a==2\n")
    second = python_digest(requirements, "api")
    included.write_text("a==1\n")
    third = python_digest(requirements, "api")

    assert first == third != second


@pytest.mark.parametrize("line", ["-e .", "./pkg", "../pkg", "/srv/pkg", "pkg @ file:///srv/pkg"])
def test_a_local_path_is_refused_because_its_content_has_no_digest(tmp_path: Path, line: str) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"# first\n{line}\n")

    with pytest.raises(TestbedError, match="a local path cannot be cached by digest") as raised:
        python_digest(requirements, "api")

    assert raised.value.where == f"{requirements}:2"


def test_a_python_environment_is_made_once_also_when_two_runs_want_it(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("# nothing\n")
    wanted = service(Build("python", "requirements.txt"))
    lines: list[str] = []
    made: list[Prepared] = []
    waits = threading.Event()

    def tell(line: str) -> None:
        lines.append(line)
        if "another run builds" in line:
            waits.set()
        elif "building a Python environment" in line:
            waits.wait(20)  # so that the other one comes meanwhile, however late it starts

    def run() -> None:
        made.append(prepare([wanted], cache=tmp_path / "cache", on_line=tell, folder=tmp_path))

    runs = [threading.Thread(target=run) for _ in range(2)]
    for thread in runs:
        thread.start()
    for thread in runs:
        thread.join()
    again = prepare([wanted], cache=tmp_path / "cache", on_line=lines.append, folder=tmp_path)
    environment = again.environment("api")

    assert sum("building a Python environment" in line for line in lines) == 1
    assert sum("another run builds" in line for line in lines) == 1
    assert {prepared.environment("api").digest for prepared in made} == {environment.digest}
    prefix = subprocess.run(
        [environment.path[0] / "python", "-c", "import sys; print(sys.prefix)"],
        capture_output=True,
        text=True,
    )
    assert Path(prefix.stdout.strip()) == environment.folder


def test_a_build_that_fails_shows_the_tools_own_words(tmp_path: Path) -> None:
    wanted = service(Build("run", "sh -c 'echo compiling; echo missing header >&2; exit 2'"))
    lines: list[str] = []

    with pytest.raises(
        TestbedError, match=r"build of api failed: exit status 2(?s:.*)missing header"
    ) as raised:
        prepare([wanted], cache=tmp_path, on_line=lines.append, folder=tmp_path)

    assert lines == ["compiling", "missing header"]
    assert raised.value.hint is not None
    assert str(tmp_path) in raised.value.hint


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOADLENS_CACHE", str(tmp_path))
    chosen = default_cache()
    monkeypatch.delenv("LOADLENS_CACHE")
    monkeypatch.setenv("HOME", "/home/user")
    usual = default_cache()

    assert chosen == tmp_path
    assert usual == Path("/home/user/.cache/loadlens")


def test_an_entry_whose_folder_was_taken_away_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("# nothing\n")
    wanted = service(Build("python", "requirements.txt"))
    lines: list[str] = []
    first = prepare([wanted], cache=tmp_path / "cache", folder=tmp_path).environment("api")
    assert first.folder is not None
    shutil.rmtree(first.folder)

    prepare([wanted], cache=tmp_path / "cache", on_line=lines.append, folder=tmp_path)

    assert any("building a Python environment" in line for line in lines)
    assert (first.folder / "bin" / "python").exists()


def test_a_silent_tool_is_said_to_be_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "SILENT_S", 0.2)
    heard = tmp_path / "heard"
    lines: list[str] = []

    def tell(line: str) -> None:
        lines.append(line)
        heard.touch()

    silent = service(Build("run", f"sh -c '{until_there(heard)}; echo done'"))
    prepare([silent], cache=tmp_path, on_line=tell, folder=tmp_path)

    assert lines[-1] == "done"
    assert lines[0].startswith("build of api: at work for ")


def until_there(file: Path) -> str:
    """A command of the shell that waits for a file, 20 s at most."""
    return f'timeout 20 sh -c "until test -e {file}; do sleep 0.05; done"'


def test_two_builds_in_one_folder_wait_for_each_other(tmp_path: Path) -> None:
    waits = tmp_path / "waits"
    # a second one at the same time would fail
    wanted = service(Build("run", f"sh -c 'mkdir busy && {{ {until_there(waits)}; rmdir busy; }}'"))
    lines: list[str] = []
    faults: list[TestbedError] = []

    def tell(line: str) -> None:
        lines.append(line)
        waits.touch()

    def run() -> None:
        try:
            prepare([wanted], cache=tmp_path / "cache", on_line=tell, folder=tmp_path)
        except TestbedError as fault:
            faults.append(fault)

    runs = [threading.Thread(target=run) for _ in range(2)]
    for thread in runs:
        thread.start()
    for thread in runs:
        thread.join()

    assert faults == []
    assert lines == ["api: another run builds in this folder"]


@pytest.mark.parametrize("has_rebar", [True, False])
def test_a_mix_project_uses_an_installed_hex_and_rebar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_rebar: bool
) -> None:
    home, programs, archives = tmp_path / "service", tmp_path / "bin", tmp_path / "mix" / "archives"
    for folder in (home, programs, archives / "hex-2.0.6"):
        folder.mkdir(parents=True)
    (home / "mix.exs").write_text('deps: [{:jason, "~> 1.4"}]')
    calls = tmp_path / "calls"
    for name in ("mix", "elixir", *(["rebar3"] if has_rebar else [])):
        script = f'#!/bin/sh\necho "{name} $* $MIX_ARCHIVES $MIX_REBAR3" >> {calls}\n'
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    (programs / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("MIX_HOME", str(tmp_path / "mix"))
    for name in ("MIX_ARCHIVES", "MIX_REBAR3"):
        monkeypatch.delenv(name, raising=False)

    made = prepare([service(Build("mix", "mix.exs"))], cache=tmp_path / "cache", folder=home)

    ran = [line.split() for line in calls.read_text().splitlines() if line.startswith("mix ")]
    names = [words[1] for words in ran if words[1] not in ("--version", "-v")]
    assert names == ["local.hex", *([] if has_rebar else ["local.rebar"]), "deps.get", "compile"]
    rebar = [str(programs / "rebar3")] if has_rebar else []
    assert ran[-1][2:] == [str(archives), *rebar]
    # the service that runs in the copy finds the same
    variables = made.environment("api").variables
    assert variables["MIX_ARCHIVES"] == str(archives)
    assert variables.get("MIX_REBAR3") == next(iter(rebar), None)
