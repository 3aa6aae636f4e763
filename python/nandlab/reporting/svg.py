"""Plots as SVG text, in the colours of the style sheet; hover.js reads the data beside each plot."""

from __future__ import annotations

import base64
import html
import json
import math
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 12, 40


@dataclass(frozen=True)
class Line:
    """One series of a plot; `colour` is a class of the style sheet."""

    name: str
    y: Floats
    colour: str
    #: Drawn thin and pale: an envelope, such as a maximum, of a main line.
    faint: bool = False
    #: Drawn dashed: a computed line.
    dashed: bool = False
    #: Whether the line connects the neighbours of a missing value; otherwise it breaks there.
    bridged: bool = False
    #: Points to draw as open diamonds: x and y.
    marks: tuple[tuple[float, float], ...] = ()
    #: Intervals to draw as whiskers: x, low and high.
    whiskers: tuple[tuple[float, float, float], ...] = ()


class Scale:
    """A linear or logarithmic map from values to pixels, with its ticks."""

    def __init__(
        self, low: float, high: float, begin: float, end: float, *, log: bool = False, nice: bool = False
    ) -> None:
        self.log = log
        self.begin, self.end = begin, end
        if log:
            low = max(low, 1e-12)
            high = max(high, low * 1.0001)
            if nice:
                low, high = _log_bounds(low, high)
            self.ticks, self.minor = _log_ticks(low, high)
        else:
            if not high > low:
                high = low + (abs(low) or 1.0)
            step = _nice_step((high - low) / 5)
            if nice:
                low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
            first = math.ceil(low / step - 1e-9)
            last = math.floor(high / step + 1e-9)
            self.ticks, self.minor = [i * step for i in range(first, last + 1)], []
        self.low, self.high = low, high

    @overload
    def __call__(self, value: float) -> float: ...
    @overload
    def __call__(self, value: Floats) -> Floats: ...
    def __call__(self, value: float | Floats) -> float | Floats:
        if self.log:
            part = (np.log10(np.maximum(value, 1e-300)) - math.log10(self.low)) / math.log10(self.high / self.low)
        else:
            part = (np.asarray(value, dtype=float) - self.low) / (self.high - self.low)
        place: Floats = self.begin + np.clip(part, 0, 1) * (self.end - self.begin)
        return place


def whole_ticks(last: int) -> list[float]:
    """About five ticks at whole numbers from 1 to `last`."""
    step = max(1, math.ceil(_nice_step(last / 5)))
    return [1.0, *(float(tick) for tick in range(step, last + 1, step) if tick > 1)]


def _nice_step(rough: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)


def _log_bounds(low: float, high: float) -> tuple[float, float]:
    """Powers of ten around a range; around a short range, 1, 2 or 5 times a power of ten."""
    wide = 10 ** math.floor(math.log10(low) + 1e-9), 10 ** math.ceil(math.log10(high) - 1e-9)
    if high / low > 20:
        return wide
    steps = [
        m * 10.0**k for k in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2) for m in (1, 2, 5)
    ]
    return max(s for s in steps if s <= low * 1.000001), min(s for s in steps if s >= high * 0.999999)


