"""A record from a model reads as what the model says, also where intervals are taken together."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from benches import large_record

from loadlens.measure import whole_run
from loadlens.model.finding import Estimate
from loadlens.record import open_run, sample_rows

SECONDS, RATE, KEPT = 600.0, 100.0, 10_000


def test_the_report_of_a_model_has_its_closed_form(tmp_path: Path) -> None:
    requests = large_record.write(tmp_path / "large", SECONDS, RATE, kept=KEPT)

    run = open_run(tmp_path / "large")
    rows = run.trials[0].samples(["seq", "thinned"])
    (case,) = whole_run.measured(run).cases
    trial = case.usable[0]

    assert run.damage == ()
    assert requests == sum(
        int(part.counts.sum()) for part in run.trials[0].intervals() if part.kind == "response"
    )
    assert rows["thinned"].unique().to_list() == [3]  # 60,000 by halves to 10,000 at most
    assert rows["seq"].to_list() == np.flatnonzero(sample_rows.hashed(np.arange(requests)) % 8 == 0).tolist()
    assert trial.grid is not None
    assert (trial.grid.size, set(trial.grid.lengths_s.tolist())) == (300, {2.0})
    assert trial.load is not None
    assert trial.load.ok.sum() == requests == trial.load.steps[0].response.observed
    for p in (0.5, 0.99):  # exponential: the mean times ln(1 / (1 - p))
        figure = case.quantile(p, None)
        assert isinstance(figure, Estimate)
        assert figure.low is not None
        assert figure.high is not None
        assert figure.low <= large_record.MEAN_NS / 1e9 * math.log(1 / (1 - p)) <= figure.high
