"""The studies, presets and examples that come with the package.

In a checkout they are links to the folders of the repository's root, in an installed package they are copies of them
(`pyproject.toml`).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nandlab import _core
from nandlab.errors import OutputError, os_error_text, shown
from nandlab.whole import NEW, hidden_beside

#: The sample traces among the examples, which have no comment that describes them.
_TRACES = {
    "oltp.csv": "A trace of 3,000 requests of a database (MariaDB under sysbench), in the format of MSR",
    "fileserver.txt": "A trace of 3,000 requests of a file server, in columns of its own",
}

_HERE = Path(__file__).parent
EXAMPLES, PRESETS, STUDIES = _HERE / "examples", _HERE / "presets", _HERE / "studies"


class Item(NamedTuple):
    """A file or folder that can be copied."""

    #: `small`, `presets/bench-16g`, `studies/laldpc`.
    name: str
    #: `example`, `trace`, `preset` or `study`.
    kind: str
    description: str
    path: Path


def studies() -> list[str]:
    """The names of the studies."""
    return sorted(path.parent.name for path in STUDIES.glob("*/study.toml"))


def items() -> list[Item]:
    """Everything that can be copied."""
    return [*_examples(), *_presets(), *_studies()]


def _examples() -> Iterator[Item]:
    for path in sorted(EXAMPLES.glob("*.*")):
        if path.name in _TRACES:
            yield Item(path.stem, "trace", _TRACES[path.name], path)
        else:
            yield Item(path.stem, "example", _first_sentence(path), path)


def _presets() -> Iterator[Item]:
    for name, description in _core.presets():
        yield Item(f"presets/{name}", "preset", description, PRESETS / f"{name}.toml")


def _studies() -> Iterator[Item]:
    for name in studies():
        yield Item(f"studies/{name}", "study", _title(STUDIES / name / "study.toml"), STUDIES / name)


def _first_sentence(path: Path) -> str:
    """The first sentence of the comment at the begin of a file."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("# ") or line.startswith("#   "):
            break
        if not line.startswith("# %%"):
            lines.append(line[2:])
    return re.split(r"(?<=[.;:]) ", " ".join(lines), maxsplit=1)[0].rstrip(".;:")


def _title(path: Path) -> str:
    found = re.search(r'^title = "(.*)"$', path.read_text(encoding="utf-8"), re.MULTILINE)
    return "" if found is None else found[1]


def named(name: str) -> Item:
    """The item of this name; a preset or study also without its folder. Raises `OutputError`."""
    every = items()
    wanted = re.sub(r"\.(toml|py|csv|txt)$", "", name.removesuffix("/")).removeprefix("examples/")
    for item in every:
        if wanted == item.name:
            return item
    for item in every:
        if wanted == item.name.rpartition("/")[2]:
            return item
    import difflib

    names = [text for item in every for text in (item.name, item.name.rpartition("/")[2])]
    near = difflib.get_close_matches(wanted, names, n=1)
    remedy = f"did you mean {near[0]}?" if near else "`nandlab examples` lists the names"
    raise OutputError(f"nothing is named {shown(name)}\n  remedy: {remedy}")


def copy(item: Item, folder: Path) -> Path:
    """Copy an item into a folder, whole or not at all; returns the path of the copy. Raises `OutputError`."""
    target = folder / item.path.name
    if target.exists() or target.is_symlink():
        raise OutputError(f"{shown(target)} exists and is not replaced\n  remedy: choose another folder with --to")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with hidden_beside(target) as hidden:
            if item.path.is_dir():
                shutil.copytree(item.path, hidden / NEW, copy_function=shutil.copyfile)
            else:
                shutil.copyfile(item.path, hidden / NEW)
            (hidden / NEW).rename(target)
    except OSError as error:
        raise OutputError(os_error_text("copy to", target, error)) from None
    return target


def needed_beside(item: Item) -> list[str]:
    """The other studies whose files a study uses, or the sample traces of an example.

    Their copies have to be in the same folder.
    """
    if item.kind == "example":
        text = item.path.read_text(encoding="utf-8")
        return [name for name in _TRACES if f'"{name}"' in text]
    if item.kind != "study":
        return []
    texts = [path.read_text(encoding="utf-8") for path in sorted(item.path.glob("*.toml"))]
    return sorted({name for text in texts for name in re.findall(r'"\.\./([\w-]+)/', text)})
