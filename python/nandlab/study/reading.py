"""A study file that is being read: where its keys stand, what is wrong with them, what its keys of the spec set."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path as FilePath
from typing import Any, NoReturn

from nandlab._types import Problem
from nandlab.study.model import PATH_KEYS, Override
from nandlab.study.problems import MAX_PROBLEMS, StudyError, near, problem, shown
from nandlab.study.source import Lines, Path, line_of


class Reading:
    """Collects the mistakes, and refuses the file when there are too many."""

    def __init__(self, path: FilePath, lines: Lines) -> None:
        self.path = path
        self.lines = lines
        self.problems: list[Problem] = []
        #: What relative paths in the base count from.
        self.base_dir = path.parent.absolute()

    def line(self, path: Path) -> int | None:
        return line_of(self.lines, path)

    def say(self, path: Path, message: str, remedy: str) -> None:
        """Note a mistake."""
        name = ".".join(str(part) for part in path)
        self._note(problem(str(self.path), self.line(path), name, message, remedy))

    def _note(self, found: Problem) -> None:
        self.problems.append(found)
        if len(self.problems) >= MAX_PROBLEMS:
            self.refuse()

    def refuse(self) -> NoReturn:
        raise StudyError(sorted(self.problems, key=lambda entry: entry["line"] or 0))

    def sets(self, table: Mapping[str, Any] | None, path: Path) -> tuple[Override, ...]:
        """Keys of a spec: quoted dotted keys as they are; a section written as a table, key by key."""
        found = []
        for key, value in (table or {}).items():
            if isinstance(value, dict) and "." not in key:
                lines = ((name, entry, self.line((*path, key, name))) for name, entry in value.items())
                found += [Override(f"{key}.{name}", entry, line) for name, entry, line in lines]
            else:
                found.append(Override(key, value, self.line((*path, key))))
        return tuple(self.placed(override) for override in found)

    def placed(self, override: Override) -> Override:
        """A relative path in a study counts from the study's directory; the spec counts from its base's."""
        if override.key not in PATH_KEYS or not isinstance(override.value, str):
            return override
        written = os.path.expandvars(override.value)
        if missing := re.search(r"\$\{?(\w+)", written):
            name = shown(missing[1])
            told = f"the environment has no {name}"
            remedy = f"export {name}=FOLDER, the folder with these files"
            self._note(problem(str(self.path), override.line, override.key, told, remedy))
            return override
        if os.path.isabs(written):
            return Override(override.key, written, override.line)
        there = os.path.normpath(os.path.join(self.path.parent.absolute(), override.value))
        return Override(override.key, os.path.relpath(there, self.base_dir), override.line)

    def names(self, listed: list[Any] | None, path: Path, known: Iterable[str]) -> list[str] | None:
        """Those of a list of names that there are."""
        if listed is None:
            return None
        names = dict.fromkeys(known)
        for index, name in enumerate(listed):
            if not isinstance(name, str) or name not in names:
                self.say((*path, index), f'there is no "{shown(name)}"', near(name, names))
        return [name for name in listed if isinstance(name, str) and name in names]

    def unique(self, key: str, ids: Iterable[str | None]) -> None:
        """Ids that are given to one figure or claim only."""
        seen: set[str] = set()
        for index, name in enumerate(ids):
            if name is not None and name in seen:
                self.say((key, index, "id"), f'"{shown(name)}" is there already', "give each an id of its own")
            seen.add(name or "")
