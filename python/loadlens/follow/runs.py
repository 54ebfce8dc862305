"""The state of a run from its record: cases and blocks, figures of sealed trials, events in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from loadlens import record
from loadlens.errors import LoadlensError, RecordError
from loadlens.estimate.within_trial import FIRM_ABOVE
from loadlens.measure.source import from_record
from loadlens.model.recorded import PlannedStudy
from loadlens.model.report import State
from loadlens.model.result import EngineResult, Quantity
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import Closed
from loadlens.present import load_text, words

MOST_LOGGED: Final = 500
KINDS: Final = ("hit", "explain", "capacity", "compare", "demo")  # verbs that make records; others: study
LADDERS: Final = frozenset({"load", "rate"})  # purposes of cases that are levels of a search
SEARCHES: Final = frozenset({"explain", "capacity", "demo"})
ENDED: Final = frozenset({"finished", "stopped"})  # states in which a run has all that its answer needs
QUIET: Final = frozenset({"created", "extended", "phase"})  # events that are no line of the log
BAD: Final = frozenset({"service_died"})
CAUTION: Final = frozenset({"warned", "caveat", "port_taken", "leak", "load_changed", "stopped"})
OF_TRIAL: Final[Mapping[str, State]] = {"complete": "ok", "invalid": "bad"}  # others: caution


@dataclass(slots=True)
class Cell:
    """A planned trial and its newest attempt."""

    case: str
    block: int
    position: int
    state: str = "planned"
    trial: str | None = None
    attempts: int = 0
    reasons: list[str] = field(default_factory=list)
    began_s: float | None = None
    ended_s: float | None = None
    figures: dict[str, Any] | None = None


class RunState:
    """A run whose events are followed; `refresh` looks for new ones."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.id = record.run_id(path)
        self._followed = record.FollowedEvents(path)
        self._study: PlannedStudy | None = None
        self._question = ""
        self._command: list[str] = []
        self._cells: dict[tuple[str, int], Cell] = {}
        self._begun: dict[tuple[str, str], Cell] = {}  # by case and folder
        self._log: list[dict[str, Any]] = []
        self._provisional: list[dict[str, Any]] = []
        self.created_s = self.updated_s = 0.0  # times of the first and the last event
        self._name = path.name
        self._ended = ""  # the event that ended it
        self._running: dict[str, Any] | None = None
        self._fault = ""
        self._writer: int | None = None
        self._is_quiet = False  # nothing was written at the last look, and no process had the lock
        self._unread: list[Cell] = []  # sealed, not opened yet

    def refresh(self) -> bool:
        """Look for new events; return True if the state changed."""
        before = (self._is_written, self._fault)
        events: list[dict[str, Any]] = []
        try:
            if not self._is_quiet or self._followed.has_new:  # a process that begins to write says so first
                self._writer = record.writer_of(self.path, self._writer)
            events = self._followed.new()
            if self._study is None or any(event["event"] in ("created", "extended") for event in events):
                self._read_plan()
        except (LoadlensError, KeyError) as fault:
            self._fault = fault.message if isinstance(fault, LoadlensError) else f"damaged: {fault}"
        self._is_quiet = self._writer is None and not events
        for event in events:
            try:
                self._take(event)
            except (KeyError, TypeError, ValueError) as fault:
                self._fault = f"damaged event: {fault!r}"
        return bool(events) or before != (self._is_written, self._fault)

    @property
    def _is_written(self) -> bool:
        return self._writer is not None

    @property
    def is_replaced(self) -> bool:
        """True if the folder holds another record than the one that was read."""
        return self._followed.is_replaced

    @property
    def state(self) -> str:
        """`running`, `finished`, `stopped`, `interrupted` or `damaged`."""
        if self._fault and not self._cells:
            return "damaged"
        if self._is_written:
            return "running"
        if self._ended:
            return "finished" if self._ended == "ended" else "stopped"
        states = {cell.state for cell in self._cells.values()}
        if not states or states & {"planned", "running"}:
            return "interrupted"
        return "stopped" if TrialStatus.ABORTED.value in states else "finished"  # of a `hit` of old: no end

    @property
    def kind(self) -> str:
        """The verb that made the record; `study` for `run`."""
        verb = next((word for word in self._command[1:] if word in KINDS), "")
        return verb or ("hit" if self._name == "hit" else "study")

    @property
    def cells(self) -> list[Cell]:
        """The planned trials."""
        return list(self._cells.values())

    @property
    def running(self) -> tuple[str, str] | None:
        """Case and folder of the trial that runs; none between two."""
        return None if self._running is None else (self._running["case"], self._running["trial"])

    @property
    def command(self) -> list[str]:
        """The command that began the run, without credentials."""
        return list(self._command)

    @property
    def newest_trial(self) -> tuple[str, str] | None:
        """Case and folder of the trial that runs, or of the last one that did."""
        begun = [cell for cell in self._cells.values() if cell.trial is not None]
        last = max(begun, key=lambda cell: cell.began_s or 0.0, default=None)
        return None if last is None or last.trial is None else (last.case, last.trial)

    def has_trial(self, case: str, trial: str) -> bool:
        """True if an event names this trial."""
        return (case, trial) in self._begun

    def name_of(self, case: str) -> str:
        """Return the name of a case by its slug."""
        cases = () if self._study is None else self._study.cases
        return next((planned.name for planned in cases if planned.slug == case), case)

    def summary(self) -> dict[str, Any]:
        """Return the run as a row of the list."""
        complete = sum(cell.state == "complete" for cell in self._cells.values())
        return {
            "id": self.id,
            "name": self.path.name,
            "study": self._name,
            "question": words.plain(self._question),
            "kind": self.kind,
            "state": self.state,
            "created_s": self.created_s,
            "updated_s": self.updated_s,
            "planned": len(self._cells),
            "complete": complete,
            "words": self._fault or f"{complete} of {words.plural(len(self._cells), 'trial')}",
        }

    def document(self) -> dict[str, Any]:
        """Return everything about the run but its columns over time."""
        self._read_sealed()
        cases = () if self._study is None else self._study.cases
        return {
            **self.summary(),
            "path": str(self.path),
            "cases": [
                {
                    "slug": case.slug,
                    "name": case.name,
                    "experiment": case.experiment,
                    "levels": dict(case.levels),
                    "load": load_text.size(case.workload),
                    "purpose": case.purpose,
                    "held_out": case.held_out,
                }
                for case in cases
            ],
            "blocks": max((cell.block for cell in self._cells.values()), default=0),
            "trials": [
                {name: getattr(cell, name) for name in Cell.__slots__}
                | ({} if self._is_written or cell.state != "running" else {"state": "unsealed"})
                for cell in self._cells.values()
            ],
            "levels": self.levels(),
            "provisional": self._provisional,
            "answer": self.answer,
            "log": self._log,
            "running": self._running if self._is_written else None,
            "has_report": self.has_report,
        }

    @property
    def has_report(self) -> bool:
        """True if a report is in the record, or can be made of it."""
        has_trials = any(cell.state == "complete" for cell in self._cells.values())
        return (self.state in ENDED and has_trials) or (self.path / record.REPORT_HTML).is_file()

    @property
    def answer(self) -> list[str]:
        """The sentences of a run that is over, its headline first; none where its figures say no less."""
        if self.state in ENDED and (headline := record.report_headline(self.path)):
            return [words.plain(headline)]
        cells = list(self._cells.values())
        if len(cells) == 1 and cells[0].state == TrialStatus.EXPLORATORY.value:
            return ["the load was changed while it ran: no figure is given for the whole"]
        return []

    def levels(self) -> list[dict[str, Any]]:
        """Return the levels of a search with the figures of their valid trials, the lowest load first."""
        if self.kind not in SEARCHES or self._study is None:
            return []
        self._read_sealed()
        loads = {
            case.slug: float(case.workload.users)
            if isinstance(case.workload, Closed)
            else case.workload.peak_per_s
            for case in self._study.cases
        }
        levels = [case for case in self._study.cases if case.purpose in LADDERS]
        return [
            {
                "case": case.slug,
                "name": load_text.size(case.workload),
                "load": loads[case.slug],
                "figures": [
                    cell.figures
                    for cell in self._cells.values()
                    if cell.case == case.slug and cell.state == "complete" and cell.figures
                ],
            }
            for case in sorted(levels, key=lambda case: loads[case.slug])
        ]

    def _read_plan(self) -> None:
        held = record.read_plan_of_run(self.path)
        self._study = from_record(PlannedStudy, held.study, "effective.yaml")
        self._name, self._question = str(held.study["name"]), str(held.study.get("question", ""))
        self._command = [str(word) for word in held.environment.get("command") or ()]
        for trial in held.study["trials"]:
            key = (str(trial["case"]), int(trial["block"]))
            self._cells.setdefault(key, Cell(*key, int(trial["position"])))

    def _take(self, event: Mapping[str, Any]) -> None:
        name, at_s = str(event["event"]), event["unix_ns"] / 1e9
        self.created_s = self.created_s or at_s
        self.updated_s = at_s
        case, trial = event.get("case"), event.get("trial")
        cell = self._cell_of(case, trial)
        match name:
            case "trial_started" if cell is not None:
                cell.state, cell.trial, cell.began_s = "running", str(trial), at_s
                cell.attempts += 1
                cell.ended_s, cell.figures, cell.reasons = None, None, []
                self._begun[cell.case, cell.trial] = cell
                self._running = {"case": case, "trial": trial, "phase": ""}
                self._ended = ""
            case "phase" if self._running is not None:
                self._running = {**self._running, "phase": event["phase"]}
            case "trial_sealed" if cell is not None:
                cell.state, cell.ended_s = str(event["status"]), at_s
                cell.reasons = [words.plain(str(reason)) for reason in event["reasons"]]
                self._running = None
                self._unread.append(cell)
            case "provisional":
                verdict = {"at_s": at_s, "words": words.plain(str(event["words"]))}
                self._provisional = [*self._provisional, verdict]
            case "stopped" | "ended":
                self._ended, self._running = name, None
            case "resumed":
                self._ended = ""
        if name not in QUIET:
            line = {"at_s": at_s, "event": name, "words": words.plain(in_words(event))}
            # a change of the load takes effect a moment after its event
            since_t0_s = event["at_ns"] / 1e9 if name == "load_changed" else None
            line |= {"case": case, "trial": trial, "state": state_of(event), "since_t0_s": since_t0_s}
            self._log = [*self._log, line][-MOST_LOGGED:]

    def _cell_of(self, case: object, trial: object) -> Cell | None:
        if not isinstance(case, str) or not isinstance(trial, str) or case.startswith(".") or "/" in case:
            return None  # a name becomes a path
        block = record.block_of(trial)
        return None if block is None else self._cells.get((case, block))

    def _read_sealed(self) -> None:
        while self._unread:
            self._seal(self._unread.pop())

    def _seal(self, cell: Cell) -> None:
        if cell.trial is None:
            return
        try:
            sealed = record.sealed_trial(self.path, cell.case, cell.trial)
        except RecordError as fault:
            cell.state = TrialStatus.INVALID.value
            cell.reasons = [f"{fault}"]
            return
        has_figures = sealed.status is not TrialStatus.EXPLORATORY  # its load was not one
        cell.figures = dict(_figures(sealed.result)) if has_figures and sealed.result else None


