"""Processes of a dump that is written by hand, as a node of OTP 25 shows them."""

from __future__ import annotations

import os

import pytest

from loadlens.model.stacks import Frame
from loadlens.signals.collect.threads import NotRead, beam_frames

OTP = "\t/build/otp/lib/stdlib/src/{0}.erl\t/usr/lib/erlang/lib/stdlib/ebin/{0}.beam\ttrue"
SHOP = "\t/srv/shop/lib/shop/{0}.ex\t/srv/shop/_build/prod/lib/shop/ebin/{0}.beam\tfalse"
PLUG = "\t/srv/shop/deps/plug/lib/plug/builder.ex\t/srv/shop/_build/prod/lib/plug/ebin/plug.beam\tfalse"
LEDGER = [
    "P\t112.0\tElixir.Shop.Ledger\twaiting\t3",
    "F\ttimer\tsleep\ttimer.erl\t152" + OTP.format("timer"),
    "F\tElixir.Shop.Ledger\thandle_call\tlib/shop/ledger.ex\t10" + SHOP.format("ledger"),
    "F\tgen_server\tloop\tgen_server.erl\t851" + OTP.format("gen_server"),
]
CALLER = [
    "P\t7.1\tElixir.Shop.Web.serve\twaiting\t0\t112.0",
    "F\tgen\tdo_call\tgen.erl\t214" + OTP.format("gen"),
    "F\tgen_server\tcall\tgen_server.erl\t385" + OTP.format("gen_server"),
    "F\tElixir.Shop.Web\t-serve/1-fun-0-\tlib/shop/web.ex\t25" + SHOP.format("web"),
    "F\tElixir.Plug.Builder\tcall\tlib/plug/builder.ex\t80" + PLUG,
]


def test_each_process_has_its_frames_and_what_it_waits_for() -> None:
    threads = beam_frames.parse("\n".join(LEDGER + CALLER))

    caller = 7 + 2**28  # <0.7.1>: the high bits are printed last
    assert threads.is_all
    assert threads.names == {112: "Shop.Ledger", caller: "Shop.Web.serve"}
    assert threads.waits == {112: "timer", caller: "lock"}
    assert threads.running == {112: False, caller: False}
    assert threads.stacks[caller] == (
        Frame("call", "Plug.Builder", "/srv/shop/deps/plug/lib/plug/builder.ex", 80),
        Frame("serve", "Shop.Web", "/srv/shop/lib/shop/web.ex", 25, is_own=True),
        Frame("call", "gen_server", "/build/otp/lib/stdlib/src/gen_server.erl", 385),
    )


@pytest.mark.parametrize("server", ["P\t112.0\ttls_sender\twaiting\t0", "P\t113.0\tother\trunning\t0"])
def test_a_call_to_a_process_that_does_no_work_of_the_service_is_no_line(server: str) -> None:
    threads = beam_frames.parse("\n".join([server, *CALLER]))

    assert threads.waits[7 + 2**28] == "process"


@pytest.mark.parametrize(("status", "running"), [("runnable", True), ("running", True), ("suspended", False)])
def test_a_process_that_is_ready_to_run_counts_as_running(status: str, running: bool) -> None:
    threads = beam_frames.parse(LEDGER[0].replace("waiting", status))

    assert threads.running == {112: running}


def test_a_node_with_too_many_processes_is_not_read() -> None:
    with pytest.raises(NotRead, match="cannot be read: it has 6000 processes"):
        beam_frames.parse("E\tit has 6000 processes, more than 5000")


def test_a_program_that_is_no_emulator_has_no_reader() -> None:
    assert beam_frames.reader_of(os.getpid()) is None
