"""From a study file to a study; what the runs' specs say is checked in `plan`."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nandlab._core import SpecError
from nandlab.errors import OutputError, os_error_text
from nandlab.study.axes import read_axes, smaller, values_of
from nandlab.study.expression import MAX_LENGTH, Expression
from nandlab.study.figures import FigureReader
from nandlab.study.file import StudyFile, StudyTable, read_tables
from nandlab.study.model import LABELS, Definition, Override, Part
from nandlab.study.problems import StudyError, problem, shown
from nandlab.study.reading import Reading
from nandlab.study.source import MAX_NAME, check_size, parse, read_text

MAX_RUNS = 10_000


def read(path: Path, *, smoke: bool = False) -> Definition:
    """Read a study file; raises `StudyError` with everything that is wrong, `OutputError` when it cannot be read."""
    origin = str(path)
    try:
        text = read_text(path)
        data, lines = parse(text, origin)
    except OSError as error:
        raise OutputError(os_error_text("read", path, error)) from None
    except SpecError as error:
        raise StudyError(error.errors) from None
    except ValueError as error:
        raise OutputError(f"{path}: {error}; a study is TOML in UTF-8") from None
    check_size(origin, data, lines)
    if "study" not in data:
        what = "a spec, not a study" if {"drive", "workload", "gc"} & data.keys() else "no study"
        remedy = "write [study] with title, question and base; `nandlab run` runs a spec"
        raise StudyError([problem(origin, None, "", f"this is {what}: it has no [study]", remedy)])
    reading = Reading(path, lines)
    return _read(reading, read_tables(data, reading.say), text, smoke)


def _read(reading: Reading, file: StudyFile, text: str, smoke: bool) -> Definition:
    study = file.study
    if study is None:
        reading.refuse()
    base = _base(reading, file, study)
    values = _values(reading, file)
    axes = read_axes(reading, file, values)
    # A part without variants counts too: what it has is looked through.
    if sum(map(_size, axes.parts)) > MAX_RUNS:
        told = f"more than {MAX_RUNS:,} runs"
        reading.say(("grid",), told, "give fewer axes, values or parts, or make two studies")
        reading.refuse()
    all_axes = list(dict.fromkeys(axis for part in axes.parts for axis in part.grid))
    smoke_sets: tuple[Override, ...] = ()
    if file.smoke is not None:
        small = smaller(reading, axes, file.smoke)
        small_sets = reading.sets(file.smoke.set, ("smoke", "set"))
        if smoke:
            axes, smoke_sets = small, small_sets
    columns = {column: values_of(column, axes.parts) for column in [*LABELS, *all_axes]}
    metrics = _metrics(reading, file, columns)
    reader = FigureReader(reading, columns, axes.factors, smoke)
    figures = reader.figures(file)
    claims = reader.claims(file, figures)
    if reading.problems:
        reading.refuse()
    return Definition(
        path=str(reading.path),
        name=_own_name(reading.path) if study.name is None else study.name,
        title=study.title or "",
        question=study.question or "",
        notes=study.notes or "",
        **base,
        base_dir=reading.base_dir,
        factors=axes.factors,
        parts=tuple(axes.parts),
        axes=tuple(dict.fromkeys(axis for part in axes.parts for axis in part.grid)),
        names=frozenset(columns) | axes.facts,
        smoke=smoke,
        smoke_sets=smoke_sets,
        values=axes.values,
        metrics=metrics,
        metric_lines={key: reading.line(("metrics", key)) for key in metrics},
        figures=tuple(figures),
        claims=tuple(claims),
        text=text,
        titles=axes.titles,
    )


def _size(part: Part) -> int:
    """Runs of a part."""
    return math.prod(max(len(found), 1) for found in (part.variants, part.workloads, *part.grid.values()))


def _own_name(path: Path) -> str:
    """What the study is called that says nothing: as its file, or as the folder of a study.toml."""
    path = Path(os.path.abspath(path))
    own = path.parent.name if path.stem == "study" else path.stem
    named = re.sub(r"[^\w.-]+", "-", own).lstrip(".").encode()[:MAX_NAME].decode(errors="ignore")
    return named or "study"


def _values(reading: Reading, file: StudyFile) -> dict[str, Any]:
    """What `{name}` in an override stands for."""
    for key, value in (file.values or {}).items():
        if len(str(value)) > MAX_LENGTH:
            reading.say(("values", key), f"more than {MAX_LENGTH:,} characters", "write less")
    return dict(file.values or {})


def _metrics(reading: Reading, file: StudyFile, columns: Mapping[str, Any]) -> dict[str, Expression]:
    for key in file.metrics or {}:
        if key in columns:
            reading.say(("metrics", key), "a column of this name is there already", "choose another name")
    return {key: expression for key, expression in (file.metrics or {}).items() if expression is not None}


def _base(reading: Reading, file: StudyFile, study: StudyTable) -> dict[str, Any]:
    """The base spec: a file, or the keys under [base]."""
    path = ("study", "base")
    if not study.base:
        if not file.has("base") and not study.has("base"):
            remedy = 'name a spec, base = "base.toml", or write its keys under [base]'
            reading.say(path, "missing", remedy)
        origin = str(reading.path)
        sets = reading.sets(file.base, ("base",))
        return {"base_text": "", "base_data": {}, "base_name": "study", "base_path": origin, "base_sets": sets}
    if file.base:
        reading.say(path, "a base file is named, and [base] is there as well", "keep one of the two")
    base = reading.path.parent / study.base
    reading.base_dir = base.parent.absolute()
    text: str = ""
    data: dict[str, Any] = {}
    # What is in the file is not told: it may be any that the user can read.
    try:
        text = read_text(base)
        data, _ = parse(text, "")
    except OSError as error:
        told = os_error_text("read", shown(base, 200), error)
        reading.say(path, told, "a relative path counts from the study's directory")
    except (SpecError, StudyError) as error:
        first = error.errors[0]
        what = first["message"].split(":")[0]
        remedy = "write it as TOML, with few tables and lists within one another"
        reading.say(path, f"the base spec is no spec: {shown(base, 200)}:{first['line']}: {what}", remedy)
    except ValueError as error:
        reading.say(path, f"cannot read {shown(base, 200)}: {error}", "a spec is a file of TOML in UTF-8")
    return {"base_text": text, "base_data": data, "base_name": base.name, "base_path": str(base), "base_sets": ()}
