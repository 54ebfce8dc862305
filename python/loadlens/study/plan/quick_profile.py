"""Applies `--quick`, `--set` and `--variant` to a definition, and describes what `--quick` changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from loadlens.errors import UsageError, did_you_mean
from loadlens.model.topology import Scalar
from loadlens.study.definition import Definition, Experiment, Faults, HoldOut, Level
from loadlens.study.parse import experiments_of
from loadlens.study.parse.keys_load import LOAD
from loadlens.study.parse.keys_study import QUICK
from loadlens.study.parse.schema import At
from loadlens.study.tree import Leaf, Node, Row, Tree, items_at, row_at
from loadlens.study.tree import at as node_at
from loadlens.units import UnitError, fits_64_bits, scalar

HasProgram = Callable[[str], bool]
Levels = Mapping[str, tuple[Level, ...]]


# ----------------------------------------------------------------------------------------------------- quick


def quick(definition: Definition) -> Definition:
    """The definition as its quick profile changes it: loads key by key, everything else replaced."""
    part, tree = definition.tree.items.get("quick"), definition.tree
    if not isinstance(part, Tree):
        return definition
    at = At(definition.place.file, definition.folder, definition.names, Faults())
    params = QUICK.value(part, at, "params", {})
    skipped = QUICK.value(part, at, "skip", ())
    changes = items_at(part, "experiments")
    experiments = Tree(tree.line)
    for name, experiment in items_at(tree, "experiments").items():
        if name not in skipped and isinstance(experiment, Tree):
            changed = experiment.without("trials") if "trials" in part.items else experiment
            experiments.items[name] = _changed(name, changed, changes.get(name))
    own = Tree(part.line, {"experiments": experiments}, {}, {"experiments": "experiments"})
    if "trials" in part.items:
        own.items["trials"] = part.items["trials"]
    changed_tree = own.over(tree, "quick.", "")
    return replace(
        definition,
        params={**definition.params, **params},
        tree=changed_tree,
        experiments={
            name: replace(each, hold_out=_thinned(each.hold_out, each.factors)) if name in changes else each
            for name, each in experiments_of(changed_tree, at).items()
        },
    )


def _changed(name: str, experiment: Tree, change: Node | None) -> Tree:
    if not isinstance(change, Tree):
        return experiment
    there, here = f"experiments.{name}.", f"quick.experiments.{name}."
    changed = change.over(experiment, here, there)
    load, own = experiment.items.get("load"), change.items.get("load")
    if isinstance(load, Tree) and isinstance(own, Tree):
        changed.items["load"] = own.over(load, f"{here}load.", f"{there}load.")
        changed.origins["load"] = f"{there}load"
    return changed


def _thinned(hold_out: HoldOut | None, factors: Levels) -> HoldOut | None:
    """The restriction of held-out cases to levels that the thinned factors still have."""
    if hold_out is None or not hold_out.factors:
        return None
    where = {}
    for factor, levels in hold_out.where.items():
        if factor in factors:
            kept = {level.name for level in factors[factor]}
            where[factor] = tuple(level for level in levels if level.name in kept)
    return replace(hold_out, where=where)


def differences(full: Definition, thinned: Definition) -> tuple[str, ...]:
    """Describe the changes made by the quick profile, one clause each."""
    lines = [
        f"param {name}: {value} instead of {full.params[name]}"
        for name, value in thinned.params.items()
        if value != full.params.get(name)
    ]
    before, after = (_word(each.tree.items.get("trials"), "3") for each in (full, thinned))
    if before != after:
        lines.append(f"trials: {after} instead of {before}")
    for name, experiment in full.experiments.items():
        if name not in thinned.experiments:
            lines.append(f"{name}: left out")
        else:
            changes = _experiment_differences(experiment, thinned.experiments[name])
            lines += [f"{name}: {change}" for change in changes]
    return tuple(lines)


def _experiment_differences(full: Experiment, thinned: Experiment) -> list[str]:
    lines, own, new = [], full.tree.items, thinned.tree.items
    for key in ("mix", "fresh", "needs_cores"):
        if (before := _word(own.get(key))) != (after := _word(new.get(key))):
            lines.append(f"{key} {after} instead of {before}")
    if "trials" in own and _word(own["trials"]) != _word(new.get("trials")):
        lines.append(f"trials as in the whole study instead of {_word(own['trials'])}")
    for key in LOAD.keys:
        before, after = (_word(node_at(each.tree, "load", key)) for each in (full, thinned))
        if before != after:
            lines.append(f"{key} {after} instead of {before}")
    for factor, levels in full.factors.items():
        before, after = _listed(levels), _listed(thinned.factors.get(factor, ()))
        if before != after:
            lines.append(f"{factor} {after or 'at its default'} instead of {before}")
    new_factors = {name: levels for name, levels in thinned.factors.items() if name not in full.factors}
    lines += [f"{name} {_listed(levels)} as a factor" for name, levels in new_factors.items()]
    lines += _hold_out_differences(full.hold_out, thinned.hold_out)
    if own.get("probes") is not new.get("probes"):
        lines.append(f"probes {', '.join(items_at(new.get('probes'))) or 'none'}")
    return [*lines, "another reset"] if own.get("reset") is not new.get("reset") else lines


def _hold_out_differences(full: HoldOut | None, thinned: HoldOut | None) -> list[str]:
    if thinned is None:
        return [] if full is None else ["no held-out cases"]
    if full is None:
        return ["held-out cases of its own"]
    before = {name: _listed(levels) for name, levels in {**full.where, **full.factors}.items()}
    after = {name: _listed(levels) for name, levels in {**thinned.where, **thinned.factors}.items()}
    return [
        f"held-out {name} {after.get(name)} instead of {text}"
        for name, text in before.items()
        if after.get(name) != text
    ]


def _listed(levels: tuple[Level, ...]) -> str:
    return ", ".join(level.name for level in levels)


def _word(node: Node | None, missing: str = "none") -> str:
    """A value as it was written."""
    if node is None:
        return missing
    return node.written if isinstance(node, Leaf) else json.dumps(_plain(node), ensure_ascii=False)


def _plain(node: Node) -> Any:
    if isinstance(node, Leaf):
        return node.value
    if isinstance(node, Row):
        return [_plain(item) for item in node.items]
    return {key: _word(item) for key, item in node.items.items()}


# ------------------------------------------------------------------------------------------------- --variant


def with_variants(definition: Definition, chosen: Mapping[str, str], has_program: HasProgram) -> Definition:
    """The definition with one variant of each service, which replaces the service's keys by its own.

    Args:
        definition: As read.
        chosen: Service -> variant, from `--variant`; for others the first that can run on this machine.
        has_program: Whether the machine has a program.

    Raises:
        UsageError: A service that was asked for is not there or has no such variant.
    """
    services = definition.tree.items.get("services", Tree(1))
    assert isinstance(services, Tree)
    for name, variant in chosen.items():
        node = services.items.get(name)
        variants = items_at(node, "variants")
        if variant not in variants:
            what = f"service {name} has no variant {variant!r}" if node else f"{name!r} is no service"
            hint = f"known: {', '.join(variants if node else services.items) or 'none'}"
            raise UsageError(what, where="--variant", hint=hint)
    items, taken = dict(services.items), dict(chosen)
    for name, service in services.items.items():
        variants = items_at(service, "variants")
        if isinstance(service, Tree) and variants:
            able = (each for each, node in variants.items() if _can_run(node, has_program))
            # If none can, what the first lacks will be named.
            variant = taken.setdefault(name, next(able, next(iter(variants))))
            own, there = variants[variant], f"services.{name}."
            assert isinstance(own, Tree)
            items[name] = own.over(service.without("variants"), f"{there}variants.{variant}.", there)
    changed = definition.tree.items | {"services": replace(services, items=items)}
    return replace(definition, tree=replace(definition.tree, items=changed), variants=taken)


def _can_run(variant: Node, has_program: HasProgram) -> bool:
    return all(has_program(need.written) for need in row_at(variant, "needs") if isinstance(need, Leaf))


# ----------------------------------------------------------------------------------------------------- --set


def parse_override(text: str) -> tuple[str, Scalar]:
    """`users=5` -> ("users", 5); the value is read as in YAML.

    Raises:
        UsageError: There is no name or no value.
    """
    name, equals, written = text.partition("=")
    hint = "--set users=5"
    if not equals or not name.strip():
        raise UsageError(f"--set wants NAME=VALUE, got {text!r}", hint=hint)
    try:
        value = scalar(written.strip())
    except UnitError as error:
        raise UsageError(f"--set {name}: {error.message}", hint=hint) from None
    if value is None:
        raise UsageError(f"--set {name} without a value", hint=hint)
    if isinstance(value, int) and not fits_64_bits(value):
        raise UsageError(f"--set {name}: {value} does not fit 64 bits", hint=f"at most {2**64 - 1}")
    return name.strip(), value


def with_overrides(definition: Definition, overrides: Mapping[str, Scalar]) -> Definition:
    """The definition with params set; a factor of that name is pinned to the one level.

    Raises:
        UsageError: No param or factor has that name, a named factor has no such level, or the levels of
            another factor give the param its value in every case.
    """
    for name, value in overrides.items():
        definition = _overridden(definition, name, value)
    return definition


def _overridden(definition: Definition, name: str, value: Scalar) -> Definition:
    experiments = {key: _pinned(each, name, value) for key, each in definition.experiments.items()}
    is_factor = any(name in _all_factors(each) for each in definition.experiments.values())
    if not is_factor and name not in definition.params:
        settable = {
            *definition.params,
            *(key for each in definition.experiments.values() for key in _all_factors(each)),
        }
        message = f"--set {name}: the study has no such param or factor"
        raise UsageError(message, hint=did_you_mean(name, sorted(settable)))
    binders = [_binder(each, name) for each in definition.experiments.values()]
    if not is_factor and binders and all(binders):
        factor, levels = next(binder for binder in binders if binder)
        raise UsageError(
            f"--set {name} would change no case: the levels of {factor} give {name} its value",
            hint=f"choose a level: --set {factor}={levels[0].name}",
        )
    params = {**definition.params, name: value} if name in definition.params else definition.params
    return replace(definition, params=params, experiments=experiments)


def _all_factors(experiment: Experiment) -> Levels:
    held_out = experiment.hold_out.factors if experiment.hold_out is not None else {}
    return {**held_out, **experiment.factors}


def _binder(experiment: Experiment, name: str) -> tuple[str, tuple[Level, ...]] | None:
    """The factor whose levels all give a param its value, so that its own is never used."""
    for factor, levels in experiment.factors.items():
        if levels and all(name in level.binds for level in levels):
            return factor, levels
    return None


def _pinned(experiment: Experiment, name: str, value: Scalar) -> Experiment:
    factors, hold_out = dict(experiment.factors), experiment.hold_out
    if name in factors:
        factors[name] = (_level(factors[name], name, value),)
    if hold_out is not None and name in hold_out.factors:
        hold_out = None  # its cases are the ones selected, or do not fit with them
    elif hold_out is not None:
        hold_out = _thinned(hold_out, factors)
        if hold_out is not None and not all(hold_out.where.values()):
            hold_out = None
    return replace(experiment, factors=factors, hold_out=hold_out)


def _level(levels: tuple[Level, ...], name: str, value: Scalar) -> Level:
    text = str(value)
    for level in levels:
        if level.name == text or level.binds == {name: value}:
            return level
    if any(set(level.binds) != {name} for level in levels):
        names = ", ".join(level.name for level in levels)
        raise UsageError(f"--set {name}={text}: there is no such level", hint=f"levels of {name}: {names}")
    return Level(text, levels[0].place, {name: value})
