"""Estimators: pure functions on arrays. An interval comes with every point, or the reason why there is none.

Each module names its subject. Within one trial it is one of quantiles and rates (`within_trial`), shapes of
times, pauses, drift and counts; over trials `over_trials`, `comparison` and `looks`; over levels of load
`saturation`, `separation`, `demand` and `worker_scaling`; over records `change_points`. Nothing here knows a
record, a study or a report.
"""
