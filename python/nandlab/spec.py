"""Specs: TOML texts that describe a drive, its policies and a workload."""

import contextlib
import json
import math
import numbers
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from nandlab import _core, memory
from nandlab._core import Spec
from nandlab._types import PolicyRow
from nandlab.errors import OutputError, os_error_text, shown
from nandlab.units import count, number, size

#: The most bytes of a spec that are read, since a device may have no end. The core has the same limit for a text.
_BYTES_MAX = 1 << 20

#: About the time of a call that picks a victim among 512 blocks in numpy, in microseconds; the page on policies in
#: Python has the measured times.
_CALL_US = 20

#: Keys whose value is a path; the identity of a run depends on the content of the file, not on its path.
PATH_KEYS = ("workload.trace", "precondition.load", "reliability.rber.table")

__all__ = ["Fit", "Sets", "Spec", "fit", "load", "policies", "presets", "read_spec", "schema", "version"]

#: Overrides: `["drive.op=0.28"]` as on the command line, or `{"drive.op": 0.28}`.
Sets = Iterable[str] | Mapping[str, object]


def load(source: str | os.PathLike[str] | Mapping[str, object], sets: Sets = ()) -> Spec:
    """Read a spec from a file, from TOML text or from a mapping, and validate it.

    `source` is a path, TOML text, or a mapping from keys to values: `{"drive": {"channels": 2}, "gc.victim": "fifo"}`.
    A string is TOML text when it contains a newline or `=` and does not end in `.toml`. `sets` overrides single keys,
    as `--set` does. Raises `SpecError`, whose text names each wrong key with its line and a remedy, and `OutputError`
    when the file cannot be read.
    """
    if isinstance(source, Mapping):
        source = toml_text(source)
    if isinstance(source, str) and not source.endswith(".toml") and ("\n" in source or "=" in source):
        return _core.Spec.load(source, "spec", os.getcwd(), set_arguments(sets))
    return read_spec(Path(source), sets)


def read_spec(path: Path, sets: Sets = (), *, unloaded: bool = False) -> Spec:
    """Read and validate the spec in the file `path`; relative paths in the spec start at its directory.

    `unloaded`: accept the name of a policy that is not loaded, whose parameters are not checked then.
    """
    directory = str(path.parent.absolute())
    return _core.Spec.load(_read_text(path), path.name, directory, set_arguments(sets), unloaded=unloaded)


def read_unloaded(path: Path, sets: Sets = ()) -> Spec:
    """As `read_spec`; names of policies that are not loaded are accepted, except typing errors of known names."""
    import difflib

    checked = read_spec(path, sets, unloaded=True)
    for slot, name in checked.unloaded:
        known = [row["name"] for row in policies() if row["slot"] == slot]
        if difflib.get_close_matches(name, known, n=1, cutoff=0.85):
            return read_spec(path, sets)
    return checked


def read_live(path: Path, sets: Sets = ()) -> Spec:
    """The spec of a live drive, which takes built-in policies only. Raises `OutputError` for others."""
    checked = read_unloaded(path, sets)
    for slot, name in [*((policy.slot, policy.name) for policy in checked.policies), *checked.unloaded]:
        raise OutputError(
            f'{path.name}: {slot} = "{name}" is no built-in policy, and a live drive takes no policies in Python: '
            "replies would wait for the interpreter\n  remedy: one of the policies of `nandlab spec policies`"
        )
    return checked


def set_arguments(sets: Sets) -> list[str]:
    """Overrides as strings `key=value`, with the value in TOML."""
    if isinstance(sets, str):
        return [sets]
    if isinstance(sets, Mapping):
        return [f"{key}={toml_value(value)}" for key, value in sets.items()]
    return list(sets)


