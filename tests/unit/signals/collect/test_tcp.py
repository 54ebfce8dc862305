"""TCP at the services' ports: real sockets, counted by hand, and against `ss`."""

from __future__ import annotations

import errno
import json
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from loadlens.machine import sock_diag
from loadlens.model.readings import METRICS
from loadlens.signals.collect import tcp
from loadlens.signals.collect.monitor import Row
from loadlens.signals.collect.tcp import Port, Ports, TcpMonitor, _Answers, _Talk
from tests.calm import where_calm
from tests.unit.signals.collect.test_monitor import read, value, values


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as sockets:
        yield sockets


def monitor_of(*listeners: socket.socket) -> TcpMonitor:
    monitor = TcpMonitor()
    ports = [Port(f"s{number}", 1, "http", each.getsockname()[1]) for number, each in enumerate(listeners)]
    monitor.open(Ports(tuple(ports)))
    return monitor


def listening(
    opened: ExitStack, backlog: int, family: socket.AddressFamily = socket.AF_INET
) -> socket.socket:
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    return opened.enter_context(socket.create_server((host, 0), family=family, backlog=backlog))


def eventually(seen: Callable[[], bool], describe: Callable[[], object] = lambda: None) -> None:
    until = time.monotonic() + 10
    while not seen():
        assert time.monotonic() < until, describe()
        time.sleep(0.1)


def test_a_full_accept_queue_is_seen_with_its_bound_and_what_was_dropped(opened: ExitStack) -> None:
    asleep, awake = listening(opened, 1), listening(opened, 100)
    monitor = monitor_of(asleep, awake)
    before = read(monitor)

    for _ in range(6):
        client = opened.enter_context(socket.socket())
        client.setblocking(False)
        client.connect_ex(asleep.getsockname())

    def is_full() -> bool:
        rows = read(monitor)
        # Linux takes backlog + 1; the other four ask again and again
        counts = value(rows, "accept_queue", service="s0"), value(rows, "listen_drops", service="s0")
        return counts[0] == 2 and counts[1] >= 4

    eventually(is_full)
    after = read(monitor)
    assert value(before, "listen_drops", service="s0") == 0
    assert value(after, "accept_queue_bound", service="s0") == 1
    assert value(after, "accept_queue", service="s1") == 0
    assert value(after, "accept_queue_bound", service="s1") == 100
    assert value(after, "listen_drops", service="s1") == 0


def test_connections_are_counted_by_state_on_the_services_side(opened: ExitStack) -> None:
    old, new = listening(opened, 10), listening(opened, 10, socket.AF_INET6)
    other = listening(opened, 10)  # a port that was not asked for
    for listener, count in ((old, 3), (new, 2), (other, 5)):
        for _ in range(count):
            opened.enter_context(socket.create_connection(listener.getsockname()[:2]))
            opened.enter_context(listener.accept()[0])
    leaving = socket.create_connection(old.getsockname())
    served, _ = old.accept()
    opened.enter_context(served)
    leaving.close()  # the client ends: the service's side waits for its own close
    hasty = opened.enter_context(socket.create_connection(old.getsockname()))
    ended, _ = old.accept()
    ended.close()
    hasty.recv(1)
    hasty.close()  # the service ended first: its side keeps TIME_WAIT

    def states() -> dict[str, dict[str, float | int | None]]:
        by_service: dict[str, dict[str, float | int | None]] = {"s0": {}, "s1": {}}
        for row in read(monitor_of(old, new)):
            if row.metric == "connections":
                labels = json.loads(row.labels)
                by_service[labels["service"]][labels["state"]] = row.value
        return by_service

    expected = {
        "s0": {"established": 3, "close_wait": 1, "time_wait": 1},
        "s1": {"established": 2, "time_wait": 0},
    }
    eventually(lambda: states() == expected, states)


