"""One connection before a load: a target that takes none is a mistake to report, not a load to measure."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

from loadlens.errors import TestbedError, reason_of

if TYPE_CHECKING:
    from loadlens.model.workload import Plan, Target

WITHIN_S: Final = 10.0


def connect_once(plan: Plan) -> None:
    """Connect to the target of a plan's load, once.

    Raises:
        TestbedError: See `connect`.
    """
    stream = plan.streams[0]
    connect(stream.target, timeout_ns=stream.timeout_ns)


def connect(target: Target, *, timeout_ns: int, is_hit: bool = True) -> None:
    """Open one connection to the target, TLS handshake included, and close it; nothing is sent over HTTP.

    Args:
        target: Destination of the load.
        timeout_ns: Time-out of the load's requests; no step of the attempt lasts longer.
        is_hit: Hints name flags of `hit`; false: those of `explain`.

    Raises:
        TestbedError: The host has no address, the port takes no connection, or the handshake fails.
    """
    from loadlens import http_client

    within_s = min(WITHIN_S, max(timeout_ns / 1e9, 0.001))
    place = _place(target)
    try:
        made = http_client.connection(target.host, target.port, target.tls, within_s=within_s)
        try:
            made.connect()
        finally:
            made.close()
    except socket.gaierror as fault:
        raise unknown_host(target.host, fault) from None
    except http_client.FileFault:
        return  # the engine reports unusable files in words of its own
    except TimeoutError:
        raise TestbedError(
            f"no connection to {place} within {within_s:g} s",
            hint="the address and the port, or a firewall between here and there",
        ) from None
    except ConnectionRefusedError:
        raise TestbedError(
            f"nothing is listening on {place} (connection refused)",
            hint="start the service, or another URL",
        ) from None
    except (OSError, UnicodeError) as fault:
        raise _failed(place, fault, is_hit=is_hit) from None


def unknown_host(host: str, fault: OSError | UnicodeError) -> TestbedError:
    """Return the error for a host name without an address."""
    words = reason_of(fault)
    return TestbedError(
        f"unknown host {host!r}: {words}", hint=f"the spelling of the host: getent hosts {host}"
    )


def _failed(place: str, fault: OSError | UnicodeError, *, is_hit: bool) -> TestbedError:
    from loadlens import http_client
    from loadlens.present import failure_text

    if isinstance(fault, UnicodeError):
        return unknown_host(place, fault)
    is_tls = http_client.is_of_tls(fault)
    reason = failure_text.explained("tls" if is_tls else "", http_client.words(fault))
    hint = reason.for_hit if is_hit else reason.for_explain
    return TestbedError(f"cannot connect to {place}: {reason.words}", hint=hint or None)


def _place(target: Target) -> str:
    host = f"[{target.host}]" if ":" in target.host else target.host
    return f"{host}:{target.port}"
