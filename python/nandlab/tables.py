"""The tables of a run: raw columns of the core as numpy, polars and Parquet."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

# numpy and polars take longer to import than a short run, which needs neither.
if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

RawTable = dict[str, tuple[str, bytes]]
Columns = dict[str, "NDArray[Any]"]

#: The tables of a run; the text says what one row describes.
TABLES = {
    "series": "interval of the run",
    "dies": "die and interval (at most 64 intervals)",
    "latency": "operation and latency bin",
    "blocks": "block of the drive at the end of the run",
    "requests": "request (with `output.requests = true`)",
}


def decode(raw: RawTable) -> Columns:
    """The columns of one table as numpy arrays; text columns are arrays of `object`."""
    import numpy as np

    columns: Columns = {}
    for name, (dtype, data) in raw.items():
        if dtype == "str":
            lines = data.decode().split("\n") if data else []
            columns[name] = np.array(lines, dtype=object)
        else:
            columns[name] = np.frombuffer(data, dtype=np.dtype(dtype))
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise AssertionError(f"columns of one table differ in length: { ({n: len(c) for n, c in columns.items()}) }")
    return columns


def encode(columns: Columns) -> RawTable:
    """The raw columns of numpy arrays: the opposite of `decode`."""
    return {
        name: ("str", "\n".join(column.tolist()).encode())
        if column.dtype == object
        else (column.dtype.newbyteorder("<").str, column.astype(column.dtype.newbyteorder("<")).tobytes())
        for name, column in columns.items()
    }


def to_frame(columns: Columns) -> pl.DataFrame:
    """Columns as a polars data frame; NaN becomes null."""
    import polars as pl

    return pl.DataFrame(
        {
            name: pl.Series(name, column.tolist(), dtype=pl.String)
            if column.dtype == object
            else pl.Series(name, column, nan_to_null=True)
            for name, column in columns.items()
        }
    )


def from_frame(frame: pl.DataFrame) -> Columns:
    """The columns of a polars data frame as numpy arrays; text columns are arrays of `object`."""
    import numpy as np
    import polars as pl

    return {
        name: np.array(frame[name].to_list(), dtype=object)
        if frame[name].dtype == pl.String
        else frame[name].to_numpy()
        for name in frame.columns
    }


def to_parquet(frame: pl.DataFrame) -> bytes:
    """The Parquet file of a data frame; all settings are fixed, so that equal data frames give equal bytes."""
    buffer = io.BytesIO()
    frame.write_parquet(
        buffer, compression="zstd", compression_level=3, statistics=True, row_group_size=262_144, data_page_size=1 << 20
    )
    return buffer.getvalue()
