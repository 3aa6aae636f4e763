"""TOML within limits, and where its keys stand: `tomllib` reads the values but knows neither."""

from __future__ import annotations

import bisect
import contextlib
import os
import re
import stat
import tomllib
from pathlib import Path as FilePath
from typing import Any

#: Of a file: its bytes, and its tables, lists and parts of keys within one another.
MAX_BYTES = 256 * 1024
MAX_DEPTH = 32

#: A key's way from the root: names, and indices of array elements.
Path = tuple[str | int, ...]


class TomlError(ValueError):
    """A text that is not read; says nothing of what is in it, but for `detail`."""

    def __init__(self, line: int, message: str, remedy: str, detail: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.remedy = remedy
        #: What exactly is wrong; may hold a part of the text.
        self.detail = detail


def read_text(path: FilePath) -> str:
    """The text of a TOML file; raises `OSError`, or `ValueError` with a message for what is no such file."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError("Not a file")  # a pipe or a device may have no end
    with open(path, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES // 1024} KiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None


def parse(text: str) -> tuple[dict[str, Any], dict[Path, int]]:
    """The values, and the line, from 1, on which each key (and each element of an array) is first written.

    Raises `TomlError`.
    """
    # First, since `tomllib` neither ends in time nor without a traceback on a text that is too deep.
    lines = key_lines(text)
    try:
        return tomllib.loads(text), lines
    except ValueError as error:
        # Not of TOML alone: `int` refuses very long numbers.
        where = re.search(r" *\(at line (\d+), column \d+\)$", str(error))
        line = int(where[1]) if where else text.count("\n") + 1
        detail = str(error)[: where.start()] if where else str(error)
        raise TomlError(line, "not TOML", "write it as TOML", detail) from None
    except RecursionError:
        raise _too_deep(1) from None


def _too_deep(line: int) -> TomlError:
    return TomlError(line, f"nested more than {MAX_DEPTH} deep", "write fewer tables and lists within one another")


def key_lines(text: str) -> dict[Path, int]:
    """The lines alone; of a text that is not TOML, whatever was found."""
    scanner = _Scanner(text)
    with contextlib.suppress(IndexError):  # it ends within a key; `tomllib` will say so
        scanner.scan()
    return scanner.lines


class _Scanner:
    """Follows the shape of the text; whether it is TOML is not seen here."""

    def __init__(self, text: str) -> None:
        self.text = text.replace("\r\n", "\n")
        self.at = 0
        self.lines: dict[Path, int] = {}
        self.last: dict[Path, int] = {}
        self.ends = [found.start() for found in re.finditer("\n", self.text)]

    def scan(self) -> None:
        table: Path = ()
        self.skip(newlines=True)
        while self.at < len(self.text):
            if self.text.startswith("[[", self.at):
                table = self.header(2)
            elif self.text[self.at] == "[":
                table = self.header(1)
            else:
                self.pair(table)
            self.skip(newlines=True)

    def skip(self, *, newlines: bool) -> None:
        """Past blanks and comments."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char in " \t" or (newlines and char == "\n"):
                self.at += 1
            else:
                return

    def note(self, path: Path) -> None:
        line = bisect.bisect_left(self.ends, self.at) + 1
        if len(path) > MAX_DEPTH:
            raise _too_deep(line)
        self.lines.setdefault(path, line)

    def header(self, brackets: int) -> Path:
        self.at += brackets
        parts = self.key()
        path: Path = ()
        for index, part in enumerate(parts):
            path += (part,)
            if index == len(parts) - 1 and brackets == 2:
                self.note(path)
                self.last[path] = self.last.get(path, -1) + 1
            if path in self.last:
                path += (self.last[path],)
            self.note(path)
        self.skip(newlines=False)
        self.at += brackets
        return path

    def key(self) -> list[str]:
        """A dotted key."""
        parts = []
        while True:
            self.skip(newlines=False)
            quote = self.text[self.at]
            begin = self.at
            if quote in "\"'":
                self.string()
                parts.append(self.text[begin + 1 : self.at - 1])
            else:
                while self.at < len(self.text) and (self.text[self.at].isalnum() or self.text[self.at] in "_-"):
                    self.at += 1
                parts.append(self.text[begin : self.at])
                if self.at == begin:  # not TOML: go on rather than stand still
                    self.at += 1
            self.skip(newlines=False)
            if not self.text.startswith(".", self.at):
                return parts
            self.at += 1

    def pair(self, table: Path) -> None:
        begin = self.at
        path = table
        end_of_keys = self.at
        for part in self.key():
            path += (part,)
            end_of_keys, self.at = self.at, begin
            self.note(path)
            self.at = end_of_keys
        self.skip(newlines=False)
        self.at += 1  # the equals sign
        self.value(path)

    def value(self, path: Path) -> None:
        self.skip(newlines=True)
        char = self.text[self.at : self.at + 1]
        if char in ("'", '"'):
            self.string()
        elif char == "[":
            self.at += 1
            index = 0
            while self.inside("]"):
                self.note((*path, index))
                self.value((*path, index))
                index += 1
        elif char == "{":
            self.at += 1
            while self.inside("}"):
                self.pair(path)
        else:
            self.at += 1  # whatever it is: go on rather than stand still
            while self.at < len(self.text) and self.text[self.at] not in ",]}\n#":
                self.at += 1

    def inside(self, closing: str) -> bool:
        """Whether another element follows; past the closing bracket when not."""
        self.skip(newlines=True)
        while self.text.startswith(",", self.at):
            self.at += 1
            self.skip(newlines=True)
        if self.at >= len(self.text) or self.text[self.at] == closing:
            self.at += 1
            return False
        return True

    def string(self) -> None:
        quote = self.text[self.at]
        triple = quote * 3
        closing = triple if self.text.startswith(triple, self.at) else quote
        self.at += len(closing)
        while self.at < len(self.text) and not self.text.startswith(closing, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(closing)
        while len(closing) == 3 and self.text.startswith(quote, self.at):  # """" ends with a quote of its own
            self.at += 1
