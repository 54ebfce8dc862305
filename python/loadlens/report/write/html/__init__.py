"""A Report as one HTML file that reads, prints and is safe without JavaScript and without a network."""

from __future__ import annotations

from loadlens.report.write.html.page import page

__all__ = ["page"]
