"""The part of a service's output that the keeper keeps."""

from __future__ import annotations

import os
import select
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from loadlens.testbed.keeper_process import (
    KEPT_HEAD_BYTES,
    KEPT_TAIL_BYTES,
    Child,
    Keeper,
    Output,
)


def output(log: Path | None = None, secrets: tuple[bytes, ...] = (), *, follow: bool = False) -> Output:
    return Output(None if log is None else str(log), secrets=secrets, follow=follow)


def test_a_short_output_is_kept_whole(tmp_path: Path) -> None:
    kept = output(tmp_path / "log")

    kept.feed(b"one\ntw")
    kept.feed(b"o\n")
    kept.finish()

    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"


def test_an_output_of_head_and_tail_is_kept_whole(tmp_path: Path) -> None:
    whole = bytes(i % 251 for i in range(KEPT_HEAD_BYTES + KEPT_TAIL_BYTES))
    kept = output(tmp_path / "log")

    for at in range(0, len(whole), 10_007):
        kept.feed(whole[at : at + 10_007])
    kept.finish()

    assert (tmp_path / "log").read_bytes() == whole


def test_of_a_longer_output_the_middle_is_left_out_and_counted(tmp_path: Path) -> None:
    whole = bytes(i % 251 for i in range(KEPT_HEAD_BYTES + KEPT_TAIL_BYTES + 12_345))
    kept = output(tmp_path / "log")

    for at in range(0, len(whole), 65_536):
        kept.feed(whole[at : at + 65_536])
    kept.finish()
    log = (tmp_path / "log").read_bytes()

    notice = b"\n[loadlens left out 12345 bytes here]\n"
    assert log == whole[:KEPT_HEAD_BYTES] + notice + whole[-KEPT_TAIL_BYTES:]
    assert len(log) <= 1 << 20


def test_what_was_said_last_is_there_while_the_service_runs() -> None:
    kept = output()

    kept.feed(b"x" * 3_000_000 + b"the last words")

    assert kept.last(9) == "ast words"


def test_followed_output_comes_in_whole_lines_and_the_rest_at_the_end() -> None:
    kept = output(follow=True)

    kept.feed(b"Collecting a\nDownl")
    first = kept.take_followed()
    kept.feed(b"oading b")
    second = kept.take_followed()
    kept.finish()
    third = kept.take_followed()

    assert (first, second, third) == ("Collecting a\n", "", "Downloading b\n")


@given(data=st.data())
def test_a_secret_is_masked_however_the_output_is_cut(data: st.DataObject) -> None:
    secret = b"abcab"  # its beginning comes again within it
    text = data.draw(st.lists(st.sampled_from([b"a", b"b", b"c", b"ab", b"abca", secret]), max_size=20))
    whole = b"".join(text)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    kept = output(secrets=(secret,))

    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        kept.feed(whole[start:end])
    kept.finish()

    assert kept.last(1 << 20).encode() == whole.replace(secret, b"********")


def test_a_disk_without_room_ends_the_log_but_not_the_draining() -> None:
    kept = Output("/dev/full", secrets=(), follow=False)

    kept.feed(b"one\n")
    kept.feed(b"two\n")
    kept.finish()

    assert kept.last(100) == "one\ntwo\n"


def test_who_is_said_to_have_ended_has_said_its_last_words() -> None:
    """It spoke and ended behind the look at its pipe, which a child of it still holds open."""
    reading, held = os.pipe()
    os.set_blocking(reading, False)
    ended = Child(1, b"", 15, output(follow=True))
    ended.pipe, ended.status = reading, 0
    keeper = Keeper.__new__(Keeper)
    keeper._children, keeper._pipes, keeper._poll = {"job": ended}, {reading: ended}, select.poll()
    os.write(held, b"42\n")

    standing = keeper._do_poll({})["children"]["job"]
    os.close(held)
    os.close(reading)

    assert (standing["status"], standing["output"], standing["drained"]) == (0, "42\n", False)
