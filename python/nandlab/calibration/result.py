"""The Python interface of calibrations, and their files."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nandlab import _core
from nandlab._core import SpecError
from nandlab.calibration.fit import CORRELATED, MODEL_ERROR, SEEDS_OF_ERRORS, Fit, Fitted, Profile, errors_of
from nandlab.calibration.keys import Key
from nandlab.calibration.loads import Load, loads_of
from nandlab.calibration.measured import Row, hold_out, read_all
from nandlab.calibration.model import Candidate, Counted, KeptWorkers, Model, SummaryStore
from nandlab.calibration.spec_file import fitted_spec
from nandlab.errors import OutputError
from nandlab.spec import Sets, read_spec
from nandlab.study.execute import State, Workers
from nandlab.study.local import LocalWorkers
from nandlab.whole import write_file

#: The files of a calibration.
RESULT, TABLE, SPEC, PAGE = "calibration.json", "calibration.csv", "fitted.toml", "calibration.html"
_FORMAT = 1


@dataclass(frozen=True)
class FittedKey:
    """A key with its fitted value."""

    key: Key
    value: float
    profile: Profile

    @property
    def at_bound(self) -> bool:
        """Whether the fitted value is a bound of the key."""
        return min(abs(self.value - self.key.low), abs(self.value - self.key.high)) <= 1e-3 * abs(self.value)

    @property
    def determined(self) -> str:
        """`yes`, or which ends of the 95 % interval the data leaves open: `below`, `above`, `no` for both."""
        low = self.profile.low <= self.key.low
        high = self.profile.high >= self.key.high
        return "no" if low and high else "below" if low else "above" if high else "yes"


@dataclass(frozen=True)
class Compared:
    """A measured value beside the predicted one."""

    row: Row
    #: The column, such as `read_p99_us` or `read_p99_us:probe`.
    name: str
    measured: float
    predicted: float
    #: The standard error of the comparison, relative to the value.
    error: float
    #: Whether no candidate reaches the measured value; only of fitted values.
    unreached: bool

    @property
    def deviation(self) -> float:
        """Predicted over measured, minus 1."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True, repr=False)
class Calibration:
    """The result of a calibration."""

    path: Path
    name: str
    keys: tuple[FittedKey, ...]
    #: Pairs of keys that the data cannot tell apart, with their correlation.
    pairs: tuple[tuple[str, str, float], ...]
    #: The fitted values, then the held-out ones, in the order of the rows.
    values: tuple[Compared, ...]
    #: The cost over the degrees of freedom; well above 1 if the model does not explain the data.
    scale: float
    runs_done: int
    runs_kept: int
    candidates: int
    notes: tuple[str, ...]
    spec_text: str

    def __repr__(self) -> str:
        lines = [f"<Calibration {self.name}: {len(self.fitted)} values fitted, {len(self.held_out)} held out>"]
        lines += [f"{one.key.name} = {one.key.shown(one.value)}, {one.determined}" for one in self.keys[:8]]
        return "\n".join(lines)

    @property
    def fit_label(self) -> str:
        """What the values that are not held out are called: `fitted`, or `compared` where no key was fitted."""
        return "fitted" if self.keys else "compared"

    @property
    def fitted(self) -> list[Compared]:
        """The values that were fitted."""
        return [value for value in self.values if value.row.split == "fit"]

    @property
    def held_out(self) -> list[Compared]:
        """The values that were not fitted."""
        return [value for value in self.values if value.row.split == "held-out"]

    def to_dict(self) -> dict[str, Any]:
        """`calibration.json`; errors and deviations are shares of the measured value."""
        return {
            "format": _FORMAT,
            "nandlab": _core.version(),
            "spec": self.name,
            "keys": [
                {
                    "key": one.key.name,
                    "bounds": [one.key.toml(one.key.low), one.key.toml(one.key.high)],
                    "value": one.key.toml(one.value),
                    "interval": [one.key.toml(one.profile.low), one.key.toml(one.profile.high)],
                    "determined": one.determined,
                    "profile": [
                        [one.key.toml(value), _rounded(rise)]
                        for value, rise in zip(one.profile.values, one.profile.rises, strict=True)
                    ],
                }
                for one in self.keys
            ],
            "correlated": [[first, second, _rounded(by)] for first, second, by in self.pairs],
            "scale": _rounded(self.scale),
            "runs": self.runs_done + self.runs_kept,
            "candidates": self.candidates,
            "notes": list(self.notes),
            "values": [
                {
                    "row": one.row.number,
                    "origin": one.row.origin,
                    "load": one.row.name,
                    "split": one.row.split,
                    "value": one.name,
                    "measured": _rounded(one.measured),
                    "predicted": _rounded(one.predicted),
                    "deviation": _rounded(one.deviation),
                    "standard_error": _rounded(one.error),
                    "reached": not one.unreached,
                }
                for one in self.values
            ],
        }


