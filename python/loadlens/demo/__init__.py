"""Small services with a hidden flaw: `services/` has their source, `flaws.py` what is wrong with each.

Nothing here measures or diagnoses: a search is given the URL alone, as a user would give it.
"""

from __future__ import annotations

from loadlens.demo.answer_key import answer_key_as_dict, answer_key_lines
from loadlens.demo.flaws import FLAWS, Flaw
from loadlens.demo.running import running

__all__ = ["FLAWS", "Flaw", "answer_key_as_dict", "answer_key_lines", "running"]
