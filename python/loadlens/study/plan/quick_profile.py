"""Applies `--quick` and `--set` to a definition, and describes the differences."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from loadlens.errors import UsageError
from loadlens.model.topology import Scalar
from loadlens.study.definition import (
    Definition,
    ExperimentPart,
    HoldOutPart,
    Later,
    LevelPart,
    LoadPart,
    Name,
    QuickPart,
    Text,
)
from loadlens.units import UnitError, fits_64_bits, scalar

Levels = Mapping[str, tuple[LevelPart, ...]]


# ----------------------------------------------------------------------------------------------------- quick


def quick(definition: Definition) -> Definition:
    """The definition as its quick profile changes it: loads key by key, everything else replaced."""
    part = definition.quick
    if part is None:
        return definition
    experiments = {
        name: _changed(experiment, part.experiments.get(name), part)
        for name, experiment in definition.experiments.items()
        if name not in part.skip
    }
    return replace(
        definition,
        params={**definition.params, **part.params},
        trials=part.trials or definition.trials,
        experiments=experiments,
    )


def _changed(experiment: ExperimentPart, change: ExperimentPart | None, part: QuickPart) -> ExperimentPart:
    changed = experiment if part.trials is None else replace(experiment, trials=None)
    if change is None:
        return changed
    given = _given(change)
    if experiment.load is not None and change.load is not None:
        given["load"] = replace(experiment.load, **_given(change.load))
    changed = replace(changed, **given)
    if changed.hold_out is None or not changed.hold_out.factors:
        return replace(changed, hold_out=None)
    return replace(changed, hold_out=_thinned(changed.hold_out, changed.factors or {}))


def _given(part: ExperimentPart | LoadPart) -> dict[str, Any]:
    """The fields that were written."""
    values = {each.name: getattr(part, each.name) for each in fields(part) if each.name != "place"}
    return {name: value for name, value in values.items() if value is not None}


def _thinned(hold_out: HoldOutPart, factors: Levels) -> HoldOutPart:
    """The restriction of held-out cases to levels that the thinned factors still have."""
    where = {}
    for factor, levels in hold_out.where.items():
        kept = {level.name for level in factors.get(factor, ())}
        where[factor] = tuple(level for level in levels if level.name in kept)
    return replace(hold_out, where={factor: levels for factor, levels in where.items() if factor in factors})


def differences(full: Definition, thinned: Definition) -> tuple[str, ...]:
    """Describe the changes made by the quick profile, one clause each."""
    lines = [
        f"param {name}: {value} instead of {full.params[name]}"
        for name, value in thinned.params.items()
        if value != full.params.get(name)
    ]
    if _word(full.trials, "3") != _word(thinned.trials, "3"):
        lines.append(f"trials: {_word(thinned.trials, '3')} instead of {_word(full.trials, '3')}")
    for name, experiment in full.experiments.items():
        if name not in thinned.experiments:
            lines.append(f"{name}: left out")
        else:
            lines += [
                f"{name}: {each}" for each in _experiment_differences(experiment, thinned.experiments[name])
            ]
    return tuple(lines)


def _experiment_differences(full: ExperimentPart, thinned: ExperimentPart) -> list[str]:
    differences = []
    for key in ("mix", "fresh", "needs_cores"):
        if (before := _word(getattr(full, key), "none")) != (after := _word(getattr(thinned, key), "none")):
            differences.append(f"{key} {after} instead of {before}")
    if full.trials is not None and _word(full.trials, "") != _word(thinned.trials, ""):
        differences.append(f"trials as in the whole study instead of {_word(full.trials, '')}")
    for each in (each for each in fields(LoadPart) if each.name != "place"):
        before, after = (_word(getattr(part.load, each.name, None), "none") for part in (full, thinned))
        if before != after:
            differences.append(f"{each.name} {after} instead of {before}")
    for factor, levels in (full.factors or {}).items():
        before, after = _listed(levels), _listed((thinned.factors or {}).get(factor, ()))
        if before != after:
            differences.append(f"{factor} {after or 'at its default'} instead of {before}")
    for factor in thinned.factors or {}:
        if factor not in (full.factors or {}):
            differences.append(f"{factor} {_listed((thinned.factors or {})[factor])} as a factor")
    differences += _hold_out_differences(full.hold_out, thinned.hold_out)
    if full.probes is not thinned.probes:
        differences.append(f"probes {', '.join(thinned.probes or {}) or 'none'}")
    if full.reset is not thinned.reset:
        differences.append("another reset")
    return differences


def _hold_out_differences(full: HoldOutPart | None, thinned: HoldOutPart | None) -> list[str]:
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


def _listed(levels: tuple[LevelPart, ...]) -> str:
    return ", ".join(level.name for level in levels)


def _word(later: Later[Any] | None, missing: str) -> str:
    """A value as it was written."""
    return missing if later is None else _shown(later.written)


def _shown(written: Any) -> str:
    if isinstance(written, Text):
        return "".join(f"${piece.text}" if isinstance(piece, Name) else piece for piece in written.pieces)
    if isinstance(written, (dict, list)):
        plain = {k: _shown(v) for k, v in written.items()} if isinstance(written, dict) else written
        return json.dumps(plain, ensure_ascii=False, default=_shown)
    return str(written)


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
        raise UsageError(
            f"--set {name}: the study has no such param", hint=f"known: {', '.join(sorted(settable))}"
        )
    binders = [_binder(each, name) for each in definition.experiments.values()]
    if not is_factor and binders and all(binders):
        factor, levels = next(binder for binder in binders if binder)
        raise UsageError(
            f"--set {name} would change no case: the levels of {factor} give {name} its value",
            hint=f"choose a level: --set {factor}={levels[0].name}",
        )
    params = {**definition.params, name: value} if name in definition.params else definition.params
    return replace(definition, params=params, experiments=experiments)


def _all_factors(experiment: ExperimentPart) -> Levels:
    held_out = experiment.hold_out.factors if experiment.hold_out is not None else {}
    return {**held_out, **(experiment.factors or {})}


def _binder(experiment: ExperimentPart, name: str) -> tuple[str, tuple[LevelPart, ...]] | None:
    """The factor whose levels all give a param its value, so that its own is never used."""
    for factor, levels in (experiment.factors or {}).items():
        if levels and all(name in level.binds for level in levels):
            return factor, levels
    return None


def _pinned(experiment: ExperimentPart, name: str, value: Scalar) -> ExperimentPart:
    factors, hold_out = dict(experiment.factors or {}), experiment.hold_out
    if name in factors:
        factors[name] = (_level(factors[name], name, value),)
    if hold_out is not None and name in hold_out.factors:
        hold_out = None  # its cases are the ones selected, or do not fit with them
    elif hold_out is not None:
        hold_out = _thinned(hold_out, factors)
        if any(not levels for levels in hold_out.where.values()):
            hold_out = None
    return replace(experiment, factors=factors or None, hold_out=hold_out)


def _level(levels: tuple[LevelPart, ...], name: str, value: Scalar) -> LevelPart:
    text = str(value)
    for level in levels:
        if level.name == text or level.binds == {name: value}:
            return level
    if any(set(level.binds) != {name} for level in levels):
        names = ", ".join(level.name for level in levels)
        raise UsageError(f"--set {name}={text}: there is no such level", hint=f"levels of {name}: {names}")
    return LevelPart(text, levels[0].place, {name: value})
