"""The report of a study: question, claims, set-up, figures with their data, specs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nandlab.presentation.model import counted
from nandlab.reporting import svg
from nandlab.reporting.pieces import columns, details, document, escape, fact_table, nothing, number_table, section
from nandlab.reporting.study_claims import MARKS, claims_table, number
from nandlab.reporting.svg import Line
from nandlab.study.draw import EFFECT, LARGEST, SMALLEST, Curve, Drawn, Panel, cdf_title
from nandlab.study.effects import combination
from nandlab.study.judge import Verdict
from nandlab.study.metrics import Results, flat
from nandlab.study.model import SEED, Choice, Definition, Override, filled
from nandlab.study.parameters import not_stated, stated
from nandlab.study.plan import PlannedRun
from nandlab.units import count, size

_COLOURS = [
    "c-read",
    "c-gc",
    "c-refresh",
    "c-write",
    "c-wear",
    "c-mapping",
    "c-sync",
    "c-flush",
    "c-host",
]


def study_page(
    study: Definition, results: Results, drawn: Sequence[Drawn], verdicts: Sequence[Verdict], version: str
) -> str:
    """The whole HTML file."""
    runs = results.runs
    sections = [
        _head(study, runs, verdicts),
        section("Claims", claims_table(verdicts)),
        section("Set-up", _setup(study, runs), _parameters(study), _load(study, results)),
        section("Figures", *(_figure(study, figure, number) for number, figure in enumerate(drawn, 1))),
        section("Specs", _specs(study, runs)),
    ]
    return document(study.title, sections, f"study {study.name}", version)


def _head(study: Definition, runs: Sequence[PlannedRun], verdicts: Sequence[Verdict]) -> str:
    badges = '<span class="badge warn">smoke size: the numbers support no claim</span>' if study.smoke else ""
    tally = {verdict: sum(1 for v in verdicts if v.verdict == verdict) for verdict in MARKS}
    for verdict, mark in MARKS.items():
        if tally[verdict] and mark != "none":
            badges += f'<span class="badge {mark}">{tally[verdict]} {escape(verdict)}</span>'
    notes = "".join(f"<p>{escape(part)}</p>" for part in study.notes.split("\n\n") if part.strip())
    return (
        f"<header><h1>{escape(study.title)}</h1>{badges}</header>"
        f'<p class="question">{escape(study.question)}</p>{notes}'
    )


# ------------------------------------------------------------------------------------------------------------- set-up


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (dict, list)):
        text = json.dumps(value)
        return text.replace('"', "").replace("{", "").replace("}", "")
    return str(value)


def _setup(study: Definition, runs: Sequence[PlannedRun]) -> str:
    first = runs[0].spec
    same = len({run.spec.raw_bytes for run in runs}) == 1
    drives = sorted({run.spec.raw_bytes for run in runs})
    raw = size(first.raw_bytes) if same else f"{size(drives[0])} to {size(drives[-1])}"
    points = {tuple((name, value) for name, value in run.point.items() if name != SEED) for run in runs}
    seeds = dict.fromkeys(run.point[SEED] for run in runs if SEED in run.point)
    facts = [
        ("runs", f"{count(len(runs))}, {count(len({run.identity for run in runs}))} of them distinct"),
        (
            "combinations",
            f"{counted(len({run.variant for run in runs}), 'variant')}, "
            f"{counted(len({run.workload for run in runs}), 'workload')}, "
            f"{counted(len(points), 'point')} of the grid",
        ),
        ("seeds", f"{len(seeds)}: {', '.join(map(str, seeds))}" if seeds else "1"),
        ("drive", f"{raw} raw"),
    ]
    if study.setting is not None:
        facts.append(("setting of the headlines", f"part {study.titles[('part', study.setting)]}"))
    axes = []
    for axis in study.axes:
        if axis == SEED:
            continue
        values = dict.fromkeys(point.title for part in study.parts for point in part.grid.get(axis, ()))
        axes.append([f"<code>{escape(axis)}</code>", escape(", ".join(values))])
    tables = [
        fact_table(facts),
        "<h3>Grid</h3>" + number_table(["axis", "values"], axes, numeric=False) if axes else "",
        _factors(study),
        _choices(study, "variant", _there(study, "variants")),
        _choices(study, "workload", _there(study, "workloads")),
    ]
    return columns("two", *(f'<figure class="scroll">{table}</figure>' for table in tables if table)) + _parts(
        study, runs
    )


def _parts(study: Definition, runs: Sequence[PlannedRun]) -> str:
    """The table of the parts: runs, variants, and keys that the part sets."""
    if len(study.parts) < 2:
        return ""
    rows = [
        [
            escape(part.title),
            str(sum(1 for run in runs if run.part == part.name)),
            escape(", ".join(choice.title for choice in part.variants)),
            _sets(study, part.sets),
        ]
        for part in study.parts
    ]
    table = number_table(["part", "runs", "variants", "sets"], rows, numeric=False)
    return f'<h3>Parts</h3><div class="scroll">{table}</div>'


def _sets(study: Definition, sets: Sequence[Override]) -> str:
    def value_of(name: str) -> Any:
        return study.values.get(name, name)

    texts = ((o.key, _plain(filled(o.value, value_of))) for o in sets)
    return "<br>".join(f"<code>{escape(key)}</code> = {escape(text)}" for key, text in texts) or "-"


def _factors(study: Definition) -> str:
    """The table of the factors: settings off and on."""
    if not study.factors:
        return ""
    rows = [
        [f"<b>{escape(f.name)}</b> {escape(f.title)}", _sets(study, f.off), _sets(study, f.on)] for f in study.factors
    ]
    return "<h3>Factors</h3>" + number_table(["factor", "off", "on"], rows, numeric=False)


def _there(study: Definition, kind: str) -> list[Choice]:
    choices: dict[str, Choice] = {}
    factors = [factor.name for factor in study.factors]
    for part in study.parts:
        for choice in part.variants if kind == "variants" else part.workloads:
            # The variants of the factors are in the table of the factors.
            if kind == "workloads" or not factors or combination(choice.name, factors) is None:
                choices.setdefault(choice.name, choice)
    return list(choices.values())


def _choices(study: Definition, column: str, choices: Sequence[Choice]) -> str:
    """The table of the settings of each variant or workload."""
    if not any(choice.sets for choice in choices):
        return ""
    rows = [[f"<b>{escape(choice.title)}</b>", _sets(study, choice.sets)] for choice in choices]
    return f"<h3>{column.capitalize()}s</h3>" + number_table([column, "sets"], rows, numeric=False)


def _parameters(study: Definition) -> str:
    """Where the parameters come from."""
    if not study.parameters:
        return ""
    rows = []
    for parameter in stated(study):
        text = escape(parameter.text)
        if parameter.sensitivity is not None:
            text += f' <a href="#figure-{escape(parameter.sensitivity)}">sensitivity</a>'
        rows.append([f"<code>{escape(parameter.key)}</code>", escape(parameter.origin), text])
    rows += [[f"<code>{escape(key)}</code>", "not stated", ""] for key in not_stated(study)]
    return "<h3>Where the parameters come from</h3>" + number_table(["key", "origin", ""], rows, numeric=False)


#: Columns of the table of load: metric and title.
_LOAD = {
    "load.die_busy": "dies, mean",
    "load.die_busy_peak": "dies, peak",
    "load.channel_busy": "channels, mean",
    "load.channel_busy_peak": "channels, peak",
}


def _load(study: Definition, results: Results) -> str:
    """The busy shares of dies and channels by part and variant, each the mean over the runs."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for run, row in zip(results.runs, results.rows, strict=True):
        found.setdefault((run.part, run.variant), []).append(row)
    rows = []
    for (part, variant), group in found.items():
        cells = [escape(study.titles[("part", part)])] if len(study.parts) > 1 else []
        cells.append(escape(study.titles.get(("variant", variant), variant)))
        for name in _LOAD:
            known = [row[name] for row in group if row.get(name) is not None]
            cells.append(f"{100 * sum(known) / len(known):.3g} %" if known else "-")
        rows.append(cells)
    names = (["part"] if len(study.parts) > 1 else []) + ["variant", *_LOAD.values()]
    caption = (
        "<figcaption>Share of the time of the run in which a die or a channel was busy, mean over dies, channels and "
        "runs; peak: the busiest interval of the series.</figcaption>"
    )
    return f'<h3>Load</h3><div class="scroll">{number_table(names, rows)}</div>{caption}'


