"""Verdicts on rates, read from the trials of a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loadlens.measure import whole_run
from loadlens.measure.case import CaseMeasures
from loadlens.measure.metrics import figure_of
from loadlens.measure.source import study_of
from loadlens.model.rates import RateAnswer, RateTrial
from loadlens.model.study import Objective
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import Open
from loadlens.present import numbers, words
from loadlens.record import RunRecord, TrialRecord
from loadlens.search import rates
from loadlens.search.objectives import SHARES
from loadlens.search.step_cases import RatesEnd

FEWEST: Final = 20  # requests behind a share of failures that ended a load


def answer(record: RunRecord, end: RatesEnd) -> RateAnswer:
    """Return what the trials of a record say of the rate that meets the objectives."""
    slugs = {case.slug for case in study_of(record).cases if case.purpose == "rate"}
    seen = [
        judged_rate(record, trial, end.objectives, is_fresh=trial.position in end.fresh)
        for trial in record.trials
        if trial.case.slug in slugs and trial.status not in (TrialStatus.ABORTED, TrialStatus.EXPLORATORY)
    ]
    span = end.span or rates.Range(0.0, is_capacity=False, cap_per_s=0.0)
    return rates.answer_of(seen, end.objectives, span, end=end.end)


def judged_rate(
    record: RunRecord, trial: TrialRecord, objectives: Sequence[Objective], *, is_fresh: bool
) -> RateTrial:
    """Return the verdict of one trial on its rate.

    Args:
        record: That it is in.
        trial: At the rate.
        objectives: All of them.
        is_fresh: It confirms a rate.
    """
    study = study_of(record)
    plan = next(case for case in study.cases if case.slug == trial.case.slug)
    assert isinstance(plan.workload, Open)
    rate = plan.workload.rate_per_s or 0.0
    result = trial.result
    took_s = 0.0 if result is None else result.elapsed_s
    load = None if result is None else result.load
    if trial.status is not TrialStatus.COMPLETE:
        why = "; ".join(trial.reasons) or trial.status.value
        share = 0.0 if load is None or not load.requests.ended else 1 - load.requests.ok / load.requests.ended
        bounds = [o.below for o in objectives if o.metric in SHARES and o.below is not None]
        if bounds and share >= max(bounds) and load is not None and load.requests.ended >= FEWEST:
            text = f"{numbers.percent(share)} of {words.plural(load.requests.ended, 'request')} fail"
            return RateTrial(rate, is_fresh, False, "bad", text, took_s=took_s)
        return RateTrial(rate, is_fresh, False, "unknown", f"not measured: {why}", took_s=took_s)
    case = CaseMeasures(plan, (whole_run.of_trial(trial, study.window),))
    judged = [(objective, figure_of(case, objective.metric, None)) for objective in objectives]
    return rates.verdict(rate, is_fresh, judged, figure_of(case, "throughput", None), took_s)
