"""HTTP client of the control plane, with TLS or without, for readiness and metrics of services.

It trusts the same certificates as the engine, which makes the load (`crates/transport/src/tls`), and names
failures in the same words, so that one table of advice (`present/failure_text.py`) fits both.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, Literal

from loadlens.model.workload import PemFile, Tls

_TEXT_FORMAT: Final = "text/plain;version=0.0.4"
_LARGEST_BYTES: Final = 16 << 20
_MOST_INTERIM: Final = 100  # answers before the final one
_SWITCHED: Final = http.client.SWITCHING_PROTOCOLS  # the final one, unlike all others below 200
REDIRECTS: Final = (301, 302, 303, 307, 308)
_SYSTEM: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # in place of what the operating system trusts
_UNTRUSTED: Final = "the certificate's issuer is not trusted"
_ANOTHER_NAME: Final = "the certificate is for another name"
_NOT_TLS: Final = "the server does not speak TLS on this port"
_ONLY_TLS: Final = "the server speaks TLS on this port"
_OF_CERTIFICATES: Final = {  # X509_V_ERR_* of OpenSSL's x509_vfy.h
    2: _UNTRUSTED,
    9: "the certificate is not valid yet",
    10: "the certificate has expired",
    18: _UNTRUSTED,
    19: _UNTRUSTED,
    20: _UNTRUSTED,
    21: _UNTRUSTED,
    26: "the certificate is not one for servers",
    62: _ANOTHER_NAME,
    64: _ANOTHER_NAME,
}
_OF_HANDSHAKES: Final = {  # SSL_R_* of OpenSSL's sslerr.h
    "WRONG_VERSION_NUMBER": _NOT_TLS,
    "RECORD_LAYER_FAILURE": _NOT_TLS,
    "PACKET_LENGTH_TOO_LONG": _NOT_TLS,
    "UNEXPECTED_EOF_WHILE_READING": "the connection was closed in the TLS handshake",
    "UNSUPPORTED_PROTOCOL": "the server offers no version or cipher of TLS that is supported",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the server does not speak TLS 1.2 or 1.3 (alert protocol_version)",
    "TLSV1_UNRECOGNIZED_NAME": "the server does not know the name asked for (alert unrecognized_name)",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": (
        "the server wants a client certificate (alert certificate_required)"
    ),
    "TLSV1_ALERT_UNKNOWN_CA": (
        "the server does not trust the client certificate's issuer (alert unknown_ca)"
    ),
}
_ALERT_RECORD: Final = "\x15\x03"  # how a server that speaks TLS begins its answer to plain HTTP


class FileFault(OSError):
    """A file of certificates that cannot be used, whatever the server does; `hint` is one thing to try."""

    def __init__(self, words: str, hint: str) -> None:
        super().__init__(words)
        self.hint = hint


def connection(host: str, port: int, tls: Tls | None, *, within_s: float) -> http.client.HTTPConnection:
    """Return a connection that is not open yet; `connect` includes the TLS handshake.

    Args:
        host: A name or an address, without brackets.
        port: Port of the service.
        tls: TLS settings; None: plain TCP.
        within_s: Longest wait for each step; a whole answer is one.

    Raises:
        FileFault: A file of certificates cannot be used.
    """
    if tls is None:
        made = http.client.HTTPConnection(host, port, timeout=within_s)
    else:
        made = _Secured(host, port, tls, within_s)
    made.response_class = partial(_Answer, within_s)  # type: ignore[assignment]
    return made


class _Answer(http.client.HTTPResponse):
    """A whole answer within a time, after few interim ones (1xx): `http.client` has no limit of either."""

    def __init__(self, within_s: float, sock: socket.socket, *given: Any, **named: Any) -> None:
        super().__init__(sock, *given, **named)
        self.fp.close()
        self.fp = io.BufferedReader(_Read(sock, within_s))
        self._heads = 0

    def _read_status(self) -> tuple[str, int, str]:
        while True:
            self._heads += 1
            if self._heads > _MOST_INTERIM + 1:
                raise http.client.HTTPException(f"more than {_MOST_INTERIM} interim answers")
            read: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
            if not http.client.CONTINUE < read[1] < http.client.OK or read[1] == _SWITCHED:
                return read
            http.client.parse_headers(self.fp)  # of one that the library takes for the final answer


class _Read(io.RawIOBase):
    """A socket to read from until a time, however slowly it comes."""

    def __init__(self, sock: socket.socket, within_s: float) -> None:
        self._sock, self._within_s, self._until_s = sock, within_s, time.monotonic() + within_s
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left_s)
        try:
            return self._raw.readinto(buffer)
        finally:
            self._sock.settimeout(self._within_s)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Secured(http.client.HTTPConnection):
    default_port = 443

    def __init__(self, host: str, port: int, tls: Tls, within_s: float) -> None:
        super().__init__(host, port, timeout=within_s)
        self._trust = _context(tls, tuple(os.environ.get(name) for name in _SYSTEM))
        self._name = tls.server_name or host

    def connect(self) -> None:
        super().connect()
        self.sock = self._trust.wrap_socket(self.sock, server_hostname=self._name)


@dataclass(frozen=True, slots=True)
class Page:
    """Answer of a service."""

    status: int
    text: str  # empty unless the status is 200


def metrics(host: str, port: int, path: str, tls: Tls | None, *, within_s: float) -> Page:
    """Request metrics in the Prometheus text format, once.

    Args:
        host: A name or an address, without brackets.
        port: Port of the service.
        path: Path with query.
        tls: TLS settings; None: plain TCP.
        within_s: Longest wait for each step.

    Raises:
        OSError: No answer, or one of more than 16 MiB; a FileFault: a file of certificates cannot be used.
        HTTPException: An answer that is not HTTP.
    """
    made = connection(host, port, tls, within_s=within_s)
    try:
        made.request("GET", path, headers={"Accept": _TEXT_FORMAT, "Connection": "close"})
        answer = made.getresponse()
        body = answer.read(_LARGEST_BYTES + 1) if answer.status == 200 else b""
    finally:
        made.close()
    if len(body) > _LARGEST_BYTES:
        raise OSError(f"more than {_LARGEST_BYTES >> 20} MiB")
    return Page(answer.status, body.decode(errors="replace"))


def metric_names(text: str) -> frozenset[str]:
    """Return the names of all samples of a page of metrics.

    Raises:
        ValueError: It is not in the Prometheus text format.
    """
    from prometheus_client.parser import text_string_to_metric_families  # costly to import

    return frozenset(
        sample.name for family in text_string_to_metric_families(text) for sample in family.samples
    )


def status(
    host: str,
    port: int,
    method: Literal["GET", "HEAD"],
    path: str,
    headers: Sequence[tuple[str, str]],
    tls: Tls | None,
    *,
    within_s: float,
) -> int:
    """Send one request that by RFC 9110 changes nothing, and return the status of its answer.

    Args:
        host: A name or an address, without brackets.
        port: Port of the service.
        method: A safe method; there is no way to send another one.
        path: Path with query.
        headers: Names and values.
        tls: TLS settings; None: plain TCP.
        within_s: Longest wait for each step.

    Raises:
        OSError: No answer.
        HTTPException: An answer that is not HTTP.
    """
    made = connection(host, port, tls, within_s=within_s)
    try:
        made.request(method, path, headers={**dict(headers), "Connection": "close"})
        answer = made.getresponse()
        answer.read(_LARGEST_BYTES)
    finally:
        made.close()
    return answer.status


def redirect_of(
    host: str,
    port: int,
    method: Literal["GET", "HEAD"],
    path: str,
    headers: Sequence[tuple[str, str]],
    tls: Tls | None,
    *,
    within_s: float,
) -> str | None:
    """Send one request, and return the Location of a redirect (empty if it has none); `None` for no redirect.

    Arguments and errors are those of `status`.
    """
    made = connection(host, port, tls, within_s=within_s)
    try:
        made.request(method, path, headers={**dict(headers), "Connection": "close"})
        answer = made.getresponse()
        return (answer.getheader("Location") or "") if answer.status in REDIRECTS else None
    finally:
        made.close()


def words(error: OSError | http.client.HTTPException) -> str:
    """Describe the failure of a request, in the engine's words where it has some."""
    if isinstance(error, ssl.SSLCertVerificationError):
        unnamed = f"the certificate is not valid: {error.verify_message}"
        return _OF_CERTIFICATES.get(error.verify_code, unnamed)
    if isinstance(error, ssl.SSLError):
        reason = error.reason or type(error).__name__
        return _OF_HANDSHAKES.get(reason, f"the TLS handshake failed: {reason.lower().replace('_', ' ')}")
    if isinstance(error, http.client.RemoteDisconnected):
        return "the connection was closed without an answer"
    if isinstance(error, http.client.BadStatusLine) and str(error).startswith(_ALERT_RECORD):
        return _ONLY_TLS
    if isinstance(error, http.client.HTTPException):
        return f"an answer that is not HTTP ({type(error).__name__})"
    return error.strerror.lower() if error.strerror else str(error) or type(error).__name__


