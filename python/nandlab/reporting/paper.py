"""Figures for a paper: SVG and PDF files with the same bytes for the same data."""

from __future__ import annotations

import contextlib
import io
import math
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nandlab.study.draw import Curve, Drawn, Panel, cdf_title

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

_COLOURS = ["#2f6fde", "#e58a1f", "#1b98a8", "#c93d78", "#8457c9", "#3a9d5d", "#94714a", "#d1443c", "#7c8a99"]
_SHAPES = "osD^vP*X<"
#: Characters of all labels below the bars of a panel that fit beside each other.
_LABELS_MAX = 36


def paper(drawn: Drawn) -> dict[str, bytes]:
    """The figure as SVG and PDF, by suffix."""
    with style(drawn.figure.id):
        draw = _effects if drawn.figure.kind == "effects" else _sheet
        return {kind: saved(draw(drawn), kind) for kind in ("svg", "pdf")}


@contextlib.contextmanager
def style(name: str) -> Iterator[None]:
    """The style of all figures; `name` makes the ids inside an SVG unique."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    import matplotlib

    fixed: dict[RcKeyType, object] = {
        "svg.hashsalt": name,
        "svg.fonttype": "path",
        "pdf.fonttype": 42,
        "font.family": "DejaVu Sans",
        "font.size": 8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#e2e5ea",
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "path.simplify": False,
        "figure.constrained_layout.use": True,
    }
    matplotlib.rcdefaults()
    with matplotlib.rc_context(fixed):
        yield


#: No dates and no library versions, so that the same data gives the same bytes.
_METADATA: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": "nandlab"},
    "pdf": {"CreationDate": None, "Creator": "nandlab", "Producer": None},
    "png": {"Software": "nandlab"},
}


def saved(sheet: Figure, kind: str) -> bytes:
    """A figure as the bytes of an SVG, PDF or PNG file."""
    out = io.BytesIO()
    sheet.savefig(out, format=kind, metadata=_METADATA[kind], dpi=200)
    return out.getvalue()


def sheet_of(width: float, height: float) -> Figure:
    """An empty figure; width and height are in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    sheet = Figure(figsize=(width, height))
    FigureCanvasAgg(sheet)
    return sheet


