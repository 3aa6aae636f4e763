"""`nandlab spec`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

import nandlab
from nandlab import spec, units
from nandlab.cli.app import End, Json, Sets, app, examples
from nandlab.cli.output import fail, show_pairs, show_rows
from nandlab.errors import OutputError

spec_app = App(
    name="spec",
    help="Check specs, show specs with all defaults, list presets and policies.",
    help_epilogue="",
    help_format="plaintext",
)
app.command(spec_app)


@spec_app.command(
    name="check",
    help_epilogue=examples(
        "nandlab spec check examples/*.toml",
    ),
)
def spec_check(
    *files: Annotated[Path, Parameter(name="SPEC.toml")],
    sets: Sets = None,
    json_: Json = False,
) -> End:
    """Validate specs; each error is printed with its line and a remedy.

    Parameters
    ----------
    files
        The specs to check.
    """
    if not files:
        raise OutputError("name a spec to check, such as examples/demo.toml")
    rows, lines = [], []
    problems = []
    for file in files:
        try:
            checked = spec.read_spec(file, sets or [])
        except nandlab.NandlabError as error:
            problems.append(str(error))
            continue
        rows.append(
            {
                "spec": str(file),
                "hash": checked.hash,
                "logical_bytes": checked.logical_bytes,
                "raw_bytes": checked.raw_bytes,
                "page_bytes": checked.page_bytes,
            }
        )
        capacity, raw = units.size(checked.logical_bytes), units.size(checked.raw_bytes)
        lines.append(f"{file}: ok, {capacity} drive ({raw} raw), hash {checked.hash}")
    if json_:
        print(json.dumps(rows, indent=2))
    else:
        for line in lines:
            print(line)
    for i, problem in enumerate(problems):
        fail(f"\n{problem}" if i else problem)
    return End(2 if problems else 0)


@spec_app.command(
    name="show",
    help_epilogue=examples(
        "nandlab spec show examples/demo.toml",
        "nandlab spec show examples/demo.toml --set drive.op=0.28 > my.toml",
    ),
)
def spec_show(file: Annotated[Path, Parameter(name="SPEC.toml")], /, *, sets: Sets = None, json_: Json = False) -> None:
    """Print the resolved spec, with the values of its preset and with every default.

    Parameters
    ----------
    file
        The spec to resolve.
    """
    checked = spec.read_spec(file, sets or [])
    print((checked.canonical_json() if json_ else checked.to_toml()).rstrip("\n"))


@spec_app.command(
    name="fit",
    help_epilogue=examples(
        "nandlab spec fit my.toml",
        "nandlab run my.toml $(nandlab spec fit my.toml)",
        "nandlab spec fit my.toml --times 10",
    ),
)
def spec_fit(
    file: Annotated[Path, Parameter(name="SPEC.toml")],
    /,
    *,
    sets: Sets = None,
    times: float = 5.0,
    json_: Json = False,
) -> None:
    """Print the --set options that scale the drive to its workload.

    The scaled drive has fewer blocks per plane, and the over-provisioning that gives the same write amplification. The
    workload then writes the spare space several times, so that GC matters. The sizes of caches are not scaled.

    Parameters
    ----------
    file
        The spec. Its workload is read to the end.
    times
        The least number of times that the workload writes the spare space; 5 when absent.
    """
    if not times > 0:
        raise OutputError(f"--times: expected a number above 0, found {times:g}")
    checked = spec.read_spec(file, sets or [])
    fitted = spec.fit(checked, times)
    if json_:
        print(json.dumps(fitted._asdict(), indent=2))
        return
    written = f"{units.count(fitted.requests)} requests write {units.size(fitted.written_bytes)}"
    per = units.number(fitted.written_bytes / fitted.spare_bytes)
    what = "the spare space of the unchanged drive" if not fitted.sets else "the spare space of the scaled drive"
    print(f"{written}, {per} times {what} ({units.size(fitted.spare_bytes)})", file=sys.stderr)
    if fitted.sets:
        print(" ".join(f"--set {key}={value}" for key, value in fitted.sets.items()))


@spec_app.command(name="schema", help_epilogue=examples("nandlab spec schema > nandlab.schema.json"))
def spec_schema() -> None:
    """Print the JSON Schema of a spec, for editors."""
    print(spec.schema().rstrip("\n"))


@spec_app.command(name="presets", help_epilogue="")
def spec_presets(*, json_: Json = False) -> None:
    """List the presets of drives, for `[drive] preset = "NAME"`."""
    show_pairs(spec.presets(), json_)


@spec_app.command(name="policies", help_epilogue="")
def spec_policies(*, json_: Json = False) -> None:
    """List the policies that a spec can name, by slot."""
    show_rows([dict(row) for row in spec.policies()], json_)
