"""Carries out what the ladder decides: one trial after the other through `run`, each kept in the record.

The study grows while it runs: a case joins it when it is decided. Nothing here judges: `ladder` decides from
what the engine said of each trial, `answer` reads the record afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from loadlens import record
from loadlens.errors import ExitCode, TestbedError
from loadlens.model.result import StreamResult
from loadlens.model.study import Case, PlannedTrial
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import Plan, Target
from loadlens.present import failure_text as reasons
from loadlens.present import words
from loadlens.run import cautions, engine_plan, environment
from loadlens.run.interrupts import Interrupts
from loadlens.run.progress import (
    Building,
    Progress,
    Silent,
    TrialEnded,
    TrialStarted,
    Warned,
)
from loadlens.run.study_runner import refuse_bad_plans, refuse_taken
from loadlens.run.study_trial import TrialContext, TrialOutcome, run_study_trial
from loadlens.run.testbed_pool import TestbedPool, prepare_all
from loadlens.run.time_left import Remaining
from loadlens.search import pid_check, step_cases
from loadlens.search.guard import Guard
from loadlens.search.ladder import LOOK_S, Next, Seen, Stop, decide
from loadlens.testbed import default_cache

WATCH_EVERY_S: Final = 0.5  # trials are short
REFUSALS: Final = ("429", "503")  # a service that turns requests away is not harmed by them
_NOT_REACHED: Final = ("resolve", "refused", "connect_timeout", "connect_failed", "tls", "tls_timeout")


@dataclass(frozen=True, slots=True)
class Explored:
    """What came of a search: everything else is in the record."""

    path: Path
    stop: Stop
    code: ExitCode | None  # none: nobody asked for an early end


def explore(
    aim: step_cases.Aim,
    out: Path,
    *,
    progress: Progress | None = None,
    interrupts: Interrupts | None = None,
    cache: Path | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Explored:
    """Find a ladder of loads within the budget, and leave its record.

    Args:
        aim: What is to be explained.
        out: The record, a new folder.
        progress: Is told how it goes.
        interrupts: Who asks for an early end; none: Ctrl-C and SIGTERM, for the length of this call.
        cache: Of built environments; none: the user's.
        clock: Seconds; the budget counts from now.

    Raises:
        PlanError: The engine will refuse the requests.
        TestbedError: What is to be started does not come up, or nobody answers at the URL.
        RecordError: The record cannot be made or written.
        Stopped: Somebody asked for the end before anything was measured.
    """
    began = clock()
    if interrupts is None:
        with Interrupts() as own:
            return _explore(aim, out, progress or Silent(), own, cache or default_cache(), clock, began)
    return _explore(aim, out, progress or Silent(), interrupts, cache or default_cache(), clock, began)


def _explore(
    aim: step_cases.Aim,
    out: Path,
    progress: Progress,
    interrupts: Interrupts,
    cache: Path,
    clock: Callable[[], float],
    began: float,
) -> Explored:
    look = step_cases.case_of(aim, Next("look", 1, 0.0, LOOK_S), None)
    first = step_cases.planned(aim, look, 1, 1)
    refuse_bad_plans([first])
    refuse_taken(out)
    study = step_cases.study_of(aim, (look,))
    with interrupts.allowed():
        preparations = prepare_all(study, cache=cache, on_line=lambda line: progress.tell(Building(line)))
        said = [*aim.cautions, *cautions.before([_plan_of(first)])]
    wrong_pid = pid_check.caution(aim.outside.pids, dict(aim.outside.ports).get("http", 0))
    said += [wrong_pid] if wrong_pid is not None else []
    for caution in said:
        progress.tell(Warned(caution))
    machine = environment.of_machine()
    writer = record.create_run(out, step_cases.study_of(aim, ()), (), machine)
    with (
        writer,
        TestbedPool(
            preparations,
            marker=writer.id,
            shared_logs=writer.shared_logs,
            on_event=lambda event: _keep(writer, progress, event),
        ) as bench,
    ):
        around = TrialContext(writer, bench, interrupts, progress, machine, watch_every_s=WATCH_EVERY_S)
        search = _Search(aim, around, clock, began)
        stop = search.go()
        writer.event(
            step_cases.EVENT, **_told(aim, search.chosen, stop), used_s=clock() - began, cautions=said
        )
        writer.event("ended", complete=search.complete)
    return Explored(writer.path, stop, interrupts.code if interrupts.is_set else None)


@dataclass(slots=True)
class _Search:
    """The state of a search while it goes."""

    aim: step_cases.Aim
    around: TrialContext
    clock: Callable[[], float]
    began: float
    seen: list[Seen] = field(default_factory=list)
    cases: dict[str, Case] = field(default_factory=dict)
    planned: list[PlannedTrial] = field(default_factory=list)
    chosen: step_cases.Chosen | None = None
    complete: int = 0

    def go(self) -> Stop:
        """Trials until there is none to decide on, or somebody asks for the end."""
        while True:
            decision = decide(self.seen, self._left_s(), self.aim.bounds)
            if isinstance(decision, Stop):
                return decision
            self._one(decision)
            if self.around.interrupts.is_set:
                return Stop("interrupted", "ended on request")

    def _left_s(self) -> float:
        return self.aim.bounds.budget_s - (self.clock() - self.began)

    def _one(self, wanted: Next) -> None:
        planned = self._join(wanted)
        number = planned.position
        attempt = self.around.writer.next_attempt(planned)
        left = Remaining(self._left_s(), self._left_s(), self._left_s())
        self.around.progress.tell(TrialStarted(planned, number, number, attempt, left))
        guard = Guard(self.aim.bounds)
        began = self.clock()
        done = run_study_trial(planned, replace(self.around, guard=guard), previous_cut_ns=0, reset_due=False)
        self._refuse_what_never_came_up(done)
        seen = _seen(wanted, done, guard, self.clock() - began)
        self.seen.append(seen)
        self.complete += done.status is TrialStatus.COMPLETE
        self._tell_ended(planned, done, attempt)
        if wanted.kind == "look" and done.result is not None:
            load = done.result.streams[0]
            self._refuse_if_nobody_answers(load)
            alone_s = {step.name: step.response_time_s.typical_s for step in load.steps}
            self.chosen = step_cases.choose(self.aim, alone_s)

    def _join(self, wanted: Next) -> PlannedTrial:
        """Let the decided trial join the study; a trial that is taken again stands there already."""
        case = step_cases.case_of(self.aim, wanted, self.chosen)
        again = self.seen[-1].end == "broken" if self.seen else False
        if again:
            return next(one for one in reversed(self.planned) if one.case.slug == case.slug)
        known = self.cases.get(case.slug)
        case = case if known is None else replace(known, trials=known.trials + 1)
        self.cases[case.slug] = case
        planned = step_cases.planned(self.aim, case, case.trials, len(self.planned) + 1)
        self.planned.append(planned)
        self.around.writer.extend(step_cases.study_of(self.aim, tuple(self.cases.values())), self.planned)
        return planned

    def _refuse_what_never_came_up(self, done: TrialOutcome) -> None:
        if not done.came_up and done.fault is not None:
            raise TestbedError(done.fault.message, where=done.fault.where, hint=done.fault.hint)

    def _refuse_if_nobody_answers(self, load: StreamResult) -> None:
        """A URL where no connection is ever made is a slip of whoever gave it, and no service to explain."""
        errors = load.errors
        if load.requests.answered or not load.errors_of(_NOT_REACHED):
            return
        name = max((name for name in _NOT_REACHED if name in errors), key=lambda n: errors[n].count)
        samples = errors[name].samples or (name.replace("_", " "),)
        reason = reasons.explained(name, reasons.why(samples[0]))
        raise TestbedError(
            f"nobody answers: {reason.words}",
            where=self.aim.origin,
            hint=reason.for_explain or "start the service first, or let --start CMD do it",
        )

    def _tell_ended(self, planned: PlannedTrial, done: TrialOutcome, attempt: int) -> None:
        load = None if done.result is None else done.result.streams[0]
        left = Remaining(self._left_s(), self._left_s(), self._left_s())
        self.around.progress.tell(
            TrialEnded(
                planned,
                planned.position,
                planned.position,
                attempt,
                done.status,
                tuple(done.reasons),
                throughput_rps=None if load is None else load.throughput_rps.value,
                failed=0 if load is None else load.requests.failed,
                will_repeat=False,
                remaining=left,
                unexpected_status=0 if load is None else load.requests.unexpected_status,
                check_failed=0 if load is None else load.requests.check_failed,
            )
        )


def _plan_of(planned: PlannedTrial) -> Plan:
    return engine_plan.plan_of(planned, Target("127.0.0.1", 1, "127.0.0.1:1"))


def _keep(writer: record.RunWriter, progress: Progress, event: Mapping[str, object]) -> None:
    content = dict(event)
    writer.event(str(content.pop("event")), **content)
    if event["event"] == "leak":
        progress.tell(Warned(str(event["words"])))


def _told(aim: step_cases.Aim, chosen: step_cases.Chosen | None, stop: Stop) -> dict[str, Any]:
    """What a reader of the record needs to know of the search beside its trials."""
    probe = None
    if chosen is not None:
        probe = {"name": chosen.probe.name, "path": chosen.probe.path, "is_load": chosen.probe_is_load}
    return {
        "because": stop.because,
        "words": stop.words,
        "budget_s": aim.bounds.budget_s,
        "rate_cap_per_s": aim.bounds.rate_cap_per_s,
        "most_users": aim.bounds.most_users,
        "probe": probe,
        "watched": {
            "pids": list(aim.outside.pids),
            "started": [service.start for service in aim.services],
            "metrics": aim.outside.scrape is not None,
        },
    }


# --- from what the engine says to what decisions need -----------------------------------------------------


def _seen(wanted: Next, done: TrialOutcome, guard: Guard, took_s: float) -> Seen:
    result = done.result
    reasons = "; ".join(done.reasons)
    if result is None:
        words_ = reasons or "it never ran"
        return Seen(wanted.kind, wanted.users, "broken", pause_s=wanted.pause_s, took_s=took_s, words=words_)
    load, load_s = result.streams[0], result.load_s
    counts, ended = load.requests, load.requests.ended
    refused = min(counts.unexpected_status, sum(load.status.get(code, 0) for code in REFUSALS))
    failed = counts.bad - refused
    asked = sum(stream.requests.ended for stream in result.streams)
    end = guard.tripped or ("complete" if done.status is TrialStatus.COMPLETE else "broken")
    return Seen(
        kind=wanted.kind,
        users=wanted.users,
        end=end,
        ok_per_s=load.throughput_rps.value or 0.0,
        asked_per_s=asked / load_s if load_s else 0.0,
        mean_s=load.response_time_s.typical_s or (load_s if counts.ok else None),  # late: at least that
        failed_share=failed / ended if ended else 0.0,
        refused_share=refused / ended if ended else 0.0,
        ended=ended,
        pause_s=wanted.pause_s,
        load_s=load_s,
        took_s=took_s,
        is_generator_full=result.generator.verdict == "limit",
        failure=_most_frequent_failure(load),
        words=reasons,
    )


def _most_frequent_failure(load: StreamResult) -> str:
    """`status 500`, `connection refused`: what most requests that failed came to; empty: none did."""
    found = {f"status {code}": count for code, count in load.status.items() if not _is_good(code)}
    found |= {words.outcome(name): error.count for name, error in load.errors.items()}
    return max(found, key=lambda name: found[name]) if any(found.values()) else ""


def _is_good(code: str) -> bool:
    return code.isdecimal() and 200 <= int(code) < 400
