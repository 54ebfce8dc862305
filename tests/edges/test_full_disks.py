"""Results on their way to a full disk, or to a system that takes none: shown, and complete elsewhere."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

import loadlens
from tests.edges.commands import Done, assert_is_clean, run

FULL = "cannot write /dev/full: no space left on device"
NOBODY = "http://127.0.0.1:1"


@dataclass(frozen=True)
class Edge:
    """A command that ends with 5: what it says, prints and writes all the same, and must not leave."""

    command: str
    stderr: tuple[str, ...] = (FULL,)
    stdout: str = ""
    files: tuple[str, ...] = ()
    not_left: tuple[str, ...] = ()


HIT = "$L hit $U -n 50 -q -o r"
EDGES = (
    # longer than the 5 s between two deliveries
    Edge("$L hit $U -r 20 -d 6s -q -o r -o influx=/dev/full,csv=a.csv", stdout="errors 0", files=("a.csv",)),
    *(
        Edge(f"{HIT} -o {name}=/dev/full,md=a.md", stdout="errors 0", files=("a.md",))
        for name in ("json", "csv", "junit", "smaller", "bigger", "bencher", "influx", "parquet")
    ),
    Edge(
        f"{HIT} -o json=/dev/full,influx=/dev/full,parquet=a.parquet",
        (f"{FULL}; {FULL}",),
        stdout="errors 0",
        files=("a.parquet",),
    ),
    Edge(
        f"{HIT} -o otlp={NOBODY},prometheus={NOBODY}/write,influx={NOBODY}/write,md=a.md",
        tuple(f"cannot send to {NOBODY}{path}: connection refused" for path in ("", "/write")),
        stdout="errors 0",
        files=("a.md",),
    ),
    Edge("ulimit -f 1; $L explain $R -q -o parquet=p", ("cannot write p: file too large",), "/s"),
    Edge(
        "ulimit -f 1; $L report $R --json -o json=a.json",
        ("cannot write a.json: file too large",),
        '"answer"',
        not_left=("a.json",),
    ),
    Edge("$L report $R -o csv=/dev/full,md=a.md", stdout="report.html", files=("a.md",)),
    Edge("$L report $R --json -o parquet=/dev/full", stdout='"answer"'),
    Edge("$L explain $R -q -o md=/dev/full,json=a.json", stdout="/s", files=("a.json",)),
    Edge("$L capacity $R -q -o parquet=/dev/full", stdout="/s"),
    Edge("$L compare $R $R -q -o csv=/dev/full --page a.html", stdout="ndecided", files=("a.html",)),
    Edge("$L compare $R $R -q --page /dev/full", stdout="ndecided"),
    Edge("$L history $R -q -o csv=/dev/full --page a.html", stdout="1 record", files=("a.html",)),
    Edge("$L history $R -q --page /dev/full", stdout="1 record"),
    Edge("$L run $S -o r -q -o csv=/dev/full,md=a.md", stdout="/s", files=("a.md", "r/report.html")),
    Edge("$L init $U -o /dev/full --force", ("cannot write '/dev/full': no space left on device",)),
    Edge(
        "ulimit -f 1; $L init $U/$(printf %01500d 0) -o s",
        ("cannot write 's': file too large",),
        not_left=("s",),
    ),
)


def test_a_result_is_shown_and_complete_elsewhere(forking_settings: dict[str, str], tmp_path: Path) -> None:
    def of_one(numbered: tuple[int, Edge]) -> Done:
        folder = tmp_path / str(numbered[0])
        folder.mkdir()
        return run(numbered[1].command, folder, forking_settings)

    with ThreadPoolExecutor(4) as pool:  # some wait
        ends = list(pool.map(of_one, enumerate(EDGES)))

    for number, (edge, done) in enumerate(zip(EDGES, ends, strict=True)):
        shown = edge.command + done.shown
        assert_is_clean(done)
        assert done.code == 5, shown
        assert all(part in done.stderr for part in edge.stderr), shown
        assert edge.stdout in done.stdout, shown
        assert all((tmp_path / str(number) / name).stat().st_size for name in edge.files), shown
        assert not any((tmp_path / str(number) / name).exists() for name in edge.not_left), shown
        if (record := tmp_path / str(number) / "r").exists():
            assert loadlens.open(record).trials[0].is_sealed, shown


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a disk")
@pytest.mark.parametrize(
    ("size_kib", "file", "stdout"),
    [
        (16, "plan.json", ""),
        (64, "samples.parquet", "Last trial, not in the record"),
        (128, "report.html", "/s"),
    ],
)
def test_a_study_on_a_disk_that_fills_up_says_where_and_shows_what_it_has(
    size_kib: int, file: str, stdout: str, settings: dict[str, str], tmp_path: Path
) -> None:
    """Its trial needs some 90 KiB, and its report 80 more."""
    mounted = f"mkdir m; mount -t tmpfs -o size={size_kib}k none m"

    done = run(f"unshare -m bash -c '{mounted}; $L run $S -q -o m/r'", tmp_path, settings)

    assert_is_clean(done)
    assert done.code == 5, done.shown
    assert "cannot write: No space left on device" in done.stderr, done.shown
    assert f"/{file}\n" in done.stderr, done.shown
    assert stdout in done.stdout, done.shown
