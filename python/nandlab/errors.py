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


def os_error_text(doing: str, path: str | os.PathLike[str] | None, error: OSError) -> str:
    """One line for an `OSError`: what failed, on which path, why, and what helps."""
    where = path if path is not None else error.filename
    what = f"{doing} {os.fspath(where)}" if where is not None else doing
    if isinstance(what, bytes):  # pragma: no cover - paths are text here
        what = what.decode(errors="replace")
    reason = error.strerror or str(error)
    remedy = _REMEDIES.get(error.errno or 0)
    return f"cannot {what}: {reason}" + (f"\n  {remedy}" if remedy else "")


def with_remedy(text: str) -> str:
    """The core's text for an operating-system error, with what helps when it does not say so itself."""
    found = re.search(r"\(os error (\d+)\)", text)
    remedy = _REMEDIES.get(int(found[1])) if found and "remedy" not in text else None
    return f"{text}\n  remedy: {remedy}" if remedy else text
