"""Batches of requests: the columns of arrays, data frames and Arrow tables, as the core takes them."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nandlab._core import Spec
from nandlab.results import REQUESTS
from nandlab.spec import PATH_KEYS, set_arguments

# numpy takes longer to import than a short run, which does not need it.
if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The operations, in the order of their numbers in a column `op`.
OPS = ("read", "write", "trim", "flush")
#: Why a request failed, in the order of the numbers in the core's columns.
REASONS = ("uncorrectable", "worn_out", "power_lost")
#: The columns of a batch, with the type that the core takes.
COLUMNS = {
    "op": "|u1",
    "offset": "<u8",
    "length": "<u8",
    "arrival_ns": "<u8",
    "fua": "|u1",
    "queue": "<u2",
    "placement": "<u2",
}


def arrays_of(table: Any) -> dict[str, NDArray[Any]]:
    """The columns of a table as numpy arrays.

    `table` is a mapping from names to sequences, a structured numpy array, a data frame of polars or pandas, or
    whatever gives an Arrow stream (`__arrow_c_stream__`), such as a table of pyarrow. Raises `TypeError` for another
    object.
    """
    import numpy as np

    if isinstance(table, Mapping):
        return {str(name): np.asarray(column) for name, column in table.items()}
    if isinstance(table, np.ndarray) and table.dtype.names is not None:
        return {name: table[name] for name in table.dtype.names}
    library = type(table).__module__.partition(".")[0]
    if library == "pandas":
        return {str(name): table[name].to_numpy() for name in table.columns}
    if hasattr(table, "__arrow_c_stream__"):
        import polars as pl

        frame = table if isinstance(table, pl.DataFrame) else pl.DataFrame(table)
        return {name: frame[name].to_numpy() for name in frame.columns}
    raise TypeError(
        f"requests cannot be of type {type(table).__name__}: expected a mapping of arrays, a structured numpy array, a "
        "data frame of polars or pandas, or an Arrow table"
    )


def requests_of(table: Any) -> dict[str, NDArray[Any]]:
    """The columns of requests in the types of `COLUMNS`; raises `ValueError` for columns that are no requests.

    `op` has the names of `OPS`, or their numbers; `offset` and `length` are bytes. `arrival_ns`, `fua`, `queue` and
    `placement` may be absent.
    """
    import numpy as np

    arrays = arrays_of(table)
    unknown = [name for name in arrays if name not in COLUMNS]
    if unknown:
        raise ValueError(f"column {unknown[0]!r}: the columns of requests are {', '.join(COLUMNS)}")
    missing = [name for name in ("op", "offset", "length") if name not in arrays]
    if missing:
        raise ValueError(f"no column {missing[0]!r}: requests have the columns op, offset and length")
    if arrays["op"].ndim != 1:
        raise ValueError("column 'op': expected one value for each request")
    arrays["op"] = _numbers_of_operations(arrays["op"])
    found = {}
    for name, column in arrays.items():
        if column.ndim != 1 or len(column) != len(arrays["op"]):
            raise ValueError(f"column {name!r}: expected one value for each of the {len(arrays['op'])} requests")
        if column.dtype == object:
            # A frame of pandas has such columns where a value was missing.
            column = np.array(column.tolist())
        is_broken = column != np.floor(column) if column.dtype.kind == "f" else np.zeros(0, bool)
        broken = np.flatnonzero(is_broken)
        if column.dtype.kind not in "uibf" or len(broken):
            found_there = f"{column[int(broken[0])]} of request {int(broken[0])}" if len(broken) else column.dtype
            raise ValueError(f"column {name!r}: expected whole numbers, found {found_there}")
        most = (1 << 53) if name in ("offset", "length", "arrival_ns") else np.iinfo(COLUMNS[name]).max
        beyond = np.flatnonzero((column < 0) | (column > most))
        if len(beyond):
            index = int(beyond[0])
            raise ValueError(f"column {name!r}: {column[index]} of request {index} is not from 0 to {most}")
        found[name] = np.ascontiguousarray(column, dtype=COLUMNS[name])
    return found


#: The columns that a trace of requests states: name there, and name here.
_TRACED = {
    "time_ns": "arrival_ns",
    "op(0=read, 1=write, 2=trim, 3=flush)": "op",
    "offset": "offset",
    "size": "length",
    "placement": "placement",
}
#: Of these, the columns that may be absent.
_OPTIONAL = ("arrival_ns", "placement")
#: The arrival of requests without times, which is that of a synthetic workload.
_CLOSED_LOOP = {"queue_depth": 32}


class RequestTrace(NamedTuple):
    """Requests as the trace of a workload."""

    #: The name of the file, which contains a part of the digest of its content.
    name: str
    content: bytes
    #: The overrides that make it the workload of a spec.
    sets: dict[str, object]


def trace_of(table: Any) -> RequestTrace:
    """The trace of requests; raises `ValueError` for columns that are no requests, or that a workload does not have."""
    import polars as pl

    columns = requests_of(table)
    beside = [name for name in columns if name not in _TRACED.values()]
    if beside:
        raise ValueError(
            f"column {beside[0]!r}: the requests of a run have the columns op, offset, length, arrival_ns and "
            "placement; nandlab.Drive.submit_many takes the others"
        )
    stated = [name for name in _TRACED if _TRACED[name] not in _OPTIONAL or _TRACED[name] in columns]
    frame = pl.DataFrame({name: columns[name] for name in map(_TRACED.__getitem__, stated)})
    content = frame.write_csv(include_header=False).encode()
    described = ", ".join(stated) + "; separator=comma" + ("" if "arrival_ns" in columns else "; time=none")
    if not len(frame):
        raise ValueError("there are no requests")
    name = f"{REQUESTS}{hashlib.sha256(content).hexdigest()[:12]}.csv"
    sets: dict[str, object] = {"workload.trace": name, "workload.format": {"columns": described}}
    if "arrival_ns" in columns:
        sets["workload.arrival"] = "trace"
    return RequestTrace(name, content, sets)


def beside_trace(spec: Spec, trace: RequestTrace, folder: Path) -> Spec:
    """A spec whose workload is the trace, as if it were in `folder`, to which the trace is written.

    Requests without times arrive as `workload.arrival` of the spec says, else in a closed loop at queue depth 32.
    """
    (folder / trace.name).write_bytes(trace.content)
    text, name, directory, sets = spec.source
    resolved = tomllib.loads(spec.to_toml())
    given = [*sets]
    # The trace is in `folder`; other files stay where they are.
    for key in PATH_KEYS:
        value: Any = resolved
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, str) and key != "workload.trace":
            given += set_arguments({key: os.path.join(directory, value)})
    if "time=none" in str(trace.sets["workload.format"]) and resolved["workload"]["arrival"] == "trace":
        given += set_arguments({"workload.arrival": _CLOSED_LOOP})
    return Spec.load(text, name, os.fspath(folder), given, spec.policies)


def raw_columns(arrays: Mapping[str, NDArray[Any]]) -> dict[str, bytes]:
    """The bytes of the columns."""
    return {name: column.tobytes() for name, column in arrays.items()}


def _numbers_of_operations(column: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    if column.dtype.kind in "uib":
        unknown = np.flatnonzero((column < 0) | (column >= len(OPS)))
        if len(unknown):
            index = int(unknown[0])
            raise ValueError(f"column 'op': {column[index]} of request {index} is no number from 0 to {len(OPS) - 1}")
        return column
    numbers = np.full(len(column), len(OPS), dtype=np.uint8)
    names = column.astype(str)
    for number, name in enumerate(OPS):
        numbers[names == name] = number
    unknown = np.flatnonzero(numbers == len(OPS))
    if len(unknown):
        index = int(unknown[0])
        raise ValueError(f"column 'op': {str(column[index])!r} of request {index} is none of {', '.join(OPS)}")
    return numbers
