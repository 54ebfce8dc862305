"""A definition -> a study: factors crossed, `$names` filled, trials in order.

Nothing here runs anything or knows what a service is. Everything that a case needs is in the case: two
cases with equal content are the same experiment.
"""

from __future__ import annotations

from collections.abc import Mapping

from loadlens.model.external_load import Refusals
from loadlens.model.study import Study
from loadlens.model.topology import Scalar
from loadlens.study.definition import Definition, Faults
from loadlens.study.parse.case_values import ReadDueTimes
from loadlens.study.parse.feeds import Templates
from loadlens.study.plan import quick_profile, reporting
from loadlens.study.plan.cases import TRIALS, cases_of
from loadlens.study.plan.duration import Duration, PastTrial, duration, load_seconds
from loadlens.study.plan.quick_profile import HasProgram, parse_override, with_variants
from loadlens.study.plan.trial_order import order

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
    reporting.check(definition, cases, faults)
    faults.raise_any()
    differences = quick_profile.differences(definition, quick_profile.quick(definition)) if quick else ()
    set_by_hand = tuple(f"--set {name}={value}" for name, value in (overrides or {}).items())
    return Study(
        name=definition.study,
        question=definition.question,
        folder=definition.folder,
        text=definition.text,
        params=tuple(wanted.params.items()),
        cases=cases,
        order_by=definition.order_by,
        seed=definition.seed,
        published=definition.published,
        claims=definition.claims,
        objectives=definition.objectives,
        quick=quick,
        quick_differences=differences,
        report=definition.report,
        notes=(*definition.notes, *set_by_hand),
        samples=definition.samples,
        hide=definition.hide,
        fleet=definition.fleet,
    )
