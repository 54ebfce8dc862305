"""The environment variables that secrets of a study come from: there before anything is started, or named."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from loadlens.errors import DefinitionError, DefinitionErrors
from loadlens.model.study import Study
from loadlens.model.workload import Scenario, Step

_ENV = re.compile(r"\{\{\s*env\s+([^\s{}]+)\s*\}\}")


def refuse_missing(study: Study, file: str) -> None:
    """Raise with every variable that the study's requests ask for and that is not set.

    Args:
        study: As planned.
        file: The name of its file, for messages.

    Raises:
        DefinitionErrors: Each variable with the line that asks for it.
    """
    asked = dict.fromkeys(name for case in study.cases for name in _asked_by(case.scenarios))
    asked |= dict.fromkeys(
        name for case in study.cases for probe in case.probes for name in _asked_by((probe.scenario,))
    )
    missing = [name for name in asked if name not in os.environ]
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


def _asked_by(scenarios: tuple[Scenario, ...]) -> Iterator[str]:
    for scenario in scenarios:
        for step in scenario.steps:
            yield from _asked_by_step(step)


def _asked_by_step(step: Step) -> Iterator[str]:
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
    """The first line that names the variable."""
    for number, line in enumerate(text.splitlines(), 1):
        if name in _ENV.findall(line):
            return number
    return 1
