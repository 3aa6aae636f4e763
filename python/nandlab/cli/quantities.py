"""Quantities with units as values of options."""

from __future__ import annotations

import re

from nandlab.errors import OutputError

#: Units of a time, in nanoseconds.
_TIMES = {"us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}


def nanoseconds(option: str, text: str, at_least: int = 1_000_000) -> int:
    """The value of an option that is a time with a unit."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([a-z]+)", text)
    if found is None or found[2] not in _TIMES:
        raise OutputError(
            f"{option}: {text} is no time with a unit\n  remedy: write for example 30s (us, ms, s, min, h)"
        )
    found_ns = round(float(found[1]) * _TIMES[found[2]])
    if not at_least <= found_ns < 2**60:
        raise OutputError(f"{option}: {text} is not from {at_least // 1_000_000} ms to 36 years")
    return found_ns


def size_bytes(option: str, text: str, at_least: int) -> int:
    """The value of an option that is a size; `at_least` is a whole number of KiB."""
    found = re.fullmatch(r"([0-9]+) ?(?:([KMGT])iB|B)?", text)
    if found is None:
        raise OutputError(f"{option}: {text} is no size\n  remedy: write for example 10GiB (B, KiB, MiB, GiB, TiB)")
    number = int(found[1]) << (10 * " KMGT".index(found[2] or " "))
    if not at_least <= number < 1 << 62:
        raise OutputError(f"{option}: {text} is not from {at_least >> 10}KiB to 4096PiB")
    return number
