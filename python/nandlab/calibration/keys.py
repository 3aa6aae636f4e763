"""The keys of a spec that a calibration fits, each with its bounds: `KEY=LOW..HIGH`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from nandlab.errors import OutputError, shown

#: Units with their size in the smallest unit of their kind, and the name of that unit.
_UNITS = {
    "ns": (1.0, "ns"),
    "us": (1e3, "ns"),
    "ms": (1e6, "ns"),
    "s": (1e9, "ns"),
    "B": (1.0, "B"),
    "KiB": (2.0**10, "B"),
    "MiB": (2.0**20, "B"),
    "GiB": (2.0**30, "B"),
    "TiB": (2.0**40, "B"),
    "uF": (1.0, "uF"),
    "mF": (1e3, "uF"),
    "F": (1e6, "uF"),
}
_VALUE = re.compile(r"([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*([A-Za-z]*)")
#: Digits of a real number that is fitted.
_DIGITS = 6


@dataclass(frozen=True)
class Key:
    """A key that is fitted between two bounds.

    A place is a number from 0 (the lower bound) to 1 (the upper bound). Equal steps of the place are equal ratios of
    the value, or equal differences if the lower bound is 0 or less.
    """

    name: str
    #: The bounds, in `unit`.
    low: float
    high: float
    #: `ns`, `B`, `uF`, or empty for a number.
    unit: str = ""
    #: Whether the value is a whole number.
    whole: bool = False

    @staticmethod
    def parse(text: str) -> Key:
        """A key with its bounds, as in `timing.program=500us..3ms`; raises `OutputError`.

        The bounds have the unit of the key. Bounds without a decimal point and without a unit are whole numbers, and
        so is the value.
        """
        name, equals, bounds = text.partition("=")
        name, between = name.strip(), bounds.split("..")
        if not equals or not re.fullmatch(r"[\w-]+(\.[\w-]+)+", name) or len(between) != 2:
            raise _wrong(text, "expected KEY=LOW..HIGH", "write for example timing.program=500us..3ms")
        low, high = (_read(text, part) for part in between)
        if low[1] != high[1]:
            raise _wrong(text, "the bounds have different units", "give both in units of the same kind")
        if not low[0] < high[0]:
            raise _wrong(text, "the lower bound is not below the upper one", f"write {name}={between[1]}..{between[0]}")
        whole = not low[1] and not any(re.search(r"[.eE]", part) for part in between)
        return Key(name, low[0], high[0], low[1], whole)

    @property
    def log(self) -> bool:
        """Whether equal steps are equal ratios."""
        return self.low > 0

    def value(self, place: float) -> float:
        """The value at a place, rounded as in a spec."""
        place = min(max(place, 0.0), 1.0)
        if self.log:
            exact = math.exp(math.log(self.low) + place * math.log(self.high / self.low))
        else:
            exact = self.low + place * (self.high - self.low)
        if self.whole or self.unit in ("ns", "B"):
            return float(round(exact))
        return float(f"{exact:.{_DIGITS}g}")

    def place(self, value: float) -> float:
        """The place of a value; beyond the bounds it is below 0 or above 1."""
        if self.log:
            return math.log(max(value, 1e-300) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def toml(self, value: float) -> int | float | str:
        """A value as a spec has it: a number, or a text with a unit."""
        if self.unit:
            return f"{value:.{_DIGITS}g}{self.unit}" if self.unit == "uF" else f"{value:.0f}{self.unit}"
        return int(value) if self.whole else value

    def shown(self, value: float) -> str:
        """A value for a reader, in the unit that fits its size."""
        found = ""
        for unit, (size, smallest) in _UNITS.items():
            if smallest == self.unit and (not found or abs(value) >= size):
                found = f"{value / size:.4g} {'µs' if unit == 'us' else unit}"
        return found or (f"{value:.0f}" if self.whole else f"{value:.4g}")

    def read(self, value: object) -> float | None:
        """The number of a value of a resolved spec, in `unit`; `None` for a value that is no number of this kind."""
        if isinstance(value, bool):
            return None
        if isinstance(value, (int, float)):
            return float(value) if not self.unit else None
        match = _VALUE.fullmatch(value.strip()) if isinstance(value, str) else None
        size = _UNITS.get(match[2]) if match else None
        return float(match[1]) * size[0] if match and size and size[1] == self.unit else None


def _read(text: str, part: str) -> tuple[float, str]:
    match = _VALUE.fullmatch(part.strip())
    if match is None or (match[2] and match[2] not in _UNITS):
        units = ", ".join(_UNITS)
        raise _wrong(
            text, f"{shown(part.strip()) or 'an empty bound'} is no bound", f"write a number, or one of {units}"
        )
    size, unit = _UNITS[match[2]] if match[2] else (1.0, "")
    return float(match[1]) * size, unit


def _wrong(text: str, what: str, remedy: str) -> OutputError:
    return OutputError(f"--fit {shown(text)}: {what}\n  remedy: {remedy}")
