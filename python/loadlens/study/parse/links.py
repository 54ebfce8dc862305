"""Faults that lie between the parts of a study: names that refer to nothing, parts that do not fit together.

Runs on the tree as written, whatever of it could be read, so that one slip does not hide the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from loadlens.errors import did_you_mean, nearest
from loadlens.model.topology import METRICS_PORT, Entry
from loadlens.model.workload import LOAD
from loadlens.study.definition import Place
from loadlens.study.parse.placeholders import (
    TESTBED_NAMES,
    level_lines,
    literal,
    names_in,
    steps_in,
)
from loadlens.study.parse.schema import At
from loadlens.study.parse.values import ENTRY
from loadlens.study.tree import Leaf, Node, Row, Tree, items_at, row_at
from loadlens.study.tree import at as node_at
from loadlens.units import UnitError, shown


def check(tree: Tree, params: Iterable[str], at: At) -> None:
    """Note what does not fit together, given the params that could be read."""
    _check_params(tree, params, at)
    _check_calibrations(tree, at.below("services"))
    _check_services(tree, at)
    _check_entry(tree, at.below("entry"))
    for name, items in items_at(tree, "scenarios").items():
        _check_scenario(name, items, at.below("scenarios", name))
    for name, experiment in items_at(tree, "experiments").items():
        below = at.below("experiments", name)
        for key, hint in (("mix", "mix: SCENARIO"), ("load", "load: {users: 10, duration: 30s}")):
            if isinstance(experiment, Tree) and key not in experiment.items:
                below.fault(experiment.line, f"experiment {name} without a {key}", hint)
        _check_experiment(tree, experiment, below)
    _check_probes(tree, at)
    _check_quick(tree, at.below("quick"))


def _check_params(tree: Tree, params: Iterable[str], at: At) -> None:
    node, names = tree.items.get("params"), at.names
    lines = node.key_lines if isinstance(node, Tree) else {}
    for name in names.given:
        if name in TESTBED_NAMES or name in names.services:
            meaning = "a service" if name in names.services else "a name of the testbed"
            message = f"${name} is {meaning}, it cannot be a param or a factor too"
            place = at.below("params", name) if name in lines else at.below(name)
            place.fault(lines.get(name, 1), message, "rename it")
    # Where something else is wrong, a name may stand in what was not read.
    excused = names_in(tree, names.services) if len(at.faults) else ()
    for name in params:
        if name not in names.used and name not in excused:
            near = nearest(name, sorted(names.used))
            hint = f"did you mean {near}?" if near else f"remove it, or use ${name}"
            at.below("params", name).fault(lines[name], f"param {name} is used nowhere", hint)


def _check_calibrations(tree: Tree, at: At) -> None:
    """Each calibrated name means one thing and is used, and its command needs nothing that runs."""
    owners: dict[str, str] = {}
    for service, part in items_at(tree, "services").items():
        variants = [(at.below(service, "variants", v), n) for v, n in items_at(part, "variants").items()]
        for below, node in ((at.below(service), part), *variants):
            calibrate, gives = node_at(node, "calibrate"), node_at(node, "calibrate", "gives")
            if isinstance(calibrate, Tree) and isinstance(gives, Leaf):
                _check_calibration(service, calibrate, str(gives.value), owners, below.below("calibrate"))


def _check_calibration(service: str, node: Tree, name: str, owners: dict[str, str], at: At) -> None:
    names, message, hint = at.names, "", "another name in `gives`"
    if name in names.given:
        message = f"${name} is a param or a factor already"
    elif name in TESTBED_NAMES or name in names.services:
        message = f"${name} has a meaning already"
    elif owners.setdefault(name, service) != service:
        message = f"${name} is calibrated by {owners[name]} too"
    elif name not in names.used:
        message, hint = f"calibrated ${name} is used nowhere", f"use ${name}, or remove calibrate"
    if message:
        at.fault(node.line, message, hint)
    for used in names_in(node.items.get("run"), names.services):
        base = used.partition(".")[0]
        if base in ("port", "replica") or base in names.services or base in names.calibrated:
            message = f"${base} means nothing to a calibration: nothing runs yet"
            at.fault_of(node, "run", message, "params, factors, $host and $scratch")


# -------------------------------------------------------------------------------------------------- services


def ports_of(service: Node, services: frozenset[str]) -> tuple[str, ...]:
    """The names of a service's ports that are plain text."""
    written = [literal(port, services) for port in row_at(service, "ports")]
    named = tuple(port for port in written if port is not None) if "ports" in items_at(service) else ("http",)
    # Where the books of a fault proxy are read, whatever the study says.
    is_proxy = literal(node_at(service, "use"), services) == "fault-proxy"
    return (*named, METRICS_PORT) if is_proxy else named


