"""The tables of a study file: their keys and the types of their values.

A refused value is reported and replaced by `None`, which TOML does not have. A missing key has the default of its
field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from nandlab.study.expression import Expression, ExpressionError
from nandlab.study.problems import near, shown
from nandlab.study.source import MAX_NAME, Path

KINDS = ("line", "bar", "cdf", "effects")
#: The scales of an effect on a metric m: m(on) / m(off) - 1, or m(on) - m(off).
SCALES = ("ratio", "difference")
REDUCTIONS = ("only", "mean", "geomean", "median", "min", "max", "sum")
#: Averages over runs, by the names in a study file.
AVERAGES = ("ratio-of-means", "mean-of-ratios", "geomean")
DIRECTIONS = ("above", "below", "not above", "not below")
#: Directions of a claim over an axis or over a property of the workloads.
SLOPES = ("rising", "falling")
#: Reductions of the replicates of an effect to one number.
EFFECT_REDUCTIONS = ("mean", "median", "min", "max")
MAX_REPLICATES = 10_000
#: Names that are allowed for files and folders.
_SAFE = re.compile(r"[\w-][\w.-]*")
_METRIC = 'a metric, such as "waf" or "flash.program.gc / flash.program.host"'


def kind_of(value: object) -> str:
    """The type of a value, for a message."""
    if isinstance(value, bool):
        return "true or false"
    for kind, name in ((str, "a string"), ((int, float), "a number"), (list, "a list"), (dict, "a table")):
        if isinstance(value, kind):
            return name
    raise TypeError(f"TOML has no {type(value).__name__}")


def _refused(message: str, remedy: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{message}", {"message": message, "remedy": remedy})


def _expected(wanted: str, value: object, remedy: str = "") -> PydanticCustomError:
    return _refused(f"expected {wanted}, found {kind_of(value)}", remedy or f"write {wanted}")


def _number(value: object) -> object:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise _expected("a number", value)
    return value


def _scalar(value: object) -> object:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float, str))):
        raise _expected("a number or a string", value)
    return value


def _replicates(value: object) -> object:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise _expected("a whole number", value)
    if value is not None and not 1 <= value <= MAX_REPLICATES:
        raise _refused(f"expected 1 to {MAX_REPLICATES}, found {value}", "give the number of seeds")
    return value


def _expression(value: object) -> Expression | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _expected(_METRIC, value)
    try:
        return Expression.parse(value)
    except ExpressionError as error:
        raise _refused(str(error), error.remedy) from None


def _not_empty(value: str) -> str:
    if not value.strip():
        raise _refused("empty", "write a string")
    return value


def _file_name(value: str) -> str:
    """Check a name that becomes a file or folder name, and must not lead out of its folder."""
    if not _SAFE.fullmatch(value) or len(value.encode()) > MAX_NAME:
        raise _refused(
            f'"{shown(value)}" cannot name a file',
            f"use letters, digits, -, _ and, after the first character, points; at most {MAX_NAME} bytes",
        )
    return value


def _one_of(choices: Iterable[str]) -> AfterValidator:
    def check(value: str) -> str:
        if value not in choices:
            raise _refused(f'unknown value "{shown(value)}"', near(value, choices))
        return value

    return AfterValidator(check)


def _axis(value: object) -> object:
    if value is not None and (not isinstance(value, list) or not value):
        found = "an empty list" if value == [] else kind_of(value)
        raise _refused(f"expected a list of values, found {found}", "list the values of the axis, such as [1, 2]")
    return value


def _kept(value: object) -> object:
    if value is not None and not isinstance(value, list):
        raise _expected("a list", value, "list the values to keep")
    return value


def _one_or_list(value: object) -> object:
    if isinstance(value, str):
        return [value]
    if value is not None and not isinstance(value, list):
        raise _expected("the name of a column, or a list of names", value)
    return value


def _point_or_value(value: object, read: ValidatorFunctionWrapHandler) -> object:
    return read(value) if isinstance(value, dict) and {"value", "set"} & value.keys() else value


def _number_or_measure(value: object, read: ValidatorFunctionWrapHandler) -> object:
    if isinstance(value, dict) or value is None:
        return read(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _expected("a number, or { where = ... }", value)
    return float(value)


Text = Annotated[str, AfterValidator(_not_empty)]
FileName = Annotated[str, AfterValidator(_file_name)]
Number = Annotated[float, PlainValidator(_number)]
Scalar = Annotated[float | str, PlainValidator(_scalar)]
Metric = Annotated[Expression | None, PlainValidator(_expression), Field(description=_METRIC)]
Names = Annotated[list[Any] | None, Field(description="a list of names")]
Column = Annotated[str | None, Field(description="the name of a column")]
Variant = Annotated[str | None, Field(description="the name of a variant")]
Replicates = Annotated[int | None, PlainValidator(_replicates)]
#: Keys of the spec with their values.
Sets = dict[str, Any]
#: Numbers that expressions may use.
Facts = dict[str, Number | None]


class Table(BaseModel):
    """A table of the study file."""

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)

    def has(self, key: str) -> bool:
        """Whether the file has the key."""
        return key in self.model_fields_set


class StudyTable(Table):
    title: Text | None
    question: Text | None
    notes: str | None = ""
    base: str | None = ""
    name: FileName | None = None
    extends: str | None = None
    ranges: Annotated[str | None, Field(description="a study file of the same folder")] = None
    setting: Annotated[str | None, Field(description="the name of a part")] = None
    replicates: Replicates = None


class ChoiceTable(Table):
    """A variant."""

    title: str | None = None
    set: Sets | None = None
    facts: Facts | None = None


class FactorTable(Table):
    title: str | None = None
    off: Sets | None = None
    on: Annotated[Sets | None, Field(description='a table of keys of the spec, on = { "gc.victim" = "fifo" }')]


class WorkloadTable(ChoiceTable):
    """A workload; its further keys are keys of [workload]."""

    model_config = ConfigDict(extra="allow")


class PointTable(Table):
    value: Annotated[Scalar | None, Field(description="a number or a string")]
    title: str | None = None
    set: Sets | None = None


#: A value of an axis, or a point that sets several keys.
Entry = Annotated[PointTable, WrapValidator(_point_or_value)]
Grid = dict[str, Annotated[list[Entry] | None, BeforeValidator(_axis)]]


class PartTable(Table):
    title: str | None = None
    variants: Names = None
    workloads: Names = None
    grid: Grid | None = None
    set: Sets | None = None
    replicates: Replicates = None
    range: Annotated[list[Any] | None, BeforeValidator(_one_or_list)] = None


class SmokeTable(Table):
    parts: Names = None
    variants: Names = None
    workloads: Names = None
    grid: dict[str, Annotated[list[Any] | None, BeforeValidator(_kept)]] | None = None
    values: dict[str, Scalar | None] | None = None
    set: Sets | None = None


class ReferenceTable(Table):
    name: Text | None
    expression: Metric
    where: dict[str, Any] | None = None


class FigureTable(Table):
    id: FileName | None
    title: Text | None
    caption: str | None = ""
    kind: Annotated[str, _one_of(KINDS)] | None = "line"
    metric: Metric
    over: Column = None
    series: Annotated[list[Any] | None, BeforeValidator(_one_or_list)] = None
    panels: Column = None
    where: dict[str, Any] | None = None
    normalised_to: Variant = None
    reduce: Annotated[str, _one_of(REDUCTIONS)] | None = "mean"
    mean: bool | None = False
    log_x: bool | None = False
    log_y: bool | None = False
    x_title: str | None = None
    y_title: str | None = None
    reference: list[ReferenceTable | None] | None = None
    scale: Annotated[str, _one_of(SCALES)] | None = "ratio"


class ToleranceTable(Table):
    relative: Number | None = None
    absolute: Number | None = None


class MeasureTable(Table):
    where: dict[str, Any] | None = None
    reduce: str | None = None
    average: Annotated[str, _one_of(AVERAGES)] | None = None
    metric: Metric = None
    normalised_to: Variant = None
    effect: Annotated[str | None, Field(description='a factor, "A", or two, "A:B"')] = None


class TestableTable(Table):
    """When a claim can be tested."""

    why: Text | None
    where: dict[str, Any] | None = None
    reduce: str | None = None
    metric: Metric = None
    above: Number | None = None
    below: Number | None = None


class MonotoneTable(Table):
    """A claim that the measure rises or falls with each value of an axis."""

    over: Annotated[str | None, Field(description="the name of an axis")]
    direction: Annotated[str, _one_of(SLOPES)] | None


class CorrelatedTable(Table):
    """A claim that the measure rises or falls with a property of the workloads."""

    against: Metric
    direction: Annotated[str, _one_of(SLOPES)] | None


class ClaimTable(Table):
    id: str | None = None
    figure: Text | None
    what: Text | None
    value: Number | None = None
    tolerance: Annotated[ToleranceTable | None, Field(description="{ relative = 0.02 } or { absolute = 0.1 }")] = None
    source: Text | None
    measure: MeasureTable | None = None
    #: A number or a `MeasureTable`.
    baseline: Annotated[MeasureTable | None, WrapValidator(_number_or_measure)] = None
    direction: Annotated[
        Annotated[str, _one_of(DIRECTIONS)] | None, Field(description='"above", "below", "not above" or "not below"')
    ] = None
    effect: Number | None = None
    by_workload: Metric = None
    each: bool | None = False
    most: bool | None = False
    monotone: MonotoneTable | None = None
    correlated: CorrelatedTable | None = None
    headline: bool | None = False
    inferred: bool | None = False
    testable: TestableTable | None = None
    deviation: str | None = ""


class ParameterTable(Table):
    """Where a value comes from: one of the first four keys, with an explanation."""

    sourced: Text | None = None
    derived: Text | None = None
    assumed: Text | None = None
    calibrated: Text | None = None
    claims: Names = None
    sensitivity: Annotated[str | None, Field(description="the id of a figure")] = None
    checks: Names = None
    untouched: Text | None = None


class StudyFile(Table):
    """The whole study file."""

    study: StudyTable | None
    base: Sets | None = None
    values: dict[str, Scalar | None] | None = None
    variants: dict[str, ChoiceTable | None] | None = None
    factors: dict[str, FactorTable | None] | None = None
    workloads: dict[str, WorkloadTable | None] | None = None
    grid: Grid | None = None
    parts: dict[str, PartTable | None] | None = None
    parameters: dict[str, ParameterTable | None] | None = None
    smoke: SmokeTable | None = None
    metrics: dict[str, Metric] | None = None
    figures: list[FigureTable | None] | None = None
    claims: list[ClaimTable | None] | None = None


Report = Callable[[Path, str, str], None]


def read_tables(data: dict[str, Any], report: Report) -> StudyFile:
    """The tables of the file; `report` receives path, message and remedy of each error. Corrects `data` in place."""
    try:
        return StudyFile.model_validate(data)
    except ValidationError as error:
        for entry in error.errors(include_url=False):
            path = entry["loc"]
            report(path, *_error_text(path, entry))
            holder: Any = data
            for key in path[:-1]:
                holder = holder[key]
            if entry["type"] == "extra_forbidden":
                del holder[path[-1]]
            else:
                holder[path[-1]] = None
        return StudyFile.model_validate(data)


#: The expected values by pydantic's error types.
_TYPES = {
    "string_type": "a string",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
}


def _error_text(path: Path, error: ErrorDetails) -> tuple[str, str]:
    """Message and remedy of an error."""
    context: Mapping[str, str] = error.get("ctx", {})
    if error["type"] == "refused":
        return context["message"], context["remedy"]
    fields = _fields_at(path[:-1])
    name = str(path[-1])
    if error["type"] == "extra_forbidden":
        return "unknown key", near(name, fields)
    field = fields.get(name)
    described = field.description if field is not None else None
    if error["type"] == "missing":
        return "missing", f"give {described or 'a string'}"
    wanted = described or _TYPES[error["type"]]
    remedy = f"write {wanted}"
    if error["type"] == "model_type" and field is None:
        header = ".".join(part for part in path if isinstance(part, str))
        remedy = f"write it as [[{header}]]" if isinstance(path[-1], int) else f"write [{shown(header)}]"
    elif error["type"] == "list_type" and not described:
        wanted = f"tables, [[{name}]]"
        remedy = f"write {wanted}"
    return f"expected {wanted}, found {kind_of(error['input'])}", remedy


def _fields_at(path: Path) -> Mapping[str, FieldInfo]:
    """The keys of the table at a path; none for a table whose keys the user names."""
    table: type[Table] = StudyFile
    parts = iter(path)
    for part in parts:
        field = table.model_fields.get(str(part))
        if field is not None and (inner := _model_in(field.annotation)) is not None:
            table = inner
            if any(get_origin(kind) is dict for kind in get_args(field.annotation)) and next(parts, None) is None:
                return {}
    return table.model_fields


def _model_in(annotation: Any) -> type[Table] | None:
    if isinstance(annotation, type) and issubclass(annotation, Table):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _model_in(inner))), None)
