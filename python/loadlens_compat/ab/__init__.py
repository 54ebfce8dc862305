"""Output of ab, computed from our own requests: text, tables, and the files of -g and -e."""

from loadlens_compat.ab.figures import AbFigures, Spread, figures_of
from loadlens_compat.ab.files import percentile_file, request_file
from loadlens_compat.ab.html import html
from loadlens_compat.ab.layout import Shown, text

__all__ = [
    "AbFigures",
    "Shown",
    "Spread",
    "figures_of",
    "html",
    "percentile_file",
    "request_file",
    "text",
]
