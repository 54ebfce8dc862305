"""Flags of `compare`, and the two versions that they mean."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadlens import units
from loadlens.cli.explain_options import ExplainFlags, aim_of
from loadlens.cli.fleet.nodes import FLEET, INSECURE_FLEET
from loadlens.cli.hit_load import quantity
from loadlens.cli.options import EXPECTED, HEADERS, HIDE, INSECURE, METHOD, SEED, argument, option
from loadlens.cli.outputs import OUTPUTS
from loadlens.cli.ui.page import UI
from loadlens.credentials import Hiding
from loadlens.errors import UsageError

if TYPE_CHECKING:
    from loadlens.compare.plan import Task

# Groups of the help, in their order.
VERSIONS: Final = "Versions"
LOAD: Final = "Load"
VERDICT: Final = "Verdict"
REQUEST: Final = "Request"
OUTPUT: Final = "Output"
TWO: Final = "loadlens compare URL URL, or URL --start COMMAND --start COMMAND"


@dataclass(frozen=True, slots=True)
class CompareFlags:
    """The text of each option; `None` if absent and without a default."""

    targets: tuple[str, ...] = argument(
        "A B",
        "Two URLs; or one URL with two of --start or --rev; or a study with two of --rev; or two records of "
        "one study; or one record, and two levels of a factor: FACTOR=LEVEL.",
    )
    start: tuple[str, ...] = option(
        "--start CMD",
        "Start a version with CMD (no shell) before each of its trials, and stop it afterwards; given twice, "
        "for A and for B. Example: --start './old' --start './new'",
        default=(),
        group=VERSIONS,
    )
    revisions: tuple[str, ...] = option(
        "--rev REV",
        "Build and start a version from git revision REV, in a worktree that is removed at the end; given "
        "twice, with --start or a study. Example: --rev main --rev HEAD --start 'python3 app.py'",
        default=(),
        group=VERSIONS,
    )
    variables: tuple[str, ...] = option(
        "--env NAME,...",
        "Pass these variables of your environment to --start. Example: --env DATABASE_URL",
        default=(),
        group=VERSIONS,
    )
    no_pid: bool = option("--no-pid", "Watch no process and do not look for one.", group=VERSIONS)
    rate: str | None = option(
        "-r --rate RATE",
        "Send RATE requests/s to both. Default: half of what the slower one serves, at most 1k/s.",
        group=LOAD,
    )
    users: str | None = option(
        "-c --users N",
        "Load both with N users who wait for responses, and compare throughput. Example: -c 16",
        group=LOAD,
    )
    budget: str = option(
        "--budget TIME",
        "Finish within TIME, the search for a rate included. Default: 2m.",
        default="2m",
        group=LOAD,
    )
    remote: bool = option(
        "--remote",
        "Allow targets that are not on this machine. Only with permission of their operator.",
        group=LOAD,
    )
    seed: int | None = option(*SEED, group=LOAD)
    fleet: str | None = option(*FLEET, group=LOAD)
    insecure_fleet: bool = option(*INSECURE_FLEET, group=LOAD)
    margin: str = option(
        "--margin SHARE",
        "Take changes below SHARE as no change. Default: 3%. Example: --margin 5%",
        default="3%",
        group=VERDICT,
    )
    method: str | None = option(*METHOD, group=REQUEST)
    headers: tuple[str, ...] = option(*HEADERS, group=REQUEST)
    body: str | None = option("-b --body TEXT", "Send TEXT as the body. Example: -b '{}'", group=REQUEST)
    expect: str | None = option(*EXPECTED, group=REQUEST)
    timeout: str = option(
        "--timeout TIME", "Fail a request after TIME. Default: 10s.", default="10s", group=REQUEST
    )
    insecure: bool = option(*INSECURE, group=REQUEST)
    hide: tuple[str, ...] = option(*HIDE, group=OUTPUT)
    page: Path | None = option(
        "--page FILE", "Write the picture and the table as an HTML page to FILE.", group=OUTPUT
    )
    out: tuple[str, ...] = option(*OUTPUTS, group=OUTPUT)
    as_json: bool = option(
        "--json", "Print the answer as JSON (docs/reference/compare-json.md).", group=OUTPUT
    )
    ui: bool = option(*UI, group=OUTPUT)
    quiet: bool = option("-q --quiet", "Print only the verdict.", group=OUTPUT)


def margin_of(text: str) -> float:
    """Parse --margin: `3%` or `0.03`.

    Raises:
        UsageError: It is no share above 0 and up to 1.
    """
    margin = quantity(units.share, text, "--margin")
    if margin <= 0:
        raise UsageError("two versions are never exactly equal", where="--margin", hint="--margin 1%")
    return margin


def is_record_text(text: str) -> bool:
    """True if a target is meant as a record: no level of a factor, no URL."""
    return "://" not in text and ("=" not in text or Path(text).exists())


def is_live(given: CompareFlags) -> bool:
    """True if versions are to be loaded: by URLs, or by what starts them."""
    first = given.targets[0]
    if given.start or given.revisions or "://" in first:
        return True
    return not Path(first).exists() and first.rpartition(":")[2].partition("/")[0].isdecimal()


def study_of(given: CompareFlags) -> Path | None:
    """Return the study whose revisions are compared, if one is the target; its load is its own.

    Raises:
        UsageError: The flags do not fit a study.
    """
    path = Path(given.targets[0])
    if not given.revisions or "://" in given.targets[0] or not path.exists():
        return None
    if len(given.targets) > 1:
        raise UsageError(
            f"{len(given.targets)} targets, and revisions of one study are compared", hint=f"{path} alone"
        )
    for flag, value in (
        ("--start", given.start),
        ("--rate", given.rate),
        ("--users", given.users),
        ("--env", given.variables),
        ("--method", given.method),
        ("--header", given.headers),
        ("--body", given.body),
        ("--expect", given.expect),
    ):
        if value:
            raise UsageError(f"{path} defines its own load", where=flag, hint=f"without {flag}")
    _refuse_one_revision(given.revisions)
    return path


def _refuse_one_revision(revisions: Sequence[str]) -> None:
    if len(revisions) != 2:
        from loadlens.present import words

        raise UsageError(
            words.plural(len(revisions), "revision"), where="--rev", hint=f"--rev main --rev {revisions[0]}"
        )


def refuse_unclear(given: CompareFlags) -> None:
    """Refuse targets and flags that do not make two versions.

    Raises:
        UsageError: They are fewer or more than two; the hint is what to type instead.
    """
    urls, starts, revisions = given.targets, given.start, given.revisions
    for text in urls:
        if "://" not in text and Path(text).exists():
            raise UsageError(f"{text} is a file or folder, and the others are URLs", hint=TWO)
    if len(urls) > 2:
        raise UsageError(f"{len(urls)} targets, and a comparison has two", hint=TWO)
    if revisions:
        _refuse_one_revision(revisions)
    if revisions and not starts:
        raise UsageError(
            "--rev needs the command that starts a version", where="--rev", hint="--start 'CMD', or a study"
        )
    if len(starts) > 2 or (len(starts) == 1 and not revisions):
        message = f"{len(starts)} start command{'s' * (len(starts) > 1)}, and a comparison has two versions"
        raise UsageError(message, where="--start", hint="--start OLD --start NEW")
    if len(urls) == 1 and not starts:
        raise UsageError(f"one URL is one version: {urls[0]}", hint=f"loadlens compare {urls[0]} URL-OF-B")
    if len(set(urls)) < len(urls) and not starts:
        raise UsageError("the same URL twice", hint=TWO)
    if given.rate is not None and given.users is not None:
        raise UsageError("a rate and users", where="--rate and --users", hint="one of the two")


def task_of(given: CompareFlags, folders: Sequence[Path]) -> Task:
    """Return the comparison that is asked for.

    Args:
        given: Flags that make two versions.
        folders: Where the versions start, from --rev; empty: here.

    Raises:
        UsageError: A flag cannot be read or used as given; nothing was started.
    """
    from loadlens.compare.plan import Task

    urls = given.targets if len(given.targets) == 2 else given.targets * 2
    starts = given.start if len(given.start) == 2 else given.start * 2
    aims = []
    for arm in (0, 1):
        flags = ExplainFlags(
            start=starts[arm] if starts else None,
            variables=given.variables,
            no_pid=given.no_pid,
            no_metrics=True,
            no_probe=True,
            no_stacks=True,
            no_peers=True,
            budget=given.budget,
            remote=given.remote,
            seed=given.seed,
            method=given.method,
            headers=given.headers,
            body=given.body,
            expect=given.expect,
            timeout=given.timeout,
            insecure=given.insecure,
            hide=given.hide,
        )
        aim = aim_of([urls[arm]], flags)
        if folders:
            services = tuple(replace(service, dir=str(folders[arm])) for service in aim.services)
            aim = replace(aim, services=services)
        aims.append(aim)
    names = given.revisions or (starts if len(set(starts)) == 2 else urls)
    hiding = Hiding(aims[0].hide)
    return Task(
        aims=(aims[0], aims[1]),
        names=(hiding.text(names[0]), hiding.text(names[1])),
        rate_per_s=None if given.rate is None else quantity(units.rate_per_s, given.rate, "--rate"),
        users=None if given.users is None else quantity(_users, given.users, "--users"),
        budget_s=aims[0].bounds.budget_s,
        margin=margin_of(given.margin),
        seed=secrets.randbits(48) if given.seed is None else given.seed,
    )


def _users(text: str) -> int:
    return units.count(text, at_least=1)
