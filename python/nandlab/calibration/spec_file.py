"""The fitted spec as a TOML file: the preset of the base spec, and what differs from it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nandlab import _core
from nandlab._core import Spec
from nandlab.comparison.inputs import input_files
from nandlab.errors import shown
from nandlab.presentation.model import counted
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
    text, _, _, sets = base.source
    resolved = tomllib.loads(fitted.to_toml())
    own: dict[str, Any] = dict(leaves(tomllib.loads(text)))
    comments: dict[str, list[str]] = {}
    given = {key: value for key, _, value in (line.partition("=") for line in sets)}
    changed = dict.fromkeys(given, "from --set") | {key: comment for key, (_, comment) in keys.items()}
    for key, comment in changed.items():
        # A table of a file replaces that of a preset as a whole, so a table with a changed key is written whole.
        slot, inner = ".".join(key.split(".")[:2]), ".".join(key.split(".")[2:])
        section, _, name = slot.partition(".")
        own = {there: value for there, value in own.items() if not f"{there}.".startswith(f"{slot}.")}
        if key in keys and not inner:
            own[slot] = keys[key][0]
        else:
            # Not among the resolved keys are the preset, and keys of the file as a whole such as the seed.
            whole = resolved.get(section, {}) if name else {}
            own[slot] = whole[name] if name in whole else _parsed(given[key])
        comments.setdefault(slot, []).append(f"{inner} {comment}" if inner else comment)
    # A key from the command line may leave keys of the file without a meaning, which the fitted spec does not have.
    own = {there: value for there, value in own.items() if there == "drive.preset" or _has(resolved, there)}
    head = (
        f"# {shown(path.name)} with {counted(len(keys), 'key')} fitted to {counted(values, 'measured value')}, by "
        f"nandlab {_core.version()}.\n# A value without a comment is that of the spec that was fitted.\n"
    )
    # The file means what was fitted.
    again = _core.Spec.load(_text(own, comments), path.name, str(path.parent.absolute()), [])
    assert again.canonical_json() == fitted.canonical_json(), _text(own, comments)
    # A relative path starts at the directory of its file.
    files = {key: str(file.absolute()) for key, file in input_files(base).items() if key in own}
    return head + _text(own | files, comments)


def _has(resolved: Mapping[str, Any], key: str) -> bool:
    """Whether the resolved spec has the key, or a table of which the key is a part."""
    section, _, rest = key.partition(".")
    return not rest or rest.partition(".")[0] in resolved.get(section, {})


def _text(own: Mapping[str, Any], comments: Mapping[str, list[str]]) -> str:
    """The values as TOML, by section, with their comments."""
    sections: dict[str, list[str]] = {"": []}
    for there, value in own.items():
        section, _, rest = there.partition(".")
        section, rest = (section, rest) if rest else ("", section)
        line = f"{_dotted(rest)} = {toml_value(value)}"
        said = "; ".join(comments.get(there, ()))
        sections.setdefault(section, []).append(f"{line} # {said}" if said else line)
    lines = sections.pop("")
    for section, entries in sections.items():
        entries.sort(key=lambda entry: not entry.startswith("preset ="))
        lines += [f"[{section}]", *entries]
    return "\n".join(lines) + "\n"


def _parsed(value: str) -> Any:
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        # --set takes a bare word as a string.
        return value


def _dotted(name: str) -> str:
    return ".".join(part if re.fullmatch(r"[\w-]+", part) else toml_value(part) for part in name.split("."))
