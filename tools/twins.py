"""Twins: hidden specs that `nandlab calibrate` has to find again from what nandlab itself measured of them.

python tools/twins.py OUT [--twins N] [--first N] [--workers N] [--quick]

Each twin has a seed, from which the values of six keys are drawn, each within a factor of two of the spec TWIN. The
twin is measured under the loads of LOADS, with seeds that the calibration does not use. OUT/twin-N/matters.json lists
the keys that matter: moving the key by 20 % moves a fitted value by more than three standard errors. This list is
written before the fit. OUT/twins.json has all twins: the hidden and the fitted values, and the errors of the held-out
loads. Finished runs are kept, so a stopped call continues.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import nandlab
from nandlab.calibration.keys import Key
from nandlab.calibration.loads import loads_of
from nandlab.calibration.measured import read_all
from nandlab.calibration.model import Counted, Floats, KeptWorkers, Model, SummaryStore
from nandlab.study.local import LocalWorkers

TWIN = """
seed = 1
[drive]
channels = 2
chips_per_channel = 1
planes_per_die = 2
blocks_per_plane = 68
pages_per_block = 48
page_size = "16KiB"
cell = "tlc"
program_order = "one-shot"
op = 0.4
[timing]
read = "50us"
program = "1ms"
erase = "2500us"
channel_ns_per_byte = 1.0
decode = "5us"
multi_plane = true
plane_reads = "independent"
suspend.program = { enter = "20us", resume = "20us", min_progress = "100us", max = 10 }
suspend.erase = { enter = "20us", resume = "20us", min_progress = "100us", max = 10 }
[host]
controller = { read = "6us", write = "10us", commands_at_once = 4 }
[ftl]
mapping_unit = "4KiB"
superblock = "die"
buffer = "512KiB"
allocation = "dynamic"
[capacitor]
capacitance = "0.5mF"
voltage = 12
voltage_min = 5
[precondition]
method = "pts"
rounds_max = 2
[workload]
# The requests before the results bring GC into a steady state: the writes among them replace most of the spare space.
warm_up = 30_000
clients = [{ name = "job", requests = 100000, read_fraction = 0.7, arrival = { queue_depth = 8 } }]
"""


class Load(NamedTuple):
    """A row of the measurement of a twin."""

    queue_depth: int
    read_fraction: float
    size: str
    #: "fit" or "held-out".
    split: str
    #: Further keys of the spec.
    keys: Mapping[str, str] = {}


#: The keys with their values in TWIN, which are the middle of their ranges.
KEYS = {
    "timing.read": (50e3, "ns"),
    "timing.program": (1e6, "ns"),
    "timing.channel_ns_per_byte": (1.0, ""),
    "drive.op": (0.4, ""),
    "host.controller.read": (6e3, "ns"),
    "host.controller.write": (10e3, "ns"),
}
#: The largest and the smallest value of a key over that of TWIN.
FACTOR = 2.0
#: A drive that is filled in order has whole pages of consecutive data: reads of it tell the time of the channel from
#: that of the flash array.
IN_ORDER = {"precondition.rounds_max": "0", "workload.warm_up": "0", "workload.requests_max": "20000"}
#: The loads of a twin.
LOADS = (
    Load(1, 1.0, "4KiB", "fit"),
    Load(32, 1.0, "4KiB", "fit"),
    Load(1, 1.0, "128KiB", "fit", IN_ORDER),
    Load(8, 1.0, "128KiB", "fit", IN_ORDER),
    Load(1, 0.0, "4KiB", "fit"),
    Load(32, 0.0, "4KiB", "fit"),
    Load(8, 0.7, "4KiB", "fit"),
    Load(8, 1.0, "4KiB", "held-out"),
    Load(4, 0.7, "4KiB", "held-out"),
    Load(16, 0.7, "4KiB", "held-out"),
)
#: Seeds of a measurement, and the first of them.
SEEDS, FIRST_SEED = 4, 1001
#: How far a key is moved to see whether it matters, and by how many standard errors a value has to move.
MOVED, ERRORS = 0.2, 3.0


def hidden(seed: int, keys: Mapping[str, tuple[float, str]] = KEYS) -> dict[str, float]:
    """The values of the keys of a twin."""
    drawn = random.Random(seed)
    return {name: middle * FACTOR ** drawn.uniform(-1, 1) for name, (middle, _) in keys.items()}


def head() -> list[str]:
    """The columns of a measurement."""
    ops = ("read", "write")
    values = ["iops", "waf", *(f"{op}_{which}_us" for op in ops for which in ("mean", "p50", "p99"))]
    return [name for value in values for name in (value, f"{value}_se")]


def empty_measurement(loads: Sequence[Load] = LOADS) -> str:
    """A measurement with 1 for each value that its load has, from which the loads and values of a twin are read."""
    keys = list(dict.fromkeys(key for load in loads for key in load.keys))
    lines = [",".join(["queue_depth", "read_fraction", "size", "split", *keys, *head()])]
    for depth, reads, size, split, own in loads:
        there = {"iops": True, "waf": reads == 0.0}
        for name in head():
            op = name.partition("_")[0]
            there.setdefault(name, {"read": reads > 0, "write": reads < 1}.get(op, False))
        cells = [("1" if there[name] and not name.endswith("_se") else "") for name in head()]
        lines.append(",".join([str(depth), str(reads), size, split, *(own.get(key, "") for key in keys), *cells]))
    return "\n".join(lines) + "\n"


def twin(
    out: Path,
    seed: int,
    workers: int,
    keys: Mapping[str, tuple[float, str]] = KEYS,
    loads: Sequence[Load] = LOADS,
    spec_text: str = TWIN,
    *,
    quick: bool = False,
) -> dict[str, Any]:
    """Measure one twin, find its keys, and return the record of both."""
    begin_s = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    spec, table = out / "spec.toml", out / "measured.csv"
    spec.write_text(spec_text)
    table.write_text(empty_measurement(loads))
    values = hidden(seed, keys)
    matters = _measure(out, spec, table, values, keys, workers)
    (out / "matters.json").write_text(json.dumps({"hidden": values, "matters": matters}, indent=2) + "\n")
    result = nandlab.calibrate(
        spec, table, fit=[_fit(name, keys) for name in keys], out=out / "calibrated", workers=workers, quick=quick
    )
    found = {one.key.name: one.value for one in result.keys}
    record = {
        "seed": seed,
        "keys": {
            name: {
                "hidden": values[name],
                "fitted": found[name],
                "error": found[name] / values[name] - 1,
                "interval": [one.profile.low, one.profile.high],
                "matters": matters[name] > ERRORS,
                "moves": matters[name],
            }
            for name, one in zip(keys, result.keys, strict=True)
        },
        "held_out": {
            statistic: [abs(one.deviation) for one in result.held_out if f"_{statistic}_" in one.name]
            for statistic in ("p50", "p99")
        },
        "correlated": [list(pair) for pair in result.pairs],
        "runs": result.runs_done + result.runs_kept,
        "wall_s": round(time.monotonic() - begin_s, 1),
    }
    (out / "twin.json").write_text(json.dumps(record, indent=2) + "\n")
    return record


def _fit(name: str, keys: Mapping[str, tuple[float, str]]) -> str:
    middle, unit = keys[name]
    return f"{name}={middle / FACTOR:.6f}{unit}..{middle * FACTOR:.6f}{unit}"


def _measure(
    out: Path, spec: Path, table: Path, values: Mapping[str, float], keys: Mapping[str, tuple[float, str]], workers: int
) -> dict[str, float]:
    """Write the measurement of a twin; returns by how many standard errors each key moves a fitted value at most."""
    base = nandlab.load(spec, [f"seed={FIRST_SEED}"])
    # Of a moved key the bounds do not matter here.
    names = [
        Key.parse(f"{name}={middle / 8:.6f}{unit}..{middle * 8:.6f}{unit}") for name, (middle, unit) in keys.items()
    ]
    loads, _ = loads_of(base, read_all([table]), None, None)
    store = SummaryStore(out / "measurement", "calibration")
    store.open("measurement")
    pool = KeptWorkers(lambda _wanted: LocalWorkers(workers))
    try:
        model = Model(base, names, loads, SEEDS, store, pool, lambda _state: None, Counted())
        here = tuple(key.value(key.place(values[key.name])) for key in names)
        moved = [
            tuple(one * (1 + by) if other is key else one for other, one in zip(names, here, strict=True))
            for key in names
            for by in (-MOVED, MOVED)
        ]
        moved = [tuple(key.value(key.place(one)) for key, one in zip(names, each, strict=True)) for each in moved]
        found = model.logs([here, *moved])
    finally:
        pool.end()
        store.close()
    measured = found[0]
    assert measured is not None
    errors = measured.std(axis=0, ddof=1) / math.sqrt(SEEDS)
    _write(table, loads, measured.mean(axis=0), errors)
    fitted = [load.row.split == "fit" for load in loads for _ in load.row.values]
    largest = {}
    for at, key in enumerate(names):
        moves = [_moves(measured, there, fitted) for there in found[1 + 2 * at : 3 + 2 * at] if there is not None]
        largest[key.name] = max(moves, default=0.0)
    return largest


def _moves(before: Floats, after: Floats, fitted: Sequence[bool]) -> float:
    """The largest change of a fitted value in standard errors; of a value without noise in thousandths of itself."""
    changes = abs(after.mean(axis=0) - before.mean(axis=0))
    errors = (before.var(axis=0, ddof=1) / SEEDS + after.var(axis=0, ddof=1) / SEEDS) ** 0.5
    return max(float(changes[at] / max(errors[at], 1e-3)) for at in range(len(fitted)) if fitted[at])


def _write(table: Path, loads: Sequence[Any], logs: Floats, errors: Floats) -> None:
    """The measurement of a twin with its standard errors, in place of the empty one."""
    lines = table.read_text().splitlines()
    names = lines[0].split(",")
    at = 0
    for number, load in enumerate(loads, 1):
        cells = dict(zip(names, lines[number].split(","), strict=True))
        for value in load.row.values:
            middle = math.exp(float(logs[at]))
            cells[value.metric] = f"{middle:.6g}"
            cells[f"{value.metric}_se"] = f"{middle * float(errors[at]):.6g}" if errors[at] > 0 else ""
            at += 1
        lines[number] = ",".join(cells.values())
    table.write_text("\n".join(lines) + "\n")


def summary(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All twins together."""
    keys = [key for record in records for key in record["keys"].values()]
    matter = [abs(key["error"]) for key in keys if key["matters"]]
    held = {which: [error for record in records for error in record["held_out"][which]] for which in ("p50", "p99")}
    return {
        "twins": len(records),
        "keys": len(keys),
        "keys_that_matter": len(matter),
        "within_5_percent": sum(error <= 0.05 for error in matter),
        "largest_error_of_a_key_that_matters": max(matter, default=None),
        "held_out_p50": {"median": _median(held["p50"]), "largest": max(held["p50"], default=None)},
        "held_out_p99": {"median": _median(held["p99"]), "largest": max(held["p99"], default=None)},
        "wall_s": [record["wall_s"] for record in records],
    }


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def main() -> None:
    """Do the twins that are missing, and print all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--twins", type=int, default=10)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="calibrate with --quick")
    options = parser.parse_args()
    records = []
    for seed in range(options.first, options.first + options.twins):
        folder = options.out / f"twin-{seed}"
        done = folder / "twin.json"
        record = (
            json.loads(done.read_text()) if done.exists() else twin(folder, seed, options.workers, quick=options.quick)
        )
        records.append(record)
        for name, key in record["keys"].items():
            matters = "" if key["matters"] else "  (does not matter)"
            numbers = f"{key['hidden']:12.5g} {key['fitted']:12.5g} {100 * key['error']:+7.2f} %"
            print(f"twin {seed}: {name:28} {numbers}{matters}")
        held = {which: f"{100 * max(errors):.1f} %" for which, errors in record["held_out"].items() if errors}
        print(f"twin {seed}: held out, largest error {held}; {record['runs']} runs, {record['wall_s']} s", flush=True)
        text = json.dumps({"summary": summary(records), "twins": records}, indent=2) + "\n"
        (options.out / "twins.json").write_text(text)
    print(json.dumps(summary(records), indent=2))


if __name__ == "__main__":
    main()
