"""Completion: the words that a shell would offer, asked as its script asks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from loadlens.cli import main


def offered(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what bash would offer for the last word of a line."""
    words = line.split(" ")
    monkeypatch.setenv("_LOADLENS_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    monkeypatch.setattr("sys.argv", ["loadlens"])
    with pytest.raises(SystemExit):
        main()
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("loadlens ex", ["plain,explain"]),
        ("loadlens hit --objec", ["plain,--objective"]),
        ("loadlens hit --driver w", ["plain,wrk"]),
        ("loadlens show ru", ["plain,runs/one", "plain,runs/two"]),
        ("loadlens demo loc", ["plain,lock"]),
        ("loadlens completion f", ["plain,fish"]),
    ],
)
def test_words_are_completed(
    line: str,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    for name in ("one", "two"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "events.jsonl").touch()
    (tmp_path / "runs" / "none").mkdir()
    monkeypatch.chdir(tmp_path)

    assert offered(line, monkeypatch, capsys) == words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_printed_for_each_shell(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["loadlens", "completion", shell])
    with pytest.raises(SystemExit) as ended:
        main()
    script = capsys.readouterr().out

    assert ended.value.code == 0
    assert f"_LOADLENS_COMPLETE={shell}_complete" in script
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
