"""`loadlens fleet`: certificates for a fleet, and a look at its nodes before they make loads."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from loadlens.cli.fleet.nodes import FLEET, INSECURE_FLEET, INSTALL, PACKAGE, say
from loadlens.cli.options import Example, argument, choice, option, verb
from loadlens.errors import ExitCode, UsageError

if TYPE_CHECKING:
    import click

    from loadlens.fleet.survey import Surveyed

ACTIONS: Final = ("certs", "doctor")
SCHEMA_VERSION: Final = 1  # of --json


def actions(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Return names of actions."""
    return [name for name in ACTIONS if name.startswith(begun)]


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """Options of `fleet`."""

    action: str = argument(
        "WHAT",
        "certs: make certificates for TLS in the folder PLACE. doctor: look at every node of --fleet, and at "
        "its path to the URL in PLACE if there is one.",
        shell_complete=actions,
    )
    place: str | None = argument("[PLACE]", "A folder for certs, a URL for doctor.", default=None)
    fleet: str | None = option(
        FLEET[0], "For doctor: where the nodes are, as hit takes it. Example: --fleet ssh:gen1,gen2"
    )
    insecure_fleet: bool = option(*INSECURE_FLEET)
    measure: bool = option(
        "--measure/--no-measure",
        "For doctor: load a test server on each machine for some 20 s, and keep its ceiling there, so that "
        "hit and run refuse a share beyond it. Default: measure.",
        default=True,
    )
    as_json: bool = option("--json", "For doctor: print a line of JSON (docs/reference/doctor-json.md).")


@verb(
    FleetOptions,
    Example("loadlens fleet certs certificates", "an authority, and keys for all sides"),
    Example("loadlens fleet doctor --fleet ssh:gen1,gen2", "what can each node do?"),
    Example("loadlens fleet doctor http://192.0.2.10:8080/ --fleet fleet.json", "and reach this?"),
)
def fleet(given: FleetOptions) -> None:
    """Make certificates for a fleet of machines, or say what each of its nodes can do.

    `doctor` prints one line a node and its problems; exit 3 when a node cannot make loads.
    """
    action = choice(given.action, ACTIONS, "WHAT", "action")
    if find_spec(PACKAGE) is None:
        raise UsageError(f"a fleet needs more packages: {INSTALL}")
    if action == "certs":
        _certs(given)
    else:
        _doctor(given)


def _certs(given: FleetOptions) -> None:
    if given.place is None:
        raise UsageError("certs needs a folder", where="PLACE", hint="loadlens fleet certs certificates")
    if given.fleet is not None or given.as_json:
        raise UsageError(
            "certs looks at no fleet", where="--fleet" if given.fleet else "--json", hint="without it"
        )
    if find_spec("cryptography") is None:
        raise UsageError(f"certificates need more packages: {INSTALL}")
    from loadlens.fleet import certificates
    from loadlens.report.write.terminal.printing import print_lines

    folder = Path(given.place)
    certificates.make(folder)
    names = (certificates.AUTHORITY, *certificates.PARTIES)
    flags = "--tls-ca-file ca.pem --tls-cert {0}.pem --tls-key {0}.key"
    print_lines(
        [
            f"● made in {folder}, valid for {certificates.VALID.days} days: {', '.join(names)}",
            "  keep ca.key here: a program with it can join the fleet; copy ca.pem and one pair to each side",
            f"  scheduler   dask scheduler --protocol tls {flags.format('scheduler')}",
            f"  each node   dask worker tls://SCHEDULER:8786 {flags.format('node')}",
            f"  here        export DASK_DISTRIBUTED__COMM__TLS__CA_FILE={folder / 'ca.pem'}",
            f"              export DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT={folder / 'controller.pem'}",
            f"              export DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY={folder / 'controller.key'}",
        ]
    )


def _doctor(given: FleetOptions) -> None:
    if given.fleet is None:
        raise UsageError("doctor needs a fleet", where="--fleet", hint="--fleet local:2")
    target = None if given.place is None else _target(given.place)
    from loadlens.fleet.place import place_of

    place = place_of(given.fleet)  # refused before Dask is loaded, which takes a second
    from loadlens.fleet.cluster import connect
    from loadlens.fleet.survey import survey
    from loadlens.report.write.terminal.printing import print_lines

    with connect(place, insecure=given.insecure_fleet, say=say) as nodes:
        surveyed = survey(nodes, target, measures=given.measure)
        silent = nodes.silent
    if given.as_json:
        print(json.dumps(_as_json(surveyed, silent), ensure_ascii=False, allow_nan=False))
    else:
        lines = [line for each in surveyed for line in lines_of(each)]
        print_lines([*lines, *(f"■ the node at {address} did not answer" for address in silent)])
    if silent or not all(each.is_fit for each in surveyed):
        sys.exit(int(ExitCode.TESTBED))


def _target(url: str) -> tuple[str, int]:
    """Return host and port of a URL.

    Raises:
        UsageError: It is none.
    """
    from loadlens.cli.hit_requests import parts_of

    parts = parts_of(url)
    return parts.hostname or "", parts.port or {"http": 80, "https": 443}[parts.scheme]


def lines_of(surveyed: Surveyed) -> list[str]:
    """Return the line of a node, and two for each problem with advice."""
    from loadlens.present import numbers, words

    states = {problem.state for problem in surveyed.problems}
    state: Literal["bad", "caution", "ok"] = (
        "bad" if "bad" in states else "caution" if "caution" in states else "ok"
    )
    parts = [words.plural(surveyed.node.threads, "core")]
    made = surveyed.calibration
    if made is not None:
        alone, rest = made["one_thread"], made["all_threads"]
        rate, late = numbers.count(round(alone["requests_per_s"])), made["lateness"][-1]["p99_s"]
        parts.append(f"{rate} requests/s on 1 thread")
        if rest["threads"] > 1:
            rate = numbers.count(round(rest["requests_per_s"]))
            parts.append(f"{rate} on {rest['threads']} with their test server")
        parts.append(f"late by {numbers.with_unit(late, 's')} at p99")
        parts.append(f"timer {numbers.with_unit(made['timer']['late_p99_s'], 's')}")
    if surveyed.local_ports is not None:
        parts.append(f"{numbers.count(surveyed.local_ports)} ports")
    if surveyed.descriptors is not None:
        parts.append(f"{numbers.count(surveyed.descriptors)} descriptors")
    if surveyed.clock_error_s is not None and surveyed.round_trip_s is not None:
        parts.append(f"clock ±{numbers.with_unit(surveyed.clock_error_s, 's')}")
        parts.append(f"round trip {numbers.with_unit(surveyed.round_trip_s, 's')}")
    if surveyed.connect_s is not None:
        parts.append(f"connects in {numbers.with_unit(surveyed.connect_s, 's')}")
    lines = [f"{words.GLYPHS[state]} {surveyed.node.name}: {', '.join(parts)}"]
    for problem in surveyed.problems:
        lines.append(f"  {words.GLYPHS[problem.state]} {words.plain(problem.words)}")
        if problem.advice:
            lines.append(f"    try {problem.advice}")
    return lines


def _as_json(surveyed: list[Surveyed], silent: tuple[str, ...]) -> dict[str, Any]:
    from loadlens import __version__

    return {
        "schema_version": SCHEMA_VERSION,
        "tool": f"loadlens {__version__}",
        "nodes": [asdict(each) | {"is_fit": each.is_fit} for each in surveyed],
        "silent": list(silent),
    }
