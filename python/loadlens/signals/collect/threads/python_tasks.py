"""Tasks of asyncio in a Python process, read from its memory: one that awaits something is on no thread.

The process is neither asked nor stopped. The layout is that of CPython 3.11 to 3.13 with the lock of
the interpreter, on 64 bits; types and the runtime are where CPython exports them for extensions.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from loadlens.model.stacks import TASKS_FROM, Frame, Stack, Wait
from loadlens.signals.collect.threads import NotRead, Threads, elf
from loadlens.signals.collect.threads.memory import UNCLEAR, Memory, read_by
from loadlens.signals.collect.threads.python_code import frame_of

MOST: Final = 400  # tasks at one moment
MOST_FRAMES: Final = 60
_RUNTIME, _VERSION, _DICT, _SET, _TEXT, _CODE, _INTEGER = (
    "_PyRuntime",
    "Py_Version",
    "PyDict_Type",
    "PySet_Type",
    "PyUnicode_Type",
    "PyCode_Type",
    "PyLong_Type",
)
_LONGEST_NAME: Final = 24  # of a type that matters
_SUSPENDING: Final = ("PyCoro_Type", "PyGen_Type", "PyAsyncGen_Type")
_WRAPPING: Final = (b"coroutine_wrapper", b"async_generator_asend", b"async_generator_athrow")
_SYMBOLS: Final = (_RUNTIME, _VERSION, _DICT, _SET, _TEXT, _CODE, _INTEGER, *_SUSPENDING)
_RUNTIME_WORDS: Final = 256  # within which the first interpreter is named
_INTERPRETER_WORDS: Final = 2_048  # within which it names its modules
_ALWAYS: Final = ("builtins", "sys", "zipimport")  # modules of every interpreter
_OF_TASKS: Final = (b"Task", b"_GatheringFuture")
_OF_AN_EXECUTOR: Final = "_call_check_cancel"  # is called first when an executor has finished
_FOR_OTHERS: Final = frozenset(
    {
        ("asyncio.tasks", "_wait"),
        ("asyncio.taskgroups", "__aexit__"),
        ("anyio._backends._asyncio", "__aexit__"),
        ("anyio.streams.memory", "receive"),
    }
)
_FOR_A_THREAD: Final = ("anyio._backends._asyncio", "run_sync_in_worker_thread")  # that has begun
_MODULE: Final = "asyncio.tasks"
_ALL: Final = ("_scheduled_tasks", "_all_tasks")  # since 3.12, and before
_MOST_ENTRIES: Final = 1 << 17
_KEYS: Final = struct.Struct("<8xBBB5xqq")  # of a dictionary: sizes of the index (log 2), kind, room, entries
_GENERAL: Final = 0  # kind of a dictionary: with hashes
_LOCALS: Final = 72  # bytes of a frame before its variables
_LONG, _NO_COLUMN, _ONE_LINE = 14, 13, 10  # kinds of an entry of lines that change the line


@dataclass(frozen=True, slots=True)
class _Layout:
    """Sizes and places that differ between versions, in bytes."""

    text: int  # of a string of ASCII: where its characters begin
    frame: int  # of a coroutine: its frame
    state: int  # its state, before
    suspended: tuple[int, ...]
    code: int  # of a frame
    first_line: int  # of code
    instructions: int


_LAYOUTS: Final = {
    (3, 11): _Layout(48, 80, 75, (-1,), 32, 72, 184),
    (3, 12): _Layout(40, 72, 67, (-1,), 0, 68, 192),
    (3, 13): _Layout(40, 72, 67, (-1, -2), 0, 68, 200),
}


@dataclass(frozen=True, slots=True)
class _Code:
    file: str
    name: str
    begin: int  # address of the first instruction
    lines: tuple[tuple[int, int], ...]  # first byte beyond, and line


class TaskReader:
    """Reads the tasks of one Python process."""

    def __init__(self, pid: int, memory: Memory) -> None:
        self._memory = memory
        self._types = _addresses(pid)
        self._suspending = {self._types[name] for name in _SUSPENDING}
        self._names: dict[int, bytes] = {}  # of types
        (version,) = struct.unpack("<I", memory.read(self._types[_VERSION], 4))
        layout = _LAYOUTS.get((version >> 24, version >> 16 & 0xFF))
        if layout is None:
            raise NotRead("tasks of this version of Python are not known")
        self._layout = layout
        self._codes: dict[int, _Code] = {}
        self._sets = self._sets_of_tasks()
        self._coroutine_at: int | None = None  # word of a task

    def read(self) -> Threads:
        """Return the tasks that wait for something, each with the name of its outermost function.

        Left out are those that are ready to run, and those that wait for other tasks or for a thread,
        which are sampled themselves.
        """
        stacks: dict[int, Stack] = {}
        names: dict[int, str] = {}
        of_wait: dict[int, Wait] = {}
        for task in self._tasks():
            with contextlib.suppress(*UNCLEAR):
                number, coroutine, waiter = self._task(task)
                if not waiter or self._is_for_others(waiter):
                    continue
                frames = self._frames(coroutine)
                functions = [(frame.module, frame.function) for frame in frames]
                if not frames or functions[-1] == _FOR_A_THREAD or not _FOR_OTHERS.isdisjoint(functions):
                    continue
                number = number if number not in stacks else TASKS_FROM | task
                if self._task(task)[1:] == (coroutine, waiter):
                    stacks[number] = tuple(frames)
                    names[number] = frames[0].name
                    of_wait[number] = _wait(frames[-1])
            if len(stacks) == MOST:
                break
        return Threads(stacks, names, of_wait, dict.fromkeys(stacks, False), tasks=frozenset(stacks))

    def close(self) -> None:
        """Close the memory."""
        self._memory.close()

    def _is_for_others(self, future: int) -> bool:
        """True for a future that is done, or that other tasks or a thread of an executor will finish."""
        _, kind, _, first, _, more = self._memory.words(future, 6)
        if not first and not more:
            return True  # it is done: the task was called, and runs next
        if self._name_of(kind).rpartition(b".")[2] in _OF_TASKS:
            return True
        return (
            bool(more)
            and self._name_of(self._type(first)) == b"function"
            and self._text(self._memory.words(first + 32, 1)[0]) == _OF_AN_EXECUTOR
        )

    # --- objects ------------------------------------------------------------------------------------------

    def _type(self, at: int) -> int:
        """Return the address of an object's type; 0 for what is no object."""
        if at % 8 or at < 4096:
            return 0
        with contextlib.suppress(NotRead):
            return self._memory.words(at + 8, 1)[0]
        return 0

    def _name_of(self, kind: int) -> bytes:
        if kind not in self._names:
            with contextlib.suppress(NotRead):
                text = self._memory.read(self._memory.words(kind + 24, 1)[0], _LONGEST_NAME)
                self._names[kind] = text.partition(b"\0")[0]
        return self._names.get(kind, b"")

    def _text(self, at: int) -> str:
        length, _, state = self._memory.words(at + 16, 3)
        wide, is_ascii = state >> 2 & 7, state >> 6 & 1
        begin = self._layout.text + (0 if is_ascii else 2 * self._layout.text - 64)
        encoding = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[wide]
        return self._memory.read(at + begin, min(length, 4096) * wide).decode(encoding)

    def _items(self, dictionary: int) -> Iterator[tuple[int, int]]:
        """Yield the addresses of keys and values of a dictionary that has a table of its own."""
        keys = self._memory.words(dictionary + 32, 1)[0]
        _, index, kind, _, entries = _KEYS.unpack(self._memory.read(keys, 32))
        if not 0 <= entries <= _MOST_ENTRIES or index > 20:
            return
        each = 3 if kind == _GENERAL else 2
        words = self._memory.words(keys + 32 + (1 << index), each * entries)
        for place in range(each - 2, len(words), each):
            if words[place]:
                yield words[place], words[place + 1]

    def _value(self, dictionary: int, *names: str) -> int:
        """Return the address of the value of a name; 0 if a dictionary has none of them."""
        if self._type(dictionary) != self._types[_DICT]:
            return 0
        with contextlib.suppress(NotRead, KeyError, ValueError, struct.error):
            for key, value in self._items(dictionary):
                if value and self._type(key) == self._types[_TEXT] and self._text(key) in names:
                    return value
        return 0

    # --- where tasks are ----------------------------------------------------------------------------------

    def _sets_of_tasks(self) -> tuple[int, ...]:
        """Return the addresses of the sets that may be that of all tasks."""
        module = self._value(self._modules(), _MODULE)
        if not module:
            raise NotRead("asyncio is not used")
        weak = self._value(self._memory.words(module + 16, 1)[0], *_ALL)
        sets: list[int] = []
        if weak:
            for word in (weak + 8 * place for place in range(-4, 18)):
                with contextlib.suppress(NotRead):
                    sets += self._sets_at(self._memory.words(word, 1)[0])
        if not sets:
            raise NotRead("the list of tasks is not known")
        return tuple(dict.fromkeys(sets))

    def _sets_at(self, at: int) -> list[int]:
        """Return the sets that an attribute, the dictionary of attributes or their values lead to."""
        if self._type(at) == self._types[_SET]:
            return [at]
        if self._type(at) == self._types[_DICT]:
            values = [value for _, value in self._items(at)]
        else:  # 3.12 marks them: it names one byte less
            values = list(self._memory.words(at + at % 2, 6)) if at > 4096 else []
        return [value for value in values if self._type(value) == self._types[_SET]]

    def _modules(self) -> int:
        """Return the address of the dictionary of modules: the first interpreter names it."""
        for interpreter in dict.fromkeys(self._memory.words(self._types[_RUNTIME], _RUNTIME_WORDS)):
            if interpreter % 8 or interpreter < 4096:
                continue
            with contextlib.suppress(NotRead):
                for at in dict.fromkeys(self._memory.words(interpreter, _INTERPRETER_WORDS)):
                    if all(self._value(at, name) for name in _ALWAYS):
                        return at
        return 0

    def _tasks(self) -> Iterator[int]:
        """Yield the addresses of tasks: of what the weak references in the sets refer to."""
        for at in self._sets:
            with contextlib.suppress(NotRead):
                _, _, mask, table = self._memory.words(at + 16, 4)
                if mask >= _MOST_ENTRIES:
                    continue
                for reference in self._memory.words(table, 2 * (mask + 1))[::2]:
                    if reference:
                        with contextlib.suppress(NotRead):
                            yield self._memory.words(reference + 16, 1)[0]

    def _task(self, at: int) -> tuple[int, int, int]:
        """Return the number of a task, its coroutine and the future that it waits for."""
        words = self._memory.words(at, 32)
        if self._coroutine_at is None:
            places = (place for place in range(2, 31) if self._type(words[place]) in self._suspending)
            self._coroutine_at = next(places, None)
            if self._coroutine_at is None:
                raise NotRead("no task")
        place = self._coroutine_at
        if self._type(words[place]) not in self._suspending:
            raise NotRead("no task")
        return self._number(words[place + 1], at), words[place], words[place - 1]

    def _number(self, name: int, task: int) -> int:
        """Return the number in the name that a task has if it was given none; else its address."""
        kind = self._type(name)
        if kind == self._types[_INTEGER]:
            return TASKS_FROM + (self._memory.words(name + 24, 1)[0] & 0x3FFFFFFF)
        number = self._text(name).removeprefix("Task-") if kind == self._types[_TEXT] else ""
        return TASKS_FROM + int(number) if number.isdecimal() else TASKS_FROM | task

    # --- what they are in ---------------------------------------------------------------------------------

    def _frames(self, coroutine: int) -> list[Frame]:
        """Return the frames of a coroutine and of all that it awaits, the outermost first."""
        layout, frames = self._layout, list[Frame]()
        at = coroutine
        while at and len(frames) < MOST_FRAMES:
            if self._type(at) not in self._suspending:
                break
            head = self._memory.read(at, layout.frame + _LOCALS)
            (state,) = struct.unpack_from("<b", head, layout.state)
            if state not in layout.suspended:
                return []
            (code,) = struct.unpack_from("<Q", head, layout.frame + layout.code)
            instruction, top = struct.unpack_from("<Qi", head, layout.frame + 56)
            of_code = self._code(code)
            frames.append(frame_of(of_code.name, of_code.file, _line(of_code, instruction)))
            if not 0 < top < 10_000:
                break
            at = self._memory.words(at + layout.frame + _LOCALS + 8 * (top - 1), 1)[0]
            if self._name_of(self._type(at)) in _WRAPPING:
                at = self._memory.words(at + 16, 1)[0]
        return frames

    def _code(self, at: int) -> _Code:
        code = self._codes.get(at)
        if code is None:
            if self._type(at) != self._types[_CODE]:
                raise NotRead("no code")
            file, name, _, lines = self._memory.words(at + 112, 4)
            (first,) = struct.unpack("<i", self._memory.read(at + self._layout.first_line, 4))
            size = self._memory.words(lines + 16, 1)[0]
            table = self._memory.read(lines + 32, min(size, 1 << 20))
            code = self._codes[at] = _Code(
                self._text(file),
                self._text(name),
                at + self._layout.instructions,
                tuple(_lines(table, first)),
            )
        return code


