"""Arithmetic over the metrics of a run: `flash.program.gc / flash.program.host`, `1 - steady.free_share`.

`waf['fifo']` is the metric of the run that differs only in its variant, which is `fifo`. Some metrics have an entry per
number: `at(ecc.levels, 1)` is one entry (0 when it is missing; the number may be an expression, such as an axis),
`total(ecc.levels)` the sum of the entries. Where each entry has values of its own, a third argument names one of them:
`at(placement.handles, 0, waf)`.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nandlab.study.problems import shown

#: Limits of an expression: characters, and levels of nested operations (a sum of n terms has n - 1 levels).
MAX_LENGTH = 1000
MAX_DEPTH = 50


class ExpressionError(ValueError):
    """An expression that is refused, with a remedy."""

    def __init__(
        self,
        text: str,
        remedy: str = 'write a metric of summary.json, such as "latency_us.read.p99", or arithmetic over metrics',
    ) -> None:
        super().__init__(text)
        self.remedy = remedy


def lambert_w(x: float) -> float:
    """Lambert W function, principal branch: the w with w exp(w) = x, for x >= -1/e."""
    w = -0.5 if x < -0.25 else math.log1p(x) if x > -0.9 else 0.0
    for _ in range(100):
        e = math.exp(w)
        slope = e * (w + 1.0)
        if slope == 0.0:
            break
        step = (w * e - x) / slope
        w -= step
        if abs(step) <= 1e-15 * max(1.0, abs(w)):
            break
    return w


FUNCTIONS: dict[str, Callable[..., float]] = {
    "abs": abs,
    "exp": math.exp,
    "lambert_w": lambert_w,
    "log": math.log,
    "log2": math.log2,
    "max": max,
    "min": min,
    "sqrt": math.sqrt,
}

#: Functions of metrics with an entry per number, and how many arguments they have: `at(NAME, number)`,
#: `at(NAME, number, VALUE)`, `total(NAME)`.
_BY_NUMBER = {"at": (2, 3), "total": (1,)}

#: Returns the metrics of the run that differs only in its variant, given this variant; `None` without such a run.
Others = Callable[[str], Mapping[str, Any] | None]

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: math.pow,
}


@dataclass(frozen=True)
class Expression:
    """A parsed expression; `names` are the metrics that it uses, `variants` the variants that it names."""

    text: str
    names: tuple[str, ...]
    variants: tuple[str, ...]
    _tree: ast.expr

    @staticmethod
    @functools.lru_cache(maxsize=1024)  # a study fills the same expressions in every one of its runs
    def parse(text: str) -> Expression:
        """Parse an expression; raises `ExpressionError`."""
        text = text.strip()
        if len(text) > MAX_LENGTH:
            raise ExpressionError(f"an expression of {len(text):,} characters; the limit is {MAX_LENGTH:,}", _SPLIT)
        too_deep = ExpressionError(f"operations or brackets nested more than {MAX_DEPTH} levels deep", _SPLIT)
        if max(itertools.accumulate((char in "([") - (char in ")]") for char in text), default=0) > MAX_DEPTH:
            raise too_deep
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings of the parser about Python code
                tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError):
            raise ExpressionError(f"'{shown(text)}' is not an expression") from None
        except (RecursionError, MemoryError):
            raise too_deep from None
        if _depth(tree) > MAX_DEPTH:
            raise too_deep
        names: list[str] = []
        variants: list[str] = []
        _check(text, tree, names, variants)
        return Expression(text, tuple(dict.fromkeys(names)), tuple(dict.fromkeys(variants)), tree)

    def value(self, values: Mapping[str, Any], others: Others = lambda _variant: None) -> float | None:
        """The value for a run; `None` if undefined, as after a division by 0 or for a metric that the run does not
        have.
        """
        try:
            found = _value(self._tree, values, others)
        except (ZeroDivisionError, OverflowError, ValueError, _Undefined):
            return None
        return found if math.isfinite(found) else None


class _Undefined(Exception):
    pass


_SPLIT = "define parts of the expression as metrics in [metrics]"


def _depth(tree: ast.expr) -> int:
    """The depth of a tree, without recursion, because the tree may be as deep as its text is long."""
    depth, level = 0, [tree]
    while level := [node for above in level for node in ast.iter_child_nodes(above) if isinstance(node, ast.expr)]:
        depth += 1
    return depth


def _part(text: str, node: ast.expr) -> str:
    return f"'{shown(ast.get_source_segment(text, node))}'"


def _name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _name(node.value)
        return None if before is None else f"{before}.{node.attr}"
    return None


def _by_number(node: ast.expr) -> tuple[str, ast.expr | None, str] | None:
    """The metric, the number, and what of the entry, in an `at` or `total`; the last is empty for a plain number."""
    if not isinstance(node, ast.Call) or node.keywords or not isinstance(node.func, ast.Name):
        return None
    if node.func.id not in _BY_NUMBER or len(node.args) not in _BY_NUMBER[node.func.id]:
        return None
    name, inner = _name(node.args[0]), _name(node.args[2]) if len(node.args) == 3 else ""
    return None if name is None or inner is None else (name, node.args[1] if node.func.id == "at" else None, inner)


def _elsewhere(node: ast.expr) -> tuple[ast.expr, str] | None:
    """The metric and the variant in `NAME['variant']`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return node.value, node.slice.value
    return None


