"""Machine-specific values for a study: run a command once and take its last line as the value."""

from __future__ import annotations

import secrets
import shlex
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from loadlens import temporary, units
from loadlens.errors import TestbedError
from loadlens.model.topology import Calibrate, Scalar, Service
from loadlens.testbed.build import Prepared
from loadlens.testbed.commands import arguments
from loadlens.testbed.keeper import Command, Keeper
from loadlens.testbed.placement import Placement
from loadlens.testbed.ports import HOST
from loadlens.testbed.replica_names import Names
from loadlens.testbed.replicas import environment_of

CALIBRATION_WITHIN_S = 600.0
LONGEST = 200  # characters of a value


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Value printed by one calibration command."""

    service: str
    name: str
    run: str
    value: Scalar
    seconds: float


def calibrate(service: Service, prepared: Prepared, *, on_line: Callable[[str], None]) -> Calibrated:
    """Run a service's calibration; nothing else of the study runs meanwhile.

    The command has the service's folder, environment and limits. Variables that name ports or other services
    are left out, because neither exists yet.

    Raises:
        TestbedError: The command failed (the error carries its last output), or its last line is no value.
    """
    wanted = service.calibrate
    assert wanted is not None, "only services with a calibration get here"
    where = f"services.{service.name}.calibrate"
    began = time.monotonic()
    folder = temporary.name("loadlens-calibrate")
    placement = Placement()
    try:
        names = Names({"host": HOST, "scratch": str(folder)})
        without_ports = replace(service, env=tuple(pair for pair in service.env if names.knows_all(pair[1])))
        environment, hidden = environment_of(
            without_ports,
            names,
            prepared.environment(service.name),
            temporary=folder,
            where=f"services.{service.name}",
        )
        place = placement.place(
            f"{service.name}.calibrate", service.limits, where=f"services.{service.name}.limits"
        )
        command = Command(
            arguments(wanted.run, names, where=f"{where}.run"),
            environment,
            prepared.folder(service.name),
            log=folder / "calibrate.log",
            follow=True,
            cpus=place.cpus,
            cgroups=place.doors,
        )
        marker = f"calibrate-{secrets.token_hex(6)}"
        lines: list[str] = []

        def hear(line: str) -> None:
            lines.append(line)
            on_line(f"{service.name}: {line}")

        with Keeper(marker=marker, scratch=(folder,), secret_values=hidden) as keeper:
            folder.mkdir(mode=0o700)
            title = f"calibration of {service.name}"
            try:
                keeper.run(title, command, within_s=CALIBRATION_WITHIN_S, on_line=hear)
            except TestbedError as error:
                hint = f"run it by hand in {command.cwd}: {shlex.join(command.argv)}"
                raise TestbedError(error.message, where=f"{where}.run", hint=hint) from None
        value = _value(lines, wanted, where)
    finally:
        placement.remove()
        shutil.rmtree(folder, ignore_errors=True)
    on_line(f"{service.name}: ${wanted.gives} is {value}")
    return Calibrated(service.name, wanted.gives, wanted.run, value, time.monotonic() - began)


def _value(lines: list[str], wanted: Calibrate, where: str) -> Scalar:
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if not last or len(last) > LONGEST:
        printed = f"a line of {len(last):,} characters" if last else "nothing"
        raise TestbedError(
            f"the calibration of ${wanted.gives} printed {printed}",
            where=f"{where}.run",
            hint="print the value alone on the last line",
        )
    try:
        value = units.scalar(last)
    except units.UnitError:
        return last
    return last if value is None else value
