"""The content of a page, which the templates turn into HTML: pages, sections and their parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from nandlab.noted import SEVERITIES
from nandlab.presentation import Figure as Value
from nandlab.presentation import Part as ShareCell
from nandlab.presentation import Section as Shown
from nandlab.presentation import Table
from nandlab.reporting.chart import Figure
from nandlab.result_types import Note


@dataclass(frozen=True)
class Span:
    """A text in a cell: `code`, `strong`, `small`, `badge` or `verdict`; with an address it is a link in the page."""

    text: str
    kind: str = ""
    href: str = ""
    #: The class of a verdict: good, fit, warn, bad or none.
    mark: str = ""


@dataclass(frozen=True)
class Setting:
    """A key with its value."""

    key: str
    value: str


@dataclass(frozen=True)
class More:
    """A long text behind its beginning."""

    text: str
    rest: str


#: A cell of a listing; a tuple has its entries below each other.
Cell = str | Span | Setting | More | ShareCell | tuple["Cell", ...]


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    kind: ClassVar[str] = "words"
    text: str


@dataclass(frozen=True)
class Facts:
    """Names with their values."""

    kind: ClassVar[str] = "facts"
    rows: tuple[tuple[str, str], ...]
    title: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table of a presentation."""

    kind: ClassVar[str] = "sheet"
    table: Table
    #: The name for a screen reader, for a table without caption.
    label: str = ""


@dataclass(frozen=True)
class Listing:
    """A table of any cells."""

    kind: ClassVar[str] = "listing"
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    caption: str = ""
    #: The columns of numbers.
    numbers: frozenset[int] = frozenset()
    #: Ids of the rows, or nothing.
    ids: tuple[str, ...] = ()
    #: The name for a screen reader.
    label: str = ""
    #: Whether a narrow screen has the cells of a row below each other.
    stacks: bool = False


@dataclass(frozen=True)
class Drawing:
    """Charts with their caption, table and CSV."""

    kind: ClassVar[str] = "drawing"
    figure: Figure
    #: The files with the same picture.
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Nothing:
    """A sentence in place of an empty chart."""

    kind: ClassVar[str] = "nothing"
    text: str
    title: str = ""


@dataclass(frozen=True)
class Columns:
    """Parts side by side where there is room: `two`, `three` or `wide-narrow`."""

    kind: ClassVar[str] = "columns"
    parts: tuple[Block, ...]
    form: str = "two"


@dataclass(frozen=True)
class Fold:
    """Folded parts, or a folded text."""

    kind: ClassVar[str] = "fold"
    title: str
    parts: tuple[Block, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class Lane:
    """A request on a time line. Places are in percent of the width."""

    name: str
    #: The request with its times in words.
    text: str
    is_flush: bool
    #: Whether it was submitted before the drawn time.
    is_earlier: bool
    begin: float
    end: float
    #: Where it was acknowledged, and where it was in flash; `None`: outside of the drawn time, or never.
    acknowledged: float | None
    in_flash: float | None
    #: `lost`, `also lost` or nothing.
    loss: str


@dataclass(frozen=True)
class Timeline:
    """Requests around an instant on a time line, a lane each."""

    kind: ClassVar[str] = "timeline"
    title: str
    caption: str
    #: The drawing in a sentence, for a screen reader.
    label: str
    lanes: tuple[Lane, ...]
    #: The places of the instant and of completions of flushes.
    cut: float
    flushes: tuple[float, ...]
    #: The labels of the axis with their places, and whether a narrow screen leaves them out.
    ticks: tuple[tuple[float, str, bool], ...]
    has_also_lost: bool


Block = Words | Facts | Sheet | Listing | Drawing | Nothing | Columns | Fold | Timeline


@dataclass(frozen=True)
class Section:
    """A section of a page."""

    title: str
    parts: tuple[Block, ...]

    @property
    def id(self) -> str:
        """The id of its element."""
        return slug(self.title)


@dataclass(frozen=True)
class Page:
    """A page: what happened and what to look at, notes, sections."""

    #: The name of its template.
    kind: str
    title: str
    #: The first sentences.
    lead: str
    tiles: tuple[Value, ...]
    notes: tuple[Note, ...]
    sections: tuple[Section, ...]
    footer: str
    version: str
    #: Texts of a few words with their class: good, fit, warn, bad or none.
    badges: tuple[tuple[str, str], ...] = ()
    #: Paragraphs between the lead and the contents.
    paragraphs: tuple[str, ...] = ()
    question: str = ""

    @property
    def sorted_notes(self) -> list[Note]:
        """The notes, the gravest first."""
        return sorted(self.notes, key=lambda note: SEVERITIES.index(note.severity))

    @property
    def has_charts(self) -> bool:
        """Whether any part has a chart."""
        return any(has_chart(part) for section in self.sections for part in section.parts)


def has_chart(part: Block) -> bool:
    """Whether a part has a chart."""
    return isinstance(part, Drawing) or any(has_chart(inner) for inner in getattr(part, "parts", ()))


def slug(title: str) -> str:
    """A text as an id."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"


def sections_of(given: Iterable[tuple[str, Sequence[Block | None]]]) -> tuple[Section, ...]:
    """The sections that have a part."""
    found = ((title, tuple(part for part in parts if part is not None)) for title, parts in given)
    return tuple(Section(title, parts) for title, parts in found if parts)


#: The most columns of a table beside another part.
_BESIDE_COLUMNS = 6
#: The most values in one column.
_COLUMN_VALUES = 9


def beside(parts: Sequence[Block]) -> list[Block]:
    """Parts side by side."""
    return [Columns(tuple(parts))] if len(parts) > 1 else list(parts)


def facts(values: Sequence[Value]) -> Facts:
    """Values of a presentation as facts."""
    return Facts(tuple((value.label, value.text) for value in values))


def parts_of(shown: Shown | None, *drawings: Block | None) -> list[Block]:
    """The parts of a section of a presentation, with its charts."""
    drawn = [drawing for drawing in drawings if drawing is not None]
    if shown is None:
        return beside(drawn)
    words: list[Block] = [Words(sentence) for sentence in shown.sentences]
    tables: list[Block] = [Sheet(table, shown.title) for table in shown.tables]
    if not drawn and not tables and len(shown.figures) > _COLUMN_VALUES:
        half = -(-len(shown.figures) // 2)
        return words + beside([facts(shown.figures[:half]), facts(shown.figures[half:])])
    values: list[Block] = [facts(shown.figures)] if shown.figures else []
    if any(len(table.heads) > _BESIDE_COLUMNS for table in shown.tables):
        return words + beside([*drawn, *values]) + tables
    return words + beside([*drawn, *tables, *values])
