"""`loadlens demo` from its flags to the flaw; a search itself is slow and tested end to end."""

from __future__ import annotations

from typer.testing import CliRunner

from loadlens.cli import app
from loadlens.cli.demo import flaw_of
from loadlens.demo import FLAWS


def test_the_list_has_every_flaw_and_starts_nothing() -> None:
    done = CliRunner().invoke(app, ["demo", "--list"])

    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(FLAWS)


def test_the_same_seed_chooses_the_same_flaw_and_some_seed_each() -> None:
    chosen = [flaw_of(None, seed).name for seed in range(100)]

    assert chosen == [flaw_of(None, seed).name for seed in range(100)]
    assert set(chosen) == set(FLAWS)


def test_a_slip_in_the_name_of_a_flaw_is_answered_with_the_name() -> None:
    done = CliRunner().invoke(app, ["demo", "blocked-lop"])

    assert str(done.exception).splitlines()[0] == "no flaw 'blocked-lop'"
    assert "did you mean blocked-loop?" in str(done.exception)
