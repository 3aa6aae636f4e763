"""The page of a calibration: measured, fitted and held out, and how well each key is determined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nandlab import _core
from nandlab.calibration.fit import CHI_SQUARE
from nandlab.calibration.result import Calibration, Compared, FittedKey, summary_of
from nandlab.presentation import Figure as Tile
from nandlab.presentation.model import counted
from nandlab.reporting.chart import Axis, Limit, Lines, Series
from nandlab.reporting.content import Block, Cell, Columns, Fold, Listing, Page, Span, Words, sections_of
from nandlab.reporting.run_charts import single
from nandlab.result_types import Note
from nandlab.units import number

_DETERMINED = {
    "yes": ("yes", "good"),
    "below": ("open below", "warn"),
    "above": ("open above", "warn"),
    "no": ("not determined", "bad"),
}


def calibration_page(result: Calibration) -> Page:
    """The page."""
    sections: list[tuple[str, Sequence[Block | None]]] = [
        ("Keys", [_keys(result), _apart(result)] if result.keys else []),
        ("Profiles", [Columns(tuple(map(_profile, result.keys)), "two")] if result.keys else []),
        ("Errors", [_errors(result)]),
        ("Held out", [_values(result.held_out)] if result.held_out else []),
        ("Fitted" if result.keys else "Compared", [_values(result.fitted)] if result.fitted else []),
        ("Method", [Words(text) for text in _method(result)]),
        ("Fitted spec", [Fold("fitted.toml", text=result.spec_text)]),
    ]
    return Page(
        kind="calibrate",
        title=result.name,
        lead=_lead(result),
        tiles=_tiles(result),
        notes=tuple(_notes(result)),
        sections=sections_of(sections),
        footer=f"{counted(result.runs_done + result.runs_kept, 'run')} of {counted(result.candidates, 'candidate')}",
        version=_core.version(),
    )


def _lead(result: Calibration) -> str:
    if not result.keys:
        return f"{counted(len(result.values), 'measured value')} beside the predictions of the spec, without a fit."
    held = f"; {counted(len(result.held_out), 'value')} held out and predicted" if result.held_out else ""
    keys, values = counted(len(result.keys), "key"), counted(len(result.fitted), "measured value")
    return f"{keys} of the spec fitted to {values}{held}."


def _tiles(result: Calibration) -> tuple[Tile, ...]:
    tiles = []
    for label, values in ((result.fit_label, result.fitted), ("held out", result.held_out)):
        if values:
            middle = float(np.median([abs(value.deviation) for value in values]))
            tiles.append(Tile(f"median error, {label}", number(100 * middle), "%"))
    tiles.append(Tile("runs", f"{result.runs_done + result.runs_kept:,}"))
    if result.keys:
        tiles.append(Tile("cost a degree of freedom", number(result.scale)))
    return tuple(tiles)


def _notes(result: Calibration) -> list[Note]:
    found = []
    for one in result.values:
        if one.unreached:
            text = (
                f"No value of the keys that was tried reaches {one.name} of row {one.row.number} ({one.row.name}): "
                f"measured {number(one.measured)}, predicted {number(one.predicted)}."
            )
            found.append(Note(severity="warning", code="unreached", text=text))
    for key in result.keys:
        if key.at_bound:
            text = (
                f"{key.key.name} is at a bound of its range, {key.key.shown(key.value)}: the range may be too narrow."
            )
            found.append(Note(severity="warning", code="at-bound", text=text))
    return found + [Note(severity="info", code="fio", text=text) for text in result.notes]


def _keys(result: Calibration) -> Listing:
    rows: list[tuple[Cell, ...]] = []
    for one in result.keys:
        text, mark = _DETERMINED[one.determined]
        interval = f"{one.key.shown(one.profile.low)} to {one.key.shown(one.profile.high)}"
        bounds = f"{one.key.shown(one.key.low)} to {one.key.shown(one.key.high)}"
        rows.append(
            (Span(one.key.name, "code"), one.key.shown(one.value), interval, Span(text, "verdict", mark=mark), bounds)
        )
    return Listing(
        heads=("key", "fitted", "95 % interval", "determined", "range"),
        rows=tuple(rows),
        numbers=frozenset({1, 2, 4}),
        label="Keys",
        caption="The interval is that of a linear model of the residuals about the best. An open end is a bound of the "
        "range.",
    )


def _apart(result: Calibration) -> Words:
    if not result.pairs:
        return Words("Each key has an effect of its own: no two keys are correlated by more than 0.95.")
    pairs = "; ".join(f"{first} and {second} ({number(by)})" for first, second, by in result.pairs)
    return Words(
        f"The data cannot tell these keys apart, with their correlation: {pairs}. Only one of a pair is known."
    )


def _profile(one: FittedKey) -> Block:
    unit = {"ns": ", µs"}.get(one.key.unit, f", {one.key.unit}" if one.key.unit else "")
    scale = 1e-3 if one.key.unit == "ns" else 1.0
    series = Series("rise", np.array(one.profile.rises), "blue")
    chart = Lines(
        one.key.name,
        Axis(f"{one.key.name}{unit}"),
        Axis("rise of the cost", low=0.0, high=4 * CHI_SQUARE),
        scale * np.array(one.profile.values),
        (series,),
        dots=True,
        limits=(Limit(CHI_SQUARE, "95 %"),),
        height=180,
    )
    return single(chart, "The other keys are where a linear model has their best.")


def _errors(result: Calibration) -> Listing:
    fitted, held = summary_of(result.fitted), summary_of(result.held_out)
    rows: list[tuple[Cell, ...]] = []
    for name in dict.fromkeys([*fitted, *held]):
        cells: list[Cell] = [Span(name, "code")]
        for found in (fitted.get(name), held.get(name)):
            cells += (
                ["-", "-", "-"] if found is None else [str(found[0]), *(f"{100 * part:.1f} %" for part in found[1:])]
            )
        rows.append(tuple(cells))
    heads = ("value", f"{result.fit_label}: values", "median", "largest", "held out: values", "median", "largest")
    return Listing(heads, tuple(rows), numbers=frozenset(range(1, 7)), label="Errors by value")


def _values(values: Sequence[Compared]) -> Listing:
    rows: list[tuple[Cell, ...]] = []
    for one in values:
        rows.append(
            (
                str(one.row.number),
                one.row.name,
                Span(one.name, "code"),
                number(one.measured),
                number(one.predicted),
                f"{100 * one.deviation:+.1f} %",
                f"{100 * one.error:.1f} %",
            )
        )
    return Listing(
        heads=("row", "load", "value", "measured", "predicted", "error", "standard error"),
        rows=tuple(rows),
        numbers=frozenset({0, 3, 4, 5, 6}),
        label="Values",
    )


def _method(result: Calibration) -> list[str]:
    texts = [
        "A predicted value is the geometric mean over four seeds or more. "
        "The error is predicted over measured, minus 1. The standard error is that of the logarithm of this ratio: the "
        "spread over the seeds, and the resolution or the standard error of the measured value."
    ]
    if result.keys:
        texts.append(
            "The fit makes the sum over errors in standard errors least (Cauchy's loss: an error beyond three standard "
            "errors counts by its logarithm; in the first steps squares count, with larger errors). All candidates "
            "have the same seeds. Held-out values have no part in it."
        )
    return texts