def _log_ticks(low: float, high: float) -> tuple[list[float], list[float]]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = [10.0**k for k in range(first, last + 1) if low * 0.999 <= 10.0**k <= high * 1.001]
    minor = [m * 10.0**k for k in range(first, last + 1) for m in range(2, 10) if low <= m * 10.0**k <= high]
    if len(decades) < 2:
        return sorted({*decades, *(v for v in minor if f"{v:e}"[0] in "25")}), minor
    every = -(-len(decades) // 8)
    return decades[::every], minor if every == 1 else []


_SUPERSCRIPT = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def tick_text(value: float) -> str:
    """An axis label: short, with k, M and G for round large numbers and a power of ten for small ones."""
    for factor, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor * 0.9999:
            short = f"{value / factor:.3g}"
            if abs(float(short) * factor - value) > 1e-6 * abs(value):
                break
            if abs(value) >= 9999.9:
                return short + suffix
            break
    power = math.log10(value) if value > 0 else 0.0
    if power < -2.5 and abs(power - round(power)) < 1e-9:
        return "10" + str(round(power)).translate(_SUPERSCRIPT)
    if 0 < abs(value) < 1e-4:
        digits, exponent = f"{value:.3e}".split("e")
        return f"{float(digits):g}\u00b710{str(int(exponent)).translate(_SUPERSCRIPT)}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _label(x: float, y: float, text: str, kind: str = "tick", anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _upright(y: float, text: str) -> str:
    """The title of a vertical axis."""
    place = f'transform="translate(13 {y:.1f}) rotate(-90)" text-anchor="middle"'
    return f'<text class="title" {place}>{html.escape(text)}</text>'


def _rect(kind: str, left: float, top: float, right: float, bottom: float) -> str:
    size = f'width="{max(right - left, 0.5):.1f}" height="{bottom - top:.1f}"'
    return f'<rect class="{kind}" x="{left:.1f}" y="{top:.1f}" {size}/>'


def _image(png: str, left: float, top: float, right: float, bottom: float) -> str:
    size = f'width="{right - left:.1f}" height="{bottom - top:.1f}" preserveAspectRatio="none"'
    return f'<image href="{png}" x="{left:.1f}" y="{top:.1f}" {size} style="image-rendering:pixelated"/>'


def _axes(x: Scale, y: Scale, x_title: str, y_title: str, width: int, height: int) -> list[str]:
    parts = []
    for tick in y.minor:
        parts.append(f'<path class="grid minor" d="M{x.begin:.1f} {y(tick):.1f}H{x.end:.1f}"/>')
    for tick in x.minor:
        parts.append(f'<path class="grid minor" d="M{x(tick):.1f} {y.begin:.1f}V{y.end:.1f}"/>')
    for tick in y.ticks:
        at = float(y(tick))
        parts.append(f'<path class="grid" d="M{x.begin:.1f} {at:.1f}H{x.end:.1f}"/>')
        parts.append(_label(x.begin - 8, at + 4, tick_text(tick), anchor="end"))
    for tick in x.ticks:
        at = float(x(tick))
        if x.log:
            parts.append(f'<path class="grid" d="M{at:.1f} {y.begin:.1f}V{y.end:.1f}"/>')
        parts.append(f'<path class="axis" d="M{at:.1f} {y.begin:.1f}v4"/>')
        parts.append(_label(at, y.begin + 17, tick_text(tick)))
    parts.append(f'<path class="axis" d="M{x.begin:.1f} {y.begin:.1f}H{x.end:.1f}"/>')
    parts.append(_label((x.begin + x.end) / 2, height - 5, x_title, "title"))
    parts.append(_upright((y.begin + y.end) / 2, y_title))
    return parts


def _path(xs: Floats, ys: Floats) -> str:
    """A line that breaks where a value is missing."""
    out = []
    pen_down = False
    for px, py in zip(xs.tolist(), ys.tolist(), strict=True):
        if not math.isfinite(py):
            pen_down = False
            continue
        out.append(f"{'L' if pen_down else 'M'}{px:.1f} {py:.1f}" + ("" if pen_down else "h0"))
        pen_down = True
    return "".join(out)


def _scales(
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    width: int,
    height: int,
    log_x: bool,
    log_y: bool,
) -> tuple[Scale, Scale]:
    x = Scale(*x_range, _LEFT, width - _RIGHT, log=log_x)
    y = Scale(*y_range, height - _BOTTOM, _TOP, log=log_y, nice=True)
    return x, y


def legend(entries: Sequence[tuple[str, str]]) -> str:
    """The legend of a plot: names and colours."""
    keys = "".join(f'<span class="key"><i class="{colour}"></i>{html.escape(name)}</span>' for name, colour in entries)
    return f'<div class="legend">{keys}</div>'


def _hover(kind: str, x: Scale, y: Scale, data: Mapping[str, object]) -> str:
    box = {"kind": kind, "x0": x.begin, "x1": x.end, "y0": y.end, "y1": y.begin, **data}
    text = json.dumps(box, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json">{text}</script>'


def _digits(values: Floats) -> list[float | None]:
    """Values with four digits, for a tooltip."""
    return [float(f"{value:.4g}") if math.isfinite(value) else None for value in values.tolist()]


def lines(
    xs: Floats,
    series: Sequence[Line],
    *,
    x_title: str,
    y_title: str,
    width: int = 556,
    height: int = 260,
    log_x: bool = False,
    log_y: bool = False,
    y_range: tuple[float, float] | None = None,
    x_range: tuple[float, float] | None = None,
    stacked: bool = False,
    unit: str = "",
    x_unit: str = "s",
    band: tuple[float, float] | None = None,
    markers: bool = False,
    show_legend: bool = True,
    x_ticks: Sequence[float] | None = None,
) -> str:
    """A line plot, or stacked areas, over a shared x axis."""
    values = np.cumsum([np.nan_to_num(s.y) for s in series], axis=0) if stacked else np.array([s.y for s in series])
    finite = values[np.isfinite(values) & ((values > 0) | (not log_y))]
    marked = [b for s in series for _, b in s.marks if b > 0 or not log_y]
    finite = np.concatenate([finite, np.array(marked, dtype=float)])
    if y_range is None:
        high = float(finite.max()) if finite.size else 1.0
        low = float(finite.min()) if finite.size and log_y else 0.0
        if band is not None:
            low, high = min(float(finite.min()), band[0]), max(high, band[1])
            low, high = low - 0.15 * (high - low), high + 0.15 * (high - low)
        y_range = (low, high)
    x, y = _scales(x_range or (min(0.0, float(xs[0])), float(xs[-1])), y_range, width, height, log_x, log_y)
    if x_ticks is not None:
        x.ticks, x.minor = list(x_ticks), []
    px = x(xs)
    parts = [f'<svg viewBox="0 0 {width} {height}" role="img">']
    if band is not None:
        parts.append(_rect("band", x.begin, float(y(band[1])), x.end, float(y(band[0]))))
    parts += _axes(x, y, x_title, y_title, width, height)
    if stacked:
        below = np.full(len(xs), float(y(0)))
        for line, top in zip(series, values, strict=True):
            edge = y(top)
            points = [f"{a:.1f} {b:.1f}" for a, b in zip(px, edge, strict=True)]
            back = [f"{a:.1f} {b:.1f}" for a, b in zip(px[::-1], below[::-1], strict=True)]
            parts.append(f'<path class="area {line.colour}" d="M{"L".join(points + back)}Z"/>')
            below = edge
    else:
        for line in series:
            shown = np.where((line.y > 0) | (not log_y), line.y, np.nan)
            py = np.where(np.isfinite(shown), y(np.nan_to_num(shown, nan=1.0)), np.nan)
            kept = np.isfinite(py) if line.bridged else np.ones(len(py), dtype=bool)
            style = line.colour + (" faint" if line.faint else "") + (" dashed" if line.dashed else "")
            parts.append(f'<path class="line {style}" d="{_path(px[kept], py[kept])}"/>')
            parts += [_diamond(float(x(a)), float(y(b)), line.colour) for a, b in line.marks]
            parts += [_whisker(float(x(a)), y, low, high) for a, low, high in line.whiskers]
            if markers and not line.dashed:
                parts += [
                    f'<circle class="dot {line.colour}" cx="{a:.1f}" cy="{b:.1f}" r="3.5"/>'
                    for a, b in zip(px, py, strict=True)
                    if math.isfinite(b)
                ]
    parts.append("</svg>")
    data = {
        "x": _digits(xs),
        "px": [round(float(v), 1) for v in px],
        "xu": x_unit,
        "u": unit,
        "s": [{"n": s.name, "c": s.colour, "y": _digits(s.y)} for s in series],
    }
    entries = [(s.name, s.colour + (" faint" if s.faint else "") + (" dashed" if s.dashed else "")) for s in series]
    key = legend(entries) if show_legend else ""
    return f'<div class="plot">{key}{"".join(parts)}{_hover("lines", x, y, data)}</div>'


def _diamond(px: float, py: float, colour: str) -> str:
    return f'<path class="mark {colour}" d="M{px:.1f} {py - 6:.1f}l6 6l-6 6l-6-6Z"/>'


def _whisker(px: float, y: Scale, low: float, high: float) -> str:
    """A vertical line from low to high, cut off at the ends of the axis."""
    bottom = y.begin if y.log and low <= 0 else float(y(low))
    ends = sorted((min(max(bottom, y.end), y.begin), min(max(float(y(high)), y.end), y.begin)))
    return f'<path class="whisker" d="M{px - 3:.1f} {ends[0]:.1f}h6m-3 0V{ends[1]:.1f}m-3 0h6"/>'


def grouped_bars(
    places: Sequence[str],
    series: Sequence[Line],
    *,
    y_title: str,
    x_title: str = "",
    width: int = 556,
    height: int = 260,
    log_y: bool = False,
    show_legend: bool = True,
    y_max: float | None = None,
) -> str:
    """Bars side by side at each place of the x axis; a mark's x is the index of its place."""
    values = np.array([s.y for s in series], dtype=float)
    marked = [b for s in series for _, b in s.marks]
    finite = np.concatenate([values[np.isfinite(values)], np.array(marked, dtype=float)])
    positive = finite[finite > 0]
    high = max(float(finite.max()) if finite.size else 1.0, 0.0) if y_max is None else y_max
    low = (float(positive.min()) / 2 if positive.size else 1.0) if log_y else min(float(finite.min(initial=0.0)), 0.0)
    x, y = _scales((0.0, float(len(places))), (low, high), width, height, False, log_y)
    x.ticks = []
    parts = [f'<svg viewBox="0 0 {width} {height}" role="img">', *_axes(x, y, x_title, y_title, width, height)]
    slot = (x.end - x.begin) / max(len(places), 1)
    bar = min(0.8 * slot / max(len(series), 1), 42.0)
    foot = y.begin if log_y else float(y(0.0))
    longest = max(int(slot / 6.4), 3)
    for index, place in enumerate(places):
        middle = x.begin + (index + 0.5) * slot
        short = place if len(place) <= longest else place[: longest - 1] + "\u2026"
        parts.append(_label(middle, y.begin + 17, short))
        left = middle - bar * len(series) / 2
        for number, line in enumerate(series):
            value = float(line.y[index])
            if math.isfinite(value) and (value > 0 or not log_y):
                top, bottom = sorted((float(y(value)), foot))
                begin = left + number * bar
                parts.append(_rect(f"bar {line.colour}", begin + 0.5, top, begin + bar - 0.5, bottom))
            centre = left + (number + 0.5) * bar
            parts += [_whisker(centre, y, low, top) for a, low, top in line.whiskers if a == index]
            parts += [_diamond(centre, float(y(b)), "c-all") for a, b in line.marks if a == index]
    parts.append("</svg>")
    data = {
        "x": list(places),
        "px": [round(x.begin + (index + 0.5) * slot, 1) for index in range(len(places))],
        "xu": "",
        "u": "",
        "s": [{"n": s.name, "c": s.colour, "y": _digits(s.y)} for s in series],
    }
    key = legend([(s.name, s.colour) for s in series]) if show_legend else ""
    return f'<div class="plot">{key}{"".join(parts)}{_hover("lines", x, y, data)}</div>'


def bars(
    edges: Floats,
    counts: Floats,
    *,
    x_title: str,
    y_title: str,
    width: int = 556,
    height: int = 260,
    colour: str = "c-host",
) -> str:
    """A histogram."""
    x, y = _scales((float(edges[0]), float(edges[-1])), (0.0, float(counts.max())), width, height, False, False)
    parts = [f'<svg viewBox="0 0 {width} {height}" role="img">', *_axes(x, y, x_title, y_title, width, height)]
    for low, high, value in zip(edges[:-1], edges[1:], counts, strict=True):
        left, right, top = float(x(low)), float(x(high)), float(y(value))
        parts.append(_rect(f"bar {colour}", left + 0.5, top, right - 0.5, y.begin))
    parts.append("</svg>")
    middle = (edges[:-1] + edges[1:]) / 2
    data = {
        "x": _digits(middle),
        "px": [round(float(v), 1) for v in x(middle)],
        "xu": "",
        "u": "",
        "s": [{"n": y_title, "c": colour, "y": _digits(counts.astype(float))}],
    }
    return f'<div class="plot">{"".join(parts)}{_hover("lines", x, y, data)}</div>'


# From dark to light in even steps of lightness, readable in print and with colour blindness.
_RAMP = [
    (0x2B, 0x1B, 0x52),
    (0x2F, 0x4B, 0x8F),
    (0x1F, 0x80, 0x94),
    (0x3F, 0xB0, 0x7C),
    (0xA9, 0xD3, 0x54),
    (0xFB, 0xE7, 0x6B),
]
_MISSING = (0x80, 0x80, 0x80)


def _colours(parts: Floats) -> NDArray[np.uint8]:
    ramp = np.array(_RAMP, dtype=float)
    at = np.clip(np.nan_to_num(parts), 0, 1) * (len(ramp) - 1)
    low = np.minimum(at.astype(int), len(ramp) - 2)
    mixed = ramp[low] + (ramp[low + 1] - ramp[low]) * (at - low)[..., None]
    mixed[~np.isfinite(parts)] = _MISSING
    pixels: NDArray[np.uint8] = mixed.round().astype(np.uint8)
    return pixels


def _png(pixels: NDArray[np.uint8]) -> str:
    """A `data:` address of a PNG with one pixel per cell."""
    rows, columns, _ = pixels.shape
    raw = b"".join(b"\x00" + pixels[row].tobytes() for row in range(rows))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()


def heatmap(
    values: Floats,
    *,
    x_range: tuple[float, float],
    x_title: str,
    y_title: str,
    x_name: str,
    y_name: str,
    low: float,
    high: float,
    unit: str,
    scale: float = 1.0,
    rows: Sequence[str],
    breaks: Sequence[int] = (),
    width: int = 1140,
    height: int = 280,
) -> str:
    """A heat map; `rows` are the names of the rows, `breaks` the rows with a line above them."""
    count = len(rows)
    right = 86
    x = Scale(*x_range, _LEFT, width - right)
    top, bottom = _TOP, height - _BOTTOM
    row_height = (bottom - top) / count
    span = max(high - low, 1e-12)
    parts = [f'<svg viewBox="0 0 {width} {height}" role="img">']
    parts.append(_image(_png(_colours((values - low) / span)), x.begin, top, x.end, bottom))
    parts += [f'<path class="cut" d="M{x.begin} {top + row * row_height:.1f}H{x.end:.1f}"/>' for row in breaks if row]
    every = -(-count // max(int((bottom - top) // 16), 1))
    for row in range(0, count, every):
        at = top + (row + 0.5) * row_height
        parts.append(_label(x.begin - 8, at + 4, rows[row], anchor="end"))
    for tick in x.ticks:
        at = float(x(tick))
        parts.append(f'<path class="axis" d="M{at:.1f} {bottom}v4"/>')
        parts.append(_label(at, bottom + 17, tick_text(tick)))
    parts.append(_label((x.begin + x.end) / 2, height - 5, x_title, "title"))
    parts.append(_upright((top + bottom) / 2, y_title))
    strip = _png(_colours(np.linspace(1, 0, 64)[:, None]))
    parts.append(_image(strip, x.end + 16, top, x.end + 28, bottom))
    for part, value in ((0.0, high), (0.5, (low + high) / 2), (1.0, low)):
        at = top + part * (bottom - top) + (9 if part == 0 else 0 if part == 1 else 4)
        parts.append(_label(x.end + 34, at, tick_text(float(f"{value * scale:.4g}")) + unit, anchor="start"))
    parts.append("</svg>")
    y = Scale(0, 1, bottom, top)
    data = {
        "v": [_digits(row * scale) for row in values],
        "r": list(rows),
        "xa": x_range[0],
        "xb": x_range[1],
        "xn": x_name,
        "yn": y_name,
        "u": unit,
    }
    return f'<div class="plot">{"".join(parts)}{_hover("heat", x, y, data)}</div>'


@dataclass(frozen=True)
class Bar:
    """An effect: its mean, and its smallest and largest replicate."""

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether all replicates have the same sign."""
        return self.low > 0 or self.high < 0

    @property
    def colour(self) -> str:
        return "c-gc" if self.value > 0 else "c-read"


def effects(
    factors: Sequence[tuple[str, str]],
    found: Mapping[tuple[str, ...], Bar],
    *,
    y_title: str,
    y_range: tuple[float, float],
    strongest: float,
    text: Callable[[float], str],
    width: int = 364,
) -> str:
    """Main effects as bars with whiskers over the replicates, above a triangle of the interactions.

    `factors` are names and titles; `strongest` is the absolute interaction with the most saturated colour. An effect
    whose replicates have different signs is pale.
    """
    height, cell = 230, 34.0
    count = len(factors)
    y = Scale(*y_range, height - 24, _TOP, nice=True)
    x = Scale(0.0, float(count), _LEFT + 14, width - _RIGHT)
    x.ticks = []
    whole = height + 16 + (cell * (count - 1) + 30 if count > 1 else 0)
    parts = [f'<svg viewBox="0 0 {width} {whole:.0f}" role="img">']
    for tick in y.ticks:
        at = float(y(tick))
        parts.append(f'<path class="grid" d="M{x.begin} {at:.1f}H{x.end}"/>')
        parts.append(_label(x.begin - 8, at + 4, text(tick).replace(".0 %", " %"), anchor="end"))
    foot = float(y(0.0))
    parts.append(f'<path class="axis" d="M{x.begin} {foot:.1f}H{x.end}"/>')
    parts.append(_upright((_TOP + height - 24) / 2, y_title))
    slot = (x.end - x.begin) / count
    for index, (name, title) in enumerate(factors):
        middle = x.begin + (index + 0.5) * slot
        shown = title if len(title) <= slot / 6.4 else name
        parts.append(_label(middle, height - 6, shown, "title"))
        bar = found.get((name,))
        if bar is None:
            continue
        top, bottom = sorted((float(y(bar.value)), foot))
        pale = "" if bar.is_clear else ' opacity="0.35"'
        parts.append(f"<g{pale}>{_rect(f'bar {bar.colour}', middle - 17, top, middle + 17, bottom)}</g>")
        low, high = float(y(bar.low)), float(y(bar.high))
        parts.append(f'<path class="axis" d="M{middle:.1f} {high:.1f}V{low:.1f}"/>')
        parts += [f'<path class="axis" d="M{middle - 4:.1f} {end:.1f}h8"/>' for end in (high, low)]
        # The label stands beyond the whisker, on the side of the bar.
        parts.append(_label(middle, low + 14 if bar.value < 0 else high - 5, text(bar.value)))
    wide = min((x.end - x.begin) / max(count - 1, 1), 84.0)
    begin = height + 16.0
    for row, (second, _) in enumerate(factors[1:]):
        parts.append(_label(x.begin - 8, begin + (row + 0.5) * cell + 4, second, "title", anchor="end"))
        for column, (first, _) in enumerate(factors[: row + 1]):
            bar = found.get((first, second))
            if bar is None:
                continue
            left, top = x.begin + column * wide, begin + row * cell
            part = min(abs(bar.value) / strongest, 1.0) if strongest > 0 else 0.0
            shade = f"{0.12 + 0.6 * part:.2f}" if bar.is_clear else "0"
            rect = _rect(f"bar {bar.colour}", left + 1, top + 1, left + wide - 1, top + cell - 1)
            parts.append(f'<g fill-opacity="{shade}">{rect}</g>')
            kind = "strong" if bar.is_clear else "tick"
            parts.append(_label(left + wide / 2, top + cell / 2 + 4, text(bar.value), kind))
    for column, (first, _) in enumerate(factors[:-1]):
        parts.append(_label(x.begin + (column + 0.5) * wide, begin + (count - 1) * cell + 16, first, "title"))
    parts.append("</svg>")
    return f'<div class="plot">{"".join(parts)}</div>'
