"""A load over TLS that cannot work does not start, and says why and what to try."""

from __future__ import annotations

import subprocess
import sys

from benches.measuring import Origin, origin

from tests.end_to_end.hitting import LIMIT_S, environment, origin_program


def tried(port: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a hit of four requests."""
    url = f"https://127.0.0.1:{port}/"
    command = [sys.executable, "-m", "loadlens", "hit", url, "-c", "2", "-n", "4", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment())


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """Return the message of a hit that must not start, on one line."""
    assert (done.returncode, done.stdout) == (3, "")
    return " ".join(done.stderr.split())


def test_an_untrusted_issuer_is_named() -> None:
    with origin(origin_program(), 0, "--tls") as secured:
        refused, taken = tried(secured.port), tried(secured.port, "--insecure", "-v")

    assert "the certificate's issuer is not trusted try --cacert FILE" in refusal(refused)
    assert taken.returncode == 0, taken.stderr
    assert "TLS handshake" in taken.stdout


def test_a_port_without_tls_is_named(server: Origin) -> None:
    assert "does not speak TLS on this port try an http:// URL" in refusal(tried(server.port))
