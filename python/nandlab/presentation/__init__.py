"""The presentation of a result: headline figures, failures, notes, and sections with tables and figures, in order.

The screen, the report and a notebook show the same presentation; the report adds plots.
"""

from nandlab.presentation.mechanisms import Levels, levels
from nandlab.presentation.model import Figure, Part, Presentation, Row, Section, Table
from nandlab.presentation.outage import clock_scale
from nandlab.presentation.run import of_run
from nandlab.result_types import CAUSES

__all__ = [
    "CAUSES",
    "Figure",
    "Levels",
    "Part",
    "Presentation",
    "Row",
    "Section",
    "Table",
    "clock_scale",
    "levels",
    "of_run",
]
