"""Find words that a reader stumbles over: archaic verbs, programs as persons, docstrings that ask a question.

    python tools/words.py              rooms above their bound in pyproject.toml [tool.loadlens.words]
    python tools/words.py PATH ...     every place below these paths, with the word to write instead
    python tools/words.py --counts     the table of bounds for the text of today

It reads docstrings, comments and texts of Python and Rust, and whole Markdown pages. Names of code are read
where they are defined. A bound may only fall.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDERS: Final = ("python", "crates", "docs", "tests", "tools", "benches", "catalogue", "studies", "examples")
PAGES: Final = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
OURSELVES: Final = ("tools/words.py", "tests/unit/tools/test_words.py", "CHANGELOG.md")
SKIPPED: Final = {"wild", "target", "node_modules", "deps", "_build", "data", "golden", ".venv", "results"}

# Each: a pattern for whole words, and what to write instead.
WORDS: Final = {
    r"foretell|foretells|foretold|foretelling": "predict, predicted",
    r"befall|befalls|befell": "happen to",
    r"come by|came by|comes by": "obtain",
    r"who(?:so)?ever|whomever": "name the part: the caller, the user, a service",
    r"nobody|somebody|anybody|everybody": "name the part; or use the passive",
    r"teller|tellers": "report, source",
    r"told|tells|tell": "reported, says, shows, distinguishes",
    r"dear|dearer|dearest": "costly, costliest",
    r"hasty": "no think time",
    r"calm|calmly": "unloaded, quiet",
    r"of ours": "our",
    r"whence|thence|hence|thereby|therein|whereby": "plain words",
    r"beside(?! the point)": "next to, alongside, besides",
    r"by and by|as yet|ere": "plain words",
    r"bears|bear|bore": "supports, withstands",
    r"mend|mends|mended|mending": "fix, repair",
    r"reckon|reckoned|reckons": "compute",
    r"lends|lent": "plain words",
}
QUESTION: Final = re.compile(r"(What|Whether|Who|Whose|Whom|How|Why|Those|Which|Where|When)\b")
PER: Final = re.compile(
    r"\b\d[\d.,]*\s*(?:ms|µs|us|ns|s|/s|bytes|B|KiB|MiB|requests?|calls?)\s+an?\s+"
    r"(?:second|minute|request|process|thread|core|user|connection|trial|register)\b"
)
NAMES: Final = {
    "found": "name what it holds",
    "known": "name what it holds",
    "told": "name what it holds",
    "said": "name what it holds",
    "one": "name what it holds",
    "that": "name what it holds",
    "teller": "report",
    "books": "accounting, counts",
    "calm": "unloaded",
    "dear": "costly",
    "dearest": "costliest",
}
TYPES: Final = re.compile(
    r"(Told|Teller|Asked|Seen|Kept|Chosen|Said|Reached|Spared|Examined|Hired|Look|Around|Beside|Foretold)$"
)
ACCOUNTS: Final = {"nobody"}
_ALL: Final = re.compile(
    r"(?<![\w-])(?:" + "|".join(f"(?:{p})" for p in WORDS) + r")(?![\w-])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Place:
    """One word to replace."""

    path: str
    line: int
    word: str
    instead: str


def in_text(path: str, first_line: int, text: str) -> Iterator[Place]:
    """Find words of the table in prose."""
    for match in _ALL.finditer(text):
        line = first_line + text.count("\n", 0, match.start())
        instead = next(v for p, v in WORDS.items() if re.fullmatch(p, match[0], re.IGNORECASE))
        yield Place(path, line, match[0], instead)
    for match in PER.finditer(text):
        yield Place(path, first_line + text.count("\n", 0, match.start()), match[0], "per request")


def in_python(path: str, text: str) -> Iterator[Place]:
    """Find words in docstrings, texts, comments and defined names of a Python file."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            doc = ast.get_docstring(node, clean=False)
            if doc and (match := QUESTION.match(doc.lstrip())):
                line = node.body[0].lineno
                yield Place(path, line, f'"""{match[0]}', "a verb in the imperative, or a noun phrase")
        if isinstance(node, ast.ClassDef) and TYPES.search(node.name):
            yield Place(path, node.lineno, node.name, "a noun")
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from in_text(path, node.lineno, _prose(node.value))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in NAMES:
            yield Place(path, node.lineno, node.id, NAMES[node.id])
        if isinstance(node, ast.arg) and node.arg in NAMES:
            yield Place(path, node.lineno, node.arg, NAMES[node.arg])
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield from in_text(path, token.start[0], token.string)