# ------------------------------------------------------------------------------------------------------------ figures


def _figure(study: Definition, drawn: Drawn, number: int) -> str:
    figure = drawn.figure
    title = f"<h3>{number}. {escape(figure.title)}</h3>"
    curves = [curve for panel in drawn.panels for curve in panel.curves]
    if not any(curve.y for curve in curves):
        return nothing("No run has a value for this figure.", f"{number}. {figure.title}")
    if figure.kind == "effects":
        return _effects(study, drawn, title)
    names = list(dict.fromkeys(curve.name for curve in curves))
    colours = {name: _COLOURS[index % len(_COLOURS)] for index, name in enumerate(names)}
    references = {curve.name for curve in curves if curve.is_reference}
    tops = [y for curve in curves for y in curve.y] + [mark.y for panel in drawn.panels for mark in panel.marks]
    tops += [interval[1] for curve in curves for interval in curve.intervals if interval is not None]
    plots = []
    for panel in drawn.panels:
        head = f"<h4>{escape(panel.title)}</h4>" if panel.title else ""
        wide = 1140 if len(drawn.panels) == 1 else 556 if len(drawn.panels) in (2, 4) else 364
        plots.append(f"<div>{head}{_panel(drawn, panel, colours, wide, max(tops))}</div>")
    kind = "two" if len(plots) in (2, 4) else "three" if len(plots) > 2 else "one"
    entries = [(name, colours[name] + (" dashed" if name in references else "")) for name in names]
    key = svg.legend(entries)
    if any(panel.marks for panel in drawn.panels):
        key = key.removesuffix("</div>") + '<span class="key"><i class="diamond"></i>reported</span></div>'
    caption = figure.caption
    if figure.normalised_to is not None:
        caption += f" Relative to {study.titles.get(('variant', figure.normalised_to), figure.normalised_to)}."
    files = f"Files: figures/{escape(figure.id)}.svg, figures/{escape(figure.id)}.pdf"
    return (
        f'<figure id="figure-{escape(figure.id)}">{title}{key}<div class="{kind}">{"".join(plots)}</div>'
        f"<figcaption>{escape(caption.strip())} {files}</figcaption>{_data(drawn)}</figure>"
    )


