"""`loadlens capacity TARGET`: the highest rate that meets objectives, and what limits the service."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadlens import units
from loadlens.cli.explain import answered, of_aim, path_of
from loadlens.cli.explain_options import OUTPUT, SEARCH, SERVICE, ExplainFlags, aim_of
from loadlens.cli.fleet.nodes import Wanted
from loadlens.cli.hit_load import quantity
from loadlens.cli.options import Example, argument, option, verb
from loadlens.cli.outputs import Show, outputs_of
from loadlens.errors import UsageError

if TYPE_CHECKING:
    from loadlens.model.search import Aim
    from loadlens.model.study import Objective

RATES_SHARE: Final = 0.6  # of the budget; the ladder has the rest
SHORTEST_BUDGET_S: Final = 90
RATE: Final = "throughput"


@dataclass(frozen=True, slots=True)
class CapacityFlags(ExplainFlags):
    """The text of each option: those of `explain`, with objectives that a rate must meet."""

    targets: tuple[str, ...] = argument(
        "URL...",
        "URLs of one service to load; one far cheaper than the others is the probe. Or a study, for its "
        "services and requests. Or the record of an earlier search.",
    )
    budget: str = option(
        "--budget TIME",
        "Finish within TIME, start-up included; at least 90s. Default: 3m.",
        default="3m",
        group=SEARCH,
    )
    objectives: tuple[str, ...] = option(
        "--objective METRIC<BOUND",
        "Find the highest rate at which METRIC (p50 to p999, mean, failed) stays within BOUND; repeatable. "
        "Without one on failures, failed<1% is added. Example: --objective "
        "'p99<200ms' --objective 'failed<0.1%'",
        default=(),
        group=OUTPUT,
    )


@verb(
    CapacityFlags,
    Example("loadlens capacity http://127.0.0.1:8080/ --objective 'p99<50ms'", "three minutes"),
    Example("loadlens capacity URL --objective 'p95<1s' --budget 6m", "a narrower answer"),
    Example("loadlens capacity URL --start 'node app.js' --objective 'mean<20ms'", "starts the service"),
    Example("loadlens capacity study.yaml", "the objectives of the study"),
)
def capacity(given: CapacityFlags) -> None:
    """Find the highest rate that meets all objectives, and what limits the service.

    Climbs as `explain` does, then sends requests at a rate, whatever the responses: halves the distance
    between rates that meet the objectives and rates that do not, and confirms the answer on five trials
    that the search did not see. Undecided is an answer too, and exits 0. Exit 99 if no rate meets them.
    """
    path = path_of(given.targets, "capacity")
    if path is not None:
        from loadlens.record import is_record

        if is_record(path):
            sys.exit(int(answered(given, "capacity")))
    wanted = [_objective(text) for text in given.objectives]
    if quantity(units.duration_ns, given.budget, "--budget") / 1e9 < SHORTEST_BUDGET_S:
        raise UsageError(
            f"a budget of {given.budget} is too short for rates",
            where="--budget",
            hint=f"at least {SHORTEST_BUDGET_S}s; the default is 3m",
        )
    aim = aim_of(given.targets, given) if path is None else _aim_of_study(path, given)
    objectives = tuple(wanted) or tuple(o for o in aim.objectives if o.step is None and o.metric != RATE)
    if not objectives:
        raise UsageError(
            "capacity needs an objective that the rate must meet",
            hint="--objective 'p99<100ms'; without an objective: loadlens explain URL",
        )
    aim = replace(aim, objectives=objectives, bounds=replace(aim.bounds, rates_share=RATES_SHARE))
    show = Show(outputs_of(given.out), as_json=given.as_json, quiet=given.quiet, ui=given.ui)
    sys.exit(int(of_aim(aim, show, Wanted(given.fleet, given.insecure_fleet))))


def _objective(text: str) -> Objective:
    from loadlens.study.objectives import objective

    wanted = quantity(objective, text, "--objective")
    if wanted.metric == RATE:
        raise UsageError(
            "the rate is what `capacity` searches for",
            where=f"--objective {text}",
            hint="--objective 'p99<100ms', mean<... or failed<...",
        )
    if wanted.above is not None:
        raise UsageError(
            "an objective of `capacity` is a most, and `>` gives a least",
            where=f"--objective {text}",
            hint=f"--objective '{text.replace('>', '<')}'",
        )
    return wanted


def _aim_of_study(path: Path, given: CapacityFlags) -> Aim:
    """Return the aim of a search on what a study starts, with its mix of requests in place of URLs."""
    from loadlens.cli.run import planned_study, study_file
    from loadlens.model.topology import Outside
    from loadlens.run import secret_variables

    own = (
        "targets",
        "objectives",
        "out",
        "as_json",
        "quiet",
        "ui",
        "budget",
        "max_users",
        "rate_cap",
        "seed",
        "fleet",
        "insecure_fleet",
    )
    none = CapacityFlags(no_stacks=given.no_stacks, **{name: getattr(given, name) for name in own})
    if given != none:
        raise UsageError(
            f"{path} defines its own requests, so the flags for them do not apply",
            where="capacity",
            hint="--objective, --budget, --max-users, --rate-cap, --fleet, --out, --json, --ui and --quiet",
        )
    study = planned_study(path, quick=True)
    secret_variables.refuse_missing(study, str(study_file(path)))
    case = study.cases[0]
    if any(scenario.requests > 1 for scenario in case.scenarios):
        raise UsageError(
            f"a user of {path} sends several requests, and a rate is one of single requests",
            where="capacity",
            hint=f"loadlens explain {path}, or capacity with one of its URLs and --start",
        )
    steps = {step.name: step for scenario in case.scenarios for step in scenario.steps}
    same = [(other.services, other.entry, other.scenarios) for other in study.cases]
    cautions = [f"of {len(same)} cases of the study, the services and requests of the first: {case.name}"]
    stand_in = f"http://{case.entry.service or 'localhost'}"
    url = case.entry.url or f"{stand_in}{next(iter(steps.values())).path}"
    # Everything but the service: bounds and seed of the flags, for an address that is always here.
    flags = replace(given, targets=("http://127.0.0.1/",), objectives=(), no_pid=True, no_metrics=True)
    aim = aim_of(["http://127.0.0.1/"], replace(flags, no_probe=True))
    services = tuple(
        replace(service, dir=str(Path(study.folder, service.dir or "."))) for service in case.services
    )
    probes = [step for probe in case.probes for step in probe.scenario.steps]
    return replace(
        aim,
        origin=url if case.entry.url else stand_in,
        tls=case.entry.tls,
        steps=tuple(steps.values()),
        probe=probes[0] if probes else None,
        outside=Outside(SERVICE, "127.0.0.1", is_here=bool(services)),
        services=services,
        timeout_ns=case.timeout_ns,
        cautions=tuple(cautions) if len(set(same)) > 1 else (),
        objectives=study.objectives,
        hide=study.hide,
        samples=study.samples,
        pattern=replace(case, services=services),
    )