@pytest.mark.skipif(shutil.which("ss") is None, reason="no ss here")
def test_a_port_is_found_among_many_as_ss_finds_it(opened: ExitStack) -> None:
    listeners = [listening(opened, 5 + number) for number in range(40)]
    rows = read(monitor_of(*listeners))

    for number, listener in enumerate(listeners):
        shown = subprocess.run(
            ("ss", "-Hltn", f"sport = :{listener.getsockname()[1]}"),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        service = f"s{number}"
        assert value(rows, "accept_queue", service=service) == int(shown[1])
        assert value(rows, "accept_queue_bound", service=service) == int(shown[2]) == 5 + number


def test_the_machines_counters_are_read_from_their_columns(tmp_path: Path) -> None:
    net = tmp_path / "net"
    net.mkdir()
    (net / "snmp").write_text(
        "Tcp: OutSegs RetransSegs OutRsts EstabResets AttemptFails ActiveOpens\nTcp: 1 2 3 4 5 9\n"
    )
    (net / "netstat").write_text("TcpExt: TCPSynRetrans TCPTimeouts SyncookiesSent\nTcpExt: 6 7 8\n")
    monitor = TcpMonitor(str(tmp_path))

    rows = read(monitor)

    expected = (
        *("segments_sent", "segments_retransmitted", "resets_sent", "resets_received", "connects_failed"),
        *("syn_retransmitted", "retransmit_timeouts", "syn_cookies_sent", "connects_begun"),
    )
    assert [value(rows, metric) for metric in expected] == list(range(1, 10))
    assert values(rows, "queue_full_drops") == [None]  # this kernel does not have it


def test_a_refused_connection_is_a_reset_sent(opened: ExitStack) -> None:
    listener = listening(opened, 1)
    bound = opened.enter_context(socket.socket())  # no listener there, and no other socket gets it
    bound.bind(("127.0.0.1", 0))
    nobody = bound.getsockname()
    monitor = monitor_of(listener)
    before = value(read(monitor), "resets_sent")

    for _ in range(3):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(nobody)

    assert value(read(monitor), "resets_sent") >= before + 3


def test_a_kernel_that_does_not_tell_is_named_once_and_the_rest_goes_on(
    opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = monitor_of(listening(opened, 1))
    monkeypatch.setattr(sock_diag, "_BY_FAMILY", 77)  # a question that it does not know

    first, second = read(monitor), read(monitor)

    (missed,) = [row for row in [*first, *second] if row.metric == "missed"]
    assert "sock_diag" in json.loads(missed.labels)["why"]
    assert value(second, "segments_sent") >= value(first, "segments_sent") > 0


def test_counting_costs_a_fiftieth_of_a_core_at_most(opened: ExitStack) -> None:
    monitor = monitor_of(listening(opened, 1))

    took = value(list(monitor.tick(0, last=False)), "count_s")

    assert values(list(monitor.tick(int(took * 49e9), last=False)), "count_s") == []
    assert len(values(list(monitor.tick(int(took * 51e9), last=False)), "count_s")) == 1
    assert len(values(list(monitor.tick(0, last=True)), "count_s")) == 1


@pytest.mark.parametrize(
    ("came_ago_s", "sent_ago_s", "data_in", "data_out", "is_busy"),
    [
        (0.01, 0.05, 2, 2, True),  # the server spoke first, as databases do
        (0.05, 0.01, 3, 2, False),  # a request in two segments, answered
        (0.004, 0.004, 3, 2, True),  # in one step of the kernel's timer: an answer, then the next request
        (0.004, 0.004, 2, 2, False),
    ],
)
def test_a_connection_is_busy_if_data_came_after_the_last_that_went(
    came_ago_s: float, sent_ago_s: float, data_in: int, data_out: int, is_busy: bool
) -> None:
    talk = _Talk(80, b"c", came_ago_s, sent_ago_s, data_in, data_out, holds_back=False)

    assert talk.is_busy(out_per_in=1.0) is is_busy


@pytest.mark.parametrize(("data_out", "busy"), [(6, 2), (8, 1)])
def test_within_one_step_of_the_timer_the_segments_of_answers_say_whether_one_is_missing(
    data_out: int, busy: int
) -> None:
    """Head and body of an answer are a segment each: 4 requests have 8, and 6 while the last is worked on."""
    idle, working = (
        _Talk(80, cookie, came, sent, 5, out, holds_back=False)
        for cookie, came, sent, out in ((b"a", 0.05, 0.01, 10), (b"b", 0.01, 0.05, 8))
    )
    tied = _Talk(80, b"c", 0.004, 0.004, 4, data_out, holds_back=False)
    answers = _Answers()

    answers.take([idle, working, tied])

    assert answers.busy == busy


def test_at_a_port_that_the_service_calls_only_calls_are_counted(opened: ExitStack) -> None:
    own, called, apart = (listening(opened, 10) for _ in range(3))
    spoken = []
    for listener in (own, called, called, apart):
        client = opened.enter_context(socket.create_connection(listener.getsockname()))
        spoken.append((client, opened.enter_context(listener.accept()[0])))
    monitor = TcpMonitor()
    ports = [listener.getsockname()[1] for listener in (own, called)]
    monitor.open(Ports((Port("s", 1, "http", ports[0]), Port("db", 1, "any", ports[1], is_called=True))))
    for client, server in spoken:
        client.send(b"ask")
        server.recv(9)
    spoken[1][1].send(b"answer")

    def rows() -> list[Row]:
        return list(monitor.tick(0, last=True))

    to = f"db:{ports[1]}"
    eventually(lambda: value(rows(), "calls", to=to) == 2)
    seen = rows()
    assert value(seen, "calls_under_way", to=to) == 1
    assert value(seen, "call_connections", to=to) == 1  # the other was answered before the last look
    assert value(seen, "requests_in", service="s") == 1
    assert {row.labels for row in seen if row.metric == "accept_queue"} == {
        '{"port": "http", "replica": "1", "service": "s"}'
    }


def test_every_row_is_one_of_the_metrics_with_its_unit(opened: ExitStack) -> None:
    monitor = TcpMonitor()
    ports = [listening(opened, 1).getsockname()[1] for _ in range(2)]
    monitor.open(Ports((Port("s", 1, "http", ports[0]), Port("db", 1, "any", ports[1], is_called=True))))

    rows = read(monitor)

    assert {(row.metric, row.unit) for row in rows} == {
        (metric.name, metric.unit) for metric in METRICS["tcp"]
    }


def settings(tmp_path: Path, **kernel: str) -> TcpMonitor:
    """A monitor that reads settings of the kernel from files, and sockets from the kernel."""
    folder = tmp_path / "sys/net/ipv4"
    folder.mkdir(parents=True)
    own = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    for name, text in {"ip_local_port_range": own, "tcp_timestamps": "1", **kernel}.items():
        (folder / name).write_text(text)
    monitor = TcpMonitor(str(tmp_path))
    monitor.open(Ports((Port("s", 1, "http", 1),)))
    return monitor


def taken(monitor: TcpMonitor, listener: socket.socket) -> int:
    to = f"127.0.0.1:{listener.getsockname()[1]}"
    counts = values(read(monitor, last=True), "ports_taken", to=to)
    return int(counts[0] or 0) if counts else 0


def test_a_port_is_taken_by_who_ended_first_until_it_has_rested(
    opened: ExitStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp, "_FULLEST", 1_000)  # whatever else goes on here
    listener = listening(opened, 50)
    delays = {"soon": "1\n", "late": "59000\n"}  # after the end of a connection, in ms
    soon, late = (
        settings(tmp_path / name, tcp_tw_reuse="2\n", tcp_tw_reuse_delay=delay)
        for name, delay in delays.items()
    )
    never = settings(tmp_path / "never", tcp_tw_reuse="0\n")
    opened.enter_context(socket.create_connection(listener.getsockname()))
    opened.enter_context(listener.accept()[0])
    for our_end_first in (True,) * 7 + (False,) * 4:
        client = socket.create_connection(listener.getsockname())
        served, _ = listener.accept()
        for end in (client, served) if our_end_first else (served, client):
            end.close()
            time.sleep(0.02)

    # One stands; of the four that the listener's side ended first, that side keeps its port and not ours.
    assert [taken(monitor, listener) for monitor in (soon, late, never)] == [1, 1 + 7, 1 + 7]


def test_connections_fail_when_as_many_ports_are_taken_as_there_are(
    opened: ExitStack, tmp_path: Path
) -> None:
    """The kernel is asked: a socket with a range of its own (IP_LOCAL_PORT_RANGE) gets none beyond."""
    listener = listening(opened, 50)
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]) + 4_000
    high = low + 19
    monitor = settings(tmp_path, ip_local_port_range=f"{low} {high}", tcp_tw_reuse="2")

    failed = None
    for _ in range(40):
        client = opened.enter_context(socket.socket())
        try:
            client.setsockopt(socket.IPPROTO_IP, 51, struct.pack("=I", low | high << 16))
        except OSError:
            pytest.skip("Linux before 6.3")
        failed = client.connect_ex(listener.getsockname())
        if failed:
            break
        opened.enter_context(listener.accept()[0])

    assert failed == errno.EADDRNOTAVAIL
    # A port with a listener, or one that is bound, is taken from every other socket.
    assert 18 <= taken(monitor, listener) <= value(read(monitor, last=True), "ports_there") == 20


