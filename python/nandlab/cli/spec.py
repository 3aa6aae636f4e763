"""`nandlab spec`."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import nandlab
from nandlab import spec, units
from nandlab._types import PolicyRow
from nandlab.cli.app import End, Parser
from nandlab.cli.output import fail, load_policies, make_console, say, say_data, show_pairs
from nandlab.errors import OutputError, visible


def add(parser: Parser) -> None:
    """Declare the arguments."""
    check = parser.add_command("check", "Validate specs; each error is printed with its line and a remedy.")
    check.define(_check, examples="nandlab spec check examples/*.toml")
    check.add_argument("names", nargs="*", metavar="SPEC.toml", help="The specs to check.")
    check.add_sets(bare=False)
    check.add_policies()
    check.add_json()

    show = parser.add_command("show", "Print the resolved spec, with the values of its preset and with every default.")
    show.define(
        _show,
        examples="""
nandlab spec show examples/demo.toml
nandlab spec show examples/demo.toml --set drive.op=0.28 > my.toml
""",
    )
    show.add_argument("spec", type=Path, metavar="SPEC.toml", help="The spec to resolve.")
    show.add_sets()
    show.add_json()

    fit = parser.add_command("fit", "Print the --set options that scale the drive to its workload.")
    fit.define(
        _fit,
        "The scaled drive has fewer blocks per plane, and the over-provisioning that gives the same write "
        "amplification. The workload then writes the spare space several times, so that GC matters. A trace with "
        "addresses beyond this drive gets the smallest drive that has them, which may be larger, and is repeated. The "
        "sizes of caches are not scaled.",
        examples="""
nandlab spec fit my.toml
nandlab run my.toml $(nandlab spec fit my.toml)
nandlab spec fit my.toml --times 10
""",
    )
    fit.add_argument("spec", type=Path, metavar="SPEC.toml", help="The spec. Its workload is read to the end.")
    fit.add_sets()
    fit.add_argument(
        "--times",
        type=float,
        default=5.0,
        metavar="X",
        help="The least number of times that the workload writes the spare space; 5 when absent.",
    )
    fit.add_json()

    schema = parser.add_command("schema", "Print the JSON Schema of a spec, for editors.")
    schema.define(_schema, examples="nandlab spec schema > nandlab.schema.json")

    presets = parser.add_command("presets", 'List the presets of drives, for `[drive] preset = "NAME"`.')
    presets.define(_presets)
    presets.add_json()

    policies = parser.add_command("policies", "List the policies that a spec can name, by slot.")
    policies.define(_policies)
    policies.add_policies()
    policies.add_json()


def _check(options: argparse.Namespace) -> End:
    if not options.names:
        raise OutputError("name a spec to check, such as examples/demo.toml")
    load_policies(options)
    rows, lines = [], []
    problems, notes = [], []
    for file in map(Path, options.names):
        try:
            checked = spec.read_unloaded(file, options.sets)
        except nandlab.NandlabError as error:
            problems.append(str(error))
            continue
        canonical = json.loads(checked.canonical_json())
        blocks = canonical["drive"]["blocks_per_plane"]
        rows.append(
            {
                "spec": str(file),
                "hash": checked.hash,
                "logical_bytes": checked.logical_bytes,
                "raw_bytes": checked.raw_bytes,
                "page_bytes": checked.page_bytes,
                "blocks_per_plane": blocks,
                "not_loaded": [{"slot": slot, "name": name} for slot, name in checked.unloaded],
            }
        )
        capacity, raw = units.size(checked.logical_bytes), units.size(checked.raw_bytes)
        # `drive.capacity` is decimal, and its blocks are rounded up.
        decimal = f"{units.number(checked.logical_bytes * 1e-9)} GB"
        drive = f"{capacity} drive ({raw} raw; {decimal}, {units.count(blocks)} blocks per plane)"
        lines.append(f"{file}: ok, {drive}, hash {checked.hash}")
        for slot, name in checked.unloaded:
            notes.append(
                f'note: {file}: {slot} = "{name}": not loaded, parameters unchecked; name its file with --policy FILE'
            )
        trace = canonical.get("workload", {}).get("trace")
        if isinstance(trace, str) and ((path := file.parent / trace).is_dir() or not path.exists()):
            notes.append(f"note: {file}: workload.trace: there is no file {trace}, which a run needs")
        cost = spec.cost_of_pts(checked)
        if cost is not None:
            notes.append(f"note: {file}: {cost}")
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        for line in lines:
            say(line)
    for note in notes:
        fail(note)
    for i, problem in enumerate(problems):
        fail(f"\n{problem}" if i else problem)
    return End(2 if problems else 0)


def _show(options: argparse.Namespace) -> End:
    checked = spec.read_unloaded(options.spec, options.sets)
    say_data(checked.canonical_json() if options.json else checked.to_toml())
    return End()


def _fit(options: argparse.Namespace) -> End:
    if not options.times > 0:
        raise OutputError(f"--times: expected a number above 0, found {options.times:g}")
    checked = spec.read_unloaded(options.spec, options.sets)
    fitted = spec.fit(checked, options.times)
    if options.json:
        print(json.dumps(fitted._asdict(), indent=2))
        return End()
    written = f"{units.count(fitted.requests)} requests write {units.size(fitted.written_bytes)}"
    per = units.number(fitted.written_bytes / fitted.spare_bytes)
    what = "the spare space of the unchanged drive" if not fitted.sets else "the spare space of the scaled drive"
    print(visible(f"{written}, {per} times {what} ({units.size(fitted.spare_bytes)})"), file=sys.stderr)
    if fitted.sets:
        print(" ".join(f"--set {key}={value}" for key, value in fitted.sets.items()))
    return End()


def _schema(_options: argparse.Namespace) -> End:
    print(spec.schema().rstrip("\n"))
    return End()


def _presets(options: argparse.Namespace) -> End:
    show_pairs(spec.presets(), options.json)
    return End()


def _policies(options: argparse.Namespace) -> End:
    load_policies(options)
    if options.json:
        print(json.dumps([dict(row) for row in spec.policies()], indent=2))
    else:
        _show_policies(spec.policies())
    return End()


def _show_policies(rows: Sequence[PolicyRow]) -> None:
    """Print the policies of each slot below its name; the static orders of allocation are one entry."""
    from nandlab.console import Table, escape

    entries: dict[str, list[tuple[str, str]]] = {}
    for (slot, description), same in itertools.groupby(rows, lambda row: (row["slot"], row["description"])):
        names = [row["name"] for row in same]
        listed = [(name, description) for name in names]
        if slot == "ftl.allocation" and len(names) > 1:
            listed = [(f"{names[0]} to {names[-1]}", f"{len(names)} orders; {description}")]
        entries.setdefault(slot, []).extend(listed)
    width = max(len(name) for of in entries.values() for name, _ in of)
    console = make_console()
    for slot, of in entries.items():
        console.print(f"[bold]{escape(slot)}[/]")
        table = Table(head=False)
        table.add_column(no_wrap=True)
        table.add_column()
        for name, description in of:
            table.add_row("  " + escape(name.ljust(width)), escape(description))
        console.print(table)
