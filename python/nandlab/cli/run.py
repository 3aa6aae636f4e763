"""`nandlab run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape

from nandlab import units
from nandlab.cli.app import End, Force, Json, Sets, app, examples, stop
from nandlab.cli.output import fail, make_console
from nandlab.spec import read_spec


@app.command(
    help_epilogue=examples(
        "nandlab run examples/demo.toml",
        "nandlab run examples/demo.toml --set drive.op=0.28 --out out/op28",
        "nandlab run examples/demo.toml --json | jq .waf",
    )
)
def run(
    spec_file: Annotated[Path, Parameter(name="SPEC.toml")],
    /,
    *,
    sets: Sets = None,
    out: Path | None = None,
    json_: Json = False,
    verify: Annotated[bool, Parameter()] = False,
    save_drive: Path | None = None,
    force: Force = False,
) -> End:
    """Simulate a spec; print a summary and write a result directory.

    The result directory appears under its name only when all its files are written.
    After the first request, Ctrl-C, SIGTERM or SIGHUP ends the run and keeps the result so far; summary.json then has
    "complete": false. A second signal discards the result.
    Exit status: see `nandlab --help`.

    Parameters
    ----------
    spec_file
        The spec. A relative path in the spec starts at the directory of the spec.
    out
        The result directory; out/my for the spec my.toml when absent. An earlier result is replaced.
    verify
        Check every read against a reference model of the drive, which is slower.
    save_drive
        Also save a snapshot of the preconditioned drive in this file, for precondition.load of other specs.
    """
    from nandlab import simulate
    from nandlab.screen import RunProgress, show_run

    checked = read_spec(spec_file, sets or [])
    name = spec_file.stem
    directory = out if out is not None else Path("out") / name
    try:
        with RunProgress(name, stop, bar=not json_) as progress, stop.deferred():
            result = simulate.run(
                checked, directory, progress, verify=verify, save_drive=save_drive, force=force, name=name
            )
    except simulate.Stopped:
        when = "in the warm-up" if progress.has_begun else "before the first request"
        fail(f"{stop} {when}: there is no result")
        return End(stop.status)
    stopped = bool(stop) and not result.complete
    if json_:
        print(result.summary_text.rstrip("\n"))
    else:
        console = make_console()
        console.print(f"[bold]{escape(name)}[/]  {escape(str(directory))}", soft_wrap=True)
        show_run(result, console)
    if not result.complete:
        how = stop if stopped else "not complete"
        fail(
            f"{how} after {units.count(result.summary.requests)} requests: {directory} has the result so far "
            '(summary.json: "complete": false)'
        )
    return End(stop.status if stopped else 0, f"the result is in {directory}")