def _sheet(drawn: Drawn) -> Figure:
    panels = drawn.panels or [Panel("")]
    across = min(len(panels), 3)
    down = -(-len(panels) // across)
    upright_in = 0.065 * _upright(drawn.places or [])
    sheet = sheet_of(3.5 if across == 1 else 2.4 * across, (2.5 + upright_in) * down)
    grid = sheet.subplots(down, across, squeeze=False, sharey=True)
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    styles = {name: index for index, name in enumerate(names)}
    for index, axes in enumerate(grid.flat):
        if index >= len(panels):
            axes.set_visible(False)
            continue
        panel = panels[index]
        _bars(axes, drawn, panel, styles) if drawn.places is not None else _lines(axes, drawn, panel, styles)
        if panel.title:
            axes.set_title(panel.title, fontsize=8)
        axes.set_xlabel(drawn.figure.x_title)
        if index % across == 0:
            axes.set_ylabel(cdf_title(drawn.figure) if drawn.figure.kind == "cdf" else drawn.figure.y_title)
        if drawn.figure.log_x and drawn.places is None:
            axes.set_xscale("log")
        xs = sorted({x for curve in panel.curves for x in curve.x}) if drawn.places is None else []
        if 0 < len(xs) <= 8:
            axes.set_xticks(xs, _labels(xs, drawn.figure.log_x))
            axes.set_xticks([], minor=True)
        if drawn.figure.log_y:
            axes.set_yscale("log")
    handles: dict[str, Artist] = {}
    for axes in grid.flat:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    if handles:
        sheet.legend(
            list(handles.values()), list(handles), loc="outside upper center", ncols=min(len(handles), 3), fontsize=7
        )
    return sheet


def _effects(drawn: Drawn) -> Figure:
    """Main effects with whiskers over the replicates, above the triangle of the interactions."""
    from nandlab.reporting.study_page import bars_of, effect_text

    panels = drawn.panels or [Panel("")]
    scale = drawn.figure.scale
    found = [bars_of(panel) for panel in panels]
    names = list(dict.fromkeys(key[0] for bars in found for key in bars if len(key) == 1))
    strongest = max((abs(bar.value) for bars in found for key, bar in bars.items() if len(key) == 2), default=0.0)
    sheet = sheet_of(max(2.4 * len(panels), 3.5), 4.0)
    upper, lower = sheet.subplots(2, len(panels), squeeze=False, sharey="row", height_ratios=[1.3, 1])
    for panel, bars, above, below in zip(panels, found, upper, lower, strict=True):
        above.set_title(panel.title, fontsize=8)
        factor = 100.0 if scale == "ratio" else 1.0
        for index, name in enumerate(names):
            bar = bars.get((name,))
            if bar is None:
                continue
            colour = _COLOURS[1] if bar.value > 0 else _COLOURS[0]
            above.bar([index], [bar.value * factor], 0.6, color=colour, alpha=1.0 if bar.is_clear else 0.35)
            above.plot([index, index], [bar.low * factor, bar.high * factor], "_-", color="#333333", linewidth=0.8)
            end, shift = (bar.low, -9) if bar.value < 0 else (bar.high, 3)
            above.annotate(
                effect_text(bar.value, scale),
                (index, end * factor),
                (0, shift),
                textcoords="offset points",
                ha="center",
                fontsize=6,
            )
        above.margins(y=0.12)
        above.axhline(0.0, color="#5d6773", linewidth=0.8)
        above.set_xticks(range(len(names)), names)
        above.grid(axis="x", visible=False)
        below.grid(visible=False)
        below.spines[:].set_visible(False)
        below.set_xlim(-0.5, max(len(names) - 1.5, 0.5))
        below.set_ylim(max(len(names) - 1.5, 0.5), -0.5)
        below.set_xticks(range(len(names) - 1), names[:-1])
        below.set_yticks(range(len(names) - 1), names[1:])
        below.tick_params(length=0)
        for key, bar in bars.items():
            if len(key) < 2:
                continue
            x, y = names.index(key[0]), names.index(key[1]) - 1
            part = min(abs(bar.value) / strongest, 1.0) if strongest > 0 else 0.0
            colour = _COLOURS[1] if bar.value > 0 else _COLOURS[0]
            if bar.is_clear:
                below.fill(
                    [x - 0.48, x + 0.48, x + 0.48, x - 0.48],
                    [y - 0.46, y - 0.46, y + 0.46, y + 0.46],
                    color=colour,
                    alpha=0.12 + 0.6 * part,
                    linewidth=0,
                )
            text = "black" if bar.is_clear else "#8a93a0"
            below.text(x, y, effect_text(bar.value, scale), ha="center", va="center", fontsize=6.5, color=text)
    unit = ", %" if scale == "ratio" else ""
    upper[0].set_ylabel(drawn.figure.y_title + unit)
    lower[0].set_ylabel("interactions")
    return sheet


def _lines(axes: Axes, drawn: Drawn, panel: Panel, styles: dict[str, int]) -> None:
    for curve in panel.curves:
        style = styles[curve.name]
        colour = _COLOURS[style % len(_COLOURS)]
        if curve.is_reference:
            axes.plot(curve.x, curve.y, "--", color=colour, linewidth=1, label=curve.name)
        elif drawn.figure.kind == "cdf":
            tail = [1.0 - y if y < 1.0 else float("nan") for y in curve.y] if drawn.figure.log_y else curve.y
            axes.plot(curve.x, tail, color=colour, linewidth=1.2, label=curve.name)
        else:
            shape = _SHAPES[style % len(_SHAPES)]
            axes.plot(curve.x, curve.y, shape + "-", color=colour, markersize=3.2, linewidth=1.2, label=curve.name)
            _whiskers(axes, curve, [float(x) for x in curve.x], colour)
    for mark in panel.marks:
        colour = _COLOURS[styles.get(mark.series, 0) % len(_COLOURS)]
        axes.plot([mark.x], [mark.y], "D", markerfacecolor="none", color=colour, markersize=7, label="reported")


def _whiskers(axes: Axes, curve: Curve, xs: Sequence[float], colour: str) -> None:
    """The intervals of a curve as vertical lines at `xs`."""
    for x, interval in zip(xs, curve.intervals, strict=False):
        if interval is not None:
            axes.plot([x, x], list(interval), "_-", color=colour, markersize=3, linewidth=0.8)


def _labels(xs: Sequence[float], is_log: bool) -> list[str]:
    """The labels of ticks; empty for a tick so close to the labelled one before that the labels would overlap."""
    places = [math.log(x) if is_log else x for x in xs]
    least = 0.12 * (places[-1] - places[0])
    labels, last = [], -math.inf
    for x, place in zip(xs, places, strict=True):
        is_far = place - last >= least
        labels.append(f"{x:g}" if is_far else "")
        last = place if is_far else last
    return labels


def _upright(places: Sequence[str]) -> int:
    """The characters of the longest label below the bars, if level labels would overlap; else 0."""
    return max(map(len, places)) if sum(len(place) + 1 for place in places) > _LABELS_MAX else 0


def _bars(axes: Axes, drawn: Drawn, panel: Panel, styles: dict[str, int]) -> None:
    places = drawn.places or []
    width = 0.8 / max(len(panel.curves), 1)
    at = {place: index for index, place in enumerate(places)}
    middles: dict[str, float] = {}
    for number, curve in enumerate(panel.curves):
        shift = (number + 0.5) * width - 0.4
        middles[curve.name] = shift
        colour = _COLOURS[styles[curve.name] % len(_COLOURS)]
        axes.bar([at[x] + shift for x in curve.x], curve.y, width * 0.94, color=colour, label=curve.name)
        _whiskers(axes, curve, [at[x] + shift for x in curve.x], "#333333")
    for mark in panel.marks:
        x = at[mark.x] + middles.get(mark.series, 0.0)
        axes.plot([x], [mark.y], "D", markerfacecolor="white", color="black", markersize=4, label="reported")
    axes.set_xticks(range(len(places)), places, rotation=90 if _upright(places) else 0)
    axes.grid(axis="x", visible=False)
