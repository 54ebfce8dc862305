"""Signs passes; one signer per thread, as its buffers are not safe to share."""

import hashlib
import hmac
import json
import threading
from typing import Any

from .config import Config


class Signer:
    def __init__(self, config: Config) -> None:
        self.key = hashlib.pbkdf2_hmac("sha256", config.secret, config.works.encode(), config.key_rounds)
        self.buffer = bytearray()
        self.signed = 0

    def sign(self, claims: dict[str, Any]) -> str:
        self.buffer[:] = json.dumps(claims, sort_keys=True, separators=(",", ":")).encode()
        self.signed += 1
        return hmac.new(self.key, self.buffer, hashlib.sha256).hexdigest()


class Signers:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.local = threading.local()

    def mine(self) -> Signer:
        signer = getattr(self.local, "signer", None)
        if signer is None:
            signer = self.local.signer = Signer(self.config)
        return signer