def is_of_tls(error: Exception | None) -> bool:
    """True if TLS failed: the class `tls` of the engine."""
    return isinstance(error, ssl.SSLError)


def is_distrust(error: Exception | None) -> bool:
    """True if the server's certificate was refused, which waiting will hardly fix."""
    return isinstance(error, ssl.SSLCertVerificationError)


def content(file: PemFile) -> bytes:
    """Return a file of certificates, unchanged since the plan was made.

    Raises:
        FileFault: It cannot be read, or is another one now.
    """
    try:
        pem = Path(file.path).read_bytes()
    except OSError as error:
        raise FileFault(f"{file.path} cannot be read: {error.strerror}", f"ls -l {file.path}") from None
    if hashlib.sha256(pem).hexdigest() != file.digest:
        raise FileFault(
            f"{file.path} has changed since the plan was made",
            "a new run, whose plan takes the file as it is",
        )
    return pem


@lru_cache(maxsize=8)  # the system's CAs take 10 ms to read, and a scrape comes every second
def _context(tls: Tls, system: tuple[str | None, ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # a CA that is given need be no root
    context.set_alpn_protocols(["http/1.1"])
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif tls.ca is not None:
        _trust(context, tls.ca)
    elif any(system):
        for path in _stores(*system):
            with suppress(OSError):  # as the engine does: what cannot be read is not trusted
                context.load_verify_locations(cafile=path)
    else:
        context.load_default_certs()
    if tls.certificate is not None:
        _show(context, tls.certificate, tls.key)
    return context


def _trust(context: ssl.SSLContext, ca: PemFile) -> None:
    try:
        context.load_verify_locations(cadata=content(ca).decode("ascii", "ignore"))
    except ssl.SSLError:
        raise FileFault(
            f"no certificate in {ca.path} can be used as a CA",
            "a file of CAs in PEM form, as `openssl x509` reads",
        ) from None


def _stores(file: str | None, folders: str | None) -> Iterator[Path]:
    """The files of CAs that the environment names."""
    if file:
        yield Path(file)
    for folder in filter(None, (folders or "").split(os.pathsep)):
        with suppress(OSError):
            yield from sorted(Path(folder).iterdir())


def _show(context: ssl.SSLContext, certificate: PemFile, key: PemFile | None) -> None:
    for file in filter(None, (certificate, key)):
        content(file)
    try:
        # without a password a key that needs one would ask for it on the terminal
        context.load_cert_chain(certificate.path, key.path if key else None, password=lambda: b"-")
    except ssl.SSLError as error:
        why = (error.reason or "they cannot be read").lower().replace("_", " ")
        raise FileFault(
            f"{certificate.path} and its key cannot be shown as client certificate: {why}",
            "the certificate's own key, without a password: openssl pkey -in KEY -out plain.key",
        ) from None
