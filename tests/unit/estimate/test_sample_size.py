"""Sample sizes against tables of the literature, hand counts and simulated queues."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as distributions

from loadlens.estimate.sample_size import (
    pairs_for,
    power_of_pairs,
)


def test_power_is_that_of_the_noncentral_t_by_simulation() -> None:
    random = np.random.default_rng(3)
    seen = sum(distributions.ttest_1samp(random.normal(0.05, 0.04, 8), 0).pvalue < 0.05 for _ in range(2000))

    assert seen / 2000 == pytest.approx(power_of_pairs(8, 0.05, 0.04), abs=0.035)


def test_pairs_for_an_effect_of_one_standard_deviation() -> None:
    assert pairs_for(0.05, 0.05) == 10  # Cohen 1988: n = 10 for d = 1, paired, 80 % at 5 %
    assert pairs_for(0.05, 0.0) == 3
