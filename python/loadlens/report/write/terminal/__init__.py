"""Reports and results on a terminal of 80 columns; the same words as in every other medium."""

from __future__ import annotations

from loadlens.report.write.terminal.hit_summary import print_hit
from loadlens.report.write.terminal.report_text import print_report

__all__ = ["print_hit", "print_report"]
