"""A run: what is planned, in which order, what does not count and why, how it ends and goes on."""

from __future__ import annotations

import io
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from loadlens import engine
from loadlens.errors import EngineError, ExitCode, PlanError, RecordError, TestbedError
from loadlens.model.result import EngineResult
from loadlens.model.study import Case, PlannedTrial, Probe
from loadlens.model.topology import Limits, Outside, Peer, Service
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import Closed, Connection, Open, Scenario, Step, Target
from loadlens.record import RunRecord, TrialEnd, create_run, open_run
from loadlens.run import engine_plan, engine_trial, environment, progress, trial_faults, warm_up
from loadlens.run.engine_trial import run_trial
from loadlens.run.interrupts import Interrupts, Stopped
from loadlens.run.preparations import prepare_all
from loadlens.run.progress import Event, PlainPrinter, TrialEnded, in_short
from loadlens.run.study_runner import run_study
from loadlens.run.time_left import Clock, Remaining
from loadlens.run.trial_runner import TrialRunner
from loadlens.study import plan as design
from loadlens.testbed import Testbed
from tests import records, tiny
from tests.end_to_end.testbed_cases import busy_in, is_alive, still_there
from tests.unit.run.scripted_engine import ScriptedRun

TARGET = Target("127.0.0.1", 9, "127.0.0.1:9")


class Listener:
    """Keeps the events of a run; may act on them."""

    def __init__(self, then: object = None) -> None:
        self.events: list[Event] = []
        self._then = then

    def tell(self, event: Event) -> None:
        self.events.append(event)
        if callable(self._then):
            self._then(event)

    @property
    def ended(self) -> list[TrialEnded]:
        return [event for event in self.events if isinstance(event, TrialEnded)]


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> type[ScriptedRun]:
    """The engine's place is taken by one that does what the test says."""

    class Scripted(ScriptedRun):
        runs: ClassVar[list[ScriptedRun]] = []

    monkeypatch.setattr(engine, "Run", Scripted)
    return Scripted


# --- plans -------------------------------------------------------------------------------------------


def test_a_plan_holds_the_load_and_its_probes_as_streams_of_one_engine() -> None:
    look = Scenario("look", 1.0, (Step("look", "GET", "/"),))
    probe = Probe("health", look, Open(20.0, "poisson"), Connection("new"), 500_000_000)
    planned = PlannedTrial(records.case(probes=(probe,)), block=1, position=1, seed=77)

    plan = engine_plan.plan_of(planned, TARGET)

    assert [(s.name, s.role) for s in plan.streams] == [("load", "load"), ("health", "probe")]
    assert plan.seed == 77
    assert plan.drain_ns == 1_000_000_000  # the slowest time-out: every request may still come to its end


@pytest.mark.parametrize(
    ("case", "cut_s", "expected_s"),
    [
        (records.case(warmup_ns=None), 0, 5.0),
        (records.case(warmup_ns=None), 9, 9.0),
        (records.case(warmup_ns=None), 300, 60.0),
        (records.case(warmup_ns=2_000_000_000), 9, 2.0),
        (records.case(warmup_ns=None, duration_ns=None), 9, 0.0),
    ],
)
def test_a_warm_up_is_the_studys_or_five_seconds_or_the_last_cut(
    case: Case, cut_s: int, expected_s: float
) -> None:
    assert engine_plan.warmup_ns(case, cut_s * 10**9) / 1e9 == expected_s


def test_the_generator_takes_the_cpus_that_the_study_gives_to_no_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    placed = Service("api", "serve", limits=Limits(cpus=(0, 1)))
    free = Service("api", "serve")

    def cpus(service: Service) -> tuple[int, ...] | None:
        return engine_plan.plan_of(PlannedTrial(records.case(services=(service,)), 1, 1, 1), TARGET).cpus

    assert cpus(placed) == (2, 3)
    assert cpus(free) is None


