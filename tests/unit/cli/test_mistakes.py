"""Typical mistakes of a command line: the exit code and the message, which says what to type instead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click
import pytest
import typer

from loadlens.cli import app, foreign, main

URL = "http://127.0.0.1:1/"


class Mistake(NamedTuple):
    words: str  # as typed after `loadlens`; URL is an address where nothing listens
    message: str


UNREAD = [
    Mistake("hti URL", "no verb 'hti'\n  did you mean hit?"),
    Mistake("attack URL", "no verb 'attack'\n  vegeta calls it attack; here: loadlens hit URL"),
    Mistake("frobnicate", "no verb 'frobnicate'\n  try loadlens --help, which lists the verbs"),
    Mistake(
        "study.yaml", "no verb 'study.yaml'\n  try loadlens run study.yaml, or loadlens check study.yaml"
    ),
    Mistake("--hepl", "loadlens has no option --hepl\n  did you mean --help?"),
    Mistake("hit", "hit needs a URL\n  try loadlens hit http://127.0.0.1:8080/"),
    Mistake("show", "show needs a RUN\n  try loadlens show runs/register-2c90"),
    Mistake("hit URL -d", "-d needs a value\n  at hit\n  try -d 30s"),
    Mistake("hit URL --json=3", "--json takes no value\n  at hit\n  try --json"),
    Mistake("hit URL --conections 5", "hit has no option --conections\n  did you mean --connections?"),
    Mistake("hit URL -z 5s", "hit has no option -z\n  hey and oha call it -z; here: -d 10s"),
    Mistake("-z 5s URL", "hit has no option -z\n  hey and oha call it -z; here: -d 10s"),
    Mistake("hit URL --vus 5", "hit has no option --vus\n  k6 calls it --vus; here: -c 50"),
    Mistake("hit URL -rate 50", "-rate with one dash\n  at hit\n  try --rate"),
    Mistake("hit URL -t two", "'two' is not a whole number\n  at --threads\n  try --threads N"),
    Mistake("hit URL --frobnicate", "hit has no option --frobnicate\n  try loadlens hit --help"),
    Mistake("explain URL -d 5s", "`explain` chooses the load itself; here: --budget 60s"),
    Mistake("explain URL -u 5", "`explain` chooses the load itself; here: --max-users 50"),
    Mistake("explain URL --pid 0", "at least 1, got 0\n  at --pid\n  try --pid 4711"),
    Mistake("show one two", "show takes no further word, got 'two'\n  try loadlens show --help"),
    Mistake(
        "check x --json", "check has no option --json\n  try loadlens hit or explain or report, which has it"
    ),
]


def said(words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run the command line; return its exit code and what it wrote on stderr."""
    typed = words.replace("URL", URL).split(" ") if words else []
    monkeypatch.setattr("sys.argv", ["loadlens", *typed])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize("mistake", UNREAD, ids=lambda mistake: mistake.words)
def test_a_mistake_is_named_with_what_to_type(
    mistake: Mistake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    code, message = said(mistake.words, monkeypatch, capsys)

    assert (code, mistake.message in message) == (2, True), message
    assert message.startswith("loadlens: ")


def options_of(verb: str) -> list[str]:
    group = typer.main.get_command(app)
    assert isinstance(group, click.Group)
    return [name for param in group.commands[verb].params for name in param.opts]


def test_hints_on_foreign_flags_name_options_that_exist() -> None:
    own = options_of("hit")
    strays = {flag: hint for flag, hint in foreign.HINTS.items() if not set(foreign.named(hint)) <= set(own)}

    assert strays == {}


@pytest.mark.parametrize("verb", ["hit", "explain"])
def test_no_flag_is_both_foreign_and_own(verb: str) -> None:
    own = set(options_of(verb))
    shown = {flag for flag in foreign.HINTS | foreign.SEARCHING if foreign.hint_of(flag, list(own))}

    assert shown & own == set()


def test_nothing_typed_prints_the_list_of_verbs_and_exits_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["loadlens"])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("Usage: loadlens [OPTIONS] VERB ...")


@pytest.mark.parametrize("words", ["URL", "-c 3 URL", "127.0.0.1:1", "localhost:1/path"])
def test_a_url_alone_means_hit(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, message = said(words, monkeypatch, capsys)

    assert code == 3, message
    assert "nothing is listening on " in message


HEAVY = ("numpy", "scipy", "polars", "jinja2", "vl_convert", "rich", "ruamel", "loadlens.report.build")


@pytest.mark.parametrize(
    "words", ["show nope", "report nope", "run nope", "check nope", "hti", "hit -z 3", "hit"]
)
def test_a_refusal_loads_nothing_that_it_does_not_need(words: str, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom loadlens.cli import main\n"
        "try: main()\nexcept SystemExit as ended: code = ended.code\n"
        f"print(code, [name for name in {HEAVY!r} if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, *words.split()], capture_output=True, text=True, cwd=tmp_path, check=True
    )

    assert done.stdout in ("2 []\n", "5 []\n")
