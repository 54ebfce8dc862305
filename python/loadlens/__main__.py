"""`python -m loadlens` is the command line."""

from __future__ import annotations

from loadlens.cli import main

main()
