"""How a runtime is made to tell about itself without a change to the service: by its own start-up variables.

Each runtime reads a file of this folder at its start, which appends one JSON object a second and process to
a folder that the testbed names. The monitors of the same names read what comes. Nothing listens, nothing of
the service waits for anybody, and where it cannot be done the service runs as if nobody had asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadlens.model.topology import Runtime

FOLDER: Final = "LOADLENS_RUNTIME"  # the variable that says where samples go
_HERE: Final = Path(__file__).parent
_BEAM_MODULE: Final = "loadlens_runtime"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How processes of one runtime are made to sample themselves."""

    variables: Callable[[Path, Mapping[str, str]], dict[str, str]]  # given the folder and what is set already
    first: Callable[[Path], tuple[str, ...]] | None = (
        None  # a command that makes what they need in the folder
    )


def environment(runtime: Runtime, folder: Path, present: Mapping[str, str]) -> dict[str, str]:
    """The variables with which a process of this runtime samples itself.

    Args:
        runtime: What runs the service.
        folder: Where its samples go; it must be there.
        present: The environment as it is: what the study says to the runtime stays.
    """
    return {FOLDER: str(folder), **RUNTIMES[runtime].variables(folder, present)}


def _node(folder: Path, present: Mapping[str, str]) -> dict[str, str]:
    """Preloaded by every Node process and worker thread that inherits the variable."""
    return _added("NODE_OPTIONS", f"--require {_quoted(_HERE / 'node.cjs')}", present)


def _beam(folder: Path, present: Mapping[str, str]) -> dict[str, str]:
    """Run by the emulator before what its own command line asks for, which may never end.

    Loaded by its path, because a release may not look for modules; what goes wrong is a value nobody reads.
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
