"""A held-out case: the measured cases that say something about it, the model, and its prediction.

Each draw takes other parameters within their errors and one of the structures that fit, simulates as many
trials of the same length as are planned, and is moved by as much as the model missed the measured cases: so
the interval is one for what will be measured, the trials' own noise included.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from loadlens.errors import LoadlensError
from loadlens.measure.case import CaseMeasures
from loadlens.measure.source import RunSource, environment_of, study_of
from loadlens.measure.trial import measure
from loadlens.model.finding import Z_95
from loadlens.model.recorded import PlannedCase, PredictedFigure
from loadlens.model.workload import Closed
from loadlens.whatif.held_out.build import THREADED_S, Span, Structure, Values, network_of
from loadlens.whatif.held_out.observed import Observed
from loadlens.whatif.held_out.parameters import Fit, fit
from loadlens.whatif.held_out.site import Site, site_of, why_not_kin
from loadlens.whatif.held_out.structure import MOST_PROBE_MISS, Choice, choose
from loadlens.whatif.queueing import LOAD, MOST_FAILED, Misses, Network, NoModel, StreamTimes, simulate

DRAWS = 100
MOST_REQUESTS = 10_000  # simulated of one trial
AUTO_WARMUP_S = 5.0
CONFIDENCE = 0.95
METHOD = f"predicted by simulation, {DRAWS} draws of parameters"


@dataclass(frozen=True, slots=True)
class Model:
    """A fitted model of a case that has not run yet."""

    case: PlannedCase
    site: Site
    kin: tuple[Observed, ...]
    fit: Fit
    choice: Choice
    cores: float
    assumed: tuple[str, ...]

    @property
    def shows_probes(self) -> bool:
        """True if the model reproduces the measured probes."""
        return self.choice.misses.probe <= MOST_PROBE_MISS

    def network(self, structure: Structure, values: Values, seed: int) -> Network:
        """Return the model as the simulator takes it."""
        return network_of(self.case, self.site, structure, values, self.cores, _span(self), seed)


class _Record:
    """A record and its measured cases, each measured once."""

    def __init__(self, source: RunSource) -> None:
        study = study_of(source)
        self.seed = study.seed or 1
        self.cases = {case.slug: case for case in study.cases}
        self.cores = float(environment_of(source).cores)
        self._window = study.window
        self._source = source
        self._measured: dict[str, CaseMeasures] = {}

    def observed(self, case: PlannedCase) -> Observed | None:
        """Return a case as measured; none if it was not."""
        if case.slug not in self._measured:
            trials = [trial for trial in self._source.trials if trial.case.slug == case.slug]
            measures = tuple(measure(trial, self._window) for trial in trials)
            self._measured[case.slug] = CaseMeasures(case, measures)
        if not self._measured[case.slug].loads:
            return None
        try:
            return Observed(self._measured[case.slug], case, site_of(case))
        except NoModel:
            return None


def predict(source: RunSource, slugs: Sequence[str]) -> dict[str, dict[str, object]]:
    """Predict cases of a record that were not run yet.

    Args:
        source: The record.
        slugs: Of the cases.

    Returns:
        For each slug the content of its prediction (docs/reference/record.md) without version and time.
    """
    predictions = {}
    record: _Record | None = None
    for slug in slugs:
        try:
            record = record or _Record(source)
            model = _model(record, record.cases[slug])
            predictions[slug] = _content(model, _figures(model, record.seed))
            continue
        except NoModel as reason:
            why = str(reason)
        except LoadlensError as fault:
            why = fault.message
        except (ArithmeticError, LookupError, ValueError) as fault:
            # A record of an unforeseen kind: the case runs all the same, and says why it was not predicted.
            why = f"the model could not be made: {type(fault).__name__} {fault}"
        predictions[slug] = {"case": slug, "undecided": why, "predicted": []}
    return predictions


def _model(record: _Record, case: PlannedCase) -> Model:
    site = site_of(case)
    kin = _kin(record, case)
    fitted = fit(kin, [probe.name for probe in case.probes])
    as_measured = [other for other in kin if not other.site.threads]
    assumed: list[str] = []
    if as_measured:
        choice = choose(as_measured, fitted, record.cores, is_kept=case.connection.reuse == "keep")
        if site.threads:
            assumed.append(
                f"with work in threads, a request that computes for more than {THREADED_S * 1e3:g} ms "
                "waits for a thread; all wait for cores, and for nothing else"
            )
    elif site.threads:
        choice = Choice((Structure("cores"),), Misses(), 0.0, ())
    else:
        raise NoModel("the work was measured in threads only: what it waits for elsewhere is not known")
    if (miss := choice.misses.probe) > MOST_PROBE_MISS:
        assumed.append(
            f"probes are not predicted: the model misses the measured ones by {math.expm1(miss):.0%}"
        )
    if site.workers > 1 and not any(other.site.workers > 1 for other in kin):
        assumed.append(f"the worker that gets a request is taken to be {choice.structures[0].policy}")
    if site.replicas > 1 and site.workers > 1:
        assumed.append("workers of all replicas are balanced as one set")
    if site.members > 1 and all(other.site.members == 1 for other in kin):
        assumed.append("several are as one is, so many times: what they share besides cores was not measured")
    return Model(case, site, tuple(kin), fitted, choice, record.cores, (*fitted.assumed, *assumed))


def _kin(record: _Record, case: PlannedCase) -> list[Observed]:
    """Return the measured cases that differ in nothing but what a model can change."""
    reasons: Counter[str] = Counter()
    kin = []
    for other in record.cases.values():
        if other.held_out:
            continue
        why = why_not_kin(other, case)
        if why is None:
            observed = record.observed(other)
            why = _unusable(observed)
            if why is None and observed is not None:
                kin.append(observed)
        if why is not None:
            reasons[why] += 1
    if not kin:
        why = max(reasons, key=lambda reason: reasons[reason], default="nothing else was measured")
        raise NoModel(f"no measured case says anything about it: {why}")
    return kin


def _unusable(case: Observed | None) -> str | None:
    if case is None:
        return "it was not measured"
    if not case.load.plan.is_steady:
        return "its load changes or keeps a pace"
    if case.failed > MOST_FAILED:
        return f"{case.failed:.0%} of its requests failed"
    if case.rate <= 0 or case.response is None:
        return "nothing was answered"
    return None


# ----------------------------------------------------------------------------------------------- figures


@dataclass(frozen=True, slots=True)
class _Metric:
    name: str
    step: str | None = None  # or the name of a probe
    kind: str = "response"  # of the misses that widen it


def _figures(model: Model, seed: int) -> list[PredictedFigure]:
    """Return each metric with the middle of the draws and their interval."""
    random = np.random.default_rng([seed, len(model.kin)])
    misses, structures = asdict(model.choice.misses), model.choice.structures
    drawn: dict[_Metric, list[float]] = {}
    for draw in range(DRAWS):
        values = Values.drawn(model.fit, random)
        moved = {name: float(random.standard_normal()) * miss for name, miss in misses.items()}
        by_trial: dict[_Metric, list[float]] = {}
        for trial in range(max(1, model.case.trials or 1)):
            network = model.network(structures[draw % len(structures)], values, seed=1000 * draw + trial + 1)
            for metric, value in _metrics(simulate(network)):
                if value and value > 0 and (metric.kind != "probe" or model.shows_probes):
                    by_trial.setdefault(metric, []).append(value)
        for metric, parts in by_trial.items():
            shift = moved.get(metric.kind, 0.0)
            drawn.setdefault(metric, []).append(float(np.exp(np.mean(np.log(parts)))) * math.exp(shift))
    tail = (1 - CONFIDENCE) / 2
    figures = []
    for metric, points in drawn.items():
        if len(points) >= DRAWS / 2:
            low, middle, high = (float(end) for end in np.quantile(points, [tail, 0.5, 1 - tail]))
            unit = "1/s" if metric.name == "throughput" else "s"
            figures.append(PredictedFigure(metric.name, metric.step, unit, middle, low, high, METHOD))
    return figures


def _metrics(streams: Mapping[str, StreamTimes]) -> Iterator[tuple[_Metric, float | None]]:
    for stream in streams.values():
        times = stream.all
        if not times.count:
            continue
        if stream.name != LOAD:
            name = stream.name.removeprefix("probe ")
            yield _Metric("response_time.mean", name, "probe"), times.mean_s
            yield _Metric("response_time.p99", name, "probe"), times.p99_s
            continue
        yield _Metric("throughput", kind="throughput"), times.rate_per_s
        yield _Metric("response_time.mean"), times.mean_s
        yield _Metric("response_time.p50"), times.p50_s
        yield _Metric("response_time.p99"), times.p99_s
        if len(stream.classes) > 1:
            for kind in stream.classes:
                if kind.times.count:
                    yield _Metric("response_time.mean", kind.name), kind.times.mean_s


def _span(model: Model) -> Span:
    """Return the planned length of a trial, or that of as many requests as are enough."""
    case, workload = model.case, model.case.workload
    alone = sum(c.alone.point for c in model.fit.classes) / len(model.fit.classes)
    iterations = None
    if isinstance(workload, Closed):
        users, iterations = workload.users, workload.iterations
        rate = users / (alone + workload.think.mean_s)
    else:
        users, rate = 1, workload.peak_per_s
    most = MOST_REQUESTS / rate
    warmup = AUTO_WARMUP_S if case.warmup_ns is None else case.warmup_ns / 1e9
    if case.duration_ns is not None:
        counted = case.duration_ns / 1e9
    else:
        counted = float(workload.requests or iterations or MOST_REQUESTS) / rate
        warmup = 0.0
    settled = 3 * users * alone / model.site.members  # about three rounds through one server of each member
    return Span(min(max(warmup, 0.05 * most), max(most, settled)), min(counted, max(most, settled)))


def _content(model: Model, figures: Sequence[PredictedFigure]) -> dict[str, object]:
    structures = model.choice.structures
    return {
        "case": model.case.slug,
        "undecided": None if figures else "no request was answered in the simulation",
        "predicted": [asdict(figure) for figure in figures],
        "inputs": [
            {"case": case.case.slug, "trial": trial.source.name}
            for case in model.kin
            for trial in case.case.usable
        ],
        "structures": [{**asdict(s), "words": s.words} for s in structures],
        "misses": {**asdict(model.choice.misses), "all": model.choice.miss},
        "tried_on": list(model.choice.cases),
        "parameters": [
            {
                "name": p.name,
                "unit": "s",
                "point": p.point,
                "low": p.drawn(-Z_95),
                "high": p.drawn(Z_95),
                "method": p.method,
            }
            for p in model.fit.parameters
        ],
        "assumed": list(model.assumed),
        "cores": model.cores,
        "share": model.fit.share,
        "draws": DRAWS,
        "confidence": CONFIDENCE,
        "model": model.network(structures[0], Values.typical(model.fit), seed=1).plain(),
    }