def settling_for_8_s() -> str:
    """The interval log of a trial of 40 s: slow for 8 s, then steady."""
    return "".join(
        records.hlog_line("load.look.ok.response", second, 1.0, {value: 50 + second % 3})
        for second, value in enumerate([40_000_000] * 8 + [10_000_000] * 32)
    )


def test_settling_is_seen_in_the_medians_of_the_interval_log(tmp_path: Path) -> None:
    study = records.study()
    with create_run(tmp_path / "run", study, records.trials(study), {}) as writer:
        trial = writer.trial(records.trials(study)[0])
        records.write_live(trial.live)
        (trial.live / "intervals.hlog").write_text(settling_for_8_s())
        trial.seal(TrialEnd(TrialStatus.COMPLETE, (), records.engine_result(), 1, 1))

    assert warm_up.settled_after_ns(trial.path) == 8 * 10**9


# --- what does not count -----------------------------------------------------------------------------


def result(**changes: object) -> EngineResult:
    run = ScriptedRun.__new__(ScriptedRun)
    vars(run).update({"status": "complete", "verdict": "kept_up", "law_holds": True, "errors": {}, "t0": 1})
    vars(run).update(changes)
    return EngineResult.from_json(run.result())


def test_a_broken_law_of_counting_makes_a_trial_invalid_with_the_sums() -> None:
    status, reasons = trial_faults.verdict(result(law_holds=False))

    assert status is TrialStatus.INVALID
    assert reasons == (
        "the law of counting is broken in stream load: due 10 = issued 10 + dropped 0 + waiting 0",
    )


def test_an_own_limit_makes_a_trial_invalid_and_the_services_errors_do_not() -> None:
    three = {"count": 3, "first_s": 0.1, "last_s": 0.2, "samples": []}
    own = result(errors={"own_ports": three})
    theirs = result(errors={"refused": three})

    assert trial_faults.verdict(own) == (
        TrialStatus.INVALID,
        ("the generator ran out of local ports (3 requests of stream load)",),
    )
    assert trial_faults.verdict(theirs) == (TrialStatus.COMPLETE, ())
    assert trial_faults.verdict(result(verdict="limit"))[0] is TrialStatus.COMPLETE  # a lower bound, said so
    assert trial_faults.verdict(result(verdict="late")) == (TrialStatus.COMPLETE, ())


def test_an_early_end_is_no_complete_trial() -> None:
    assert trial_faults.verdict(result(status="stopped"))[0] is TrialStatus.ABORTED


# --- time left ---------------------------------------------------------------------------------------


def test_time_left_is_the_plan_plus_the_median_overhead_of_each_trial_that_is_left() -> None:
    clock = Clock()
    for took in (13.0, 12.0, 17.0):
        clock.learn(10.0, took)

    left = clock.left(planned_s=100.0, trials=10)

    assert left.seconds == 100.0 + 3.0 * 10
    # overheads 3, 2, 7: standard deviation sqrt(7); half-width 2 s sqrt(n + n^2 / 3) by hand
    half = 2 * math.sqrt(7) * math.sqrt(10 + 100 / 3)
    assert left.high == pytest.approx(130.0 + half)
    assert left.low == max(100.0, 130.0 - half)


def test_before_three_trials_the_time_left_has_no_interval() -> None:
    clock = Clock()

    assert clock.left(100.0, 10) == Remaining(100.0)
    clock.learn(10.0, 12.0)
    clock.learn(10.0, 14.0)
    assert clock.left(100.0, 10) == Remaining(130.0)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (89, "89s"), (90, "2m"), (2880, "48m"), (3900, "1h05m")]
)
def test_time_left_is_short(seconds: float, text: str) -> None:
    assert in_short(seconds) == text


