"""The exported names of the package; each name is imported at its first use."""

from .result import Calibration, Compared, FittedKey, calibrate

__all__ = ["Calibration", "Compared", "FittedKey", "calibrate"]
