"""HTML elements of the reports."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from pathlib import Path

from nandlab.presentation import Figure, Part, Presentation, Row, Section, Table
from nandlab.result_types import Note
from nandlab.units import share


def escape(text: object) -> str:
    """A text, escaped for HTML."""
    return html.escape(str(text))


def document(title: str, sections: Sequence[str], footer: str, version: object) -> str:
    """A whole page with its style and script, so that it opens without a network."""
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
    """A section; empty when its parts are empty."""
    body = "".join(parts)
    return f"<section><h2>{escape(title)}</h2>{body}</section>\n" if body else ""


def figure(plot: str, caption: str, title: str = "") -> str:
    """A plot or table with its caption."""
    head = f"<h3>{escape(title)}</h3>" if title else ""
    return f"<figure>{head}{plot}<figcaption>{escape(caption)}</figcaption></figure>"


def nothing(sentence: str, title: str = "") -> str:
    """A sentence in place of an empty plot."""
    head = f"<h3>{escape(title)}</h3>" if title else ""
    return f'<figure class="none">{head}{escape(sentence)}</figure>'


def columns(kind: str, *parts: str) -> str:
    """Parts side by side; `kind` is a class of the style sheet."""
    return f'<div class="{kind}">{"".join(parts)}</div>'


def details(title: str, text: str) -> str:
    """A collapsed text."""
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def number_table(names: Sequence[str], rows: Iterable[Sequence[str]], *, numeric: bool = True) -> str:
    """A table of cells in HTML; with `numeric`, all columns except the first are numbers."""
    mark = ' class="n"' if numeric else ""
    cells = "".join(f"<th{mark if i else ''}>{escape(name)}</th>" for i, name in enumerate(names))
    body = "".join(
        "<tr>" + "".join(f"<td{mark if i else ''}>{cell}</td>" for i, cell in enumerate(row)) + "</tr>" for row in rows
    )
    head = f"<thead><tr>{cells}</tr></thead>" if cells else ""
    return f"<table>{head}<tbody>{body}</tbody></table>"


def fact_table(rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and values."""
    body = "".join(f'<tr><td class="k">{escape(name)}</td><td>{escape(value)}</td></tr>' for name, value in rows)
    return f"<table><tbody>{body}</tbody></table>" if body else ""


def header(shown: Presentation) -> str:
    """The name of the result, its failures, headline and notes."""
    badges = "".join(
        f'<span class="badge {"bad" if note.severity == "error" else "warn"}">{escape(note.text)}</span>'
        for note in shown.failures
    )
    lead = f'<p class="lead">{escape(shown.lead)}</p>' if shown.lead else ""
    tiles = "".join(
        f'<div class="tile"><b>{escape(figure.value)}<small>{escape(figure.unit)}</small></b>'
        f"<span>{escape(figure.label)}</span></div>"
        for figure in shown.headline
    )
    notes = "".join(map(_note, shown.notes))
    head = f"<header><h1>{escape(shown.name)}</h1>{badges}</header>"
    return f'{head}{lead}<div class="tiles">{tiles}</div>\n{notes}'


def _note(note: Note) -> str:
    return f'<p class="note {escape(note.severity)}">{escape(note.text)}</p>'


#: The most columns of a table beside another element.
_BESIDE_COLUMNS = 6
#: The most figures in one column.
_COLUMN_FIGURES = 9


def body(shown: Section | None, *plots: str) -> str:
    """The content of a section, with its plots."""
    drawn = [plot for plot in plots if plot]
    if shown is None:
        return _beside(drawn)
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in shown.sentences)
    tables = [table(of) for of in shown.tables]
    if not drawn and not tables and len(shown.figures) > _COLUMN_FIGURES:
        half = -(-len(shown.figures) // 2)
        return sentences + _beside([_figures(shown.figures[:half]), _figures(shown.figures[half:])])
    facts = [_figures(shown.figures)] if shown.figures else []
    if any(len(of.heads) > _BESIDE_COLUMNS for of in shown.tables):
        return sentences + _beside([*drawn, *facts]) + "".join(tables)
    return sentences + _beside([*drawn, *tables, *facts])


def _beside(parts: Sequence[str]) -> str:
    return columns("two", *parts) if len(parts) > 1 else "".join(parts)


def table(shown: Table) -> str:
    """A table with its caption."""
    cells = number_table(shown.heads, ([_label(row), *(_cell(cell, row) for cell in row.cells)] for row in shown.rows))
    if len(shown.heads) > _BESIDE_COLUMNS:
        cells = f'<div class="scroll">{cells}</div>'
    if shown.caption:
        return figure(cells, shown.caption, shown.title)
    head = f"<h3>{escape(shown.title)}</h3>" if shown.title else ""
    return f"<figure>{head}{cells}</figure>"


def _label(row: Row) -> str:
    return (f'<i class="sw c-{escape(row.colour)}"></i>' if row.colour else "") + escape(row.label)


def _cell(cell: str | Part, row: Row) -> str:
    if isinstance(cell, str):
        return escape(cell)
    meter = f'<span class="meter c-{escape(row.colour)}" style="width:{100 * cell.share:.1f}%"></span>'
    return f"{escape(cell.text)} <small>({share(cell.share)})</small>{meter}"


def _figures(shown: Sequence[Figure]) -> str:
    return f"<figure>{fact_table((of.label, of.text) for of in shown)}</figure>"


def overview(shown: Presentation) -> str:
    """The short form of a result, for a notebook."""
    lines = [
        (of.label, of.text) for section in shown.sections if isinstance(section.short, tuple) for of in section.short
    ]
    tables = [table(section.short) for section in shown.sections if isinstance(section.short, Table)]
    notes = "".join(f"<p>{escape(note.text)}</p>" for note in (*shown.failures, *shown.notes))
    lead = f"<p>{escape(shown.lead)}</p>" if shown.lead else ""
    head = f"<p><b>{escape(shown.name)}</b></p>{lead}"
    return head + _figures(shown.headline) + "".join(tables) + fact_table(lines) + notes
