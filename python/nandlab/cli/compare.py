"""`nandlab compare`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

import nandlab
from nandlab.cli.app import End, Json, app, examples, stop
from nandlab.cli.output import fail, make_console

#: Wall time in seconds after which progress is reported where there is no bar.
_LINE_AFTER_S = 2.0


@app.command(
    help_epilogue=examples(
        "nandlab compare out/greedy out/fifo                   two finished runs",
        "nandlab compare SPEC.toml gc.victim=fifo --seeds 10   ratios with intervals",
        "nandlab compare a.toml b.toml --one-at-a-time         which keys matter",
        "nandlab compare SPEC.toml gc.victim=fifo gc.victim=cost-benefit,drive.op=0.1",
        "nandlab compare out/greedy out/fifo --json | jq .settings",
    )
)
def compare(
    *runs: Annotated[str, Parameter(name="DIR|SPEC.toml|KEY=VALUE")],
    seeds: int | None = None,
    sets: Annotated[
        list[str] | None, Parameter(name="--set", help="Override one key of every spec, as KEY=VALUE; may be repeated.")
    ] = None,
    one_at_a_time: Annotated[bool, Parameter()] = False,
    out: Path | None = None,
    workers: int | None = None,
    json_: Json = False,
) -> End:
    """Compare two or more runs: what was set differently, and which outcomes differ, the largest difference first.

    The first is the baseline. Result directories of `nandlab run` are compared as they are, specs are run.
    KEY=VALUE stands for the first spec with this key overridden; a comma separates several keys.
    With --seeds, --set or --one-at-a-time, the specs of result directories are run anew.
    Ctrl-C, SIGTERM or SIGHUP stops the comparison; finished runs are kept.
    Exit status: see `nandlab --help`; the differences do not change it.

    Parameters
    ----------
    runs
        Result directories, specs, or overrides of the first spec.
    seeds
        Run each spec with so many seeds: that of the first spec, and the following ones. The runs are paired by seed.
    one_at_a_time
        Also change each key that differs alone, to find the keys without effect: two runs per key and seed.
    out
        The directory in which the runs, compare.json and the page compare.html are kept; when absent, out/compare if a
        spec is to be run. Finished runs in it are not repeated.
    workers
        The most runs under way at a time; one per processor when absent.
    """
    from nandlab.comparison.inputs import RESULT
    from nandlab.reporting.extra import missing
    from nandlab.screen import show_comparison
    from nandlab.study.progress import StudyProgress

    is_run = bool(sets) or seeds is not None or one_at_a_time or not all(map(os.path.isdir, runs))
    folder = Path("out/compare") if out is None and is_run else out
    try:
        with StudyProgress("compare", bar=not json_, line_after_s=_LINE_AFTER_S) as progress:
            found = nandlab.compare(
                *runs,
                seeds=seeds,
                sets=sets or [],
                one_at_a_time=one_at_a_time,
                out=folder,
                workers=workers,
                progress=progress,
            )
    except KeyboardInterrupt:
        kept = f": finished runs are kept in {folder}, and the next start continues with the others"
        fail(f"{stop}{'' if folder is None else kept}")
        return End(stop.status)
    absent = missing()
    page = None if found.path is None or absent else nandlab.report(found)
    if json_:
        print(found.text.rstrip("\n"))
    else:
        show_comparison(found, make_console())
        if found.path is not None:
            print(found.path / RESULT)
            print(
                f"no page, {', '.join(absent)} not installed: pip install 'nandlab[figures]'" if page is None else page
            )
    return End(kept="" if found.path is None else f"the comparison is in {found.path}")
