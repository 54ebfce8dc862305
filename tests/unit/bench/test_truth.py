"""Check of what is true of the known services, and how the words of generators are read."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from benches.generators import GENERATORS, ReportedTimes
from benches.truth import FREEZE_S, PERIOD_S, SERVICE_S, steady_quantile

PRINTED = Path(__file__).parents[2] / "data" / "bench"


@pytest.mark.parametrize("share", [0.5, 0.89, 0.95, 0.99, 0.999])
def test_the_truth_of_a_freeze_is_that_of_a_simulated_one(share: float) -> None:
    # A hundred thousand arrivals in one period, the freeze at 4 s: each by the rule that the server follows.
    count, begins = 100_000, 4.0
    ends = begins + FREEZE_S

    def answered(arrived: float) -> float:
        if begins <= arrived < ends:
            return ends + SERVICE_S
        done = arrived + SERVICE_S
        return ends if begins < done < ends else done

    times = sorted(answered(i * PERIOD_S / count) - i * PERIOD_S / count for i in range(count))
    simulated = times[math.ceil(share * count) - 1]

    assert steady_quantile(share) == pytest.approx(simulated, abs=2e-4)


# Read by eye from what each program printed of 2 s (locust: 10 s) on a busy machine.
SAID = {
    "wrk": ReportedTimes(0.04374, 0.22227, None, 0.30265),
    "ab": ReportedTimes(0.040, 0.250, None, 0.327),
    "h2load": ReportedTimes(None, None, None, 0.29390),
    "hey": ReportedTimes(0.0179, 0.2158, None, 0.2598),
    "bombardier": ReportedTimes(0.017838, 0.209937, None, 0.339673),
    "vegeta": ReportedTimes(0.015923644, 0.213097754, None, 0.294418776),
    "k6": ReportedTimes(0.0218416415, 0.21686384085, 0.282690507082, 0.292804478),
    "locust": ReportedTimes(0.027, 0.220, 0.250, 0.340),
}


@pytest.mark.parametrize("name", SAID)
def test_what_a_generator_printed_is_read_as_a_person_reads_it(name: str) -> None:
    read = GENERATORS[name].read
    assert read is not None
    printed = PRINTED / f"{name}.txt"

    told = read(printed.read_text() if printed.exists() else "", PRINTED)

    for field in ("p50_s", "p99_s", "p999_s", "max_s"):
        assert getattr(told, field) == pytest.approx(getattr(SAID[name], field)), field
