"""`compare` from its flags to two versions, and the line that says what to type instead of a mistake."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from loadlens.cli.compare.options import CompareFlags, is_live, margin_of, refuse_unclear, task_of
from loadlens.compare.revisions import worktrees
from loadlens.errors import UsageError
from tests.end_to_end.explaining import free_port

A, B = "http://127.0.0.1:8080/a", "http://127.0.0.1:8081/a"


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (CompareFlags((A,)), "URL-OF-B"),
        (CompareFlags((A, B, A)), "loadlens compare URL URL"),
        (CompareFlags((A, A)), "loadlens compare URL URL"),
        (CompareFlags((A,), start=("./new",)), "--start OLD --start NEW"),
        (CompareFlags((A,), revisions=("main",), start=("./x",)), "--rev main --rev main"),
        (CompareFlags((A,), revisions=("main", "HEAD")), "--start 'CMD'"),
        (CompareFlags((A, B), rate="5", users="5"), "one of the two"),
    ],
)
def test_what_makes_no_two_versions_is_refused_with_what_to_type(given: CompareFlags, hint: str) -> None:
    with pytest.raises(UsageError) as fault:
        refuse_unclear(given)

    assert hint in str(fault.value)


def test_two_urls_are_two_versions_under_one_load() -> None:
    task = task_of(CompareFlags((A, B), rate="50", margin="5%", seed=3), ())

    assert [aim.origin for aim in task.aims] == ["http://127.0.0.1:8080", "http://127.0.0.1:8081"]
    assert (task.names, task.rate_per_s, task.margin, task.seed) == ((A, B), 50.0, 0.05, 3)


def test_two_commands_are_two_versions_at_one_url() -> None:
    url = f"http://127.0.0.1:{free_port()}/"

    task = task_of(CompareFlags((url,), start=("./old", "./new")), ())

    assert [aim.services[0].start for aim in task.aims] == ["./old", "./new"]
    assert task.names == ("./old", "./new")


def test_urls_are_live_and_records_are_not(tmp_path: Path) -> None:
    assert is_live(CompareFlags((A, B)))
    assert is_live(CompareFlags(("127.0.0.1:80/a", "127.0.0.1:81/a")))
    assert not is_live(CompareFlags((str(tmp_path), "pool=2", "pool=4")))


def test_a_margin_is_a_share_above_zero() -> None:
    assert margin_of("3%") == pytest.approx(0.03)
    with pytest.raises(UsageError, match="never exactly equal"):
        margin_of("0")


def test_each_revision_has_a_worktree_that_is_removed_even_after_a_failure(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        done = subprocess.run(
            ["git", "-C", str(tmp_path), *who, *words], capture_output=True, text=True, check=True
        )
        return done.stdout

    git("init", "-q")
    (tmp_path / "part").mkdir()
    for text in ("old", "new"):
        (tmp_path / "part" / "version").write_text(text)
        git("add", ".")
        git("commit", "-qm", text)
    kept: list[Path] = []

    def fail() -> None:
        with worktrees(tmp_path / "part", ("HEAD~1", "HEAD")) as places:
            kept.extend(places)
            assert [(place / "version").read_text() for place in places] == ["old", "new"]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not any(place.exists() for place in kept)
    assert len(git("worktree", "list").splitlines()) == 1
    with pytest.raises(UsageError, match="nowhere"), worktrees(tmp_path, ("HEAD", "nowhere")):
        pass
