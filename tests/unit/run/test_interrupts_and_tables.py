"""A Ctrl-C while tables are computed only asks for the end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripts import ROOT

PROGRAM = """
import os, signal, sys, threading, time
from pathlib import Path
from loadlens.run.interrupts import Interrupts
from loadlens.run.single_load import run_hit
from tests import records

signal.signal(signal.SIGINT, signal.default_int_handler)
over = threading.Event()

def compute():
    import polars
    threading.Thread(target=interrupt).start()
    column = polars.int_range(2_000_000, eager=True).alias("a")
    while not over.is_set():
        column.to_frame().group_by((polars.col("a") * 7919 % 999_983).alias("b")).agg(polars.col("a").mean())

def interrupt():
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.3)
    over.set()

def of_a_study():
    with Interrupts() as interrupts:
        compute()
        print(int(interrupts.code))

def of_one_load_with_a_record():
    def load(plan, listener, **_):
        compute()
        print("must stop" if listener.must_stop(None) else "goes on", flush=True)
        os._exit(0)

    run_hit(records.plan(), out=Path(sys.argv[1]), make_load=load)

"""


@pytest.mark.parametrize(
    ("where", "shown"), [("of_a_study", "130\n"), ("of_one_load_with_a_record", "must stop\n")]
)
def test_a_signal_while_tables_are_computed_is_the_runs_alone(where: str, shown: str, tmp_path: Path) -> None:
    """Polars that is loaded under a handler raises KeyboardInterrupt by itself in most such runs."""
    done = subprocess.run(
        [sys.executable, "-c", f"{PROGRAM}{where}()", str(tmp_path / "record")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stdout == shown, done.stderr
