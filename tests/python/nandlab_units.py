"""`nandlab.units` by itself, which needs no core."""

import importlib.util
from pathlib import Path

_FILE = Path(__file__).parents[2] / "python" / "nandlab" / "units.py"
_SPEC = importlib.util.spec_from_file_location("nandlab_units_file", _FILE)
units = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(units)
