"""Does a process that is to be watched serve the port? A wrong pid would make a busy service look idle."""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.machine.listening_sockets import listeners, sockets_of, with_descendants


def caution(pids: Sequence[int], port: int) -> str | None:
    """Why the pids may be the wrong ones, in words; none: one of them listens there, or nobody may look."""
    sockets = {inode for inode, on in listeners().items() if on == port}
    if not pids or not sockets:
        return None
    family = with_descendants(pids)
    seen = [sockets_of(pid) for pid in family]
    if any(known is None for known in seen) or any(known & sockets for known in seen if known):
        return None
    listed = ", ".join(str(pid) for pid in pids)
    return (
        f"process {listed} and what it started do not listen on port {port}: its CPU may not be the service's"
    )
