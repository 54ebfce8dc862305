"""The output of `check`: cases, streams, order, time, faults of design."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadlens.report.write.terminal.study_overview import study_lines
from loadlens.study import lint, parse, plan

STUDY = """\
schema: 1
study: small
question: what is printed?
notes: [a remark]
params: {users: 1, mode: a}
services:
  web: {start: "serve --port $port --mode $mode"}
entry: web
scenarios:
  read: [{get: /}]
  write: [{post: /}]
probes: {health: {get: /health}}
trials: 2
experiments:
  ladder:
    mix: {read: 5, write: 1}
    load: {users: $users, think: 150ms, duration: 20s}
    factors: {users: [1, 5]}
    hold_out: {mode: [b], where: {users: [5]}}
"""

PRINTED = """\
small: what is printed?
3 cases, 6 trials, about 2 min 51 s
  note: a remark

ladder: 3 cases
  factors   users 1, 5
  held out  users 5 x mode b
  mix       read 5 : write 1
  load      1 user | 5 users, think 150 ms; connection keep; 20 s after a warm-up (automatic);
            timeout 30 s
  probe     health: GET /health, 20/s poisson, connection new
  trials    2 of each case, processes fresh for each trial

order: random in each block, seed 1
  block 1: 1 ladder-users-1, 2 ladder-users-5
  held out, block 1: 5 ladder-users-5-mode-b
  and 2 more blocks in other orders: -v shows them

design: 1 remark
  △ ladder: two trials per case: an interval reaches 9 standard deviations each way, with three 2.5
    try trials: 3, or more"""


def test_a_study_is_shown_with_its_cases_order_time_and_faults(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    study = plan.plan(parse.read(tmp_path))
    trials, duration = plan.order(study), plan.duration(study)

    lines, headings = study_lines(
        study, trials, duration, lint.faults(study, cores=2), all_blocks=False, width=100
    )

    assert "\n".join(lines) == PRINTED
    assert [lines[heading].split(":")[0] for heading in headings] == ["small", "ladder", "order", "design"]


def test_trials_that_sample_stacks_are_shown_apart_and_are_no_cases(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY + "stacks: on\n")
    study = plan.plan(parse.read(tmp_path))

    lines, _ = study_lines(study, plan.order(study), plan.Duration(60.0), (), all_blocks=False, width=100)

    assert lines[1] == "3 cases, 8 trials, about 1 min"
    assert "  stacks    one trial each at 1 user, 5 users, which gives no figures" in lines
    assert "  stacks, block 1: 5 stacks-ladder-users-1, 6 stacks-ladder-users-5" in lines


def test_every_block_is_shown_when_asked(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    study = plan.plan(parse.read(tmp_path))

    lines, _ = study_lines(study, plan.order(study), plan.Duration(1.0), (), all_blocks=True, width=100)

    assert sum("block" in line and line.startswith("  ") for line in lines) == 4
    assert lines[-1] == "design: nothing to improve"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit_the_terminal_and_use_its_width(width: int, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY.replace("a remark", "a remark " * 40))
    study = plan.plan(parse.read(tmp_path))

    lines, _ = study_lines(study, plan.order(study), plan.Duration(1.0), (), all_blocks=True, width=width)

    assert width - 8 < max(map(len, lines)) <= width