def test_a_trial_is_one_line_where_nothing_can_be_drawn() -> None:
    out = io.StringIO()
    case = records.case(name="alone workers=2 users=10")
    ended = TrialEnded(
        PlannedTrial(case, block=1, position=23, seed=1),
        number=23,
        trials=132,
        attempt=1,
        status=TrialStatus.COMPLETE,
        reasons=(),
        throughput_rps=9.1,
        failed=0,
        will_repeat=False,
        remaining=Remaining(2880.0, 2700.0, 3120.0),
    )

    PlainPrinter(out).tell(ended)
    PlainPrinter(out).tell(
        replace(
            ended,
            status=TrialStatus.INVALID,
            reasons=("reset not verified",),
            will_repeat=True,
            throughput_rps=None,
        )
    )
    PlainPrinter(out).tell(replace(ended, unexpected_status=3, check_failed=12))

    first, second, third = out.getvalue().splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d", first[:8])
    assert first[8:] == "  23/132 alone workers=2 users=10 block=1 valid 9.1/s failed 0 left 48m"
    assert second[8:] == (
        "  23/132 alone workers=2 users=10 block=1 invalid (reset not verified), will be repeated left 48m"
    )
    assert third[8:].endswith("valid 9.1/s failed 0 unexpected status 3 check failed 12 left 48m")


# --- interrupts --------------------------------------------------------------------------------------


def test_the_first_signal_sets_a_flag_and_breaks_off_only_what_allows_it() -> None:
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGTERM)

        assert interrupts.is_set
        assert [interrupts.is_news(), interrupts.is_news()] == [True, False]
        with pytest.raises(Stopped) as stopped, interrupts.allowed():
            pytest.fail("what comes after the request must not begin")
    assert stopped.value.code is ExitCode.TERMINATED


def test_a_signal_breaks_off_what_allows_it() -> None:
    def wait_for_others(interrupts: Interrupts) -> None:
        with interrupts.allowed():
            signal.raise_signal(signal.SIGINT)
            pytest.fail("it went on")

    with Interrupts() as interrupts, pytest.raises(Stopped) as stopped:
        wait_for_others(interrupts)
    assert stopped.value.code is ExitCode.INTERRUPTED


def test_the_second_signal_ends_the_process_at_once() -> None:
    program = (
        "import signal, time\n"
        "from loadlens.run.interrupts import Interrupts\n"
        "with Interrupts():\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    print('first', flush=True)\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "    time.sleep(60)\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)

    assert (done.returncode, done.stdout) == (143, "first\n")


def test_a_signal_at_the_beginning_of_what_allows_it_breaks_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    look = Interrupts.check

    def heard_behind_the_look(interrupts: Interrupts) -> None:
        look(interrupts)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Interrupts, "check", heard_behind_the_look)
    with Interrupts() as interrupts, pytest.raises(Stopped), interrupts.allowed():
        pytest.fail("it went on")


def test_a_signal_behind_the_start_of_services_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beds: list[Testbed] = []

    class Heard(Testbed):
        def start(self) -> None:
            super().start()
            beds.append(self)
            raise Stopped(ExitCode.INTERRUPTED)

    monkeypatch.setattr("loadlens.run.trial_runner.Testbed", Heard)
    study = tiny.planned(tiny.write_study(tmp_path / "study"))
    (planned, *_) = design.order(study)
    preparations = prepare_all(study, cache=tmp_path / "cache", on_line=lambda _: None)
    machine = environment.of_machine()
    with create_run(tmp_path / "run", study, [planned], machine) as writer:
        runner = TrialRunner(writer, preparations, Interrupts(), progress.Silent(), machine)
        done = runner.run(planned)

    (bed,) = beds
    assert bed.keeper_pid is None
    assert done.status is TrialStatus.ABORTED


def test_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


# --- one trial of the engine -------------------------------------------------------------------------


def test_a_stop_ends_the_engine_in_order_and_its_result_stays(scripted: type[ScriptedRun]) -> None:
    scripted.script = staticmethod(lambda run: setattr(run, "turns", 10_000))
    seen = []

    class Ends(engine_trial.Listener):
        def must_stop(self, progress: engine.Progress | None) -> bool:
            assert progress is not None
            seen.append(progress["phase"])
            return True

    done = run_trial(records.plan(), Ends())

    assert done["status"] == "stopped"
    assert seen == ["measure"]


