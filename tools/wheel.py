"""Build the packages that users install, and try one the way a user would.

    python tools/wheel.py build        a wheel per platform and the sdist, into dist/ (`make wheel`)
    python tools/wheel.py try [WHEEL]  install a wheel into an empty environment and use it (`make try-wheel`)

Without WHEEL, `try` packs what `make` has compiled for this machine. The environment has no compiler:
pip takes nothing but wheels, and the PATH holds only the environment's own programs. Every verb of the
core runs; each verb of the lab must name the command that installs the rest; then that is installed, and
the README's first command runs. The last line counts the checks.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import venv
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
DIST: Final = ROOT / "dist"
BIN: Final = Path(sys.executable).parent
TARGETS: Final = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
GLIBC: Final = "manylinux2014"  # glibc 2.17 or newer
# zig links LLVM's unwinder, to which LuaJIT cannot register the frames of code that it compiles: an error
# raised there would end the process. So LuaJIT unwinds its own stack.
NO_UNWIND: Final = "-DLUAJIT_NO_UNWIND"
INSTALL_LAB: Final = "pip install 'loadlens[lab]'"
MOST_PACKAGES: Final = 11
MOST_BYTES: Final = 12_000_000
LONGEST_S: Final = 600  # for one command; the README's first one may take most of a minute
URL, FOLDER = "{url}", "{folder}"
# A run of each verb of the core; `{url}` becomes the address of a server, `{folder}` one with a study in it.
CORE_RUNS: Final = {
    "hit": [
        "hit",
        URL,
        "-n",
        "20",
        "-c",
        "2",
        "--out",
        f"csv={FOLDER}/a.csv,md={FOLDER}/a.md,junit={FOLDER}/a.xml",
    ],
    "ab": ["ab", "-n", "20", "-c", "2", URL],
    "hey": ["hey", "-n", "20", "-c", "2", URL],
    "wrk": ["wrk", "-t", "1", "-c", "2", "-d", "1", URL],
    "check": ["check", f"{FOLDER}/study.yaml"],
    "init": ["init", URL, "-o", "-"],
    "schema": ["schema"],
    "steer": ["steer", "--help"],  # it needs a load that runs
    "completion": ["completion", "bash"],
    "doctor": ["doctor", "--no-measure"],
    "fleet": ["fleet", "--help"],  # of the extra `fleet`
    "version": ["version"],
}
# A script of wrk that catches errors in code that LuaJIT compiles, as it does after 56 rounds of a loop.
CAUGHT: Final = """
local caught = 0
for _ = 1, 100 do
  if not pcall(string.rep, "x", 2 ^ 31 - 1) then caught = caught + 1 end
end
function done() print("caught " .. caught) end
"""


class Hello(BaseHTTPRequestHandler):
    """Answers every GET with 200 and six bytes, and keeps the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"hello\n")

    def log_message(self, *_: object) -> None: ...


