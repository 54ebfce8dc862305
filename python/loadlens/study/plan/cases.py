"""Factors -> cases: every combination of levels in study order, held-out combinations after them."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from loadlens.model.external_load import Refusals
from loadlens.model.study import Case, Probe
from loadlens.model.study import Level as CaseLevel
from loadlens.model.topology import Entry, Service
from loadlens.model.workload import LOAD, Closed, Connection, Open, Scenario, Tls
from loadlens.study.definition import Definition, Experiment, Faults, Level
from loadlens.study.parse import make_services, make_steps
from loadlens.study.parse.case_values import CaseValues, ReadDueTimes
from loadlens.study.parse.feeds import FeedFiles, Feeds, Templates
from loadlens.study.parse.keys_load import EXPERIMENT, FEED, SCENARIO
from loadlens.study.parse.keys_study import STUDY
from loadlens.study.parse.keys_testbed import SERVICE
from loadlens.study.parse.make_load import Load
from loadlens.study.parse.placeholders import calibrated_in
from loadlens.study.parse.schema import At
from loadlens.study.plan import external_limits, stacks_cases
from loadlens.study.tree import Tree, items_at

MOST_CASES: Final = 2_000
MOST_TRIALS: Final = 100_000
TRIALS: Final = 3
_OF_EXPERIMENT: Final = (
    "probes",
    "trials",
    "fresh",
    "reset",
    "needs_cores",
    "stacks",
)  # instead of the study's

Combination = tuple[tuple[str, Level], ...]


def cases_of(
    definition: Definition,
    faults: Faults,
    templates: Templates | None,
    read_due_times: ReadDueTimes | None,
    refusals: Refusals | None = None,
) -> tuple[Case, ...]:
    """All cases of a study; faults are noted with their lines."""
    made: list[Case] = []
    reader = CaseReader(definition, faults, FeedFiles(templates), read_due_times)
    for name, experiment in definition.experiments.items():
        cells = list(itertools.islice(_cells(experiment), MOST_CASES + 1))
        if len(made) + len(cells) > MOST_CASES:
            message = f"the study has more than {MOST_CASES:,} cases"
            faults.add(message, experiment.place, "fewer factors or levels")
            break
        used: set[str] = set()
        for levels, is_held_out in cells:
            case, names = reader.case(name, experiment, levels, held_out=is_held_out)
            made.append(case)
            used |= names
            if case.driver is not None and refusals is not None and case.scenarios:
                external_limits.check(definition, experiment, case, refusals, faults)
        _check_factors_matter(experiment, used, name, faults)
        if name in reader.sampled:
            made += stacks_cases.of(
                tuple(case for case in made if case.experiment == name), experiment, faults
            )
    feeds = definition.tree.items.get("feeds")
    for name, node in items_at(feeds).items() if templates is not None else ():
        if name not in reader.files.used:
            hint = f"{{{{{name}.column}}}} in a path, header or body, or remove it"
            message = f"feed {name} is used by no request that is run"
            reader.at.below("feeds", name).fault(node.line, message, hint)
    trials = sum(case.trials for case in made)
    if trials > MOST_TRIALS:
        message = f"the study has {trials:,} trials, at most {MOST_TRIALS:,}"
        faults.add(message, definition.place, "fewer trials")
    return _with_unique_slugs(made)


def _cells(experiment: Experiment) -> Iterator[tuple[Combination, bool]]:
    """Every combination of levels, and whether it is held out."""
    for combination in _product(experiment.factors):
        yield combination, False
    hold_out = experiment.hold_out
    if hold_out is not None and hold_out.factors:
        kept = {}
        for factor, levels in experiment.factors.items():
            names = {level.name for level in hold_out.where.get(factor, levels)}
            kept[factor] = tuple(level for level in levels if level.name in names)
        for combination in _product({**kept, **hold_out.factors}):
            yield combination, True


def _product(factors: Mapping[str, tuple[Level, ...]]) -> Iterator[Combination]:
    """Every combination, the last factor changing fastest; one empty one without factors.

    Lazily, unlike itertools.product over large inputs, so that a study with far too many can be refused.
    """
    if not factors:
        yield ()
        return
    (factor, levels), *rest = factors.items()
    for level in levels:
        for others in _product(dict(rest)):
            yield ((factor, level), *others)


@dataclass(slots=True)
class CaseReader:
    """Reads the tree of a study once for each case, with the case's values for its `$names`."""

    definition: Definition
    faults: Faults
    files: FeedFiles
    read_due_times: ReadDueTimes | None
    at: At = field(init=False)
    sampled: set[str] = field(default_factory=set)  # experiments with `stacks: on`

    def __post_init__(self) -> None:
        definition = self.definition
        self.at = At(definition.place.file, definition.folder, definition.names, self.faults)

    def case(
        self, name: str, experiment: Experiment, levels: Combination, *, held_out: bool
    ) -> tuple[Case, set[str]]:
        """A case, and the names that it uses."""
        tree, values = self.definition.tree, dict(self.definition.params)
        for _, level in levels:
            values.update(level.binds)
        feeds = tree.items.get("feeds")
        feeds_tree = feeds if isinstance(feeds, Tree) else Tree(1)
        calibrated = calibrated_in(tree)
        context = CaseValues(
            values, name, calibrated, Feeds(feeds_tree, FEED, self.files), self.read_due_times
        )
        at = replace(self.at, case=context)
        context.auth = STUDY.value(tree, at, "auth")
        entry, services = self._testbed(at)
        # What the experiment does not say, the study does.
        study = Tree(
            tree.line, {key: tree.items[key] for key in _OF_EXPERIMENT if key in tree.items}, {}, tree.origins
        )
        own, here = experiment.tree.over(study, f"experiments.{name}.", ""), at.below("experiments", name)
        load: Load = EXPERIMENT.value(own, here, "load", Load(Closed(1), Connection()))
        scenarios = self._mix(own, here)
        probes: Mapping[str, Probe] = EXPERIMENT.value(own, here, "probes", {})
        if self.definition.traceparent:
            scenarios = tuple(scenario.traced() for scenario in scenarios)
            probes = {
                name: replace(probe, scenario=probe.scenario.traced()) for name, probe in probes.items()
            }
        streams: dict[str, Closed | Open] = {name: probe.workload for name, probe in probes.items()}
        context.feeds.check_streams(streams | {LOAD: load.workload}, at)
        if EXPERIMENT.value(own, here, "stacks", "off") == "on":
            self.sampled.add(name)
        parts = [(factor, level.name) for factor, level in levels]
        case = Case(
            name=" ".join([name, *(f"{factor}={level}" for factor, level in parts)]),
            slug=_slug([name, *(f"{factor}-{level}" for factor, level in parts)]),
            experiment=name,
            levels=tuple(CaseLevel(f, level.name, tuple(level.binds.items())) for f, level in levels),
            params=tuple(values.items()),
            services=services,
            entry=entry,
            scenarios=scenarios,
            workload=load.workload,
            connection=load.connection,
            timeout_ns=load.timeout_ns,
            warmup_ns=load.warmup_ns,
            duration_ns=load.duration_ns,
            probes=tuple(probes.values()),
            fresh=EXPERIMENT.value(own, here, "fresh", "trial"),
            reset=EXPERIMENT.value(own, here, "reset"),
            trials=EXPERIMENT.value(own, here, "trials", TRIALS),
            held_out=held_out,
            cookies=load.cookies,
            needs_cores=EXPERIMENT.value(own, here, "needs_cores"),
            driver=load.driver,
            feeds=context.feeds.made,
        )
        return case, context.used

    def _testbed(self, at: At) -> tuple[Entry, tuple[Service, ...]]:
        """The entry of a case, and the services that it has."""
        tree, place = self.definition.tree, at.below("services")
        entry: Entry = STUDY.value(tree, at, "entry", Entry())
        nodes = tree.items.get("services", Tree(1))
        assert isinstance(nodes, Tree)
        present = {
            name: node
            for name, node in nodes.items.items()
            if isinstance(node, Tree) and SERVICE.value(node, place.below(name), "when", True)
        }
        line = tree.items["entry"].line
        if entry.url is not None and nodes.items:
            message = "with a URL as entry nothing is started, but there are services"
            at.below("entry").fault(line, message, "remove services")
        elif entry.service is not None and entry.service not in present:
            message = f"entry {entry.service!r} is no service"
            at.below("entry").fault(line, message, f"services: {', '.join(present) or 'none'}")
        secured = STUDY.value(tree, at, "tls", Tls())
        if "tls" in tree.items or (entry.url or "").startswith("https:"):
            entry = replace(entry, tls=secured)
        read = {name: SERVICE.read(node, place.below(name)) for name, node in present.items()}
        made = {
            name: replace(service, variant=self.definition.variants.get(name))
            for name, service in read.items()
            if isinstance(service, Service)
        }
        return entry, make_services.together(made, nodes, entry, tree, place)

    def _mix(self, experiment: Tree, at: At) -> tuple[Scenario, ...]:
        """The scenarios of a case with their weights."""
        mix: Mapping[str, float] = EXPERIMENT.value(experiment, at, "mix", {})
        written, made, step_names = items_at(self.definition.tree, "scenarios"), [], set[str]()
        for name, weight in mix.items():
            if name not in written:
                hint = f"scenarios: {', '.join(written)}"
                at.fault_of(experiment, "mix", f"{name!r} is no scenario", hint)
                continue
            assert at.case is not None
            at.case.extracted.clear()
            place = replace(at, key=f"scenarios.{name}")
            steps = SCENARIO.read(written[name], place)
            made.append(make_steps.scenario(name, weight, steps, written[name].line, place))
            for step in made[-1].steps:
                if step.name in step_names:
                    message = (
                        f"two steps of the mix are named {step.name!r}; results could not distinguish them"
                    )
                    at.fault_of(experiment, "mix", message, "rename one")
                step_names.add(step.name)
        return tuple(made)


