"""Revisions of a git repository, each in a worktree of its own that is always removed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from loadlens import temporary
from loadlens.errors import UsageError


@contextmanager
def worktrees(folder: Path, revisions: Sequence[str]) -> Iterator[tuple[Path, ...]]:
    """Check revisions out below a temporary folder, and remove all of it at the end.

    Args:
        folder: A folder of the repository.
        revisions: Anything that names a commit: a branch, a tag, `HEAD~1`.

    Yields:
        For each revision the folder in its worktree that is at the place of `folder`.

    Raises:
        UsageError: It is no repository, or a revision or the folder in it does not exist.
    """
    top = top_of(folder)
    commits = [
        _git(
            folder,
            "rev-parse",
            "--verify",
            "--quiet",
            f"{name}^{{commit}}",
            hint="git log --oneline, or git branch",
            about=name,
        )
        for name in revisions
    ]
    below = folder.resolve().relative_to(top.resolve())
    try:
        with temporary.folder("worktrees") as home:
            places = []
            for number, (name, commit) in enumerate(zip(revisions, commits, strict=True), 1):
                place = home / f"{number}-{commit[:12]}"
                _git(
                    folder,
                    "worktree",
                    "add",
                    "--quiet",
                    "--detach",
                    str(place),
                    commit,
                    hint="git worktree prune",
                )
                if not (place / below).is_dir():
                    raise UsageError(
                        f"{name} has no folder {below}", where="--rev", hint="another folder to start in"
                    )
                places.append(place / below)
            yield tuple(places)
    finally:
        subprocess.run(["git", "-C", str(top), "worktree", "prune"], capture_output=True, check=False)


def top_of(folder: Path) -> Path:
    """Return the top of the repository that holds a folder."""
    return Path(_git(folder, "rev-parse", "--show-toplevel", hint="a folder of a git repository"))


def _git(folder: Path, *words: str, hint: str, about: str = "") -> str:
    """Run git in a folder and return what it prints."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UsageError("git is not installed", where="--rev", hint="two --start commands instead") from None
    if done.returncode:
        message = (done.stderr.strip().splitlines() or [f"no revision {about!r}"])[-1]
        raise UsageError(message.removeprefix("fatal: "), where="--rev", hint=hint)
    return done.stdout.strip()
