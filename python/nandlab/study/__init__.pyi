"""The exported names of the package; each name is imported at its first use."""

from .problems import StudyError
from .study import Study, StudyResult

__all__ = ["Study", "StudyError", "StudyResult"]
