"""Studies: many runs, their figures, and what became of the claims they were made for."""

from nandlab.study.problems import StudyError
from nandlab.study.study import Study, StudyResult

__all__ = ["Study", "StudyError", "StudyResult"]