def test_whoever_raises_in_between_leaves_no_load_behind(scripted: type[ScriptedRun]) -> None:
    scripted.script = staticmethod(lambda run: setattr(run, "turns", 10_000))

    class Broken(engine_trial.Listener):
        def must_stop(self, progress: engine.Progress | None) -> bool:
            raise ValueError("a view of another program")

    with pytest.raises(ValueError, match="a view"):
        run_trial(records.plan(), Broken())

    assert scripted.runs[0].stopped


def test_an_engine_that_does_not_end_is_an_error_and_no_hang(
    scripted: type[ScriptedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadlens.run.engine_trial.GRACE_S", 0.05)
    monkeypatch.setattr(scripted, "wait", lambda self, timeout_s: time.sleep(0.005))
    plan = replace(records.plan(), duration_ns=1, streams=(replace(records.plan().streams[0], timeout_ns=1),))

    with pytest.raises(EngineError, match="did not end"):
        run_trial(plan)


# --- a study's trials --------------------------------------------------------------------------------


def run_tiny(tmp_path: Path, listener: Listener | None = None, **settings: object) -> RunRecord:
    study = tiny.planned(tiny.write_study(tmp_path / "study", **settings))  # type: ignore[arg-type]
    path = run_study(study, tmp_path / "run", progress=listener, cache=tmp_path / "cache")
    return open_run(path)


def test_every_case_runs_once_a_block_and_is_sealed(tmp_path: Path, scripted: type[ScriptedRun]) -> None:
    listener = Listener()

    record = run_tiny(tmp_path, listener)

    assert record.is_complete
    assert record.damage == ()
    assert sorted((t.case.levels["users"], t.name) for t in record.trials) == [
        ("1", "block-1"),
        ("1", "block-2"),
        ("2", "block-1"),
        ("2", "block-2"),
    ]
    assert [t.position for t in record.trials] == [1, 2, 3, 4]
    assert {t.plan.streams[0].workload for t in record.trials} == {Closed(users=1), Closed(users=2)}
    assert "listening" in record.trials[0].log("web")
    assert not list(record.path.rglob("live"))
    assert [e["event"] for e in record.events() if e["event"].startswith("trial")][:2] == [
        "trial_started",
        "trial_sealed",
    ]
    assert (
        type(next(e for e in listener.events if not isinstance(e, progress.Building))) is progress.RunStarted
    )


def test_books_are_read_before_the_load_and_after_the_drain(
    tmp_path: Path, scripted: type[ScriptedRun]
) -> None:
    record = run_tiny(tmp_path, service="scrape: {get: /metrics}", trials=1, users="[1]")

    trial = record.trials[0]
    scraped = trial.readings().filter(metric="requests_total").sort("time_ns")

    assert scraped.height >= 2
    assert scraped["time_ns"][0] < 0
    assert trial.idle.before_ns[0] <= scraped["time_ns"][0] <= trial.idle.before_ns[1] <= 0
    assert trial.idle.after_ns[0] <= scraped["time_ns"][-1] <= trial.idle.after_ns[1]
    # one readiness request or more, and each scrape counts itself
    ready = (trial.idle.readiness_requests or {})["web"]
    assert scraped["value"].to_list() == [ready + 1 + i for i in range(scraped.height)]


def test_an_invalid_trial_is_repeated_once_at_the_end_of_its_block_and_both_are_kept(
    tmp_path: Path, scripted: type[ScriptedRun]
) -> None:
    def break_the_first(run: ScriptedRun) -> None:
        run.law_holds = len(type(run).runs) != 1

    scripted.script = staticmethod(break_the_first)
    listener = Listener()

    record = run_tiny(tmp_path, listener)

    assert record.is_complete
    assert [(e.planned.block, e.attempt, e.status.value, e.will_repeat) for e in listener.ended] == [
        (1, 1, "invalid", True),
        (1, 1, "complete", False),
        (1, 2, "complete", False),
        (2, 1, "complete", False),
        (2, 1, "complete", False),
    ]
    first = listener.ended[0].planned.case.slug
    kept = [(t.name, t.status.value) for t in record.trials if t.case.slug == first]
    assert kept == [("block-1", "invalid"), ("block-1.2", "complete"), ("block-2", "complete")]


def test_a_trial_that_stays_invalid_is_not_repeated_for_ever(
    tmp_path: Path, scripted: type[ScriptedRun]
) -> None:
    scripted.script = staticmethod(lambda run: setattr(run, "law_holds", False))

    record = run_tiny(tmp_path, trials=1, users="[1]")

    assert [t.status.value for t in record.trials] == ["invalid", "invalid"]
    assert not record.is_complete


def test_a_service_that_dies_under_load_makes_its_trial_invalid_and_the_run_goes_on(
    tmp_path: Path, scripted: type[ScriptedRun]
) -> None:
    def kill_the_service(run: ScriptedRun) -> None:
        if len(type(run).runs) == 1:
            target = run.plan.streams[0].target
            with pytest.raises(OSError):
                urllib.request.urlopen(f"http://{target.authority}/die", timeout=5)
            run.turns = 200

    scripted.script = staticmethod(kill_the_service)

    record = run_tiny(tmp_path, trials=1, users="[1]")

    invalid, repeated = record.trials
    assert invalid.status is TrialStatus.INVALID
    assert invalid.reasons == ("web ended while it was under test, exit status 7",)
    assert repeated.status is TrialStatus.COMPLETE


def test_a_service_that_dies_with_the_last_request_is_seen_however_short_ago_the_last_look_was(
    tmp_path: Path, scripted: type[ScriptedRun]
) -> None:
    def kill_behind_the_first_look(run: ScriptedRun) -> None:
        run.turns = 2

    def progress_of(run: ScriptedRun) -> dict[str, object]:
        if run.turns == 0 and len(type(run).runs) == 1:  # the last turn of the first trial
            (pid,) = (int(line.split()[0]) for line in busy_in(tmp_path / "study"))
            with pytest.raises(OSError):
                urllib.request.urlopen(f"http://{run.plan.streams[0].target.authority}/die", timeout=20)
            assert still_there(lambda: [pid] if is_alive(pid) else [], 20.0) == []
        return ScriptedRun.progress(run)

    scripted.script = staticmethod(kill_behind_the_first_look)
    scripted.progress = progress_of  # type: ignore[method-assign, assignment]

    record = run_tiny(tmp_path, trials=1, users="[1]")

    assert [t.reasons for t in record.trials] == [("web ended while it was under test, exit status 7",), ()]


def test_services_that_never_come_up_end_the_run_with_the_reason(
    tmp_path: Path, scripted: type[ScriptedRun]
) -> None:
    path = tiny.write_study(tmp_path / "study")
    path.write_text(path.read_text().replace("server.py $port", "missing.py $port"))

    with pytest.raises(TestbedError, match="ended before it was ready"):
        run_study(tiny.planned(path), tmp_path / "run", cache=tmp_path / "cache")

    (trial,) = open_run(tmp_path / "run").trials
    assert trial.status is TrialStatus.INVALID
    assert "ended before it was ready" in trial.reasons[0]


def test_a_reset_that_is_not_verified_makes_the_trial_invalid(
    tmp_path: Path, scripted: type[ScriptedRun]
) -> None:
    record = run_tiny(
        tmp_path, study="reset: {before: trial, run: 'true', verify: 'false'}", trials=1, users="[1]"
    )

    assert [t.status for t in record.trials] == [TrialStatus.INVALID] * 2
    assert record.trials[0].reasons[0].startswith("the data reset failed")
    assert scripted.runs == []  # no load was made on data that are not known


@pytest.mark.parametrize(("fresh", "processes"), [("trial", 4), ("block", 2), ("run", 1)])
def test_trials_share_processes_as_far_as_the_study_says(
    tmp_path: Path, scripted: type[ScriptedRun], fresh: str, processes: int
) -> None:
    record = run_tiny(tmp_path, fresh=fresh)

    assert len({t.services[0].pid for t in record.trials}) == processes
    assert all("listening" in t.log("web") for t in record.trials)
    assert all(t.damage() == () for t in record.trials)


# --- ends and goes on --------------------------------------------------------------------------------


def stop_at(number: int) -> Listener:
    """Ctrl-C while the load of the n-th trial runs."""
    seen = {"trials": 0, "sent": False}

    def then(event: Event) -> None:
        seen["trials"] += isinstance(event, progress.TrialStarted)
        if isinstance(event, progress.Load) and seen["trials"] == number and not seen["sent"]:
            seen["sent"] = True
            signal.raise_signal(signal.SIGINT)

    return Listener(then)


def test_a_stopped_run_keeps_what_is_done_and_goes_on_with_the_rest(
    tmp_path: Path, scripted: type[ScriptedRun]
) -> None:
    scripted.script = staticmethod(lambda run: setattr(run, "turns", 20))
    study = tiny.planned(tiny.write_study(tmp_path / "study"))
    listener = stop_at(2)

    with pytest.raises(Stopped) as stopped:
        run_study(study, tmp_path / "run", progress=listener, cache=tmp_path / "cache")

    before = open_run(tmp_path / "run")
    assert stopped.value.code is ExitCode.INTERRUPTED
    assert [t.status.value for t in before.trials] == ["complete", "aborted"]
    assert any(isinstance(e, progress.Stopping) for e in listener.events)
    assert before.events()[-1]["event"] == "stopped"

    again = Listener()
    run_study(study, tmp_path / "run", resume=True, progress=again, cache=tmp_path / "cache")

    after = open_run(tmp_path / "run")
    assert after.is_complete
    assert [e.planned.position for e in again.ended] == [2, 3, 4]
    assert [t.seed for t in after.trials if t.status is TrialStatus.COMPLETE] == [
        t["seed"] for t in after.study["trials"]
    ]
    assert after.trials[1].status is TrialStatus.ABORTED  # kept next to its second attempt
    assert after.trials[2].name == "block-1.2"


def test_a_resumed_run_warms_up_for_as_long_as_its_earlier_trials_needed(
    tmp_path: Path, scripted: type[ScriptedRun]
) -> None:
    def settle_late(run: ScriptedRun) -> None:
        run.turns, run.intervals = 20, settling_for_8_s()

    scripted.script = staticmethod(settle_late)
    path = tiny.write_study(tmp_path / "study", trials=3, users="[1]")
    path.write_text(path.read_text().replace("warmup: 0s", "warmup: auto"))
    study = tiny.planned(path)
    with pytest.raises(Stopped):
        run_study(study, tmp_path / "run", progress=stop_at(2), cache=tmp_path / "cache")

    run_study(study, tmp_path / "run", resume=True, cache=tmp_path / "cache")

    # Two before Ctrl-C, of which one is whole, and two after it.
    assert [run.plan.warmup_ns / 1e9 for run in scripted.runs] == [5.0, 8.0, 8.0, 8.0]


def test_ctrl_c_while_services_start_leaves_none(tmp_path: Path, scripted: type[ScriptedRun]) -> None:
    study = tiny.planned(tiny.write_study(tmp_path / "study"))

    def then(event: Event) -> None:
        if isinstance(event, progress.Step) and event.words == "starting services":
            threading.Timer(0.02, signal.raise_signal, [signal.SIGTERM]).start()

    path = tmp_path / "study" / "server.py"
    path.write_text("import time\ntime.sleep(60)\n")  # it never listens

    with pytest.raises(Stopped) as stopped:
        run_study(study, tmp_path / "run", progress=Listener(then), cache=tmp_path / "cache")

    assert stopped.value.code is ExitCode.TERMINATED
    (trial,) = open_run(tmp_path / "run").trials
    assert (trial.status, trial.result) == (TrialStatus.ABORTED, None)


def test_ctrl_c_while_a_trial_is_sealed_leaves_it_whole(tmp_path: Path, scripted: type[ScriptedRun]) -> None:
    study = tiny.planned(tiny.write_study(tmp_path / "study"))

    def then(event: Event) -> None:
        if event == progress.Step("sealing"):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Stopped):
        run_study(study, tmp_path / "run", progress=Listener(then), cache=tmp_path / "cache")

    record = open_run(tmp_path / "run")
    assert [t.status for t in record.trials] == [TrialStatus.COMPLETE]
    assert record.damage == ()


def test_ctrl_c_while_building_ends_the_build_and_writes_nothing(
    tmp_path: Path, scripted: type[ScriptedRun]
) -> None:
    build = "build: {run: \"sh -c 'echo begun; sleep 61'\"}"
    path = tiny.write_study(tmp_path / "study", service=build)

    def then(event: Event) -> None:
        if event == progress.Building("begun"):
            signal.raise_signal(signal.SIGINT)

    began = time.monotonic()
    with pytest.raises(Stopped):
        run_study(tiny.planned(path), tmp_path / "run", progress=Listener(then), cache=tmp_path / "cache")

    assert time.monotonic() - began < 50  # the build alone takes longer
    assert not (tmp_path / "run").exists()


def test_a_run_of_a_changed_study_is_not_taken_up(tmp_path: Path, scripted: type[ScriptedRun]) -> None:
    run_tiny(tmp_path, trials=1)
    other = tiny.planned(tiny.write_study(tmp_path / "study", trials=1, duration="400ms"))

    with pytest.raises(RecordError, match="duration_ns 300000000 -> 400000000"):
        run_study(other, tmp_path / "run", resume=True, cache=tmp_path / "cache")


def test_a_taken_folder_is_refused_before_anything_is_built(
    tmp_path: Path, scripted: type[ScriptedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "note").write_text("mine")
    monkeypatch.setattr("loadlens.run.study_runner.prepare_all", lambda *_, **__: pytest.fail("it was built"))

    with pytest.raises(RecordError, match="already holds something"):
        run_study(tiny.planned(tiny.write_study(tmp_path / "s")), tmp_path / "run", cache=tmp_path / "cache")


def test_a_plan_that_the_engine_will_refuse_is_refused_before_anything_is_built(
    tmp_path: Path, scripted: type[ScriptedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadlens.run.study_runner.prepare_all", lambda *_, **__: pytest.fail("it was built"))
    study = tiny.planned(tiny.write_study(tmp_path / "study"))
    case = replace(study.cases[0], workload=Closed(users=0))

    with pytest.raises(PlanError, match=r"case alone-users-1: streams"):
        run_study(replace(study, cases=(case,)), tmp_path / "run", cache=tmp_path / "cache")

    assert not (tmp_path / "run").exists()


def test_packages_of_a_built_environment_are_recorded_by_version(
    tmp_path: Path, scripted: type[ScriptedRun]
) -> None:
    path = tiny.write_study(tmp_path / "study", service="build: {python: requirements.txt}", trials=1)
    (tmp_path / "study" / "requirements.txt").write_text("# nothing is needed\n")

    run_study(tiny.planned(path), tmp_path / "run", cache=tmp_path / "cache")

    built = open_run(tmp_path / "run").environment["builds"]["web"]
    assert len(built["digest"]) == 32
    assert all(isinstance(version, str) for version in built["packages"].values())


def test_what_changed_of_the_machine_is_named() -> None:
    before = {
        "machine": {"governor": "performance", "cores": 2},
        "limits": {},
        "software": {"python": "3.11"},
    }
    now = {"machine": {"governor": "powersave", "cores": 2}, "limits": {}, "software": {"python": "3.12"}}

    assert environment.differences(before, now) == {
        "machine.governor": ["performance", "powersave"],
        "software.python": ["3.11", "3.12"],
    }


def test_the_environment_says_which_machine_it_was_and_takes_no_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOKEN", "s3cret-of-the-environment")

    facts = environment.of_machine(Path(__file__).parent)

    assert facts["machine"]["cores"] == os.cpu_count()
    assert facts["machine"]["kernel"] == os.uname().release
    assert "s3cret-of-the-environment" not in str(facts)


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        (["/usr/bin/loadlens", "run", "a.yaml"], ["loadlens", "run", "a.yaml"]),
        (["/a/loadlens/__main__.py", "hit"], ["loadlens", "hit"]),
        (["/a/pytest/__main__.py", "tests"], []),
        (["report.py", "run"], []),
    ],
)
def test_the_command_of_a_record_is_ours_or_none(
    typed: list[str], command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", typed)

    assert environment.of_machine()["command"] == command


def test_users_and_places_are_what_threads_are_bounded_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))

    def threads(workload: Closed | Open) -> int | None:
        planned = PlannedTrial(records.case(workload=workload), 1, 1, 1)
        return engine_plan.plan_of(planned, TARGET).threads

    assert threads(Closed(users=100)) == 4  # one in four cores
    assert threads(Closed(users=2)) == 2
    assert threads(Open(100.0, max_in_flight=1)) == 1


def test_the_record_says_what_was_asked_what_held_and_what_was_refused() -> None:
    service = Service("api", start="serve", limits=Limits(cpu=0.3, memory_bytes=1 << 28))
    case = records.case(services=(service, Service("db", use="postgres")))
    held = [{"service": "api", "replica": 1, "cpus": (0,), "cpu": 0.3, "memory_bytes": 1 << 28}]

    placed = engine_plan.placement_of(None, case, held=held, refused="services.db.limits.cpu: no group")

    api, db = placed["services"]["api"], placed["services"]["db"]
    assert (api["cpu"], api["period_s"], api["memory_bytes"], api["cpus"]) == (0.3, 0.01, 1 << 28, None)
    assert api["held"] == [{"replica": 1, "cpus": (0,), "cpu": 0.3, "memory_bytes": 1 << 28}]
    assert (db["cpu"], db["period_s"], db["held"]) == (None, None, [])
    assert placed["refused"] == "services.db.limits.cpu: no group"
    assert placed["generator_threads"] is None  # the trial never got so far


def test_what_the_service_calls_has_a_place_of_its_own_and_is_marked() -> None:
    outside = Outside("service", "127.0.0.1", True, pids=(41,), peers=(Peer("store", 51),))
    held = [
        {"service": name, "replica": 1, "cpus": (cpu,), "cpu": None, "memory_bytes": None}
        for cpu, name in enumerate(("service", "store"))
    ]

    placed = engine_plan.placement_of(None, records.case(outside=outside), held=held)["services"]

    assert [(name, each["held"][0]["cpus"], each.get("is_called")) for name, each in placed.items()] == [
        ("service", (0,), None),
        ("store", (1,), True),
    ]


@pytest.mark.parametrize(("cpus", "shared"), [((0, 1), True), ((1,), False), (None, None)])
def test_what_ran_already_has_the_place_that_the_kernel_says(
    cpus: tuple[int, ...] | None, shared: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    case = records.case(outside=Outside("service", "127.0.0.1", True, pids=(41,)))
    held = [{"service": "service", "replica": 1, "cpus": cpus, "cpu": None, "memory_bytes": None}]

    placed = engine_plan.placement_of(None, case, held=held)

    assert placed["services"]["service"]["cpus"] is None  # the study sets none
    assert placed["services"]["service"]["held"][0]["cpus"] == cpus
    assert placed["shared"] is shared
