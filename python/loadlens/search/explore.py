"""Carries out the decisions of the ladder: one trial after the other through `run`, each kept in the record.

The study grows while it runs: a case joins it when it is decided. Nothing here judges: `ladder` decides from
the engine's result of each trial, `answer` reads the record afterwards.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from loadlens.errors import ExitCode, TestbedError
from loadlens.machine.peers import Peers
from loadlens.model.finding import Estimate
from loadlens.model.rates import RateTrial
from loadlens.model.result import StreamResult
from loadlens.model.search import Aim
from loadlens.model.stacks import LANGUAGES
from loadlens.model.study import Case, Objective, PlannedTrial
from loadlens.model.trial import TrialStatus
from loadlens.present import failure_text as reasons
from loadlens.present import numbers, words
from loadlens.record import open_run
from loadlens.run.engine_trial import MakeLoad
from loadlens.run.growing_record import growing_record
from loadlens.run.interrupts import Interrupts, Stopped
from loadlens.run.progress import Found, Progress, Provisional, Step, TrialStarted
from loadlens.run.time_left import Remaining
from loadlens.run.trial_runner import TrialOutcome, TrialRunner
from loadlens.search import pid_check, provisional, rates, step_cases
from loadlens.search.discovery import Discovered, discover, lines, refuse_redirects, with_peers, with_probe
from loadlens.search.guard import Guard
from loadlens.search.judged_rates import judged_rate
from loadlens.search.ladder import (
    LOOK_S,
    Next,
    Outcome,
    Stop,
    decide,
    fitted,
    kept_for_stacks_s,
    unsampled,
    with_vain_waits_failed,
)
from loadlens.search.provisional import Judge, Judgement

WATCH_EVERY_S: Final = 0.5  # trials are short
RATE_MARGIN: Final = 0.9  # of the rate cap: arrivals by chance exceed their mean
_NOT_SERVED: Final = ("fails_alone", "refused", "no_answer", "broken", "service_ended", "interrupted")
REFUSALS: Final = ("429", "503")  # a service that turns requests away is not harmed by them
_NOT_REACHED: Final = ("resolve", "refused", "connect_timeout", "connect_failed", "tls", "tls_timeout")


@dataclass(frozen=True, slots=True)
class Explored:
    """Outcome of a search: everything else is in the record."""

    path: Path
    stop: Stop
    code: ExitCode | None  # none: no early end was requested


def explore(
    aim: Aim, out: Path, *, is_kept: bool, progress: Progress, make_load: MakeLoad | None = None
) -> Explored:
    """Find a ladder of loads within the budget, which counts from now, and leave its record.

    Ctrl-C and SIGTERM end it early.

    Args:
        aim: Service and requests to explain.
        out: The record, a new folder.
        is_kept: The record outlives its answer, for reports.
        progress: Receives events of the search.
        make_load: Makes the loads elsewhere; none: our engine on this machine.

    Raises:
        PlanError: The engine will refuse the requests.
        TestbedError: A service does not start, or no connection is made at the URL.
        RecordError: The record cannot be made or written.
        Stopped: An early end was requested before anything was measured.
    """
    began = time.monotonic()
    with Interrupts() as interrupts:
        look = step_cases.case_of(aim, Next("look", 1, 0.0, LOOK_S), None)
        wrong_pid = pid_check.caution(aim.outside.pids, aim.outside.port)
        with growing_record(
            step_cases.study_of(aim, (look,)),
            [step_cases.planned(aim, look, 1, 1)],
            out,
            progress,
            interrupts,
            warnings=(*aim.cautions, *([] if wrong_pid is None else [wrong_pid])),
            watch_every_s=WATCH_EVERY_S,
            make_load=make_load,
        ) as growing:
            writer = growing.runner.writer
            search = _Search(aim, is_kept, growing.runner, time.monotonic, began, Judge(writer.path))
            stop = search.go()
            end = _end(search, stop, time.monotonic() - began, growing.warnings)
            writer.event(step_cases.EVENT, **asdict(end))
            writer.event("stopped" if interrupts.is_set else "ended", complete=search.complete)
    return Explored(writer.path, stop, interrupts.code if interrupts.is_set else None)


@dataclass(slots=True)
class _Search:
    """The state of a search while it goes."""

    aim: Aim
    is_kept: bool
    runner: TrialRunner
    clock: Callable[[], float]
    began: float
    judge: Judge
    seen: list[Outcome] = field(default_factory=list)
    cases: dict[str, Case] = field(default_factory=dict)
    planned: list[PlannedTrial] = field(default_factory=list)
    baseline: step_cases.Baseline | None = None
    complete: int = 0
    discovered: Discovered | None = None
    discovery_requests: int = 0
    judgements: list[Judgement] = field(default_factory=list)
    sampled: set[int] = field(
        default_factory=set
    )  # users of the levels whose threads were sampled, or cannot be
    missing: str = ""  # that could not be observed, besides what was not discovered
    rate_trials: list[RateTrial] = field(default_factory=list)
    rates_end: step_cases.RatesEnd | None = None
    peers: Peers | None = None  # none: not looked for
    beyond: set[int] = field(default_factory=set)  # users of levels that failures do not end

    def go(self) -> Stop:
        """Run trials until the ladder stops, or an early end is requested; then sample stacks."""
        try:
            with self.runner.interrupts.allowed():
                self._discover()
        except Stopped:
            return Stop("interrupted", "ended on request")
        while True:
            is_certain = provisional.is_certain(self.judgements)
            is_settled = provisional.is_settled(self.judgements)
            kept_s = 0.0
            is_unread = not self.sampled or bool(unsampled(self.seen, self.aim.bounds, self.sampled))
            reads_code = self._reads_code() if is_unread else None
            if reads_code is not None and not self.sampled:
                kept_s = kept_for_stacks_s(self.seen, self.aim.bounds, with_one_user=reads_code)
            kept_s += self._kept_for_rates_s()
            decision = decide(
                self.seen,
                self._left_s() - kept_s,
                self.aim.bounds,
                is_certain=is_certain,
                is_settled=is_settled,
                samples_stacks=reads_code is not None,
            )
            if isinstance(decision, Stop):
                self._sample_stacks()
                self._try_rates(decision)
                return decision
            if decision.kind == "stacks":
                if self._sample_stacks():
                    self._judge()
            else:
                self._one(decision)
            if pid_check.has_ended(self.aim.outside.pids):
                at = words.users(decision.users, exactly=True)
                return Stop("service_ended", f"with {at}: every watched process of it is gone")
            if self.runner.interrupts.is_set:
                return Stop("interrupted", "ended on request")

    def _discover(self) -> None:
        """Complete the aim with what is running; services of its own are started for it."""
        look = step_cases.case_of(self.aim, Next("look", 1, 0.0, LOOK_S), None)
        if self.aim.services:
            self.runner.start_services(step_cases.planned(self.aim, look, 1, 1))
        if self.aim.pattern is None:  # a study says which statuses it expects
            self.discovery_requests = refuse_redirects(self.aim)
        if self.aim.find.anything:
            self.runner.progress.tell(Step("looking for processes, metrics and cheap requests"))
            self.discovered = discover(self.aim)
            self.aim = self.discovered.aim
            self.discovery_requests += self.discovered.requests
            outside = self.aim.outside
            if self.aim.find.peers and outside.is_here and self.aim.pattern is None:
                self.peers = Peers(outside.pids or self.runner.started, apart=os.getpid())

    def _reads_code(self) -> bool | None:
        """Return whether the code of the service can be sampled; `None` if no process of it is known."""
        outside = self.aim.outside
        if not self.aim.stacks or not outside.is_here:
            return None
        own = outside.pids or self.runner.started
        return self.runner.reads_code((*own, *(peer.pid for peer in outside.peers if peer.has_code)))

    def _sample_stacks(self) -> bool:
        """Run the trials that sample stacks, if they can say anything and there is time for them."""
        last = self.judgements[-1] if self.judgements else None
        has_limit = last is not None and (last.cause is not None or isinstance(last.capacity, Estimate))
        is_read = self._reads_code()
        # Threads without frames still show what they wait for; nothing about them is drawn in a report.
        is_kept = self.is_kept and is_read is True
        levels = unsampled(self.seen, self.aim.bounds, self.sampled, with_one_user=is_read is True)
        self.sampled.update(level.users for level in levels)
        if is_read is None or not (has_limit or is_kept) or not levels:
            return False
        for level in levels:
            wanted = fitted(level, self.seen, self._left_s() - self._kept_for_rates_s())
            if wanted is None and all(trial.kind != "stacks" for trial in self.seen):
                no_time = "no time was left to sample the threads (a longer --budget)"
                self.missing = f"the line of code: {no_time if is_read else LANGUAGES}"
            if wanted is None or self.runner.interrupts.is_set:
                break
            self._one(wanted)
        return self.seen[-1].kind == "stacks"

    def _kept_for_rates_s(self) -> float:
        return self.aim.bounds.rates_share * self.aim.bounds.budget_s

    def _try_rates(self, stop: Stop) -> None:
        """Search the highest rate that meets the objectives, if that was asked for."""
        bounds = self.aim.bounds
        if not bounds.rates_share:
            return
        objectives = rates.with_failures(self.aim.objectives)
        served = [trial for trial in self.seen if trial.kind == "climb" and trial.ok_per_s > 0]
        if self.baseline is None or not served or stop.because in _NOT_SERVED:
            self.rates_end = step_cases.RatesEnd(objectives, end=stop.words)
            return
        reached = max(trial.ok_per_s for trial in served)
        capacity = self.judgements[-1].capacity if self.judgements else None
        span = rates.Range(
            ceiling_per_s=capacity.point if isinstance(capacity, Estimate) else reached,
            is_capacity=isinstance(capacity, Estimate) and not numbers.is_lower_bound(capacity),
            cap_per_s=RATE_MARGIN * bounds.rate_cap_per_s,
        )
        overhead_s = max(trial.took_s - trial.load_s for trial in served)
        within_s = self._left_s()

        def cost_s(rate_per_s: float) -> float:
            return overhead_s + rates.WARMUP_S + rates.measured_s(rate_per_s, objectives, within_s)

        fresh: list[int] = []
        while not self.runner.interrupts.is_set:
            wanted = rates.next_of(self.rate_trials, span, self._left_s(), cost_s)
            if wanted is None:
                break
            measured_s = rates.measured_s(wanted.rate_per_s, objectives, within_s)
            if wanted.is_fresh:
                fresh.append(len(self.planned) + 1)
            self._one_rate(wanted, measured_s, objectives)
        end = "it was ended on request" if self.runner.interrupts.is_set else ""
        self.rates_end = step_cases.RatesEnd(objectives, span, tuple(fresh), end)

    def _one_rate(self, wanted: rates.Try, measured_s: float, objectives: Sequence[Objective]) -> None:
        assert self.baseline is not None
        rate = float(f"{wanted.rate_per_s:.3g}")
        case = step_cases.case_at_rate(self.aim, rate, rates.WARMUP_S, measured_s, self.baseline)
        self._run(self._join_case(case), Guard(self.aim.bounds, self._success_s()))
        if self.runner.interrupts.is_set:
            return
        run = open_run(self.runner.writer.path)
        self.rate_trials.append(judged_rate(run, run.trials[-1], objectives, is_fresh=wanted.is_fresh))
        seen = self.rate_trials[-1]
        word = "met" if seen.is_met else "missed" if seen.rows else "undecided"
        again = ", again" if wanted.is_fresh else ""
        rate_text = numbers.with_unit(rate, "1/s")
        self.runner.progress.tell(Provisional(f"{rate_text}{again}: {word}, {seen.words}"))

    def _left_s(self) -> float:
        return self.aim.bounds.budget_s - (self.clock() - self.began)

    def _one(self, wanted: Next) -> None:
        if wanted.is_beyond:
            self.beyond.add(wanted.users)
        guard = Guard(self.aim.bounds, self._success_s(), goes_on=wanted.users in self.beyond)
        began = self.clock()
        done = self._run(self._join(wanted), guard, self.peers if wanted.kind == "look" else None)
        if wanted.kind == "look" and done.result is not None:
            load = done.result.streams[0]
            self._refuse_without_connection(load)
            alone_s = {step.name: step.response_time_s.typical_s for step in load.steps}
            self.baseline = step_cases.choose(self.aim, alone_s)
            if self.discovered is not None:
                peers = Peers(()) if self.peers is None else self.peers
                called = with_peers(self.discovered, peers)
                self.discovered = with_probe(called, self.baseline)
                self.aim = self.discovered.aim
                for line in lines(self.discovered):
                    self.runner.progress.tell(Found(line))
            if self.baseline.alone_s:
                alone = numbers.with_unit(self.baseline.alone_s, "s")
                self.runner.progress.tell(Provisional(f"one request alone takes {alone}"))
        elif (
            wanted.kind != "stacks"
            and done.status is TrialStatus.COMPLETE
            and not self.runner.interrupts.is_set
            and not self._is_between_repeats(wanted)
        ):
            self._judge()
        candidates = {step.name for step in self.aim.candidates}
        outcome = _outcome(wanted, done, guard, self.clock() - began, candidates)
        if outcome.kind == "climb" and outcome.end == "complete" and (rate := self.judge.rate()):
            outcome = replace(outcome, ok_per_s=rate)  # the engine's count has edges where requests are long
        outcome = with_vain_waits_failed(outcome, self.seen)
        # Requests for different things have answers of different sizes.
        pattern = () if self.aim.pattern is None else self.aim.pattern.scenarios
        is_varied = any(step.is_varied for scenario in pattern for step in scenario.steps)
        self.seen.append(replace(outcome, body_bytes=None) if is_varied else outcome)

    def _success_s(self) -> float:
        """Return the longest mean response time of successes so far; 0: none succeeded."""
        return max((trial.mean_s for trial in self.seen if trial.mean_s is not None), default=0.0)

    def _run(self, planned: PlannedTrial, guard: Guard, peers: Peers | None = None) -> TrialOutcome:
        """Run a trial, and look for peers meanwhile.

        Raises:
            TestbedError: Its service does not start, and it is not one for stacks or rates.
        """
        number = planned.position
        attempt = self.runner.writer.next_attempt(planned)
        self.runner.progress.tell(TrialStarted(planned, number, number, attempt, self._remaining()))
        with nullcontext() if peers is None else peers.looking():
            done = self.runner.run(planned, guard=guard)
        if not done.came_up and done.fault is not None and planned.case.purpose not in ("stacks", "rate"):
            raise TestbedError(done.fault.message, where=done.fault.where, hint=done.fault.hint)
        self.complete += done.status is TrialStatus.COMPLETE
        ended = done.ended(planned, attempt, number, self._remaining(), may_repeat=False)
        self.runner.progress.tell(ended)
        return done

    def _remaining(self) -> Remaining:
        return Remaining(self._left_s(), self._left_s(), self._left_s())

    def _is_between_repeats(self, wanted: Next) -> bool:
        """Return whether a trial is the first of the two repeats of a level, which alone has no interval."""
        place = wanted.kind, wanted.users, wanted.pause_s
        earlier = [trial for trial in self.seen if (trial.kind, trial.users, trial.pause_s) == place]
        return sum(trial.end == "complete" for trial in earlier) % 2 == 1

    def _judge(self) -> None:
        """Judge the trials so far."""
        is_load = self.baseline is not None and self.baseline.probe_is_load
        self.judgements.append(self.judge.judge(probe_is_load=is_load))
        self.runner.progress.tell(Provisional(self.judgements[-1].line))

    def _join(self, wanted: Next) -> PlannedTrial:
        """Add the decided trial to the study; a trial that is repeated is there already."""
        case = step_cases.case_of(self.aim, wanted, self.baseline)
        if self.seen and self.seen[-1].end == "broken" and self.planned[-1].case.slug == case.slug:
            return self.planned[-1]
        return self._join_case(case)

    def _join_case(self, case: Case) -> PlannedTrial:
        earlier = self.cases.get(case.slug)
        case = case if earlier is None else replace(earlier, trials=earlier.trials + 1)
        self.cases[case.slug] = case
        planned = step_cases.planned(self.aim, case, case.trials, len(self.planned) + 1)
        self.planned.append(planned)
        self.runner.writer.extend(step_cases.study_of(self.aim, tuple(self.cases.values())), self.planned)
        return planned

    def _refuse_without_connection(self, load: StreamResult) -> None:
        """Refuse a URL where no connection is ever made: it is a slip, and no service to explain."""
        errors = load.errors
        if load.requests.answered or not load.errors_of(_NOT_REACHED):
            return
        name = max((name for name in _NOT_REACHED if name in errors), key=lambda n: errors[n].count)
        samples = errors[name].samples or (name.replace("_", " "),)
        reason = reasons.explained(name, reasons.why(samples[0]))
        raise TestbedError(
            f"nothing answers: {reason.words}",
            where=self.aim.origin,
            hint=reason.for_explain or "start the service first, or let --start CMD do it",
        )


def _end(search: _Search, stop: Stop, used_s: float, warnings: tuple[str, ...]) -> step_cases.SearchEnd:
    aim, baseline, discovered = search.aim, search.baseline, search.discovered
    probe = None
    if baseline is not None:
        probe = step_cases.ProbeUsed(baseline.probe.name, baseline.probe.path, baseline.probe_is_load)
    started = tuple(service.start for service in aim.services)
    ended = None if stop.because == "service_ended" else pid_check.ended(aim.outside.pids)
    return step_cases.SearchEnd(
        because=stop.because,
        words=stop.words,
        budget_s=aim.bounds.budget_s,
        rate_cap_per_s=aim.bounds.rate_cap_per_s,
        most_users=aim.bounds.most_users,
        probe=probe,
        watched=step_cases.Watched(aim.outside.pids, started, aim.outside.scrape is not None),
        used_s=used_s,
        cautions=(*warnings, *([] if ended is None else [ended])),
        found=() if discovered is None else discovered.parts,
        missing=(*(() if discovered is None else discovered.missing), *filter(None, [search.missing])),
        objectives=() if aim.bounds.rates_share else aim.objectives,
        rates=search.rates_end,
        discovery_requests=search.discovery_requests,
    )


# --- from the engine's result to what decisions need -----------------------------------------------------


def _outcome(
    wanted: Next, done: TrialOutcome, guard: Guard, took_s: float, candidates: Collection[str]
) -> Outcome:
    """Reduce a trial to what decisions need; candidates for the probe are not part of the load."""
    result = done.result
    why = "; ".join(done.reasons)
    if result is None:
        never = why or "it never ran"
        return Outcome(
            wanted.kind, wanted.users, "broken", pause_s=wanted.pause_s, took_s=took_s, words=never
        )
    load, load_s = result.streams[0], result.load_s
    counts, mean_s = load.requests, load.response_time_s.typical_s
    ok, bad, ended = counts.ok, counts.bad, counts.ended
    if candidates:
        steps = [step for step in load.steps if step.name not in candidates]
        ok, bad, ended = (
            sum(step.requests.ok for step in steps),
            sum(step.requests.bad for step in steps),
            sum(step.requests.ended for step in steps),
        )
        means = [mean for step in steps if (mean := step.response_time_s.typical_s) is not None]
        mean_s = sum(means) / len(means) if means else None
    refused = min(counts.unexpected_status, sum(load.status.get(code, 0) for code in REFUSALS))
    failed = max(0, bad - refused)
    asked = sum(stream.requests.ended for stream in result.streams)
    end = guard.tripped or ("complete" if done.status is TrialStatus.COMPLETE else "broken")
    return Outcome(
        kind=wanted.kind,
        users=wanted.users,
        end=end,
        ok_per_s=load.throughput_rps.value or 0.0,
        asked_per_s=asked / load_s if load_s else 0.0,
        mean_s=mean_s or (load_s if ok else None),  # late: at least that
        failed_share=failed / ended if ended else 0.0,
        refused_share=refused / ended if ended else 0.0,
        ended=ended,
        pause_s=wanted.pause_s,
        load_s=load_s,
        took_s=took_s,
        body_bytes=(load.bytes.in_body or 0) / counts.ended if counts.ended else None,
        is_generator_full=result.generator.verdict == "limit",
        failure=_most_frequent_failure(load),
        words=why,
    )


def _most_frequent_failure(load: StreamResult) -> str:
    """Return the most frequent failure, `status 500` or `connection refused`; empty if there is none."""
    # Candidates for the probe may get statuses that are expected of them: no answer of theirs is kept.
    kept = {str(answer.status) for answer in load.failing_answers}
    failures = {
        f"status {code}": count
        for code, count in load.status.items()
        if not (code.isdecimal() and 200 <= int(code) < 400) and (not kept or code in kept)
    }
    failures |= {words.outcome(name): error.count for name, error in load.errors.items()}
    return max(failures, key=lambda name: failures[name]) if any(failures.values()) else ""