@pytest.mark.parametrize(
    ("reuse", "stamps", "near_s", "far_s"),
    [("0", "1", 60.0, 60.0), ("1", "1", 1.0, 1.0), ("2", "1", 1.0, 60.0), ("1", "0", 60.0, 60.0)],
)
def test_how_long_a_port_rests(tmp_path: Path, reuse: str, stamps: str, near_s: float, far_s: float) -> None:
    """As tcp_twsk_unique of the kernel decides; without timestamps nothing is used again."""
    monitor = settings(tmp_path, tcp_tw_reuse=reuse, tcp_timestamps=stamps)

    assert (monitor._rests_s(is_near=True), monitor._rests_s(is_near=False)) == (near_s, far_s)


def test_only_ports_of_the_range_count(opened: ExitStack, tmp_path: Path) -> None:
    listener = listening(opened, 10)
    with socket.create_connection(listener.getsockname()) as client:
        port = client.getsockname()[1]
        around = [(port, port), (port - 1, port), (port + 1, port + 9), (1, port - 1)]
        monitors = [
            settings(tmp_path / str(n), ip_local_port_range=f"{low}\t{high}\n", tcp_tw_reuse="2")
            for n, (low, high) in enumerate(around)
        ]
        counts = [taken(monitor, listener) for monitor in monitors]
        there = [value(read(monitor, last=True), "ports_there") for monitor in monitors]

    assert counts == [1, 1, 0, 0]
    assert there == [1, 2, 9, port - 1]


