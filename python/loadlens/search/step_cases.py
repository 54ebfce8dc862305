"""Study cases for search decisions, so that a search produces an ordinary record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from loadlens.model.search import Aim
from loadlens.model.study import Case, Level, Objective, PlannedTrial, Probe, Purpose, Study, draw
from loadlens.model.topology import Entry, Scalar
from loadlens.model.workload import Closed, Connection, Open, Scenario, Step, Think
from loadlens.search.ladder import (
    LOOKS_EACH,
    Kind,
    Next,
    look_think_s,
    probe_per_s,
    think_s,
)
from loadlens.search.rates import Range

STUDY: Final = "explain"
EVENT: Final = "explained"  # in its record: how the search went and why it ended
# Its experiments.
LADDER, PATIENT, LOOK, DENSE, STACKS, RATES = "ladder", "patient", "look", "dense", "stacks", "rates"
_PURPOSES: Final[Mapping[Kind, Purpose]] = {
    "look": "look",
    "climb": "load",
    "dense": "dense",
    "stacks": "stacks",
}
CHEAP: Final = 0.5  # of the time of the load's request, at most
HEALTH_MARGIN: Final = 2.0
_MOST_PROBES = 1000  # in flight
MOST_IN_FLIGHT: Final = 4000  # of an open load; what is due beyond waits, and counts from when it was due
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ProbeUsed:
    """The probe of a search."""

    name: str
    path: str
    is_load: bool  # it sends the load's own request


@dataclass(frozen=True, slots=True)
class Watched:
    """Parts of the service that a search watched."""

    pids: tuple[int, ...] = ()
    started: tuple[str, ...] = ()  # commands
    metrics: bool = False


@dataclass(frozen=True, slots=True)
class RatesEnd:
    """Course and end of the search of a rate that meets objectives."""

    objectives: tuple[Objective, ...]
    span: Range | None = None  # none: the ladder reached nothing
    fresh: tuple[int, ...] = ()  # positions of the trials that confirm a rate
    end: str = ""  # why no rate or no further rate was tried, if not for time


@dataclass(frozen=True, slots=True)
class SearchEnd:
    """Course and end of a search, as its record keeps them; the default stands for no search."""

    because: str = ""
    words: str = ""
    budget_s: float | None = None
    rate_cap_per_s: float = 0.0
    most_users: int = 0
    probe: ProbeUsed | None = None
    watched: Watched = Watched()
    used_s: float | None = None
    cautions: tuple[str, ...] = ()
    found: tuple[str, ...] = ()  # by the search itself, to watch or as the probe
    missing: tuple[str, ...] = ()  # not found, with the reason
    objectives: tuple[Objective, ...] = ()
    rates: RatesEnd | None = None  # a rate was searched that meets the objectives
    discovery_requests: int = 0  # sent to find it, besides those of the trials

    @property
    def probe_is_load(self) -> bool:
        """True if the probe sent the load's own request, as no other URL was given."""
        return self.probe is not None and self.probe.is_load


@dataclass(frozen=True, slots=True)
class Baseline:
    """Outcome of the baseline step: load URLs, probe URL and think time."""

    load: tuple[Step, ...]
    probe: Step
    probe_is_load: bool  # there was no other URL
    probe_alone_s: float | None
    alone_s: float  # mean over the load's URLs; 0: not known
    think_s: float


def choose(aim: Aim, alone_s: Mapping[str, float | None]) -> Baseline:
    """Return the load URLs, the probe URL and the think time.

    Args:
        aim: The requested search.
        alone_s: Mean response time of each step in the baseline step, by name; `None` without a response.
    """
    load, probe, is_load = aim.steps, aim.probe, False
    if probe is None:
        costliest_s = max(
            (time_s for step in load if (time_s := alone_s.get(step.name)) is not None), default=None
        )
        several = load if len(load) > 1 and aim.pattern is None else ()
        probe = _cheap(several, alone_s, costliest_s) or _cheap(aim.candidates, alone_s, costliest_s)
        if probe is None and several:
            answered = [step for step in several if alone_s.get(step.name) is not None]
            probe = min(answered or several, key=lambda step: alone_s.get(step.name) or 0.0)
        load = tuple(step for step in load if step is not probe)
    if probe is None:
        probe = replace(aim.steps[0], name=f"{aim.steps[0].name} (probe)")
        is_load = True
    means = [mean for step in load if (mean := alone_s.get(step.name)) is not None]
    mean = sum(means) / len(means) if means else 0.0
    probe_s = alone_s.get(load[0].name if is_load else probe.name)
    return Baseline(load, probe, is_load, probe_s, mean, think_s(mean, aim.bounds.rate_cap_per_s))


def _cheap(
    candidates: Sequence[Step], alone_s: Mapping[str, float | None], load_s: float | None
) -> Step | None:
    """Return the fastest candidate that takes at most half as long as the load's request.

    A health check is preferred that takes at most twice the fastest: it has a name that a reader knows.
    """
    times = [(time_s, step) for step in candidates if (time_s := alone_s.get(step.name)) is not None]
    cheap = [(time_s, step) for time_s, step in times if load_s is not None and time_s <= CHEAP * load_s]
    if not cheap:
        return None
    fastest_s, fastest = min(cheap, key=lambda each: each[0])
    health = [(time_s, step) for time_s, step in cheap if step.method == "GET" and not step.expect]
    best = min(health, key=lambda each: each[0], default=None)
    return best[1] if best is not None and best[0] <= HEALTH_MARGIN * fastest_s else fastest


