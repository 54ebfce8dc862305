"""Settings of every test: the slow ones by folder, and the count of repeated judgements."""

from __future__ import annotations

import contextlib
import gc
import re
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.calm import REPEATED, TURNS

TESTS = Path(__file__).parent
# Everything here drives real services for real seconds. A slow test elsewhere has the mark itself.
SLOW = (TESTS / "edges", TESTS / "end_to_end", TESTS / "studies", TESTS / "catalogue/test_physics.py")
# Files that judge times for long come first, one after the other in one process: side by side they fail, and
# a judgement that is repeated stops all others. Begun last, they would leave a core idle.
_JUDGING = (
    *("capacity", "spans", "fleet_local", "compare", "database_lock", "predictions", "stacks", "demo"),
    "bench",
)
FIRST = tuple(f"tests/end_to_end/test_{name}.py" for name in _JUDGING)
# Files whose tests mostly wait run in a process of their own, on what the others leave of the cores.
_WITHOUT_CORES = ("kills", "prometheus", "hit_own_faults", "interruptions", "merge", "catalogue")
WAITING = (
    *(f"tests/edges/test_{name}.py" for name in ("held_up", "table")),
    *(f"tests/end_to_end/test_{name}.py" for name in _WITHOUT_CORES),
)
# Many short ones that share next to nothing: they fill up what longer files leave of the cores.
APART = ("tests/catalogue/test_physics.py", "tests/edges/test_table.py")
MARKS = re.compile(r"\bmark\.slow\b|\bwhere_calm\b")  # of a slow test elsewhere
REASON = "why it was judged again"

# Under nohup, or in the background of a script, every program that a test starts ignores signals as well.
for number in (signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

# An example that takes long says something of the machine, and nothing of what is tested.
settings.register_profile("loadlens", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loadlens")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out modules without a test of the tier that was asked for: all of them take a process 10 s."""
    is_slow = any(collection_path.is_relative_to(place) for place in SLOW)
    match config.getoption("markexpr"):
        case "not slow" if is_slow:
            return True
        case "slow" if collection_path.suffix == ".py" and not is_slow:
            return MARKS.search(collection_path.read_text()) is None or None
    return None


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark by folder what `make test` leaves to `make test-all`."""
    for item in items:
        if any(item.path.is_relative_to(place) for place in SLOW):
            item.add_marker(pytest.mark.slow)
        elif item.get_closest_marker("slow") and not MARKS.search(item.path.read_text()):
            raise pytest.UsageError(f"{item.nodeid}: neither tier runs it, its file does not say slow")


def pytest_collection_finish() -> None:
    """Leave what was loaded for the tests out of every later collection of garbage."""
    gc.collect()
    gc.freeze()


class BothCoresBusy(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives each core a file after another: long ones, those with most tests, and single tests of some."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return nodeid if file in APART else file

    def _assign_work_unit(self, node: WorkerController) -> None:
        waiting = [unit for unit in self.workqueue if unit.partition("::")[0] in WAITING]
        judging = [unit for unit in FIRST if unit in self.workqueue]
        others = [unit for unit in self.workqueue if unit not in judging and unit not in waiting]
        alone = [unit for unit in others if unit.partition("::")[0] in APART]
        match self.nodes.index(node):
            case 0:
                wanted = waiting or alone or others or judging
            case 1:
                wanted = judging or others or waiting
            case _:
                wanted = others or judging or waiting
        self.workqueue.move_to_end(wanted[0], last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> BothCoresBusy | None:
    """Schedule what asked for whole files."""
    return BothCoresBusy(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run a slow test while others run, unless one of them asks to be alone."""
    REPEATED.clear()
    with TURNS.beside_others() if item.get_closest_marker("slow") else contextlib.nullcontext():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Note in the test's report every judgement that was repeated; xdist carries it to the main process."""
    try:
        return (yield)
    finally:
        item.user_properties += [(REASON, why_not) for why_not in REPEATED]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the repeated judgements and their number, 0 included: tools/test.py adds them up."""
    outcomes = ("passed", "failed", "skipped")
    repeated = [
        f"{report.nodeid}: {why_not}"
        for outcome in outcomes
        for report in terminalreporter.getreports(outcome)
        if report.when == "call"
        for name, why_not in report.user_properties
        if name == REASON
    ]
    terminalreporter.section("repeated judgements")
    for line in repeated:
        terminalreporter.write_line(line)
    terminalreporter.write_line(f"{len(repeated)} judgements repeated")
