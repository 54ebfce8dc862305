"""The right to ask: a token in the URL that is printed, a cookie afterwards, and pages of this server alone.

A page of another site can send requests to loopback, and with a name that it points here (DNS rebinding) it
could read the answers: so the name in `Host` and the origin are checked, and every action needs the token,
which no other page can know. There is no CORS.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import urlsplit

TOKEN_HEADER: Final = "X-Loadlens-Token"
_INLINE: Final = {
    kind: re.compile(rf"<{kind}\b[^>]*>(.*?)</{kind}>".encode(), re.DOTALL | re.IGNORECASE)
    for kind in ("script", "style")
}
ALWAYS: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
REPORT_POLICY: Final = "sandbox allow-scripts allow-popups; frame-ancestors 'self'"
DATA_POLICY: Final = "default-src 'none'; frame-ancestors 'none'; sandbox"


@dataclass(frozen=True, slots=True)
class Guard:
    """The secrets of a server and the names that it answers to."""

    port: int
    origins: tuple[str, ...] = ()  # of a proxy in front: https://load.example.com
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def url(self) -> str:
        """The URL to open; a fragment is never sent to a server, and so is in no log."""
        return f"http://127.0.0.1:{self.port}/#{self.token}"

    @property
    def set_cookie(self) -> str:
        """The header that lets a page in after it showed the token."""
        return f"{self._cookie_name}={self.cookie}; Path=/; HttpOnly; SameSite=Strict"

    @property
    def _cookie_name(self) -> str:
        return f"loadlens-{self.port}"  # cookies are shared by all ports of a host

    @property
    def _own_origins(self) -> frozenset[str]:
        names = ("127.0.0.1", "localhost", "[::1]")
        return frozenset({*(f"http://{name}:{self.port}" for name in names), *self.origins})

    def is_own_host(self, hosts: list[str]) -> bool:
        """True if there is one `Host`, and it names this server."""
        own = {urlsplit(origin).netloc for origin in self._own_origins}
        return len(hosts) == 1 and hosts[0].strip().lower() in own

    def is_own_page(self, origins: list[str], sites: list[str]) -> bool:
        """True unless the request says that another page makes it (`Origin`, `Sec-Fetch-Site`)."""
        return all(origin in self._own_origins for origin in origins) and all(
            site in ("same-origin", "none") for site in sites
        )

    def has_token(self, tokens: list[str]) -> bool:
        """True if the header with the token is right."""
        return len(tokens) == 1 and hmac.compare_digest(tokens[0].encode(), self.token.encode())

    def has_cookie(self, cookies: list[str]) -> bool:
        """True if the cookie is right."""
        for text in cookies:
            try:
                morsel = SimpleCookie(text).get(self._cookie_name)
            except CookieError:
                continue
            if morsel is not None and hmac.compare_digest(morsel.value.encode(), self.cookie.encode()):
                return True
        return False


def page_policy(page: bytes) -> str:
    """Return a Content-Security-Policy under which no script runs but those of the page, without network."""
    hashes = {
        kind: " ".join(
            f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"
            for text in pattern.findall(page)
        )
        or "'none'"
        for kind, pattern in _INLINE.items()
    }
    return (
        f"default-src 'none'; script-src {hashes['script']}; style-src {hashes['style']}; "
        "connect-src 'self'; img-src 'self' data:; frame-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
