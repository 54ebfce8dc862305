"""Frames of the registry's protocol: length and type, then a JSON document."""

from __future__ import annotations

import json
import struct
from typing import Any

HEAD = struct.Struct("!IHH")  # length, type, version
VERSION = 3
PLOT, COMPARABLES, ERROR = 0x10, 0x11, 0x7F


def pack(kind: int, document: dict[str, Any]) -> tuple[bytes, bytes]:
    body = json.dumps(document, separators=(",", ":")).encode()
    return HEAD.pack(len(body), kind, VERSION), body


def unpack_head(head: bytes) -> tuple[int, int]:
    length, kind, version = HEAD.unpack(head)
    if version != VERSION or length > 1 << 20:
        raise ValueError(f"bad frame: version {version}, length {length}")
    return length, kind
