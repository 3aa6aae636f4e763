"""The results on a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from nandlab import presentation
from nandlab.console import Console, Table, escape, width
from nandlab.noted import first_sentence, of_runs
from nandlab.presentation import Part, Presentation, of_run
from nandlab.result_types import Note
from nandlab.units import age, count, lifetime_unit, share

if TYPE_CHECKING:
    from nandlab.comparison import Comparison
    from nandlab.lifetime import Life
    from nandlab.published import Published
    from nandlab.rber import Reliability
    from nandlab.results import RunResult


#: The style of a note, by severity.
_NOTE_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}
#: The kind of a note, by severity, before its code.
_KINDS = {"error": "error", "warning": "warning", "info": "note"}


def show_run(result: RunResult, console: Console) -> None:
    """Print the headline numbers of a run, its sections in short, and its notes."""
    shown = of_run(result)
    table = Table(head=False)
    for _ in range(2):
        table.add_column(style="dim")
        table.add_column(justify="right", style="bold")
    for left, right in zip(shown.headline[::2], shown.headline[1::2], strict=True):
        table.add_row(left.label, left.text, right.label, right.text)
    console.print(table)
    _sections(shown, console)
    _notes(shown.failures, console)
    _notes(shown.notes, console)


def _sections(shown: Presentation, console: Console) -> None:
    """Print each section in short."""
    for section in shown.sections:
        if isinstance(section.short, presentation.Table):
            console.print(_table(section.short))
        else:
            for figure in section.short:
                console.print(f"[dim]{figure.label}[/]  {escape(figure.text)}")


def _notes(notes: Iterable[Note], console: Console) -> None:
    for note in notes:
        console.print(f"[{_NOTE_STYLES[note.severity]}]{escape(note.text)}[/]")


def show_study_notes(notes: Iterable[Mapping[str, Any]], console: Console) -> None:
    """Print the notes of the runs of a study by code, as in claims.json: errors in full, of others one sentence."""
    for note in notes:
        severity, text = note["severity"], note["text"]
        whose = of_runs(note["count"], note["of"], note["where"])
        style, kind = _NOTE_STYLES[severity], _KINDS[severity]
        text = text if severity == "error" else first_sentence(text)
        console.print(f"[{style}]{kind} {escape(note['code'])}[/] {escape(whose + text)}")


def _table(shown: presentation.Table) -> Table:
    table = Table()
    for at, head in enumerate(shown.heads):
        table.add_column(head, justify="right" if at else "left", style="red" if head == "lost" else "")
    for row in shown.rows:
        table.add_row(row.label, *(cell.text if isinstance(cell, Part) else cell for cell in row.cells))
    return table


def show_reliability(found: Reliability, console: Console, *, susceptible: bool = False) -> None:
    """Print RBER and read level by retention and P/E cycles, and the latency of each read level."""
    table = Table()
    conditions = [f"{count(n)} {word}" for n, word in ((found.reads, "reads"), (found.copybacks, "copybacks")) if n]
    after = f" after {' and '.join(conditions)}" if conditions else ""
    for index, kind in enumerate(found.kinds):
        pages = "" if kind == "all" else f" of {kind.upper()} pages"
        console.print(
            f"\nRBER{pages}{after}, and read level that decodes the page; rows: retention, columns: P/E cycles"
        )
        _by_condition(found, console, _rber_cells(found, index))
        if susceptible and found.susceptible is not None:
            console.print(f"\nsusceptible bits{pages}, as a share of a page's bits")
            _by_condition(
                found, console, [[share(ratio) for ratio in row] for row in found.susceptible[index].tolist()]
            )
    console.print()
    console.print(
        "latency of a page read on an idle drive in µs: at once, or from level 1 with ecc.retry full or incremental"
    )
    for name in ("level", "RBER below", "sense", "transfer", "decode", "at once", "full", "incremental"):
        table.add_column(name, justify="right")
    levels = found.levels
    for at in range(len(levels["level"])):
        limit = float(levels["rber_max"][at])
        keys = ("sense_us", "transfer_us", "decode_us", "direct_us", "full_us", "incremental_us")
        times = (f"{float(levels[key][at]):,.6g}" for key in keys)
        table.add_row(str(levels["level"][at]), f"{limit:g}", *times)
    console.print(table)
    if found.has_code:
        from nandlab.rber import LEVELS_OF_A_CODE

        console.print(LEVELS_OF_A_CODE)
    if found.published is not None:
        _published(found.published, console)


def _published(found: Published, console: Console) -> None:
    """Print the published figures beside those of the model."""
    from nandlab.published import PUBLISHED_CAPTION, PUBLISHED_HEADS, deviation_of, published_rows

    console.print(f"\n{PUBLISHED_CAPTION}")
    table = Table()
    for head in PUBLISHED_HEADS:
        table.add_column(head, justify="left" if head in ("figure", "source") else "right")
    for row in published_rows(found):
        table.add_row(*(escape(cell) for cell in row))
    console.print(table)
    console.print(deviation_of(found))


def _rber_cells(found: Reliability, kind: int) -> list[list[str]]:
    def cell(rber: float, level: int) -> str:
        mantissa, power = f"{rber:.2e}".split("e")
        text = f"{mantissa}e{int(power)}" if rber else "0"
        return f"{text} [bold]{level}[/]" if level else f"[red]{text} lost[/]"

    pairs = zip(found.rber[kind].tolist(), found.level[kind].tolist(), strict=True)
    return [[cell(rber, level) for rber, level in zip(*row, strict=True)] for row in pairs]


def _by_condition(found: Reliability, console: Console, cells: list[list[str]]) -> None:
    """Print a row per retention and a column per number of P/E cycles, in several tables on a narrow screen."""
    names = [age(seconds) for seconds in found.retention_s.tolist()]
    heads = [count(cycles) for cycles in found.pe_cycles.tolist()]
    widths = [2 + max(len(head), *(width(line[column]) for line in cells)) for column, head in enumerate(heads)]
    begin = 0
    while begin < len(heads):
        end, room = begin + 1, console.width - 2 - max(map(len, names)) - widths[begin]
        while end < len(heads) and room >= widths[end]:
            room -= widths[end]
            end += 1
        table = Table()
        table.add_column("", style="dim", justify="right", no_wrap=True)
        for head in heads[begin:end]:
            table.add_column(head, justify="right", no_wrap=True)
        for name, line in zip(names, cells, strict=True):
            table.add_row(name, *line[begin:end])
        console.print(table)
        begin = end


#: Columns of a life on the screen after that of the time: heading, name, digits after the point.
_LIFE = (
    ("P/E", "pe_mean", 0),
    ("read µs", "read_us_mean", 0),
    ("p99", "read_us_p99", 0),
    ("write µs", "write_us_mean", 0),
    ("p99", "write_us_p99", 0),
    ("WAF", "waf", 2),
    ("level", "read_level_mean", 2),
    ("refreshed", "refreshed_per_host_page", 3),
    ("budget", "budget_pages", 0),
)
#: The most windows that are shown.
_LIFE_ROWS = 12


def _cell(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}" if math.isfinite(value) else "-"


def show_life(life: Life, console: Console) -> None:
    """Print the end of a life, some of its windows, and its differences from the full simulation."""
    from nandlab.presentation.life import of_life

    shown = of_life(life)
    console.print(shown.lead)
    _notes(shown.failures, console)
    console.print(", ".join(f"{figure.label}: {figure.text}" for figure in shown.headline[1:]))
    table = Table()
    columns = [column for column in _LIFE if column[1] in life.columns]
    unit, per_year = lifetime_unit(life.facts.years)
    table.add_column(unit, justify="right", no_wrap=True)
    for heading, _, _ in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    windows = len(life.columns["years"])
    rows = min(windows, _LIFE_ROWS)
    for at in (round(k * (windows - 1) / max(rows - 1, 1)) for k in range(rows)):
        cells = (_cell(life.columns[name][at], digits) for _, name, digits in columns)
        table.add_row(_cell(life.columns["years"][at] * per_year, 2), *cells)
    console.print(table)
    console.print("[dim]refreshed: pages refreshed per host page[/]")
    _notes(shown.notes, console)
    _sections(shown, console)


def show_comparison(comparison: Comparison, console: Console) -> None:
    """Print the errors of the runs, what was compared and set differently, the differences, and the cautions."""
    from nandlab.comparison.presented import of_comparison

    shown = of_comparison(comparison)
    errors = [note for note in (*shown.notes, *shown.failures) if note.severity == "error"]
    _notes(errors, console)
    for section in shown.sections:
        if isinstance(section.short, presentation.Table):
            console.print(_table(section.short))
        for sentence in section.sentences:
            console.print(escape(sentence))
    _notes((note for note in (*shown.notes, *shown.failures) if note not in errors), console)
