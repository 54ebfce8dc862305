"""A study over a tiny server: trials of a third of a second, for tests of how a run goes."""

from __future__ import annotations

import shutil
from pathlib import Path

from loadlens.model.study import Study
from loadlens.study import parse, plan

SERVER = Path(__file__).parent / "data" / "tiny" / "server.py"

STUDY = """\
schema: 1
study: tiny
question: does it run?
params: {{users: 1, path: /}}
services:
  web:
    dir: .
    start: python3 -S -E server.py $port
    ready: {{get: /, status: 200, within: 60s}}
    {service}
entry: web
scenarios: {{look: [{{name: look, get: $path, expect: 200}}]}}
fresh: {fresh}
{study}
trials: {trials}
experiments:
  alone:
    mix: look
    load: {{users: $users, warmup: 0s, duration: {duration}, timeout: 2s}}
    factors: {{users: {users}}}
"""


def write_study(
    folder: Path,
    *,
    service: str = "",
    study: str = "",
    fresh: str = "trial",
    trials: int = 2,
    duration: str = "300ms",
    users: str = "[1, 2]",
) -> Path:
    """The study file and its server in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(SERVER, folder / "server.py")
    path = folder / "study.yaml"
    path.write_text(
        STUDY.format(service=service, study=study, fresh=fresh, trials=trials, duration=duration, users=users)
    )
    return path


def planned(path: Path, **overrides: str | int) -> Study:
    """The study of a file, as planned."""
    return plan.plan(parse.read(path), overrides=overrides)
