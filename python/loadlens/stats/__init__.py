"""Estimators: pure functions on arrays. An interval comes with every point, or the reason why there is none.

Within one trial: `within` (quantiles, means, shares), `steady`, `probes`, `laws`. Over trials: `trials`.
Over levels of load: `saturation`, `demand`. Nothing here knows a record, a study or a report.
"""
