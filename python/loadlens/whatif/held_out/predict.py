"""A held-out case: the measured cases that say something about it, the model, and what it foretells.

Each draw takes other parameters within their errors and one of the structures that fit, simulates as many
trials of the same length as are planned, and is moved by as much as the model missed the measured cases: so
the interval is one for what will be measured, the trials' own noise included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from loadlens import engine
from loadlens.errors import LoadlensError
from loadlens.measure.case import CaseMeasures
from loadlens.measure.trial import measure
from loadlens.model.workload import Closed, workload_of
from loadlens.study.plan.reporting import window_of
from loadlens.whatif.held_out.build import LOAD, Span, Structure, Values, model_of
from loadlens.whatif.held_out.observed import MOST_FAILED, Observed
from loadlens.whatif.held_out.parameters import Fit, fit
from loadlens.whatif.held_out.site import Json, NoModel, Site, site_of, why_not_kin
from loadlens.whatif.held_out.structure import MOST_PROBE_MISS, Chosen, choose

DRAWS = 100
MOST_REQUESTS = 10_000  # simulated of one trial
AUTO_WARMUP_S = 5.0
CONFIDENCE = 0.95
METHOD = f"predicted by simulation, {DRAWS} draws of parameters"


@dataclass(frozen=True, slots=True)
class Model:
    """All that is known of a case before it runs."""

    case: Json
    site: Site
    kin: tuple[Observed, ...]
    fit: Fit
    chosen: Chosen
    cores: float
    assumed: tuple[str, ...]


def foretell(record: Any, slugs: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Predict cases of a record that were not run yet.

    Args:
        record: As `analyse` takes it.
        slugs: Of the cases.

    Returns:
        For each slug the content of its prediction (docs/reference/record.md) without version and time.
    """
    study = record.study
    cases = {case["slug"]: case for case in study["cases"]}
    measured: dict[str, CaseMeasures] = {}
    found = {}
    for slug in slugs:
        try:
            model = _model(record, cases[slug], measured)
            found[slug] = _content(model, _figures(model, seed=int(study.get("seed") or 1)))
        except NoModel as why:
            found[slug] = _undecided(slug, str(why))
        except LoadlensError as fault:
            found[slug] = _undecided(slug, fault.message)
        except (ArithmeticError, LookupError, ValueError) as fault:
            # A record that nobody foresaw: the case runs all the same, and says why it was not foretold.
            found[slug] = _undecided(slug, f"the model could not be made: {type(fault).__name__} {fault}")
    return found


def _undecided(slug: str, why: str) -> dict[str, Any]:
    return {"case": slug, "undecided": why, "predicted": []}


def _model(record: Any, case: Json, measured: dict[str, CaseMeasures]) -> Model:
    site = site_of(case)
    kin = _kin(record, case, measured)
    names = [probe["name"] for probe in case.get("probes") or ()]
    assumed: list[str] = []
    cores = _cores(record)
    fitted = fit(kin, names)
    as_measured = [one for one in kin if not one.site.threads]
    if site.threads or not as_measured:
        if not site.threads:
            raise NoModel("the work was measured in threads only: what it waits for elsewhere is not known")
        if not as_measured:
            chosen = Chosen((Structure("cores"),), {}, 0.0, ())
        else:
            chosen = choose(as_measured, fitted, cores, is_kept=_is_kept(case))
            assumed.append(
                "with work in threads, a request waits for a thread and for cores and nothing else"
            )
    else:
        chosen = choose(as_measured, fitted, cores, is_kept=_is_kept(case))
    if (miss := chosen.misses.get("probe", 0.0)) > MOST_PROBE_MISS:
        assumed.append(
            f"probes are not predicted: the model misses the measured ones by {math.expm1(miss):.0%}"
        )
    if site.workers > 1 and not any(one.site.workers > 1 for one in kin):
        assumed.append(f"who of the workers gets a request is taken to be {chosen.structures[0].policy}")
    if site.replicas > 1 and site.workers > 1:
        assumed.append("workers of all replicas are balanced as one set")
    if site.members > 1 and all(one.site.members == 1 for one in kin):
        assumed.append("several are as one is, so many times: what they share beside cores was not measured")
    return Model(case, site, tuple(kin), fitted, chosen, cores, (*fitted.assumed, *assumed))


def _is_kept(case: Json) -> bool:
    return bool(case["connection"]["reuse"] == "keep")


def _kin(record: Any, case: Json, measured: dict[str, CaseMeasures]) -> list[Observed]:
    """The measured cases that differ in nothing but what a model can change."""
    reasons: dict[str, int] = {}
    found = []
    for other in record.study["cases"]:
        if other["held_out"]:
            continue
        why = why_not_kin(other, case)
        if why is None:
            why = _unusable(one := _observed(record, other, measured))
            if why is None and one is not None:
                found.append(one)
                continue
        reasons[str(why)] = reasons.get(str(why), 0) + 1
    if not found:
        why = max(reasons, key=lambda reason: reasons[reason], default="nothing else was measured")
        raise NoModel(f"no measured case says anything about it: {why}")
    return found


def _observed(record: Any, case: Json, measured: dict[str, CaseMeasures]) -> Observed | None:
    slug = case["slug"]
    if slug not in measured:
        window = window_of(record.study.get("report") or {})
        trials = [measure(trial, window) for trial in record.trials if trial.case["slug"] == slug]
        measured[slug] = CaseMeasures(dict(case), tuple(trials))
    if not measured[slug].loads:
        return None
    try:
        return Observed(measured[slug], site_of(case))
    except NoModel:
        return None