def _check_factors_matter(experiment: Experiment, used: set[str], name: str, faults: Faults) -> None:
    """A factor that no `$name` uses would give cases that differ in nothing but their name."""
    held_out = experiment.hold_out.factors if experiment.hold_out is not None else {}
    for factor, levels in [*experiment.factors.items(), *held_out.items()]:
        bound = {param for level in levels for param in level.binds}
        if not bound & used:
            message = (
                f"factor {factor} changes nothing: no ${factor} in {name}, its scenarios or the services"
            )
            faults.add(message, levels[0].place, f"use ${factor}, or remove the factor")
            continue
        for level in levels:
            for param in level.binds:
                if param not in used and param != factor:
                    message = f"level {level.name} binds {param}, which nothing in {name} uses"
                    faults.add(message, level.place, f"use ${param}, or remove it")


# --------------------------------------------------------------------------------------------------- names


def _slug(parts: list[str]) -> str:
    """A name for a folder: lower case, safe on every file system, at most 80 characters."""
    text = "-".join(re.sub(r"[^a-z0-9._]+", "-", part.lower()).strip("-.") for part in parts)
    text = text.strip("-.") or "case"
    if len(text) <= 80:
        return text
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]
    return f"{text[:71].rstrip('-.')}-{digest}"


def _with_unique_slugs(cases: list[Case]) -> tuple[Case, ...]:
    """The same cases; a slug that stands already gets a number (levels may differ in marks only)."""
    taken: set[str] = set()
    unique = []
    for case in cases:
        slug, number = case.slug, 2
        while slug in taken:
            slug, number = f"{case.slug}-{number}", number + 1
        taken.add(slug)
        unique.append(replace(case, slug=slug))
    return tuple(unique)