def _listed(node: Node, key: str, at: At) -> list[tuple[Node, At]]:
    """The items of a key, or the one that stands alone, each with its place."""
    place, is_row = at.below(key), isinstance(node_at(node, key), Row)
    return [(item, place.item(i) if is_row else place) for i, item in enumerate(row_at(node, key))]


def _check_services(tree: Tree, at: At) -> None:
    services = items_at(tree, "services")
    after: dict[str, list[str]] = {}
    for name, service in services.items():
        below, ports = at.below("services", name), ports_of(service, at.names.services)
        _check_unique(_listed(service, "ports", below), "port")
        others = [*_listed(service, "after", below), *_listed(service, "over", below)]
        for node, place in others:
            _check_reference(node, tuple(services), "service", place)
        texts = [literal(node, at.names.services) for node, _ in others]
        after[name] = [other for other in texts if other in services]
        for key in ("ready", "scrape"):
            _check_reference(node_at(service, key, "port"), ports, "port", below.below(key, "port"))
        variables = (("env", variable) for variable in items_at(service, "env"))
        for path in (("start",), ("setup",), ("build", "run"), ("server_times", "file"), *variables):
            text = node_at(service, *path)
            for used in names_in(text, at.names.services):
                port = used.removeprefix("port.")
                if text is not None and port != used and port not in ports:
                    message = f"${used}: service {name} has no such port"
                    below.below(*path).fault(text.line, message, did_you_mean(port, ports))
    ready: set[str] = set()
    while startable := [name for name in after if name not in ready and ready.issuperset(after[name])]:
        ready.update(startable)
    if stuck := [name for name in after if name not in ready]:
        message = f"services wait for each other: {', '.join(stuck)}"
        at.below("services", stuck[0]).fault(services[stuck[0]].line, message, "remove one `after`")
    for path in ((), *(("experiments", name) for name in items_at(tree, "experiments"))):
        owner = node_at(tree, *path, "reset", "service")
        _check_reference(owner, tuple(services), "service", at.below(*path, "reset", "service"))


def _check_entry(tree: Tree, at: At) -> None:
    node, services = tree.items.get("entry"), items_at(tree, "services")
    written = literal(node, at.names.services)
    try:
        entry: Entry | None = None if written is None else ENTRY.convert(written)
    except UnitError:
        return  # a fault of its own
    if node is None or entry is None:
        return
    secured, names = tree.items.get("tls"), tuple(services)
    if secured is not None and entry.url is not None and not entry.url.startswith("https:"):
        place = At(at.file, at.folder, at.names, at.faults, "tls")
        place.fault(secured.line, "an entry over http has no TLS", "an https:// URL, or remove tls")
    if entry.url is not None:
        if services:
            message = f"with a URL as entry nothing is started, but there are services: {', '.join(names)}"
            at.fault(node.line, message, f"entry: {names[0]}, or remove services")
    elif entry.service not in services:
        at.fault(node.line, f"entry {shown(written)} is no service", did_you_mean(str(entry.service), names))
    elif entry.port is not None:
        ports = ports_of(services[entry.service], at.names.services)
        if entry.port not in ports:
            message = f"service {entry.service} has no port {shown(entry.port)}"
            at.fault(node.line, message, did_you_mean(entry.port, ports))


# ------------------------------------------------------------------------------------ scenarios, experiments


def _parts(items: Node, at: At) -> Iterator[tuple[Tree, At]]:
    """Every step and group of a scenario with its place, outer before inner."""
    for index, item in enumerate(items.items if isinstance(items, Row) else ()):
        if isinstance(item, Tree):
            yield item, at.item(index)
            yield from _parts(item.items.get("steps", item), at.item(index).below("steps"))


