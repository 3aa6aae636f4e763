"""A fixture for pytest: `pytest_plugins = ["nandlab.power_test.fixture"]` in conftest.py.

def test_my_store_survives_power_cuts(powertest):
    powertest("drive.toml", setup="./init.sh", workload="./insert.sh", check="./check.sh", cuts=200)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nandlab.power_test.test import PowerTest
from nandlab.power_test.test import powertest as run


@pytest.fixture(name="powertest")
def _powertest(tmp_path: Path) -> Callable[..., PowerTest]:
    """`nandlab.powertest`, which fails the test with the evidence when a cut breaks the check."""

    def test(spec: str | Path, **arguments: Any) -> PowerTest:
        from nandlab.cli.powertest import summary

        arguments.setdefault("out", tmp_path / "powertest")
        result = run(spec, **arguments)
        if not result.passed:
            pytest.fail("\n".join(summary(result)), pytrace=False)
        return result

    return test
