"""Count code lines by room: no tests, blanks, comments or docstrings. `make size` prints the table."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
LAB = ("crates/lab", "catalogue", "benches", "tools")
TESTS = ("tests", "fuzz", "examples", "benches")


def python_lines(text: str) -> int:
    """Count lines that hold code: neither blank nor comment nor docstring."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        layout = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
        if token.type not in (*layout, tokenize.ENDMARKER):
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = node.body[0] if node.body else None
        is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        if first is not None and is_text and isinstance(first.value.value, str):  # type: ignore[attr-defined]
            code -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(code)


def rust_lines(text: str) -> tuple[int, int]:
    """Count code lines of a file, and those of its inline test module, which is its last item."""
    product, _, tests = text.partition("\n#[cfg(test)]\nmod tests {")
    return _rust_code(product), _rust_code(tests)


def _rust_code(text: str) -> int:
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("//"))


def counted() -> Counter[tuple[str, str]]:
    """Return code lines by (kind, place): Python and Rust of the wheel, lab apparatus, tests."""
    lines: Counter[tuple[str, str]] = Counter()
    for path in sorted(ROOT.glob("python/*/**/*.py")):
        parts = path.relative_to(ROOT / "python").parts
        room = parts[1].removesuffix(".py") if parts[0] == "loadlens" else parts[0]
        lines["Python", room] += python_lines(path.read_text())
    for path in sorted(ROOT.glob("crates/**/*.rs")):
        place = path.relative_to(ROOT)
        if "target" in place.parts:
            continue
        product, inline = rust_lines(path.read_text())
        crate = (
            "/".join(place.parts[: place.parts.index("src")]) if "src" in place.parts else str(place.parent)
        )
        is_test = bool(set(TESTS) & set(place.parts)) or path.name in ("tests.rs", "test.rs")
        if is_test:
            lines["tests", "Rust"] += product + inline
            continue
        lines["lab" if crate.startswith(LAB) else "Rust", crate] += product
        lines["tests", "Rust"] += inline
    for folder in ("catalogue", "benches", "tools"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            lines["lab", folder] += python_lines(path.read_text())
    for path in sorted((ROOT / "tests").rglob("*.py")):
        lines["tests", "Python"] += python_lines(path.read_text())
    return lines


def main() -> int:
    """Print one table: places by size, a sum per kind, and the product as a whole."""
    lines = counted()
    product = 0
    for kind in ("Python", "Rust", "lab", "tests"):
        places = [(place, number) for (of, place), number in lines.most_common() if of == kind]
        total = sum(number for _, number in places)
        product += total if kind in ("Python", "Rust") else 0
        sys.stdout.write(f"{kind}: {total:,}\n")
        sys.stdout.writelines(f"  {number:>7,}  {place}\n" for place, number in places)
    sys.stdout.write(f"product (Python and Rust in the wheel): {product:,}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