def in_rust(path: str, text: str) -> Iterator[Place]:
    """Find words in comments, texts and defined names of a Rust file."""
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.search(r"//[/!]?(.*)", line)
        if comment:
            yield from in_text(path, number, comment[1])
            is_doc = line.strip().startswith(("///", "//!"))
            starts = is_doc and not before.strip().startswith(("///", "//!"))
            if starts and (match := QUESTION.match(comment[1].strip())):
                yield Place(path, number, f"/// {match[0]}", "a verb in the imperative, or a noun phrase")
        for quoted in re.finditer(r'"((?:[^"\\]|\\.)*)"', line.split("//")[0]):
            yield from in_text(path, number, quoted[1])
        if (let := re.search(r"\blet (?:mut )?(\w+)\b", line)) and let[1] in NAMES:
            yield Place(path, number, let[1], NAMES[let[1]])
        before = line


def in_markdown(path: str, text: str) -> Iterator[Place]:
    """Find words in prose; names set as code are left out."""
    return in_text(path, 1, _prose(text))


def _prose(text: str) -> str:
    """Leave out names set as code, and a text that is the name of an account."""
    return "" if text in ACCOUNTS else re.sub(r"`[^`\n]*`", "``", text)


def in_file(path: Path) -> list[Place]:
    """Return every place of one file, in the order of its lines."""
    name, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    read = {".py": in_python, ".rs": in_rust}.get(path.suffix, in_markdown)
    return sorted(read(name, text), key=lambda place: place.line)


def files(paths: list[Path]) -> Iterator[Path]:
    """Yield the files that are read below some paths."""
    for top in paths:
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            place = path.relative_to(ROOT)
            is_read = path.suffix in (".py", ".rs", ".md") and not SKIPPED & set(place.parts)
            if is_read and str(place) not in OURSELVES:
                yield path


def room_of(name: str) -> str:
    """Name the part of the repository that a bound speaks of."""
    parts = Path(name).parts
    if parts[:2] == ("python", "loadlens") and len(parts) > 3:
        return f"python/{parts[2]}"
    return "/".join(parts[:2]) if parts[0] in ("crates", "python", "docs") and len(parts) > 2 else parts[0]


def main() -> int:
    """Print places or the table; exit 1 where a bound is exceeded."""
    words = sys.argv[1:]
    if words and words[0] != "--counts":
        for place in (place for path in files([Path(w).resolve() for w in words]) for place in in_file(path)):
            sys.stdout.write(f"{place.path}:{place.line}: {place.word!r}: write {place.instead}\n")
        return 0
    tops = [ROOT / folder for folder in FOLDERS] + [ROOT / page for page in PAGES]
    counts = Counter(room_of(place.path) for path in files(tops) for place in in_file(path))
    if words:
        sys.stdout.writelines(f'"{room}" = {number}\n' for room, number in sorted(counts.items()))
        return 0
    allowed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["loadlens"]["words"]
    lines = over(counts, allowed)
    sys.stdout.writelines(f"{line}; `python tools/words.py PATH` shows them\n" for line in lines)
    return 1 if lines else 0


def over(counts: Mapping[str, int], allowed: Mapping[str, int]) -> list[str]:
    """Return a line for each room with more such words than its bound."""
    return [
        f"{room}: {number} words to replace, at most {allowed.get(room, 0)} allowed"
        for room, number in sorted(counts.items())
        if number > allowed.get(room, 0)
    ]


if __name__ == "__main__":
    sys.exit(main())
