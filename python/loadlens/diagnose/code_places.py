"""The lines of the service's own code where its threads are at the highest level, as evidence for a limit.

A thread is *at work* if its innermost own code is not where threads also are without load: that leaves out
pools that wait for work, event loops that wait for events, and timers of the service. Where a fifth of the
threads at work or more wait for the same lock, pool or semaphore, two places are shown: where they wait, and
where most of the others are, who may have it. Else the place is shown that holds most of the threads at work;
where none does, that of each process which has one, or of each pool of threads, else that with most of the
samples on a CPU. If the limit is CPU time, the place is shown that holds most of the samples on a CPU. Where
no place holds most of a process, a pool or the CPU, it is the innermost line whose call most of it is in. A
place is a line; code that computes is one place per function, because it moves from line to line.

Nothing is named on fewer than `FEWEST` samples or `FEWEST_MOMENTS` moments, if no more than half of the
samples are there beyond chance, or if threads at work come and go: then the limit is not where they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final, Literal

from loadlens.diagnose import HEALTHY, PAGES, limit_settings, limits_of, root_of
from loadlens.estimate.distributions import binomial_at_least
from loadlens.measure.services import thread_places
from loadlens.measure.services.thread_places import At
from loadlens.model.finding import Finding
from loadlens.model.notes import OF_THE_HOST
from loadlens.model.stacks import (
    LANGUAGES,
    MAIN,
    CodeEvidence,
    CodePlace,
    StackSamples,
    ThreadSample,
    Wait,
    plural_of,
    short_name,
)
from loadlens.present import numbers, words
from loadlens.present.numbers import about

FEWEST: Final = 20
FEWEST_MOMENTS: Final = 10
CHANCE: Final = 0.025
MOST: Final = 0.5  # of the samples, from which a place is named
SINGLE_LINE: Final = 0.8  # of a function's samples: it is named by this line alone
LINE_SHARE: Final = 0.05  # of a function's samples: other lines are left out of its range
ALIKE: Final = 0.8  # of the samples of a place, from which a library's function or a wait is said of it
IN_LINE: Final = 0.2  # of the threads at work, from which those who wait for the same are named first
FULL: Final = 0.75  # mean number of threads at work over the highest: as many as there can be
RUNS: Final = 0.5  # threads on a CPU at a moment, from which it is said where they compute
MOST_PLACES: Final = 2
MOST_CALLERS: Final = 8
UNREAD: Final = 0.1  # of the samples on a CPU, from which a process without frames is named
PROCESSOR, WAITING = "processor", "waiting"  # rooms of the rules on what the service itself is full of

_VERBS: Final[Mapping[Wait, tuple[str, str]]] = {  # of one thread and of several
    "": ("runs", "run"),
    "lock": ("waits for a lock", "wait for a lock"),
    "interpreter": ("waits for its turn in the interpreter", "wait for their turn in the interpreter"),
    "timer": ("sleeps", "sleep"),
    "socket": ("waits for a socket", "wait for a socket"),
    "storage": ("waits for storage", "wait for storage"),
    "file lock": ("waits for a file lock", "wait for a file lock"),
    "process": ("waits for another process", "wait for another process"),
}
STATES: Final[Mapping[Wait, str]] = {wait: singular for wait, (singular, _) in _VERBS.items()}
_THINGS: Final[Mapping[str, str]] = {
    "pool": "a connection of the pool",
    "unknown": "one of a few places",
}
_HELP: Final = {
    "not permitted": "run with sudo, or once: sudo sysctl kernel.yama.ptrace_scope=0; in a container: "
    "--cap-add SYS_PTRACE",
    "py-spy is not installed": "pip install 'loadlens[lab]'",
    "erl is not installed": "sudo apt install erlang-base",
    "its BEAM node has no name": "start it with ERL_AFLAGS='-sname NAME' in its environment",
    "perf is not installed": "sudo apt install linux-perf, of Ubuntu linux-tools-generic",
    "perf is not permitted": "run with sudo, or once: sudo sysctl kernel.perf_event_paranoid=2; in a "
    "container: --cap-add PERFMON",
}
Kind = Literal["computes", "works", "holds"]


def stacks_at_limit(
    stacks: Mapping[str, tuple[StackSamples, ...]], findings: Sequence[Finding]
) -> tuple[StackSamples, ...]:
    """Return the stacks of the curve that the weightiest finding is on; else of the first with any.

    Args:
        stacks: By label of their curve.
        findings: The weightiest first.
    """
    root = root_of(findings)
    labels = (*(() if root is None else root.curves), *stacks)
    return next((stacks[label] for label in labels if label in stacks), ())


def code_evidence(
    stacks: Sequence[StackSamples], findings: Sequence[Finding], *, is_full: bool
) -> CodeEvidence:
    """Return the places in the code that go with the limit of a service.

    Args:
        stacks: Of every level at which stacks were sampled, ascending.
        findings: The weightiest first.
        is_full: The service reached its capacity or fails: something limits it, even if no finding says what.
    """
    if not stacks:
        return CodeEvidence()
    top, root = _Level(stacks[-1]), root_of(findings)
    room = "" if root is None else _room(root.rule)
    settings = limit_settings.places(stacks[-1], limits_of(findings))
    if not is_full and room not in (PROCESSOR, WAITING):
        return CodeEvidence(cost=top.cost(), settings=settings)
    places = tuple(top.places(is_processor=room == PROCESSOR))
    return CodeEvidence(places, "" if places else top.why_none(), top.cost(), settings)


def _room(rule: str) -> str:
    """Return the folder of a rule about the service; empty: about something else."""
    if rule in OF_THE_HOST | {HEALTHY}:
        return ""
    return next((page.__name__.split(".")[-2] for page in PAGES if rule == page.ID), "")


def _majority(samples: Sequence[At], of_samples: int) -> Sequence[At]:
    """Return the samples of the place that holds most of all; none if no place does beyond chance."""
    by_place = Counter(at.place for at in samples)
    if not by_place:
        return ()
    place, _ = by_place.most_common(1)[0]
    return _enough([at for at in samples if at.place == place], of_samples)


def _enough(there: Sequence[At], of_samples: int) -> Sequence[At]:
    """Return samples if they are more than half of all beyond chance, at enough moments; else none."""
    is_enough = len(there) >= FEWEST and len({at.sample.time_s for at in there}) >= FEWEST_MOMENTS
    return there if is_enough and binomial_at_least(len(there), of_samples, MOST) <= CHANCE else ()


def _deepest(samples: Sequence[At], of_samples: int) -> Sequence[At]:
    """Return the samples within the innermost call that most of all are in, as samples at its line."""
    calls: dict[tuple[str, str, int], dict[int, At]] = {}
    for number, at in enumerate(samples):
        for depth, frame in enumerate(at.sample.stack[: at.depth]):
            if frame.is_own and frame.function != MAIN:
                within = calls.setdefault((frame.file, frame.function, frame.line), {})
                within.setdefault(number, replace(at, depth=depth))
    holding = [there for call in calls.values() if (there := _enough([*call.values()], of_samples))]
    return max(holding, key=lambda there: fmean(at.depth for at in there), default=())


def _first(samples: Sequence[At], fewest: int) -> Sequence[At]:
    """Return the samples of the place that holds most, if it holds more than half, and enough of them."""
    by_place = Counter(at.place for at in samples)
    place, count = by_place.most_common(1)[0] if by_place else (None, 0)
    return (
        [at for at in samples if at.place == place] if count >= fewest and count > MOST * len(samples) else ()
    )


def _wait_of(there: Sequence[At]) -> Wait | None:
    """Return what threads at a place do: what most of them wait for, or run; none: this and that.

    States that changed around the sample (`other`) do not count, unless they are the most.
    """
    clear = [at.sample.wait for at in there if at.sample.wait != "other"]
    if len(clear) <= MOST * len(there):
        return None
    wait, count = Counter(clear).most_common(1)[0]
    return wait if count >= ALIKE * len(clear) else None


class _Level:
    """The samples of a level, and what is at work in them."""

    def __init__(self, stacks: StackSamples) -> None:
        self._stacks = stacks
        self._sources = {(line.file, line.line): line.text for line in stacks.lines}
        self._names = short_names(stacks)
        work = thread_places.work_of(stacks)
        self._loaded, self._moments, self._work = work.loaded, work.moments, work.at
        self._line = thread_places.line_of(work)

    def places(self, *, is_processor: bool) -> Iterator[CodePlace]:
        """Yield the place that holds most, and that of the others where they wait for a lock."""
        if is_processor and (computing := self._of_processors()):
            yield from computing
            return
        if self._line is not None and len(self._line.waiting) >= IN_LINE * len(self._work):
            yield from self._of_line(self._line)
            return
        there = _majority(self._work, len(self._work)) if self._is_full() else ()
        if not there:
            yield from (
                self._of_groups(by_pool=False)
                or self._of_groups(by_pool=True)
                or self._of_processors(RUNS)
                or self._of_calls()
            )
            return
        yield self._place("works", there, len(self._work))
        if _wait_of(there) in ("lock", "file lock"):
            rest = [at for at in self._work if at.place != there[0].place]
            others = _majority(rest, len(rest))
            if others:
                yield self._place("holds", others, len(rest))

    def _of_groups(self, *, by_pool: bool) -> list[CodePlace]:
        """Return the place of each process, or pool of its threads, that has one.

        A service and what it calls wait in own lines; so do requests, and threads that they wait for.
        """
        if not self._is_full():
            return []
        groups: dict[tuple[int, str], list[At]] = {}
        for at in self._work:
            name = thread_places.pool_name(at.sample) if by_pool else ""
            groups.setdefault((at.sample.pid, name), []).append(at)
        places = {}
        for own in groups.values():
            if there := _majority(own, len(own)) or _deepest(own, len(own)):
                places[there[0].place] = self._place("works", there, len(own))
        return sorted(places.values(), key=lambda place: -place.samples)[:MOST_PLACES]

    def _of_processors(self, least: float = 0.0) -> list[CodePlace]:
        """Return the place with most of the samples on a CPU, if so many threads run at a moment."""
        on_cpu = [s for s in self._loaded if s.is_running]
        running = [at for at in self._work if at.sample.is_running]
        there = _majority(running, len(on_cpu)) or _deepest(running, len(on_cpu))
        runs = sum(1 / self._moments[s.pid] for s in on_cpu if s.pid in self._moments)
        return [self._place("computes", there, len(on_cpu))] if there and runs >= least else []

    def _of_calls(self) -> list[CodePlace]:
        """Return the line that leads to most of what the threads do, if it is done in several places."""
        there = _deepest(self._work, len(self._work)) if self._is_full() else ()
        return [self._place("works", there, len(self._work))] if there else []

    def _of_line(self, line: thread_places.Line) -> Iterator[CodePlace]:
        """Yield where most of those wait that wait for the same, and where most are that may have it."""
        waiting = _first(line.waiting, FEWEST)
        if waiting:
            yield self._place("works", waiting, len(self._work), line)
            others = _first(line.others, FEWEST_MOMENTS)  # a lock has one holder at a moment
            if others:
                yield self._place("holds", others, len(line.others), past=line.are_past)

    def at_work(self) -> tuple[ThreadSample, ...]:
        """Return the samples of threads at work, and of others on a CPU whose code was read."""
        working = {id(at.sample) for at in self._work}
        return tuple(s for s in self._loaded if id(s) in working or (s.is_running and s.stack))

    def why_none(self) -> str:
        """Return the reason why no place is named."""
        for failure in self._stacks.failures:
            if failure.why in _HELP:
                return f"the code of {failure.process} was not read ({failure.why}): {_HELP[failure.why]}"
        was_read = {s.pid for s in self._stacks.samples if s.stack}
        running = [s for s in self._loaded if s.is_running or not was_read]  # all, where nothing was read
        unread = Counter(s.process for s in running if s.pid not in was_read)
        if unread and unread.total() > UNREAD * len(running):
            name = unread.most_common(1)[0][0]
            why = [failure.why for failure in self._stacks.failures if failure.process == name]
            return f"the code of {name} was not read: {why[0] if why else LANGUAGES}"
        if len(self._work) < FEWEST:
            seen = words.plural(len(self._work), "sample")
            return f"{seen} of threads at work in its own code, needs {FEWEST}"
        if not self._is_full():
            return f"its threads are often at rest: {about(self._at_work())} at work on average"
        place, count = Counter(at.place for at in self._work).most_common(1)[0]
        share = numbers.with_unit(count / len(self._work), "share")
        moments = len({at.sample.time_s for at in self._work if at.place == place})
        if count > MOST * len(self._work) and (count < FEWEST or moments < FEWEST_MOMENTS):
            seen = f"{words.plural(count, 'sample')} at {words.plural(moments, 'moment')}"
            needed = f"needs {FEWEST} at {FEWEST_MOMENTS}"
            return f"one place holds {share} of the threads at work, in {seen}; {needed}"
        return f"no place in its code holds most of the threads at work; the first one holds {share}"

    def cost(self) -> str:
        """Return how often the service was sampled, and what it cost."""
        cores, moments = self._stacks.cores, len({s.time_s for s in self._loaded})
        took = "" if cores is None else f"; sampling took {numbers.with_unit(cores, 'cores')}"
        load = load_in_words(self._stacks)
        return f"sampled {words.plural(moments, 'time')} at {load}, in a trial that gives no figures{took}"

    def _at_work(self) -> float:
        """Return the mean number of threads at work."""
        return sum(1 / self._moments[at.sample.pid] for at in self._work)

    def _is_full(self) -> bool:
        """True if the threads at work are nearly always as many as at most."""
        by_moment = Counter(at.moment for at in self._work)
        most = 0
        for pid in self._moments:
            counts = sorted((count for (own, _), count in by_moment.items() if own == pid), reverse=True)
            most += counts[len(counts) // 20] if counts else 0  # but for one of twenty moments
        return most > 0 and self._at_work() >= FULL * most

    # --- words --------------------------------------------------------------------------------------------

    def _place(
        self,
        kind: Kind,
        there: Sequence[At],
        of_samples: int,
        queue: thread_places.Line | None = None,
        *,
        past: bool = False,
    ) -> CodePlace:
        lines = Counter(at.own.line for at in there)
        line, count = lines.most_common(1)[0]
        is_single = count >= SINGLE_LINE * len(there)
        shown = [line] if is_single else [n for n, times in lines.items() if times >= LINE_SHARE * len(there)]
        own = there[0].own
        call, times = Counter(at.call for at in there).most_common(1)[0]
        call = call if times >= ALIKE * len(there) else ""
        call = call if queue is None or not queue.function else queue.function
        outer = Counter(at.caller for at in there).most_common(1)[0][0]
        caller = "" if outer is None else self._named(outer.function, outer.file, outer.line)
        named = self._named(own.function, own.file, min(shown), max(shown))
        where = f"in {call}, called from {named}" if call else f"at {named}"
        if caller:
            where += f" (from {caller})" if call else f", called from {caller}"
        text = (
            f"{self._who(kind, there, of_samples, queue, past)} {where} "
            f"({len(there):,} of {of_samples:,} samples)"
        )
        return CodePlace(
            kind=kind,
            file=own.file,
            line=min(shown),
            last_line=max(shown),
            function=own.function,
            call=call,
            caller=caller,
            path=self._path(there),
            source=self._sources.get((own.file, line), "") if len(shown) == 1 else "",
            samples=len(there),
            of_samples=of_samples,
            text=text,
        )

    def _path(self, there: Sequence[At]) -> tuple[str, ...]:
        """Return the own functions that most often lead to a place, outermost first, without its own."""
        stacks = Counter(
            tuple(frame for frame in at.sample.stack[: at.depth] if frame.is_own and frame.function != MAIN)
            for at in there
        )
        frames = stacks.most_common(1)[0][0][-MOST_CALLERS:]
        return tuple(self._named(frame.function, frame.file, frame.line) for frame in frames)

    def _who(
        self,
        kind: Kind,
        there: Sequence[At],
        of_samples: int,
        queue: thread_places.Line | None,
        past: bool,
    ) -> str:
        """Return which threads are at a place and what they do: `7.9 of 8 threads at work sleep`."""
        share = len(there) / of_samples
        if kind == "computes":
            return f"{numbers.with_unit(share, 'share')} of the CPU samples are"
        wait = _wait_of(there)
        singular, plural = ("is", "are") if wait is None else _VERBS.get(wait, ("waits", "wait"))
        if queue is not None and queue.kind != "lock":
            singular, plural = (f"{verb} for {_THINGS[queue.kind]}" for verb in ("waits", "wait"))
        threads = self._at_work() * of_samples / len(self._work)
        several = plural_of([at.sample for at in there])
        single = several.removesuffix("s")
        if past and round(threads) <= 1:
            return f"the one {single} that is past it {singular}"
        if past:
            return f"{about(share * threads)} of {about(threads)} {several} that are past it {plural}"
        others = "other " if kind == "holds" else ""
        if round(threads) > 1:
            return f"{about(share * threads)} of {about(threads)} {others}{several} at work {plural}"
        return f"the {others}{single} at work {singular}"

    def _named(self, function: str, file: str, line: int, last: int = 0) -> str:
        name = "" if function == MAIN else f"{function}() "
        lines = f"{line}-{last}" if last > line else f"{line}"
        return f"{name}{self._names.get(file, file)}:{lines}"


def at_work(stacks: StackSamples) -> tuple[ThreadSample, ...]:
    """Return the samples with load of threads at work, and of others on a CPU."""
    return _Level(stacks).at_work()


def load_in_words(stacks: StackSamples) -> str:
    """Return the load of a level: `8 users`."""
    return words.users(stacks.load) if stacks.is_closed else f"{stacks.load:g} requests/s"


def short_names(stacks: StackSamples) -> dict[str, str]:
    """Return each file of own code by as many of its last parts as distinguish it from the others."""
    files = stacks.own_files
    return {file: short_name(file, files) for file in files}
