"""Measurements of a drive: rows of a CSV file, or results of fio in JSON.

A row is one measurement: the load under which it was made, and the values measured under this load.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nandlab.errors import OutputError, shown
from nandlab.study.problems import near

#: The most bytes of a file, since a device may have no end.
_BYTES_MAX = 64 << 20
#: The most rows of a calibration.
ROWS_MAX = 1000
#: Columns that describe the load, with their other names.
LOADS = {
    "rate": "rate",
    "rate_iops": "rate",
    "queue_depth": "queue_depth",
    "depth": "queue_depth",
    "iodepth": "queue_depth",
    "read_fraction": "read_fraction",
    "read_share": "read_fraction",
    "mix": "read_fraction",
    "size": "size",
    "span": "span",
    "zipf": "zipf",
}
_STATISTICS = ("mean", "p50", "p95", "p99", "p999", "max")
#: Columns of measured values.
VALUES = (
    *("iops", "read_iops", "write_iops", "mb_per_s", "waf"),
    *(f"{op}_{statistic}_us" for op in ("read", "write", "all") for statistic in _STATISTICS),
)
#: Columns of texts.
_TEXTS = ("name", "split")
SPLITS = ("fit", "held-out", "ignore")
#: Percentiles of fio that are compared, by the name of the statistic.
_PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
#: The largest relative error that a bin of fio's histogram makes: 64 bins per power of two, half a bin.
_BIN = 1 / 128


@dataclass(frozen=True)
class Value:
    """A measured value."""

    #: The name of a column, such as `read_p99_us`.
    metric: str
    #: The client that it belongs to; empty for the whole workload.
    client: str
    #: In the unit of its name, above 0.
    value: float
    #: The standard error of the value as it is written or binned, relative to the value.
    error: float

    @property
    def name(self) -> str:
        """The name of the column."""
        return f"{self.metric}:{self.client}" if self.client else self.metric


@dataclass(frozen=True)
class Row:
    """One measurement."""

    #: From 1, over all files.
    number: int
    name: str
    #: The file and the place in it.
    origin: str
    #: The load: columns of `LOADS`, also with `:CLIENT`, and keys of the spec.
    load: dict[str, str]
    values: tuple[Value, ...]
    #: `fit`, `held-out` or `ignore`.
    split: str = "fit"
    #: The text of the fio job file that made it; empty for none.
    jobs: str = ""
    #: The names of the jobs of fio, in the order of their results.
    results: tuple[str, ...] = field(default=())


def read_all(paths: Sequence[Path]) -> list[Row]:
    """The rows of all files, numbered from 1; raises `OutputError`."""
    rows: list[Row] = []
    for path in paths:
        text = _text(path)
        found = _of_fio(path, text) if '"fio version"' in text else _of_csv(path, text)
        rows += [replace(row, number=len(rows) + at) for at, row in enumerate(found, 1)]
    if len(rows) > ROWS_MAX:
        raise OutputError(f"{len(rows):,} rows; the limit is {ROWS_MAX:,}\n  remedy: give fewer rows")
    return rows


def hold_out(rows: Sequence[Row], selection: str) -> list[Row]:
    """The rows with those of a selection held out; raises `OutputError`.

    A selection has numbers and ranges of rows, `odd` or `even`, with commas between them: `2,5-7`, `even`.
    """
    chosen: set[int] = set()
    for part in (part.strip() for part in selection.split(",")):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if part in ("odd", "even"):
            chosen |= {row.number for row in rows if row.number % 2 == (part == "odd")}
        elif match and 1 <= int(match[1]) <= int(match[2] or match[1]) <= len(rows):
            chosen |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
        else:
            raise OutputError(
                f"--hold-out {shown(selection)}: {shown(part) or 'an empty part'} selects no row\n"
                f"  remedy: write numbers from 1 to {len(rows)}, ranges such as 2-4, odd or even, with commas between "
                "them"
            )
    held = [replace(row, split="held-out") if row.number in chosen and row.split != "ignore" else row for row in rows]
    return held


def _text(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(_BYTES_MAX + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"cannot read the measurement {shown(path)}: {reason}\n  remedy: check the path") from None
    if len(data) > _BYTES_MAX:
        raise OutputError(f"{shown(path)}: more than 64 MiB\n  remedy: check that this is the right file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise OutputError(f"{shown(path)}: not UTF-8 text\n  remedy: save it as CSV or JSON in UTF-8") from None


# CSV.


def _of_csv(path: Path, text: str) -> Iterator[Row]:
    lines = csv.reader(io.StringIO(text))
    head: list[str] = []
    count = 0
    for cells in lines:
        if not any(cell.strip() for cell in cells) or cells[0].lstrip().startswith("#"):
            continue
        place = f"{shown(path)}:{lines.line_num}"
        if not head:
            head = [cell.strip() for cell in cells]
            _check_head(head, place)
            continue
        if len(cells) != len(head):
            raise OutputError(
                f"{place}: {len(cells)} cells, and the head has {len(head)}\n  remedy: give each column a cell, empty "
                "for a value that was not measured"
            )
        count += 1
        yield _row(dict(zip(head, map(str.strip, cells), strict=True)), place)
    if not count:
        raise OutputError(
            f"{shown(path)}: no row\n  remedy: write a head with the names of the columns, and a row each load"
        )


def _check_head(head: Sequence[str], place: str) -> None:
    for name in head:
        plain, _, client = name.partition(":")
        known = plain in LOADS or plain in _TEXTS or _metric(plain) is not None
        if not known and not (re.fullmatch(r"[a-z_]+(\.[\w-]+)+", name)):
            names = [*LOADS, *VALUES, *_TEXTS]
            raise OutputError(
                f"{place}: unknown column {shown(name) or '(without a name)'}\n  remedy: {near(plain, names)}; or a "
                "key of the spec such as drive.op"
            )
        if plain in _TEXTS and client:
            raise OutputError(f"{place}: {shown(name)}: this column has no client\n  remedy: write {plain}")
    double = next((name for at, name in enumerate(head) if name in head[:at]), None)
    if double is not None:
        raise OutputError(f"{place}: the column {shown(double)} is there twice\n  remedy: remove one")
    if not any(_metric(name.partition(":")[0]) == "" for name in head):
        raise OutputError(
            f"{place}: no column has a measured value\n  remedy: add one, such as iops, read_p99_us or waf"
        )
    for name in head:
        plain, colon, client = name.partition(":")
        if _metric(plain) == "_se" and plain[:-3] + colon + client not in head:
            raise OutputError(
                f"{place}: {shown(name)}: there is no column {plain[:-3] + colon + client}\n  remedy: add it"
            )


def _metric(name: str) -> str | None:
    """The part of the name of a value after the metric: empty, `_se` for a standard error, `None` for no value."""
    if name in VALUES:
        return ""
    return "_se" if name.endswith("_se") and name[:-3] in VALUES else None


def _row(cells: dict[str, str], place: str) -> Row:
    load: dict[str, str] = {}
    values: list[Value] = []
    for name, cell in cells.items():
        plain, colon, client = name.partition(":")
        if not cell or plain in _TEXTS or _metric(plain) == "_se":
            continue
        if plain in VALUES:
            value = _number(cell, place, name)
            error = _resolution(cell) / value
            if spread := cells.get(f"{plain}_se{colon}{client}", ""):
                error = math.hypot(error, _number(spread, place, f"{plain}_se") / value)
            values.append(Value(plain, client, value, error))
        elif plain in LOADS:
            load[LOADS[plain] + colon + client] = cell
        else:
            load[name] = cell
    split = cells.get("split", "") or "fit"
    if split not in SPLITS:
        raise OutputError(f"{place}: split: unknown {shown(split)}\n  remedy: write {', '.join(SPLITS)}")
    if not values:
        raise OutputError(f"{place}: the row has no measured value\n  remedy: add one, or remove the row")
    name = cells.get("name", "") or ", ".join(f"{key} {value}" for key, value in load.items()) or "the spec as it is"
    return Row(0, name, place, load, tuple(values), split)


def _number(cell: str, place: str, name: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise OutputError(
            f"{place}: {shown(name)}: expected a number above 0, found {shown(cell)}\n  remedy: correct the cell, or "
            "leave it empty"
        )
    return value


def _resolution(cell: str) -> float:
    """The standard error of a number that is rounded to its last digit."""
    mantissa, _, exponent = cell.lower().partition("e")
    digits = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return 10.0**-digits / math.sqrt(12)


# fio.


def _of_fio(path: Path, text: str) -> Iterator[Row]:
    # fio may print lines before the JSON.
    try:
        report = json.loads(text[text.index("{") :])
        results = report["jobs"]
        groups = sorted({int(result["groupid"]) for result in results})
    except (ValueError, KeyError, TypeError):
        raise OutputError(
            f"{shown(path)}: no complete result of fio\n  remedy: run fio with --output-format=json (or json+) and "
            "--output=FILE"
        ) from None
    of_all = report.get("global options", {})
    for group in groups:
        mine = [result for result in results if int(result["groupid"]) == group]
        yield _of_group(path, of_all, mine)


def _of_group(path: Path, of_all: dict[str, str], results: list[dict[str, Any]]) -> Row:
    options = {result["jobname"]: result.get("job options", {}) for result in results}
    sections = [_section("global", of_all)] + [_section(name, own) for name, own in options.items()]
    values: list[Value] = []
    for at, result in enumerate(results):
        # The number of the result stands for its client until the clients are known.
        values += _values(result, "" if len(results) == 1 else f"#{at}")
    if not values:
        raise OutputError(f"{shown(path)}: no requests of reads or writes\n  remedy: measure reads or writes")
    names = tuple(result["jobname"] for result in results)
    return Row(0, ", ".join(options), shown(path), {}, tuple(values), jobs="\n".join(sections), results=names)


def _section(name: str, options: dict[str, str]) -> str:
    # A stonewall has made the group; the jobs of a group run at once.
    lines = [f"{key}={value}" if value else key for key, value in options.items() if key not in ("stonewall", "name")]
    return "\n".join([f"[{name}]", *lines])


def _values(result: dict[str, Any], client: str) -> Iterator[Value]:
    for op in ("read", "write"):
        part = result.get(op, {})
        count = part.get("total_ios", 0)
        if not count or not part.get("iops"):
            continue
        yield Value(f"{op}_iops", client, float(part["iops"]), 0.0)
        latency = part.get("clat_ns", {})
        if latency.get("mean"):
            spread = float(latency.get("stddev", 0.0)) / float(latency["mean"]) / math.sqrt(count)
            yield Value(f"{op}_mean_us", client, float(latency["mean"]) / 1e3, spread)
        for statistic, percent in _PERCENTILES.items():
            # A percentile needs a few requests beyond it.
            found = percentile(latency, percent)
            if found and count * (1 - percent / 100) >= 10:
                yield Value(f"{op}_{statistic}_us", client, found / 1e3, _BIN / math.sqrt(3))


def percentile(latency: dict[str, Any], percent: float) -> float | None:
    """A percentile of a latency of fio, in ns: from its bins (`json+`), else as fio has it; `None` without it."""
    if bins := latency.get("bins"):
        rank = math.ceil(sum(bins.values()) * percent / 100)
        seen = 0
        for middle, count in sorted((int(key), int(value)) for key, value in bins.items()):
            seen += count
            if seen >= rank:
                return float(middle)
    given = latency.get("percentile", {})
    return next((float(value) for key, value in given.items() if math.isclose(float(key), percent)), None)
