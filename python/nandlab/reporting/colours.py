"""The colours of the charts, in a light and a dark form."""

from __future__ import annotations

from collections.abc import Mapping

#: Colours on white paper: in files, and in a page with the light theme.
LIGHT: Mapping[str, str] = {
    "paper": "#ffffff",
    "ink": "#1a1e24",
    "soft": "#56606b",
    "grid": "#e3e6ea",
    "axis": "#8a939d",
    "accent": "#2f6fde",
    "band": "#dfe8fa",
    "blue": "#2f6fde",
    "rose": "#c93d78",
    "slate": "#72808f",
    "orange": "#d97b12",
    "violet": "#8457c9",
    "teal": "#158594",
    "green": "#2f8a50",
    "brown": "#8a6845",
    "red": "#c93a31",
}
DARK: Mapping[str, str] = {
    "paper": "#101317",
    "ink": "#e5e8ec",
    "soft": "#a3adb8",
    "grid": "#262c34",
    "axis": "#6c7783",
    "accent": "#7aa8ff",
    "band": "#1e2a40",
    "blue": "#74a4ff",
    "rose": "#ee7fac",
    "slate": "#94a2b1",
    "orange": "#f0a550",
    "violet": "#b295ea",
    "teal": "#52c0cd",
    "green": "#6cc78b",
    "brown": "#c6a47b",
    "red": "#ee7a72",
}
#: The palette of a page: the style sheet has the colours of both themes.
PAGE: Mapping[str, str] = {name: f"var(--{name})" for name in LIGHT}

#: The order of colours of series without a meaning of their own.
CYCLE = ("blue", "orange", "teal", "rose", "violet", "green", "brown", "red", "slate")
OPERATIONS = {"read": "blue", "write": "rose", "trim": "slate", "flush": "brown", "all": "ink"}
CAUSES = {
    "host": "slate",
    "gc": "orange",
    "wear": "violet",
    "refresh": "teal",
    "fold": "blue",
    "mapping": "green",
    "sync": "brown",
    "flush": "red",
}
#: From dark to light in even steps of lightness, readable in print and with colour blindness.
RAMP = ("#2b1b52", "#2f4b8f", "#1f8094", "#3fb07c", "#a9d354", "#fbe76b")


def of_row(name: str) -> str:
    """The colour of a row of a table: the name of an operation or of a cause."""
    if name == "flush-op":
        return OPERATIONS["flush"]
    return CAUSES.get(name) or OPERATIONS.get(name, "slate")
