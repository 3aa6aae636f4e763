"""Small arithmetic over the metrics of a run: `flash.program.gc / flash.program.host`, `1 - steady.free_share`."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


class ExpressionError(ValueError):
    """An expression that cannot be read; the text says why."""


class Missing(KeyError):
    """A name that a run does not have."""


def lambert_w(x: float) -> float:
    """Lambert's W, the branch through 0: w with w exp(w) = x, for x >= -1/e."""
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

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}


@dataclass(frozen=True)
class Expression:
    """An expression, parsed; `names` are the metrics it needs."""

    text: str
    names: tuple[str, ...]
    _tree: ast.expr

    @staticmethod
    def parse(text: str) -> Expression:
        """Raises `ExpressionError`."""
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            raise ExpressionError(f"{text!r} is no expression") from None
        names: list[str] = []
        _check(tree, names)
        return Expression(text.strip(), tuple(dict.fromkeys(names)), tree)

    def value(self, values: Mapping[str, Any]) -> float | None:
        """Its value for one run; `None` where it is undefined (a division by zero, a metric without a value)."""
        try:
            found = _value(self._tree, values)
        except (ZeroDivisionError, OverflowError, ValueError, _Undefined):
            return None
        if isinstance(found, complex) or not math.isfinite(found):
            return None
        return found


class _Undefined(Exception):
    pass


def _name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _name(node.value)
        return None if before is None else f"{before}.{node.attr}"
    return None


def _check(node: ast.expr, names: list[str]) -> None:
    name = _name(node)
    if name is not None:
        names.append(name)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        _check(node.left, names)
        _check(node.right, names)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        _check(node.operand, names)
    elif isinstance(node, ast.Call) and not node.keywords:
        function = _name(node.func)
        if function not in FUNCTIONS:
            raise ExpressionError(f"there is no function {function}; there are {', '.join(FUNCTIONS)}")
        for argument in node.args:
            _check(argument, names)
    elif not (
        isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    ):
        raise ExpressionError(f"{ast.unparse(node)!r} is none of: a metric, a number, + - * / **, ( ), a function")


def _value(node: ast.expr, values: Mapping[str, Any]) -> float:
    name = _name(node)
    if name is not None:
        if name not in values:
            raise Missing(name)
        value = values[name]
        if value is None or isinstance(value, str):
            raise _Undefined
        return float(value)
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, values), _value(node.right, values))
    if isinstance(node, ast.UnaryOp):
        operand = _value(node.operand, values)
        return -operand if isinstance(node.op, ast.USub) else operand
    if isinstance(node, ast.Call):
        try:
            return FUNCTIONS[_name(node.func) or ""](*(_value(argument, values) for argument in node.args))
        except TypeError:
            raise _Undefined from None
    assert isinstance(node, ast.Constant) and isinstance(node.value, (int, float))
    return float(node.value)
