"""The memory that a run needs, and the memory that is available."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path

from nandlab import _core
from nandlab.units import size

#: Address space that threads need beside the drive: stacks and arenas.
_THREADS_BYTES = 256 << 20
#: A run that needs less memory is not compared with what is free, because reading that takes as long as a short run:
#: this interpreter with its modules needs more.
_SMALL_BYTES = 16 << 20


def check(spec: _core.Spec, verify: bool = False, serve: bool = False, explain: bool = False) -> int:
    """Refuse a run that does not fit into memory, before the drive is built; raises `RunError`.

    With `serve` the run is that of a live drive, without the data of its clients, and with `explain` its page explains
    requests. Returns the bytes that it needs.
    """
    resident, reserved, remedy = _core.memory_needed(spec, verify, serve, explain)
    limits = _limits_of_process(reserved) if resident < _SMALL_BYTES else _limits(resident, reserved)
    for what, available, needed in limits:
        if needed > available:
            raise _core.RunError(
                f"the run needs {size(needed)} of memory, and {size(max(available, 0))} are available: {what}\n"
                f"  remedy: {remedy}"
            )
    return resident


def available() -> int | None:
    """The bytes that a run may use; `None` on a system that does not tell."""
    return min((left for _, left, _ in _limits(0, 0)), default=None)


def _limits(resident: int, reserved: int) -> Iterator[tuple[str, int, int]]:
    """The limits on the memory of this process: name, bytes left, and bytes that the run needs of them."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        yield "the machine's free memory (MemAvailable)", _table(Path("/proc/meminfo"))["MemAvailable"], resident
    yield from ((f"the limit of the control group ({path})", left, resident) for path, left in _control_groups())
    yield from _limits_of_process(reserved)


def _limits_of_process(reserved: int) -> Iterator[tuple[str, int, int]]:
    """The limits on the address space of this process, as in `_limits`."""
    for limit, name, now in ((resource.RLIMIT_AS, "-v", "VmSize"), (resource.RLIMIT_DATA, "-d", "VmData")):
        soft, _ = resource.getrlimit(limit)
        if soft != resource.RLIM_INFINITY:
            with contextlib.suppress(OSError, ValueError, KeyError):
                used = _table(Path("/proc/self/status"))
                yield f"the limit of the process (ulimit {name})", soft - used[now], reserved + _THREADS_BYTES


def _table(path: Path) -> dict[str, int]:
    """The values of the lines `NAME: NUMBER kB`, in bytes."""
    lines = (line.split() for line in path.read_text(encoding="ascii", errors="replace").splitlines())
    return {line[0].rstrip(":"): int(line[1]) * 1024 for line in lines if len(line) == 3 and line[2] == "kB"}


def _control_groups() -> Iterator[tuple[Path, int]]:
    """The bytes left under the memory limits of this process's control group and of its parents."""
    groups: list[str] = []
    with contextlib.suppress(OSError):
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    for group in groups:
        _, _, rest = group.partition(":")
        controllers, _, name = rest.partition(":")
        if controllers == "":
            root, limit, used, cache = Path("/sys/fs/cgroup"), "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            root, limit, used = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"
            cache = "total_inactive_file"
        else:
            continue
        # In a container the path of the group may not exist; the root then has its limit.
        folder = root / name.lstrip("/")
        for path in [folder, *folder.parents]:
            if not path.is_relative_to(root):
                break
            with contextlib.suppress(OSError, ValueError):
                most = int((path / limit).read_text())
                stat = dict(line.split() for line in (path / "memory.stat").read_text().splitlines())
                # The kernel reclaims file cache on demand.
                yield path / limit, most - int((path / used).read_text()) + int(stat.get(cache, 0))


def runs_at_once(specs: Sequence[_core.Spec]) -> int:
    """The number of runs of these specs that fit into memory at the same time; at least one."""
    needs = [_core.memory_needed(spec)[:2] for spec in specs]
    if not needs:
        return 1
    limits = _limits(max(resident for resident, _ in needs), max(reserved for _, reserved in needs))
    return max(1, min((available // needed for _, available, needed in limits if needed > 0), default=1))
