"""Calibrations of a study: each command once a run, one value for all trials, also after --resume."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from loadlens.model.study import Case, Study
from loadlens.model.topology import Scalar, Service
from loadlens.run.testbed_pool import Preparations
from loadlens.testbed import Calibrated, calibrate


@dataclass(frozen=True, slots=True)
class Calibrations:
    """The values that were found, by service, name and command."""

    found: Mapping[tuple[str, str, str], Calibrated]

    def values_of(self, case: Case) -> dict[str, Scalar]:
        """The value of each calibrated name in one case."""
        return {self.found[key].name: self.found[key].value for key in _keys(case.services)}

    def as_plain(self) -> list[dict[str, Any]]:
        """For the record."""
        return [asdict(one) for one in self.found.values()]


def calibrate_all(
    study: Study,
    preparations: Preparations,
    *,
    before: Iterable[Mapping[str, Any]] = (),
    on_line: Callable[[str], None],
) -> Calibrations:
    """Find out what the services of all cases ask for.

    Args:
        study: As planned; a command in which factors are filled is run once for each of its texts.
        preparations: Builds of the services.
        before: What a record that is taken up has: those values stay.
        on_line: Is told the values.

    Raises:
        TestbedError: A command failed or gave no value.
    """
    found = {(one["service"], one["name"], one["run"]): Calibrated(**one) for one in before}
    for case in study.cases:
        for service in case.services:
            for key in _keys((service,)):
                if key not in found:
                    found[key] = calibrate(service, preparations.of(case), on_line=on_line)
    return Calibrations(found)


def _keys(services: Iterable[Service]) -> list[tuple[str, str, str]]:
    return [(s.name, s.calibrate.gives, s.calibrate.run) for s in services if s.calibrate is not None]
