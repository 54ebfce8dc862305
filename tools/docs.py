"""Write the generated reference pages again, or say which are stale (`--check`).

docs/reference/study.md, study.schema.json   from the keys of the study file
docs/reference/findings.md                   from the docstrings of the rules and tools/symptoms.toml
docs/reference/cli.md                        from the help texts
wheel/data/share/man/man1/loadlens.1         from the same
docs/reference/monitors/NAME.md              its table from model/readings.py; the rest is written by hand
docs/glossary.md                             from the words that reports use
python/loadlens/api/flags.py                 from the flags: keywords of the verbs in Python

`make site` takes its table of contents, llms.txt and llms-full.txt from here, all made from docs/index.md.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import textwrap
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadlens.cli.grammar import help_page
    from loadlens.cli.options import Example
    from loadlens.model.readings import Metric

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MANUAL = ROOT / "wheel" / "data" / "share" / "man" / "man1" / "loadlens.1"  # maturin's data folder: wheel/
NOTE = "<!-- made by `make docs`; edit {source} instead -->\n\n"

FINDINGS_HEAD = """# Findings

What you may see, and what it can be. A finding in a report or an answer links here.

A rule sees measured facts and no name of a study, service, endpoint or factor. It answers with a
finding, with what rules it out, or with what was missing to decide. Grades say how sure it is:

- **strong**: every signal passes with its interval, and every rival was examined and excluded;
- **probable**: every signal passes; a rival could not be excluded;
- **suspected**: a necessary signal is missing;
- **confirmed**: the cause was changed and the predicted change was seen. No rule gives it yet.

A *note* says how far figures go, and nothing about what limits the service. It is never the answer.
"""
FLAGS_HEAD = '''"""Keywords of the verbs and their types: made by `make docs` from the flags."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