def _figures(result: EngineResult) -> Iterator[tuple[str, Any]]:
    """Yield the figures of the load of a trial, as the engine estimated them."""
    load = result.load
    if load is None:
        return
    times = load.response_time_s
    yield "throughput_per_s", quantity(load.throughput_rps)
    for name in ("mean", "p50", "p95", "p99"):
        yield f"{name}_s", quantity(times.quantity(name))
    yield "ok", load.requests.ok
    yield "bad", load.requests.unexpected_status + load.requests.check_failed
    yield "failed", load.requests.failed


def quantity(of: Quantity) -> dict[str, Any]:
    """Return a quantity for the page; `marked`: few requests lie above the quantile."""
    few = of.independent_above is not None and of.independent_above < FIRM_ABOVE
    ends = {"value": of.value, "low": of.low, "high": of.high}
    return {**ends, "undecided": of.undecided, "marked": few}


def state_of(event: Mapping[str, Any]) -> State | None:
    """Return what an event means for the figures; none: nothing."""
    name = str(event["event"])
    if name == "trial_sealed":
        return OF_TRIAL.get(str(event["status"]), "caution")
    if name in BAD or (name == "service_stopped" and not event.get("when_asked", True)):
        return "bad"
    return "caution" if name in CAUTION else None


def in_words(event: Mapping[str, Any]) -> str:
    """Return an event as a line for a reader."""
    name = str(event["event"])
    place = f"{event.get('case')} {event.get('trial')}"
    match name:
        case "trial_started":
            return f"trial began: {place}"
        case "trial_sealed":
            reasons = "; ".join(map(str, event.get("reasons", ())))
            return f"trial {event['status']}: {place}" + (f" ({reasons})" if reasons else "")
        case "service_started":
            return f"{event['service']} started, process {event.get('pid')}"
        case "service_ready":
            return f"{event['service']} ready after {event.get('seconds', 0):.1f} s"
        case "service_stopped":
            asked = "" if event.get("when_asked", True) else " before it was asked to"
            return f"{event['service']} ended{asked}, status {event.get('status')}"
        case "stopped" | "ended":
            reason = f": {event['reason']}" if event.get("reason") else ""
            return f"run {name}, {words.plural(event['complete'], 'trial')} complete{reason}"
        case "resumed":
            return "run resumed"
        case "load_changed":
            unit = "users" if event["what"] == "users" else "requests/s"
            return f"load changed from {event['old']:g} to {event['new']:g} {unit}: {place}"
        case "predicted":
            return f"predicted {event.get('case')}"
        case "found":
            return str(event["words"])
        case "explained":
            return f"search ended: {event['words']}"
    text = event.get("words")
    label = name.replace("_", " ")
    return f"{label}: {text}" if text else " ".join([label, str(event.get("service", ""))]).strip()