@pytest.mark.parametrize(
    ("family", "own", "other", "to", "is_near"),
    [
        (socket.AF_INET, "10.0.0.1", "10.0.0.2", "10.0.0.2:5432", False),
        (socket.AF_INET, "127.0.0.1", "127.0.0.2", "127.0.0.2:5432", True),
        (socket.AF_INET6, "::ffff:10.0.0.1", "::ffff:10.0.0.2", "10.0.0.2:5432", False),
        (socket.AF_INET6, "::1", "::1", "[::1]:5432", True),
    ],
)
def test_a_way_is_named_as_people_write_it(
    family: socket.AddressFamily, own: str, other: str, to: str, is_near: bool
) -> None:
    ends = b"".join(socket.inet_pton(family, address).ljust(16, b"\0") for address in (own, other))

    way = tcp._way(bytes([family, 6, 3, 0]) + struct.pack("!HH", 40_000, 5_432) + ends)

    assert (way.to, way.is_near) == (to, is_near)


def answered(client: socket.socket, served: socket.socket, seconds: float) -> float:
    """One request and its answer, of a segment each; seconds in which both were made."""
    began = time.monotonic()
    client.sendall(b"GET")
    served.recv(16)
    time.sleep(seconds)
    served.sendall(b"OK")
    client.recv(16)
    return time.monotonic() - began


@where_calm
def test_requests_are_counted_and_the_last_answers_timed(opened: ExitStack) -> None:
    listener = listening(opened, 10)
    client = opened.enter_context(socket.create_connection(listener.getsockname()))
    served = opened.enter_context(listener.accept()[0])
    monitor = monitor_of(listener)
    read(monitor, last=True)

    took_s = [answered(client, served, 0.05) for _ in range(4)]
    rows = read(monitor, last=True)

    assert value(rows, "requests_in") == 4
    assert value(rows, "answers_seen") == 1  # the last of them
    assert 0.03 <= value(rows, "answer_s") <= took_s[-1] + 0.02  # 0.05 s, in steps of the timer
    assert value(rows, "busy") == 0


@where_calm
def test_a_request_without_an_answer_is_busy_and_its_answer_counts_later(opened: ExitStack) -> None:
    listener = listening(opened, 10)
    client = opened.enter_context(socket.create_connection(listener.getsockname()))
    served = opened.enter_context(listener.accept()[0])
    monitor = monitor_of(listener)
    read(monitor, last=True)
    client.sendall(b"GET")
    time.sleep(0.05)

    during = read(monitor, last=True)
    served.recv(16)
    served.sendall(b"OK")
    client.recv(16)
    after = read(monitor, last=True)

    assert (value(during, "busy"), value(during, "requests_in"), value(during, "answers_seen")) == (1, 1, 0)
    assert (value(after, "busy"), value(after, "requests_in"), value(after, "answers_seen")) == (0, 1, 1)
    assert value(after, "answer_s") >= 0.03


def test_what_was_said_on_connections_that_ended_stays_counted(opened: ExitStack) -> None:
    listener = listening(opened, 10)
    monitor = monitor_of(listener)
    for _ in range(2):
        client = socket.create_connection(listener.getsockname())
        served, _ = listener.accept()
        answered(client, served, 0.0)
        read(monitor, last=True)
        client.close()
        served.close()

    assert value(read(monitor, last=True), "requests_in") == 2


