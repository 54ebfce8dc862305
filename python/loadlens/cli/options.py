"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Variants = Annotated[
    list[str] | None,
    typer.Option(
        "--variant",
        metavar="SERVICE=NAME",
        help="Run a service in this variant; repeatable. Default: the first variant that can run on this "
        "machine. Example: --variant api=cowboy",
    ),
]

Method = Annotated[
    str | None,
    typer.Option(
        "-m",
        "--method",
        "-X",
        metavar="METHOD",
        help="Use METHOD. Default: GET, or POST with a body. Example: -m PUT",
    ),
]

Headers = Annotated[
    list[str] | None,
    typer.Option(
        "-H",
        "--header",
        metavar="NAME:VALUE",
        help="Add a header; repeatable. Example: -H 'Accept: */*'",
    ),
]

Expected = Annotated[
    str | None,
    typer.Option(
        "--expect",
        metavar="STATUS,...",
        help="Count only these statuses as success. Default: 200 to 399. Example: --expect 200,404",
    ),
]

Insecure = Annotated[
    bool,
    typer.Option(
        "-k",
        "--insecure",
        help="Accept any certificate of an https server. No effect on http URLs.",
    ),
]

Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", metavar="N", help="Seed every random draw with N. Default: a new seed, which is recorded."
    ),
]

Out = Annotated[
    Path | None, typer.Option("-o", "--out", metavar="DIR", help="Write the record to DIR, a new folder.")
]
