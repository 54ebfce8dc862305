"""What ab prints and writes of a load, from our own requests: text, tables, and the files of -g and -e."""

from loadlens.render.ab.figures import AbFigures, Spread, figures_of
from loadlens.render.ab.files import percentile_file, request_file
from loadlens.render.ab.html import html
from loadlens.render.ab.layout import Shown, text

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
