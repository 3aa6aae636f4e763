"""What results are said with: figures, tables, sections, and the whole."""

from __future__ import annotations

from dataclasses import dataclass

from nandlab.result_types import Note
from nandlab.units import count


@dataclass(frozen=True)
class Figure:
    """A value with its name."""

    label: str
    value: str
    unit: str = ""

    @property
    def text(self) -> str:
        """The value with its unit."""
        return f"{self.value} {self.unit}".rstrip()


@dataclass(frozen=True)
class Part:
    """A cell of a table that is part of a whole."""

    text: str
    #: 0 to 1.
    share: float


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    label: str
    cells: tuple[str | Part, ...]
    #: What the row is of, if that has a colour: an operation or a cause.
    colour: str = ""


@dataclass(frozen=True)
class Table:
    """A table: labels in the first column, numbers in the others."""

    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    caption: str = ""
    title: str = ""


@dataclass(frozen=True)
class Section:
    """What a result says of one thing."""

    title: str
    #: In short: a table, or a line each.
    glance: Table | tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    #: Sentences, instead of a table or before it.
    says: tuple[str, ...] = ()


@dataclass(frozen=True)
class Presentation:
    """What a result says."""

    name: str
    #: The result in one sentence, where its headline needs one.
    lead: str
    headline: tuple[Figure, ...]
    #: What went wrong, in a few words each.
    trouble: tuple[Note, ...]
    notes: tuple[Note, ...]
    sections: tuple[Section, ...]

    def section(self, title: str) -> Section | None:
        """The section of that title, if there is something to say."""
        return next((section for section in self.sections if section.title == title), None)


def several(number_: int, one: str, many: str | None = None) -> str:
    """A number of things."""
    return f"{count(number_)} {one if number_ == 1 else many or one + 's'}"


def with_table(
    title: str, glance: tuple[Figure, ...], table: Table, nothing: str, figures: tuple[Figure, ...]
) -> Section:
    """A section whose table may have no rows."""
    return Section(title, glance, (table,), figures) if table.rows else Section(title, glance, (), figures, (nothing,))
