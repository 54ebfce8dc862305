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
        help="Run a service in this of its variants; may be repeated. Default: the first whose needs the "
        "machine meets. Example: --variant api=cowboy",
    ),
]

Method = Annotated[
    str | None,
    typer.Option(
        "-m",
        "--method",
        "-X",
        metavar="METHOD",
        help="Use METHOD. Default: GET, with a body POST. Example: -m PUT",
    ),
]

Headers = Annotated[
    list[str] | None,
    typer.Option(
        "-H",
        "--header",
        metavar="NAME:VALUE",
        help="Add a header; may be repeated. Example: -H 'Accept: */*'",
    ),
]

Expected = Annotated[
    str | None,
    typer.Option(
        "--expect",
        metavar="STATUS,...",
        help="Take only these statuses as expected. Default: 200 to 399. Example: --expect 200,404",
    ),
]

Insecure = Annotated[
    bool,
    typer.Option(
        "-k",
        "--insecure",
        help="Take any certificate of an https server. Of no effect on http URLs.",
    ),
]

Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", metavar="N", help="Draw everything random from seed N. Default: a new one, recorded."
    ),
]

Out = Annotated[
    Path | None, typer.Option("-o", "--out", metavar="DIR", help="Keep the record in DIR, a new folder.")
]
