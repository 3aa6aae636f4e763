"""What a comparison is given: run folders, specs and results in memory, read and checked before anything runs."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nandlab import _core
from nandlab._core import NandlabError, Spec
from nandlab.errors import OutputError, shown
from nandlab.lifetime import Life
from nandlab.results import MARKER, RunResult
from nandlab.spec import PATH_KEYS, Sets, load, read_spec, set_arguments
from nandlab.study.store import MARKER as STUDY_MARKER
from nandlab.trace import is_read_once

#: A run folder, the file or the text of a spec, a spec, a result, or overrides of the first of the sources.
Source = RunResult | Spec | str | os.PathLike[str] | Mapping[str, object]
#: The file with the result of a comparison.
RESULT = "compare.json"
#: The most seeds of a comparison.
SEEDS_MAX = 10_000
#: The most characters of a name made of overrides.
_NAME_MAX = 36
#: The beginning of an override, as `--set` takes it.
_OVERRIDE = re.compile(r"[\w-]+(\.[\w-]+)*=")


@dataclass(frozen=True)
class Given:
    """One of the things to be compared: a finished run, or a spec to be run."""

    name: str
    #: The path of the run folder or spec; `None` for a text or an object in memory.
    path: Path | None
    result: RunResult | None = None
    spec: Spec | None = None


def read(sources: Sequence[Source], sets: Sets, *, anew: bool) -> list[Given]:
    """Read all sources; with `sets` or `anew` the specs of finished runs are to be run. Raises `NandlabError`."""
    if len(sources) < 2:
        found = "one" if sources else "none"
        raise OutputError(
            f"expected two or more runs to compare, found {found}\n"
            "  remedy: name run folders (of `nandlab run --out`) or specs, the baseline first, such as out/greedy "
            "out/fifo,\n    or a spec and overrides of it, such as SPEC.toml gc.victim=fifo"
        )
    if isinstance(sources[0], Mapping):
        # Nothing is before it whose keys it could override.
        sources = [load(sources[0]), *sources[1:]]
    arguments = set_arguments(sets)
    anew = anew or bool(arguments)
    given = []
    for at, source in enumerate(sources):
        overrides = _overrides(source)
        if overrides is None:
            given.append(_read(source, arguments, anew=anew))
        elif at:
            variant = _read(sources[0], [*arguments, *overrides], anew=True)
            given.append(replace(variant, name=_name_of(overrides)))
        else:
            raise OutputError(
                f"{shown(', '.join(overrides))} overrides keys of a spec, and no spec is named before it\n"
                "  remedy: name the spec or run folder first, such as SPEC.toml gc.victim=fifo"
            )
    for one in given:
        if one.spec is not None:
            _check_files(one, one.spec)
    return list(_with_names(given))


def _overrides(source: Source) -> list[str] | None:
    """Overrides of the first source, `KEY=VALUE,KEY=VALUE` or a mapping; `None` for another source."""
    if isinstance(source, Mapping):
        return set_arguments(source)
    if not isinstance(source, str) or "\n" in source or not _OVERRIDE.match(source) or os.path.exists(source):
        return None
    # A comma within brackets or quotes belongs to a value, as in gc.victim.random={k=8,...}.
    parts, depth, quote = [""], 0, ""
    for character in source:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        else:
            depth += (character in "[{") - (character in "]}")
        if character == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _name_of(overrides: list[str]) -> str:
    """The overrides as a name; of many, the first and the number of the others."""
    plain = [re.sub(r'="([\w.-]+)"$', r"=\1", one) for one in overrides]
    name = ", ".join(plain)
    if len(name) <= _NAME_MAX:
        return name
    first = shown(plain[0])
    if len(plain) > 1:
        return f"{first[:_NAME_MAX]} and {len(plain) - 1} more"
    return first if len(first) <= 2 * _NAME_MAX else f"{first[: 2 * _NAME_MAX - 3]}..."


def _is_text(source: str) -> bool:
    """Whether a string is the text of a spec, and not a path with a `=` in it."""
    before, equals, _ = source.partition("=")
    has_key = bool(equals) and os.sep not in before and not source.endswith(".toml")
    return "\n" in source or (has_key and not os.path.exists(source))


def _read(source: Source, sets: list[str], *, anew: bool) -> Given:
    if isinstance(source, RunResult):
        return _finished(source, sets, anew=anew)
    if isinstance(source, Spec):
        name = Path(source.source[1]).stem
        return Given(name, None, spec=source.with_(sets))
    assert not isinstance(source, Mapping)  # read by `_overrides`
    if isinstance(source, str) and _is_text(source):
        return Given("spec", None, spec=load(source, sets))
    path = Path(source)
    if path.is_dir():
        return _finished(_result(path), sets, anew=anew)
    if path.exists() and path.suffix != ".toml" and (path.parent / MARKER).is_file():
        raise OutputError(f"{shown(path)} is a file of a result\n  remedy: name its folder, {shown(path.parent)}")
    if not path.exists() and path.suffix != ".toml":
        raise OutputError(f"no run folder and no spec {shown(path)}\n  remedy: {_near(path)}")
    return Given(path.stem, path, spec=read_spec(path, sets))


def _result(path: Path) -> RunResult:
    """The finished run in a folder."""
    if Life.is_in(path):
        raise OutputError(
            f"{shown(path)} has the result of `nandlab life`, and runs are compared\n"
            "  remedy: name folders of `nandlab run --out`, or specs"
        )
    if (path / STUDY_MARKER).is_file() or (path / RESULT).is_file():
        kind = "a study" if (path / STUDY_MARKER).is_file() else "a comparison"
        raise OutputError(
            f"{shown(path)} has the results of {kind}, and runs are compared\n  remedy: name folders of single runs, "
            f"such as those in {shown(path / 'runs')}"
        )
    if not (path / MARKER).is_file():
        raise OutputError(
            f"{shown(path)} is no run folder (no file {MARKER})\n"
            "  remedy: name a folder that `nandlab run --out` has written, or a spec (a TOML file)"
        )
    return RunResult.read(path)


def _finished(result: RunResult, sets: list[str], *, anew: bool) -> Given:
    name = result.name if result.path is None else result.path.absolute().name
    if not anew:
        return Given(name, result.path, result=result)
    folder = Path.cwd() if result.path is None else result.path
    where = f"the run {name}" if result.path is None else shown(result.path)
    try:
        spec = Spec.load(result.spec_toml, "spec.toml", str(folder.absolute()), [], unloaded=True)
    except NandlabError as error:
        raise OutputError(
            f"{where}: its spec cannot be run again with nandlab {_core.version()}\n{error}\n"
            "  remedy: name the file of the spec in place of the run"
        ) from None
    return Given(name, result.path, spec=spec.with_(sets))


def input_files(spec: Spec) -> dict[str, Path]:
    """The input files of a spec by their key; error rates are part of the spec itself."""
    resolved = json.loads(spec.canonical_json())
    directory = Path(spec.source[2])
    found = {}
    for key in PATH_KEYS:
        section, name = key.split(".", 1)
        value = resolved.get(section, {}).get(name)
        if isinstance(value, str):
            found[key] = directory / value
    return found


def _check_files(given: Given, spec: Spec) -> None:
    """Refuse a spec with an input file that is missing or that cannot be read again."""
    for key, path in input_files(spec).items():
        if is_read_once(str(path)):
            raise OutputError(
                f"{given.name}: {key}: {shown(path)} can be read only once, like a pipe, and several runs read it\n"
                "  remedy: save it in a file first"
            )
        if path.exists():
            continue
        if given.path is not None and given.path.is_dir():
            raise OutputError(
                f"{shown(given.path)} cannot be run again: {key} is no file at {shown(path)}\n"
                "  remedy: name the file of the spec in place of the run folder, or give the whole path with "
                f"--set {key}=/..."
            )
        raise OutputError(f"{given.name}: {key}: no file {shown(path)}\n  remedy: check the path")


def _near(path: Path) -> str:
    """The remedy for a missing run folder."""
    try:
        there = {entry.name: entry for entry in path.parent.iterdir() if (entry / MARKER).is_file()}
    except OSError:
        there = {}
    near = difflib.get_close_matches(path.name, there, n=3, cutoff=0.5)
    if near:
        return "did you mean " + " or ".join(shown(there[name]) for name in near) + "?"
    return "check the path; a run folder is written by `nandlab run --out`, and a spec is a TOML file"


def _with_names(given: Sequence[Given]) -> Iterator[Given]:
    """The same, with a number behind a name that another one has already."""
    taken: set[str] = set()
    for one in given:
        name, number = one.name, 1
        while name in taken:
            number += 1
            name = f"{one.name}-{number}"
        taken.add(name)
        yield replace(one, name=name)
