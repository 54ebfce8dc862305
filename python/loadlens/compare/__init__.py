"""Two versions of a service, compared: finished records, or trials that are run in pairs for it.

`judge.py` gives the verdict, `metrics.py` says what is compared, `records.py` finds both versions in records,
`plan.py` makes a live comparison a study, `live.py` runs it, `revisions.py` checks git revisions out for it.
"""
