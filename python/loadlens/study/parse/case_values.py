"""The context of one case for the reader of the file: values of `$names`, state of its requests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from loadlens.model.profile import ReplayText
from loadlens.model.topology import Scalar
from loadlens.model.workload import LOAD, Auth, Replay
from loadlens.study.parse.feeds import Feeds

# What a file of due times holds, or what is wrong with it, line by line.
ReadDueTimes = Callable[[str, ReplayText], Replay | tuple[str, ...]]


@dataclass(slots=True)
class CaseValues:
    """The values of a file's names in one case, and the names that were looked up."""

    values: Mapping[str, Scalar]
    scope: str  # the experiment, for messages
    calibrated: Collection[str]  # names that get their values when the study runs
    feeds: Feeds
    read_due_times: ReadDueTimes | None  # none: replays are refused
    used: set[str] = field(default_factory=set)
    auth: Auth | None = None  # of the steps that have none of their own
    stream: str = LOAD  # whose steps are being read
    extracted: list[str] = field(default_factory=list)  # names that its steps so far have extracted
