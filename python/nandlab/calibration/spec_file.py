"""The fitted spec as a TOML file: the preset of the base spec, and what differs from it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nandlab import _core
from nandlab._core import Spec
from nandlab.errors import shown
from nandlab.spec import toml_value
from nandlab.study.model import leaves


def fitted_spec(
    path: Path,
    fitted: Spec,
    base: Spec,
    keys: Mapping[str, tuple[int | float | str, str]],
    values: int,
) -> str:
    """The text of the fitted spec: the keys of the spec at `path` with the fitted values in place of theirs.

    `keys` has the fitted values by key, with a comment each. Keys from the command line are those of `base`, the spec
    without the fit, that its file does not have.
    """
    text, _, _, sets = _form(base)
    own = dict(leaves(tomllib.loads(text)))
    for line in sets:
        key, _, value = line.partition("=")
        own = {name: there for name, there in own.items() if not f"{name}.".startswith(f"{key}.")}
        own[key] = _parsed(value)
    from_sets = {line.partition("=")[0] for line in sets}
    for key in keys:
        # A value that holds the key, such as a table written in one line, has been taken apart by `leaves`.
        own.setdefault(key, None)
    sections: dict[str, list[str]] = {"": []}
    for name, value in own.items():
        section, _, rest = name.partition(".")
        section, rest = (section, rest) if rest else ("", section)
        if name in keys:
            shown_value, comment = keys[name]
            value = shown_value
        else:
            comment = "from --set" if name in from_sets else ""
        line = f"{_dotted(rest)} = {toml_value(value)}"
        sections.setdefault(section, []).append(f"{line} # {comment}" if comment else line)
    lines = [
        f"# {shown(path.name)} with {len(keys)} keys fitted to {values} measured values, by nandlab {_core.version()}.",
        "# A value without a comment is that of the spec that was fitted.",
        *sections.pop(""),
    ]
    for section, entries in sections.items():
        entries.sort(key=lambda entry: not entry.startswith("preset ="))
        lines += [f"[{section}]", *entries]
    made = "\n".join(lines) + "\n"
    # The file means what was fitted.
    again = _core.Spec.load(made, path.name, str(path.parent.absolute()), [])
    assert again.canonical_json() == fitted.canonical_json(), made
    return made


def _form(spec: Spec) -> tuple[str, str, str, list[str]]:
    from nandlab.comparison.inputs import loaded_as

    return loaded_as(spec)


def _parsed(value: str) -> Any:
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        # --set takes a bare word as a string.
        return value


def _dotted(name: str) -> str:
    return ".".join(part if re.fullmatch(r"[\w-]+", part) else toml_value(part) for part in name.split("."))
