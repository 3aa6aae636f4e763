"""The output of the commands."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nandlab import units
from nandlab.errors import OutputError, shortened, visible, visible_data

if TYPE_CHECKING:
    from nandlab.console import Console


def make_console() -> Console:
    """A console on stdout."""
    from nandlab.console import Console

    return Console()


def say(text: str | os.PathLike[str]) -> None:
    """Print a line on stdout."""
    print(visible(text))


def say_data(text: str) -> None:
    """Print a text of JSON or TOML on stdout."""
    print(visible_data(text.rstrip("\n")))


def say_page(page: Path | None) -> None:
    """Print the path of a page, or why there is none."""
    from nandlab.reporting.extra import missing

    absent = missing()
    say(page if page and not absent else f"no page, {', '.join(absent)} not installed: pip install 'nandlab[figures]'")


def show_title(console: Console, name: str, place: str = "") -> None:
    """Print the name of what is shown, and where it is."""
    from nandlab.console import escape

    console.print(f"[bold]{escape(name)}[/]" + (f"  {escape(place)}" if place else ""), soft_wrap=True)


def show_reading(console: Console, read_as: dict[str, Any]) -> None:
    """Print how a trace is understood."""
    from nandlab.console import escape

    how = "named" if read_as["named"] else "detected"
    lines = [f"trace  {read_as['format']} ({how}): {read_as['units']}"]
    if read_as["first"] is not None:
        lines.append(f"first record  {read_as['first']['text']}")
    for line in lines:
        console.print(escape(line), soft_wrap=True)


def warn_of_others(read_as: dict[str, Any], key: str) -> None:
    """Warn of the formats that make other requests of the lines of a trace; `key` names the format."""
    for other in read_as["others"]:
        unit = f" with times in {other['time_unit']}" if other["time_unit"] else ""
        here, there = other["here"], other["there"]
        record = "first record" if here["record"] == read_as["first"]["record"] else f"record of line {here['record']}"
        fail(
            f"warning: the trace is read as {read_as['format']}, but {other['format']}{unit} reads the same lines as "
            f"other requests\n  {record} as {read_as['format']}: {here['text']}\n"
            f"  {record} as {other['format']}{unit}: {there['text']}\n"
            f"  remedy: name the format with {key}"
        )


def show_pairs(pairs: list[tuple[str, str]], as_json: bool) -> None:
    """Print names and descriptions."""
    if as_json:
        print(json.dumps([{"name": name, "description": text} for name, text in pairs], indent=2))
        return
    from nandlab.console import Table, escape

    table = Table(head=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, text in pairs:
        table.add_row(escape(name), escape(text))
    make_console().print(table)


def show_rows(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print rows with the same keys as a table."""
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    from nandlab.console import Table, escape

    plain = [{key: value for key, value in row.items() if not isinstance(value, (dict, list))} for row in rows]
    keys = list(dict.fromkeys(key for row in plain for key in row))
    table = Table()
    for key in keys:
        numeric = all(isinstance(row.get(key), (int, float)) or row.get(key) is None for row in plain)
        table.add_column(key, justify="right" if numeric else "left", no_wrap=numeric or key in ("name", "slot"))
    for row in plain:
        table.add_row(*(escape(_text(row.get(key))) for key in keys))
    make_console().print(table)


#: The most entries of a list that a table shows; `--json` has all entries.
_LISTED_MAX = 32


def show_facts(name: str, facts: dict[str, Any]) -> None:
    """Print a nested dictionary as a list of dotted names and values, and each list of rows in it as a table."""
    from nandlab.console import escape

    console = make_console()
    show_title(console, name)
    lines: list[tuple[str, str]] = []
    nested: list[tuple[str, list[dict[str, Any]]]] = []

    def add(prefix: str, entries: dict[str, Any]) -> None:
        for key, value in entries.items():
            if isinstance(value, dict):
                add(f"{prefix}{key}.", value)
            elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
                nested.append((prefix + key, value))
            elif isinstance(value, list):
                few = [_text(entry) for entry in value[:_LISTED_MAX]] + ["..."] * (len(value) > _LISTED_MAX)
                lines.append((prefix + key, ", ".join(few) or "-"))
            else:
                lines.append((prefix + key, _text(value)))

    add("", facts)
    width = max((len(key) for key, _ in lines), default=0)
    for key, value in lines:
        console.print(f"[dim]{escape(key.ljust(width))}[/]  {escape(value)}", soft_wrap=True)
    for title, rows in nested:
        console.print(f"[dim]{escape(title)}[/]")
        show_rows(rows, False)


def _text(value: object) -> str:
    if isinstance(value, (int, float)) or value is None:
        return units.number(value)
    return str(value)


def load_policies(options: argparse.Namespace) -> None:
    """Import the files of --policy."""
    if options.policies:
        from nandlab.python_policies import load_files

        load_files(options.policies)


def check_workers(workers: int | None, dask: str | None) -> None:
    """Refuse --workers below 1, and beside --dask."""
    if workers is not None and workers < 1:
        raise OutputError(f"--workers: expected at least 1, found {workers}")
    if workers is not None and dask is not None:
        raise OutputError(
            "--workers and --dask are both given: --workers counts local processes, a Dask cluster has its own\n"
            "  remedy: leave out one"
        )


def fail(text: str) -> None:
    """Print an error on stderr."""
    print(shortened(text), file=sys.stderr, flush=True)
