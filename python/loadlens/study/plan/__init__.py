"""A definition -> a study: factors crossed, `$names` filled, trials in order.

Nothing here runs anything or knows what a service is. Everything that a case needs is in the case: two
cases with equal content are the same experiment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadlens.model.external_load import Refusals
from loadlens.model.study import Claim, Objective, Published, Study
from loadlens.model.topology import Scalar
from loadlens.study.definition import ClaimPart, Definition, Faults, OrderPart, ReportPart
from loadlens.study.plan import quick_profile, reporting
from loadlens.study.plan.cases import TRIALS, cases_of
from loadlens.study.plan.duration import Duration, PastTrial, duration, load_seconds
from loadlens.study.plan.feeds import Templates
from loadlens.study.plan.quick_profile import parse_override
from loadlens.study.plan.trial_order import order
from loadlens.study.plan.variants import HasProgram, with_variants
from loadlens.study.plan.workloads import ReadDueTimes

__all__ = [
    "TRIALS",
    "Duration",
    "PastTrial",
    "duration",
    "load_seconds",
    "order",
    "parse_override",
    "plan",
]


def plan(
    definition: Definition,
    *,
    overrides: Mapping[str, Scalar] | None = None,
    quick: bool = False,
    templates: Templates | None = None,
    variants: Mapping[str, str] | None = None,
    has_program: HasProgram = lambda _: True,
    read_due_times: ReadDueTimes | None = None,
    refusals: Refusals | None = None,
) -> Study:
    """The study with all its cases.

    Args:
        definition: As read.
        overrides: `--set`: values of params; a factor of that name is pinned to one level.
        quick: Whether the quick profile is applied.
        templates: What knows templates and feeds (`loadlens.engine`); none: none is checked or opened.
        variants: Service -> variant, from `--variant`.
        has_program: Whether the machine has a program: the first variant whose needs it meets is taken.
        read_due_times: What a file of due times holds (`engine.read_due_times`); none: replays are refused.
        refusals: What other programs cannot do of a load (`interop.drivers.cannot_do`); none: not looked at.

    Raises:
        DefinitionErrors: Names without a value, values that do not fit, references that lead nowhere.
        UsageError: An override or a variant that the study has no use for.
    """
    wanted = quick_profile.quick(definition) if quick else definition
    wanted = quick_profile.with_overrides(wanted, overrides or {})
    faults = Faults()
    wanted = with_variants(wanted, variants or {}, has_program)
    cases = cases_of(wanted, faults, templates, read_due_times, refusals)
    reporting.check(definition.report, cases, faults)
    faults.raise_any()
    order_by = definition.order or OrderPart(definition.place)
    report = definition.report
    differences = quick_profile.differences(definition, quick_profile.quick(definition)) if quick else ()
    set_by_hand = tuple(f"--set {name}={value}" for name, value in (overrides or {}).items())
    return Study(
        name=definition.study,
        question=definition.question,
        folder=definition.folder,
        text=definition.text,
        params=tuple(wanted.params.items()),
        cases=cases,
        order_by=order_by.by,
        seed=order_by.seed,
        published=_published(definition),
        claims=tuple(_claim(part, definition) for part in definition.claims),
        objectives=tuple(Objective(o.metric, o.step, o.below, o.above) for o in definition.objectives),
        quick=quick,
        quick_differences=differences,
        report={} if report is None else _report(report, definition),
        notes=(*definition.notes, *set_by_hand),
    )


def _report(part: ReportPart, definition: Definition) -> dict[str, Any]:
    """Return the extra sections that the report shows."""
    only = next(iter(definition.experiments))
    compared = [
        {"metric": figure.metric, "experiment": figure.experiment or only, "step": figure.step}
        for figure in part.compare
    ]
    return {"charts": list(part.charts), "compare": compared, **reporting.as_planned(part)}


def _published(definition: Definition) -> Published | None:
    part = definition.published
    return None if part is None else Published(part.file, part.cores, part.rows)


def _claim(part: ClaimPart, definition: Definition) -> Claim:
    kinds = {"ratio": part.ratio, "rises": part.rises, "order": part.order, "same": part.same}
    kind, metric = next((kind, metric) for kind, metric in kinds.items() if metric is not None)
    return Claim(
        kind=kind,  # type: ignore[arg-type]  # one of the four, by the keys of the dict above
        metric=metric,
        step=part.step,
        experiment=part.experiment or next(iter(definition.experiments)),
        where=tuple(part.where.items()),
        of=tuple(part.of.items()),
        to=tuple(part.to.items()),
        over=part.over,
        across=part.across,
        expected=part.expected,
        published=part.published,
        within=part.within,
        line=part.place.line,
    )
