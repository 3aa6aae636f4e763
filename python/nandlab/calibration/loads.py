"""The load of a measurement as overrides of a spec."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nandlab._core import Spec
from nandlab.calibration.measured import Row, Value
from nandlab.errors import OutputError, shown
from nandlab.fio import Jobs, parse_jobs, places_of, read_jobs
from nandlab.spec import toml_value
from nandlab.study.problems import near

#: A number of requests that no duration reaches.
_REQUESTS = 10**12


@dataclass(frozen=True)
class Load:
    """A row with the overrides that make its load."""

    row: Row
    sets: tuple[str, ...]


def loads_of(spec: Spec, rows: Sequence[Row], fio: Path | None, duration: str | None) -> tuple[list[Load], list[str]]:
    """The loads of all rows, and notes on what of a fio job has no counterpart; raises `OutputError`.

    The clients of a row are those of the fio job file `fio`, else the jobs in fio's result, else those of the spec.
    `duration` is the simulated time of each client, in place of its own.
    """
    notes: dict[str, None] = {}
    found = [_load(spec, row, fio, duration, notes) for row in rows]
    return found, list(notes)


def _load(spec: Spec, row: Row, fio: Path | None, duration: str | None, notes: dict[str, None]) -> Load:
    clients = _clients(spec, row, fio, notes)
    sets: list[str] = []
    for name, text in row.load.items():
        plain, _, client = name.partition(":")
        if "." in plain:
            sets.append(f"{name}={_toml(text)}")
            continue
        chosen = _chosen(clients, client, row, name)
        _apply(plain, text, chosen, row)
    if duration is not None:
        for one in clients:
            one |= {"duration": duration, "requests": _REQUESTS}
    return Load(_named(row, clients), (f"workload.clients={toml_value(clients)}", *sets))


def _clients(spec: Spec, row: Row, fio: Path | None, notes: dict[str, None]) -> list[dict[str, Any]]:
    jobs: Jobs | None = None
    if fio is not None:
        jobs = read_jobs(fio, spec.logical_bytes, places_of(spec))
    elif row.jobs:
        jobs = parse_jobs(row.jobs, spec.logical_bytes, row.origin, places_of(spec))
    if jobs is not None:
        notes.update(dict.fromkeys(f"{row.origin}: {text}" for text in jobs.notes()))
        return [dict(client) for client in jobs.clients]
    workload = tomllib.loads(spec.to_toml()).get("workload") or {}
    if "clients" in workload:
        return [dict(client) for client in workload["clients"]]
    if "synthetic" in workload:
        return [{"name": "workload", "arrival": workload.get("arrival"), **workload["synthetic"]}]
    raise OutputError(
        f"{row.origin}: the spec says no client that makes this load\n  remedy: give the spec workload.clients or "
        "workload.synthetic, or name the fio job file with --fio"
    )


def _chosen(clients: list[dict[str, Any]], name: str, row: Row, column: str) -> list[dict[str, Any]]:
    """The clients of a column: all, the one with a name, or those whose name begins with the text before a `*`."""
    if not name:
        return clients
    pattern = re.escape(name[:-1]) + ".*" if name.endswith("*") else re.escape(name)
    found = [client for client in clients if re.fullmatch(pattern, client["name"])]
    if not found:
        names = [client["name"] for client in clients]
        raise OutputError(f"{row.origin}: {shown(column)}: no client {shown(name)}\n  remedy: {near(name, names)}")
    return found


def _apply(name: str, text: str, clients: list[dict[str, Any]], row: Row) -> None:
    """Set a column of the load in its clients."""
    if name == "size":
        size = f"{text}B" if text.isdigit() else text
        _set(clients, "size", size)
        return
    if name == "span" and not re.fullmatch(r"[\d.]+", text):
        _set(clients, "span", {"from": "0B", "to": text})
        return
    try:
        value = float(text)
    except ValueError:
        raise OutputError(
            f"{row.origin}: {name}: expected a number, found {shown(text)}\n  remedy: correct the cell"
        ) from None
    if name in ("read_fraction", "span"):
        if not 0 <= value <= 1:
            raise OutputError(f"{row.origin}: {name}: expected 0 to 1, found {shown(text)}\n  remedy: write a share")
        _set(clients, name, value)
    elif name == "zipf":
        _set(clients, "address", {"zipf": value})
    elif name == "queue_depth":
        _set(clients, "arrival", {"queue_depth": int(value)})
    else:
        _scale(clients, value, row)


def _set(clients: list[dict[str, Any]], key: str, value: object) -> None:
    for client in clients:
        client[key] = value


def _scale(clients: list[dict[str, Any]], rate: float, row: Row) -> None:
    """Scale the rates of clients to a sum; clients without rates of their own share it alike."""
    open_loop = [client for client in clients if "iops" in (client.get("arrival") or {})]
    if not open_loop:
        for client in clients:
            client["arrival"] = {"iops": rate / len(clients), "process": "poisson"}
        return
    total = sum(float(client["arrival"]["iops"]) for client in open_loop)
    if len(open_loop) < len(clients):
        raise OutputError(
            f"{row.origin}: rate: some clients have a rate and others a queue depth\n  remedy: name the clients of the "
            "rate: rate:NAME, or rate:BEGINNING* for several"
        )
    for client in open_loop:
        client["arrival"] = client["arrival"] | {"iops": float(client["arrival"]["iops"]) * rate / total}


def _named(row: Row, clients: list[dict[str, Any]]) -> Row:
    """The row with the names of clients in place of the numbers of fio's results."""
    names = [str(client["name"]) for client in clients]
    values: list[Value] = []
    for value in row.values:
        if not value.client.startswith("#"):
            _chosen(clients, value.client, row, value.name)
            values.append(value)
            continue
        at = int(value.client[1:])
        job = row.results[at]
        if len(names) == len(row.results):
            values.append(replace(value, client=names[at]))
            continue
        of_job = [name for name in names if re.fullmatch(re.escape(job.replace(".", "-")) + r"(-\d+)?(#\d+)?", name)]
        if not of_job:
            raise OutputError(
                f"{row.origin}: the job file has no job {shown(job)}\n  remedy: give the job file that made this result"
            )
        # Percentiles of several clients together are not known, rates are.
        if len(of_job) == 1:
            values.append(replace(value, client=of_job[0]))
        elif value.metric.endswith("iops"):
            values.append(replace(value, client=job.replace(".", "-") + "*"))
    return replace(row, values=tuple(values))


def _toml(text: str) -> str:
    """A cell as a value of TOML: a number, a truth value, a table or list as it is, else a string."""
    if re.fullmatch(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?|true|false|[\[{\"'].*", text):
        return text
    return toml_value(text)
