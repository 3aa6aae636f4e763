"""Pieces of HTML that the sections are made of."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from pathlib import Path

#: Why a page is programmed, read or a block erased; the same colour everywhere.
CAUSES = {
    "host": "the host",
    "gc": "garbage collection",
    "wear": "wear levelling",
    "refresh": "refresh",
    "mapping": "mapping table",
    "sync": "cache sync",
    "flush": "emergency flush",
}


def escape(text: object) -> str:
    """Text from outside, safe to put into HTML."""
    return html.escape(str(text))


def document(title: str, sections: Sequence[str], footer: str, version: object) -> str:
    """A whole page: style and script are in it, so that it opens without a network."""
    here = Path(__file__).parent
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} - nandlab</title>
<style>
{(here / "style.css").read_text(encoding="utf-8")}</style>
</head>
<body>
<main>
{"".join(sections)}
<footer>nandlab {escape(str(version))}, {escape(footer)}</footer>
</main>
<script>
{(here / "hover.js").read_text(encoding="utf-8")}</script>
</body>
</html>
"""


def section(title: str, *parts: str) -> str:
    """A section, or nothing when it has no content."""
    body = "".join(parts)
    return f"<section><h2>{escape(title)}</h2>{body}</section>\n" if body else ""


def figure(plot: str, caption: str, title: str = "") -> str:
    """A plot or table with a line on how to read it."""
    head = f"<h3>{escape(title)}</h3>" if title else ""
    return f"<figure>{head}{plot}<figcaption>{escape(caption)}</figcaption></figure>"


def nothing(sentence: str, title: str = "") -> str:
    """What stands where a plot would be empty."""
    head = f"<h3>{escape(title)}</h3>" if title else ""
    return f'<figure class="none">{head}{escape(sentence)}</figure>'


def columns(kind: str, *parts: str) -> str:
    """Parts side by side; `kind` is a class of the style sheet."""
    return f'<div class="{kind}">{"".join(parts)}</div>'


def details(title: str, text: str) -> str:
    """Text that is folded away until asked for."""
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def number_table(names: Sequence[str], rows: Iterable[Sequence[str]], *, numeric: bool = True) -> str:
    """A table of ready cells (HTML); all columns but the first hold numbers."""
    mark = ' class="n"' if numeric else ""
    cells = "".join(f"<th{mark if i else ''}>{escape(name)}</th>" for i, name in enumerate(names))
    body = "".join(
        "<tr>" + "".join(f"<td{mark if i else ''}>{cell}</td>" for i, cell in enumerate(row)) + "</tr>" for row in rows
    )
    head = f"<thead><tr>{cells}</tr></thead>" if cells else ""
    return f"<table>{head}<tbody>{body}</tbody></table>"


def fact_table(rows: Iterable[tuple[str, str]]) -> str:
    """Names and what they are."""
    body = "".join(f'<tr><td class="k">{escape(name)}</td><td>{escape(value)}</td></tr>' for name, value in rows)
    return f"<table><tbody>{body}</tbody></table>" if body else ""


def words(key: str) -> str:
    """A key as words."""
    return key.replace("_", " ")
