"""The base class of the typed sections of a result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from nandlab.errors import OutputError

T = TypeVar("T")


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A section of a result. Its values are attributes.

    `record["cache.pages"]` is the value at a path and raises `KeyError` for an unknown path; `dict(record)` has the
    values by name.
    """

    def __getitem__(self, path: str) -> object:
        value: object = self
        for name in path.split("."):
            if isinstance(value, Record) and name in value.__struct_fields__:
                value = getattr(value, name)
            elif isinstance(value, dict) and name.isdecimal() and int(name) in value:
                value = value[int(name)]
            elif isinstance(value, dict) and name in value:
                value = value[name]
            else:
                raise KeyError(path)
        return value

    def keys(self) -> tuple[str, ...]:
        """The names of the values."""
        return self.__struct_fields__

    def items(self) -> Iterator[tuple[str, object]]:
        """Names and values."""
        return ((name, getattr(self, name)) for name in self.__struct_fields__)


def parse(text: str, kind: type[T], where: object) -> T:
    """The value of type `kind` in a JSON text; raises `OutputError`, which names the text by `where`."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise OutputError(f"{where} is from another version of nandlab ({error}): run the command again") from None
    except (msgspec.DecodeError, RecursionError):
        raise OutputError(f"{where} is damaged: run the command again") from None
