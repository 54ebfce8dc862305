"""Environment variables that hold a study's secrets: checked before anything is started, kept nowhere."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from loadlens.errors import DefinitionError, DefinitionErrors
from loadlens.model.study import Case, Study
from loadlens.model.workload import Scenario, Step

_ENV = re.compile(r"\{\{\s*env\s+([^\s{}]+)\s*\}\}")


def refuse_missing(study: Study, file: str) -> None:
    """Raise if environment variables used by the study's requests are not set.

    Args:
        study: As planned.
        file: The name of its file, for messages.

    Raises:
        DefinitionErrors: Every missing variable, with the line that uses it.
    """
    used = dict.fromkeys(name for case in study.cases for name in _variables_in(case.scenarios))
    used |= dict.fromkeys(
        name for case in study.cases for probe in case.probes for name in _variables_in((probe.scenario,))
    )
    missing = [name for name in used if name not in os.environ]
    if missing:
        raise DefinitionErrors(
            [
                DefinitionError(
                    f"environment variable {name} is not set",
                    where=f"{file}:{_line_of(name, study.text)}",
                    hint="export it where loadlens runs; it is never written down",
                )
                for name in missing
            ]
        )


def values_of(cases: Iterable[Case]) -> tuple[str, ...]:
    """Return the values of variables that requests use, and what the engine makes of them."""
    scenarios = [s for case in cases for s in (*case.scenarios, *(probe.scenario for probe in case.probes))]
    values = [os.environ.get(name, "") for name in dict.fromkeys(_variables_in(tuple(scenarios)))]
    for auth in (step.auth for scenario in scenarios for step in scenario.steps):
        if auth is not None and auth.password_env is not None:
            pair = f"{auth.user}:{os.environ.get(auth.password_env, '')}"
            values.append(base64.b64encode(pair.encode()).decode())
    return tuple(value for value in values if value)


def _variables_in(scenarios: tuple[Scenario, ...]) -> Iterator[str]:
    for scenario in scenarios:
        for step in scenario.steps:
            yield from _variables_in_step(step)


def _variables_in_step(step: Step) -> Iterator[str]:
    if step.auth is not None:
        yield from (name for name in (step.auth.password_env, step.auth.token_env) if name is not None)
    for text in (
        step.path,
        *(value for _, value in step.headers),
        *_texts_in(step.body.value),
        step.body.text,
    ):
        yield from _ENV.findall(text or "")


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in (
        value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    ):
        yield from _texts_in(item)


def _line_of(name: str, text: str) -> int:
    """Return the first line that names the variable."""
    for number, line in enumerate(text.splitlines(), 1):
        if name in _ENV.findall(line):
            return number
    return 1
