"""A short study -> the whole one that it stands for, before anything reads it.

What may be left out is filled in with nodes on the line of what they follow from, and `origins` keeps the
key paths as written, so that every fault still names what stands in the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loadlens import units
from loadlens.model.study import QUESTION
from loadlens.model.topology import Scalar
from loadlens.study.parse.keys_load import LOAD, SHAPES
from loadlens.study.parse.schema import At
from loadlens.study.tree import Leaf, Node, Row, Tree, items_at
from loadlens.units import UnitError

ONLY: Final = "load"  # the experiment that stands at the top of a file
OF_ONLY: Final = ("mix", "load", "factors", "hold_out")
DURATION: Final = "20s"
QUICK_DURATION: Final = "8s"
PROBE: Final = "probe"
PROBE_PATH: Final = "/loadlens-probe"
PROBE_PER_S: Final = 10.0
# A path that does not exist is answered all the same, by a router, a login or a fallback page.
_PROBE_STATUSES: Final = (200, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405)
_ENDS: Final = ("duration", "iterations", "requests", "stages", "steps", "bursts", "replay")


def completed(tree: Tree, file: Path | None, at: At) -> Tree:
    """The whole study.

    Args:
        tree: As written.
        file: Names the study if it has no name of its own; none: standard input.
        at: The top of the file.
    """
    whole = _copy(tree)
    _entry_and_scenarios(whole)
    _one_experiment(whole, at)
    experiments = items_at(whole, "experiments")
    if experiments:
        made = {name: _experiment(node, whole, name, at) for name, node in experiments.items()}
        changes = items_at(whole, "quick", "experiments")
        for name, change in changes.items():
            if isinstance(change, Tree):
                changes[name] = _quick(change, experiments.get(name), made.get(name), name)
        old = whole.items["experiments"]
        assert isinstance(old, Tree)
        whole.items["experiments"] = Tree(old.line, made, old.key_lines, old.origins)
    _put(whole, "schema", _leaf(1, tree.line))
    _put(whole, "study", _leaf(_name(file), tree.line))
    entry = whole.items.get("entry")
    question = QUESTION.format(entry.written if isinstance(entry, Leaf) else "the service")
    _put(whole, "question", _leaf(question, tree.line))
    return whole


def _name(file: Path | None) -> str:
    """Name a study after its file, or after the folder of a `study.yaml`."""
    if file is None:
        return "study"
    path = file.resolve()
    stem = path.parent.name if path.stem == "study" else path.stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:64] or "study"


def _entry_and_scenarios(whole: Tree) -> None:
    """A URL may lack its scheme, and its path is what is asked for if no scenario says it."""
    entry, path = whole.items.get("entry"), "/"
    if isinstance(entry, Leaf) and isinstance(entry.value, str):
        url = entry.written
        if "services" not in whole.items and re.match(r"[\w.-]+(:\d+|/|:\d+/.*)$", url):
            url = f"http://{url}"
        base = re.match(r"https?://[^/?#]+", url)
        if base is not None and "scenarios" not in whole.items and "#" not in url:
            url, rest = base[0], url[base.end() :]
            path = rest if rest.startswith("/") else f"/{rest}"
        whole.items["entry"] = Leaf(url, url, entry.line)
    if "scenarios" not in whole.items:
        line = whole.line if entry is None else entry.line
        step = _tree(line, get=_leaf(path, line))
        if len(path) <= 70:
            _put(step, "name", _leaf(f"GET {path}", line))
        _put(whole, "scenarios", _tree(line, request=Row(line, [step])))
    scenarios = whole.items.get("scenarios")
    if isinstance(scenarios, Tree):
        steps = {name: _steps(node) for name, node in scenarios.items.items()}
        whole.items["scenarios"] = Tree(scenarios.line, steps, scenarios.key_lines, scenarios.origins)


def _steps(scenario: Node) -> Node:
    """`/path` and a single step stand for a list of one step."""
    if isinstance(scenario, Leaf) and isinstance(scenario.value, str):
        scenario = _tree(scenario.line, get=scenario)
    return Row(scenario.line, [scenario]) if isinstance(scenario, Tree) else scenario


def _one_experiment(whole: Tree, at: At) -> None:
    """Move what stands at the top for the only experiment into one."""
    quick = whole.items.get("quick")
    own = [key for key in OF_ONLY if key in whole.items]
    if "experiments" in whole.items:
        for key in own:
            message = f"{key} at the top is that of a study without experiments"
            at.fault_of(whole, key, message, f"move it to experiments.NAME.{key}")
            del whole.items[key]
        return
    if "load" not in whole.items:
        at.fault(whole.line, "a study without a load", "load: {users: [1, 4, 16]}")
        return
    load, probes = whole.items["load"], whole.items.get("probes")
    if isinstance(load, Tree):
        if isinstance(quick, Tree):
            quick = whole.items["quick"] = _copy(quick)
            _gather(quick, [key for key in OF_ONLY if key in quick.items], "quick.")
        elif quick is None and not set(_ENDS) & set(load.items):
            change = _tree(load.line, load=_tree(load.line, duration=_leaf(QUICK_DURATION, load.line)))
            quick = _tree(load.line, trials=_leaf(1, load.line), experiments=_tree(load.line, load=change))
            _put(whole, "quick", quick)
        rate_per_s = _probe_rate(load)
        if probes is None and rate_per_s is not None:
            line = load.line
            probe = _tree(line, get=_leaf(PROBE_PATH, line), rate=_leaf(rate_per_s, line))
            _put(probe, "expect", Row(line, [_leaf(status, line) for status in _PROBE_STATUSES]))
            _put(whole, "probes", _tree(line, **{PROBE: probe}))
    _gather(whole, own, "")


def _gather(tree: Tree, keys: Sequence[str], path: str) -> None:
    """Move keys of the top into the only experiment, which keeps their key paths."""
    if keys:
        line = min(tree.key_lines[key] for key in keys)
        only = Tree(line)
        for key in keys:
            only.items[key], only.key_lines[key] = tree.items.pop(key), tree.key_lines[key]
            only.origins[key] = tree.origins.get(key, f"{path}{key}")
        _put(tree, "experiments", _tree(line, **{ONLY: only}))


def _probe_rate(load: Tree) -> float | None:
    """Requests per second of the probe that a ladder has if the study gives none; `None` for no ladder."""
    ladders = [node for key in ("users", "rate") if isinstance(node := load.items.get(key), Row)]
    if not ladders or len(ladders[0].items) < 2:
        return None
    if "rate" not in load.items:
        return PROBE_PER_S
    try:  # a tenth of the lowest rate: a probe is not to be a load
        rates = [units.rate_per_s(level.value) for level in ladders[0].items if isinstance(level, Leaf)]
        return min(PROBE_PER_S, min(rates) / 10)
    except (UnitError, ValueError):
        return PROBE_PER_S


def _experiment(node: Node, whole: Tree, name: str, at: At) -> Node:
    """An experiment with its only possible mix, an end of its load, and its lists as factors."""
    if not isinstance(node, Tree):
        return node
    made = _copy(node)
    scenarios = list(items_at(whole, "scenarios"))
    if len(scenarios) == 1:
        _put(made, "mix", _leaf(scenarios[0], node.line))
    load = made.items.get("load")
    if isinstance(load, Tree):
        path = made.origins.get("load", f"experiments.{name}.load")
        factors = made.items.get("factors")
        for key in _lists(made):
            if key in items_at(factors):
                message = f"{key} is a list in the load, and a factor too"
                at.below("experiments", name).of(made, "factors").fault(
                    load.key_lines[key], message, "one of the two"
                )
        _lists_as_factors(made, load, path, factors)
        if not set(_ENDS) & set(load.items) and isinstance(ended := made.items["load"], Tree):
            _put(ended, "duration", _leaf(DURATION, load.line))
    return made


def _quick(change: Tree, written: Node | None, made: Node | None, name: str) -> Tree:
    """The change of an experiment: what is a list in either load is a factor, among the experiment's own."""
    changed, load = _copy(change), change.items.get("load")
    if isinstance(load, Tree):
        load, lists = _copy(load), _lists(written)
        for key in lists:
            if isinstance(level := load.items.get(key), Leaf):
                load.items[key] = Row(level.line, [level])
        own = change.items.get("factors", items_at(made).get("factors"))
        path = changed.origins.get("load", f"quick.experiments.{name}.load")
        _lists_as_factors(changed, load, path, own)
    return changed


