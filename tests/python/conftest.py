"""Fixtures: a small spec, a small study, and the command as a process."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import forks
import msgspec
import pytest
from study_lab import BASE, NANDLAB, STUDY

SPEC = """\
seed = 1
[drive]
channels = 1
chips_per_channel = 1
planes_per_die = 1
blocks_per_plane = 32
pages_per_block = 16
page_size = "4KiB"
op = 0.25
[workload.synthetic]
requests = 3000
read_fraction = 0.5
size = "4KiB"
address = "uniform"
"""

# The tests neither use nor change the kept traces of the user.
os.environ.setdefault("NANDLAB_CACHE", str(Path(tempfile.gettempdir()) / f"nandlab-tests-{os.getuid()}"))

# The threads of the library of linear algebra, which nandlab does not use, wait actively at each start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

#: Files whose tests share what is dear to make: pages in a browser, runs with a timeline, a wheel. One process runs all
#: tests of such a file.
TOGETHER = ("test_report_browser.py", "test_timeline.py", "test_shipped.py")


def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.split("::")[0]
            return file if file.endswith(TOGETHER) else nodeid

    return Scheduling(config, log)


def over(core_run):
    """The command line of nandlab in which the class `Run` that `core_run` declares replaces the class of the core."""
    program = (
        f"import time\nfrom nandlab import _core\n{core_run}\n_core.Run = Run\nfrom nandlab.cli import main\nmain()\n"
    )
    return [sys.executable, "-c", program]


@pytest.fixture
def spec_file(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SPEC)
    return path


@pytest.fixture
def command(tmp_path):
    """A function that runs the command as a process, by default in `tmp_path`."""

    def run(*arguments, program=NANDLAB, columns=100, **options):
        return forks.run(
            [*program, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=options.pop("cwd", tmp_path),
            env=options.pop("env", os.environ) | {"COLUMNS": str(columns), "NO_COLOR": "1"},
            timeout=60,
            **options,
        )

    return run


def run_two_at_once(where, spec, cache):
    """Runs a spec in two processes that share a cache, and checks that both have the same results."""
    outs = [where / f"at-once-{i}" for i in range(2)]
    runs = [
        subprocess.Popen(
            [*NANDLAB, "run", spec, "--out", str(out)],
            cwd=where,
            env=os.environ | {"NANDLAB_CACHE": str(cache)},
            stdout=subprocess.DEVNULL,
        )
        for out in outs
    ]
    assert [process.wait(60) for process in runs] == [0, 0]
    first, second = ((out / "summary.json").read_bytes() for out in outs)
    assert first == second


@pytest.fixture
def here(tmp_path):
    """A folder with a small study in it."""
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "s.toml").write_text(STUDY)
    return tmp_path


def reseal(folder):
    """Give a result folder whose files have been changed the digests of a program that wrote them so."""
    from nandlab.results import MARKER, _Marker

    marker = json.loads((folder / MARKER).read_text())
    marker["files"] = {
        name: digest and hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name, digest in marker["files"].items()
    }
    sealed = msgspec.convert(marker, _Marker).sealed()
    (folder / MARKER).write_text(json.dumps(msgspec.to_builtins(sealed), indent=2) + "\n")


def hidden(directory):
    """Names of the hidden files and directories in `directory`, such as temporary files that were not removed."""
    return sorted(path.name for path in Path(directory).rglob(".*"))