def calibrate(
    spec: str | os.PathLike[str],
    *measured: str | os.PathLike[str],
    fit: Sequence[str] = (),
    hold_out: str | None = None,
    sets: Sets = (),
    fio: str | os.PathLike[str] | None = None,
    duration: str | None = None,
    seeds: int = 1,
    model_error: float = MODEL_ERROR,
    quick: bool = False,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    dask: str | None = None,
    progress: Callable[[State], None] | None = None,
) -> Calibration:
    """Fit keys of a spec to a measurement, and write the fitted spec, a table and a page to `out`.

    `spec` is the path of a spec. `measured` are CSV files or results of fio in JSON. Each of `fit` is a key with its
    bounds, `KEY=LOW..HIGH`; without keys the predictions of the spec are compared with the measurement. `hold_out`
    selects rows that are predicted only: `2,5-7`, `odd`, `even`. The clients of the loads are those of the job file
    `fio`, of the job in fio's result, or of the spec. `duration` is the simulated time of a load, such as `2s`; `seeds`
    the number of seeds of each prediction. `model_error` is the relative error, besides noise, that the model is taken
    to have: agreement below it is not looked for. `quick` tries about a third of the candidates. `out` is by default a
    folder in out/ with the name of the spec and `-calibrated`. Finished runs in it are not repeated. `workers`, `dask`
    and `progress` are those of a study.

    Raises `OutputError` and `SpecError` for wrong input, `NandlabError` when runs have failed.
    """
    path = Path(spec)
    base = read_spec(path, sets)
    keys = [Key.parse(text) for text in fit]
    if keys and importlib.util.find_spec("scipy") is None:
        raise OutputError(
            "scipy is not installed, which fits keys\n  remedy: install nandlab with its extra, "
            "`pip install 'nandlab[calibrate]'`"
        )
    _check_keys(base, keys)
    if not measured:
        raise OutputError("no measurement\n  remedy: name CSV files or results of fio in JSON behind the spec")
    if not 1 <= seeds <= 100:
        raise OutputError(f"--seeds: expected 1 to 100, found {seeds}")
    if not 0 < model_error < 1:
        raise OutputError(f"--model-error: expected a share between 0 and 1, found {model_error}")
    rows = _split(read_all([Path(one) for one in measured]), hold_out)
    if keys and not any(row.split == "fit" for row in rows):
        raise OutputError("all rows are held out, and nothing is left to fit\n  remedy: hold out fewer rows")
    loads, notes = loads_of(base, rows, None if fio is None else Path(fio), duration)
    _check_loads(base, loads)
    store = SummaryStore(Path(out) if out is not None else Path("out") / f"{path.stem}-calibrated", "calibration")

    def make(wanted: int) -> Workers:
        if dask is not None:
            from nandlab.study.cluster import DaskWorkers

            return DaskWorkers(dask, "send")
        return LocalWorkers(max(min(workers or os.cpu_count() or 1, wanted), 1))

    store.open(path.stem)
    kept = KeptWorkers(make)
    try:

        def model_of(split: str) -> Model:
            chosen = [load for load in loads if load.row.split == split]
            return Model(base, keys, chosen, seeds, store, kept, progress or (lambda _state: None), counted)

        counted = Counted()
        # The fit has only the rows that are fitted; without keys there is nothing to hold out from.
        fitted, held = model_of("fit"), model_of("held-out")
        found = Fit(fitted, model_error, quick=quick).run() if fitted.loads else Fitted(Fit(held, model_error).start())
        result = _result(path, fitted, held, found, counted, notes)
        _write(result)
    finally:
        kept.end()
        store.close()
    return result


def _split(rows: list[Row], selection: str | None) -> list[Row]:
    rows = rows if selection is None else hold_out(rows, selection)
    return [row for row in rows if row.split != "ignore"]


def _check_keys(base: _core.Spec, keys: Sequence[Key]) -> None:
    """Refuse keys that are not in the spec, and bounds that the spec does not allow."""
    double = next((key.name for at, key in enumerate(keys) if key.name in [one.name for one in keys[:at]]), None)
    if double is not None:
        raise OutputError(f"--fit {double} is given twice\n  remedy: leave out one")
    for key in keys:
        if key.name.split(".")[0] == "workload":
            raise OutputError(
                f"--fit {key.name}: the workload is part of the measurement\n  remedy: fit keys of the drive"
            )
        for bound in (key.low, key.high):
            try:
                base.with_({key.name: key.toml(bound)})
            except SpecError as error:
                found = error.errors[0]
                raise OutputError(
                    f"--fit {key.name}: at {key.shown(bound)} the spec is refused: {found['key']}: {found['message']}\n"
                    f"  remedy: {found['remedy'] or 'correct the key or its bounds'}"
                ) from None


