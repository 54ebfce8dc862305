"""Reasons of failures: what the engine words is what the advice is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadlens.present import failure_text

ROOT = Path(__file__).resolve().parents[3]
ENGINE = ROOT / "crates" / "engine" / "src"
WORDED_IN = (ENGINE.parents[1] / "transport/src/tls/words.rs", ENGINE / "worker" / "exchange.rs")


@pytest.mark.parametrize("advice", failure_text._ADVICE, ids=lambda advice: advice.sign)
def test_the_engine_still_says_what_advice_waits_for(advice: failure_text._Advice) -> None:
    assert any(advice.sign in path.read_text() for path in WORDED_IN)


def test_no_advice_of_a_study_names_a_flag_of_hit() -> None:
    assert not [advice for advice in failure_text._ADVICE if "--" in advice.for_study + advice.words]


def test_each_reason_is_named_once_in_the_order_seen() -> None:
    samples = [
        "0.010 s, step a, user 2: b, user 1: the certificate has expired",  # a step may be called anything
        "0.011 s, step a, user 2: what came is not TLS",
        "0.012 s, step a, user 3: the certificate has expired",
    ]

    found = failure_text.reasons("tls", samples)

    assert [reason.words for reason in found] == ["the certificate has expired", "what came is not TLS"]
    assert "--insecure" in found[0].for_hit
    assert "insecure: true" in found[0].for_study
    assert "openssl" in found[1].for_hit


def test_where_the_class_says_it_all_there_is_no_reason() -> None:
    assert failure_text.reasons("refused", ["0.010 s, step a, user 2: the connection was refused"]) == ()
