"""Following a run for the pages that look at it: one thread per run, however many pages there are."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from loadlens import record
from loadlens.errors import LoadlensError
from loadlens.follow.runs import ENDED, SEARCHES, RunState
from loadlens.follow.trial import TrialColumns
from loadlens.ui import answers

EVERY_S: Final = 1.0
MOST_WAITING: Final = 64  # messages that a page has not taken; one that is further behind connects again

OVER: Final = ENDED | {"damaged"}  # one that was killed may go on at any time
AT_ONCE: Final = SEARCHES | {"compare"}  # kinds of runs whose answer takes no time
ANSWERED: Final = AT_ONCE | {"study"}  # kinds of runs whose answer is made from the record

Message = bytes | None  # None: the last one


def message(event: str, content: Any) -> bytes:
    """Return a message of an event stream."""
    return f"event: {event}\ndata: {as_json(content)}\n\n".encode()


def as_json(content: Any) -> str:
    """Return JSON in one line."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


class Watch:
    """A run that is looked at once per second while a page listens."""

    def __init__(self, path: Path, cannot: Callable[[RunState], dict[str, str | None]]) -> None:
        self.path = path
        self._cannot = cannot
        self.state: RunState | None = None
        self._has_changed = (
            False  # since the pages were sent the run, whichever request saw it; under the lock
        )
        self._trial: TrialColumns | None = None
        self._answer: tuple[float, list[str] | None] = (
            0.0,
            [],
        )  # of the run that ended then; none: in the making
        self._pages: set[queue.Queue[Message]] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._must_end = threading.Event()

    def document(self) -> dict[str, Any] | None:
        """Return the run as it is now; none: it has no record yet."""
        with self._lock:
            self._refresh()
            return None if self.state is None else self._document(self.state)

    def summary(self) -> dict[str, Any] | None:
        """Return the run as a row of the list."""
        with self._lock:
            self._refresh()
            return None if self.state is None else self.state.summary()

    def join(self) -> queue.Queue[Message]:
        """Return the messages of a new page, which begin with everything so far."""
        page: queue.Queue[Message] = queue.Queue(MOST_WAITING)
        with self._lock:
            self._send_news()  # to the others, so that all of them continue from here
            if self.state is not None:
                page.put_nowait(message("run", self._document(self.state)))
            if self._trial is not None:
                page.put_nowait(message("trial", self._trial.whole()))
            self._pages.add(page)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._follow, name="watch", daemon=True)
                self._thread.start()
        return page

    def leave(self, page: queue.Queue[Message]) -> None:
        """Forget a page."""
        with self._lock:
            self._pages.discard(page)

    def end(self) -> None:
        """Send what is new for the last time, and end all pages."""
        self._must_end.set()
        with self._lock:
            if self._pages:
                self._send_news()
            self._close()

    def _follow(self) -> None:
        began, turn = time.monotonic(), 0
        while True:
            turn += 1
            if self._must_end.wait(max(0.0, began + turn * EVERY_S - time.monotonic())):
                return
            with self._lock:
                if not self._pages:
                    self._thread = None
                    return
                has_news = self._send_news()
                if self.state is not None and self.state.state in OVER:
                    self._close()
                elif not has_news:
                    self._send([("tick", {})])  # the server is there

    def _document(self, state: RunState) -> dict[str, Any]:
        why = self._cannot(state)
        actions = {name: reason is None for name, reason in why.items()}
        document = state.document()
        answer = document["answer"] or self._answer_of(state)
        return {
            **document,
            "answer": answer or [],
            "has_more": answer is None,
            "actions": actions,
            "why": why,
        }

    def _answer_of(self, state: RunState) -> list[str] | None:
        """Return the answer of a run that is over, which is made once; empty for `hit`, whose figures say it.

        That of a study is in the making for a while, and none until then.
        """
        if state.state not in ENDED or state.kind not in ANSWERED:
            return []
        if self._answer[0] != state.updated_s:
            self._answer = (state.updated_s, None)
            if state.kind in AT_ONCE:
                self._make_answer(state.updated_s, state.kind)
            else:
                making = (state.updated_s, state.kind)
                threading.Thread(target=self._make_answer, args=making, name="answer", daemon=True).start()
        return self._answer[1]

    def _make_answer(self, ended_s: float, kind: str) -> None:
        try:
            made = answers.sentences_of(self.path, kind)
        except (LoadlensError, KeyError, TypeError, ValueError):  # a damaged record
            made = []
        if self._answer[0] == ended_s:  # it was not resumed meanwhile
            self._answer = (ended_s, made)

    def _refresh(self) -> None:
        if self.state is None or self.state.is_replaced:
            if not record.is_record(self.path):
                return
            self.state, self._trial, self._has_changed = RunState(self.path), None, True
        self._has_changed |= self.state.refresh()

    def _send_news(self) -> bool:
        """Send what changed to all pages; return False if nothing did."""
        try:
            messages = self._look()
            self._send(messages)
        except Exception as fault:  # of any kind: pages would go on showing the last state as the present one
            self._has_changed = True  # it was not sent
            messages = [("fault", {"error": f"cannot read what is new: {type(fault).__name__}: {fault}"})]
            self._send(messages)
        return bool(messages)

    def _look(self) -> list[tuple[str, Any]]:
        """Return what changed since the last look."""
        messages: list[tuple[str, Any]] = []
        self._refresh()
        if self.state is None:
            return messages
        if self._has_changed:
            messages.append(("run", self._document(self.state)))
            self._has_changed = False
        newest = self.state.newest_trial
        if newest is None:
            return messages
        held = self._trial
        if held is not None and (held.case, held.trial) != newest:
            messages += self._look_at(held)  # it was sealed meanwhile
            held = None
        if held is None:
            self._trial = TrialColumns(self.path, *newest, self.state.name_of(newest[0]))
            messages += self._look_at(self._trial, is_new=True)
        else:
            messages += self._look_at(held)
        return messages

    def _look_at(self, trial: TrialColumns, *, is_new: bool = False) -> list[tuple[str, Any]]:
        try:
            is_whole = trial.look()
        except LoadlensError as fault:
            return [("fault", {"error": fault.message})]
        if is_whole or is_new:
            return [("trial", trial.whole())]
        return [] if (added := trial.new()) is None else [("points", added)]

    def _send(self, messages: list[tuple[str, Any]]) -> None:
        ready = [message(kind, content) for kind, content in messages]
        for page in list(self._pages):
            try:
                for text in ready:
                    page.put_nowait(text)
            except queue.Full:
                self._pages.discard(page)
                _put_last(page)

    def _close(self) -> None:
        state = "" if self.state is None else self.state.state
        for page in self._pages:
            with suppress(queue.Full):
                page.put_nowait(message("end", {"state": state}))
            _put_last(page)
        self._pages.clear()


def _put_last(page: queue.Queue[Message]) -> None:
    """Put the end into a queue, in the place of its oldest message if it is full."""
    while True:
        try:
            page.put_nowait(None)
            return
        except queue.Full:
            page.get_nowait()
