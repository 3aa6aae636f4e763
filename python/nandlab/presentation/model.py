"""The parts of a presentation: figures, tables, sections."""

from __future__ import annotations

import msgspec

from nandlab.result_types import Note
from nandlab.units import count


class Figure(msgspec.Struct, frozen=True):
    """A named value with its unit."""

    label: str
    value: str
    unit: str = ""

    @property
    def text(self) -> str:
        """The value with its unit."""
        return f"{self.value} {self.unit}".rstrip()


class Part(msgspec.Struct, frozen=True):
    """A cell of a table with its share of a whole."""

    text: str
    #: 0 to 1.
    share: float


class Row(msgspec.Struct, frozen=True):
    """A row of a table."""

    label: str
    cells: tuple[str | Part, ...]
    #: The operation or cause that gives the row its colour; empty for none.
    colour: str = ""


class Table(msgspec.Struct, frozen=True):
    """A table: labels in the first column, numbers in the others."""

    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    caption: str = ""
    title: str = ""


class Section(msgspec.Struct, frozen=True):
    """One section of a presentation."""

    title: str
    #: The short form for the screen: a table, or one line per figure.
    short: Table | tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    #: Sentences before the tables, or in their place.
    sentences: tuple[str, ...] = ()


class Presentation(msgspec.Struct, frozen=True):
    """The presentation of a result."""

    name: str
    #: The result in one sentence; empty for a run.
    lead: str
    headline: tuple[Figure, ...]
    #: Failures and early ends, in a few words each.
    failures: tuple[Note, ...]
    notes: tuple[Note, ...]
    sections: tuple[Section, ...]

    def section(self, title: str) -> Section | None:
        """The section with a title; `None` without one."""
        return next((section for section in self.sections if section.title == title), None)


def counted(number_: int, one: str, many: str | None = None) -> str:
    """A count with its noun in the singular or plural."""
    return f"{count(number_)} {one if number_ == 1 else many or one + 's'}"


def with_table(
    title: str, short: tuple[Figure, ...], table: Table, nothing: str, figures: tuple[Figure, ...]
) -> Section:
    """A section with a table, or with the sentence `nothing` when the table has no rows."""
    return Section(title, short, (table,), figures) if table.rows else Section(title, short, (), figures, (nothing,))
