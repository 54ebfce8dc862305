"""An agent passes every message to the engine's process whole, and ends what it began when calls stop."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from loadlens.fleet.agent import LIVE, Agent
from loadlens.fleet.messages import Do, Is
from loadlens.model.workload import Plan, RecordTo, Scenario
from tests import records
from tests.end_to_end.fleets import reached

PIPE_BYTES = 1 << 16  # of a pipe on Linux: pipe(7)


def long_plan(agent: Agent) -> Plan:
    """Return a plan whose message is longer than three pipes hold."""
    plan = replace(records.plan(), record=RecordTo(f"{agent.folder()}/{LIVE}"))
    (first, *_), stream = plan.streams[0].scenarios, plan.streams[0]
    steps = tuple(replace(first.steps[0], name=f"step {number}") for number in range(2000))
    plan = replace(plan, streams=(replace(stream, scenarios=(Scenario("long", 1.0, steps),)),))
    assert len(json.dumps(plan.to_json())) > 3 * PIPE_BYTES
    return plan


def answers(agent: Agent, of: int, within_s: float = 20.0) -> list[Any]:
    """Send beats until so many other messages came back, or the process has ended; return their kinds."""
    kinds: list[Any] = []
    until_s = time.monotonic() + within_s
    while len(kinds) < of and time.monotonic() < until_s:
        answer = asyncio.run(agent.beat({"do": Do.BEAT}))
        assert answer["fault"] is None, answer["fault"]
        kinds += [kind for line in answer["said"] if (kind := json.loads(line)["is"]) != Is.ALIVE]
        time.sleep(0.02)
    return kinds


def test_a_message_longer_than_the_pipe_arrives_whole_and_so_do_the_beats_after_it() -> None:
    agent = Agent(lease_s=60)
    try:
        agent.start_child()

        asyncio.run(agent.beat({"do": Do.PREPARE, "plan": long_plan(agent).to_json()}))

        assert answers(agent, of=1) == [Is.PREPARED]
    finally:
        agent.close()


def test_a_process_that_reads_nothing_keeps_no_beat_waiting_and_its_successor_hears_none_of_it() -> None:
    agent = Agent(lease_s=60)
    try:
        agent.start_child()
        assert agent._child is not None
        agent._child.send_signal(signal.SIGSTOP)
        plan = long_plan(agent).to_json()

        began_s = time.monotonic()
        for _ in range(3):
            asyncio.run(agent.beat({"do": Do.PREPARE, "plan": plan}))
        took_s = time.monotonic() - began_s
        agent.start_child()
        asyncio.run(agent.beat({"do": Do.PREPARE, "plan": plan}))

        assert took_s < 1.0  # a controller gives a node up after LOST_AFTER_S
        assert answers(agent, of=1) == [Is.PREPARED]
        assert answers(agent, of=1, within_s=0.3) == []
    finally:
        agent.close()


def test_an_agent_that_is_called_no_more_leaves_no_process_and_no_folder() -> None:
    agent = Agent(lease_s=0.5)
    folder = Path(agent.folder())
    agent.start_child()
    assert agent._child is not None
    child = psutil.Process(agent._child.pid)
    assert folder.is_dir()

    assert reached(lambda: not folder.exists() and not child.is_running(), within_s=30)