def _effects(study: Definition, drawn: Drawn, title: str) -> str:
    figure = drawn.figure
    found = [bars_of(panel) for panel in drawn.panels]
    named = {key[0] for bars in found for key in bars}
    factors = [(factor.name, factor.title) for factor in study.factors if factor.name in named]
    main = [y for bars in found for key, bar in bars.items() if len(key) == 1 for y in (bar.low, bar.high)]
    # Leave room for the labels beyond the whiskers.
    low, high = min([0.0, *main]), max([0.0, *main])
    room = 0.1 * (high - low)
    pairs = [abs(bar.value) for bars in found for key, bar in bars.items() if len(key) == 2]
    wide = 556 if len(found) in (1, 2, 4) else 364
    plots = []
    for panel, bars in zip(drawn.panels, found, strict=True):
        head = f"<h4>{escape(panel.title)}</h4>" if panel.title else ""
        plot = svg.effects(
            factors,
            bars,
            y_title=figure.y_title,
            y_range=(low - room if low < 0 else low, high + room),
            strongest=max(pairs, default=0.0),
            text=lambda value: effect_text(value, figure.scale),
            width=wide,
        )
        plots.append(f"<div>{head}{plot}</div>")
    kind = "two" if len(plots) in (1, 2, 4) else "three"
    key = svg.legend([("more", "c-gc"), ("less", "c-read")])
    files = f"Files: figures/{escape(figure.id)}.svg, figures/{escape(figure.id)}.pdf"
    legend = (
        "Bars: main effects, with whiskers from the smallest to the largest replicate. Below: interactions, the change "
        "of an effect by another factor. Pale: the replicates have different signs."
    )
    return (
        f'<figure id="figure-{escape(figure.id)}">{title}{key}<div class="{kind}">{"".join(plots)}</div>'
        f"<figcaption>{escape(figure.caption.strip())} {legend} {files}</figcaption>"
        f"{_effect_data(study, drawn)}</figure>"
    )


def bars_of(panel: Panel) -> dict[tuple[str, ...], svg.Bar]:
    """The effects of a panel, by their factors."""
    values = {curve.name: dict(zip(curve.x, curve.y, strict=True)) for curve in panel.curves}
    return {
        tuple(key.split(":")): svg.Bar(value, values[SMALLEST][key], values[LARGEST][key])
        for key, value in values.get(EFFECT, {}).items()
    }


