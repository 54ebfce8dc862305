"""Goroutines of a dump that is written by hand, as Go 1.26 prints it."""

from __future__ import annotations

import os

import pytest

from loadlens.model.stacks import Frame
from loadlens.signals.collect.threads import elf, go_frames

DUMP = """\
goroutine 33 [running]:
runtime/pprof.writeGoroutineStacks({0x7898c0, 0x29fac4b54690})
\t/usr/local/go/src/runtime/pprof/pprof.go:819 +0x6b
net/http/pprof.handler.ServeHTTP({0x29fac4a7e671, 0x9}, {0x78bef8, 0x29fac4b54690}, 0x29fac4b42a00)
\t/usr/local/go/src/net/http/pprof/pprof.go:273 +0x52a

goroutine 1 [IO wait, 2 minutes]:
net/http.ListenAndServe(...)
\t/usr/local/go/src/net/http/server.go:3675
main.main()
\t/srv/shop/main.go:44 +0xda

goroutine 9 [sync.Mutex.Lock]:
sync.(*Mutex).Lock(...)
\t/usr/local/go/src/sync/mutex.go:46
example.com/shop/orders.(*Store).price({0x78bef8, 0x29fac4bb03c0}, 0x29fac4bc0af8?)
\t/srv/shop/orders/store.go:19 +0x45
gopkg.in/router%2ev3.Handler.ServeHTTP(0xa277c0?, {0x78bef8?, 0x29fac4bb03c0?}, 0x626cf6?)
\t/root/go/pkg/mod/gopkg.in/router.v3@v3.0.1/router.go:2286 +0x29
created by net/http.(*Server).Serve in goroutine 1
\t/usr/local/go/src/net/http/server.go:3464 +0x485

goroutine 18 [chan send, locked to thread]:
main.few({0x78bef8, 0x29fac4bb0960}, 0x29fac4aafaf8?)
\t/srv/shop/main.go:25 +0x69
created by main.main.func1 in goroutine 1
\t/srv/shop/main.go:40 +0x85

goroutine 19 [GC worker (idle)]:
runtime.gcBgMarkWorker(0x0)
\t/usr/local/go/src/runtime/mgc.go:1310 +0xe5
"""


def test_each_goroutine_has_its_frames_its_wait_and_the_function_that_created_it() -> None:
    threads = go_frames.parse(DUMP)

    assert threads.is_all
    assert threads.stacks.keys() == {1, 9, 18, 19}  # without the one that wrote the dump
    assert threads.waits == {1: "socket", 9: "lock", 18: "lock", 19: "other"}
    assert threads.names == {1: "main", 9: "net/http.(*Server).Serve", 18: "main.main.func1", 19: "main"}
    assert threads.stacks[9] == (
        Frame(
            "Handler.ServeHTTP",
            "gopkg.in/router.v3",
            "/root/go/pkg/mod/gopkg.in/router.v3@v3.0.1/router.go",
            2286,
        ),
        Frame("(*Store).price", "example.com/shop/orders", "/srv/shop/orders/store.go", 19, is_own=True),
        Frame("(*Mutex).Lock", "sync", "/usr/local/go/src/sync/mutex.go", 46),
    )
    assert threads.stacks[18] == (
        Frame("few", "main", "/srv/shop/main.go", 25, is_own=True),
        Frame("chan send", "", "", 0),
    )
    assert threads.running == dict.fromkeys((1, 9, 18, 19), False)


@pytest.mark.parametrize("module", ["shop", "example.com/shop", "github.com/acme/shop"])
def test_own_code_of_a_program_without_paths_is_that_of_the_module_of_main(module: str) -> None:
    text = (
        DUMP.replace("/usr/local/go/src/", "").replace("/srv/shop", module).replace("/root/go/pkg/mod/", "")
    )

    own = {frame.file for stack in go_frames.parse(text).stacks.values() for frame in stack if frame.is_own}

    assert own == {f"{module}/main.go", f"{module}/orders/store.go"}


def test_an_exchange_over_http_waits_for_a_socket_though_go_waits_for_a_channel() -> None:
    text = """\
goroutine 40 [select]:
net/http.(*persistConn).roundTrip(0x29fac4c4, 0x29fac4b5)
\t/usr/local/go/src/net/http/transport.go:2791 +0x9f5
main.price()
\t/srv/shop/main.go:52 +0x45

goroutine 41 [select]:
main.next()
\t/srv/shop/main.go:61 +0x45
"""

    threads = go_frames.parse(text)

    assert threads.waits == {40: "socket", 41: "lock"}
    assert [frame.function for frame in threads.stacks[40]] == ["price", "(*persistConn).roundTrip"]
    assert [frame.function for frame in threads.stacks[41]] == ["next", "select"]


def test_a_program_that_is_not_go_has_no_reader() -> None:
    assert elf.has_section(os.getpid(), ".text")
    assert not elf.has_section(os.getpid(), ".gopclntab")
    assert go_frames.reader_of(os.getpid()) is None