def _check_scenario(name: str, items: Node, at: At) -> None:
    """Steps and groups have names that distinguish them, and so do extracted values."""
    extracted: dict[str, int] = {}
    is_single = len(list(steps_in(items))) == 1
    for part, below in _parts(items, at):
        if not is_single and not {"name", "group", "repeat", "steps"} & set(part.items):
            below.fault(part.line, f"a step without a name among several of {name}", "name: create")
        for value, node in items_at(part, "extract").items():
            if value in extracted:
                message = f"{value} is extracted twice in {name}, first on line {extracted[value]}"
                below.below("extract", value).fault(node.line, message, "another name")
            extracted.setdefault(value, node.line)
    for key, what in (("name", "step"), ("group", "group")):
        named = ((part.items.get(key), below.below(key)) for part, below in _parts(items, at))
        _check_unique(named, what)


def _check_probes(owner: Node, at: At) -> None:
    probe = items_at(owner, "probes").get(LOAD)
    if probe is not None:
        message = f"a probe cannot be named {LOAD}: so is the measured stream"
        at.below("probes", LOAD).fault(probe.line, message, "name it after what it asks")


def _check_experiment(tree: Tree, experiment: Node, at: At, *, is_whole: bool = True) -> None:
    scenarios, mix = tuple(items_at(tree, "scenarios")), node_at(experiment, "mix")
    written = literal(mix, at.names.services)
    for scenario in mix.items if isinstance(mix, Tree) else [written] if written is not None else ():
        if isinstance(experiment, Tree) and mix is not None and scenario not in scenarios:
            message = f"{shown(scenario)} is no scenario"
            at.of(experiment, "mix").fault(mix.line, message, did_you_mean(scenario, scenarios))
    _check_probes(experiment, at)
    factors, below = items_at(experiment, "factors"), at.below("hold_out", "where")
    if "factors" not in items_at(experiment):
        return
    for factor, levels in items_at(experiment, "hold_out", "where").items():
        if factor not in factors:
            message = f"`where` names {factor}, which is no factor here"
            line = next(iter(level_lines(levels).values()), levels.line)
            at.faults.add(message, Place(at.file, line), did_you_mean(factor, list(factors)))
            continue
        names = list(level_lines(factors[factor]))
        for index, (level, line) in enumerate(level_lines(levels).items() if is_whole else ()):
            if level not in names:
                place = below.below(factor)
                place = place.item(index) if isinstance(levels, Row) else place.below(level)
                message = f"`where` names {factor} {level}, which is no level here"
                place.fault(line, message, did_you_mean(level, names))


def _check_quick(tree: Tree, at: At) -> None:
    quick, experiments = tree.items.get("quick"), tuple(items_at(tree, "experiments"))
    if not isinstance(quick, Tree):
        return
    skipped = [name.written for name in row_at(quick, "skip") if isinstance(name, Leaf)]
    for name in skipped:
        if name not in experiments:
            hint = did_you_mean(name, experiments)
            at.below("skip").fault(quick.line, f"{shown(name)} is no experiment", hint)
    if experiments and set(experiments) <= set(skipped):
        at.fault(quick.line, "quick skips every experiment", "leave one")
    for name, change in items_at(quick, "experiments").items():
        below = at.below("experiments", name)
        if name not in experiments:
            below.fault(change.line, f"{shown(name)} is no experiment", did_you_mean(name, experiments))
        elif name in skipped:
            below.fault(change.line, f"quick skips {name} and changes it too", "one of the two")
        _check_experiment(tree, change, below, is_whole=False)
    params = tuple(items_at(tree, "params"))
    for name in items_at(quick, "params"):
        if name not in params:
            message = f"{shown(name)} is no param of the study"
            at.below("params", name).fault(quick.line, message, did_you_mean(name, params))


# -------------------------------------------------------------------------------------------------- in common


def _check_unique(values: Iterable[tuple[Node | None, At]], what: str) -> None:
    seen: dict[str, int] = {}
    for node, at in values:
        text = literal(node, at.names.services)
        if node is not None and text is not None:
            if text in seen:
                message = f"{what} {shown(text)} stands twice, first on line {seen[text]}"
                at.fault(node.line, message, "another name")
            seen.setdefault(text, node.line)


def _check_reference(node: Node | None, names: tuple[str, ...], what: str, at: At) -> None:
    text = literal(node, at.names.services)
    if node is not None and text is not None and text not in names:
        at.fault(node.line, f"{shown(text)} is no {what}", did_you_mean(text, names))