Text = str | int | float | Path
Texts = Text | Sequence[Text]
File = str | Path
'''
FIRST = ("Do", "Means", "Confirm")  # heads of a rule's docstring that are not folded


def findings_page() -> str:
    """Every rule with the page that its docstring is, by the symptom that a reader sees."""
    from loadlens import diagnose

    symptoms = tomllib.loads((ROOT / "tools" / "symptoms.toml").read_text(encoding="utf-8"))["symptom"]
    rules = {rule.ID: rule for rule in diagnose.PAGES}
    listed = Counter(name for symptom in symptoms for name in symptom["findings"])
    faults = [name for name in rules if name not in listed]
    faults += [name for name, count in listed.items() if name not in rules or count > 1]
    if faults:
        raise SystemExit(f"tools/symptoms.toml must list each rule once: {', '.join(sorted(faults))}")
    parts = [
        NOTE.format(source="python/loadlens/diagnose/rules/ROOM/NAME.py, tools/symptoms.toml"),
        FINDINGS_HEAD,
        _symptoms_index(symptoms),
    ]
    for symptom in symptoms:
        parts.append(f"\n## {symptom['title']}\n\n{symptom['see']}\n")
        if symptom.get("also"):
            parts.append(f"\nSee also {', '.join(map(_link, symptom['also']))}.\n")
        parts += [_finding(rules[name], seen) for name, seen in symptom["findings"].items()]
    return "".join(parts)


def _symptoms_index(symptoms: list[dict[str, Any]]) -> str:
    """One row per symptom with the findings that can cause it."""
    rows = []
    for symptom in symptoms:
        anchor = re.sub(r"[^\w\- ]", "", symptom["title"].lower()).replace(" ", "-")
        names = ", ".join(map(_link, [*symptom["findings"], *symptom.get("also", ())]))
        rows.append(f"| [{symptom['title']}](#{anchor}) | {names} |\n")
    return f"\n| you see | it can be |\n| --- | --- |\n{''.join(rows)}"


def _link(rule: str) -> str:
    """Link a rule to its part of the page."""
    anchor = re.sub(r"[^\w-]", "", rule)
    return f"[{rule}](#{anchor})"


def _finding(rule: Any, seen: str) -> str:
    """Put what a reader sees and can do first, and fold how it is decided."""
    from loadlens.model.notes import NOTES

    lead, *heads = re.split(r"\n\n(?=\*\*)", textwrap.dedent(rule.__doc__ or "").strip())
    by_head = {head[2 : head.index(".**")]: head for head in heads}
    first = [by_head.pop(name) for name in FIRST]
    note = " *A note.*" if rule.ID in NOTES else ""
    shown = "\n\n".join([f"{lead}{note}", textwrap.fill(f"**You see.** {seen}", 110), *first])
    folded = "\n\n".join(by_head.values())
    details = f"<details><summary>How it is decided</summary>\n\n{folded}\n\n</details>\n" if folded else ""
    return f"\n### {rule.ID}\n\n{shown}\n\n{details}"


def cli_page() -> str:
    """Every verb with its examples, arguments and options."""
    parts = [NOTE.format(source="python/loadlens/cli/VERB.py"), "# The command line\n"]
    for name, page in sorted(_help_pages().items()):
        title = f"loadlens {name}".strip()
        parts.append(f"\n## {title}\n\n" + "\n\n".join(page.paragraphs) + "\n")
        if page.examples:
            shown = "\n".join(f"{each.command}  # {each.says}" for each in page.examples)
            parts.append(f"\n```\n{shown}\n```\n")
        for section in page.sections:
            parts.append(f"\n**{section.title}**\n\n| | |\n| --- | --- |\n")
            for entry in section.entries:
                text = entry.text.replace("|", "\\|")
                parts.append(f"| {_marked(entry.names)} | {text} |\n")
        parts += _other_flags(name)
    return "".join(parts)


def _help_pages() -> dict[str, help_page.Page]:
    """Return the help of the program, under an empty name, and of each verb."""
    import typer

    from loadlens.cli import app
    from loadlens.cli.grammar import help_page

    group = typer.main.get_command(app)
    verbs = group.commands.items()  # type: ignore[attr-defined]
    return {"": help_page.page_of(group, "")} | {
        name: help_page.page_of(verb, name) for name, verb in verbs if not verb.hidden
    }


def _marked(names: str) -> str:
    """Set flags as code: `-c`, `--connections` N."""
    flags, _, value = names.rpartition(" ") if names.startswith("-") and " " in names else (names, "", "")
    if value.startswith("-"):
        flags, value = names, ""
    return ", ".join(f"`{flag}`" for flag in flags.split(", ")) + (f" {value}" if value else "")


def manual_page() -> str:
    """Return the page of `man loadlens`: the same text as the help of all verbs."""
    pages = _help_pages()
    program = pages.pop("")
    lines = [
        '.\\" made by `make docs`; edit python/loadlens/cli/VERB.py instead',
        '.TH LOADLENS 1 "" Loadlens "Loadlens"',
        ".SH NAME",
        f"loadlens \\- {_roff(program.paragraphs[0].rstrip('.'))}",
        ".SH SYNOPSIS",
        *(f".B {_roff(page.usage.removeprefix('Usage: '))}\n.br" for page in pages.values()),
        ".SH DESCRIPTION",
        *_roff_paragraphs(program.paragraphs[1:]),
        *_roff_examples(program.examples),
    ]
    for name, page in pages.items():
        lines += [f'.SH "LOADLENS {name.upper()}"', *_roff_paragraphs(page.paragraphs)]
        lines += _roff_examples(page.examples)
        for section in page.sections:
            lines.append(f'.SS "{section.title}"')
            for entry in section.entries:
                lines += [".TP", f".B {_roff(entry.names)}", _roff(entry.text) or "\\&"]
    exits = (DOCS / "reference" / "exit-codes.md").read_text(encoding="utf-8")
    lines.append('.SH "EXIT STATUS"')
    for code, when in re.findall(r"(?m)^\| (\d+) \| (.+) \|$", exits):
        lines += [".TP", f".B {code}", _roff(re.sub(r"[`]", "", when))]
    return "\n".join(lines) + "\n"


def _roff_paragraphs(paragraphs: Sequence[str]) -> list[str]:
    return [line for text in paragraphs for line in (".PP", _roff(text))]


def _roff_examples(examples: Sequence[Example]) -> list[str]:
    return [line for each in examples for line in (".TP", f".B {_roff(each.command)}", _roff(each.says))]


def _roff(text: str) -> str:
    """Text in which roff sees no command."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


def _other_flags(verb: str) -> list[str]:
    """Rows for the flags of a verb that reads them as another program does."""
    is_compat = verb in ("ab", "hey", "wrk")
    flags = importlib.import_module(f"loadlens_compat.{verb}.verb") if is_compat else None
    rows = []
    for flag in getattr(flags, "FLAGS", ()):
        names = ", ".join(f"`{name}`" for name in (f"-{flag.name}", flag.long and f"--{flag.long}") if name)
        shown = f"{names} {flag.value}".strip()
        says = f"Refused: {flag.says}; try {flag.instead}" if flag.instead else flag.says
        rows.append(f"| {shown} | {says} |\n")
    return rows


def glossary_page() -> str:
    """The words that reports use, each with its one meaning."""
    from loadlens.present import words

    rows = "".join(f"- **{term.word}**: {term.meaning}.\n" for term in words.GLOSSARY)
    return NOTE.format(source="python/loadlens/present/words.py") + "# Glossary\n\n" + rows


def monitor_page(name: str) -> str:
    """A monitor's page with the table of what it reads as `model/readings.py` has it."""
    from loadlens.model.readings import METRICS

    text = (DOCS / "reference" / "monitors" / f"{name}.md").read_text(encoding="utf-8")
    marked = re.compile(r"(<!-- metrics: [^\n]* -->\n).*?(<!-- end of metrics -->\n)", re.DOTALL)
    if len(marked.findall(text)) != 1:
        raise SystemExit(f"docs/reference/monitors/{name}.md has no place for its table, or several")
    table = _metrics_table(METRICS[name])
    return marked.sub(lambda marks: f"{marks[1]}\n{table}\n{marks[2]}", text)


def _metrics_table(metrics: tuple[Metric, ...]) -> str:
    """One row a metric; a column for where it is read if that differs."""
    has_source = any(metric.source for metric in metrics)
    rows = [("metric", "unit", "kind", "what", "read from"), ("---",) * 5]
    rows += [
        (f"`{m.name}`", m.unit, m.kind, m.what.replace("|", "\\|"), f"`{m.source}`" if m.source else "")
        for m in metrics
    ]
    return "".join(f"| {' | '.join(row if has_source else row[:4])} |\n" for row in rows)


@dataclass(frozen=True, slots=True)
class Entry:
    """A page that docs/index.md links."""

    title: str
    path: Path
    about: str

    @property
    def uri(self) -> str:
        """Return its path in the site: that in docs/, or for others that from the root, in lower case."""
        if self.path.is_relative_to(DOCS):
            return self.path.relative_to(DOCS).as_posix()
        return self.path.relative_to(ROOT).as_posix().lower().replace("/readme.md", ".md")


def contents() -> dict[str, list[Entry]]:
    """Return the sections of docs/index.md with the pages that their lists link: `- [title](path): about`."""
    sections: dict[str, list[Entry]] = {}
    _, *parts = re.split(r"^## (.+)\n", (DOCS / "index.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for head, text in zip(parts[::2], parts[1::2], strict=True):
        rows = re.findall(r"^- \[(.+)\]\((\S+\.md)\): (.+(?:\n  .+)*)", text, re.MULTILINE)
        sections[head] = [Entry(title, (DOCS / path).resolve(), about) for title, path, about in rows]
    return sections


def llms() -> str:
    """Return llms.txt: the table of contents for programs that read, in the form of llmstxt.org."""
    intro = (DOCS / "index.md").read_text(encoding="utf-8").split("\n\n")[1]
    parts = [f"# Loadlens\n\n> {' '.join(intro.split())}\n"]
    for head, entries in contents().items():
        rows = (f"- [{e.title}]({e.uri}): {' '.join(e.about.split())}\n" for e in entries)
        parts.append(f"\n## {head}\n\n{''.join(rows)}")
    return "".join(parts)


def llms_full() -> str:
    """Return every page of the table of contents in one file."""
    entries = [entry for section in contents().values() for entry in section]
    return (
        "\n\n".join(f"<!-- {e.uri} -->\n\n{e.path.read_text(encoding='utf-8').strip()}" for e in entries)
        + "\n"
    )


def flags_module() -> str:
    """The types of the keywords that the verbs take from Python."""
    from loadlens.api.keywords import OPTIONS, keywords_of

    parts, lines_of = [FLAGS_HEAD], dict[type | None, tuple[str, list[str]]]()
    for verb, options in OPTIONS.items():
        lines = [f"    {each.name}: {each.annotation} | None\n" for each in keywords_of(options).values()]
        base, inherited = lines_of.get(options.__base__, ("TypedDict", []))
        name = f"{verb.title()}Flags"
        lines_of[options] = name, lines
        own = [line for line in lines if line not in inherited]
        parts.append(f'\n\nclass {name}({base}, total=False):\n    """Keywords of `loadlens.{verb}`."""\n')
        parts += ["\n", *own] if own else []
    return "".join(parts)


def pages() -> dict[Path, str]:
    """Every generated page with what it should hold."""
    from loadlens.signals.collect import MONITORS
    from loadlens.study.parse import reference

    return {
        DOCS / "reference" / "study.md": reference.page(),
        DOCS / "reference" / "study.schema.json": json.dumps(reference.schema(), indent=2, ensure_ascii=False)
        + "\n",
        DOCS / "reference" / "findings.md": findings_page(),
        DOCS / "reference" / "cli.md": cli_page(),
        MANUAL: manual_page(),
        DOCS / "glossary.md": glossary_page(),
        ROOT / "python" / "loadlens" / "api" / "flags.py": flags_module(),
    } | {DOCS / "reference" / "monitors" / f"{name}.md": monitor_page(name) for name in MONITORS}


def stale() -> list[str]:
    """Names of the pages that are not what the code says."""
    return [
        str(path.relative_to(ROOT))
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def main() -> int:
    """Write the pages, or with `--check` only compare."""
    if "--check" in sys.argv[1:]:
        old = stale()
        print("\n".join(f"stale: {name}; run `make docs`" for name in old))
        return 1 if old else 0
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
