"""Runtime self-sampling without a change to the service, through the runtime's start-up variables.

Each runtime loads a file of this folder at its start, which writes one JSON object per second and process to
a folder chosen by the testbed; the monitors of the same names read these samples. Sampling opens no port and
blocks nothing in the service; where sampling is impossible, the service runs unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadlens.model.topology import Runtime

FOLDER: Final = "LOADLENS_RUNTIME"  # the variable that names the folder for samples
_HERE: Final = Path(__file__).parent
_BEAM_MODULE: Final = "loadlens_runtime"


@dataclass(frozen=True, slots=True)
class Sampling:
    """Set-up that makes the processes of one runtime sample themselves."""

    variables: Callable[[Path, Mapping[str, str]], dict[str, str]]  # arguments: folder, present environment
    first: Callable[[Path], tuple[str, ...]] | None = None  # a command that prepares the folder


def environment(runtime: Runtime, folder: Path, present: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make a process of this runtime sample itself.

    Args:
        runtime: What runs the service.
        folder: Existing folder for the samples.
        present: The environment so far; the study's own options of the runtime are kept.
    """
    return {FOLDER: str(folder), **RUNTIMES[runtime].variables(folder, present)}


def _node(folder: Path, present: Mapping[str, str]) -> dict[str, str]:
    """Preload the sampler in every Node process and worker thread that inherits the variable."""
    return _added("NODE_OPTIONS", f"--require {_quoted(_HERE / 'node.cjs')}", present)


def _beam(folder: Path, present: Mapping[str, str]) -> dict[str, str]:
    """Start the sampler before the emulator's own command line, which may never end.

    The module is loaded by path, because a release may not search for modules; errors are caught and ignored.
    """
    module = _quoted(folder / _BEAM_MODULE)
    return _added(
        "ERL_AFLAGS", f"-eval 'catch code:load_abs({module}), catch {_BEAM_MODULE}:start()'", present
    )


def _compile(folder: Path) -> tuple[str, ...]:
    return ("erlc", "-o", str(folder), str(_HERE / f"{_BEAM_MODULE}.erl"))


def _quoted(path: Path) -> str:
    return '"{}"'.format(str(path).replace("\\", "\\\\").replace('"', '\\"'))


def _added(name: str, words: str, present: Mapping[str, str]) -> dict[str, str]:
    return {name: f"{present.get(name, '')} {words}".strip()}


RUNTIMES: Final[Mapping[Runtime, Sampling]] = {
    "node": Sampling(_node),
    "beam": Sampling(_beam, _compile),
}
