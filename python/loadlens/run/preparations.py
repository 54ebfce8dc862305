"""Builds and calibrated values of a study, each made once per run before its first trial."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loadlens.model.study import Case, Study
from loadlens.model.topology import Scalar, Service
from loadlens.testbed import Calibrated, Prepared, calibrate, demand, prepare

CalibrationKey = tuple[str, str, str]  # service, name, command


def prepare_all(
    study: Study,
    *,
    cache: Path,
    on_line: Callable[[str], None],
    calibrated_before: Iterable[Mapping[str, Any]] = (),
) -> Preparations:
    """Build the environments of every case, then run the calibration commands.

    Args:
        study: As planned; a calibration command that contains factors runs once per distinct text.
        cache: Built environments.
        on_line: Receives the output of both, line by line.
        calibrated_before: Values from the record of a resumed run, which are kept.

    Raises:
        TestbedError: Programs (of all cases) or a folder are missing, or a build or a calibration failed.
    """
    folder = Path(study.folder)
    demand(dict.fromkeys(service for case in study.cases for service in case.services), folder)
    builds: dict[tuple[object, ...], Prepared] = {}
    for case in study.cases:
        if (key := _builds(case)) not in builds:
            builds[key] = prepare(case.services, cache=cache, on_line=on_line, folder=folder)
    values = {(kept["service"], kept["name"], kept["run"]): Calibrated(**kept) for kept in calibrated_before}
    for case in study.cases:
        for service in case.services:
            for calibration in _calibrations((service,)):
                if calibration not in values:
                    values[calibration] = calibrate(service, builds[_builds(case)], on_line=on_line)
    return Preparations(builds, values)


@dataclass(frozen=True, slots=True)
class Preparations:
    """Built environments of the services of each case, and the calibrated values."""

    builds: Mapping[tuple[object, ...], Prepared]
    calibrated: Mapping[CalibrationKey, Calibrated]

    def of(self, case: Case) -> Prepared:
        """Return the environments of one case."""
        return self.builds[_builds(case)]

    def values_of(self, case: Case) -> dict[str, Scalar]:
        """Return the value of each calibrated name in one case."""
        values = (self.calibrated[key] for key in _calibrations(case.services))
        return {value.name: value.value for value in values}

    def facts(self) -> dict[str, Any]:
        """Return the contribution to environment.json.

        `builds`: digest and package versions of each service's environment. `parts`: version of each part
        that the lab provides, or the reason why it is left out. `calibrated`: the calibrated values.
        """
        builds: dict[str, dict[str, object]] = {}
        parts: dict[str, str] = {}
        for prepared in self.builds.values():
            for service, environment in prepared.environments.items():
                if environment.digest is not None:
                    packages = _packages(environment.folder)
                    builds[service] = {"digest": environment.digest, "packages": packages}
            parts |= prepared.versions
            parts |= {service: f"left out: {why}" for service, why in prepared.absent.items()}
        calibrated = [asdict(value) for value in self.calibrated.values()]
        return {"builds": builds, **({"parts": parts} if parts else {})} | (
            {"calibrated": calibrated} if calibrated else {}
        )


def _packages(environment: Path | None) -> dict[str, str]:
    """Return the Python packages in an environment; empty for other kinds of build."""
    places = [] if environment is None else [str(p) for p in environment.glob("lib/python*/site-packages")]
    packages = importlib.metadata.distributions(path=places) if places else ()
    return dict(sorted((package.name, package.version) for package in packages))


def _builds(case: Case) -> tuple[object, ...]:
    return tuple((service.name, service.dir, service.build) for service in case.services)


def _calibrations(services: Iterable[Service]) -> list[CalibrationKey]:
    return [(s.name, s.calibrate.gives, s.calibrate.run) for s in services if s.calibrate is not None]
