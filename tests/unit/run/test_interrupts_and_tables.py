"""A Ctrl-C while tables are computed only asks for the end."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, threading, time
from contextlib import nullcontext
from loadlens.record.writer import _hear_ctrl_c_first
from loadlens.run.interrupts import Interrupts

signal.signal(signal.SIGINT, signal.default_int_handler)
over = threading.Event()

def compute():
    import polars
    column = polars.int_range(2_000_000, eager=True).alias("a")
    while not over.is_set():
        column.to_frame().group_by((polars.col("a") * 7919 % 999_983).alias("b")).agg(polars.col("a").mean())

def interrupt():
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.3)
    over.set()

with ENTERED:
    threading.Thread(target=interrupt).start()
    compute()
    print(int(interrupts.code))
"""


@pytest.mark.parametrize(
    "entered",
    [
        "Interrupts() as interrupts",
        "Interrupts(has_tables=False) as interrupts, nullcontext(_hear_ctrl_c_first())",
    ],
    ids=["of a study", "of one load, when its record is sealed"],
)
def test_a_signal_while_tables_are_computed_is_the_runs_alone(entered: str) -> None:
    """Polars that is loaded under a handler raises KeyboardInterrupt by itself in most such runs."""
    program = PROGRAM.replace("ENTERED", entered)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert done.stdout == "130\n", done.stderr
