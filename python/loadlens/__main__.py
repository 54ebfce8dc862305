"""The program, as `python -m loadlens` and behind `wheel/scripts/loadlens`."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes time to import
import os
import resource
import sys

CPU_TO_END_S = 3  # of CPU time, to end a load in order and show it


def main() -> None:
    """Run the command line; Ctrl-C during its imports or at its end shows no traceback."""
    # Python's at first, or of wheel/scripts/loadlens; not where it is ignored.
    is_ours = _signal.getsignal(_signal.SIGINT) in (_signal.default_int_handler, _signal.SIG_DFL)
    if is_ours:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    elif _signal.getsignal(_signal.SIGINT) == _signal.SIG_IGN:
        # Polars takes SIGINT from whatever handled or ignored it; a blocked one does not come.
        _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGINT,))
    if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
        # Python would keep modules that it, or a process it starts, could only write in part.
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard != resource.RLIM_INFINITY and hard > CPU_TO_END_S and soft > hard - CPU_TO_END_S:
        resource.setrlimit(resource.RLIMIT_CPU, (hard - CPU_TO_END_S, hard))  # SIGXCPU comes before SIGKILL
    if sys.warnoptions and not os.environ.get("LOADLENS_DEBUG"):
        import warnings

        warnings.simplefilter("ignore")  # PYTHONWARNINGS=error of a test suite is not meant for our libraries
    from loadlens.cli import run_verb
    from loadlens.errors import ExitCode
    from loadlens.present.streams import Streams

    streams = Streams()
    try:
        if is_ours:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        code = run_verb()
    except KeyboardInterrupt:  # while a message was written
        code = ExitCode.INTERRUPTED
    if is_ours:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # what is left is not worth a wait
    if code == ExitCode.CPU_LIMIT:
        sys.stderr.write("loadlens: the CPU time of this process is used up (ulimit -t)\n")
    sys.exit(streams.end(code, if_lost=ExitCode.OUTPUT))


if __name__ == "__main__":
    main()
