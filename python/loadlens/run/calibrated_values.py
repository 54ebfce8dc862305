"""Calibrations of a study: one execution per run; all trials share the value, even after --resume."""

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
    """Calibrated values, by service, name and command."""

    by_key: Mapping[tuple[str, str, str], Calibrated]

    def values_of(self, case: Case) -> dict[str, Scalar]:
        """Return the value of each calibrated name in one case."""
        return {self.by_key[key].name: self.by_key[key].value for key in _keys(case.services)}

    def as_plain(self) -> list[dict[str, Any]]:
        """Return the values as the record keeps them."""
        return [asdict(value) for value in self.by_key.values()]


def calibrate_all(
    study: Study,
    preparations: Preparations,
    *,
    before: Iterable[Mapping[str, Any]] = (),
    on_line: Callable[[str], None],
) -> Calibrations:
    """Run the calibration commands of all cases.

    Args:
        study: As planned; a command that contains factors runs once per distinct text.
        preparations: Builds of the services.
        before: Values from the record of a resumed run, which are kept.
        on_line: Receives the output and the values.

    Raises:
        TestbedError: A command failed or printed no value.
    """
    values = {(kept["service"], kept["name"], kept["run"]): Calibrated(**kept) for kept in before}
    for case in study.cases:
        for service in case.services:
            for key in _keys((service,)):
                if key not in values:
                    values[key] = calibrate(service, preparations.of(case), on_line=on_line)
    return Calibrations(values)


def _keys(services: Iterable[Service]) -> list[tuple[str, str, str]]:
    return [(s.name, s.calibrate.gives, s.calibrate.run) for s in services if s.calibrate is not None]