def _unusable(one: Observed | None) -> str | None:
    if one is None:
        return "it was not measured"
    if not one.load.plan.is_steady:
        return "its load changes or keeps a pace"
    if one.failed > MOST_FAILED:
        return f"{one.failed:.0%} of its requests failed"
    if one.rate <= 0 or one.response is None:
        return "nothing was answered"
    return None


def _cores(record: Any) -> float:
    """Cores of the machine that the run may use."""
    machine = record.environment.get("machine") or {}
    return float(machine.get("cores_allowed") or machine.get("cores") or 1)


# --------------------------------------------------------------------------------------- what it foretells


def _figures(model: Model, seed: int) -> list[dict[str, Any]]:
    """Each metric with the middle of the draws and their interval."""
    random = np.random.default_rng([seed, len(model.kin)])
    span = _span(model)
    trials = max(1, int(model.case.get("trials") or 1))
    are_probes_off = model.chosen.misses.get("probe", 0.0) > MOST_PROBE_MISS
    drawn: dict[tuple[str, str | None], list[float]] = {}
    for draw in range(DRAWS):
        structure = model.chosen.structures[draw % len(model.chosen.structures)]
        values = Values.drawn(model.fit, random)
        moved = {name: float(random.standard_normal()) * miss for name, miss in model.chosen.misses.items()}
        seen: dict[tuple[str, str | None], list[float]] = {}
        for trial in range(trials):
            plan = model_of(
                model.case, model.site, structure, values, model.cores, span, seed=1000 * draw + trial + 1
            )
            for key, value in _metrics(engine.simulate(plan)):
                if _kind(key, model) != "probe" or not are_probes_off:
                    seen.setdefault(key, []).append(value)
        for key, parts in seen.items():
            shift = moved.get(_kind(key, model), 0.0)
            drawn.setdefault(key, []).append(float(np.exp(np.mean(np.log(parts)))) * math.exp(shift))
    return [_figure(key, values) for key, values in drawn.items() if len(values) >= DRAWS / 2]


def _span(model: Model) -> Span:
    """As long as a trial of the case is planned to be, or as many requests as are enough."""
    case, workload = model.case, workload_of(model.case["workload"])
    alone = sum(c.alone.point for c in model.fit.classes) / len(model.fit.classes)
    iterations = None
    if isinstance(workload, Closed):
        users, iterations = workload.users, workload.iterations
        rate = users / (alone + workload.think.mean_s)
    else:
        users, rate = 1, workload.peak_per_s
    most = MOST_REQUESTS / rate
    warmup = AUTO_WARMUP_S if case.get("warmup_ns") is None else case["warmup_ns"] / 1e9
    if case.get("duration_ns") is not None:
        counted = case["duration_ns"] / 1e9
    else:
        counted = float(workload.requests or iterations or MOST_REQUESTS) / rate
        warmup = 0.0
    settled = 3 * users * alone / model.site.members  # about three rounds through one server of each member
    return Span(min(max(warmup, 0.05 * most), max(most, settled)), min(counted, max(most, settled)))


def _metrics(outcome: Mapping[str, Any]) -> list[tuple[tuple[str, str | None], float]]:
    """(metric, step or probe) -> value, of what was answered."""
    found: list[tuple[tuple[str, str | None], float]] = []
    for stream in outcome["streams"]:
        times = stream["all"]
        if not times["count"]:
            continue
        if stream["name"] != LOAD:
            name = stream["name"].removeprefix("probe ")
            found += [((f"response_time.{p}", name), times[f"{p}_s"]) for p in ("mean", "p99")]
            continue
        found.append((("throughput", None), times["rate_per_s"]))
        found += [((f"response_time.{p}", None), times[f"{p}_s"]) for p in ("mean", "p50", "p99")]
        if len(stream["classes"]) > 1:
            for one in stream["classes"]:
                if one["times"]["count"]:
                    found.append((("response_time.mean", one["name"]), one["times"]["mean_s"]))
    return [(key, value) for key, value in found if value and value > 0]


def _kind(key: tuple[str, str | None], model: Model) -> str:
    """Which miss of the measured cases belongs to a metric."""
    metric, name = key
    if metric == "throughput":
        return "throughput"
    return "probe" if name in {probe.name for probe in model.fit.probes} else "response"


def _figure(key: tuple[str, str | None], values: Sequence[float]) -> dict[str, Any]:
    metric, name = key
    tail = (1 - CONFIDENCE) / 2
    low, middle, high = np.quantile(values, [tail, 0.5, 1 - tail])
    return {
        "metric": metric,
        "step": name,
        "unit": "1/s" if metric == "throughput" else "s",
        "point": float(middle),
        "low": float(low),
        "high": float(high),
        "method": METHOD,
    }


# --------------------------------------------------------------------------------------------- the content


def _content(model: Model, figures: list[dict[str, Any]]) -> dict[str, Any]:
    structures = model.chosen.structures
    typical = model_of(
        model.case, model.site, structures[0], Values.typical(model.fit), model.cores, _span(model), seed=1
    )
    return {
        "case": model.case["slug"],
        "undecided": None if figures else "no request was answered in the simulation",
        "predicted": figures,
        "inputs": [
            {"case": one.case.slug, "trial": trial.source.name}
            for one in model.kin
            for trial in one.case.usable
        ],
        "structures": [{**asdict(s), "words": s.words} for s in structures],
        "misses": {**model.chosen.misses, "all": model.chosen.miss},
        "tried_on": list(model.chosen.cases),
        "parameters": [
            {
                "name": p.name,
                "unit": "s",
                "point": p.point,
                "low": p.drawn(-1.96),
                "high": p.drawn(1.96),
                "method": p.method,
            }
            for p in model.fit.parameters
        ],
        "assumed": list(model.assumed),
        "cores": model.cores,
        "share": model.fit.share,
        "draws": DRAWS,
        "confidence": CONFIDENCE,
        "model": typical,
    }