def called(opened: ExitStack) -> tuple[TcpMonitor, str, socket.socket, socket.socket]:
    """A monitor of a port that is called, its name, and the two ends of a connection to it.

    Calls and answers of a segment each went there for a while: the kernel then delays acknowledgements, so
    that they go with what is sent next (tcp(7), TCP_QUICKACK).
    """
    listener = listening(opened, 10)
    client = opened.enter_context(socket.create_connection(listener.getsockname()))
    served = opened.enter_context(listener.accept()[0])
    port = listener.getsockname()[1]
    monitor = TcpMonitor()
    monitor.open(Ports((Port("db", 1, "any", port, is_called=True),)))
    for _ in range(50):
        answered(client, served, 0.0)
    return monitor, f"db:{port}", client, served


def held_back(monitor: TcpMonitor, to: str) -> float:
    return value(read(monitor, last=True), "calls_held_back", to=to)


def two_pieces(writer: socket.socket) -> None:
    writer.send(b"one")
    writer.send(b"two")


def answer(reader: socket.socket, writer: socket.socket, length: int) -> None:
    """Answer once so many bytes have come."""
    while length > 0:
        length -= len(reader.recv(length))
    reader.send(b"answer")
    writer.recv(16)


@pytest.mark.parametrize("is_answer", [False, True], ids=["call", "answer"])
def test_a_piece_that_waits_for_an_acknowledgement_is_held_back(opened: ExitStack, is_answer: bool) -> None:
    monitor, to, client, served = called(opened)
    writer, reader = (served, client) if is_answer else (client, served)
    until = time.monotonic() + 3
    seen = 0.0

    while not seen and time.monotonic() < until:
        two_pieces(writer)
        seen = held_back(monitor, to)
        answer(reader, writer, 6)

    assert seen == 1
    assert held_back(monitor, to) == 0  # both have come


@pytest.mark.parametrize("is_answer", [False, True], ids=["call", "answer"])
def test_with_nodelay_no_piece_is_held_back(opened: ExitStack, is_answer: bool) -> None:
    monitor, to, client, served = called(opened)
    writer, reader = (served, client) if is_answer else (client, served)
    writer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    looks = []

    for _ in range(30):
        two_pieces(writer)
        looks.append(held_back(monitor, to))
        answer(reader, writer, 6)

    assert looks == [0.0] * 30


def test_each_connection_with_a_piece_held_back_counts_at_its_port(opened: ExitStack) -> None:
    """Of four to a port two hold a piece back, and one has sent all at once; so does one to another port."""
    listeners = [listening(opened, 10) for _ in range(2)]
    ends = []
    for listener in (*listeners[:1] * 4, listeners[1]):
        client = opened.enter_context(socket.create_connection(listener.getsockname()))
        ends.append((client, opened.enter_context(listener.accept()[0])))
    ports = [listener.getsockname()[1] for listener in listeners]
    monitor = TcpMonitor()
    monitor.open(Ports(tuple(Port("db", 1, "any", port, is_called=True) for port in ports)))
    apart = (*ends[:2], ends[4])
    whole = b"all of a call"

    def counts() -> list[float]:
        for client, served in ends:
            answered(client, served, 0.0)
        for client, _ in apart:
            two_pieces(client)
        ends[2][0].send(whole)
        rows = read(monitor, last=True)
        for client, served in apart:
            answer(served, client, 6)
        answer(ends[2][1], ends[2][0], len(whole))
        return [value(rows, "calls_held_back", to=f"db:{port}") for port in ports]

    eventually(lambda: counts() == [2, 1])


def unsent(writer: socket.socket) -> int:
    """Bytes of a socket that were not sent yet (tcpi_notsent_bytes)."""
    info = writer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return int(struct.unpack_from("=I", info, 144)[0])


def test_what_waits_for_the_congestion_window_is_not_held_back(opened: ExitStack) -> None:
    """Each small piece is sent as it comes, until as many as the window has are under way."""
    monitor, to, client, _ = called(opened)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    looks = []

    for _ in range(300):
        client.send(bytes(100))
        if unsent(client):
            looks.append(held_back(monitor, to))

    assert looks
    assert set(looks) == {0.0}


def test_what_waits_for_a_reader_that_does_not_read_is_not_held_back(opened: ExitStack) -> None:
    monitor, to, client, _ = called(opened)
    client.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            client.send(bytes(1000))

    assert unsent(client) > 100_000  # more than any segment
    assert [held_back(monitor, to) for _ in range(10)] == [0.0] * 10
