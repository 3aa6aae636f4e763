"""`nandlab doctor`."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import nandlab
from nandlab.cli.app import End, Parser
from nandlab.cli.output import say

#: What a distribution is for. Which ones there are, and their versions, is in the metadata of nandlab.
_FOR = {
    "altair": "figures",
    "argcomplete": "completion of the command in a shell",
    "distributed": "studies on a Dask cluster",
    "jinja2": "reports",
    "msgspec": "results in memory",
    "numpy": "tables in Python, reports, studies",
    "pandas": "tables as pandas data frames",
    "polars": "tables in Python, reports, studies",
    "pydantic": "study files",
    "rich": "progress bars and `nandlab live top`",
    "scipy": "calibrations",
    "vl-convert-python": "figures",
}
#: The module of a distribution, where its name differs.
_MODULES = {"vl-convert-python": "vl_convert"}
#: One request on the smallest drive.
_SPEC = """
[drive]
channels = 1
chips_per_channel = 1
planes_per_die = 1
blocks_per_plane = 32
pages_per_block = 16
page_size = "4KiB"
op = 0.25
[workload.synthetic]
requests = 1
read_fraction = 0.0
size = "4KiB"
address = "uniform"
"""


class Check(NamedTuple):
    """One line of the table."""

    what: str
    #: `ok`; `missing`, of a part that is optional; `broken`, of a part without which nandlab does not work.
    state: str
    found: str
    needed_for: str = ""


def add(parser: Parser) -> None:
    """Declare the arguments."""
    parser.define(
        doctor,
        "Exit status: 0 if all parts work that nandlab needs, 2 if one does not; optional parts may be missing.",
        examples="""
nandlab doctor
nandlab doctor --json | jq '.checks[] | select(.state != "ok")'
""",
    )
    parser.add_json()


def doctor(options: argparse.Namespace) -> End:
    """Run the command."""
    checks = [_core(), _shipped(), _run(), *_distributions()]
    broken = [check.what for check in checks if check.state == "broken"]
    free = memory_bytes()
    machine = {
        "nandlab": nandlab.version(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "folder": str(Path(nandlab.__file__).parent),
        "processors": processors(),
    }
    from nandlab import trace

    kept = {"kept_traces": trace.kept(), "kept_drives": kept_drives()}
    if options.json:
        facts = {
            **machine,
            "memory_bytes": free,
            **{what: None if of is None else {**of._asdict(), "folder": str(of.folder)} for what, of in kept.items()},
            "works": not broken,
            "checks": [check._asdict() for check in checks],
        }
        print(json.dumps(facts, indent=2))
        return End(2 if broken else 0)
    from nandlab.units import size

    machine["memory"] = "unknown" if free is None else f"{size(free)} available to a run"
    for what, of in kept.items():
        machine[what.replace("_", " ")] = (
            "off (NANDLAB_CACHE)" if of is None else f"{of.folder}: {of[1]} ({size(of.bytes)} of {size(of.bytes_max)})"
        )
    # Plain text: the packages that draw tables may be the ones that are missing.
    rows = [(name, "", str(value), "") for name, value in machine.items()] + [tuple(check) for check in checks]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True)).rstrip())
    if broken:
        say(f"\nbroken: {', '.join(broken)}\n  remedy: install nandlab again, with its dependencies")
    return End(2 if broken else 0)


class KeptDrives(NamedTuple):
    """The folder in which preconditioned drives are kept for the next run."""

    folder: Path
    drives: int
    bytes: int
    #: The limit of `bytes`. Above it, the drives that were used least recently are removed.
    bytes_max: int


def kept_drives() -> KeptDrives | None:
    """The folder of kept drives, and their number and size; `None` if none are kept (`NANDLAB_CACHE=off`)."""
    from nandlab import _core as core

    folder = core.kept_drives()
    return None if folder is None else KeptDrives(*folder)


def processors() -> int:
    """The processors that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int | None:
    """The memory that a run may use; `None` on a system that does not tell."""
    from nandlab import memory

    return memory.available()


def _core() -> Check:
    from nandlab import _core as core

    return Check("simulator", "ok", f"version {core.version()}", "runs")


def _shipped() -> Check:
    from nandlab import shipped

    what, needed_for = "studies, presets, examples, traces", "`nandlab study NAME`, `nandlab examples`"
    try:
        items = shipped.items()
        missing = [item.name for item in items if not item.path.exists()]
    except OSError as error:
        return Check(what, "broken", str(error), needed_for)
    kinds = [item.kind for item in items]
    if missing or set(kinds) != {"example", "preset", "study", "trace"}:
        return Check(what, "broken", f"not found in {Path(shipped.__file__).parent}", needed_for)
    found = ", ".join(f"{kinds.count(kind)}" for kind in ("study", "preset", "example", "trace"))
    return Check(what, "ok", found, needed_for)


def _run() -> Check:
    try:
        result = nandlab.run(_SPEC)
    except Exception as error:
        return Check("a run", "broken", str(error).partition("\n")[0] or type(error).__name__)
    waf = result.summary.waf
    return Check("a run", "ok" if waf == 1 else "broken", f"one request, WAF {waf:g}" if waf else "no WAF")


def _distributions() -> Iterator[Check]:
    """The Python packages that the metadata names, those that every installation needs first."""
    try:
        required = importlib.metadata.requires("nandlab") or []
    except importlib.metadata.PackageNotFoundError:
        required = [name for name in _FOR if name not in ("altair", "distributed", "jinja2", "pandas")]
    for line in sorted(required, key=lambda line: "extra ==" in line):
        name = re.split(r"[^\w.-]", line, maxsplit=1)[0].lower()
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        wanted = line.partition(";")[0].strip()[len(name) :].strip()
        yield _distribution(name, wanted, None if extra is None else extra[1])


def _distribution(name: str, wanted: str, extra: str | None) -> Check:
    needed_for = _FOR.get(name, "") + ("" if extra is None else f" (nandlab[{extra}])")
    state = "broken" if extra is None else "missing"
    try:
        version = importlib.metadata.version(name)
        __import__(_MODULES.get(name, name.replace("-", "_")))
    except importlib.metadata.PackageNotFoundError:
        return Check(name, state, "not installed", needed_for)
    except Exception as error:
        return Check(name, state, f"{type(error).__name__}: {error}".partition("\n")[0], needed_for)
    if not within(version, wanted):
        return Check(name, state, f"{version}, needed is {wanted}", needed_for)
    return Check(name, "ok", version, needed_for)


def within(version: str, wanted: str) -> bool:
    """Whether a version is in the range `>=A,<B`; a range of another form is not judged."""
    for bound in filter(None, wanted.split(",")):
        sign, _, limit = bound.strip().rpartition("=") if "=" in bound else (bound.strip()[0], "", bound.strip()[1:])
        found, border = _release(version), _release(limit)
        length = max(len(found), len(border))
        found, border = (numbers + (0,) * (length - len(numbers)) for numbers in (found, border))
        if (sign == ">" and "=" in bound and found < border) or (sign == "<" and "=" not in bound and found >= border):
            return False
    return True


def _release(version: str) -> tuple[int, ...]:
    found = re.match(r"\s*(\d+(?:\.\d+)*)", version)
    return tuple(map(int, found[1].split("."))) if found else ()
