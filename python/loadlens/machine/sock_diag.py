"""Questions to the kernel about sockets by netlink: sock_diag(7). Any user may ask."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from typing import Final

# linux/netlink.h, linux/sock_diag.h
_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_REQUEST_DUMP: Final = 0x301
_ERROR, _DONE = 2, 3
_HEADER: Final = struct.Struct("=IHHII")
_ATTRIBUTE: Final = struct.Struct("=HH")
_WITHIN_S: Final = 2.0


def dump(*questions: bytes) -> Iterator[bytes]:
    """Yield the sockets that questions are about, each as the kernel describes it.

    Args:
        questions: Each for one family of addresses.

    Raises:
        OSError: The kernel does not answer such questions, or not this program.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as link:
        link.settimeout(_WITHIN_S)
        for body in questions:
            link.send(_HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST_DUMP, 1, 0) + body)
            yield from _answers(link)


def attribute(message: bytes, wanted: int, begin: int) -> bytes:
    """Return the content of an attribute; empty where the kernel did not send it.

    Args:
        message: Description of a socket.
        wanted: Number of the attribute.
        begin: Bytes before the first attribute.
    """
    at = begin
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        if kind == wanted:
            return message[at + _ATTRIBUTE.size : at + length]
        at += max(4, (length + 3) & ~3)
    return b""


def _answers(link: socket.socket) -> Iterator[bytes]:
    while True:
        received = link.recv(1 << 17)
        at = 0
        while at + _HEADER.size <= len(received):
            length, kind, *_ = _HEADER.unpack_from(received, at)
            body = received[at + _HEADER.size : at + length]
            if kind == _DONE:
                return
            if kind == _ERROR:
                number = -struct.unpack_from("=i", body)[0]
                raise OSError(number, os.strerror(number))
            yield body
            at += (length + 3) & ~3
