"""The RBER model and the read levels of a spec, without a run."""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nandlab import _core
from nandlab.errors import OutputError
from nandlab.interruptible import interruptible
from nandlab.published import Published
from nandlab.published import published as _published
from nandlab.spec import Sets, Spec, load
from nandlab.tables import Columns, decode
from nandlab.whole import write_file

if TYPE_CHECKING:
    import polars as pl

#: Beside the levels of a code.
LEVELS_OF_A_CODE = (
    "RBER below: at a Gaussian boundary. The level that a page needs follows from its own voltages, whose errors are "
    "distributed differently."
)
_UNITS_S = {"s": 1, "min": 60, "h": 3600, "d": 86400}
_RETENTION = ("1h", "1d", "7d", "30d", "90d", "180d", "365d", "730d", "1825d")
#: The largest values that a spec accepts.
_PE_MAX, _AGE_MAX_S = 10_000_000, 60 * 365 * 86400
_READS_MAX, _COPYBACKS_MAX = 2**32 - 1, 255
#: Suffixes of the files that `Reliability.save` writes.
SUFFIXES = (".html", ".svg", ".pdf", ".png", ".csv")
#: Retentions of a curve in the picture.
_CURVE = 300


@dataclass(frozen=True, eq=False, repr=False)
class Reliability:
    """RBER and read level by page kind, retention and P/E cycles, and the latency of each read level.

    The arrays `rber`, `level` and `susceptible` have the shape `(kinds, retentions, P/E cycles)`.
    """

    #: The spec of the drive.
    spec: Spec
    #: P/E cycles of the block: the last dimension of the arrays.
    pe_cycles: NDArray[np.int64]
    #: Ages of the data in seconds: the second dimension of the arrays.
    retention_s: NDArray[np.int64]
    #: Reads of the block since its erase.
    reads: int
    #: Copybacks of the page in a row.
    copybacks: int
    #: `("all",)`, or the page kinds that the model distinguishes, such as `("lsb", "msb")`: the first dimension.
    kinds: tuple[str, ...]
    #: Raw bit error rate, 0 to 0.5.
    rber: NDArray[np.float64]
    #: The least read level that decodes the page; 0 when no level decodes it.
    level: NDArray[np.int64]
    #: Share of a page's bits that soft sensing finds between its outermost references, 0 to 1; `None` for a model
    #: without voltages (`rber.table`).
    susceptible: NDArray[np.float64] | None
    #: One row per read level: `level`, `rber_max` (the level decodes every RBER below; with the levels of a code, at a
    #: Gaussian boundary), `sense_us`, `transfer_us`, `decode_us`, and the latency of a page read on an idle drive, with
    #: command and off-chip path: `direct_us` when the first try uses this level, `full_us` and `incremental_us` for all
    #: tries from level 1 up, by `ecc.retry`.
    levels: Columns

    def __repr__(self) -> str:
        shape = f"{len(self.kinds)} page kinds x {len(self.retention_s)} ages x {len(self.pe_cycles)} P/E cycles"
        return f"<Reliability of {shape}: RBER {self.rber.min():.2e} to {self.rber.max():.2e}>"

    @property
    def has_code(self) -> bool:
        """Whether the read levels are those of a code (`ecc.levels.codec`)."""
        return "codec" in json.loads(self.spec.canonical_json())["ecc"]["levels"]

    @property
    def columns(self) -> Columns:
        """One row per point: `kind`, `pe_cycles`, `retention_s`, `rber`, `level` and, unless `None`, `susceptible`."""
        kinds, retention, pe = np.meshgrid(np.arange(len(self.kinds)), self.retention_s, self.pe_cycles, indexing="ij")
        columns: Columns = {
            "kind": np.array(self.kinds, dtype=object)[kinds.ravel()],
            "pe_cycles": pe.ravel(),
            "retention_s": retention.ravel(),
            "rber": self.rber.ravel(),
            "level": self.level.ravel(),
        }
        if self.susceptible is not None:
            columns["susceptible"] = self.susceptible.ravel()
        return columns

    @cached_property
    def published(self) -> Published | None:
        """Published figures of aged 3D flash beside the model `vth-tlc`; `None` for another model."""
        return interruptible(lambda: _published(self.spec))

    def frame(self) -> pl.DataFrame:
        """`columns` as a polars data frame."""
        from nandlab.tables import to_frame

        return to_frame(self.columns)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `nandlab reliability --json`: `points` and `levels` as rows, with None for a missing value.

        With the model `vth-tlc` also the published figures beside the model.
        """
        points = _rows(self.columns)
        for row in points:
            row["level"] = row["level"] or None
        found = {"reads": self.reads, "copybacks": self.copybacks, "points": points, "levels": _rows(self.levels)}
        if self.published is not None:
            figures = [
                {name: _plain(value) for name, value in vars(figure).items()} for figure in self.published.figures
            ]
            found["published"] = {"figures": figures, "deviation": _plain(self.published.deviation)}
        return found

    def save(self, out: str | os.PathLike[str], *, susceptible: bool = False) -> Path:
        """Write a page (`.html`), a picture (`.svg`, `.pdf`, `.png`) or the points (`.csv`); returns the path.

        Page and picture have curves from the least to the greatest retention above 0, and need at least two retentions
        and the extra `figures`; `susceptible` adds a plot of that share. An existing file is replaced. Raises
        `OutputError`.
        """
        path = Path(out)
        kind = check_suffix(path)
        if kind == "csv":
            write_file(path, self._csv())
            return path
        from nandlab.reporting.extra import need_figures

        need_figures(f"no {path}")
        from nandlab.reporting.reliability import page, picture

        curves = self._curves()
        if kind == "html":
            from nandlab.reporting.render import html_of

            made = html_of(page(self, curves, path.stem, _core.version(), susceptible=susceptible)).encode()
        else:
            made = picture(curves, kind, susceptible=susceptible)
        write_file(path, made)
        return path

    def _csv(self) -> bytes:
        out = io.StringIO()
        out.write(",".join(self.columns) + "\n")
        for row in _rows(self.columns):
            out.write(",".join("" if value is None else str(value) for value in row.values()) + "\n")
        return out.getvalue().encode()

    def _curves(self) -> Reliability:
        """The same conditions at as many retentions as a curve needs."""
        drawn = self.retention_s[self.retention_s > 0]
        if drawn.size == 0 or drawn.min() == drawn.max():
            raise OutputError(
                "a picture over retention needs two retentions above 0, such as --retention 1h,365d\n"
                "  remedy: name more retentions, or write a .csv"
            )
        steps = np.geomspace(drawn.min(), drawn.max(), _CURVE)
        ages = np.unique(np.concatenate([steps.round().astype(np.int64), drawn]))
        return _computed(self.spec, self.pe_cycles.tolist(), ages.tolist(), self.reads, self.copybacks)


def reliability(
    spec: Spec | str | os.PathLike[str],
    pe_cycles: Sequence[int] | None = None,
    retention: Sequence[float | str] | None = None,
    *,
    sets: Sets = (),
    reads: int = 0,
    copybacks: int = 0,
) -> Reliability:
    """Return RBER and read level of a drive over retention and P/E cycles, and the latency of each read level.

    `spec` is a `Spec`, or an argument of `nandlab.load`; it needs no workload. `pe_cycles` are whole numbers from 0 to
    10 million, by default even steps up to `drive.endurance`. `retention` are ages in seconds, or texts such as `"1h"`
    and `"365d"` (s, min, h, d), up to 60 years, by default from an hour to five years. Both are sorted, without
    duplicates. `reads` (0 to 4,294,967,295) are the reads of the block since its erase; they count for `read_disturb`
    and for a table with reads. `copybacks` (0 to 255) in a row, before the retention, add
    `copyback_error` each, or with `reliability.copyback = "propagate"` the RBER of unaged data.

    `reliability.rber` gives the RBER (the model `vth` is evaluated; a run looks its values up in a table), `ecc.levels`
    the read level. For the drive and the conditions of the LaLDPC paper the result is Fig. 5 of the paper: Y. Du et
    al., "LaLDPC: latency-aware LDPC for read performance improvement of solid state drives", MSST 2017.

    Raises `SpecError` for a spec that is refused, `RunError` for a spec without bit errors
    (`reliability.rber = "none"`), `ValueError` for values out of range.
    """
    checked = spec.with_(sets) if isinstance(spec, Spec) else load(spec, sets)
    cycles = _default_pe_cycles(checked) if pe_cycles is None else [_whole("pe_cycles", n, _PE_MAX) for n in pe_cycles]
    ages = [seconds(age) for age in (_RETENTION if retention is None else retention)]
    if not cycles or not ages:
        raise ValueError("name at least one number of P/E cycles and one retention")
    reads, copybacks = _whole("reads", reads, _READS_MAX), _whole("copybacks", copybacks, _COPYBACKS_MAX)
    return _computed(checked, sorted(set(cycles)), sorted(set(ages)), reads, copybacks)


def _computed(spec: Spec, pe_cycles: list[int], ages_s: list[int], reads: int, copybacks: int) -> Reliability:
    raw = interruptible(lambda: _core.reliability(spec, pe_cycles, ages_s, reads, copybacks))
    points = decode(raw["points"])
    kinds = tuple(dict.fromkeys(points["kind"].tolist()))
    shape = (len(kinds), len(ages_s), len(pe_cycles))
    susceptible = points["susceptible"].reshape(shape)
    return Reliability(
        spec=spec,
        pe_cycles=np.array(pe_cycles, dtype=np.int64),
        retention_s=np.array(ages_s, dtype=np.int64),
        reads=reads,
        copybacks=copybacks,
        kinds=kinds,
        rber=points["rber"].reshape(shape),
        level=points["level"].astype(np.int64).reshape(shape),
        susceptible=susceptible if bool(np.isfinite(susceptible).all()) else None,
        levels=decode(raw["levels"]),
    )


def _default_pe_cycles(spec: Spec) -> list[int]:
    """0 and even, round steps up to the endurance: four to nine values, or each value up to an endurance below 8."""
    import tomllib

    endurance = int(tomllib.loads(spec.to_toml())["drive"]["endurance"])
    if endurance < 8:
        return list(range(endurance + 1))
    power = 10 ** int(math.log10(endurance / 8))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= endurance / 8)
    return list(range(0, endurance + 1, step))


def seconds(age: float | str) -> int:
    """A retention in whole seconds, from a number of seconds or a text such as `"30d"`; raises `ValueError`."""
    if isinstance(age, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", age)
        if found is None or found[2] not in _UNITS_S:
            raise ValueError(f"retention {age!r}: expected a number with s, min, h or d, such as 12h or 365d")
        value = float(found[1]) * _UNITS_S[found[2]]
    else:
        value = float(age)
    if not 0 <= value <= _AGE_MAX_S:
        raise ValueError(f"retention {age!r}: expected 0 to 60 years (21900d)")
    return round(value)


def _whole(name: str, value: Any, most: int) -> int:
    if isinstance(value, bool) or int(value) != value or not 0 <= value <= most:
        raise ValueError(f"{name} {value!r}: expected a whole number from 0 to {most:,}")
    return int(value)


def check_suffix(path: Path) -> str:
    """The format that the ending of a file name selects; raises `OutputError`."""
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(f"{path}: expected a file name that ends in one of {', '.join(SUFFIXES)}")
    return path.suffix.lower()[1:]


def _rows(columns: Columns) -> list[dict[str, Any]]:
    """Columns as rows of plain values, with None for NaN and infinity."""
    plain = {name: [_plain(value) for value in column.tolist()] for name, column in columns.items()}
    return [dict(zip(plain, values, strict=True)) for values in zip(*plain.values(), strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.12g}") if math.isfinite(value) else None
    return value
