"""Requests of the lab over TLS to real servers: trusted certificates, and the words for all others."""

from __future__ import annotations

import hashlib
import http.client
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from loadlens import http_client
from loadlens.model.workload import PemFile, Tls
from loadlens.present import failure_text
from tests.secured import FOLDER, pem, serving

WITHIN_S = 20.0  # on any machine
OF_THE_CA = Tls(ca=pem("ca"))


def status(port: int, tls: Tls | None, host: str = "127.0.0.1") -> int:
    """The answer to GET /metrics."""
    made = http_client.connection(host, port, tls, within_s=WITHIN_S)
    try:
        made.request("GET", "/metrics")
        return made.getresponse().status
    finally:
        made.close()


def refused(port: int, tls: Tls | None) -> str:
    """In words, why nothing was answered."""
    with pytest.raises((OSError, http.client.HTTPException)) as fault:
        status(port, tls)
    assert isinstance(fault.value, (OSError, http.client.HTTPException))
    return http_client.words(fault.value)


@pytest.mark.parametrize(
    ("certificate", "tls"),
    [
        ("server", OF_THE_CA),
        ("elsewhere", replace(OF_THE_CA, server_name="elsewhere.test")),
        ("alone", Tls(insecure=True)),
        ("expired", Tls(insecure=True)),
        ("elsewhere", Tls(insecure=True)),
        ("alone", Tls(ca=pem("alone"))),
        ("below", Tls(ca=pem("middle"))),
    ],
)
def test_a_server_is_asked_that_shows_what_is_trusted(certificate: str, tls: Tls) -> None:
    with serving(certificate) as port:
        assert status(port, tls) == 200


def test_the_name_of_the_host_is_verified_where_no_other_is_given() -> None:
    with serving() as port:
        assert status(port, OF_THE_CA, "localhost") == 200


@pytest.mark.parametrize(
    ("certificate", "tls", "words", "to_try"),
    [
        ("server", Tls(), "the certificate's issuer is not trusted", "tls: {ca: FILE}"),
        ("alone", OF_THE_CA, "the certificate's issuer is not trusted", "tls: {ca: FILE}"),
        ("expired", OF_THE_CA, "the certificate has expired", "a new certificate on the server"),
        ("elsewhere", OF_THE_CA, "the certificate is for another name", "tls: {servername: NAME}"),
        (
            "server",
            replace(OF_THE_CA, server_name="elsewhere.test"),
            "the certificate is for another name",
            "tls: {servername: NAME}",
        ),
        (None, OF_THE_CA, "the server does not speak TLS on this port", "another port"),
        ("server", None, "the connection was closed without an answer", "if it speaks TLS there"),
    ],
)
def test_what_is_not_trusted_is_named_with_one_thing_to_try(
    certificate: str | None, tls: Tls | None, words: str, to_try: str
) -> None:
    with serving(certificate) as port:
        message = refused(port, tls)

    assert message == words
    assert to_try in failure_text.explained("", message).for_study


def test_a_client_certificate_is_shown_with_its_key_in_the_same_file() -> None:
    with serving(client_ca="ca") as port:
        assert status(port, replace(OF_THE_CA, certificate=pem("client"))) == 200
        with pytest.raises(
            OSError
        ):  # TLS 1.3: the refusal comes in place of the answer, or a reset before it
            status(port, OF_THE_CA)


def test_stores_of_the_environment_stand_in_place_of_the_systems(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "any-name").write_bytes((FOLDER / "ca.pem").read_bytes())
    with serving() as port:
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        monkeypatch.setenv("SSL_CERT_DIR", f"/no/such/folder:{tmp_path}")
        by_folder = status(port, Tls())
        monkeypatch.delenv("SSL_CERT_DIR")
        monkeypatch.setenv("SSL_CERT_FILE", str(FOLDER / "ca.pem"))
        by_file = status(port, Tls())
        monkeypatch.setenv("SSL_CERT_FILE", str(FOLDER / "alone.pem"))
        of_another = refused(port, Tls())

    assert (by_folder, by_file) == (200, 200)
    assert of_another == "the certificate's issuer is not trusted"


def written(path: Path, content: bytes) -> PemFile:
    path.write_bytes(content)
    return PemFile(str(path), hashlib.sha256(content).hexdigest())


