"""Options that several verbs share."""

from __future__ import annotations

from typing import Annotated

import typer

Variants = Annotated[
    list[str] | None,
    typer.Option(
        "--variant",
        metavar="SERVICE=NAME",
        help="Run a service in this of its variants; may be repeated. Default: the first whose needs the "
        "machine meets. Example: --variant api=cowboy",
    ),
]
