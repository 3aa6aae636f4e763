"""The command `nandlab` over the stand-in core; the tests run this as a process of its own."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]

import fake_core  # noqa: E402

sys.modules["nandlab._core"] = fake_core

from nandlab.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
