"""Errors of the Python package, and the texts of operating-system errors with their remedies.

A text that may have a name of the user goes to the terminal through `visible`: `say` and `fail` for lines,
`VisibleConsole` for tables, `visible_data` for JSON and TOML, whose content stays the same.
"""

import errno
import os
import re

from nandlab._core import NandlabError


class OutputError(NandlabError):
    """A file, directory or argument that is refused; the text names it and gives a remedy."""


_REMEDIES = {
    errno.ENOSPC: "free some space on the disk, or write to another disk",
    errno.EDQUOT: "the disk quota is used up: free some space, or write to another disk",
    errno.EFBIG: "the file would exceed the size limit: raise the limit (see `ulimit -f`)",
    errno.EROFS: "the file system is read-only: choose another path",
    errno.EACCES: "no permission: choose another path, or change its permissions",
    errno.EPERM: "no permission: choose another path, or change its permissions",
    errno.ENOTDIR: "a part of this path is a file, not a directory: choose another path",
    errno.EEXIST: "a file has this name already: choose another path",
    errno.EISDIR: "this is a directory: name a file",
    errno.ENAMETOOLONG: "the name is too long: choose a shorter one",
    errno.ENOENT: "create the directory first, or choose another path",
    errno.EIO: "the disk reports an error: check the disk, or use another disk",
    errno.EMFILE: "too many open files: raise the limit (see `ulimit -n`)",
}


#: Limits that make a message fit on a screen: lines, and characters of a line.
_LINES_MAX, _LAST_LINES, _LINE_MAX = 25, 8, 400
#: The most characters of a name that is shown in full, and the characters of either end of a shortened name.
_NAME_MAX, _NAME_END = 200, 80


def visible(text: str | os.PathLike[str]) -> str:
    """A text for the terminal: unprintable characters except line ends are escaped.

    Every text that may have a name of the user (paths, specs, studies, labels, policies) is printed through this
    function, so that no escape sequence of a name reaches the terminal.
    """
    plain = os.fspath(text)
    if plain.isprintable():
        return plain
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in plain)


def visible_data(text: str) -> str:
    """A text of JSON or TOML for the terminal, with the same content: unprintable characters in strings are escaped.

    Serialisers escape those below 0x20, but neither DEL and the C1 codes, which terminals obey too, nor the codes that
    turn the direction of the text. Characters beyond 16 bits, which JSON and TOML escape differently, are kept.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" or c > "\uffff" else f"\\u{ord(c):04x}" for c in text)


def shown(name: str | os.PathLike[str]) -> str:
    """A name for a message: unprintable characters are escaped, and the middle of a long name is left out."""
    text = visible(name).replace("\n", "\\n")
    return text if len(text) <= _NAME_MAX else f"{text[:_NAME_END]}...{text[-_NAME_END:]}"


def shortened(text: str) -> str:
    """A message with its long words and long lines shortened, and its middle left out beyond the limit of lines.

    The last lines stay: they are the exception of a traceback, and the remedy.
    """
    lines = text.rstrip("\n").split("\n")
    if len(lines) > _LINES_MAX:
        left_out = f"... {len(lines) - _LINES_MAX + 1} lines are left out ..."
        lines = [*lines[: _LINES_MAX - _LAST_LINES - 1], left_out, *lines[-_LAST_LINES:]]
    words = (" ".join(shown(word) for word in line.split(" ")) for line in lines)
    return "\n".join(line if len(line) <= _LINE_MAX else f"{line[: _LINE_MAX - 3]}..." for line in words)


def os_error_text(doing: str, path: str | os.PathLike[str] | None, error: OSError) -> str:
    """The text for an `OSError`: the failed action, the path, the reason and a remedy.

    `doing` completes "cannot ..."; without `path` the text names the file of the error.
    """
    where = path if path is not None else error.filename
    what = f"{doing} {shown(os.fsdecode(where))}" if where is not None else doing
    reason = error.strerror or str(error)
    remedy = _REMEDIES.get(error.errno or 0) or _remedy_in(reason) or "check the path"
    return f"cannot {what}: {reason}\n  remedy: {remedy}"


def with_remedy(text: str) -> str:
    """An error text of the core, with a remedy added to an operating-system error that has none."""
    if "remedy" in text or ": cannot " not in text:
        return text
    return f"{text}\n  remedy: {_remedy_in(text) or 'check the path'}"


def _remedy_in(text: str) -> str | None:
    """The remedy for the operating-system error whose number a text of the core contains."""
    found = re.search(r"\(os error (\d+)\)", text)
    return _REMEDIES.get(int(found[1])) if found else None
