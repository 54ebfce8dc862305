"""How far our quantiles are from the server's own."""

from __future__ import annotations

import pytest
from benches.laws import worst

SERVERS = [number / 1000 for number in range(1, 1001)]  # 1 to 1,000 ms, one each


def ours(change_s: float) -> dict[str, float]:
    served = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
    return {name: taken + change_s for name, taken in served.items()}


def test_equal_quantiles_are_neither_above_nor_below() -> None:
    assert worst(ours(0.0), SERVERS) == (0.0, 0.0)


def test_the_allowance_is_the_larger_of_a_time_and_a_share() -> None:
    # 10 ms more: 1 % of the 500 ms in the middle is 5 ms, so it is twice what is allowed; above there, less.
    above, below = worst(ours(0.010), SERVERS)

    assert above == pytest.approx(2.0)
    assert below == 0.0

    # Of 1 ms 1 % is 10 us, so 50 us are allowed.
    assert worst(dict.fromkeys(ours(0.0), 0.001_025), [0.001] * 10)[0] == pytest.approx(0.5)


def test_what_is_below_is_a_share_of_the_server_s_time() -> None:
    # 10 ms less of the 500 ms in the middle; the largest share is there.
    above, below = worst(ours(-0.010), SERVERS)

    assert above == 0.0
    assert below == pytest.approx(0.02)
