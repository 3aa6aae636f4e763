"""What nandlab and its short commands import has a budget, because every module costs time at the start.

The time itself depends on the machine and has no limit here.
"""

import subprocess
import sys

import pytest
from conftest import SPEC
from nandlab.cli.app import COMMANDS

#: Packages that take tens of milliseconds to import, or whole seconds.
DEAR = {
    "altair",
    "argcomplete",
    "asyncio",
    "attr",
    "dask",
    "distributed",
    "email",
    "jinja2",
    "multiprocessing",
    "numpy",
    "pandas",
    "polars",
    "pydantic",
    "rich",
    "vl_convert",
}


def imported(*arguments, cwd):
    """The modules that a run of Python imports."""
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


@pytest.mark.parametrize(
    ("arguments", "most", "allowed", "commands"),
    [
        (["-c", "import nandlab"], 30, set(), set()),
        (["-m", "nandlab", "--version"], 80, set(), set()),
        (["-m", "nandlab", "--help"], 80, set(), set()),
        (["-m", "nandlab", "run", "--help"], 90, set(), {"run"}),
        (["-m", "nandlab", "spec", "check", "one.toml"], 90, set(), {"spec"}),
        # Parquet is written by polars.
        (["-m", "nandlab", "run", "one.toml", "--json"], 240, {"numpy", "polars", "email"}, {"run"}),
        (["-m", "nandlab", "run", "one.toml"], 240, {"numpy", "polars", "email", "rich"}, {"run"}),
    ],
)
def test_the_start_imports_few_modules(tmp_path, arguments, most, allowed, commands):
    (tmp_path / "one.toml").write_text(SPEC.replace("3000", "1"))
    modules = imported(*arguments, cwd=tmp_path) - imported("-c", "pass", cwd=tmp_path)
    packages = {module.partition(".")[0] for module in modules}
    assert packages & DEAR <= allowed
    assert {name for name in COMMANDS if f"nandlab.cli.{name}" in modules} == commands
    counted = [module for module in modules if module.partition(".")[0] not in allowed]
    assert len(counted) <= most, sorted(counted)
