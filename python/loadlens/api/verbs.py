"""The verbs as functions: they print nothing, and a mistake raises what the command line would print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from loadlens.api.keywords import described, options_of
from loadlens.api.results import Load, load_of
from loadlens.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from loadlens.api.flags import HitFlags


@described
def hit(*urls: str, **flags: Unpack[HitFlags]) -> Load:
    """Load a URL, and return the result and how far to trust it.

    Args:
        urls: One URL, or several of one service, which share the load.
        flags: The flags of `loadlens hit`, such as `rate=500, duration="30s", objective=["p99<50ms"]`.

    Raises:
        UsageError: A keyword or a value that cannot be used; nothing was sent.
        TestbedError: Nothing accepts connections there.
        EngineError: This machine cannot carry the load.
        KeyboardInterrupt: Ctrl-C; the load ended, and `out=` keeps what was measured.
    """
    from loadlens.cli import hit as verb
    from loadlens.cli.hit_options import HitOptions

    if not urls and flags.get("targets") is None:
        raise UsageError("no URL", where="loadlens.hit", hint='loadlens.hit("http://127.0.0.1:8080/")')
    made = verb.load(options_of(HitOptions, "hit", flags, urls=urls, quiet=True))
    made.outputs.write(made.as_json, made.as_result)
    if made.done.lost is not None:
        raise made.done.lost
    if made.exit_code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED, ExitCode.HUNG_UP):
        raise KeyboardInterrupt
    return load_of(made)
