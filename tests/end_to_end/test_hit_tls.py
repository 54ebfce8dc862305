"""A load over TLS that cannot work says why and what to try, without being asked."""

from __future__ import annotations

import subprocess
import sys

from benches.measuring import Origin, origin

from tests.end_to_end.hitting import LIMIT_S, environment, origin_program


def shown(port: int, *arguments: str) -> str:
    """What a hit of twenty requests prints, on one line."""
    url = f"https://127.0.0.1:{port}/"
    command = [sys.executable, "-m", "loadlens", "hit", url, "-c", "2", "-n", "4", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment())
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


def test_an_issuer_that_nobody_trusts_is_named() -> None:
    with origin(origin_program(), 0, "--tls") as secured:
        said, taken = shown(secured.port), shown(secured.port, "--insecure")

    assert "every request failed: tls 4" in said
    assert "the certificate's issuer is not trusted try --cacert FILE" in said
    assert "TLS handshake" in taken
    assert "not trusted" not in taken


def test_a_port_without_tls_is_named(server: Origin) -> None:
    assert "does not speak TLS on this port try an http:// URL" in shown(server.port)