@contextmanager
def hello_server() -> Iterator[str]:
    """Run a server on a free port of the loopback; give its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Hello) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


class CheckError(Exception):
    """A check failed; the message says how."""


def output_of(
    command: Sequence[str | Path], cwd: Path = ROOT, env: Mapping[str, str] | None = None, *codes: int
) -> tuple[str, str]:
    """Run a command that has to exit with 0, or one of `codes`; return its standard output and error."""
    shown = shlex.join(map(str, command))
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CheckError(f"{shown}: not done after {LONGEST_S} s") from None
    except OSError as fault:
        raise CheckError(f"{shown}: {fault}") from None
    if done.returncode not in (codes or (0,)):
        raise CheckError(f"{shown}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def megabytes(*files: Path) -> str:
    """Return the size of files together."""
    return f"{sum(file.stat().st_size for file in files) / 1e6:.1f} MB"


def can_compile_for(target: str) -> bool:
    """Report whether rustc has the standard library of a target."""
    folder, _ = output_of(["rustc", "--print", "target-libdir", "--target", target])
    return any(Path(folder.strip()).glob("libstd-*.rlib"))


def cflags(target: str) -> str:
    """Return the name of the variable with the flags of C that is compiled for a target."""
    return f"CFLAGS_{target.replace('-', '_')}"


def build(targets: Sequence[str]) -> int:
    """Write the sdist and a wheel per target; skip by name a target that rustc cannot compile for."""
    DIST.mkdir(exist_ok=True)
    for old in (*DIST.glob("loadlens-*.whl"), *DIST.glob("loadlens-*.tar.gz")):
        old.unlink()
    able = [target for target in targets if can_compile_for(target)]
    for target in able:
        began = time.monotonic()
        command = ["maturin", "build", "--release", "--zig", "--target", target, "--compatibility", GLIBC]
        # The first wheel is built from the sdist: so the sdist can be built.
        command += ["--out", str(DIST), *(["--sdist"] if target == able[0] else [])]
        log = DIST / f"{target}.log"
        with log.open("w") as written:
            env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", cflags(target): NO_UNWIND}
            env["TARGET_STRIP"] = "true"  # of LuaJIT's own program, which this machine's strip may not know
            done = subprocess.run(command, cwd=ROOT, env=env, stdout=written, stderr=written, check=False)
        if done.returncode:
            print("\n".join(log.read_text().splitlines()[-20:]))
            print(f"FAILED  {target}: all output is in {log}")
            return 1
        log.unlink()
        print(f"ok      {target} ({time.monotonic() - began:.0f} s)", flush=True)
    for target in [target for target in targets if target not in able]:
        print(f"skipped {target}: rustc lacks its standard library (rustup target add {target})")
    for path in sorted(DIST.glob("loadlens-*")):
        print(f"{megabytes(path):>8}  {path.relative_to(ROOT)}")
    return 0 if able else 1


def first_command(readme: str) -> list[str]:
    """Return the first command of `loadlens` to type in the README; `console` blocks show output to read."""
    for info, block in re.findall(r"^```([^\n]*)\n(.*?)^```", readme, re.DOTALL | re.MULTILINE):
        for line in block.splitlines() if info.strip() != "console" else ():
            if line.startswith("loadlens "):
                return shlex.split(line, comments=True)
    raise CheckError("README.md: no block of code has a line that begins with `loadlens`")


def tracked_files() -> set[str]:
    """Return the files under version control that a wheel must hold, by their names in it."""
    listed, _ = output_of(["git", "ls-files", "python"])
    return {name.removeprefix("python/") for name in listed.splitlines()}


@dataclass(frozen=True, slots=True)
class Environment:
    """An empty environment for a wheel: no other package, no program but its own, a home of its own."""

    folder: Path
    wheel: Path
    constraints: Path

    @classmethod
    def make(cls, folder: Path, wheel: Path, *, newest: bool) -> Environment:
        """Make it; the packages that the wheel needs come at their locked versions or at the newest."""
        venv.create(folder / "venv", with_pip=False)
        locked = re.findall(r"^\S+==\S+", (ROOT / "requirements/run.txt").read_text(), re.MULTILINE)
        constraints = folder / "constraints.txt"
        constraints.write_text("" if newest else "\n".join(locked))
        return cls(folder, wheel, constraints)

    @property
    def bin(self) -> Path:
        return self.folder / "venv" / "bin"

    def install(self, extra: str = "") -> list[Path]:
        """Install the wheel and what it needs, from wheels only; return the wheels that it needs."""
        wanted, wheels = f"{self.wheel}{extra}", self.folder / f"wheels{extra}"
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        pip += ["--python", str(self.bin / "python")]
        limits = ["--only-binary", ":all:", "--constraint", str(self.constraints)]
        output_of([*pip, "download", *limits, "--dest", str(wheels), wanted])
        output_of([*pip, "install", "--no-compile", "--no-index", "--find-links", str(wheels), wanted])
        return sorted(path for path in wheels.iterdir() if path.name != self.wheel.name)

    def run(self, program: str, *words: str, codes: tuple[int, ...] = ()) -> tuple[str, str]:
        """Run a program of the environment, in its folder."""
        env = {"PATH": str(self.bin), "HOME": str(self.folder), "LANG": "C.UTF-8"}
        return output_of([self.bin / program, *words], self.folder, env, *codes)


def check_files(wheel: Path) -> str:
    """Look in the wheel for every file of the package, the licence and the README."""
    if not wheel.exists():
        raise CheckError(f"no file {wheel}")
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        description = packed.read(metadata).decode()
    missing = tracked_files() - names
    if not any(name.endswith("/licenses/LICENSE") for name in names):
        missing.add("LICENSE")
    if (ROOT / "README.md").read_text().strip() not in description:
        missing.add("README.md, as description")
    if missing:
        raise CheckError(f"not in the wheel: {', '.join(sorted(missing))}")
    return f"{len(names)} files, {megabytes(wheel)}"


def pack(folder: Path) -> str:
    """Make a wheel with the profile and flags of `make install`, so that nothing is compiled twice."""
    # As in the activated environment: with another Python, PyO3 would be compiled again.
    env = {**os.environ, "VIRTUAL_ENV": str(BIN.parent), "PATH": f"{BIN}:{os.environ['PATH']}"}
    output_of([BIN / "maturin", "build", "--release", "--compatibility", "linux", "--out", folder], env=env)
    return ""


def check_sdist(folder: Path) -> str:
    """Write an sdist; look in it for every file, and let cargo resolve its crates."""
    output_of([BIN / "maturin", "sdist", "--out", folder])
    (sdist,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(sdist, folder)
    top = folder / sdist.name.removesuffix(".tar.gz")
    wanted = {f"python/{name}" for name in tracked_files()} | {"LICENSE", "README.md", "Cargo.lock"}
    wanted |= set(output_of(["git", "ls-files", "wheel"])[0].splitlines())  # manual pages
    if missing := [name for name in sorted(wanted) if not (top / name).exists()]:
        raise CheckError(f"not in the sdist: {', '.join(missing)}")
    output_of(["cargo", "metadata", "--format-version", "1", "--offline"], cwd=top)
    return megabytes(sdist)


def check_core(environment: Environment) -> str:
    """Install the core, which has to stay small."""
    needed = environment.install()
    figures = f"{len(needed)} further wheels, {megabytes(environment.wheel, *needed)} downloaded in all"
    size = sum(path.stat().st_size for path in (environment.wheel, *needed))
    if len(needed) > MOST_PACKAGES or size > MOST_BYTES:
        raise CheckError(f"{figures}; the most allowed: {MOST_PACKAGES} and {MOST_BYTES / 1e6:.0f} MB")
    return figures


def check_run(environment: Environment, words: Sequence[str]) -> str:
    """Run a command of Loadlens that has to succeed; on a busy machine it may call its load invalid (4)."""
    environment.run("loadlens", *words, codes=(0, 4))
    return ""


def check_script(environment: Environment, url: str) -> str:
    """Run a script of wrk that catches errors in compiled code."""
    (environment.folder / "caught.lua").write_text(CAUGHT)
    words = ("wrk", "-t", "1", "-c", "1", "-d", "1", "-s", "caught.lua", url)
    printed, _ = environment.run("loadlens", *words, codes=(0, 4))
    if "caught 100" not in printed:
        raise CheckError(f"caught.lua did not catch its 100 errors:\n{printed}")
    return ""


def check_refusals(environment: Environment) -> str:
    """Run each verb of the lab, which has to name the command that installs it."""
    listed, _ = environment.run("python", "-c", "from loadlens.cli import LAB_VERBS; print(*LAB_VERBS)")
    for verb in listed.split():
        _, message = environment.run("loadlens", verb, "there", codes=(2,))
        if INSTALL_LAB not in message:
            raise CheckError(f"loadlens {verb} does not name {INSTALL_LAB}: {message}")
    return ", ".join(listed.split())


def check_lab(environment: Environment) -> str:
    """Install the rest, and make a report of the record that the core wrote."""
    needed = environment.install("[lab]")
    environment.run("loadlens", "report", "record")
    return f"{len(needed)} further wheels, {megabytes(environment.wheel, *needed)} downloaded in all"


def check_first_command(environment: Environment, url: str) -> str:
    """Run the README's first command; a URL of this machine becomes that of the small server."""
    words = first_command((ROOT / "README.md").read_text())
    here = re.compile(r"http://(127\.0\.0\.1|localhost):\d+/\S*")
    printed, _ = environment.run("loadlens", *(here.sub(url, word) for word in words[1:]))
    if not printed.strip():
        raise CheckError(f"{shlex.join(words)} printed nothing")
    return shlex.join(words)


