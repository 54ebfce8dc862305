"""A Report as Markdown: the twin of the page, made to be read in a pull request and to diff well.

The same sections in the same order; charts are SVG files beside it, folds are `<details>`, and no date stands
inside a table. What would make it long (cases beyond the cited ones) stands in a file of its own.
"""

from __future__ import annotations

from loadlens.report.write.markdown.document import CASES, MAIN, files, page

__all__ = ["CASES", "MAIN", "files", "page"]