def reader_of(pid: int) -> TaskReader | None:
    """Return a reader if a Python process uses asyncio, and its memory can be read and is understood."""
    with contextlib.suppress(NotRead):
        return read_by(lambda memory: TaskReader(pid, memory), pid)
    return None


def _addresses(pid: int) -> Mapping[str, int]:
    """Return where a process has what CPython exports, in its program or in a library."""
    for program, moved in elf.loaded_by(pid, "python"):
        exported = elf.exported(program, _SYMBOLS)
        if _RUNTIME in exported:
            return {name: address + moved for name, address in exported.items()}
    raise NotRead("no interpreter of Python")


def _lines(table: bytes, line: int) -> Iterator[tuple[int, int]]:
    """Yield the ends of runs of instructions and their lines, from a table of places (PEP 626, PEP 657)."""
    end = place = 0
    while place < len(table):
        head = table[place]
        code, end = head >> 3 & 15, end + 2 * ((head & 7) + 1)
        rest = place + 1
        while rest < len(table) and not table[rest] & 0x80:
            rest += 1
        if code in (_LONG, _NO_COLUMN):
            line += _signed(table, place + 1)
        elif _ONE_LINE <= code < _NO_COLUMN:
            line += code - _ONE_LINE
        place = rest
        yield end, line


def _signed(table: bytes, at: int) -> int:
    """Return a number of six bits per byte, the lowest first, whose lowest bit is the sign."""
    value = shift = 0
    while True:
        value |= (table[at] & 63) << shift
        if not table[at] & 64:
            return -(value >> 1) if value & 1 else value >> 1
        shift += 6
        at += 1


def _line(code: _Code, instruction: int) -> int:
    at = instruction - code.begin
    return next((line for end, line in code.lines if at < end), 0)


def _wait(innermost: Frame) -> Wait:
    """Return what a task waits for, as far as the function of asyncio says it."""
    where = innermost.module, innermost.function
    if where == ("asyncio.tasks", "sleep"):
        return "timer"
    if innermost.module == "asyncio.streams":
        return "socket"
    is_lock = where in (("asyncio.locks", "acquire"), ("asyncio.queues", "get"), ("asyncio.queues", "put"))
    return "lock" if is_lock else "other"
