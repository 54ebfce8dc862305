"""The machine's figures, from files written down by hand and against psutil."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from loadlens.model.readings import METRICS
from loadlens.signals.collect.host import HostMonitor
from tests.unit.signals.collect.test_monitor import read, unlisted, value, values

FILES = {
    # ticks of 10 ms: user nice system idle iowait irq softirq steal guest guest_nice
    "stat": "cpu  100 20 300 4000 50 6 70 8 0 0\ncpu0 100 20 300 4000 50 6 70 8 0 0\nintr 1 2 3\n",
    "loadavg": "1.25 0.50 0.10 2/345 6789\n",
    "vmstat": "nr_free_pages 9\nworkingset_refault_anon 5\nworkingset_refault_file 40\npswpin 3\npswpout 8\n",
    "meminfo": "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    700 kB\n",
    "pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0 total=0\n",
    "pressure/io": "some avg10=0 avg60=0 avg300=0 total=1000\nfull avg10=0 avg60=0 avg300=0 total=500\n",
    "pressure/memory": "some avg10=0 avg60=0 avg300=0 total=7\nfull avg10=0 avg60=0 avg300=0 total=0\n",
    "net/snmp": "Tcp: RtoMin CurrEstab RetransSegs\nTcp: 200 5 17\n",
    "net/netstat": "TcpExt: ListenDrops ListenOverflows\nTcpExt: 4 3\n",
    "net/sockstat": "sockets: used 10\nTCP: inuse 5 orphan 0 tw 12 alloc 7 mem 1\n",
    # sectors of 512 bytes in columns 6 and 10, busy milliseconds in column 13
    "diskstats": (
        " 8 0 sda 1 0 100 0 2 0 200 0 0 1500 0\n"
        " 8 1 sda1 1 0 99 0 2 0 99 0 0 99 0\n"
        " 7 0 loop0 1 0 9 0 0 0 0 0 0 0 0\n"
    ),
    "net/dev": "Inter-|   Receive\n face |bytes\n    lo: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n",
}


@pytest.fixture
def written(tmp_path: Path) -> HostMonitor:
    for name, content in FILES.items():
        path = tmp_path / "proc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for device in ("sda", "loop0"):
        (tmp_path / "sys" / "block" / device).mkdir(parents=True)
    return HostMonitor(str(tmp_path / "proc"), str(tmp_path / "sys"))


@pytest.mark.parametrize(
    ("metric", "labels", "expected"),
    [
        ("cpu_user_s", {"cpu": "all"}, 1.2),  # nice counts as user
        ("cpu_system_s", {"cpu": "0"}, 3.0),
        ("cpu_idle_s", {"cpu": "all"}, 40.0),
        ("cpu_iowait_s", {"cpu": "all"}, 0.5),
        ("cpu_softirq_s", {"cpu": "all"}, 0.7),
        ("cpu_steal_s", {"cpu": "all"}, 0.08),
        ("load1", {}, 1.25),
        ("memory_total_bytes", {}, 1000 * 1024),
        ("memory_available_bytes", {}, 700 * 1024),
        ("memory_refaults", {}, 45),
        ("memory_swapped_in", {}, 3),
        ("pressure_cpu_some_s", {}, 2.5),
        ("pressure_io_some_s", {}, 0.001),
        ("pressure_io_full_s", {}, 0.0005),
        ("pressure_memory_some_s", {}, 0.000007),
        ("tcp_listen_overflows", {}, 3),
        ("tcp_listen_drops", {}, 4),
        ("tcp_retransmits", {}, 17),
        ("tcp_established", {}, 5),
        ("tcp_time_wait", {}, 12),
        ("disk_read_bytes", {"device": "sda"}, 51_200),
        ("disk_write_bytes", {"device": "sda"}, 102_400),
        ("disk_busy_s", {"device": "sda"}, 1.5),
        ("net_received_bytes", {"interface": "lo"}, 1000),
        ("net_sent_bytes", {"interface": "lo"}, 2000),
    ],
)
def test_each_figure_is_read_from_its_column(
    written: HostMonitor, metric: str, labels: dict[str, str], expected: float
) -> None:
    assert value(read(written), metric, **labels) == pytest.approx(expected)


def test_every_metric_of_the_table_has_a_row_and_no_other_one_has(written: HostMonitor) -> None:
    rows = read(written)

    assert {row.metric for row in rows} == {metric.name for metric in METRICS["host"]}
    assert unlisted(rows, METRICS["host"]) == set()


def test_partitions_and_loop_devices_are_left_out(written: HostMonitor) -> None:
    rows = read(written)

    assert len(values(rows, "disk_read_bytes")) == 1


def test_what_the_kernel_does_not_offer_is_a_row_without_a_value(tmp_path: Path) -> None:
    rows = read(HostMonitor(str(tmp_path), str(tmp_path)))

    assert values(rows, "pressure_cpu_some_s") == [None]
    assert values(rows, "tcp_listen_overflows") == [None]
    assert values(rows, "memory_available_bytes") == [None]


def test_this_machine_is_read_as_psutil_reads_it() -> None:
    before = psutil.cpu_times()
    rows = read(HostMonitor())
    after = psutil.cpu_times()
    loopback = psutil.net_io_counters(pernic=True)["lo"]

    assert before.idle <= value(rows, "cpu_idle_s", cpu="all") <= after.idle
    assert before.system <= value(rows, "cpu_system_s", cpu="all") <= after.system
    assert value(rows, "net_sent_bytes", interface="lo") <= loopback.bytes_sent
    assert len(values(rows, "cpu_user_s")) == 1 + (psutil.cpu_count() or 1)
