"""Reads a study file into a `Definition`; `plan` checks the specs of the runs."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nandlab._core import SpecError
from nandlab.errors import OutputError, os_error_text
from nandlab.study.axes import Seeds, read_axes, smaller, values_of
from nandlab.study.claims import ClaimReader
from nandlab.study.expression import MAX_LENGTH, Expression
from nandlab.study.figures import FigureReader
from nandlab.study.file import StudyFile, StudyTable, read_tables
from nandlab.study.model import COLUMNS, LABELS, SEED, Definition, Override, Part, Ranges
from nandlab.study.parameters import check_ranges, read_parameters
from nandlab.study.problems import StudyError, near, problem, shown
from nandlab.study.reading import Reading
from nandlab.study.source import MAX_NAME, check_size, parse, read_text

MAX_RUNS = 10_000


def read(path: Path, *, smoke: bool = False, seeds: int | None = None) -> Definition:
    """Read a study file; raises `StudyError` with all errors, `OutputError` for a file that cannot be read.

    `seeds` is the wanted number of replicates; by default that of the file, and one at smoke size.
    """
    try:
        text = read_text(path)
    except OSError as error:
        raise OutputError(os_error_text("read", path, error)) from None
    except ValueError as error:
        raise OutputError(f"{path}: {error}\n  remedy: save the study as TOML in UTF-8") from None
    return read_of(text, path, smoke=smoke, seeds=seeds)


def read_of(text: str, path: Path, *, smoke: bool = False, seeds: int | None = None) -> Definition:
    """Read the text of a study file, as `read` does; `path` names the file in messages, and need not exist."""
    origin = str(path)
    try:
        data, lines = parse(text, origin)
    except SpecError as error:
        raise StudyError(error.errors) from None
    check_size(origin, data, lines)
    if "study" not in data:
        found = "a spec" if {"drive", "workload", "gc"} & data.keys() else "a file without [study]"
        remedy = "write [study] with title, question and base; `nandlab run` runs a spec"
        raise StudyError([problem(origin, None, "", f"expected a study, found {found}", remedy)])
    reading = Reading(path, lines)
    _extend(reading, data)
    return _read(reading, read_tables(data, reading.report), text, smoke, seeds)


#: Tables that a study takes over from the one that it extends; its own entries come first.
_INHERITED = ("base", "values", "variants", "factors", "workloads", "parameters", "metrics")


def _extend(reading: Reading, data: dict[str, Any]) -> None:
    """Add the inherited tables of the study that [study] extends names."""
    study = data["study"]
    name = study.get("extends") if isinstance(study, dict) else None
    if not isinstance(name, str):
        return
    path = ("study", "extends")
    if name != os.path.basename(name) or not name:
        reading.report(path, "expected a file of the same folder", 'write extends = "study.toml"')
        return
    there = reading.path.parent / name
    try:
        text = read_text(there)
        inherited, _ = parse(text, str(there))
    except OSError as error:
        reading.report(path, os_error_text("read", shown(there, 200), error), "name an existing study file")
        return
    except ValueError as error:
        reading.report(path, f"cannot read {shown(there, 200)}: {error}", "save the study as TOML in UTF-8")
        return
    except SpecError as error:
        raise StudyError(error.errors) from None
    of_study = inherited.get("study")
    if not isinstance(of_study, dict) or "extends" in of_study:
        reading.report(path, f"{shown(there, 200)} is no study, or extends another", "name a study without `extends`")
        return
    if "base" in of_study:
        study.setdefault("base", of_study["base"])
    for table in _INHERITED:
        own, other = data.get(table, {}), inherited.get(table, {})
        if isinstance(own, dict) and isinstance(other, dict) and other:
            data[table] = {**other, **own}
            if table == "parameters":
                reading.inherited_parameters = frozenset(other.keys() - own.keys())


def _read(reading: Reading, file: StudyFile, text: str, smoke: bool, seeds: int | None) -> Definition:
    study = file.study
    if study is None:
        reading.refuse()
    base = _base(reading, file, study)
    values = _values(reading, file)
    if smoke and seeds is None and SEED not in ((file.smoke and file.smoke.grid) or {}):
        seeds = 1
    axes = read_axes(reading, file, values, Seeds(_first_seed(base), study.replicates, seeds))
    if study.setting is not None and study.setting not in (names := [part.name for part in axes.parts]):
        message = f'unknown part "{shown(study.setting)}"'
        reading.report(("study", "setting"), message, near(study.setting, names))
    # A part without variants counts as one run, because its tables are read too.
    if sum(map(_size, axes.parts)) > MAX_RUNS:
        message = f"more than {MAX_RUNS:,} runs"
        reading.report(("grid",), message, "give fewer axes, values or parts, or make two studies")
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
    claims = ClaimReader(reader, {figure.id: figure for figure in figures}, study.setting).claims(file)
    parameters = read_parameters(reading, file, figures, claims)
    extended = _extended(reading, file, study, axes.parts, smoke)
    ranges = _ranges(reading, study)
    if ranges is not None:
        check_ranges(reading, parameters, ranges)
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
        setting=study.setting,
        parameters=parameters,
        values=axes.values,
        metrics=metrics,
        metric_lines={key: reading.line(("metrics", key)) for key in metrics},
        figures=tuple(figures),
        claims=tuple(claims),
        text=text,
        titles=axes.titles,
        ranges=ranges,
        extended=extended,
    )


def _extended(
    reading: Reading, file: StudyFile, study: StudyTable, parts: Sequence[Part], smoke: bool
) -> Definition | None:
    """The extended study, whose headlines the parts with `range` judge."""
    if not any(part.range for part in parts):
        return None
    for part in parts:
        path = ("parts", part.name, "range")
        if part.range and study.extends is None:
            reading.report(
                path, "no study whose headlines the part could judge", 'write [study] extends = "study.toml"'
            )
            return None
        reading.names(list(part.range), path, [*(file.parameters or {}), *(file.values or {})])
    try:
        return read(reading.path.parent / (study.extends or ""), smoke=smoke)
    except StudyError as error:
        first = error.errors[0]
        message = f"the extended study is not valid: {first['key']}: {first['message']}"
        reading.report(("study", "extends"), message, "run `nandlab study --check` on that study")
        return None


def _ranges(reading: Reading, study: StudyTable) -> Ranges | None:
    """The study that `ranges` names: its name, and its parts with `range`."""
    name = study.ranges
    if name is None:
        return None
    path = ("study", "ranges")
    there = reading.path.parent / name
    if name != os.path.basename(name):
        reading.report(path, "expected a file of the same folder", 'write ranges = "maps.toml"')
        return None
    try:
        data, _ = parse(read_text(there), str(there))
    except OSError as error:
        reading.report(path, os_error_text("read", shown(there, 200), error), "name an existing study file")
        return None
    except (ValueError, SpecError) as error:
        reading.report(path, f"cannot read {shown(there, 200)}: {shown(error, 200)}", "save the study as TOML in UTF-8")
        return None
    of_study, parts = data.get("study"), data.get("parts")
    if not isinstance(of_study, dict) or of_study.get("extends") != reading.path.name or not isinstance(parts, dict):
        remedy = f'write [study] extends = "{reading.path.name}" and [parts] in that file'
        reading.report(path, f"{shown(there, 200)} does not extend this study", remedy)
        return None
    keys: dict[str, list[str]] = {}
    for part, table in parts.items():
        named = table.get("range", []) if isinstance(table, dict) else []
        found = [named] if isinstance(named, str) else [key for key in named if isinstance(key, str)]
        if found:
            keys[part] = found
    own = of_study.get("name")
    return Ranges(
        own if isinstance(own, str) else _own_name(there),
        f"{there.absolute().parent.name}/{name}",
        tuple(keys),
        frozenset(key for found in keys.values() for key in found),
    )


def _first_seed(base: Mapping[str, Any]) -> int:
    """The seed of the first replicate: that of the base spec."""
    own = [override.value for override in base["base_sets"] if override.key == SEED]
    seed = own[-1] if own else base["base_data"].get(SEED)
    return seed if isinstance(seed, int) and not isinstance(seed, bool) else 1


def _size(part: Part) -> int:
    """The number of runs of a part."""
    return math.prod(max(len(found), 1) for found in (part.variants, part.workloads, *part.grid.values()))


def _own_name(path: Path) -> str:
    """The default name of a study: that of its file, or of the folder of a study.toml."""
    path = Path(os.path.abspath(path))
    own = path.parent.name if path.stem == "study" else path.stem
    named = re.sub(r"[^\w.-]+", "-", own).lstrip(".").encode()[:MAX_NAME].decode(errors="ignore")
    return named or "study"


def _values(reading: Reading, file: StudyFile) -> dict[str, Any]:
    """The values of `{name}` in overrides."""
    for key, value in (file.values or {}).items():
        if len(str(value)) > MAX_LENGTH:
            reading.report(("values", key), f"more than {MAX_LENGTH:,} characters", "write a shorter value")
    return dict(file.values or {})


def _metrics(reading: Reading, file: StudyFile, columns: Mapping[str, Any]) -> dict[str, Expression]:
    for key in file.metrics or {}:
        if key in columns or key in COLUMNS:
            reading.report(("metrics", key), "a column has this name already", "choose another name")
    return {key: expression for key, expression in (file.metrics or {}).items() if expression is not None}


def _base(reading: Reading, file: StudyFile, study: StudyTable) -> dict[str, Any]:
    """The base spec: a file, or the keys in [base]."""
    path = ("study", "base")
    if not study.base:
        if not file.has("base") and not study.has("base"):
            remedy = 'name a spec, base = "base.toml", or write its keys in [base]'
            reading.report(path, "missing", remedy)
        origin = str(reading.path)
        sets = reading.sets(file.base, ("base",))
        return {"base_text": "", "base_data": {}, "base_name": "study", "base_path": origin, "base_sets": sets}
    if file.base:
        reading.report(path, "the study has a base file and [base]", "keep one of them")
    base = reading.path.parent / study.base
    reading.base_dir = base.parent.absolute()
    text: str = ""
    data: dict[str, Any] = {}
    # Messages do not quote the file, which may be any file that the user can read.
    try:
        text = read_text(base)
        data, _ = parse(text, "")
    except OSError as error:
        message = os_error_text("read", shown(base, 200), error)
        reading.report(path, message, "name an existing file; a relative path starts at the study's directory")
    except (SpecError, StudyError) as error:
        first = error.errors[0]
        what = first["message"].split(":")[0]
        remedy = "write the base spec as TOML with fewer nested tables and lists"
        reading.report(path, f"the base spec is not valid: {shown(base, 200)}:{first['line']}: {what}", remedy)
    except ValueError as error:
        reading.report(path, f"cannot read {shown(base, 200)}: {error}", "save the spec as TOML in UTF-8")
    return {"base_text": text, "base_data": data, "base_name": base.name, "base_path": str(base), "base_sets": ()}
