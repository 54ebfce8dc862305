"""The record holds the parts of every request, and they are those of the result."""

from __future__ import annotations

import secrets
from pathlib import Path

from benches.measuring import Origin

from loadlens.record import open_run
from tests.calm import where_calm
from tests.end_to_end.hitting import hit


@where_calm
def test_phases_of_a_record_count_as_many_successes_as_the_result(server: Origin, tmp_path: Path) -> None:
    record = tmp_path / secrets.token_hex(4)

    load = ("-c", "2", "-n", "200", "--connection", "new", "-o", str(record))
    result = hit(server, "/bad/slow_body", *load)  # the body in two pieces, 30 ms apart

    phases = result["phases_s"]
    assert {name: phases[name]["count"] for name in ("connect", "first_byte", "last_byte")} == {
        "connect": 200,
        "first_byte": 200,
        "last_byte": 200,
    }
    # the second piece is 30 ms behind the first; a late look at the first makes that shorter, never longer
    assert phases["last_byte"]["mean"]["value"] >= 0.02
    assert phases["resolve"] is None  # an address is no name
    (kept,) = open_run(record).trials
    tags = {(h.klass, h.kind): 0 for h in kept.intervals()}
    for h in kept.intervals():
        tags[h.klass, h.kind] += int(h.counts.sum())
    assert (tags["ok", "first_byte"], tags["ok", "last_byte"], tags["", "connect"]) == (200, 200, 200)
