"""The next trial from the last ones: finds a ladder of loads by itself, and says what it shows.

`discovery.py` finds what can be watched, `ladder.py` decides, `guard.py` looks at a load while it runs,
`step_cases.py` says what a decision is as a case of a study, `explore.py` carries it out through `run`,
`answer.py` reads the record and answers.
"""

from __future__ import annotations

from loadlens.search.answer import explanation
from loadlens.search.explore import Explored, explore

__all__ = ["Explored", "explanation", "explore"]
