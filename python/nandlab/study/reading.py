"""Reads the overrides and lists of names in the tables of a study file, and collects its errors with their lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path as FilePath
from typing import Any, NoReturn

from nandlab._types import Problem
from nandlab.spec import PATH_KEYS
from nandlab.study.model import Override
from nandlab.study.problems import MAX_PROBLEMS, StudyError, near, problem, shown
from nandlab.study.source import Lines, Path, line_of


class Reading:
    """Collects the errors of a study file, and refuses the file at the 20th error."""

    def __init__(self, path: FilePath, lines: Lines) -> None:
        self.path = path
        self.lines = lines
        self.problems: list[Problem] = []
        #: Entries of [parameters] that come from the extended study, whose claims and figures they name.
        self.inherited_parameters: frozenset[str] = frozenset()
        #: The directory at which relative paths in the base spec start.
        self.base_dir = path.parent.absolute()

    def line(self, path: Path) -> int | None:
        return line_of(self.lines, path)

    def report(self, path: Path, message: str, remedy: str) -> None:
        """Record an error."""
        name = ".".join(str(part) for part in path)
        self._note(problem(str(self.path), self.line(path), name, message, remedy))

    def _note(self, found: Problem) -> None:
        self.problems.append(found)
        if len(self.problems) >= MAX_PROBLEMS:
            self.refuse()

    def refuse(self) -> NoReturn:
        raise StudyError(sorted(self.problems, key=lambda entry: entry["line"] or 0))

    def sets(self, table: Mapping[str, Any] | None, path: Path) -> tuple[Override, ...]:
        """The overrides in a table, whose entries are quoted dotted keys or sections of the spec with their keys."""
        found = []
        for key, value in (table or {}).items():
            if isinstance(value, dict) and "." not in key:
                lines = ((name, entry, self.line((*path, key, name))) for name, entry in value.items())
                found += [Override(f"{key}.{name}", entry, line) for name, entry, line in lines]
            else:
                found.append(Override(key, value, self.line((*path, key))))
        return tuple(self.placed(override) for override in found)

    def placed(self, override: Override) -> Override:
        """The override with the path of an input file rewritten; any other override unchanged.

        Environment variables in the path are replaced by their values. A relative path of the study file starts at the
        study's directory, the rewritten one at `base_dir`.
        """
        if override.key not in PATH_KEYS or not isinstance(override.value, str):
            return override
        written = os.path.expandvars(override.value)
        if missing := re.search(r"\$\{?(\w+)", written):
            name = shown(missing[1])
            message = f"the environment variable {name} is not set"
            remedy = f"export {name}=FOLDER, the folder with these files"
            self._note(problem(str(self.path), override.line, override.key, message, remedy))
            return override
        if os.path.isabs(written):
            return Override(override.key, written, override.line)
        there = os.path.normpath(os.path.join(self.path.parent.absolute(), written))
        return Override(override.key, os.path.relpath(there, self.base_dir), override.line)

    def names(self, listed: list[Any] | None, path: Path, known: Iterable[str]) -> list[str] | None:
        """The known names of a list; unknown names are errors."""
        if listed is None:
            return None
        names = dict.fromkeys(known)
        for index, name in enumerate(listed):
            if not isinstance(name, str) or name not in names:
                self.report((*path, index), f'unknown name "{shown(name)}"', near(name, names))
        return [name for name in listed if isinstance(name, str) and name in names]

    def unique(self, key: str, ids: Iterable[str | None]) -> None:
        """Check that the ids of figures or claims are unique."""
        seen: set[str] = set()
        for index, name in enumerate(ids):
            if name is not None and name in seen:
                self.report((key, index, "id"), f'duplicate id "{shown(name)}"', "use each id once")
            seen.add(name or "")
