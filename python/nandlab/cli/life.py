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
        "nandlab life examples/life.toml --against-full      the error of what is not simulated",
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
    """A drive from fresh to worn out: windows of its life are simulated, what is between them is skipped.

    The workload is played again and again until the first block has reached drive.endurance. In the stretches that
    are skipped blocks wear, time passes and the capacitor ages as in the window before; the data keeps its ages, so
    give data that is never rewritten a spread of them (reliability.retention) up to the refresh interval.
    Ctrl-C, SIGTERM or SIGHUP keeps the windows that are done: life.json then says "complete": false. A second one gives
    up.
    Exit status: 0 done, 2 refused, 3 done but not printed, 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.

    Parameters
    ----------
    spec_file
        The spec. Its workload is repeated without end; reliability.clock_scale says how fast it lives.
    out
        The directory for life.json, life.parquet and report.html; out/NAME when absent.
    windows
        Windows at least; there is one more at each step of refresh.interval.
    requests
        Requests of a window. As many are played before each one, for the drive to settle.
    full
        Simulate everything, which takes long.
    against_full
        Live the life twice, skipping and in full, and say how far they are apart.
    """
    from nandlab import lifetime, reporting
    from nandlab.screen import RunProgress, show_life

    if full and against_full:
        raise OutputError("--against-full lives the life in full too: leave out --full")
    checked = read_spec(spec_file, sets or [])
    name = spec_file.stem
    directory = out if out is not None else Path("out") / name
    try:
        with RunProgress(name, stop, bar=not json_) as progress, stop.gently():
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
        fail(f"{stop} before the first window was done: nothing was written")
        return End(stop.status)
    if json_:
        print(lived.facts_text.rstrip("\n"))
    else:
        console = make_console()
        console.print(f"[bold]{escape(name)}[/]  {escape(str(directory))}", soft_wrap=True)
        show_life(lived, console)
        print(written)
    if lived.facts.problem is not None:
        fail(f"{lived.facts.problem}\n  {directory} holds the windows that were done before")
        return End(2)
    if stop and (not lived.complete or (against_full and lived.full is None)):
        what = "life in windows" if lived.complete else "windows that are done"
        fail(f"{stop}: {directory} holds the {what}")
        return End(stop.status)
    return End(kept=f"{directory} holds the life")
