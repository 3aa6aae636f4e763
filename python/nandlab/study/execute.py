"""Executes the runs of a study on workers, and keeps finished runs in the store."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from nandlab.simulate import BEFORE_THE_RUN
from nandlab.study.local import Event
from nandlab.study.plan import Task
from nandlab.study.problems import RunsFailed, shown
from nandlab.study.store import Store
from nandlab.study.work import Done, Failed, Lost, Progressed

#: The most attempts of a run whose worker is lost.
TRIES = 4


class Workers(Protocol):
    """Workers that run tasks: local processes or a cluster.

    `submit` takes a task out of a queue, which is not empty, begins it and returns it.
    """

    @property
    def slots(self) -> int: ...
    @property
    def idle(self) -> int: ...
    @property
    def free(self) -> int: ...
    def submit(self, queue: deque[Task]) -> Task: ...
    def poll(self, timeout_s: float) -> Iterable[Event]: ...
    def close(self) -> None: ...


@dataclass
class State:
    """The progress of a study."""

    total: int
    #: Runs that were finished before.
    kept: int
    #: Runs that can be under way at the same time.
    slots: int = 1
    done: int = 0
    lost: int = 0
    begin_s: float = field(default_factory=time.monotonic)
    #: Runs under way, by identity.
    running: dict[str, Running] = field(default_factory=dict)
    #: Wall times of the runs done in this call, in seconds.
    walls_s: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    workers: set[str] = field(default_factory=set)
    #: From the first task submitted to the last run done.
    span_s: float = 0.0

    @property
    def idle_share(self) -> float:
        """The share of the time of all workers, from the first task to the last result, in which they did no run."""
        worked = self.slots * self.span_s
        return max(1 - sum(self.walls_s) / worked, 0.0) if worked > 0 else 0.0

    def left_s(self) -> float | None:
        """An estimate of the remaining time in seconds; `None` without data for an estimate."""
        now = time.monotonic()
        left = self.total - self.kept - self.done
        under_way = [run for run in self.running.values() if run.has_begun]
        shares = sum(run.share for run in under_way)
        worked = sum(self.walls_s) + sum(now - run.begin_s for run in under_way)
        finished = self.done + shares
        if finished < 0.02 or worked <= 0:
            return None
        mean_s = worked / finished
        tail_s = max((run.left_s(now) or 0.0 for run in under_way), default=0.0)
        return max(mean_s * max(left - shares, 0.0) / max(self.slots, 1), tail_s)


@dataclass
class Running:
    """A run under way."""

    label: str
    begin_s: float
    phase: str = "precondition"
    share: float = 0.0
    #: Whether the worker has reported progress; before that, a task on a cluster may wait in a queue.
    has_begun: bool = False
    run_begin_s: float | None = None

    def left_s(self, now: float) -> float | None:
        if self.phase in BEFORE_THE_RUN or self.share <= 0.01 or self.run_begin_s is None:
            return None
        return (now - self.run_begin_s) * (1 - self.share) / self.share


def execute(
    tasks: Sequence[Task],
    store: Store,
    make_workers: Callable[[int], Workers],
    watch: Callable[[State], None],
) -> State:
    """Do the tasks that are not in the store, and store each finished run.

    Raises `RunsFailed` at the end when runs have failed, and `AssertionError` when a run has ended in a bug.
    """
    wanted = list(dict.fromkeys(tasks))
    there = [store.has(task.identity) for task in wanted]
    queue = _alone(task for task, is_there in zip(wanted, there, strict=True) if not is_there)
    state = State(total=len(wanted), kept=sum(there))
    if not queue:
        watch(state)
        return state
    tries: dict[str, int] = {}
    failures: list[tuple[str, Failed]] = []
    by_identity = {task.identity: task for task in queue}
    writing: list[Future[Any]] = []
    first_s = time.monotonic()
    workers = make_workers(len(queue))
    with ThreadPoolExecutor(1, thread_name_prefix="nandlab-store") as writer:
        try:
            while queue or state.running or writing:
                # The last tasks do not wait for a worker, because another one may be idle sooner.
                while queue and (workers.idle > 0 or (workers.free > 0 and len(queue) > workers.slots)):
                    task = workers.submit(queue)
                    tries[task.identity] = tries.get(task.identity, 0) + 1
                    state.running[task.identity] = Running(task.label, time.monotonic())
                state.slots = workers.slots
                for event in workers.poll(0.1 if state.running else 0.0):
                    running = state.running.get(event.identity)
                    if running is None:
                        continue  # an event of a run that is lost by now
                    if isinstance(event, Progressed):
                        if not running.has_begun:
                            running.has_begun, running.begin_s = True, time.monotonic()
                        if event.phase not in BEFORE_THE_RUN and running.run_begin_s is None:
                            running.run_begin_s = time.monotonic()
                        running.phase, running.share = event.phase, event.share
                        continue
                    del state.running[event.identity]
                    task = by_identity[event.identity]
                    if isinstance(event, Done):
                        state.done += 1
                        state.walls_s.append(event.wall_s)
                        state.span_s = time.monotonic() - first_s
                        state.cpu_s += event.cpu_s
                        state.workers.add(event.worker)
                        writing.append(writer.submit(store.put, task, event))
                    elif isinstance(event, Lost):
                        state.lost += 1
                        if tries[task.identity] < TRIES:
                            queue.appendleft(task)
                        else:
                            text = f"lost in each of {TRIES} attempts: {event.text}"
                            failures.append((task.label, Failed(task.identity, text, False)))
                    else:
                        failures.append((task.label, event))
                        if event.is_bug:
                            queue.clear()
                for future in [future for future in writing if future.done() or not state.running]:
                    future.result()
                    writing.remove(future)
                watch(state)
        finally:
            workers.close()
    if failures:
        _raise(failures, state, store)
    return state


def _alone(tasks: Iterable[Task]) -> deque[Task]:
    """The tasks; a drive that only one of them has is not kept for others."""
    listed = list(tasks)
    runs = Counter(task.drive for task in listed)
    return deque(replace(task, drive=None) if runs[task.drive] == 1 else task for task in listed)


def _raise(failures: list[tuple[str, Failed]], state: State, store: Store) -> None:
    bugs = [failed for _, failed in failures if failed.is_bug]
    if bugs:
        raise AssertionError(f"a run ended in a bug:\n{bugs[0].text}")
    by_text: dict[str, list[str]] = {}
    for label, failed in failures:
        by_text.setdefault(failed.text, []).append(label)
    lines = []
    for text, labels in list(by_text.items())[:8]:
        others = "" if len(labels) == 1 else f" (and {len(labels) - 1} more with the same error)"
        lines.append(f"run {shown(labels[0])}{others}: {text}")
    left_out = sum(map(len, list(by_text.values())[8:]))
    if left_out:
        lines.append(f"and {left_out} more")
    raise RunsFailed(
        "\n".join(lines)
        + f"\n{len(failures)} of {state.total} runs failed, and no report was written; finished runs are "
        f"kept in {store.runs}\n  remedy: correct these runs in the study, and start the study again"
    )