def _lists(experiment: Node | None) -> list[str]:
    """The keys of a load that hold lists, and may be varied."""
    load = items_at(experiment, "load")
    varied = (key for key in LOAD.keys if key not in SHAPES)
    return [key for key in varied if isinstance(load.get(key), Row)]


def _lists_as_factors(experiment: Tree, load: Tree, path: str, factors: Node | None) -> None:
    """Give the experiment a copy of the load with `$key` for each list, and the list as factor `key`."""
    changed = _copy(load)
    experiment.items["load"] = changed
    experiment.origins.setdefault("load", path)
    keys = _lists(Tree(load.line, {"load": load}))
    if not keys or not (factors is None or isinstance(factors, Tree)):
        return
    crossed = Tree(load.line) if factors is None else _copy(factors)
    for key in keys:
        row = load.items[key]
        crossed.items[key], crossed.key_lines[key] = row, load.key_lines[key]
        crossed.origins[key] = f"{path}.{key}"
        changed.items[key] = _leaf(f"${key}", row.line)
    experiment.items["factors"] = crossed
    experiment.key_lines.setdefault("factors", load.line)


def _put(tree: Tree, key: str, node: Node) -> None:
    """Add a key, unless it stands there."""
    if key not in tree.items:
        tree.items[key], tree.key_lines[key] = node, node.line


def _copy(tree: Tree) -> Tree:
    return Tree(tree.line, dict(tree.items), dict(tree.key_lines), dict(tree.origins))


def _leaf(value: Scalar, line: int) -> Leaf:
    return Leaf(value, str(value), line)


def _tree(line: int, **items: Node) -> Tree:
    return Tree(line, items, dict.fromkeys(items, line))