def toml_value(value: object) -> str:
    """A value of a spec in TOML."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        # A scalar of numpy as one of Python, also a truth value.
        value = cast(Any, value).item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # TOML does not have JSON's surrogate pairs.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, numbers.Integral):
        return repr(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    if isinstance(value, os.PathLike):
        return toml_value(os.fspath(value))
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml_key(key)} = {toml_value(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, Iterable):
        return "[" + ", ".join(toml_value(entry) for entry in value) + "]"
    raise TypeError(f"a value of a spec cannot be of type {type(value).__name__}")


def toml_text(values: Mapping[str, object], *, dotted: bool = True) -> str:
    """A TOML text with the values, a line for each; with `dotted`, dots in the names of the first level separate
    keys."""
    lines = []
    for name, value in values.items():
        names = str(name).split(".") if dotted else [str(name)]
        try:
            lines.append(f"{'.'.join(map(_toml_key, names))} = {toml_value(value)}\n")
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
    return "".join(lines) or "\n"


def _toml_key(name: object) -> str:
    text = str(name)
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else toml_value(text)


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
            f"{shown(path)}: a spec has at most {size(_BYTES_MAX)}\n  remedy: check that this is the right file"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise OutputError(
            f"{shown(path)}:{line}: not UTF-8 text (byte {error.start})\n  remedy: save the spec as TOML in UTF-8"
        ) from None


def is_setting(word: str) -> bool:
    """Whether a word of a command line has the form of an override: `gc.victim=fifo`."""
    return re.match(r"(seed|[a-z_]+\.[a-z_]+[\w.-]*)=", word) is not None


def _near(path: Path) -> str:
    """The remedy for a missing spec: similar names in its directory, the current directory and examples/."""
    import difflib

    if is_setting(str(path)):
        return f"\n  remedy: to override a key of a spec, write --set {shlex.quote(str(path))}"
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
    from nandlab import shipped

    if any(path.stem == entry.stem for entry in shipped.EXAMPLES.glob("*.toml")):
        return f"\n  remedy: copy the example with `nandlab examples {path.stem}`, then name {path.stem}.toml"
    if not path.parent.exists():
        return f"\n  remedy: check the path: the directory {shown(path.parent)} does not exist"
    return "\n  remedy: check the path"


def cost_of_pts(spec: Spec) -> str | None:
    """What a policy in Python costs in preconditioning by `pts`, as a note; `None` for a spec without both."""
    victims = spec.pts_victims
    named = [*((policy.slot, policy.name) for policy in spec.policies), *spec.unloaded]
    names = [name for slot, name in named if slot == "gc.victim"]
    if victims is None or not names:
        return None
    least_s = number(victims * _CALL_US * 1e-6)
    return (
        f'precondition.method = "pts" picks more than {count(victims)} victims before the run, each by a call of '
        f'gc.victim = "{names[0]}": {least_s} s at {_CALL_US} µs a call, times the write amplification'
    )


class Fit(NamedTuple):
    """A drive scaled to its workload."""

    #: Overrides that scale the drive; empty for a drive that is small enough.
    sets: dict[str, object]
    #: Requests of the workload.
    requests: int
    #: Bytes that the workload writes.
    written_bytes: int
    #: Raw bytes minus logical bytes of the scaled drive.
    spare_bytes: int


def fit(spec: Spec, times: float = 5.0) -> Fit:
    """Scale the drive of a spec to its workload, so that the workload writes the spare space at least `times` times.

    Changes the number of blocks per plane, and `drive.op` so that the effective over-provisioning stays the same. If a
    trace has addresses beyond this drive, the result is the smallest drive that has its addresses, with the `drive.op`
    of the spec, and as many repetitions as write the spare space `times` times. If such a drive is invalid or does not
    fit into memory, `workload.beyond` is set to `wrap` instead. With `workload.beyond = "wrap"` in the spec the
    addresses of a trace do not matter. Other keys, such as the sizes of caches, are not changed.

    Reads the whole workload. Raises `OutputError` when the workload writes too little for any drive or `times` is not
    above 0, `RunError` for a spec without a workload, `SpecError` when the scaled drive is invalid for another reason.
    """
    if not times > 0:
        raise OutputError(f"times: expected a number above 0, found {times}")
    requests, written, end = _core.workload_facts(spec)
    fitted = _core.fit_to_writes(spec, written, times)
    resolved = json.loads(spec.canonical_json())
    wraps, is_trace = resolved["workload"]["beyond"] == "wrap", "trace" in resolved["workload"]
    if fitted is None:
        if is_trace and not wraps and end > spec.logical_bytes:
            return _grown(spec, (requests, written, end), times)
        raise OutputError(_too_little(spec, written, times))
    blocks, op, spare = fitted
    sets: dict[str, object] = {}
    if blocks != resolved["drive"]["blocks_per_plane"]:
        sets = {"drive.blocks_per_plane": blocks, "drive.op": op}
    scaled = spec.with_(sets) if sets else spec
    if sets and not is_trace:
        # A generated workload uses the addresses of the scaled drive.
        _, _, end = _core.workload_facts(scaled)
    if not wraps and end > scaled.logical_bytes:
        if is_trace:
            with contextlib.suppress(_core.SpecError, _core.RunError):
                return _grown(spec, (requests, written, end), times)
        sets["workload.beyond"] = "wrap"
    return Fit(sets, requests, written, spare)


def _grown(spec: Spec, facts: tuple[int, int, int], times: float) -> Fit:
    """The smallest drive that has all addresses of a trace, given the facts of the workload."""
    requests, written, end = facts
    grown = spec.with_({"drive.capacity": f"{end}B"})
    memory.check(grown)
    resolved = json.loads(grown.canonical_json())
    sets: dict[str, object] = {"drive.blocks_per_plane": resolved["drive"]["blocks_per_plane"]}
    spare = grown.raw_bytes - grown.logical_bytes
    rounds = math.ceil(times * spare / written) if written else 1
    if rounds > 1:
        sets["workload.repeat"] = rounds * resolved["workload"]["repeat"]
        if resolved["workload"]["requests_max"]:
            sets["workload.requests_max"] = requests * rounds
    # Checks the number of repetitions.
    spec.with_(sets)
    return Fit(sets, requests * rounds, written * rounds, spare)


def _too_little(spec: Spec, written: int, times: float) -> str:
    text = f"the workload writes {size(written)}"
    if not written:
        return f"{text}, so no drive can be fitted to it\n  remedy: a workload that writes"
    # Find the least number of repetitions of the workload that is enough.
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
        f"{text}, too little to write the spare space {times:g} times, even of the smallest drive with as many planes\n"
        f"  remedy: --set workload.repeat={repeat}, fewer planes (drive.channels, chips_per_channel, dies_per_chip, "
        "planes_per_die), smaller blocks (drive.pages_per_block), or fewer times"
    )


def version() -> str:
    """The version of nandlab. The same spec, seed and version give the same bytes."""
    return _core.version()


def schema() -> str:
    """The JSON Schema of a spec, as JSON text, for editors."""
    return _core.schema()


def presets() -> list[tuple[str, str]]:
    """Name and description of each preset, for `drive.preset`."""
    return _core.presets()


def policies() -> list[PolicyRow]:
    """The policies that a spec can name: slot (a key such as `gc.victim`), name and description."""
    return _core.policies()
