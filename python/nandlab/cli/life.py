"""`nandlab life`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.markup import escape

from nandlab.cli.app import End, Force, Json, Sets, app, examples, stop
from nandlab.cli.output import fail, make_console
from nandlab.errors import OutputError
from nandlab.spec import read_spec


@app.command(
    help_epilogue=examples(
        "nandlab life examples/life.toml",
        "nandlab life examples/life.toml --against-full      the error of the fast-forward",
        "nandlab report out/life                             latency, WAF, refresh, capacitor over years",
    )
)
def life(
    spec_file: Annotated[Path, Parameter(name="SPEC.toml")],
    /,
    *,
    sets: Sets = None,
    out: Path | None = None,
    windows: int = 24,
    requests: int = 50_000,
    full: Annotated[bool, Parameter()] = False,
    against_full: Annotated[bool, Parameter()] = False,
    json_: Json = False,
    force: Force = False,
) -> End:
    """Simulate the life of a drive until it is worn out: windows are simulated, the time between them is skipped.

    The workload is repeated until the first block has reached drive.endurance. In the skipped time blocks wear, time
    passes and the capacitor ages as in the window before. Data does not age in the skipped time: for data that is never
    rewritten, set reliability.retention to ages up to the refresh interval.
    Ctrl-C, SIGTERM or SIGHUP ends the life and keeps the finished windows; life.json then has "complete": false. A
    second signal discards them.
    Exit status: see `nandlab --help`.

    Parameters
    ----------
    spec_file
        The spec. Its workload is repeated without end; reliability.clock_scale sets the speed of ageing.
    out
        The directory for life.json, life.parquet and report.html; out/my for the spec my.toml when absent.
    windows
        Number of windows up to drive.endurance; each step of refresh.interval adds one. A life that ends earlier has
        fewer.
    requests
        Measured requests of a window. The same number of requests before each window lets the drive settle.
    full
        Simulate everything, which takes long.
    against_full
        Simulate the life twice, with skipped time and in full, and report the differences.
    """
    from nandlab import lifetime, reporting
    from nandlab.reporting.extra import need_figures
    from nandlab.screen import RunProgress, show_life

    if full and against_full:
        raise OutputError("--against-full includes the full simulation of --full\n  remedy: leave out --full")
    # A life can take hours; its report must not fail at the end.
    need_figures("a life needs its report")
    checked = read_spec(spec_file, sets or [])
    name = spec_file.stem
    directory = out if out is not None else Path("out") / name
    try:
        with RunProgress(name, stop, bar=not json_) as progress, stop.deferred():
            lived = lifetime.life(
                checked,
                directory,
                progress,
                windows=windows,
                requests=requests,
                full=full,
                against_full=against_full,
                force=force,
                name=name,
            )
            written = reporting.report(directory)
    except lifetime.LifeStopped:
        fail(f"{stop} before the end of the first window: there is no result")
        return End(stop.status)
    if json_:
        print(lived.facts_text.rstrip("\n"))
    else:
        console = make_console()
        console.print(f"[bold]{escape(name)}[/]  {escape(str(directory))}", soft_wrap=True)
        show_life(lived, console)
        print(written)
    if lived.facts.problem is not None:
        fail(f"{lived.facts.problem}\n  {directory} has the windows finished before")
        return End(2)
    if stop and (not lived.complete or (against_full and lived.full is None)):
        what = "the life without the full simulation" if lived.complete else "the finished windows"
        fail(f"{stop}: {directory} has {what}")
        return End(stop.status)
    return End(kept=f"the life is in {directory}")