def passes(name: str, check: Callable[[], str]) -> bool:
    """Do one check and print its outcome."""
    began = time.monotonic()
    try:
        figures = check()
    except CheckError as fault:
        print(f"FAILED  {name}\n{fault}", flush=True)
        return False
    print(f"ok      {name}{': ' * bool(figures)}{figures} ({time.monotonic() - began:.1f} s)", flush=True)
    return True


def try_out(given: Path | None, *, newest: bool) -> int:
    """Do all checks with a wheel, or with one that is built here; return 0 if all pass."""
    with tempfile.TemporaryDirectory(prefix="loadlens-wheel-") as name, hello_server() as url:
        folder = Path(name)
        outcomes: list[bool] = []
        if given is None:
            outcomes = [passes("wheel", partial(pack, folder)), passes("sdist", partial(check_sdist, folder))]
        wheel = (given or next(folder.glob("*.whl"), folder / "none.whl")).resolve()
        environment = Environment.make(folder, wheel, newest=newest)
        load = ["hit", url, "-n", "200", "-c", "2", "-o", "record"]
        checks = {
            "files of the wheel": partial(check_files, wheel),
            "the core installs without a compiler": partial(check_core, environment),
            "loadlens init, into a file": partial(check_run, environment, ["init", url, "-o", "study.yaml"]),
            "loadlens hit, with a record": partial(check_run, environment, load),
        }
        for verb, words in CORE_RUNS.items():
            filled = [word.format(url=url, folder=folder) for word in words]
            checks[f"loadlens {verb}"] = partial(check_run, environment, filled)
        checks["a script of wrk catches errors in compiled code"] = partial(check_script, environment, url)
        checks["verbs of the lab name the command that installs it"] = partial(check_refusals, environment)
        checks["the lab installs, and reports"] = partial(check_lab, environment)
        checks["the README's first command"] = partial(check_first_command, environment, url)
        outcomes += [passes(name, check) for name, check in checks.items()]
    print(f"{sum(outcomes)} passed, {len(outcomes) - sum(outcomes)} failed, 0 skipped")
    return 0 if all(outcomes) else 1


def main() -> int:
    """Build, or try."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    building = verbs.add_parser("build", help="write wheels and sdist")
    building.add_argument("--target", action="append", choices=TARGETS, help="only this one; repeatable")
    trying = verbs.add_parser("try", help="install a wheel and use it")
    trying.add_argument("wheel", nargs="?", type=Path, help="default: one built for this machine")
    trying.add_argument("--newest", action="store_true", help="with the newest packages, not the locked ones")
    given = parser.parse_args()
    if given.verb == "build":
        return build(given.target or TARGETS)
    return try_out(given.wheel, newest=given.newest)


if __name__ == "__main__":
    sys.exit(main())
