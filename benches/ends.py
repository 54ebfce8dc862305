"""End loads in every way at random moments; hold what is kept of each against the service's own books.

    python -m benches.ends [--moments 200] [--seed 1] [--ways SIGKILL ...]

A load is `hit` with a schedule or with users, a study of three trials, or `explain`. It is ended once, twice,
or only held up for a while. After each moment the record has to open, the law of counting has to hold, and no
process may be left. After an end in order the record has every request that the service received; after a
kill it has no request too many, and lacks at most what was sent since counts were last written.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benches.measuring import ROOT, Origin, find_origin, origin
from loadlens.model.counters import StreamCounters
from loadlens.record import RunRecord, TrialRecord, is_record, open_run

RATE: Final = 400.0
LENGTH_S: Final = 3.0
MOST_UNKNOWN_S: Final = 1.5  # of the load before a kill: counts are written every second
LEFT_WITHIN_S: Final = 5.0
ENDS_WITHIN_S: Final = 90.0
MOST_LOOKS: Final = 20  # that `explain` takes at the service itself, and notes as no request of the load
STUDY: Final = """\
entry: {url}
load: {{rate: {rate}, warmup: 300ms, duration: 1s}}
trials: 3
"""


def signal_all(lab: subprocess.Popen[bytes], *numbers: int) -> None:
    """Send signals one after another, as a terminal does: to the whole group."""
    for number in numbers:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(lab.pid, number)
        time.sleep(0.05)


def held_up(lab: subprocess.Popen[bytes], drawn: random.Random) -> None:
    """Stop every process of the lab for a while."""
    signal_all(lab, signal.SIGSTOP)
    time.sleep(drawn.uniform(0.1, 2.0))
    signal_all(lab, signal.SIGCONT)


Way = Callable[[subprocess.Popen[bytes], random.Random], None]
WAYS: Final[dict[str, Way]] = {
    "Ctrl-C": lambda lab, _: signal_all(lab, signal.SIGINT),
    "Ctrl-C twice": lambda lab, _: signal_all(lab, signal.SIGINT, signal.SIGINT),
    "SIGTERM": lambda lab, _: lab.send_signal(signal.SIGTERM),
    "SIGHUP": lambda lab, _: lab.send_signal(signal.SIGHUP),
    "SIGKILL": lambda lab, _: lab.kill(),
    "all killed": lambda lab, _: signal_all(lab, signal.SIGKILL),
    "held up": held_up,
}
KILLS: Final = ("SIGKILL", "all killed")
LOADS: Final = {
    "schedule": ("hit", "{url}", "-r", f"{RATE:.0f}", "-d", f"{LENGTH_S:.0f}s", "-o", "{record}"),
    "users": ("hit", "{url}", "-c", "8", "-d", f"{LENGTH_S:.0f}s", "--warmup", "500ms", "-o", "{record}"),
    "study": ("run", "{study}", "-q", "-o", "{record}"),
    "explain": ("explain", "{url}", "--budget", "20s", "-o", "{record}"),
}


@dataclass(frozen=True, slots=True)
class Moment:
    """A load, and how and when it is ended."""

    load: str
    way: str
    after_s: float

    @property
    def words(self) -> str:
        """The moment in words."""
        return f"{self.load}, {self.way} after {self.after_s:.2f} s"


def main() -> int:
    """Exit 1 if an end left a wrong record, a process or an internal error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--loads", nargs="+", choices=LOADS, default=list(LOADS))
    asked = parser.parse_args()
    drawn = random.Random(asked.seed)
    outcomes: Counter[str] = Counter()
    faulty = 0
    with origin(find_origin(), 0) as server, tempfile.TemporaryDirectory() as folder:
        for number in range(1, asked.moments + 1):
            load, way = drawn.choice(asked.loads), drawn.choice(asked.ways)
            moment = Moment(load, way, drawn.uniform(0.0, LENGTH_S + 2.0))
            outcome, faults = once(server, moment, Path(folder) / str(number), drawn)
            outcomes[outcome] += 1
            faulty += bool(faults)
            print(f"{number}: {moment.words}: {'; '.join([outcome, *faults])}", flush=True)
    print(f"{asked.moments} moments, {faulty} wrong: {dict(outcomes)}")
    return int(faulty > 0)


