"""The shell steps of the recipes for CI systems, run as they stand in the guide."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from tests import tiny
from tests.calm import where_calm
from tests.end_to_end.hitting import environment
from tests.scripts import ROOT

GUIDE = (ROOT / "docs" / "guide" / "ci.md").read_text(encoding="utf-8")
OBJECTIVES = "objectives: [{metric: failed.share, below: 50%}]"


def steps() -> dict[str, str]:
    """Return the shell step of each recipe that runs the program itself."""
    of_systems = {}
    for title in ("GitHub Actions", "GitLab", "Jenkins"):
        section = GUIDE.split(f"\n## {title}\n")[1].split("\n## ")[0]
        blocks = re.findall(r"```(?:yaml|groovy)\n(.*?)```", section, re.DOTALL)
        (line,) = re.findall(
            r"loadlens run [^']*?(?=\n *\w+:|'|\n```|\Z)", "\n".join(map(str.rstrip, blocks))
        )
        of_systems[title] = " ".join(line.split())
    return of_systems


@where_calm
def test_the_step_of_a_recipe_writes_the_record_and_the_files(tmp_path: Path) -> None:
    study = tiny.write_study(tmp_path / "load", study=OBJECTIVES, trials=1, users="[1]")
    study.rename(study.with_name("gate.yaml"))
    program = tmp_path / "loadlens"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m loadlens "$@"\n')
    program.chmod(0o755)
    own = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}

    done = subprocess.run(
        ["bash", "-ec", steps()["GitHub Actions"]],
        cwd=tmp_path,
        env=environment() | own,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "gate" / "effective.yaml").exists()
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert next(case.get("name") for case in suite.iter("testcase")) == "trials"
    assert (tmp_path / "summary.md").exists()


def test_gitlab_and_jenkins_run_that_step_without_the_summary() -> None:
    step = steps()["GitHub Actions"].replace('md="$GITHUB_STEP_SUMMARY",', "")

    assert steps()["GitLab"] == steps()["Jenkins"] == step
