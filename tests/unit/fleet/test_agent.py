"""An agent that is called no more ends what it began."""

from __future__ import annotations

from pathlib import Path

import psutil

from loadlens.fleet.agent import Agent
from tests.end_to_end.fleets import reached


def test_an_agent_that_is_called_no_more_leaves_no_process_and_no_folder() -> None:
    agent = Agent(lease_s=0.5)
    folder = Path(agent.folder())
    agent.start_child()
    assert agent._child is not None
    child = psutil.Process(agent._child.pid)
    assert folder.is_dir()

    assert reached(lambda: not folder.exists() and not child.is_running(), within_s=30)
