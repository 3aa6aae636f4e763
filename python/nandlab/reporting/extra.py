"""The packages of the extra `figures`, which only reports and figures need."""

from __future__ import annotations

import importlib.util

from nandlab.errors import OutputError

#: Module and distribution.
_NEEDED = {"altair": "altair", "jinja2": "jinja2", "vl_convert": "vl-convert-python"}


def missing() -> list[str]:
    """The distributions of the extra that are not installed."""
    return [name for module, name in _NEEDED.items() if importlib.util.find_spec(module) is None]


def need_figures(what: str) -> None:
    """Raise `OutputError` if a package of the extra is missing; `what` is what cannot be made without it."""
    if absent := missing():
        raise OutputError(
            f"{what}: {', '.join(absent)} not installed\n"
            "  remedy: install nandlab with its extra, `pip install 'nandlab[figures]'`"
        )
