"""Fixtures: the package over a stand-in core, the command as a process, and a mark for what needs the real core."""

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import fake_core
import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
if importlib.util.find_spec("nandlab") is None:
    sys.path.insert(0, str(ROOT / "python"))

SPEC = """\
seed = 1
[drive]
channels = 4
[fake]
requests = 100000
intervals = 40
blocks = 16
"""


def has_core():
    try:
        return importlib.util.find_spec("nandlab._core") is not None
    except ImportError:
        return False


HAS_CORE = has_core()
if os.environ.get("NANDLAB_NEEDS_CORE") and not HAS_CORE:
    pytest.exit("nandlab._core is not built, or does not load: run `make build`", returncode=2)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("core") and not HAS_CORE:
            item.add_marker(pytest.mark.skip(reason="nandlab._core is not built"))


@pytest.fixture
def nandlab():
    """A fresh import of the package over the stand-in core; the real one is put back afterwards."""

    def drop():
        mine = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "nandlab"}
        for name in mine:
            del sys.modules[name]
        return mine

    before = drop()
    sys.modules["nandlab._core"] = fake_core
    try:
        package = importlib.import_module("nandlab")
        package._core = fake_core
        yield package
    finally:
        drop()
        sys.modules.update(before)


@pytest.fixture
def spec_file(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SPEC)
    return path


@pytest.fixture
def command(tmp_path):
    """Runs the command over the stand-in core, in a process, in an empty directory."""

    def run(*arguments, **options):
        return subprocess.run(
            [sys.executable, str(HERE / "fake_nandlab.py"), *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=options.pop("cwd", tmp_path),
            env=os.environ | {"COLUMNS": "100", "NO_COLOR": "1"},
            timeout=60,
            **options,
        )

    return run


def hidden(directory):
    """What was left lying about: temporary files and directories."""
    return sorted(path.name for path in Path(directory).rglob(".*"))
