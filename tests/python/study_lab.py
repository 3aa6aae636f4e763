"""A small study, and the command that runs it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import forks
import pytest

ROOT = Path(__file__).parents[2]

#: The command as a program.
NANDLAB = [sys.executable, "-m", "nandlab"]


BASE = """\
seed = 3
[drive]
channels = 1
chips_per_channel = 1
planes_per_die = 1
blocks_per_plane = 64
pages_per_block = 16
op = 0.25
endurance = 1000000
[precondition]
used = 0.7
valid = 0.9
[workload]
synthetic = { requests = 4000, read_fraction = 0.3, size = "4KiB", address = "uniform" }
arrival = { queue_depth = 2 }
"""


STUDY = """\
[study]
title = "Small"
question = "Which victim?"
base = "base.toml"

[variants.greedy]
set = { "gc.victim" = "greedy" }
[variants.fifo]
title = "First in, first out"
set = { "gc.victim" = "fifo" }

[workloads.uniform]
set = { "workload.synthetic.address" = "uniform" }
[workloads.skewed]
set = { "workload.synthetic.address" = { zipf = 0.9 } }

[grid]
"drive.op" = [0.25, 0.5]

[metrics]
gc_share = "flash.program.gc / (flash.program.gc + flash.program.host)"

[[figures]]
id = "waf"
title = "Write amplification"
metric = "steady.waf"
over = "drive.op"
panels = "workload"

[[figures]]
id = "relative"
title = "Relative to greedy"
metric = "waf"
over = "workload"
normalised_to = "greedy"
kind = "bar"

[[figures]]
id = "reads"
title = "Reads"
metric = "latency_us.read"
kind = "cdf"
where = { workload = "uniform", "drive.op" = 0.25 }

[[claims]]
id = "low"
figure = "waf"
what = "FIFO amplifies little with much spare space"
value = 1.1
tolerance = { absolute = 5.0 }
effect = 20.0
source = "section 1"
measure = { where = { variant = "fifo", workload = "uniform", "drive.op" = 0.5 } }

[[claims]]
id = "mean"
figure = "waf"
what = "It amplifies"
value = 1000.0
tolerance = { relative = 0.01 }
baseline = 1.0
source = "section 2"
measure = { reduce = "mean" }
deviation = "a drive of a few blocks"
"""


#: Files of a study that have the same bytes however the study is run.
OUTCOME = ["results.parquet", "claims.json", "report.html"] + [
    f"figures/{name}.{kind}" for name in ("waf", "relative", "reads") for kind in ("svg", "pdf")
]


#: The command with pictures that are empty: the renderer takes longer to start than a small study to run.
WITHOUT_PICTURES = [
    sys.executable,
    "-c",
    "import faulthandler, signal\n"
    "faulthandler.register(signal.SIGUSR1, all_threads=True)\n"
    "import vl_convert as of\n"
    "of.vegalite_to_svg, of.svg_to_pdf = lambda *_, **__: '<svg/>', lambda _: b'%PDF'\n"
    "from nandlab.cli import main\n"
    "main()",
]


def command(*arguments, cwd, pictures=False, **options):
    return forks.run(
        [*(NANDLAB if pictures else WITHOUT_PICTURES), *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "120", "NO_COLOR": "1"},
        timeout=240,
        **options,
    )


def start(*arguments, cwd, pictures=False, **options):
    return subprocess.Popen(
        [*(NANDLAB if pictures else WITHOUT_PICTURES), *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def ended(process, within_s=60.0):
    """The output of a process that is expected to end; if it does not, the stacks of its threads are in the failure."""
    try:
        return process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGUSR1)
        time.sleep(1.0)
        process.kill()
        pytest.fail(f"the process did not end within {within_s:.0f} s:\n{process.communicate()[1]}")


def refusal(file, text, begin=lambda study: study):
    """The error of a study file with this text; `begin` is called with the study if its file is accepted."""
    import nandlab

    file.write_text(text)
    with pytest.raises(nandlab.NandlabError) as refused:
        begin(nandlab.Study.load(file))
    return str(refused.value)


def outcome(directory):
    return {name: (directory / name).read_bytes() for name in OUTCOME}


def finished(directory):
    return sorted(path.parent.name for path in Path(directory).glob("runs/[!.]*/run.json"))


def wait_for(what, seconds=60.0, process=None):
    """Waits until `what()` is true; fails after `seconds`, or as soon as `process` has ended."""
    until = time.monotonic() + seconds
    while not what():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < until, f"the condition was not met within {seconds:.0f} s"
        time.sleep(0.01)


def processor_s(pid):
    """Seconds for which a process has had a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for_runs(directory, count):
    wait_for(lambda: len(finished(directory)) >= count)


SLOW = 'set = { "gc.victim" = "fifo", "workload.synthetic.requests" = 60000 }'


TRACED = """\
[study]
title = "A trace"
question = "Q"
base = "base.toml"
[workloads.traced]
trace = "t.csv"
"""


def traced(directory):
    (directory / "base.toml").write_text(BASE.split("[workload]")[0] + '[workload]\nbeyond = "wrap"\n')
    (directory / "s.toml").write_text(TRACED)
    rows = [
        f"{128166372003061629 + 10_000 * i},hm,0,{'Read' if i % 3 else 'Write'},{4096 * i},4096,100" for i in range(300)
    ]
    (directory / "t.csv").write_text("\n".join(rows) + "\n")
