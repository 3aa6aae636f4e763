"""`nandlab powertest`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from nandlab import units
from nandlab.cli.app import End, Parser, stop
from nandlab.cli.output import fail, say, say_data, say_page
from nandlab.cli.quantities import nanoseconds
from nandlab.errors import OutputError
from nandlab.presentation.model import counted
from nandlab.whole import write_file

#: The exit status when a cut has broken the check.
BROKEN = 4


def add(parser: Parser) -> None:
    """Declare the arguments."""
    parser.define(
        powertest,
        "The command makes a file system on a simulated drive, runs the set-up and the workload once, and records "
        "every request. Then it cuts the power at many instants of the recording: each time the drive recovers, and "
        "the check runs on its files. A check fails with a status other than 0.",
        "Set-up and workload run in the mounted file system (needs root). $NANDLAB_ACK is a pipe: a line that the "
        "workload writes to it is acknowledged. The check runs in a copy of the recovered files; $NANDLAB_ACKED is a "
        "file with the lines that were acknowledged before the cut, and $NANDLAB_IMAGE the image.",
        "$NANDLAB_LOST is a file with the ranges that the drive cannot read: a line with offset and length in bytes "
        "for each. They are zeros in the image, and I/O errors where it is served: at $NANDLAB_URI (NBD), and in the "
        "file system, which is mounted from there if the command runs as root and nbdfuse is installed. $NANDLAB_URI "
        "is empty where nothing is lost, except with --fs none, where the check may also open $NANDLAB_FILE.",
        "For each cut that breaks the check the command says whom the evidence blames: the drive, the file system or "
        "its mount options, or the program.",
        "Exit status: 0 when no cut broke the check, 4 when one did; otherwise see `nandlab --help`.",
        examples="""
