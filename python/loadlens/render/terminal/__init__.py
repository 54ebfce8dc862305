"""Reports and results on a terminal of 80 columns; the same words as in every other medium."""

from __future__ import annotations

from loadlens.render.terminal.hit import print_hit
from loadlens.render.terminal.report import print_report

__all__ = ["print_hit", "print_report"]
