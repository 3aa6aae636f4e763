"""Text and tables on a terminal: styles, and lines that end between words.

The import of a library for this takes longer than most commands.

A text may have styles: `[dim]...[/]`, with the names of `_STYLES`; `escape` keeps the brackets of other texts.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TextIO

from nandlab.errors import visible

#: The parameters of the escape sequence that selects a style (ECMA-48, SGR).
_STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
    "bold red": "1;31",
}
_MARK = re.compile(r"\\([\\\[])|\[(/|" + "|".join(_STYLES) + r")\]")
#: Columns between two columns of a table.
_GAP = 2
#: A column of text is not made narrower than this.
_NARROWEST = 8


def escape(text: str) -> str:
    """A text whose brackets select no style."""
    return text.replace("\\", r"\\").replace("[", r"\[")


class Styled(NamedTuple):
    """A part of a text, and its style."""

    text: str
    style: str


def _parts(text: str, style: str = "") -> Iterator[Styled]:
    """The parts of a text; those without a style of their own have `style`."""
    now, at = style, 0
    for mark in _MARK.finditer(text):
        yield Styled(text[at : mark.start()] + (mark[1] or ""), now)
        at = mark.end()
        if mark[2] is not None:
            now = style if mark[2] == "/" else mark[2]
    yield Styled(text[at:], now)


def width(text: str) -> int:
    """The number of columns that a text takes."""
    return sum(_columns(visible(part.text)) for part in _parts(text))


def _columns(text: str) -> int:
    if text.isascii():
        return len(text)
    import unicodedata

    columns = 0
    for char in text:
        if not unicodedata.combining(char):
            columns += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return columns


def _head(text: str, most: int) -> str:
    """The first characters of a text, as many as take `most` columns, and at least one."""
    end = 1
    while end < len(text) and _columns(text[: end + 1]) <= most:
        end += 1
    return text[:end]


class _Line:
    """A line, or the text of a cell."""

    def __init__(self, parts: Iterable[Styled]) -> None:
        self.parts = [Styled(visible(part.text), part.style) for part in parts if part.text]
        self.width = sum(_columns(part.text) for part in self.parts)

    def wrapped(self, most: int, *, fold: bool = False) -> list[_Line]:
        """The text as lines of at most `most` columns.

        A longer word has a line of its own; with `fold` it is broken.
        """
        if self.width <= most and not any("\n" in part.text for part in self.parts):
            return [self]
        lines: list[list[Styled]] = [[]]
        used, begins = 0, True
        # A word may have several parts with different styles.
        word: list[Styled] = []
        space = ""

        def end_word() -> None:
            nonlocal used, word, space
            if not word:
                return
            length = sum(_columns(part.text) for part in word)
            if used and used + len(space) + length > most:
                lines.append([])
                used, space = 0, ""
            lines[-1] += [Styled(space, ""), *word] if space else word
            used += len(space) + length
            word, space = [], ""

        for part in self.parts:
            for piece in re.split(r"(\n| +)", part.text):
                if piece == "\n":
                    end_word()
                    lines.append([])
                    used, space, begins = 0, "", True
                elif piece.startswith(" "):
                    end_word()
                    # Blanks at the begin of a line that the text begins are kept.
                    space = piece if used or begins else ""
                    begins = False
                elif piece:
                    while fold and sum(_columns(one.text) for one in word) + _columns(piece) > most:
                        head = _head(piece, most - sum(_columns(one.text) for one in word))
                        word.append(Styled(head, part.style))
                        end_word()
                        piece = piece[len(head) :]
                    word.append(Styled(piece, part.style))
        end_word()
        return [_Line(line) for line in lines]


class Table:
    """A table without rules. Columns of text become narrower when the screen is."""

    def __init__(self, *, head: bool = True) -> None:
        self._head = head
        self._columns: list[tuple[str, bool, str, bool]] = []
        self._rows: list[tuple[str, ...]] = []

    def add_column(self, head: str = "", *, justify: str = "left", style: str = "", no_wrap: bool = False) -> None:
        """A column: `justify` is `left` or `right`; a column of numbers is not wrapped."""
        self._columns.append((head, justify == "right", style, no_wrap or justify == "right"))

    def add_row(self, *cells: str) -> None:
        """A row, a cell for each column."""
        self._rows.append(cells)

    def lines(self, most: int) -> Iterator[_Line]:
        """The lines of the table on a screen of `most` columns."""
        rows = [
            [_Line(_parts(cell, column[2])) for cell, column in zip(row, self._columns, strict=False)]
            for row in self._rows
        ]
        if self._head:
            rows.insert(0, [_Line([Styled(head, "dim")]) for head, *_ in self._columns])
        room = most - _GAP * (len(self._columns) - 1)
        widths = [max((row[at].width for row in rows if at < len(row)), default=0) for at in range(len(self._columns))]
        if self._head and sum(widths) > room:
            widths = [self._with_narrow_head(rows, at, width) for at, width in enumerate(widths)]
        widths = _fitted(widths, [not fixed for *_, fixed in self._columns], room)
        for row in rows:
            cells = [cell.wrapped(max(room, 1), fold=True) for cell, room in zip(row, widths, strict=False)]
            for at in range(max(map(len, cells), default=0)):
                yield _Line(self._placed(cells, widths, at))

    def _with_narrow_head(self, rows: Sequence[Sequence[_Line]], at: int, widest: int) -> int:
        """The width of a column; the head of one that is not wrapped is wrapped nevertheless."""
        if not self._columns[at][3]:
            return widest
        words = max((_columns(word) for word in self._columns[at][0].split()), default=0)
        return max(words, 0, *(row[at].width for row in rows[1:] if at < len(row)))

    def _placed(self, cells: Sequence[list[_Line]], widths: Sequence[int], at: int) -> Iterator[Styled]:
        """The parts of one line of a row; nothing follows the last text."""
        blank = 0
        for (_, right, _, _), lines, room in zip(self._columns, cells, widths, strict=False):
            line = lines[at] if at < len(lines) else _Line([])
            before = room - line.width if right else 0
            if line.parts:
                yield Styled(" " * (blank + before), "")
                yield from line.parts
                blank = room - before - line.width + _GAP
            else:
                blank += room + _GAP


def _fitted(widths: list[int], may_wrap: Sequence[bool], most: int) -> list[int]:
    """Widths of columns that together take at most `most`, if the columns that may wrap can take so little.

    The widest column gives way first.
    """
    fitted = list(widths)
    while sum(fitted) > most:
        wide = [at for at, wraps in enumerate(may_wrap) if wraps and fitted[at] > _NARROWEST]
        if not wide:
            break
        widest = max(fitted[at] for at in wide)
        first = [at for at in wide if fitted[at] == widest]
        next_width = max((fitted[at] for at in wide if fitted[at] < widest), default=_NARROWEST)
        step = max(min(widest - next_width, -(-(sum(fitted) - most) // len(first))), 1)
        for at in first:
            fitted[at] = max(fitted[at] - step, _NARROWEST)
    return fitted


class Console:
    """A terminal, or a file in its place.

    Styles are written to a terminal unless `NO_COLOR` is set or `TERM` is `dumb`, and elsewhere if `FORCE_COLOR` is
    set. `width` is that of the terminal or `COLUMNS`, else 80.
    """

    def __init__(self, file: TextIO | None = None, *, width: int | None = None, styles: bool | None = None) -> None:
        self._file = sys.stdout if file is None else file
        self.width = shutil.get_terminal_size((80, 24)).columns if width is None else width
        self._has_styles = _wants_styles(self._file) if styles is None else styles

    def print(self, shown: str | Table = "", *, soft_wrap: bool = False) -> None:
        """Print a text or a table; with `soft_wrap` the terminal breaks long lines itself."""
        if isinstance(shown, Table):
            lines = list(shown.lines(self.width))
        else:
            line = _Line(_parts(shown))
            lines = [line] if soft_wrap else line.wrapped(self.width)
        self._file.write("".join(self._written(line) + "\n" for line in lines))

    def _written(self, line: _Line) -> str:
        if not self._has_styles:
            return "".join(part.text for part in line.parts).rstrip(" ")
        return "".join(
            f"\x1b[{_STYLES[part.style]}m{part.text}\x1b[0m" if part.style else part.text for part in line.parts
        )


def _wants_styles(file: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return file.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
