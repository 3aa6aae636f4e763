"""Reads where the parameters of a study come from, and finds parameters whose origin is not stated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nandlab.study.file import ParameterTable, StudyFile
from nandlab.study.model import ORIGINS, Claim, Definition, Figure, Parameter, Ranges, leaves
from nandlab.study.problems import near, shown
from nandlab.study.reading import Reading

#: More calibrated values could make almost any number come out.
MAX_CALIBRATED = 2


def read_parameters(
    reading: Reading, file: StudyFile, figures: Sequence[Figure], claims: Sequence[Claim]
) -> dict[str, Parameter]:
    """The origins of parameters, by key of the spec."""
    found = {}
    for key, table in (file.parameters or {}).items():
        if table is not None:
            parameter = _parameter(reading, key, table, figures, claims)
            if parameter is not None:
                found[key] = parameter
    calibrated = [key for key, parameter in found.items() if parameter.origin == "calibrated"]
    if len(calibrated) > MAX_CALIBRATED:
        message = f"{len(calibrated)} calibrated parameters; the limit is {MAX_CALIBRATED}"
        remedy = "derive or source the others, or take an assumed value and show its sensitivity"
        reading.report(("parameters", calibrated[MAX_CALIBRATED]), message, remedy)
    return found


def _parameter(
    reading: Reading, key: str, table: ParameterTable, figures: Sequence[Figure], claims: Sequence[Claim]
) -> Parameter | None:
    path = ("parameters", key)
    given = [origin for origin in ORIGINS if table.has(origin)]
    if len(given) != 1:
        message = f"expected one of {', '.join(ORIGINS)}, found {' and '.join(given) or 'none'}"
        reading.report(path, message, 'say where the value comes from, such as { sourced = "Table I" }')
        return None
    origin = given[0]
    for name in ("claims", "sensitivity", "checks"):
        if origin != "calibrated" and table.has(name):
            reading.report((*path, name), f"{origin} values do not have this key", "remove the key")
    if origin != "assumed" and table.has("untouched"):
        reading.report((*path, "untouched"), f"{origin} values do not have this key", "remove the key")
    text = getattr(table, origin) or ""
    if key in reading.inherited_parameters:
        return Parameter(key, origin, text, (), None, (), reading.line(path), is_inherited=True)
    names = [claim.id for claim in claims]
    fitted = reading.names(table.claims, (*path, "claims"), names) or []
    checks = reading.names(table.checks, (*path, "checks"), names) or []
    if origin == "calibrated":
        there = [figure.id for figure in figures]
        if not table.has("sensitivity"):
            remedy = "name a figure of this study over values of the parameter"
            reading.report((*path, "sensitivity"), "missing", remedy)
        elif table.sensitivity is not None and table.sensitivity not in there:
            message = f'unknown figure "{shown(table.sensitivity)}"'
            reading.report((*path, "sensitivity"), message, near(table.sensitivity, there))
        if fitted and not checks:
            remedy = "name claims on workloads that the calibration did not use"
            reading.report((*path, "checks"), "missing", remedy)
        for name in set(fitted) & set(checks):
            message = f'the value is calibrated to the claim "{shown(name)}"'
            reading.report((*path, "checks"), message, "name a claim on other workloads")
    return Parameter(
        key,
        origin,
        text,
        tuple(fitted),
        table.sensitivity,
        tuple(checks),
        reading.line(path),
        untouched=table.untouched,
    )


def check_ranges(reading: Reading, parameters: Mapping[str, Parameter], ranges: Ranges) -> None:
    """Each assumed value is varied by a part of the study of ranges, or cannot touch a claim, with the reason."""
    for key, parameter in parameters.items():
        is_varied = any(f"{one}.".startswith(f"{key}.") for one in ranges.keys)
        if parameter.origin == "assumed" and not is_varied and parameter.untouched is None:
            remedy = (
                f'write a part with range = "{shown(key)}" in {shown(ranges.command)}, or untouched = "why the value '
                'cannot touch a claim"'
            )
            reading.report(("parameters", key), "an assumed value that no part varies", remedy)


def fitted_claims(parameters: Iterable[Parameter]) -> frozenset[str]:
    """The claims to whose numbers a parameter is calibrated."""
    return frozenset(name for parameter in parameters for name in parameter.claims)


def keys_set(study: Definition) -> list[str]:
    """The spec keys that the study sets, in its base spec and anywhere in the study file."""
    found: dict[str, Any] = dict(leaves(study.base_data))
    found |= dict.fromkeys(override.key for override in study.base_sets)
    for part in study.parts:
        choices = [*part.variants, *part.workloads, *(point for points in part.grid.values() for point in points)]
        overrides = [*part.sets, *(override for choice in choices for override in choice.sets)]
        for override in overrides:
            if isinstance(override.value, dict):
                found |= dict(leaves(override.value, f"{override.key}."))
            else:
                found[override.key] = None
    return list(found)


def stated(study: Definition) -> list[Parameter]:
    """The parameters of a study; of those of the extended study the ones that this study sets."""
    keys = keys_set(study)
    return [
        parameter
        for key, parameter in study.parameters.items()
        if not parameter.is_inherited
        or any(f"{one}.".startswith(f"{key}.") or f"{key}.".startswith(f"{one}.") for one in keys)
    ]


def not_stated(study: Definition) -> list[str]:
    """The spec keys that the study sets and whose origin it does not state; the seed has none."""
    return [
        key
        for key in keys_set(study)
        if key != "seed" and not any(f"{key}.".startswith(f"{stated}.") for stated in study.parameters)
    ]
