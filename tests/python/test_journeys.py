"""What a new user does, from an empty folder to an answer; `make journeys` adds the long journeys."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

JOURNEYS = Path(__file__).parents[1] / "journeys"
ROOT = JOURNEYS.parents[1]
#: The limit of each journey in seconds. It finds a journey that hangs.
LIMITS = {"student": 600, "engineer": 300, "researcher": 3600}
#: The journeys of `make journeys`, with the reason.
LONG = {
    "student": "does a study that another test does",
    "researcher": "compiles a clone",
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_journey_reaches_its_answer(name, tmp_path):
    if name in LONG and "NANDLAB_JOURNEYS" not in os.environ:
        pytest.skip(f"{LONG[name]}: `make journeys`")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [JOURNEYS / f"{name}.sh"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "REPOSITORY": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMITS[name],
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