def once(server: Origin, moment: Moment, folder: Path, drawn: random.Random) -> tuple[str, list[str]]:
    """Make one load and end it; what became of it, and what is wrong with that."""
    folder.mkdir()
    url = f"http://127.0.0.1:{server.port}/delay/2"
    (folder / "study.yaml").write_text(STUDY.format(url=url, rate=RATE))
    record = folder / "record"
    words = {"url": url, "record": record, "study": folder}
    command = [sys.executable, "-m", "loadlens", *(part.format(**words) for part in LOADS[moment.load])]
    with open(folder / "out", "wb") as out:
        server.new_books()
        lab = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "OF_LOAD": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=heard,
        )
        time.sleep(moment.after_s)
        is_ended = lab.poll() is None
        if is_ended:
            WAYS[moment.way](lab, drawn)
        try:
            code = lab.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            signal_all(lab, signal.SIGKILL)
            lab.wait()
            return "hangs", [f"it had not ended after {ENDS_WITHIN_S:.0f} s"]
    printed = (folder / "out").read_text(errors="replace")
    faults = [f"printed: {printed[-300:]}"] if "Traceback" in printed or "internal error" in printed else []
    faults += [f"left: {left}"] if (left := left_of(folder)) else []
    received = server.books()["received"]
    kept = "no record"
    if is_record(record):
        run = open_run(record)
        kept = f"{len(run.trials)} trials"
        faults += faults_of(run, received, moment, is_killed=is_ended and moment.way in KILLS)
    elif received > MOST_LOOKS and not (is_ended and moment.way in KILLS):
        faults.append(f"no record, and the service received {received}")
    return f"{moment.way if is_ended else 'ended by itself'}, exit {code}, {kept}", faults


def heard() -> None:
    """Hear signals in the command, also where this program was started in the background of a script."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def faults_of(run: RunRecord, received: int, moment: Moment, *, is_killed: bool) -> list[str]:
    """Return what the record has other than the service's books."""
    faults = list(run.damage)
    for trial in run.trials:
        faults += trial.damage()
        faults += [
            f"{stream.name}: {stream.law}"
            for stream in (trial.result.streams if trial.result is not None else ())
            if not stream.law_holds
        ]
    issued = sum(issued_in(trial) for trial in run.trials)
    looks = MOST_LOOKS if moment.load == "explain" else 0
    if issued > received:
        faults.append(f"{issued} in the record, and the service received {received}")
    if is_killed:
        unsealed = [trial for trial in run.trials if not trial.is_sealed]
        most = MOST_UNKNOWN_S * per_s(unsealed[-1]) if unsealed else 0.0
    else:
        most = 0.0
    if received - issued > most + looks:
        faults.append(f"{issued} in the record, and the service received {received}: at most {most:.0f} more")
    return faults


def issued_in(trial: TrialRecord) -> int:
    """Return the requests that a trial sent, by its result or by what it wrote before."""
    if trial.result is not None:
        return sum(stream.requests.issued for stream in trial.result.streams)
    return sum(row.issued for row in trial.counters().intervals if isinstance(row, StreamCounters))


def per_s(trial: TrialRecord) -> float:
    """Return the highest rate of a trial in an interval, in requests per second."""
    rows = [row for row in trial.counters().intervals if isinstance(row, StreamCounters) and row.length_s]
    return max((row.issued / row.length_s for row in rows), default=5000.0)


def left_of(folder: Path) -> list[str]:
    """Return the commands of processes that a load began, once the time they have to end is over."""
    until = time.monotonic() + LEFT_WITHIN_S
    while (left := begun_in(folder)) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def begun_in(folder: Path) -> list[str]:
    """Return the commands of live processes that name a folder in their arguments or environment."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command, environment = ((process / name).read_bytes() for name in ("cmdline", "environ"))
            if bytes(folder) in command + environment:  # of a zombie both are empty
                commands.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return commands


if __name__ == "__main__":
    sys.exit(main())