def case_of(aim: Aim, wanted: Next, baseline: Baseline | None) -> Case:
    """Return the case of a decision; the baseline step comes before there is a baseline."""
    if wanted.kind == "look" or baseline is None:
        steps = (*aim.steps, *([] if aim.probe is None else [aim.probe]), *aim.candidates)
        pause = Think("fixed", ns=round(look_think_s(aim.bounds.rate_cap_per_s) * _NS))
        return _case(
            aim,
            wanted,
            experiment=LOOK,
            scenarios=(Scenario(LOOK, 1.0, steps),),
            workload=Closed(users=1, think=pause, requests=LOOKS_EACH * len(steps)),
            probes=(),
        )
    dense = wanted.kind == "dense"
    rate = probe_per_s(baseline.probe_alone_s, aim.bounds.rate_cap_per_s, dense=dense)
    probe = Probe(
        name=baseline.probe.name,
        scenario=Scenario(baseline.probe.name, 1.0, (baseline.probe,)),
        workload=Open(rate_per_s=rate, arrivals="poisson", max_in_flight=_MOST_PROBES),
        connection=Connection("new"),
        timeout_ns=aim.timeout_ns,
    )
    pause_ns = round(wanted.pause_s * _NS)
    ladder = LADDER if wanted.pause_s <= baseline.think_s else PATIENT
    return _case(
        aim,
        wanted,
        experiment=DENSE if dense else ladder,
        scenarios=_mix(aim, baseline),
        workload=Closed(users=wanted.users, think=Think("fixed", ns=pause_ns) if pause_ns else Think()),
        probes=() if wanted.kind == "stacks" else (probe,),
    )


def case_at_rate(aim: Aim, rate_per_s: float, warmup_s: float, measured_s: float, baseline: Baseline) -> Case:
    """Return the case of one trial at a rate, whatever the responses; it has no probe."""
    case = _case(
        aim,
        Next("climb", 1, warmup_s, measured_s),
        experiment=RATES,
        scenarios=_mix(aim, baseline),
        workload=Open(rate_per_s=rate_per_s, arrivals="poisson", max_in_flight=MOST_IN_FLIGHT),
        probes=(),
    )
    text = f"{rate_per_s:g}"
    return replace(
        case,
        name=f"{RATES} rate={text}/s",
        slug=f"{RATES}-{text.replace('.', '-').replace('+', '')}",
        levels=(Level("rate", text, (("rate", rate_per_s),)),),
        params=_params(aim, "rate", rate_per_s),
        purpose="rate",
    )


def study_of(aim: Aim, cases: Sequence[Case]) -> Study:
    """Return the study so far."""
    asked = " and ".join(f"{step.method} {step.path}" for step in aim.steps)
    return Study(
        name=STUDY,
        question=f"What limits {asked} of {aim.origin.partition('://')[2]}?",
        folder=str(Path.cwd()),
        text="",
        params=(),
        cases=tuple(cases),
        order_by="listed",
        seed=aim.seed,
        samples=aim.samples,
        hide=aim.hide,
    )


def planned(aim: Aim, case: Case, block: int, position: int) -> PlannedTrial:
    """Return one trial of a case; its seed follows from the search's seed and its place."""
    return PlannedTrial(case, block, position, draw(aim.seed, "trial", str(block), case.slug))


def _case(
    aim: Aim,
    wanted: Next,
    *,
    experiment: str,
    scenarios: tuple[Scenario, ...],
    workload: Closed | Open,
    probes: tuple[Probe, ...],
) -> Case:
    users = wanted.users
    name = STACKS if wanted.kind == "stacks" else experiment
    return replace(
        aim.pattern or _pattern_of(aim),
        name=f"{name} users={users}",
        slug=f"{name}-users-{users}",
        experiment=experiment,
        levels=(Level("users", str(users), (("users", users),)),),
        params=_params(aim, "users", users),
        scenarios=scenarios,
        workload=workload,
        warmup_ns=round(wanted.warmup_s * _NS),
        duration_ns=round(wanted.measured_s * _NS),
        probes=probes,
        fresh="run" if aim.services else "trial",
        trials=1,
        purpose=_PURPOSES[wanted.kind],
    )


def _pattern_of(aim: Aim) -> Case:
    """Return the case of URLs: what all cases of a search share."""
    return Case(
        name="",
        slug="",
        experiment="",
        levels=(),
        params=(),
        services=aim.services,
        entry=Entry(url=aim.origin, tls=aim.tls),
        scenarios=(),
        workload=Closed(users=1),
        connection=Connection(),
        timeout_ns=aim.timeout_ns,
        warmup_ns=0,
        duration_ns=None,
        probes=(),
        fresh="trial",
        reset=None,
        trials=1,
        outside=aim.outside,
    )


def _mix(aim: Aim, baseline: Baseline) -> tuple[Scenario, ...]:
    """Return what is requested under load, in the parts of the study that is its pattern."""
    if aim.pattern is not None:
        return aim.pattern.scenarios
    return tuple(Scenario(step.name, 1.0, (step,)) for step in baseline.load)


def _params(aim: Aim, name: str, value: float) -> tuple[tuple[str, Scalar], ...]:
    own = () if aim.pattern is None else aim.pattern.params
    return (*((other, kept) for other, kept in own if other != name), (name, value))
