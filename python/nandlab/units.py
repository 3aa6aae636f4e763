"""Numbers as texts for the screen and the report."""

from __future__ import annotations

import math


def number(value: float | None) -> str:
    """A number rounded for reading: `1.07`, `12.3`, `912`, `48,100`."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    size_ = abs(value)
    if isinstance(value, int) or size_ >= 1000:
        return f"{value:,.0f}"
    if size_ >= 100:
        return f"{value:,.0f}"
    if size_ >= 10:
        return f"{value:.1f}"
    if size_ >= 0.01:
        return f"{value:.2f}"
    return "0" if value == 0 else f"{value:.2g}"


def count(value: float | None) -> str:
    """A count with thousands separators."""
    return "-" if value is None else f"{round(value):,}"


def share(value: float | None) -> str:
    """A share (0 to 1) in per cent."""
    return "-" if value is None else f"{100 * value:.1f} %"


def size(value: float | None) -> str:
    """A number of bytes in binary units."""
    if value is None:
        return "-"
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if abs(amount) < 1024 or unit == "PiB":
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.3g} {unit}"
        amount /= 1024
    raise AssertionError


def duration(seconds: float | None) -> str:
    """A time given in seconds, in the unit that fits its length."""
    if seconds is None:
        return "-"
    amount = float(seconds)
    if amount <= 0:
        return "0 s"
    if amount < 1e-3:
        return f"{amount * 1e6:.3g} µs"
    if amount < 1:
        return f"{amount * 1e3:.3g} ms"
    if amount < 60:
        return f"{amount:.3g} s"
    if amount < 3600:
        return f"{int(amount // 60)} min {int(amount % 60):02} s"
    if amount < 86400:
        return f"{int(amount // 3600)} h {int(amount % 3600 // 60):02} min"
    return f"{amount / 86400:.3g} days"


#: Units of a lifetime, and how many of them a year of 365 days has.
_LIFETIMES = (("years", 1.0), ("days", 365.0), ("hours", 8760.0), ("minutes", 525_600.0), ("seconds", 31_536_000.0))


def lifetime_unit(years: float) -> tuple[str, float]:
    """The unit that fits a lifetime given in years, and how many of it a year has.

    Years from a tenth of a year on; else the first unit of which there are at least two.
    """
    if years >= 0.1 or not years > 0:
        return _LIFETIMES[0]
    return next((one for one in _LIFETIMES[1:] if years * one[1] >= 2), _LIFETIMES[-1])


def lifetime(years: float) -> str:
    """A lifetime given in years, in the unit that fits."""
    unit, per_year = lifetime_unit(years)
    return f"{number(years * per_year)} {unit}"


#: Decimal units of data, and how many of them a terabyte has.
_WRITTEN = (("PB", 1e-3), ("TB", 1.0), ("GB", 1e3), ("MB", 1e6), ("kB", 1e9), ("B", 1e12))


def written_unit(terabytes: float) -> tuple[str, float]:
    """The decimal unit that fits an amount of data given in terabytes, and how many of it a terabyte has."""
    if not terabytes > 0:
        return _WRITTEN[1]
    return next((one for one in _WRITTEN if terabytes * one[1] >= 1), _WRITTEN[-1])


def joules(energy: float) -> str:
    """An energy given in joules, in the unit that fits its size."""
    if energy == 0 or energy >= 1:
        return f"{number(energy)} J"
    return f"{energy * 1e3:.3g} mJ" if energy >= 1e-3 else f"{energy * 1e6:.3g} µJ"


def age(seconds: int) -> str:
    """A time given in seconds, in the largest unit of a spec of which it is a whole multiple."""
    for unit, worth in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds and seconds % worth == 0:
            return f"{seconds // worth} {unit}"
    return f"{seconds} s"


def part(some: float, of: float) -> str:
    """The share `some / of` in per cent; only an exact 0 or 1 is shown as 0.0 % or 100.0 %."""
    if not of:
        return "-"
    percent = 100 * some / of
    if some and percent < 0.05:
        return "<0.1 %"
    if some != of and percent >= 99.95:
        return ">99.9 %"
    return f"{percent:.1f} %"