def effect_text(value: float, scale: str) -> str:
    """An effect as text: `+12 %` on the scale of ratios, `+0.12` on the scale of differences."""
    if scale == "ratio":
        value *= 100.0
        text = f"{value:+,.0f} %" if abs(value) >= 9.95 else f"{value:+.1f} %"
        return "0 %" if abs(value) < 0.05 else text
    return "0" if value == 0 else f"{value:+,.0f}" if abs(value) >= 1000 else f"{value:+.3g}"


def _effect_data(study: Definition, drawn: Drawn) -> str:
    """The effects as a table."""
    titles = {factor.name: factor.title for factor in study.factors}
    many = len(drawn.panels) > 1
    rows = []
    for panel in drawn.panels:
        for key, bar in bars_of(panel).items():
            cells = [escape(panel.title)] if many else []
            cells.append(escape(" \u00d7 ".join(titles[name] for name in key)))
            cells += [effect_text(value, drawn.figure.scale) for value in (bar.value, bar.low, bar.high)]
            cells.append("" if bar.is_clear else "replicates of different signs")
            rows.append(cells)
    names = (["panel"] if many else []) + ["effect", "mean", "smallest replicate", "largest replicate", ""]
    table = number_table(names, rows)
    return f'<details><summary>The data of this figure</summary><div class="scroll">{table}</div></details>'


def _panel(drawn: Drawn, panel: Panel, colours: Mapping[str, str], width: int, top: float) -> str:
    figure = drawn.figure
    marks: dict[str, list[tuple[float, float]]] = {}
    if drawn.places is not None:
        at = {place: index for index, place in enumerate(drawn.places)}
        for mark in panel.marks:
            marks.setdefault(mark.series, []).append((at[mark.x], mark.y))
        lines = [
            Line(
                curve.name,
                np.array([dict(zip(curve.x, curve.y, strict=True)).get(place, np.nan) for place in drawn.places]),
                colours[curve.name],
                marks=tuple(marks.get(curve.name, ())),
                whiskers=_whiskers(curve, [float(at[x]) for x in curve.x]),
            )
            for curve in panel.curves
        ]
        return svg.grouped_bars(
            drawn.places,
            lines,
            x_title=figure.x_title,
            y_title=figure.y_title,
            width=width,
            log_y=figure.log_y,
            show_legend=False,
            y_max=top,
        )
    is_cdf = figure.kind == "cdf"
    curves = [_shorter(curve) for curve in panel.curves] if is_cdf else panel.curves
    for mark in panel.marks:
        marks.setdefault(mark.series, []).append((float(mark.x), mark.y))
    xs = np.array(sorted({float(x) for curve in curves for x in curve.x}))
    lines = []
    for curve in curves:
        values = {float(x): y for x, y in zip(curve.x, curve.y, strict=True)}
        y = np.array([values.get(x, np.nan) for x in xs.tolist()])
        if is_cdf:
            y = np.interp(xs, curve.x, curve.y, left=0.0, right=1.0)
            y = np.where(y < 1.0, 1.0 - y, np.nan) if figure.log_y else y
        lines.append(
            Line(
                curve.name,
                y,
                colours[curve.name],
                dashed=curve.is_reference,
                bridged=True,
                marks=tuple(marks.get(curve.name, ())),
                whiskers=() if is_cdf else _whiskers(curve, [float(x) for x in curve.x]),
            )
        )
    if not lines:
        return nothing("No run has a value in this panel.")
    bottom = min((y for line in lines for y in line.y.tolist() if y > 0), default=1.0) if figure.log_y else 0.0
    pad = 0.03 * float(xs[-1] - xs[0]) if not figure.log_x else 0.0
    low = float(xs[0]) * 0.9 if figure.log_x else float(xs[0]) - pad
    return svg.lines(
        xs,
        lines,
        x_title="latency, \u00b5s" if is_cdf else figure.x_title,
        y_title=cdf_title(figure) if is_cdf else figure.y_title,
        width=width,
        height=300 if width > 600 else 260,
        log_x=figure.log_x,
        log_y=figure.log_y,
        x_range=(low, float(xs[-1]) * (1.1 if figure.log_x else 1.0) + pad),
        y_range=(bottom, 1.0) if is_cdf else (bottom, top),
        x_unit="\u00b5s" if is_cdf else figure.x_title,
        markers=not is_cdf,
        show_legend=False,
        x_ticks=xs.tolist() if not is_cdf and len(xs) <= 8 else None,
    )


