"""A Report as Markdown, to be read in a pull request and to diff well: the same sections as the page.

Charts are SVG files next to it, folds are `<details>`, and no table contains a date.
"""

from __future__ import annotations

from loadlens.report.write.markdown.document import CASES, MAIN, files, page

__all__ = ["CASES", "MAIN", "files", "page"]
