"""The runs of a study, with resolved and checked specs and the identity of each run."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nandlab import _core
from nandlab._core import Spec, SpecError
from nandlab._types import Problem
from nandlab.python_policies import packed
from nandlab.spec import PATH_KEYS, set_arguments
from nandlab.study.effects import combination, missing, varied
from nandlab.study.expression import Expression, ExpressionError
from nandlab.study.model import (
    SEED,
    Choice,
    Claim,
    Definition,
    Measure,
    Override,
    Part,
    Where,
    filled,
    leaves,
    without,
)
from nandlab.study.problems import MAX_PROBLEMS, StudyError, near, problem, shown
from nandlab.trace import is_read_once

#: The most characters of the overrides of a run.
MAX_SETS = 20_000
#: Version of the stored runs; a new version changes the identity of each run.
_FORMAT = 1


@dataclass(frozen=True)
class InputFile:
    """An input file of a run, identified by its content."""

    #: The path on this machine.
    path: str
    #: SHA-256 of the content, in hexadecimal digits.
    digest: str
    #: Size in bytes.
    size: int
    #: The path in the spec of the run.
    name: str


@dataclass(frozen=True)
class Task:
    """Everything that a worker needs for a run, except the content of the input files."""

    identity: str
    label: str
    text: str
    name: str
    sets: tuple[str, ...]
    files: tuple[InputFile, ...]
    build: str
    #: Runs with the same key share a preconditioned drive; `None` for a run that shares none.
    drive: str | None = None
    #: The policies in Python that the run needs, by value.
    policies: bytes | None = None


@dataclass(frozen=True)
class PlannedRun:
    """A run of a study under its labels; runs with equal identities are done once."""

    part: str
    variant: str
    workload: str
    point: Mapping[str, Any]
    #: Facts of the workload and the variant, for expressions.
    facts: Mapping[str, float]
    #: The whole resolved spec, without the paths of its files.
    spec: Spec
    task: Task

    @property
    def identity(self) -> str:
        """Hash of the resolved spec, the content of the input files, and the build."""
        return self.task.identity

    @property
    def row(self) -> dict[str, Any]:
        """The labels and axis values of this run in the results table."""
        return {"part": self.part, "variant": self.variant, "workload": self.workload, **self.point}


@functools.cache
def build_identity() -> str:
    """The build of nandlab: its version, and a hash of the compiled core."""
    return _core.build_identity() or f"{_core.version()}+none"


@functools.cache
def program_identity() -> str:
    """The program that does the runs: the build, and a hash of the Python modules of nandlab.

    A worker has the program that planned the study. The identity of a run has the build alone: the modules that draw
    reports are part of the program, and a change of them repeats no finished run.
    """
    root = Path(__file__).parents[1]
    content = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        content.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
        content.update(path.read_bytes())
    return f"{build_identity()}+{content.hexdigest()[:16]}"


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file, in hexadecimal digits; raises `OSError`."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@functools.lru_cache(maxsize=4096)
def _digest(path: str, _size: int, _changed: int) -> str:
    return file_digest(path)


def plan(study: Definition) -> list[PlannedRun]:
    """All runs, in the order of the study file; raises `StudyError` with the errors of all runs."""
    runs: list[PlannedRun] = []
    problems: dict[tuple[Any, ...], tuple[Problem, list[str]]] = {}
    seen: dict[str, Task] = {}

    def note(found: Problem, label: str) -> None:
        key = (found["origin"], found["line"], found["key"], found["message"] if found["line"] else found["key"])
        problems.setdefault(key, (found, []))[1].append(label)

    for part, workload, variant, points in _combinations(study):
        point = {axis: choice.value for axis, choice in zip(part.grid, points, strict=True)}
        label = _label(study, part, workload, variant, point)
        overrides = _overrides(study, part, workload, variant, points, note, label)
        values = {**study.values, **workload.facts, **variant.facts, **point}
        overrides = [_filled(study, override, values, note, label) for override in overrides]
        try:
            files = _files(study, overrides)
            spec, task = _resolve(study, overrides, files, label)
        except _Unusable as found:
            note(found.problem, label)
            continue
        except SpecError as error:
            for entry in error.errors:
                note(_located(study, part, overrides, entry), label)
            if len(problems) >= MAX_PROBLEMS:
                break
            continue
        task = seen.setdefault(task.identity, task)
        runs.append(
            PlannedRun(part.name, variant.name, workload.name, point, {**workload.facts, **variant.facts}, spec, task)
        )
    if problems:
        raise StudyError(_with_runs(*entry) for entry in problems.values())
    if not runs:
        raise StudyError([problem(study.path, None, "", "the study has no run", "give variants, workloads or a grid")])
    _check_measures(study, runs)
    return runs


def _combinations(study: Definition) -> Iterator[tuple[Part, Choice, Choice, tuple[Choice, ...]]]:
    for part in study.parts:
        for workload in part.workloads:
            for points in itertools.product(*part.grid.values()):
                for variant in part.variants:
                    yield part, workload, variant, points


def _label(study: Definition, part: Part, workload: Choice, variant: Choice, point: Mapping[str, Any]) -> str:
    names = [part.name] if len(study.parts) > 1 else []
    names += [choice.name for choice in (workload, variant) if choice.name != "base"]
    names += [f"{axis}={value}" for axis, value in point.items()]
    return " ".join(names) or "base"


def _overrides(
    study: Definition,
    part: Part,
    workload: Choice,
    variant: Choice,
    points: tuple[Choice, ...],
    note: Any,
    label: str,
) -> list[Override]:
    """The overrides of the base spec; a later one replaces an earlier one of the same key."""
    free = [*workload.sets, *(override for point in points for override in point.sets), *variant.sets]
    first: dict[str, Override] = {}
    for override in free:
        before = first.setdefault(override.key, override)
        if before is not override:
            where = f"in line {before.line}" if before.line else "elsewhere"
            note(
                problem(
                    study.path,
                    override.line,
                    override.key,
                    f"set here and {where} for the same run",
                    "set the key in only one of variants, workloads and grid",
                ),
                label,
            )
    return [*study.base_sets, *part.sets, *free, *study.smoke_sets]


def _filled(study: Definition, override: Override, values: Mapping[str, Any], note: Any, label: str) -> Override:
    """An override with `{name}` in its value replaced by a value, and `{expression}` by a number."""

    def fill(name: str) -> Any:
        value = f"{{{name}}}"
        if name in values:
            return values[name]
        try:
            expression = Expression.parse(name)
        except ExpressionError as error:
            note(problem(study.path, override.line, override.key, str(error), error.remedy), label)
            return value
        unknown = [one for one in expression.names if one not in values]
        if unknown:
            message = f"unknown value {{{shown(unknown[0])}}}"
            note(problem(study.path, override.line, override.key, message, near(unknown[0], values)), label)
            return value
        computed = expression.value(values)
        if computed is None:
            message = f"{shown(value)} has no value"
            remedy = "use numbers that are not strings, and do not divide by 0"
            note(problem(study.path, override.line, override.key, message, remedy), label)
            return value
        return int(computed) if computed.is_integer() else computed

    return Override(override.key, filled(override.value, fill), override.line)


class _Unusable(Exception):
    """A run that cannot be done."""

    def __init__(self, found: Problem) -> None:
        self.problem = found


def _files(study: Definition, overrides: list[Override]) -> dict[str, InputFile]:
    """The input files of a run, by the spec key with their path."""
    named: dict[str, tuple[str, Override | None]] = {}
    for key in PATH_KEYS:
        section, name = key.split(".", 1)
        held = study.base_data.get(section)
        if isinstance(held, dict) and isinstance(held.get(name), str):
            named[key] = (held[name], None)
    for override in overrides:
        if override.key in PATH_KEYS and isinstance(override.value, str):
            named[override.key] = (override.value, override)
        elif override.key.startswith("workload.") and override.key.split(".")[1] in ("synthetic", "profile"):
            named.pop("workload.trace", None)
    found = {}
    for key, (written, source) in named.items():
        path = os.path.normpath(os.path.join(study.base_dir, written))
        origin, line = (study.path, source.line) if source is not None else (study.base_path, None)
        if is_read_once(path):
            message = f"{shown(written)} can be read only once, like a pipe, and a study reads it again"
            raise _Unusable(problem(origin, line, key, message, "save it in a file first"))
        try:
            found[key] = input_file(path)
        except OSError as error:
            relative = os.path.relpath(path, Path(origin).parent.absolute()) if not os.path.isabs(written) else written
            raise _Unusable(
                problem(
                    origin,
                    line,
                    key,
                    f"cannot read {shown(relative, 200)}: {error.strerror}",
                    "name an existing file; a relative path starts at the directory of the file that contains it",
                )
            ) from None
    return found


def _resolve(
    study: Definition, overrides: list[Override], files: Mapping[str, InputFile], label: str
) -> tuple[Spec, Task]:
    sets = [override.argument for override in overrides]
    if sum(map(len, sets)) > MAX_SETS:
        message = f"the overrides of the run {shown(label)} have more than {MAX_SETS:,} characters"
        raise StudyError(
            [problem(study.path, None, "", message, "override fewer keys, or set the keys in the base spec")]
        )
    spec, task = make_task(study.base_text, study.base_name, str(study.base_dir), sets, files, label)
    if not spec.has_workload:
        remedy = "add one to the base spec, or set workload.synthetic, workload.profile or workload.trace"
        raise _Unusable(problem(study.base_path, None, "workload", "the spec has no [workload]", remedy))
    return spec, task


def make_task(
    text: str, name: str, directory: str, sets: list[str], files: Mapping[str, InputFile], label: str
) -> tuple[Spec, Task]:
    """The spec and the task of a run: the spec `text` with `sets`, and its input files by key; raises `SpecError`."""
    sets = [*sets, *set_arguments({key: file.name for key, file in files.items()})]
    spec = Spec.load(text, name, directory, sets)
    content = {
        "format": _FORMAT,
        "program": build_identity(),
        "spec": json.loads(spec.canonical_json()),
        "files": {key: file.digest for key, file in files.items()},
    }
    for key in files:
        section, entry = key.split(".", 1)
        content["spec"].get(section, {}).pop(entry, None)
    written = json.dumps(content, sort_keys=True, separators=(",", ":"))
    identity = hashlib.sha256(written.encode()).hexdigest()[:24]
    inputs, drive = tuple(files.values()), spec.precondition_key()
    policies = packed(spec.policies)
    return spec, Task(identity, label, text, name, tuple(sets), inputs, program_identity(), drive, policies)


def input_file(path: str) -> InputFile:
    """An input file of runs, with the digest of its content; raises `OSError`."""
    facts = os.stat(path)
    digest = _digest(path, facts.st_size, facts.st_mtime_ns)
    return InputFile(path, digest, facts.st_size, f"{digest[:16]}/{os.path.basename(path)}")


def _located(study: Definition, part: Part, overrides: list[Override], entry: Problem) -> Problem:
    """An error in a resolved spec, at its place in the study file or in the base spec."""
    if entry["origin"] == "--set":
        for override in reversed(overrides):
            if (entry["key"] + ".").startswith(override.key + ".") or override.key.startswith(entry["key"] + "."):
                remedy = entry["remedy"]
                if override.key in part.grid and "." not in override.key and entry["message"].startswith("unknown"):
                    remedy += f'; or, for "{{{override.key}}}" in a set, declare {override.key} in [values]'
                return {**entry, "origin": study.path, "line": override.line, "remedy": remedy}
        return {**entry, "origin": study.path, "line": None}
    if entry["origin"] == study.base_name:
        # Messages do not quote the base spec, which may be any file that the user can read.
        remedy = "write the base spec as TOML" if entry["message"].startswith("not TOML") else entry["remedy"]
        return {**entry, "origin": study.base_path, "remedy": remedy}
    return entry


def _with_runs(found: Problem, labels: list[str]) -> Problem:
    more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
    return {**found, "message": f"{found['message']} (in the run {shown(labels[0])}{more})"}


def _check_measures(study: Definition, runs: list[PlannedRun]) -> None:
    """Refuse claims and figures that select no run or too many runs; the smoke size may leave runs out."""
    if study.smoke:
        return
    rows = [run.row for run in runs]
    found: list[Problem] = []
    variants = dict.fromkeys(run.variant for run in runs)
    named = [(f"metrics.{key}", study.metric_lines[key], expression) for key, expression in study.metrics.items()]
    named += [(f"figures.{f.id}.metric", f.line, f.metric) for f in study.figures]
    named += [(f"claims.{c.id}.measure.metric", c.line, c.measure.metric) for c in study.claims]
    named += [(f"claims.{c.id}.correlated.against", c.line, c.against) for c in study.claims if c.against is not None]
    for key, line, expression in named:
        for name in expression.variants:
            if name not in variants and len(found) < MAX_PROBLEMS:
                found.append(problem(study.path, line, key, f'unknown variant "{shown(name)}"', near(name, variants)))
    for figure in study.figures:
        if not any(figure.where.matches(row) for row in rows):
            remedy = "widen the figure's `where`"
            found.append(problem(study.path, figure.line, f"figures.{figure.id}.where", "matches no run", remedy))
        elif figure.kind == "effects":
            found += _check_effects(study, rows, figure.where, f"figures.{figure.id}.where", figure.line, ())
    for claim in study.claims:
        condition = None if claim.testable is None else claim.testable.measure
        for what, measure in (("measure", claim.measure), ("baseline", claim.baseline), ("testable", condition)):
            if not isinstance(measure, Measure):
                continue
            matching = [row for row in rows if measure.where.matches(row)]
            # Replicates count as one run; so do the places of an axis and the workloads that a claim compares.
            count = max(_alike(claim, matching), default=0)
            key = f"claims.{claim.id}.{what}"
            line = measure.line if measure.line is not None else claim.line
            if count == 0:
                found.append(problem(study.path, line, key, "matches no run", f"widen the {what}'s `where`"))
            elif measure.effect:
                found += _check_effects(study, rows, measure.where, key, line, measure.effect)
            elif count > 1 and measure.reduce == "only":
                text = f"expected one run, found {count}"
                remedy = f'narrow the {what}\'s `where`, or set reduce = "mean"'
                found.append(problem(study.path, line, key, text, remedy))
    specs = {run.identity: run.spec for run in runs}.values()
    known = {name for spec in specs for name, _ in leaves(json.loads(spec.canonical_json()))}
    for key, parameter in study.parameters.items():
        if (
            not parameter.is_inherited
            and not any(f"{name}.".startswith(f"{key}.") for name in known)
            and len(found) < MAX_PROBLEMS
        ):
            text = f'no spec of this study has the key "{shown(key)}"'
            found.append(problem(study.path, parameter.line, f"parameters.{key}", text, near(key, known)))
    if found:
        raise StudyError(found)


def _alike(claim: Claim, rows: list[dict[str, Any]]) -> Iterator[int]:
    """The number of runs that differ in more than their seed, for each number that a claim compares."""
    axis = claim.monotone or ("workload" if claim.against is not None or claim.most else None)
    for place in dict.fromkeys(row.get(axis) if axis else None for row in rows):
        here = rows if axis is None else [row for row in rows if row.get(axis) == place]
        yield len({without(row, SEED) for row in here})


def _check_effects(
    study: Definition,
    rows: list[dict[str, Any]],
    where: Where,
    key: str,
    line: int | None,
    wanted: tuple[str, ...],
) -> list[Problem]:
    """Effects need runs with all combinations of the factors that the runs vary."""
    factors = [factor.name for factor in study.factors]
    found = [combination(row["variant"], factors) for row in rows if where.matches(row)]
    there = {on for on in found if on is not None}
    absent = missing(factors, there)
    if absent:
        text = f"the runs lack the combinations {shown(', '.join(absent))}"
        return [problem(study.path, line, key, text, "widen the `where`, or add these variants to the part")]
    fixed = [name for name in wanted if name not in varied(factors, there)]
    if fixed or not varied(factors, there):
        text = f"the runs do not vary {', '.join(fixed) or 'any factor'}"
        return [problem(study.path, line, key, text, "widen the `where`")]
    return []
