"""A result folder is read as it was written, or refused: mutations of each file under `report` and `compare`."""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import nandlab
import pytest
from conftest import SPEC, reseal
from nandlab import cli

#: A run whose result has every file.
FULL = SPEC.replace('page_size = "4KiB"\nop = 0.25', 'page_size = "4KiB"\nop = 0.6') + (
    "[output]\nrequests = true\ntimeline_operations = 100\n"
    "[cache]\nsize = '32KiB'\n[capacitor]\ncapacitance = '75mF'\n[power]\ncut_after_requests = 500\n"
)
MARKER = "nandlab-result.json"
MEASURED = "sim.json"


def call(*arguments: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli._run([str(argument) for argument in arguments]).status
    return status, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of two runs that differ in the seed, and of a life."""
    here = tmp_path_factory.mktemp("made")
    for seed in (1, 2):
        nandlab.run(FULL, here / f"seed{seed}", sets={"seed": seed})
    assert {path.name for path in (here / "seed1").iterdir()} == {
        *(MARKER, MEASURED, "summary.json", "smart.json", "spec.toml", "power.json", "timeline.json"),
        *(f"{table}.parquet" for table in ("series", "dies", "latency", "blocks", "requests")),
    }
    worn = {"drive.endurance": 60, "drive.op": 0.6, "precondition.used": 0.5, "precondition.valid": 0.9}
    nandlab.life(SPEC, here / "life", sets=worn, windows=2, requests=500)
    nandlab.life(SPEC, here / "life2", sets={**worn, "seed": 2}, windows=2, requests=500)
    return here


def leaves(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of the entries of a JSON value."""
    for key, entry in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from leaves(entry, (*path, key))


def changed_json(text: bytes, rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """Versions of a JSON text with an entry changed, removed, or added."""
    paths = list(leaves(json.loads(text)))
    for path in rng.sample(paths, min(len(paths), 4)):
        for what, new in (("text", "many"), ("number", 7.25), ("null", None), ("list", []), ("removed", ...)):
            whole = json.loads(text)
            at = whole
            for key in path[:-1]:
                at = at[key]
            if new is ...:
                del at[path[-1]]
            elif at[path[-1]] == new:
                continue
            else:
                at[path[-1]] = new
            yield f"{'.'.join(map(str, path))} {what}", json.dumps(whole, indent=2).encode() + b"\n"
    yield "an entry more", json.dumps({**json.loads(text), "colour": "blue"}).encode()
    yield "deep", b"[" * 100_000


def mutations(folder: Path, other: Path, rng: random.Random) -> Iterator[tuple[str, str, bytes | None]]:
    """Files, what is changed, and their new content; `None` removes the file."""
    files = sorted(path.name for path in folder.iterdir())
    for name in files:
        data = (folder / name).read_bytes()
        yield name, "removed", None
        yield name, "empty", b""
        yield name, "a line end", b"\n"
        for length in (1, len(data) // 4, len(data) // 2, len(data) - 2):
            yield name, f"cut off at {length}", data[:length]
        for at in (0, len(data) // 3, *(rng.randrange(len(data)) for _ in range(4))):
            yield name, f"byte {at} changed", data[:at] + bytes([data[at] ^ 1 << rng.randrange(7)]) + data[at + 1 :]
        yield name, "bytes after the end", data + b"\0"
        yield name, "of the other result", (other / name).read_bytes()
        yield name, "of another file", (folder / rng.choice([file for file in files if file != name])).read_bytes()
        if name.endswith(".json"):
            for what, text in changed_json(data, rng):
                yield name, what, text
        if name == "spec.toml":
            for new in (b"\nseed = 2", b"\n# seed = 1", b'\nseed = "one"'):
                assert data.count(b"\nseed = 1") == 1
                yield name, f"{new!r}", data.replace(b"\nseed = 1", new)


def content(folder: Path) -> tuple[object, ...]:
    """What a run folder says, without the measurements of the simulator."""
    result = nandlab.RunResult.read(folder)
    tables = {name: result.table(name).to_dict(as_series=False) for name in result.tables}
    texts = (result.summary_text, result.smart_text, result.spec_toml, result.timeline, result.power_text)
    return (*texts, result.name, result.spec_hash, repr(tables))


def refused(told: tuple[int, str, str], *names: str) -> list[str]:
    """What is wrong with a refusal that names one of the files."""
    status, out, err = told
    wrong = [] if (status, out) == (2, "") else [f"exit status {status}, {out[:200]!r}"]
    if "Traceback" in err or "bug" in err or not 1 <= len(err.splitlines()) <= 2:
        wrong.append("no error of one line and its remedy")
    if "again" not in err and "remedy" not in err:
        wrong.append("no remedy")
    if not any(name in err for name in names):
        wrong.append("the file is not named")
    return wrong and [*wrong, err[-1500:]]


def test_a_run_folder_is_read_as_it_was_written_or_refused(made: Path, tmp_path: Path) -> None:
    """An empty or cut off `spec.toml`, and one with another seed, ended in a traceback or were accepted in silence."""
    good, folder = made / "seed1", tmp_path / "r"
    whole, failures, counts = content(good), [], {True: 0, False: 0}
    for name, what, data in mutations(good, made / "seed2", random.Random("folders")):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(good, folder)
        if data is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(data)
        told = call("report", folder, "--out", tmp_path / "page.html")
        compared = call("compare", made / "seed2", folder, "--json")
        accepted = told[0] == 0
        counts[accepted] += 1
        if accepted:
            # Only the measurements of the simulator may differ, or white space of the marker.
            found = [] if content(folder) == whole and name in (MEASURED, MARKER) else ["accepted in silence"]
            if compared[0] != 0:
                found.append(f"only compare refuses it: {compared[2]}")
        else:
            # A marker of another result contradicts the first file that is read.
            names = (name, "summary.json") if name == MARKER else (name,)
            found = refused(told, *names, MARKER) + refused(compared, *names, MARKER)
        if found:
            failures.append(f"{name}, {what}: {'; '.join(found)}")
    assert not failures, f"{len(failures)} failed\n" + "\n".join(failures[:8])
    assert counts[False] > 150, counts


def test_a_life_folder_is_read_as_it_was_written_or_refused(made: Path, tmp_path: Path) -> None:
    good, folder = made / "life", tmp_path / "r"
    failures, count = [], 0
    for name, what, data in mutations(good, made / "life2", random.Random("lives")):
        if (name, data) == ("life.json", None):
            continue  # a folder without this file is not one of a life
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(good, folder)
        if data is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(data)
        told = call("report", folder, "--out", tmp_path / "page.html")
        names = (name, "life.json", MARKER) if name == MARKER else (name, MARKER)
        if found := refused(told, *names):
            failures.append(f"{name}, {what}: {'; '.join(found)}")
        count += 1
    assert not failures, f"{len(failures)} failed\n" + "\n".join(failures[:8])
    assert count > 50


def test_the_marker_of_a_life_is_not_that_of_a_run(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "seed1", tmp_path / "r")
    shutil.copy(made / "life" / MARKER, tmp_path / "r" / MARKER)
    assert not refused(call("report", tmp_path / "r"), MARKER)


def test_an_unchanged_folder_is_accepted(made: Path, tmp_path: Path) -> None:
    for name in ("seed1", "life"):
        shutil.copytree(made / name, tmp_path / name)
        assert call("report", tmp_path / name)[0] == 0
    assert content(tmp_path / "seed1") == content(made / "seed1")
    reseal(tmp_path / "seed1")
    assert (tmp_path / "seed1" / MARKER).read_bytes() == (made / "seed1" / MARKER).read_bytes()
    told = call("compare", made / "seed1", tmp_path / "seed1", "--json")
    assert told[0] == 0 and '"identical": true' in told[1]


def test_the_marker_has_the_digest_of_every_file_but_the_measurements(made: Path) -> None:
    again = made.parent / "again"
    nandlab.run(FULL, again, sets={"seed": 1})
    marker = json.loads((again / MARKER).read_text())
    assert {name for name, digest in marker["files"].items() if digest is None} == {MEASURED}
    # The marker is the same for the same spec, though the measurements differ.
    assert (again / MARKER).read_bytes() == (made / "seed1" / MARKER).read_bytes()
