"""Two versions of a service, compared: finished records, or trials that are run in pairs for it.

`judge.py` gives the verdict, `metrics.py` says what is compared, `records.py` finds both versions in records.
Live, `pairing.py` runs pairs until they decide. `plan.py` and `live.py` say what a pair of two URLs is, or of
two commands; `study_pairs.py` of two git revisions of a study, which `revisions.py` checks out. `history.py`
follows each load through many records.
"""

from loadlens._callable import make_callable

make_callable(__name__)
