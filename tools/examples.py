"""Run the marked commands of the documentation and write their output into the pages.

    python tools/examples.py [PAGE ...]     every page of docs/ and README.md, or these

A console block below `<!-- run -->` is run: each line that begins with `$ ` is a command, what follows it is
its output. The mark can say more: `<!-- run: exit 99, head 12 -->`. `exit N`: the exit code that is right;
`head N`: only so many lines of output are kept; `exact`: the output is always the same, and a test compares
it. Standard error is shown only of a command that fails.

The blocks of a page with a title (```yaml title="shop.yaml") are the files that later commands find in their
folder, next to those of docs/examples. `shop.py` of that folder runs on port 8080, and with TLS on port 8443;
both are replaced by free ports while a command runs, so several can run at a time.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
EXAMPLES: Final = ROOT / "docs" / "examples"
BLOCK: Final = re.compile(
    r"^(?:<!-- run(?::(?P<mark>[^\n]*?))? ?-->\n+)?(?P<open> *```(?P<info>[^\n`]*)\n)(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
TITLE: Final = re.compile(r'title="([^"]+)"')
LONGEST_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    language: str
    title: str
    text: str
    place: tuple[int, int]  # of the text within the page
    is_run: bool
    exit_code: int
    head: int | None  # lines of output that are kept
    is_exact: bool


@dataclass(slots=True)
class Outcome:
    """A page after its commands were run."""

    text: str
    faults: list[str] = field(default_factory=list)  # another exit code than the mark says
    stale: list[str] = field(default_factory=list)  # another output than an exact one


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page in their order."""
    fenced = []
    for match in BLOCK.finditer(page):
        mark, info = match["mark"] or "", match["info"]
        title = TITLE.search(info)
        code, head = re.search(r"exit (\d+)", mark), re.search(r"head (\d+)", mark)
        fenced.append(
            Block(
                language=info.split(" ")[0],
                title=title[1] if title else "",
                text=match["text"],
                place=match.span("text"),
                is_run=match[0].startswith("<!-- run"),
                exit_code=int(code[1]) if code else 0,
                head=int(head[1]) if head else None,
                is_exact="exact" in mark,
            )
        )
    return fenced


def write_files(page: str, folder: Path) -> None:
    """Write the titled blocks of a page, and the files of docs/examples, into a folder."""
    shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
    for block in blocks(page):
        if block.title:
            _write(folder / block.title, block.text)


def _write(path: Path, text: str) -> None:
    """Write a file of a page, and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def commands(text: str) -> list[str]:
    """Return the commands of a console block, continued lines joined."""
    lines = re.findall(r"^\$ ((?:.*\\\n)*.*)$", text, re.MULTILINE)
    return [re.sub(r"\\\n\s*", "", line) for line in lines]


def run_page(page: str) -> Outcome:
    """Run the marked commands of a page in a new folder, with the shop next to them."""
    outcome, shift = Outcome(page), 0
    with tempfile.TemporaryDirectory(prefix="loadlens-docs-") as name, _shop(Path(name)) as ports:
        folder = Path(name)
        for block in blocks(page):
            if block.title:
                _write(folder / block.title, _replaced(block.text, ports))
            if block.is_run:
                lines = _shown(block.text)
                text = "".join(_answered(block, line, folder, ports, outcome) for line in lines)
                begin, end = (place + shift for place in block.place)
                outcome.text = outcome.text[:begin] + text + outcome.text[end:]
                shift += len(text) - len(block.text)
    return outcome


def _shown(text: str) -> list[str]:
    """Return the commands of a console block as they are written, with `$ ` and continued lines."""
    return re.findall(r"^\$ (?:.*\\\n)*.*\n", text, re.MULTILINE)


def _answered(block: Block, line: str, folder: Path, ports: dict[int, int], outcome: Outcome) -> str:
    """Run one command and return it with its output."""
    command = commands(line)[0]
    width = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    done = subprocess.run(
        ["bash", "-c", _replaced(command, ports)],
        cwd=folder,
        env={**os.environ, **width, "PATH": path},
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    text = done.stdout + (done.stderr if done.returncode else "")
    text = _replaced(text, {free: port for port, free in ports.items()}).replace(str(folder), ".")
    lines = [row.rstrip() for row in text.strip("\n").splitlines()]
    if done.returncode != block.exit_code:
        outcome.faults.append(
            f"{command}: exit {done.returncode} instead of {block.exit_code}\n{done.stderr}"
        )
    if block.head is not None and len(lines) > block.head:
        lines = ["\n".join(lines[: block.head]).rstrip(), "..."]
    shown = line + "".join(f"{row}\n" for row in lines)
    if block.is_exact and shown not in block.text:
        outcome.stale.append(f"{command}: prints\n{shown}instead of\n{block.text}")
    return shown


def _replaced(text: str, ports: dict[int, int]) -> str:
    """Return a text with ports replaced."""
    return re.sub(r"\b(\d{4})\b", lambda port: str(ports.get(int(port[1]), port[1])), text)


@contextmanager
def _shop(folder: Path) -> Iterator[dict[int, int]]:
    """Run the shop with and without TLS on free ports; `ca.pem` in the folder is its certificate."""
    shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
    pem = folder / "shop.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=shop.test", "-addext", "subjectAltName=DNS:shop.test,IP:127.0.0.1"),
            *("-addext", "basicConstraints=CA:FALSE"),
            *("-keyout", "key.pem", "-out", "ca.pem"),
        ],
        cwd=folder,
        capture_output=True,
        check=True,
    )
    pem.write_text((folder / "ca.pem").read_text() + (folder / "key.pem").read_text())
    ports = {8080: _free_port(), 8443: _free_port()}
    started = [
        subprocess.Popen(
            ["python3", "shop.py", "--port", str(ports[port]), *more],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for port, more in ((8080, ()), (8443, ("--tls", str(pem))))
    ]
    try:
        for server in started:
            assert server.stdout is not None
            server.stdout.readline()  # it says where it listens
        yield ports
    finally:
        for server in started:
            server.send_signal(signal.SIGTERM)
            server.communicate()


def _free_port() -> int:
    """Return a free port of four digits, so that columns of the output stay as wide."""
    for port in range(9200 + os.getpid() % 700, 10_000):
        with socket.socket() as server:
            try:
                server.bind(("127.0.0.1", port))
            except OSError:
                continue
            if port not in _GIVEN:
                _GIVEN.add(port)
                return port
    raise OSError("no free port of four digits")


_GIVEN: set[int] = set()


def pages() -> list[Path]:
    """Return the pages with commands to run."""
    return [
        path
        for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
        if any(block.is_run for block in blocks(path.read_text(encoding="utf-8")))
    ]


def main() -> int:
    """Refresh pages; exit 1 if a command ended otherwise than its mark says."""
    failed = False
    for path in [Path(word).resolve() for word in sys.argv[1:]] or pages():
        outcome = run_page(path.read_text(encoding="utf-8"))
        path.write_text(outcome.text, encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {'; '.join(outcome.faults) or 'refreshed'}", flush=True)
        failed |= bool(outcome.faults)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