def _check_loads(base: _core.Spec, loads: Sequence[Load]) -> None:
    for load in loads:
        try:
            base.with_(list(load.sets))
        except SpecError as error:
            found = error.errors[0]
            raise OutputError(
                f"{load.row.origin}: the load of this row is refused: {found['key']}: {found['message']}\n"
                f"  remedy: {found['remedy'] or 'correct the row'}"
            ) from None


def _result(
    path: Path, fitted: Model, held: Model, found: Fitted, counted: Counted, notes: Sequence[str]
) -> Calibration:
    keys = tuple(map(FittedKey, fitted.keys, found.candidate, found.profiles))
    values = [*_compared(fitted, found.candidate, found.unreached), *_compared(held, found.candidate, ())]
    number = len(fitted.values)
    text = fitted_spec(path, fitted.resolved(found.candidate), fitted.spec, keys_of(keys), number)
    return Calibration(
        path=fitted.store.path,
        name=path.stem,
        keys=keys,
        pairs=tuple(_pairs(fitted.keys, found)),
        values=tuple(values),
        scale=found.scale,
        runs_done=counted.done,
        runs_kept=counted.kept,
        candidates=max(len({candidate for candidate, _ in fitted.known}), 1),
        notes=tuple(notes),
        spec_text=text,
    )


def _compared(model: Model, candidate: Candidate, unreached: Sequence[int]) -> list[Compared]:
    """Measured and predicted values; a prediction is the mean over the seeds from which its error is estimated."""
    if not model.loads:
        return []
    seeds = max(SEEDS_OF_ERRORS, model.seeds)
    errors = errors_of(model, candidate, seeds)
    logs = model.logs([candidate], seeds)[0]
    assert logs is not None
    predicted = np.exp(logs.mean(axis=0))
    rows = [load.row for load in model.loads for _ in load.row.values]
    return [
        Compared(row, value.name, value.value, float(predicted[at]), float(errors[at]), at in unreached)
        for at, (row, value) in enumerate(zip(rows, model.values, strict=True))
    ]


def keys_of(keys: Sequence[FittedKey]) -> dict[str, tuple[int | float | str, str]]:
    """The fitted values by key, each with the comment on it."""
    found: dict[str, tuple[int | float | str, str]] = {}
    for one in keys:
        ends = f"{one.key.shown(one.profile.low)} to {one.key.shown(one.profile.high)}"
        open_ends = {"yes": "", "no": "; not determined", "below": "; open below", "above": "; open above"}
        found[one.key.name] = one.key.toml(one.value), f"fitted: 95 % interval {ends}{open_ends[one.determined]}"
    return found


def _pairs(keys: Sequence[Key], found: Fitted) -> list[tuple[str, str, float]]:
    return [
        (keys[first].name, keys[second].name, float(found.correlations[first, second]))
        for first in range(len(found.correlations))
        for second in range(first + 1, len(keys))
        if abs(found.correlations[first, second]) > CORRELATED
    ]


def _write(result: Calibration) -> None:
    from nandlab.reporting.extra import missing

    write_file(result.path / SPEC, result.spec_text.encode())
    write_file(result.path / RESULT, (json.dumps(result.to_dict(), indent=2) + "\n").encode())
    write_file(result.path / TABLE, _table(result).encode())
    if not missing():
        from nandlab.calibration.page import calibration_page
        from nandlab.reporting.render import html_of

        write_file(result.path / PAGE, html_of(calibration_page(result)).encode())


def _table(result: Calibration) -> str:
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(
        ["row", "load", "split", "value", "measured", "predicted", "error_percent", "standard_error_percent"]
    )
    for one in result.values:
        numbers = [
            f"{one.measured:.6g}",
            f"{one.predicted:.6g}",
            f"{100 * one.deviation:.2f}",
            f"{100 * one.error:.2f}",
        ]
        lines.writerow([one.row.number, one.row.name, one.row.split, one.name, *numbers])
    return out.getvalue()


def _rounded(value: float) -> float:
    return float(f"{value:.6g}") if math.isfinite(value) else 0.0


def summary_of(values: Sequence[Compared]) -> dict[str, tuple[int, float, float]]:
    """By value: how many, and the median and the largest deviation without sign, as shares."""
    found: dict[str, list[float]] = {}
    for one in values:
        found.setdefault(one.name, []).append(abs(one.deviation))
    return {name: (len(each), float(np.median(each)), max(each)) for name, each in found.items()}


__all__ = ["Calibration", "Compared", "FittedKey", "calibrate"]
