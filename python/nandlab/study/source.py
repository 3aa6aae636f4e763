"""The text of a study file or of its base spec: TOML within limits, with the lines of its keys."""

from __future__ import annotations

import math
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, NoReturn

from nandlab import _core
from nandlab.study.expression import MAX_LENGTH
from nandlab.study.problems import StudyError, problem

#: Limits of a file: bytes, and levels of nested tables, lists and dotted keys.
MAX_BYTES = 256 * 1024
MAX_DEPTH = 32
#: Limits of a study file: entries of a table or list, characters of a name, characters of a string.
MAX_ENTRIES = 1000
MAX_NAME = 100
MAX_TEXT = 10_000
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

#: The path of a key from the root: names, and indices of list items.
Path = tuple[str | int, ...]
Lines = Mapping[Path, int]


def read_text(path: FilePath) -> str:
    """The text of a TOML file; raises `OSError`, or `ValueError` for a file that is not text within the limits."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError("not a regular file")  # a pipe or a device may have no end
    with open(path, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES // 1024} KiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None


def parse(text: str, origin: str) -> tuple[dict[str, Any], Lines]:
    """The values of a TOML text, and the lines of keys and list items; raises `StudyError` or `SpecError`."""
    # Check the depth first: `tomllib` is slow on deeply nested texts, or raises `RecursionError`.
    lines = dict(_core.toml_lines(text, origin))
    for path, line in lines.items():
        if len(path) > MAX_DEPTH:
            remedy = "write fewer nested tables and lists"
            raise StudyError([problem(origin, line, "", f"nested more than {MAX_DEPTH} levels deep", remedy)])
    try:
        return tomllib.loads(text), lines
    except ValueError as error:
        # `ValueError` covers more than errors of TOML: `int` refuses very long numbers.
        where = re.search(r" *\(at line (\d+), column \d+\)$", str(error))
        line = int(where[1]) if where else text.count("\n") + 1
        message = str(error)[: where.start()] if where else str(error)
        remedy = "correct the line, or save the file as TOML"
        raise StudyError([problem(origin, line, "", f"not TOML: {message}", remedy)]) from None


def line_of(lines: Lines, path: Path) -> int | None:
    """The line of a key, or, for a missing key, of its table."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)


def check_size(origin: str, data: dict[str, Any], lines: Lines) -> None:
    """Refuse a file beyond the limits, before it takes time and memory."""

    def look(value: Any, path: Path) -> None:
        if isinstance(value, (dict, list)):
            if len(value) > MAX_ENTRIES:
                refuse(
                    path,
                    f"{len(value):,} entries; the limit is {MAX_ENTRIES:,}",
                    "give fewer entries, or make two studies",
                )
            for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
                if isinstance(key, str) and (len(key) > MAX_NAME or _CONTROL.search(key)):
                    refuse((*path, key), "not a name", f"use at most {MAX_NAME} characters, and no control characters")
                look(entry, (*path, key))
        elif isinstance(value, str):
            if len(value) > MAX_TEXT:
                remedy = f"write a shorter string; an expression has at most {MAX_LENGTH:,} characters"
                refuse(path, f"a string of {len(value):,} characters; the limit is {MAX_TEXT:,}", remedy)
            if _CONTROL.search(value):
                refuse(path, "a control character", "remove it; line ends are the only control characters in a string")
        elif isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                refuse(path, "a number beyond 64 bits", "write a number of 64 bits")
        elif isinstance(value, float):
            if not math.isfinite(value):
                refuse(path, "a number that is not finite", "write a finite number")
        else:
            refuse(path, "a date or time", "write a number or a string")

    def refuse(path: Path, message: str, remedy: str) -> NoReturn:
        raise StudyError([problem(origin, line_of(lines, path), ".".join(map(str, path)), message, remedy)])

    look(data, ())
