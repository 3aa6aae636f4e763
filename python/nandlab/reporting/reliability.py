"""The picture of `nandlab reliability`: RBER and read level over retention, and latency by read level."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from nandlab.reporting.paper import saved, sheet_of, style
from nandlab.reporting.svg import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from nandlab.rber import Reliability

_TICKS_S = {
    1: "1 s",
    60: "1 min",
    3600: "1 h",
    86_400: "1 d",
    7 * 86_400: "7 d",
    30 * 86_400: "30 d",
    365 * 86_400: "1 year",
    3650 * 86_400: "10 years",
}
#: Colours from few P/E cycles to many.
_RAMP = ["#3b82c4", "#3aa6a0", "#6cb04c", "#d2a429", "#e07b28", "#cf4436", "#8f2050", "#4b1a4f"]
_DASHES = ["-", "--", ":"]
_SOFT = "#5d6773"


def picture(asked: Reliability, curves: Reliability, kind: str, *, susceptible: bool) -> bytes:
    """The picture as SVG, PDF or PNG; `curves` has the conditions of `asked` at more retentions."""
    panels: list[Callable[[Axes, Reliability], None]] = [_rber, _level, _latency]
    if susceptible and asked.susceptible is not None:
        panels.append(_susceptible)
    across = 2 if len(panels) == 4 else len(panels)
    down = -(-len(panels) // across)
    with style("reliability"):
        sheet = sheet_of(3.7 * across, 3.3 * down)
        sheet.get_layout_engine().set(w_pad=0.08, h_pad=0.08)  # type: ignore[union-attr, call-arg]
        grid = sheet.subplots(down, across, squeeze=False)
        for axes, draw in zip(grid.flat, panels, strict=True):
            draw(axes, curves)
        handles, names = grid.flat[0].get_legend_handles_labels()
        title = "P/E cycles" if len(asked.kinds) == 1 else f"P/E cycles ({', '.join(_kinds(asked))})"
        if handles:
            sheet.legend(
                handles, names, loc="outside upper center", ncols=min(len(names), 3 * across), fontsize=7, title=title,
                title_fontsize=7,
            )  # fmt: skip
        return saved(sheet, kind)


def _kinds(of: Reliability) -> list[str]:
    return [f"{name.upper()} {('solid', 'dashed', 'dotted')[index % 3]}" for index, name in enumerate(of.kinds)]


def _colours(count: int) -> list[str]:
    if count <= 1:
        return _RAMP[:1]
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    ramp = LinearSegmentedColormap.from_list("wear", _RAMP)
    return [to_hex(ramp(index / (count - 1))) for index in range(count)]


def _curves(axes: Axes, of: Reliability, values: Floats, *, steps: bool = False, spread: float = 0.0) -> None:
    """One line per number of P/E cycles and page kind over retention; `spread` separates lines on the same level."""
    colours = _colours(len(of.pe_cycles))
    drawn = of.retention_s > 0
    for kind in range(len(of.kinds)):
        for column, cycles in enumerate(of.pe_cycles.tolist()):
            axes.plot(
                of.retention_s[drawn],
                values[kind, drawn, column] + spread * (column - (len(of.pe_cycles) - 1) / 2),
                _DASHES[kind % len(_DASHES)],
                color=colours[column],
                linewidth=1.3,
                drawstyle="steps-post" if steps else "default",
                label=f"{cycles:,}" if kind == 0 else "_",
            )
    axes.set_xscale("log")
    low, high = float(of.retention_s[drawn].min()), float(of.retention_s[drawn].max())
    axes.set_xlim(low, high)
    ticks = [tick for tick in _TICKS_S if low <= tick <= high]
    # Leave out ticks whose labels would touch.
    ticks = [t for i, t in enumerate(ticks) if i == 0 or np.log(t / ticks[i - 1]) > 0.1 * np.log(high / low)]
    if len(ticks) >= 2:
        axes.set_xticks(ticks, [_TICKS_S[tick] for tick in ticks], fontsize=7)
        axes.set_xticks([], minor=True)
    axes.set_xlabel("retention")


def _rber(axes: Axes, of: Reliability) -> None:
    _curves(axes, of, of.rber)
    axes.set_yscale("log")
    axes.set_ylabel("RBER")
    limits = of.levels["rber_max"]
    positive = of.rber[of.rber > 0]
    least = float(positive.min()) if positive.size else 1e-9
    most = float(positive.max()) if positive.size else 1.0
    # RBERs far below the limit of the first level are cut off.
    least = max(min(least, float(limits[0])), float(limits[0]) / 300)
    axes.set_ylim(least / 1.2, min(max(most, float(limits[-1])) * 1.25, 0.6))
    _limits(axes, of)


def _limits(axes: Axes, of: Reliability) -> None:
    """A thin line at the greatest RBER of each level, with its label at the right."""
    low, high = np.log(axes.get_ylim())
    limits = of.levels["rber_max"].tolist()
    levels = of.levels["level"].tolist()
    step = 0.042
    places: list[float] = []
    for limit in limits:
        at = (np.log(limit) - low) / (high - low)
        places.append(max(at, places[-1] + step) if places else at)
    # Keeping the labels apart moved them up: move all of them down by their mean shift.
    shift = sum(place - (np.log(limit) - low) / (high - low) for place, limit in zip(places, limits, strict=True))
    shift = max(shift / len(places), places[-1] - 1.0)
    for level, limit, place in zip(levels, limits, places, strict=True):
        axes.axhline(limit, color=_SOFT, linewidth=0.5, alpha=0.7, zorder=1)
        axes.annotate(
            f"level {level}" if level in (levels[0], levels[-1]) else str(level),
            (1.0, (np.log(limit) - low) / (high - low)),
            xytext=(1.035, place - shift),
            xycoords="axes fraction",
            va="center",
            fontsize=6,
            color=_SOFT,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": _SOFT, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 0},
        )


def _level(axes: Axes, of: Reliability) -> None:
    count = len(of.levels["level"])
    shown = np.where(of.level == 0, count + 1, of.level).astype(float)
    _curves(axes, of, shown, steps=True, spread=0.6 / max(len(of.pe_cycles), 5))
    lost = bool((of.level == 0).any())
    axes.set_yticks(
        range(1, count + 1 + lost), [*(str(level) for level in range(1, count + 1)), *(["lost"] if lost else [])]
    )
    axes.set_ylim(0.5, count + 0.5 + lost)
    axes.set_ylabel("read level that decodes")


def _latency(axes: Axes, of: Reliability) -> None:
    levels = of.levels["level"].astype(float)
    for name, label, colour, shape in (
        ("full_us", "from level 1, full retries", "#c93d78", "o"),
        ("incremental_us", "from level 1, incremental", "#e58a1f", "D"),
        ("direct_us", "at this level at once", "#2f6fde", "s"),
    ):
        axes.plot(levels, of.levels[name], shape + "-", color=colour, markersize=3.2, linewidth=1.2, label=label)
    axes.set_xticks(levels.tolist(), [str(int(level)) for level in levels])
    axes.set_ylim(0, None)
    axes.set_xlabel("read level")
    axes.set_ylabel("latency of a page read, us")
    axes.legend(fontsize=7, loc="upper left")


def _susceptible(axes: Axes, of: Reliability) -> None:
    if of.susceptible is None:
        raise AssertionError
    _curves(axes, of, 100 * of.susceptible)
    axes.set_ylim(0, None)
    axes.set_ylabel("susceptible bits of a page, %")
