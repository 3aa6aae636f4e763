"""Errors of the Python side, and how an operating-system error is told to a user."""

import errno
import os
import re

from nandlab._core import NandlabError


class OutputError(NandlabError):
    """Something could not be read or written; the text names the path and what helps."""


_REMEDIES = {
    errno.ENOSPC: "free some space there, or write to another disk",
    errno.EDQUOT: "the quota there is used up: free some space, or write to another disk",
    errno.EFBIG: "the file would be larger than is allowed there (see `ulimit -f`)",
    errno.EROFS: "the file system is read-only: write to another place",
    errno.EACCES: "no permission: choose another path, or change its permissions",
    errno.EPERM: "no permission: choose another path, or change its permissions",
    errno.ENOTDIR: "a part of this path is a file, not a directory: choose another path",
    errno.EEXIST: "a file is in the way: choose another path",
    errno.EISDIR: "this is a directory: name a file",
    errno.ENAMETOOLONG: "the name is too long: choose a shorter one",
    errno.ENOENT: "make the directory first, or choose another path",
    errno.EIO: "the disk reports an error: check it, or use another one",
    errno.EMFILE: "too many open files: raise the limit (see `ulimit -n`)",
}


#: A message fits a screen: so many lines, and so many characters of one of them.
_LINES_MAX, _LINE_MAX = 25, 400
#: Characters of a name that is shown whole, and of either end of one that is not.
_NAME_MAX, _NAME_END = 200, 80


def shown(name: str | os.PathLike[str]) -> str:
    """A name for a message: what does not print is escaped, and one that fills lines loses its middle."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in os.fspath(name))
    return text if len(text) <= _NAME_MAX else f"{text[:_NAME_END]}...{text[-_NAME_END:]}"


def on_a_screen(text: str) -> str:
    """A message with its long names, lines and lists cut."""
    lines = text.split("\n")
    if len(lines) > _LINES_MAX:
        lines = [*lines[: _LINES_MAX - 1], f"and {len(lines) - _LINES_MAX + 1} more lines"]
    words = (" ".join(shown(word) for word in line.split(" ")) for line in lines)
    return "\n".join(line if len(line) <= _LINE_MAX else f"{line[: _LINE_MAX - 3]}..." for line in words)


def os_error_text(doing: str, path: str | os.PathLike[str] | None, error: OSError) -> str:
    """One line for an `OSError`: what failed, on which path, why, and what helps."""
    where = path if path is not None else error.filename
    what = f"{doing} {shown(os.fsdecode(where))}" if where is not None else doing
    reason = error.strerror or str(error)
    remedy = _REMEDIES.get(error.errno or 0) or _of_core(reason) or "check the path"
    return f"cannot {what}: {reason}\n  remedy: {remedy}"


def with_remedy(text: str) -> str:
    """The core's text for an operating-system error, with what helps when it does not say so itself."""
    if "remedy" in text or ": cannot " not in text:
        return text
    return f"{text}\n  remedy: {_of_core(text) or 'check the path'}"


def _of_core(text: str) -> str | None:
    """The remedy of the operating-system error that a text of the core ends in."""
    found = re.search(r"\(os error (\d+)\)", text)
    return _REMEDIES.get(int(found[1])) if found else None
