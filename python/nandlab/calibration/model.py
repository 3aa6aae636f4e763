"""The values that a spec predicts for the loads of a measurement: runs on the workers of a study, kept in its store."""

from __future__ import annotations

import json
import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nandlab._core import Spec, SpecError
from nandlab.calibration.keys import Key
from nandlab.calibration.loads import Load
from nandlab.calibration.measured import Value
from nandlab.comparison.inputs import input_files
from nandlab.errors import OutputError, shown
from nandlab.spec import set_arguments
from nandlab.study.execute import State, Workers, execute
from nandlab.study.local import Event
from nandlab.study.plan import InputFile, Task, input_file, make_task
from nandlab.study.store import Store
from nandlab.study.work import Done

Floats = NDArray[np.float64]
#: Values of the keys, one each.
Candidate = tuple[float, ...]


class SummaryStore(Store):
    """A store that keeps the summary and the spec of each run, since a calibration does many."""

    _KEPT = ("summary.json", "spec.toml")

    def put(self, task: Task, done: Done) -> None:
        super().put(task, replace(done, files={name: done.files[name] for name in self._KEPT if name in done.files}))


class KeptWorkers:
    """Workers that several calls of `execute` use one after the other; `end` closes them."""

    def __init__(self, make: Callable[[int], Workers]) -> None:
        self._make = make
        self._made: Workers | None = None

    def __call__(self, wanted: int) -> Workers:
        self._made = self._made or self._make(wanted)
        return self

    @property
    def _workers(self) -> Workers:
        assert self._made is not None
        return self._made

    @property
    def slots(self) -> int:
        return self._workers.slots

    @property
    def idle(self) -> int:
        return self._workers.idle

    @property
    def free(self) -> int:
        return self._workers.free

    def submit(self, queue: deque[Task]) -> Task:
        return self._workers.submit(queue)

    def poll(self, timeout_s: float) -> Iterable[Event]:
        return self._workers.poll(timeout_s)

    def close(self) -> None:
        """Keep the workers for the next call."""

    def end(self) -> None:
        """Close the workers."""
        if self._made is not None:
            self._made.close()
            self._made = None


@dataclass
class Counted:
    """The runs of a calibration."""

    done: int = 0
    #: Runs that were finished before, in this call or an earlier one.
    kept: int = 0
    begin_s: float = field(default_factory=time.monotonic)


@dataclass
class Model:
    """What a spec predicts, as a function of the values of its keys."""

    spec: Spec
    keys: Sequence[Key]
    loads: Sequence[Load]
    #: Seeds of each load: that of the spec and the following ones.
    seeds: int
    store: Store
    workers: KeptWorkers
    watch: Callable[[State], None]
    counted: Counted
    #: The logarithms of the values at each candidate: one row a seed, one column a value; `None` for a refused spec.
    known: dict[tuple[Candidate, int], Floats | None] = field(default_factory=dict)
    _files: dict[str, InputFile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._text, self._name, self._directory, self._sets = self.spec.source
        self._seed = int(json.loads(self.spec.canonical_json())["seed"])
        for key, path in input_files(self.spec).items():
            try:
                self._files[key] = input_file(str(path))
            except OSError as error:
                raise OutputError(
                    f"{key}: cannot read {shown(path)}: {error.strerror}\n  remedy: check the path"
                ) from None

    @property
    def values(self) -> list[Value]:
        """The measured values of all loads, one after the other."""
        return [value for load in self.loads for value in load.row.values]

    def sets(self, candidate: Candidate) -> list[str]:
        """The overrides of a candidate."""
        return set_arguments({key.name: key.toml(value) for key, value in zip(self.keys, candidate, strict=True)})

    def resolved(self, candidate: Candidate) -> Spec:
        """The spec with the values of a candidate; raises `SpecError`."""
        return self.spec.with_(self.sets(candidate))

    def logs(self, candidates: Sequence[Candidate], seeds: int | None = None) -> list[Floats | None]:
        """The logarithms of the predicted values of each candidate, one row a seed; `None` for a refused spec.

        A value that a run does not have is NaN. Runs that are not finished yet are done, all at once.
        """
        seeds = seeds or self.seeds
        missing = [one for one in dict.fromkeys(candidates) if (one, seeds) not in self.known]
        tasks = {one: self._tasks(one, seeds) for one in missing}
        wanted = [task for found in tasks.values() for task in found or ()]
        if wanted:
            self._execute(wanted)
        for one, found in tasks.items():
            self.known[one, seeds] = None if found is None else self._read(found, seeds)
        return [self.known[one, seeds] for one in candidates]

    def _tasks(self, candidate: Candidate, seeds: int) -> list[Task] | None:
        sets, found = self.sets(candidate), []
        for seed in range(self._seed, self._seed + seeds):
            for load in self.loads:
                label = f"row {load.row.number}, {' '.join(sets) or 'the spec as it is'}, seed {seed}"
                own = [*self._sets, *load.sets, *sets, f"seed={seed}"]
                try:
                    found.append(make_task(self._text, self._name, self._directory, own, self._files, label)[1])
                except SpecError:
                    return None
        return found

    def _execute(self, tasks: Sequence[Task]) -> None:
        counted = self.counted

        def watch(state: State) -> None:
            before = counted.done + counted.kept
            self.watch(replace(state, total=before + state.total, kept=before + state.kept, begin_s=counted.begin_s))

        state = execute(tasks, self.store, self.workers, watch)
        counted.done += state.done
        counted.kept += state.kept

    def _read(self, tasks: Sequence[Task], seeds: int) -> Floats:
        found: list[float] = []
        for at, task in enumerate(tasks):
            summary = self.store.read_json(task.identity, "summary.json")
            values = self.loads[at % len(self.loads)].row.values
            found += [
                math.log(value) if value > 0 else math.nan for value in (predicted(summary, one) for one in values)
            ]
        return np.array(found).reshape(seeds, -1)


def predicted(summary: Mapping[str, Any], value: Value) -> float:
    """The value of a summary that corresponds to a measured one; 0 if the run has none."""
    if value.client.endswith("*"):
        names = [name for name in summary["clients"] if re.fullmatch(re.escape(value.client[:-1]) + ".*", name)]
        parts = [predicted(summary, replace(value, client=name)) for name in names]
        # Only rates of several clients add up.
        return sum(parts) if "iops" in value.metric or "mb_per_s" in value.metric or len(parts) == 1 else 0.0
    of = summary["clients"].get(value.client, {}) if value.client else summary
    if value.metric == "waf":
        return float(summary["waf"] or 0.0)
    if value.metric in ("iops", "mb_per_s"):
        return float(of.get(value.metric) or 0.0)
    op, _, statistic = value.metric.removesuffix("_us").partition("_")
    if statistic == "iops":
        return float(of["host"][op]["count"]) / max(float(summary["duration_s"]), 1e-9)
    latency = (of.get("latency_us") or {}).get(op) or {}
    return float(latency.get(statistic) or 0.0)
