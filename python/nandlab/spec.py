"""Specs: the TOML text that describes a drive, its policies and a workload."""

import difflib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from nandlab import _core
from nandlab._core import Spec
from nandlab._types import PolicyRow
from nandlab.errors import OutputError, os_error_text, shown
from nandlab.units import size

#: A longer file is no spec: it is not read, even if it never ends. The core says the same of a text.
_BYTES_MAX = 1 << 20

__all__ = ["Fit", "Sets", "Spec", "fit", "load", "policies", "presets", "read_spec", "schema", "version"]

#: Overrides: `["drive.op=0.28"]` as on the command line, or `{"drive.op": 0.28}`.
Sets = Iterable[str] | Mapping[str, object]


def load(source: str | os.PathLike[str], sets: Sets = ()) -> Spec:
    """A validated spec from a file or from TOML text.

    `source` is a path, or a string: one that holds a newline or a `=` and does not end in `.toml` is TOML text.
    `sets` overrides single keys, as `--set` does. Raises `SpecError`, whose text names every
    offending key, its line and what would be right.
    """
    if isinstance(source, str) and not source.endswith(".toml") and ("\n" in source or "=" in source):
        return _core.Spec.load(source, "spec", os.getcwd(), set_arguments(sets))
    return read_spec(Path(source), sets)


def read_spec(path: Path, sets: Sets = ()) -> Spec:
    """A validated spec from the file `path`; relative paths in it count from its directory."""
    return _core.Spec.load(_read_text(path), path.name, str(path.parent.absolute()), set_arguments(sets))


def set_arguments(sets: Sets) -> list[str]:
    """Overrides as `key=value` strings with the value in TOML."""
    if isinstance(sets, str):
        return [sets]
    if isinstance(sets, Mapping):
        return [f"{key}={_toml(value)}" for key, value in sets.items()]
    return list(sets)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A sign beyond 16 bits is no pair of escapes in TOML.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, Iterable):
        return "[" + ", ".join(_toml(entry) for entry in value) + "]"
    raise TypeError(f"a spec holds no {type(value).__name__}")


def _read_text(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(_BYTES_MAX + 1)
    except FileNotFoundError:
        raise OutputError(f"no spec {shown(path)}{_near(path)}") from None
    except IsADirectoryError:
        inside = sorted(entry.name for entry in path.glob("*.toml"))[:6]
        hint = f"\n  specs in it: {', '.join(inside)}" if inside else ""
        raise OutputError(f"{shown(path)} is a directory, not a spec{hint}") from None
    except OSError as error:
        raise OutputError(os_error_text("read", path, error)) from None
    if len(data) > _BYTES_MAX:
        raise OutputError(
            f"{shown(path)}: more than the {size(_BYTES_MAX)} of a spec\n  remedy: check that this is the right file"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise OutputError(
            f"{shown(path)}:{line}: not UTF-8 text (byte {error.start})\n  remedy: save it as TOML in UTF-8"
        ) from None


def _near(path: Path) -> str:
    """Names like the one that is missing, from its directory and from examples/ below the current one."""
    candidates: dict[str, Path] = {}
    for directory in (path.parent, Path("."), Path("examples")):
        try:
            entries = [entry for entry in directory.iterdir() if entry.suffix == ".toml"]
        except OSError:
            continue
        for entry in sorted(entries):
            candidates.setdefault(entry.stem, entry)
    near = difflib.get_close_matches(path.stem, candidates, n=3, cutoff=0.5)
    if near:
        return "\n  remedy: did you mean " + " or ".join(str(candidates[name]) for name in near) + "?"
    if not path.parent.exists():
        return f"\n  remedy: check the path: the directory {shown(path.parent)} does not exist"
    return "\n  remedy: check the path"


class Fit(NamedTuple):
    """A drive that is scaled to its workload."""

    #: Overrides that make it; empty where the drive is small enough as it is.
    sets: dict[str, object]
    #: Requests of the workload, and bytes that it writes.
    requests: int
    written_bytes: int
    #: Raw less logical bytes of the drive.
    spare_bytes: int


def fit(spec: Spec, times: float = 5.0) -> Fit:
    """Scale a spec's drive to its workload, so that the workload writes the spare space at least `times` times.

    Fewer blocks a plane, and the `drive.op` that keeps the effective over-provisioning; all else stays, the sizes of
    caches too. Reads the whole workload. Raises `OutputError` where it writes too little for any drive, `SpecError`
    where the scaled drive is impossible for another reason.
    """
    if not times > 0:
        raise OutputError(f"times = {times}: more than 0")
    requests, written, end = _core.workload_facts(spec)
    fitted = _core.fit_to_writes(spec, written, times)
    if fitted is None:
        raise OutputError(_too_little(spec, written, times))
    blocks, op, spare = fitted
    resolved = json.loads(spec.canonical_json())
    sets: dict[str, object] = {}
    if blocks != resolved["drive"]["blocks_per_plane"]:
        sets = {"drive.blocks_per_plane": blocks, "drive.op": op}
    scaled = spec
    if sets:
        # A generated workload addresses what there is.
        scaled = spec.with_(sets)
        _, _, end = _core.workload_facts(scaled)
    if resolved["workload"]["beyond"] != "wrap" and end > scaled.logical_bytes:
        sets["workload.beyond"] = "wrap"
    return Fit(sets, requests, written, spare)


def _too_little(spec: Spec, written: int, times: float) -> str:
    text = f"the workload writes {size(written)}"
    if not written:
        return f"{text}: there is nothing to fit a drive to\n  remedy: a workload that writes"
    # The least number of times that it has to be played.
    low, high = 1, 2
    while _core.fit_to_writes(spec, high * written, times) is None:
        low, high = high, 2 * high
        if high > 1 << 20:
            return f"{text}, too little for any drive of this geometry\n  remedy: more requests"
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _core.fit_to_writes(spec, middle * written, times) is None else (low, middle)
    repeat = high * json.loads(spec.canonical_json())["workload"]["repeat"]
    return (
        f"{text}, too little to write the spare space {times:g} times of even the smallest drive with so many planes\n"
        f"  remedy: --set workload.repeat={repeat}, fewer planes (drive.channels, chips_per_channel, dies_per_chip, "
        "planes_per_die), smaller blocks (drive.pages_per_block), or fewer times"
    )


def version() -> str:
    """The version of the program; a spec, its seed and this version give the same bytes."""
    return _core.version()


def schema() -> str:
    """The JSON Schema of a spec, as text, for editors."""
    return _core.schema()


def presets() -> list[tuple[str, str]]:
    """Name and description of every drive that ships with the package."""
    return _core.presets()


def policies() -> list[PolicyRow]:
    """Every policy that a spec can name: its slot (such as `gc.victim`), name and description."""
    return _core.policies()
