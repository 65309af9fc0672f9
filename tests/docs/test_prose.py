"""Spelling, and the rules of style for README, documentation and notebooks: the field's terms, no verbs of speech."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: Pages of prose; the outputs of benchmarks are printed by programs.
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "benchmarks/README.md")),
    *(page for page in sorted(DOCS.rglob("*.md")) if page.parent.name != "performance"),
    *sorted((ROOT / "notebooks").glob("*.ipynb")),
]

#: Patterns that are not allowed, and their replacements.
RULES = {
    r"\b(?:tell|tells|told|ask|asks|asked)\b": "name what is sent or returned",
    r"(?<!report )\b(?:says|said)\b": "contains, shows, has the reason; a report says why",
    r"\b(?:believes?|thinks?) (?:that|to)\b": "assumes, estimates",
    r"\btwins?\b": "reimplementation",
    r"\bspare[sd]? (?:a |the |its )?joins?\b|\bspared joins\b": "avoided joins",
    r"\b(?<!by )hands? (?:\w+ )?on\b|\bhanded on\b": "propagates",
    r"\bheld against\b": "tested against",
    r"\bidentities\b": "column references (expression IDs)",
    r"\bin however many ways\b|\bby a hair\b|\bso much (?:is|for)\b": "a fact with its figures",
    r"\b(?:the|a|this|whole|that) (?:road|door|doors|floor)\b": "path, kind of session, level",
    r"\btable limit\b": "name the algorithm",
    r"\bare what we would like\b|\btell us\b": "the address, or nothing",
    r"\b(?:simply|obviously|of course|needless to say)\b": "leave it out",
    r"\b(?:TODO|FIXME|XXX)\b": "nothing unfinished",
    r"\b(\w+) \1\b(?<!\bthat that)(?<!\bhad had)": "a word twice",
    r"\b(?:pypi\.org|pythonhosted|npmjs|repo1\.maven|maven\.org)\b": "the name of the registry, without its host",
    r"\butili[sz]e[sd]?\b|\bleverage[sd]?\b|\bin order to\b": "use, to",
}  # fmt: skip
MOST_WORDS = 60
WIDEST = 135

_CODE = re.compile(r"^( *)(```+).*?^\1\2", re.DOTALL | re.MULTILINE)


def prose(page: Path) -> str:
    """The text of a page or notebook without code, link targets and comments; line breaks stay."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = _CODE.sub(lambda block: "\n" * block[0].count("\n"), text)
    text = re.sub(r"(`+)[^`].*?\1", "CODE", text)
    text = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE) if page.name == "README.md" else text
    return re.sub(r"\]\([^)]*\)", "]", text)


def broken(text: str) -> Iterator[str]:
    """The rules that a text breaks: line, words and replacement."""
    for rule, better in RULES.items():
        for found in re.finditer(rule, text, re.IGNORECASE if "TODO" not in rule else 0):
            if found[0].replace(" ", "").isupper() or found[0].split()[0].isdigit():
                if better == "a word twice":  # CODE CODE, figures
                    continue
            yield f"line {text.count(chr(10), 0, found.start()) + 1}: {found[0]!r} -> {better}"


def sentences(text: str) -> Iterator[str]:
    """The sentences of paragraphs and list items; tables and headings have none."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("|", "#", ">", "!"))]
    for paragraph in re.split(r"\n\s*\n|\n\s*(?:[*-]|\d+\.) ", "\n".join(lines)):
        yield from re.split(r"(?<=[.!?:;])\s+", " ".join(paragraph.split()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_rules_of_style(page: Path) -> None:
    text = prose(page)
    found = list(broken(text))
    long = [words for sentence in sentences(text) if len(words := sentence.split()) > MOST_WORDS]
    found += [f"{len(words)} words: {' '.join(words[:12])} ..." for words in long]
    assert not found, "\n".join(found)


def test_lines_are_not_too_wide() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES if page.suffix == ".md"]
    written = [text for text in texts if not text.startswith("<!-- Written by")]
    assert len(written) >= len(texts) - 2
    lines = [line for text in written for line in _CODE.sub("", text).splitlines()]
    wide = [line for line in lines if len(line) > WIDEST and "|" not in line and "](" not in line]
    assert not wide, "\n".join(wide)


@pytest.mark.parametrize(
    "sentence",
    [
        "The JVM is asked for the rows.", "The shim tells Python its version.", "A twin of CostBasedJoinReorder.",
        "The file says so.", "It spares joins.", "It hands filters on.", "Held against Catalyst's.",
        "This is the the end.", "In however many ways a query is written, it gets one plan.",
        "A query goes down the whole road.",
    ],
)  # fmt: skip
def test_a_broken_rule_is_found(sentence: str) -> None:
    assert list(broken(sentence))


def test_a_good_sentence_breaks_no_rule() -> None:
    good = "Anything that cannot be proved safe is left unchanged, and the report says why."
    assert not list(broken(good)) and list(sentences(f"# Title\n\n{good}\n")) == [good]


def test_spelling() -> None:
    """codespell; its settings are in pyproject.toml."""
    names = "README.md CHANGELOG.md docs benchmarks pyjoinopt jvm_shim/src demo tests notebooks".split()
    done = subprocess.run([sys.executable, "-m", "codespell_lib", *names], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stdout, done.stdout + done.stderr
    command = [sys.executable, "-m", "codespell_lib", "-"]
    wrong = subprocess.run(command, input="rec" + "ieve\n", cwd=ROOT, capture_output=True, text=True)
    assert "receive" in wrong.stdout
