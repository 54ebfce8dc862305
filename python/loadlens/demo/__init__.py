"""Small services with a hidden flaw: `services/` has their source, `flaws.py` what is wrong with each.

Nothing here measures or diagnoses: a search is given the URL alone, as a user would give it.
"""

from __future__ import annotations

from loadlens.demo.flaws import FLAWS, Flaw

__all__ = ["FLAWS", "Flaw"]
