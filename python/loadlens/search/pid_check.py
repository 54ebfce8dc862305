"""Checks of watched processes: one listens on the port, or a busy service would look idle; all still live."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loadlens.machine.listening_sockets import listeners, sockets_of, with_descendants


def caution(pids: Sequence[int], port: int) -> str | None:
    """Warning that the pids may be wrong; `None` if one listens there or its sockets are not readable."""
    sockets = {inode for inode, on in listeners().items() if on == port}
    if not pids or not sockets:
        return None
    family = with_descendants(pids)
    seen = [sockets_of(pid) for pid in family]
    if any(inodes is None for inodes in seen) or any(inodes & sockets for inodes in seen if inodes):
        return None
    listed = ", ".join(str(pid) for pid in pids)
    return (
        f"process {listed} and what it started do not listen on port {port}: its CPU may not be the service's"
    )


def has_ended(pids: Sequence[int]) -> bool:
    """Return True if processes of the service are known and none is left."""
    return bool(pids) and not any(map(_lives, pids))


def ended(pids: Sequence[int]) -> str | None:
    """Warning that processes of the service have ended; `None` if all live."""
    gone = [str(pid) for pid in pids if not _lives(pid)]
    if not gone:
        return None
    return f"process {', '.join(gone)} of the service ended during the search: its log may say why"


def _lives(pid: int) -> bool:
    try:
        return bool(Path("/proc", str(pid), "cmdline").read_bytes())  # that of a zombie is empty
    except OSError:
        return False
