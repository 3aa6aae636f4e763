"""What a result says: headline figures, trouble, notes, and sections with their tables and figures, in order.

The screen, the report and a notebook show what is here; the report draws plots beside it.
"""

from nandlab.presentation.life import of_life
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
    "of_life",
    "of_run",
]