def test_a_file_that_cannot_be_used_is_named_with_one_thing_to_try(tmp_path: Path) -> None:
    ca, client, other = ((FOLDER / f"{name}.pem").read_bytes() for name in ("ca", "client", "server"))
    key = b"-----BEGIN PRIVATE KEY-----"
    faults = {
        "ca.pem has changed since the plan was made": Tls(ca=PemFile(pem("ca").path, "0" * 64)),
        "absent.pem cannot be read: No such file": Tls(ca=PemFile(str(tmp_path / "absent.pem"), "")),
        "no certificate in .*none.pem can be used as a CA": Tls(
            ca=written(tmp_path / "none.pem", ca.replace(b"MII", b"AAA"))
        ),
        "client.pem and its key cannot be shown as client certificate: key values mismatch": Tls(
            certificate=pem("client"), key=written(tmp_path / "key.pem", key + other.partition(key)[2])
        ),
        "both.pem and its key cannot be shown as client certificate": Tls(
            certificate=written(tmp_path / "both.pem", client.replace(key, key.replace(b"B", b"b")))
        ),
    }
    for words, tls in faults.items():
        with pytest.raises(http_client.FileFault, match=words) as fault:
            http_client.connection("127.0.0.1", 1, tls, within_s=1)
        assert fault.value.hint


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"\x15\x03\x03\x00\x02\x02\x32", "the server speaks TLS on this port"),  # RFC 8446, 6: decode_error
        (b"SSH-2.0-OpenSSH_9.2\r\n", "an answer that is not HTTP (BadStatusLine)"),
    ],
)
def test_what_answers_a_plain_request_is_told_from_http(answer: bytes, words: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = http_client.connection("127.0.0.1", listener.getsockname()[1], None, within_s=WITHIN_S)
        made.request("GET", "/")
        with listener.accept()[0] as peer:
            peer.recv(1 << 16)
            peer.sendall(answer)
        with pytest.raises(http.client.HTTPException) as fault:
            made.getresponse()
        made.close()

    assert http_client.words(fault.value) == words


def answering(listener: socket.socket, answer: bytes, heads: list[bytes]) -> None:
    """Take one request, keep its head, answer it."""
    with listener.accept()[0] as peer:
        heads.append(peer.recv(1 << 16))
        peer.sendall(answer)


def metrics_of(answer: bytes) -> tuple[http_client.Page, bytes]:
    """The page made of an answer to a request for metrics, and the request."""
    heads: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as other:
        done = other.submit(answering, listener, answer, heads)
        port = listener.getsockname()[1]
        page = http_client.metrics("127.0.0.1", port, "/metrics?all=1", None, within_s=WITHIN_S)
        done.result()
    return page, heads[0]


def test_metrics_are_asked_for_in_the_text_format_on_a_connection_of_their_own() -> None:
    page, head = metrics_of(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\n")

    assert page == http_client.Page(200, "a 1\n")
    assert head.startswith(b"GET /metrics?all=1 HTTP/1.1\r\n")
    assert b"\r\nAccept: text/plain;version=0.0.4\r\n" in head
    assert b"\r\nConnection: close\r\n" in head


def test_what_stands_in_an_answer_that_is_no_success_is_not_read() -> None:
    page, _ = metrics_of(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\na 1\n")

    assert page == http_client.Page(404, "")


def test_metrics_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "_LARGEST_BYTES", 3)

    with pytest.raises(OSError, match="more than 0 MiB"):
        metrics_of(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\n")


def test_an_answer_that_drips_ends_after_the_time_for_all_of_it() -> None:
    """A byte comes every 20 ms, for ever, so no single read has to wait as long as it may."""
    sent = 0

    def drip(listener: socket.socket) -> None:
        nonlocal sent
        accepted, _ = listener.accept()
        with accepted, suppress(OSError):
            accepted.recv(1 << 16)
            accepted.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            for _ in range(500):
                accepted.sendall(b"x")
                sent += 1
                time.sleep(0.02)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        with pytest.raises(TimeoutError):
            http_client.metrics("127.0.0.1", listener.getsockname()[1], "/", None, within_s=0.3)
        thread.join()
    assert 1 < sent < 500


def test_interim_answers_come_before_the_final_one() -> None:
    page, _ = metrics_of(
        b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na 1"
    )
    assert page == http_client.Page(200, "a 1")


def test_interim_answers_without_an_end_are_refused() -> None:
    with pytest.raises(http.client.HTTPException, match="more than 100 interim answers"):
        metrics_of(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 101)
