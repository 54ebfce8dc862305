"""The one connection before a load: a target that takes none is named, with one thing to try."""

from __future__ import annotations

import socket

import pytest
from typer.testing import CliRunner

from loadlens.cli import app, preflight
from loadlens.cli.hit_requests import target_of
from loadlens.errors import TestbedError
from tests.secured import serving

SECOND_NS = 1_000_000_000


def refusal(url: str, *, is_hit: bool = True) -> str:
    target, _ = target_of(url)
    with pytest.raises(TestbedError) as refused:
        preflight.connect(target, timeout_ns=SECOND_NS, is_hit=is_hit)
    return str(refused.value)


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
    return port


def test_a_port_that_takes_connections_is_accepted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        target, _ = target_of(f"http://127.0.0.1:{listening.getsockname()[1]}/")

        preflight.connect(target, timeout_ns=SECOND_NS)


def test_an_unknown_host_is_named_with_the_command_that_looks_it_up() -> None:
    assert refusal("http://no-such-host.invalid/").startswith("unknown host 'no-such-host.invalid': ")
    assert "try the spelling of the host: getent hosts no-such-host.invalid" in refusal(
        "http://no-such-host.invalid/"
    )


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        (None, "the server does not speak TLS on this port\n  try an http:// URL, or another port"),
        ("alone", "the certificate's issuer is not trusted\n  try --cacert FILE with the CA"),
    ],
)
def test_a_handshake_that_fails_says_why_and_what_to_try(certificate: str | None, words: str) -> None:
    with serving(certificate) as port:
        assert words in refusal(f"https://127.0.0.1:{port}/")


def test_hints_for_explain_name_no_flag_that_it_lacks() -> None:
    with serving("alone") as port:
        assert "SSL_CERT_FILE" in refusal(f"https://127.0.0.1:{port}/", is_hit=False)


@pytest.mark.parametrize("verb", [["hit"], ["ab"], ["hey"], ["explain"], ["hit", "--json"]])
def test_every_verb_refuses_a_closed_port_with_the_same_line(verb: list[str], closed_port: int) -> None:
    done = CliRunner().invoke(app, [*verb, f"http://127.0.0.1:{closed_port}/"])

    assert isinstance(done.exception, TestbedError)
    assert done.exception.code == 3
    assert done.exception.message == f"nothing is listening on 127.0.0.1:{closed_port} (connection refused)"
    assert done.output == ""