nandlab powertest drive.toml --setup './init.sh' --workload './insert.sh' --check './check.sh' --cuts 1000
nandlab powertest drive.toml --recording out/drive-powertest/session.rec --check './check.sh' --cuts 100 --seed 2
nandlab powertest drive.toml --workload './insert.sh' --check './check.sh' --cuts 100000 --budget 60s
""",
    )
    parser.add_argument("spec", type=Path, metavar="SPEC.toml", help="The spec of the drive. Its workload is not used.")
    parser.add_sets()
    parser.add_argument("--setup", metavar="CMD", help="A command for the shell that prepares the data.")
    parser.add_argument("--workload", metavar="CMD", help="The command whose promises the check knows.")
    parser.add_argument("--check", metavar="CMD", help="The command that fails when a promise is broken.")
    parser.add_argument("--cuts", type=int, default=100, metavar="N", help="The number of power cuts; 100 when absent.")
    parser.add_argument(
        "--fs",
        default="ext4",
        choices=["ext4", "xfs", "btrfs", "none"],
        help="The file system; ext4 when absent. none: the workload opens the file $NANDLAB_FILE, or $NANDLAB_URI.",
    )
    parser.add_argument(
        "--mount-options", default="", metavar="OPTIONS", help="The options of the mount, as of mount -o: barrier=0."
    )
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="The seed of the instants; 1 when absent.")
    parser.add_argument(
        "--second-cut", action="store_true", help="Power fails once more while the drive recovers, at a drawn time."
    )
    parser.add_argument(
        "--budget", metavar="T", help="The time for session and cuts, such as 60s: as many cuts as fit are made."
    )
    parser.add_argument(
        "--check-limit", default="60s", metavar="T", help="The longest time of a check; 60s when absent."
    )
    parser.add_argument(
        "--recording",
        type=Path,
        metavar="FILE",
        help="Cut the power in this recording, without running the workload. The spec has to be that of the recording.",
    )
    parser.add_argument(
        "--repeat",
        type=int,
        metavar="NUMBER",
        help="Only make the image of the cut with this number again, and a page of the requests around it; with "
        "--check, run it, too. The test is the one whose results are in --out.",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="Checks at the same time; one a processor when absent.")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="The folder of the results; out/SPEC-powertest when absent."
    )
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="Also write the JUnit XML of the results to this file."
    )
    parser.add_json()


def powertest(options: argparse.Namespace) -> End:
    """Run the command."""
    from nandlab.power_test import report, test
    from nandlab.progress import CountProgress

    folder = options.out or Path("out") / f"{options.spec.stem}-powertest"
    limit_s = nanoseconds("--check-limit", options.check_limit) * 1e-9
    budget_s = None if options.budget is None else nanoseconds("--budget", options.budget) * 1e-9
    if options.repeat is not None:
        place, checked = test.repeat(folder, options.repeat, check=options.check, check_limit_s=limit_s)
        say(f"{place}: {', '.join(sorted(path.name for path in place.iterdir()))}")
        if checked is not None:
            say(
                "the check passes"
                if checked["passed"]
                else f"the check fails: {checked['reason'] or checked['status']}"
            )
            for line in checked["output"].strip().splitlines():
                say(f"  | {line}")
        return End(BROKEN if checked is not None and not checked["passed"] else 0)
    if options.check is None:
        raise OutputError("--check is missing: the command that fails when a promise is broken")
    if options.junit is not None and not options.junit.absolute().parent.is_dir():
        raise OutputError(f"--junit: there is no folder {options.junit.parent}\n  remedy: create it, or name another")
    try:
        with CountProgress("powertest", stop, bar=not options.json) as shown:

            def progress(done: int, number: int, broken: int) -> None:
                shown(done, number, f"{done:,} of {number:,} cuts, {broken:,} broken")

            result = test.powertest(
                options.spec,
                check=options.check,
                workload=options.workload,
                setup=options.setup,
                cuts=options.cuts,
                fs=options.fs,
                mount_options=options.mount_options,
                sets=options.sets,
                seed=options.seed,
                budget_s=budget_s,
                check_limit_s=limit_s,
                recording=options.recording,
                out=folder,
                jobs=options.jobs,
                second_cut=options.second_cut,
                progress=progress,
            )
    except KeyboardInterrupt:
        kept = options.recording or folder / test.RECORDING
        fail(f"{stop}: go on with --recording {kept} if the session was complete")
        return End(stop.status)
    if options.junit is not None:
        write_file(options.junit, report.junit(result))
    if options.json:
        say_data(json.dumps(report.to_dict(result), indent=2))
    else:
        for line in summary(result):
            say(line)
        say_page(result.path / test.PAGE)
    return End(BROKEN if result.broken else 0, f"the result is in {folder}")


def summary(result: object) -> list[str]:
    """The result in lines for the screen."""
    from nandlab.power_test import report
    from nandlab.power_test.test import PowerTest

    assert isinstance(result, PowerTest)
    cpu = sorted(cut.cpu_s for cut in result.cuts)
    lines = [
        f"drive  {result.drive}",
        f"workload  {counted(result.requests, 'request')}, {counted(result.acknowledged, 'acknowledged line')}, "
        f"{units.duration(result.simulated_s)} of simulated time",
        f"cuts  {len(result.cuts):,} in {units.duration(result.wall_s)}; "
        f"{units.number(1e3 * cpu[len(cpu) // 2])} ms of processor time each without the check",
    ]
    if result.second_cut:
        lines.append(report.second_text(result))
    if result.left_out:
        lines.append(f"left out by the budget  {result.left_out:,}")
    if result.passed:
        return [*lines, "no cut broke the check"]
    lines.append(f"broken  {len(result.broken):,}")
    lines += [
        f"  {number:,} {name}: {report.VERDICTS[name].split(': ')[0]}" for name, number in result.verdicts().items()
    ]
    for cut in result.broken[:3]:
        lines.append(f"cut {cut.number}  {cut.verdict}: {report.evidence_text(cut)}")
        lines += [f"  | {line}" for line in (cut.output or cut.reason).strip().splitlines()[-3:]]
    lines += report.smallest_lines(result)
    kept = sorted(path.name for path in result.path.glob("cut-*"))
    if kept:
        lines.append(f"images  {', '.join(kept[:5])} in {result.path}; another one with --repeat NUMBER")
    return lines
