"""Ctrl-C at moments that no verb handles."""

from __future__ import annotations

import pytest

from loadlens import cli
from loadlens.errors import ExitCode


class Interrupted:
    """Ctrl-C while a class is made: up to Python 3.11 it comes as the cause of a RuntimeError."""

    def __set_name__(self, owner: type, name: str) -> None:
        raise KeyboardInterrupt


def test_ctrl_c_while_a_class_is_made_is_no_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "app", lambda **_: type("Options", (), {"flaw": Interrupted()}))

    assert cli.run_verb() == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == ""
