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


def imported(code, cwd):
    """The modules that Python code imports."""
    program = f"import atexit, sys\natexit.register(lambda: print(*sys.modules, file=sys.stderr))\n{code}\n"
    done = subprocess.run([sys.executable, "-c", program], cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "most", "allowed", "commands"),
    [
        (None, 30, set(), set()),
        (["--version"], 80, set(), set()),
        (["--help"], 80, set(), set()),
        (["run", "--help"], 90, set(), {"run"}),
        (["spec", "check", "one.toml"], 90, set(), {"spec"}),
        (["run", "one.toml", "--json"], 130, set(), {"run"}),
        (["run", "one.toml"], 150, set(), {"run"}),
    ],
)
def test_the_start_imports_few_modules(tmp_path, arguments, most, allowed, commands):
    (tmp_path / "one.toml").write_text(SPEC.replace("3000", "1"))
    code = "import nandlab" if arguments is None else f"from nandlab.cli import main\nmain({arguments})"
    modules = imported(code, tmp_path) - imported("", tmp_path)
    packages = {module.partition(".")[0] for module in modules}
    assert packages & DEAR <= allowed
    assert {name for name in COMMANDS if f"nandlab.cli.{name}" in modules} == commands
    counted = [module for module in modules if module.partition(".")[0] not in allowed]
    assert len(counted) <= most, sorted(counted)