def _check(text: str, node: ast.expr, names: list[str], variants: list[str]) -> None:
    name, elsewhere, by_number = _name(node), _elsewhere(node), _by_number(node)
    if name is not None:
        names.append(name)
    elif by_number is not None:
        names.append(f"{by_number[0]}.*")
        if by_number[1] is not None:
            _check(text, by_number[1], names, variants)
    elif elsewhere is not None:
        variants.append(elsewhere[1])
        _check(text, elsewhere[0], names, variants)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        _check(text, node.left, names, variants)
        _check(text, node.right, names, variants)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        _check(text, node.operand, names, variants)
    elif isinstance(node, ast.Call) and not node.keywords:
        function = _name(node.func)
        if function in _BY_NUMBER:
            raise ExpressionError(
                f"wrong arguments in {_part(text, node)}", "write at(ecc.levels, 1) or total(ecc.levels)"
            )
        if function not in FUNCTIONS:
            there = ", ".join([*FUNCTIONS, *_BY_NUMBER])
            raise ExpressionError(f"unknown function {shown(function)}", f"use one of {there}")
        for argument in node.args:
            _check(text, argument, names, variants)
    elif not (
        isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    ):
        raise ExpressionError(f"{_part(text, node)}: expected a metric, a number, + - * / **, ( ) or a function")


def _value(node: ast.expr, values: Mapping[str, Any], others: Others) -> float:
    name = _name(node)
    if name is not None:
        # Another run may have the name: `power` after a loss, an axis of another part, a fact of another workload.
        value = values.get(name)
        if value is None or isinstance(value, str):
            raise _Undefined
        return float(value)
    if (by_number := _by_number(node)) is not None:
        section, which, inner = by_number
        return _sum(values, section, None if which is None else _value(which, values, others), inner)
    if (elsewhere := _elsewhere(node)) is not None:
        there = others(elsewhere[1])
        if there is None:
            raise _Undefined
        return _value(elsewhere[0], there, others)
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, values, others), _value(node.right, values, others))
    if isinstance(node, ast.UnaryOp):
        operand = _value(node.operand, values, others)
        return -operand if isinstance(node.op, ast.USub) else operand
    if isinstance(node, ast.Call):
        try:
            return FUNCTIONS[_name(node.func) or ""](*(_value(argument, values, others) for argument in node.args))
        except TypeError:
            raise _Undefined from None
    assert isinstance(node, ast.Constant) and isinstance(node.value, (int, float))
    return float(node.value)


def _sum(values: Mapping[str, Any], name: str, which: float | None, inner: str) -> float:
    start = f"{name}."
    numbered = {key.removeprefix(start): values.get(key) for key in values if key.startswith(start)}
    if not numbered:
        raise _Undefined
    if which is not None and not which.is_integer():
        raise _Undefined
    if inner and which is not None:
        value = numbered.get(f"{int(which)}.{inner}")
        if not isinstance(value, (int, float)):
            raise _Undefined  # as the WAF of a handle without writes
        return float(value)
    kept = numbered.values() if which is None else [numbered.get(str(int(which)), 0)]
    return math.fsum(value for value in kept if isinstance(value, (int, float)))
