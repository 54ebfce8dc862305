"""A new process of the engine hears no message that was meant for the one before."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from distributed import Client

from loadlens.fleet import member as members
from loadlens.fleet.cluster import Node
from loadlens.fleet.member import Member, NodeLost
from loadlens.fleet.messages import Do
from tests.end_to_end.fleets import reached


class SlowAgent:
    """Takes a message when the network lets it through, and notes what happens in order."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.is_sent = threading.Event()
        self.passes = threading.Event()

    async def beat(self, message: Mapping[str, Any]) -> dict[str, Any]:
        self.is_sent.set()
        await asyncio.to_thread(self.passes.wait)
        self.events.append(str(message["do"]))
        return {"said": [], "fault": None}

    def start_child(self) -> Future[None]:
        self.events.append("start_child")
        done: Future[None] = Future()
        done.set_result(None)
        return done


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    running = asyncio.new_event_loop()
    thread = threading.Thread(target=running.run_forever)
    thread.start()
    yield running
    running.call_soon_threadsafe(running.stop)
    thread.join()
    running.close()


def member_of(agent: SlowAgent, loop: asyncio.AbstractEventLoop) -> Member:
    client = cast(Client, SimpleNamespace(loop=SimpleNamespace(asyncio_loop=loop)))
    return Member(Node("gen1", "tcp://127.0.0.1:1", "h", 1), client, agent, "/nowhere")


def test_a_message_on_its_way_arrives_before_the_process_is_renewed(loop: asyncio.AbstractEventLoop) -> None:
    agent = SlowAgent()
    member = member_of(agent, loop)
    member.tell({"do": Do.START, "at_ns": 1})
    assert agent.is_sent.wait(5)

    threading.Timer(0.2, agent.passes.set).start()
    member.renew()

    assert agent.events == ["start", "start_child"]


def test_a_message_that_waits_for_its_slot_is_not_sent_to_the_renewed_process(
    loop: asyncio.AbstractEventLoop,
) -> None:
    agent = SlowAgent()
    agent.passes.set()
    member = member_of(agent, loop)
    member.slots = asyncio.Semaphore(0)  # others have them all
    member.tell({"do": Do.START, "at_ns": 1})
    (waiting,) = member._beats

    member.renew()
    loop.call_soon_threadsafe(member.slots.release)

    assert reached(waiting.future.done, within_s=5)
    assert agent.events == ["start_child"]


def test_a_node_that_leaves_a_message_unanswered_is_not_renewed(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "RENEW_S", 0.1)
    agent = SlowAgent()
    member = member_of(agent, loop)
    member.tell({"do": Do.START, "at_ns": 1})
    assert agent.is_sent.wait(5)

    with pytest.raises(NodeLost, match="node gen1 did not answer"):
        member.renew()

    assert agent.events == []
    agent.passes.set()
