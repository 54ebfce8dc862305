"""Estimators: pure functions on arrays. An interval comes with every point, or the reason why there is none.

Within one trial: `within` (quantiles, means, shares), `resampling` (what has no formula), `steady`, `drift`,
`pauses`, `mixtures`, `probes`, `omission`, `arrivals`, `generator`, `laws`, `accounting`, `connections`,
`limiter`. Over trials: `trials`, `comparing`. Over levels of load: `saturation`, `scalability`, `demand`,
`separation`, `capacity`. Before anything runs: `planning`. Nothing here knows a record, a study or a report.
"""
