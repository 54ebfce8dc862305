"""The flame graph: threads at work at the highest level, and the difference to the lightest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from loadlens.diagnose.code_places import STATES, at_work, load_in_words, short_names
from loadlens.model.report import Flame, FlameBar
from loadlens.model.stacks import MAIN, Frame, StackSamples, ThreadSample

NARROWEST: Final = 0.003  # of all samples: thinner bars are left out
DEEPEST: Final = 40

Key = tuple[str, str]  # function and module; the state of a thread without a module


@dataclass(slots=True)
class _Node:
    """A function within its callers."""

    samples: int = 0
    frames: Counter[Frame] = field(default_factory=Counter)
    inner: dict[Key, _Node] = field(default_factory=dict)


def flame(stacks: Sequence[StackSamples]) -> Flame | None:
    """Return the flame graph of the highest level; none if no stacks with code were sampled."""
    if not stacks:
        return None
    top, light = stacks[-1], stacks[0] if len(stacks) > 1 else None
    tree = _tree(at_work(top))
    if not tree.samples:
        return None
    before = None if light is None else _tree(at_work(light))
    names = short_names(top)
    bars = tuple(_bars(tree, before, names, tree.samples, before.samples if before else 0, 0, 0.0))
    return Flame(
        bars=bars,
        samples=tree.samples,
        load=load_in_words(top),
        light=load_in_words(light) if light is not None and before is not None and before.samples else "",
    )


def _tree(samples: Sequence[ThreadSample]) -> _Node:
    root = _Node()
    for sample in samples:
        node = root
        node.samples += 1
        for frame in _shown(sample):
            node = node.inner.setdefault((frame.function, frame.module), _Node())
            node.samples += 1
            node.frames[frame] += 1
        node = node.inner.setdefault((STATES.get(sample.wait, "waits"), ""), _Node())
        node.samples += 1
    return root


def _shown(sample: ThreadSample) -> tuple[Frame, ...]:
    """Return the frames from the first function of the service on; all, if there is none."""
    first = next((i for i, frame in enumerate(sample.stack) if frame.is_own and frame.function != MAIN), 0)
    return sample.stack[first : first + DEEPEST]


def _bars(
    node: _Node,
    before: _Node | None,
    names: dict[str, str],
    samples: int,
    samples_before: int,
    depth: int,
    begin: float,
) -> Iterator[FlameBar]:
    """Yield the bars of what a node calls, the widest first, each followed by its own calls."""
    for (function, module), inner in sorted(node.inner.items(), key=lambda item: -item[1].samples):
        share = inner.samples / samples
        if share < NARROWEST:
            continue
        was = None if before is None else before.inner.get((function, module))
        frame = inner.frames.most_common(1)[0][0] if inner.frames else None
        is_own = frame is not None and frame.is_own
        place = module
        if frame is not None and is_own:
            place = f"{names.get(frame.file, frame.file)}:{frame.line}"
        yield FlameBar(
            depth=depth,
            begin=begin,
            width=share,
            name=function,
            place=place,
            is_own=is_own,
            samples=inner.samples,
            change=share - (was.samples if was else 0) / samples_before if samples_before else None,
        )
        yield from _bars(inner, was, names, samples, samples_before, depth + 1, begin)
        begin += share
