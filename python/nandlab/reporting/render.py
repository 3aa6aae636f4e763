"""Pages as HTML, by the templates of this folder; every text is escaped."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from nandlab.presentation import Part as ShareCell
from nandlab.presentation import Presentation
from nandlab.presentation import Table as ShownTable
from nandlab.reporting.chart import Cells, Figure, Lines, csv_of
from nandlab.reporting.colours import DARK, LIGHT, PAGE, of_row
from nandlab.reporting.content import Page, slug
from nandlab.reporting.vega import IN_PAGE, NUMBER, config, views
from nandlab.units import share

_HERE = Path(__file__).parent


def html_of(page: Page) -> str:
    """The whole HTML file of a page. It opens without a network."""
    script = ""
    if page.has_charts:
        from nandlab.reporting.files import script as vega_script

        script = vega_script()
    return (
        _templates()
        .get_template(f"{page.kind}.html")
        .render(
            page=page,
            vega=Markup(script),
            config=as_json({"config": {**config(IN_PAGE), "aria": False}, "number": f"({NUMBER})"}),
            style=Markup(_style()),
            program=Markup((_HERE / "chart.js").read_text(encoding="utf-8")),
        )
    )


def overview(shown: Presentation) -> str:
    """The short form of a result, for a notebook."""
    lines = [
        (of.label, of.text) for section in shown.sections if isinstance(section.short, tuple) for of in section.short
    ]
    tables = [section.short for section in shown.sections if isinstance(section.short, ShownTable)]
    return _templates().get_template("overview.html").render(shown=shown, lines=lines, tables=tables)


def as_json(value: object) -> Markup:
    """JSON for a script element: without `<`, no text in it can end the element or begin a comment."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return Markup(text.replace("<", "\\u003c"))


def csv_address(cells: Cells) -> Markup:
    """A table of values as the address of a CSV file."""
    return Markup(
        "data:text/csv;charset=utf-8," + quote(csv_of(cells), safe=" ,;:!()[]{}+*=@/?$-_.~").replace(" ", "%20")
    )


def payloads(figure: Figure) -> list[dict[str, Any]]:
    """The data of each panel for chart.js: the title of the panel, and the JSON of its views."""
    names = [series.name for series in figure.series]
    colours = {series.name: PAGE[series.colour] for series in figure.series}
    found = []
    for panel in figure.panels:
        made = views(panel.chart, IN_PAGE, figure.series)
        x = getattr(panel.chart, "x", None)
        y = getattr(panel.chart, "y", None)
        tip = {
            "x": x.title if x is not None else "",
            "unit": y.unit if y is not None else "",
            "series": [[name, colours[name]] for name in names],
        }
        parts = []
        for index, view in enumerate(made):
            payload: Mapping[str, Any] = {"spec": view.spec, "tables": view.tables, **(tip if names else {})}
            height = int(view.spec["height"]) + 52
            parts.append({"json": as_json(payload), "height": height, "label": index == 0})
        found.append({"title": panel.title, "label": panel.chart.describe(), "views": parts})
    return found


def key_of(figure: Figure) -> list[dict[str, str]]:
    """The entries of the legend; none for a single series."""
    series = figure.series
    if len(series) < 2:
        return []
    filled = not all(isinstance(panel.chart, Lines) and not panel.chart.stacked for panel in figure.panels)
    return [
        {
            "name": one.name,
            "colour": PAGE[one.colour],
            "form": "block" if filled and one.style == "plain" else one.style,
        }
        for one in series
    ]


def can_zoom(figure: Figure) -> bool:
    """Whether a panel has an axis that can be zoomed."""
    return any(isinstance(panel.chart, Lines) for panel in figure.panels)


def _kind_of_cell(cell: object) -> str:
    return "share" if isinstance(cell, ShareCell) else type(cell).__name__.lower()


def _style() -> str:
    """The style sheet, with the colours of both themes."""

    def block(palette: Mapping[str, str]) -> str:
        return " ".join(f"--{name}: {value};" for name, value in palette.items())

    text = (_HERE / "style.css").read_text(encoding="utf-8")
    return text.replace("/* light colours */", block(LIGHT)).replace("/* dark colours */", block(DARK))


@functools.cache
def _templates() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        "payloads": payloads,
        "key_of": key_of,
        "can_zoom": can_zoom,
        "csv_address": csv_address,
        "colour_of": lambda name: PAGE[of_row(name)],
    }
    made.filters |= {"slug": slug, "share": share, "kind": _kind_of_cell}
    return made
