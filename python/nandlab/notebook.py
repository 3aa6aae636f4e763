"""Results in a notebook: short texts, HTML, pictures, and charts of Altair.

A picture is an SVG, which every notebook shows and which needs nothing from a network. Beside it a chart has its
specification for the Vega-Lite 5 that JupyterLab contains, which makes the chart active there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from nandlab.errors import OutputError
from nandlab.reporting.extra import missing, need_figures

if TYPE_CHECKING:
    import altair

    from nandlab.comparison import Comparison
    from nandlab.presentation import Presentation
    from nandlab.reporting.chart import Figure
    from nandlab.results import RunResult

#: The most lines of a text, and the most bytes of a cell.
LINES, CELL_BYTES = 10, 200_000
#: The MIME type of Vega-Lite that JupyterLab shows, and the schema of its specifications.
VEGALITE = "application/vnd.vegalite.v5+json"
_SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"


def text_of(shown: Presentation, kind: str) -> str:
    """A result in at most ten lines: its name, what is said of it, its headline and its warnings."""
    lines = [f"<{kind} {shown.name}>" if not shown.lead else f"<{kind} {shown.name}: {shown.lead}>"]
    figures = [f"{figure.label} {figure.text}" for figure in shown.headline]
    lines += [", ".join(figures[at : at + 4]) for at in range(0, len(figures), 4)][: LINES - 3]
    warned = sum(note.severity != "info" for note in (*shown.failures, *shown.notes))
    if warned:
        lines.append(f"{warned} {'warning' if warned == 1 else 'warnings'}")
    return short(lines)


def short(lines: Iterable[str]) -> str:
    """Lines as a text, long ones cut."""
    return "\n".join(line if len(line) <= 200 else line[:197] + "..." for line in lines)


def bundle(shown: Presentation, kind: str, figures: Iterable[Figure] = ()) -> dict[str, Any]:
    """The forms of a result in a notebook by MIME type; only a text without the extra `figures`."""
    forms: dict[str, Any] = {"text/plain": text_of(shown, kind)}
    if missing():
        return forms
    from nandlab.reporting.files import picture
    from nandlab.reporting.render import overview

    pictures = [_small(picture(figure, ["svg"])["svg"].decode()) for figure in figures]
    html = overview(shown)
    for svg in pictures:
        # A cell that is too large is slow to open and to compare.
        if len(html) + 2 * len(svg) < CELL_BYTES:
            html += svg
            forms.setdefault("image/svg+xml", svg)
    return {**forms, "text/html": html}


def _small(svg: str) -> str:
    """A picture without what nobody sees: marks for a pointer, and further digits of its coordinates."""
    svg = re.sub(r'<(path|rect|line)\b[^>]*\sopacity="0"[^>]*(/>|></\1>)', "", svg)

    def rounded(found: re.Match[str]) -> str:
        short = re.sub(r"-?\d+\.\d{2,}", lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), found[2])
        return f'{found[1]}="{short}"'

    return re.sub(r'\b(d|transform)="([^"]*)"', rounded, svg)


def chart_of(figures: Iterable[Figure], what: str) -> altair.TopLevelMixin:
    """Figures as one Altair chart, below one another; raises `OutputError` without a figure.

    The chart saves itself as SVG, PDF, PNG or HTML: `chart.save("latency.svg")`. `what` completes "no chart of ...".
    """
    need_figures(f"a chart of {what}")
    from nandlab.reporting.vega import IN_NOTEBOOK, config, spec_of

    specs = []
    for figure in figures:
        spec = dict(spec_of(figure))
        del spec["config"]
        specs.append(spec if len(figure.panels) > 1 else {"title": figure.title, **spec})
    if not specs:
        raise OutputError(f"no chart of {what}: the result has no values for it")
    whole = specs[0] if len(specs) == 1 else {"vconcat": specs, "spacing": 24}
    return shown_everywhere({**whole, "config": config(IN_NOTEBOOK)})


def shown_everywhere(spec: dict[str, Any]) -> altair.TopLevelMixin:
    """A specification as an Altair chart that a notebook shows without a script from elsewhere."""
    import altair

    chart: altair.TopLevelMixin = altair.Chart.from_dict(spec)
    # An assignment would make the class a part of the specification.
    object.__setattr__(chart, "__class__", _with_bundle(type(chart)))
    return chart


def _with_bundle(kind: type) -> type:
    if kind.__name__ not in _KINDS:
        _KINDS[kind.__name__] = type(kind.__name__, (_Bundled, kind), {})
    return _KINDS[kind.__name__]


#: The classes of charts with their forms in a notebook, by the name of Altair's class.
_KINDS: dict[str, type] = {}


class _Bundled:
    """A chart of Altair with the forms in which every notebook shows it."""

    def _repr_mimebundle_(self, *_: object, **__: object) -> dict[str, Any]:
        import vl_convert

        from nandlab.reporting.vega import VERSION

        spec: dict[str, Any] = self.to_dict()  # type: ignore[attr-defined]
        svg = _small(vl_convert.vegalite_to_svg(spec, vl_version=VERSION))
        forms: dict[str, Any] = {"text/plain": repr(self), "image/svg+xml": svg}
        if len(svg) + len(json.dumps(spec)) < CELL_BYTES:
            forms[VEGALITE] = {**spec, "$schema": _SCHEMA}
        return forms

    def __repr__(self) -> str:
        return f"<chart of {type(self).__name__}: save() writes SVG, PDF, PNG or HTML>"


class RunPlots:
    """The charts of a run, as Altair charts; they need the extra `figures`."""

    def __init__(self, result: RunResult) -> None:
        self._result = result

    def latency(self) -> altair.TopLevelMixin:
        """The distribution of latency: all requests, and the slowest ones."""
        need_figures("a chart")
        from nandlab.reporting.run_charts import latency

        return chart_of(_figures(latency(self._result)), "latency")

    def waf(self) -> altair.TopLevelMixin:
        """Programs by cause, and write amplification over time."""
        need_figures("a chart")
        from nandlab.reporting.run_charts import waf
        from nandlab.reporting.series import series_of

        return chart_of(_figures([waf(series_of(self._result), self._result.summary)]), "write amplification")

    def timeline(self) -> altair.TopLevelMixin:
        """Requests, data and latency over time."""
        need_figures("a chart")
        from nandlab.reporting.run_charts import over_time
        from nandlab.reporting.series import series_of

        return chart_of(_figures([over_time(series_of(self._result))]), "the time")


def comparison_chart(comparison: Comparison) -> altair.TopLevelMixin:
    """The ratios of a comparison as an Altair chart."""
    need_figures("a chart")
    from nandlab.comparison.page import ratios_of

    found = ratios_of(comparison)
    return chart_of([] if found is None else [found.figure], "the differences")


def run_figures(result: RunResult) -> Iterator[Figure]:
    """The figure that stands for a run: its latency."""
    from nandlab.reporting.run_charts import latency

    yield from list(_figures(latency(result)))[:1]


def _figures(blocks: Iterable[Any]) -> Iterator[Figure]:
    """The figures in parts of a page."""
    from nandlab.reporting.content import Columns, Drawing

    for block in blocks:
        if isinstance(block, Drawing):
            yield block.figure
        elif isinstance(block, Columns):
            yield from _figures(block.parts)
