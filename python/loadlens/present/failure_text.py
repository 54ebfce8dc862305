"""Failures in words: from the samples that the engine keeps per class to a cause and one thing to try.

The engine says what it saw (`crates/transport/src/tls/words.rs`), and so does the lab of what it asks
itself (`http_client.py`); what helps depends on who asks: `hit` has flags, `explain` fewer, a study has keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# Classes whose name says all that is known.
SPEAK_FOR_THEMSELVES = frozenset(
    {
        "refused",
        "reset",
        "timeout",
        "tls_timeout",
        "connect_timeout",
        "closed_before_response",
        "closed_on_reuse",
        "truncated",
        "own_descriptors",
        "own_ports",
        "own_memory",
    }
)
_SAMPLE = re.compile(r".*, user \d+: (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason, with what to try where one is known."""

    seen: str  # in the engine's words
    words: str
    for_hit: str = ""
    for_study: str = ""
    for_explain: str = ""


@dataclass(frozen=True, slots=True)
class _Advice:
    """Wording of a reason reported by the engine."""

    sign: str  # what stands in the engine's words
    words: str  # in place of them; empty: they stay
    for_hit: str
    for_study: str
    for_explain: str = ""  # empty: as for `hit`


_ANY_CERTIFICATE = "or --insecure to measure all the same"
_ADVICE = (
    _Advice(
        "issuer is not trusted",
        "the certificate's issuer is not trusted",
        "--cacert FILE with the CA that signed it, or --insecure",
        "tls: {ca: FILE} with the CA that signed it, or {insecure: true}",
        "SSL_CERT_FILE=FILE with the CA that signed it, or --insecure",
    ),
    _Advice(
        "the certificate has expired",
        "",
        f"a new certificate on the server, {_ANY_CERTIFICATE}",
        "a new certificate on the server, or tls: {insecure: true}",
    ),
    _Advice(
        "not valid yet",
        "the certificate is not valid yet",
        f"the clock of this machine (date), {_ANY_CERTIFICATE}",
        "the clock of this machine (date), or tls: {insecure: true}",
    ),
    _Advice(
        "for another name",
        "the certificate is for another name than the one asked for",
        "--servername with a name that stands in it",
        "tls: {servername: NAME} with a name that stands in it",
        "a URL with a name that stands in it, or --insecure",
    ),
    _Advice(
        "the certificate is not acceptable",
        "the certificate is not acceptable: a CA's own, or one of version 1",
        f"a certificate that a CA signed, {_ANY_CERTIFICATE}",
        "a certificate that a CA signed, or tls: {insecure: true}",
    ),
    _Advice(
        "alert unrecognized_name",
        "the server does not know the name asked for (alert unrecognized_name)",
        "--servername with a name that it serves",
        "tls: {servername: NAME} with a name that it serves",
        "a URL with a name that it serves",
    ),
    _Advice(
        "alert certificate_required",
        "the server wants a client certificate (alert certificate_required)",
        "--cert FILE and --key FILE",
        "tls: {cert: FILE, key: FILE}",
        "a study, which has tls: {cert: FILE, key: FILE}",
    ),
    _Advice(
        "client certificate",
        "",
        "--cert FILE with one that the server takes",
        "tls: {cert: FILE} with one that the server takes",
        "a study, which has tls: {cert: FILE, key: FILE}",
    ),
    _Advice(
        "does not speak TLS on this port",
        "the server does not speak TLS on this port",
        "an http:// URL, or another port",
        "an entry with http://, or another port",
    ),
    _Advice(
        "no version or cipher",
        "",
        "openssl s_client -connect HOST:PORT shows what it offers",
        "openssl s_client -connect HOST:PORT shows what it offers",
    ),
    _Advice(
        "host name has no address",
        "",
        "the spelling of the host: getent hosts NAME",
        "the spelling of the host: getent hosts NAME",
    ),
)
_OF_THE_LAB = (  # words of `http_client.py` alone
    _Advice(
        "the server speaks TLS on this port",
        "",
        "an https:// URL",
        "tls: {}, with this port as the entry's; or ask a port without TLS",
    ),
    _Advice(
        "the connection was closed without an answer",
        "",
        "an https:// URL, if it speaks TLS on this port",
        "tls: {} with this port as the entry's, if it speaks TLS there",
    ),
)
_SEE_HANDSHAKE = "openssl s_client -connect HOST:PORT shows the handshake"


def why(sample: str) -> str:
    """The reason in a sample such as `0.012 s, step look, user 3: the connection was reset`."""
    match = _SAMPLE.fullmatch(sample)
    return match[1] if match else sample


def reasons(kind: str, samples: Iterable[str]) -> tuple[Reason, ...]:
    """The different reasons of a class of errors, the first first; none where its name says it all.

    Args:
        kind: The class, as in the engine's result.
        samples: What the engine noted of its first failures.
    """
    if kind in SPEAK_FOR_THEMSELVES:
        return ()
    return tuple(explained(kind, words) for words in dict.fromkeys(map(why, samples)) if words)


def explained(kind: str, words: str) -> Reason:
    """One reason in the engine's words or in those of `http_client.words`."""
    advice = next((advice for advice in (*_ADVICE, *_OF_THE_LAB) if advice.sign in words), None)
    if advice is not None:
        for_explain = advice.for_explain or advice.for_hit
        return Reason(words, advice.words or words, advice.for_hit, advice.for_study, for_explain)
    if kind == "tls":
        return Reason(words, words, _SEE_HANDSHAKE, _SEE_HANDSHAKE, _SEE_HANDSHAKE)
    return Reason(words, words)
