"""Any words on the command line end with a documented code, few lines and nothing left behind.

`LOADLENS_EXAMPLES=n` tries more of them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import click
import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadlens.cli import app
from tests.edges.commands import MARK, marked

EXAMPLES = int(os.environ.get("LOADLENS_EXAMPLES", "150"))
CODES = {0, 2, 3, 4, 5, 6, 99}
ENDED = {130, 143}  # by a signal
SERVES = {0, *ENDED}  # `ui` runs until then, which is no failure
MOST_LINES = 60
MOST_CPU_S = 10.0

PROGRAM = typer.main.get_command(app)
assert isinstance(PROGRAM, click.Group)
OPTIONS = {
    name: sorted({flag for each in verb.params if isinstance(each, click.Option) for flag in each.opts})
    for name, verb in PROGRAM.commands.items()
}
# What takes long by itself is kept short.
SHORTLY = {"demo": b"--list", "doctor": b"--no-measure"}
VALUES = [
    b"0", b"1", b"3", b"-1", b"1e3", b"1.5", b"0s", b"10ms", b"1s", b"5x", b"nan", b"inf", b"1k", b"9" * 30,
    b"", b"-", b"--", b"@", b"@/dev/zero", b"/dev/null", b"/dev/zero", b"/", b".", b"..", b"study.yaml",
    b"record", b"feed.csv", b"body", b"f=feed.csv", b"f=feed.csv,unique", b"1s:5", b"1s:5,0s:1",
    b"uniform:1ms,2ms", b"keep", b"new", b"2xx", b"200,404", b"contains:a", b"regex:(", b"json:a=1",
    b"header:A", b"p99<1s", b"rate>1/s", b"failed<1%", b"p99", b"bearer:HOME", b"basic:a:HOME", b"X: y",
    b"X", b"Host: a", b"{{uuid}}", b"{{f.id}}", b"{{", b"{{int 1}}", b"json=o.json", b"md=o", b"a=b", b"a=",
    b"=b", b"GET", b"curl", b"har", b"wrk.lua", b"bash", b"lock", b"poisson", b"drop", b"\xff", b"\xc3\x28",
    b"\x1b[31m", b"a\nb", b"\r", b"\t", "é".encode(), "\u202e".encode(), b"a" * 300, b"%", b"%s", b"$HOME",
    b"~", b"*",
]  # fmt: skip
STUDY = (
    b"entry: http://127.0.0.1:1\nscenarios: {look: [{get: /}]}\nload: {users: 1, requests: 3}\ntrials: 1\n"
)
# No dot, colon, slash or digit: none of them is the address of another machine.
BYTES = st.binary(min_size=1, max_size=12).map(
    lambda raw: bytes(b for b in raw if b not in b"\0.:/0123456789")
)


def words(url: bytes) -> st.SearchStrategy[list[bytes]]:
    def of_verb(name: str) -> st.SearchStrategy[list[bytes]]:
        flags = st.sampled_from([*OPTIONS[name], "-h"]).map(str.encode)
        urls = [url, url + b"{{uuid}}", url + b"\xff", url + b"\xed\xa0\x80", b"http://127.0.0.1:1/"]
        value = st.one_of(st.sampled_from([*VALUES, *urls]), BYTES)
        with_value = st.tuples(flags, value).map(lambda pair: [pair[0], pair[1]])
        joined = st.tuples(flags, value).map(lambda pair: [pair[0] + b"=" + pair[1]])
        part = st.one_of(with_value, joined, value.map(lambda each: [each]), flags.map(lambda each: [each]))
        begin = [name.encode()] if name else []
        end = [SHORTLY[name]] if name in SHORTLY else [b"-n", b"3"] if name in ("hit", "ab", "hey") else []
        subject = [url] if name in ("hit", "init", "ab", "hey") else [b"http://127.0.0.1:1/"]
        return st.tuples(st.lists(part, max_size=5), st.booleans()).map(
            lambda drawn: [*begin, *(subject if drawn[1] else []), *chain.from_iterable(drawn[0]), *end]
        )

    return st.one_of(
        st.sampled_from(sorted(OPTIONS)).flatmap(of_verb),
        st.lists(st.one_of(BYTES, st.sampled_from(VALUES)), max_size=4),
    )


@dataclass
class Forks:
    """The process that runs commands, and where."""

    process: subprocess.Popen[str]
    folder: Path
    temporary: Path
    mark: str
    count: int = 0

    def run(self, given_words: list[bytes]) -> tuple[dict[str, object], str]:
        self.count += 1
        folder = self.folder / str(self.count)
        folder.mkdir()
        (folder / "study.yaml").write_bytes(STUDY)
        (folder / "feed.csv").write_bytes(b"id,name\n1,a\n2,b\n")
        (folder / "body").write_bytes(b"{}")
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        asked = {"words": [word.hex() for word in given_words], "folder": str(folder)}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        ended = json.loads(self.process.stdout.readline())
        shown = Path(f"{folder}.stderr").read_bytes().decode(errors="replace")
        shutil.rmtree(folder)
        return ended, shown

    def left(self) -> list[str]:
        """Return processes, besides the forking one, and temporary files; waits for what is ending."""
        until = time.monotonic() + 5
        while True:
            processes = [line for line in marked(self.mark) if "tests.edges.forked" not in line]
            remains = [*processes, *map(str, self.temporary.iterdir())]
            if not remains or time.monotonic() > until:
                return remains
            time.sleep(0.02)


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    folder = tmp_path_factory.mktemp("forks")
    temporary = folder / "tmp"
    temporary.mkdir()
    mark = str(folder)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.edges.forked"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: mark, "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(folder / "cache")},
    )
    yield Forks(process, folder, temporary, mark)
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=30)


def test_any_words_end_with_a_documented_code_and_leave_nothing(forks: Forks, url: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(typed=words(url.encode()))
    def judge(typed: list[bytes]) -> None:
        typed = [word for word in typed if b"\0" not in word]
        ended, shown = forks.run(typed)
        report = f"{typed}\n{ended}\n{shown[-3000:]}"
        codes = (SERVES if b"ui" in typed else ENDED) if ended["was_ended"] else CODES
        assert ended["code"] in codes, report
        assert "Traceback" not in shown, report
        assert "internal error" not in shown, report
        assert len(shown.splitlines()) <= MOST_LINES, report
        assert "\x1b" not in shown, report
        assert float(str(ended["cpu_s"])) < MOST_CPU_S, report
        assert forks.left() == [], report

    judge()
