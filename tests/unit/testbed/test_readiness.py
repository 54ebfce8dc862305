"""Readiness checks of real servers over TLS."""

from __future__ import annotations

import time

import pytest

from loadlens.errors import TestbedError
from loadlens.model.topology import Ready
from loadlens.model.workload import PemFile, Tls
from loadlens.testbed import readiness
from loadlens.testbed.readiness import HttpStatus, Watch, await_ready
from tests.secured import pem, serving

LONG_S = 60.0


def watched(port: int, tls: Tls | None) -> Watch:
    return Watch("api", HttpStatus(port, Ready("/metrics", within_s=LONG_S, tls=tls)), LONG_S)


def test_a_service_is_ready_when_it_answers_over_tls() -> None:
    with serving() as port:
        watch = watched(port, Tls(ca=pem("ca")))
        late = await_ready([watch], lambda: None)

    assert late is None
    assert watch.question.requests == 1
    assert watch.question.wanted == f"status 200 from GET https://127.0.0.1:{port}/metrics"


def test_a_certificate_that_stays_untrusted_ends_the_wait_before_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readiness, "DISTRUST_WITHIN_S", 0.3)
    began = time.monotonic()
    with serving("alone") as port:
        watch = watched(port, Tls(ca=pem("ca")))
        late = await_ready([watch], lambda: None)

    assert late is watch
    assert watch.seen == "the certificate's issuer is not trusted"
    assert watch.question.requests == 0  # no request was sent
    assert 0.3 < time.monotonic() - began < LONG_S / 2


def test_a_file_that_cannot_be_used_ends_the_wait_at_once() -> None:
    changed = Tls(ca=PemFile(pem("ca").path, "0" * 64))

    with pytest.raises(TestbedError, match="has changed since the plan was made"):
        await_ready([watched(1, changed)], lambda: None)


def test_another_failure_in_between_begins_the_wait_for_a_certificate_anew() -> None:
    with serving("alone") as port:
        watch = watched(port, Tls(ca=pem("ca")))
        watch.attempt()
        first = watch.distrusted_since
    watch.attempt()  # the listener is gone

    assert first is not None
    assert watch.distrusted_since is None
    assert watch.seen == "connection refused"