def _whiskers(curve: Curve, xs: Sequence[float]) -> tuple[tuple[float, float, float], ...]:
    """The intervals of a curve: x, low and high."""
    return tuple((x, *found) for x, found in zip(xs, curve.intervals, strict=False) if found is not None)


def _shorter(curve: Curve) -> Curve:
    """A distribution with fewer points: the drawn curve and its drawn tail look the same."""
    kept = [0]
    for index, y in enumerate(curve.y):
        last = curve.y[kept[-1]]
        if y - last > 0.004 or 1 - y < 0.95 * (1 - last) or index == len(curve.y) - 1:
            if kept[-1] < index - 1:
                kept.append(index - 1)
            kept.append(index)
    return Curve(curve.name, [curve.x[i] for i in kept], [curve.y[i] for i in kept], curve.is_reference)


def _texts(curve: Curve) -> list[str]:
    """The values of a curve with their intervals."""
    intervals = curve.intervals or [None] * len(curve.y)
    return [
        number(y) + ("" if found is None else f" [{number(found[0])}, {number(found[1])}]")
        for y, found in zip(curve.y, intervals, strict=True)
    ]


def _data(drawn: Drawn) -> str:
    """The data of a figure as a collapsed table."""
    many = len(drawn.panels) > 1
    if drawn.figure.kind == "cdf":
        names = (["panel"] if many else []) + ["series", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"]
        rows = [
            ([escape(panel.title)] if many else [])
            + [escape(curve.name)]
            + [number(_quantile(curve, part)) for part in (0.5, 0.9, 0.99, 0.999, 0.9999)]
            for panel in drawn.panels
            for curve in panel.curves
        ]
        table = number_table(names, rows)
    else:
        curves = list(dict.fromkeys(curve.name for panel in drawn.panels for curve in panel.curves))
        rows = []
        for panel in drawn.panels:
            values = {c.name: dict(zip(c.x, _texts(c), strict=True)) for c in panel.curves}
            for x in dict.fromkeys(x for curve in panel.curves for x in curve.x):
                cells = [escape(x if isinstance(x, str) else f"{x:g}")]
                cells += [values.get(name, {}).get(x, "-") for name in curves]
                rows.append(([escape(panel.title)] if many else []) + cells)
        table = number_table((["panel"] if many else []) + [drawn.figure.x_title, *curves], rows)
    return f'<details><summary>The data of this figure</summary><div class="scroll">{table}</div></details>'


def _quantile(curve: Curve, part: float) -> float | None:
    return next((x for x, y in zip(curve.x, curve.y, strict=True) if y >= part - 1e-12), None)


# -------------------------------------------------------------------------------------------------------------- specs


def _specs(study: Definition, runs: Sequence[PlannedRun]) -> str:
    rows = []
    resolved = [dict(flat(json.loads(run.spec.canonical_json()))) for run in runs]
    for run in runs:
        cells = [f"<code>{escape(run.identity[:12])}</code>"]
        cells += [escape(name) for name in ((run.part,) if len(study.parts) > 1 else ())]
        cells += [escape(run.variant), escape(run.workload)]
        cells += [escape(_plain(run.point[axis])) if axis in run.point else "-" for axis in study.axes]
        rows.append(cells)
    names = ["run", *(["part"] if len(study.parts) > 1 else []), "variant", "workload", *study.axes]
    listed = number_table(names, rows, numeric=False)
    # Keys with the same value in all runs are listed once.
    keys = list(dict.fromkeys(key for entries in resolved for key in entries))
    common = {
        key: resolved[0].get(key) for key in keys if len({json.dumps(entries.get(key)) for entries in resolved}) == 1
    }
    varied = [key for key in keys if key not in common]
    tables = fact_table((key, _plain(value)) for key, value in common.items())
    parts = [
        f'<details><summary>The {count(len(runs))} runs</summary><div class="scroll">{listed}</div></details>',
        f"<details><summary>Keys with the same value in all runs, in base units (ns, bytes)</summary>{tables}"
        f"<figcaption>Keys that differ between runs: {escape(', '.join(varied))}.</figcaption></details>",
        details(f"The study, {Path(study.path).name}", study.text),
    ]
    if study.base_text:
        parts.append(details(f"The base spec, {study.base_name}", study.base_text))
    parts.append(details("The whole spec of the first run, with all defaults", runs[0].spec.to_toml()))
    return "".join(parts)
