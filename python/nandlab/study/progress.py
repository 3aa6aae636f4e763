"""Progress of a study on a terminal: the whole study, the slowest run, and the remaining time."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from nandlab.ends import Stop
from nandlab.errors import visible
from nandlab.simulate import DOING
from nandlab.study.execute import Running, State
from nandlab.units import duration

if TYPE_CHECKING:
    from rich.progress import Progress

#: Wall time after which the progress bars appear.
_BAR_AFTER_S = 1.0
#: Wall time between two progress lines on a stderr that is no terminal.
_LINE_S = 10.0


class StudyProgress:
    """On a terminal two bars after a second, else a line every ten seconds, the first one after `line_after_s`.

    A signal that `stop` has recorded raises `KeyboardInterrupt` at the next report: Python drops the exception of a
    signal that arrives in the callback of a weak reference or in a finalizer.
    """

    def __init__(self, name: str, stop: Stop | None = None, *, bar: bool = True, line_after_s: float = _LINE_S) -> None:
        self.name = name
        self._stop = stop
        self._line_after_s = line_after_s
        self._is_terminal = bar and sys.stderr.isatty()
        self._bars: Progress | None = None
        self._last_s = 0.0

    def __enter__(self) -> StudyProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, state: State) -> None:
        if self._stop:
            raise KeyboardInterrupt
        now = time.monotonic()
        wall_s = now - state.begin_s
        if self._is_terminal:
            if wall_s < _BAR_AFTER_S or now - self._last_s < 0.1:
                return
            self._last_s = now
            if self._bars is None:
                self._bars = _make_bars()
                self._whole = self._bars.add_task(self.name, total=1.0, facts="")
                self._slow = self._bars.add_task("slowest run", total=1.0, facts="")
                self._bars.start()
            self._bars.update(self._whole, completed=_share(state), facts=self._facts(state))
            slowest = _slowest(state, now)
            self._bars.update(
                self._slow,
                visible=slowest is not None,
                completed=slowest.share if slowest is not None else 0.0,
                facts=_run_facts(slowest, now) if slowest is not None else "",
            )
        elif now - self._last_s >= _LINE_S and wall_s >= self._line_after_s:
            self._last_s = now
            slowest = _slowest(state, now)
            more = f"; slowest run {_run_facts(slowest, now)}" if slowest is not None else ""
            print(visible(f"{self.name}: {self._facts(state)}{more}"), file=sys.stderr, flush=True)

    def _facts(self, state: State) -> str:
        facts = [f"{state.kept + state.done} of {state.total} runs"]
        if state.slots == 0:
            facts.append("no worker at present")
        if state.lost:
            facts.append(f"{state.lost} lost and repeated")
        left_s = state.left_s()
        if left_s is not None and state.running:
            facts.append(f"{duration(left_s)} left")
        return ", ".join(facts)


def _make_bars() -> Progress:
    """Progress bars on stderr; a study without them does not import rich."""
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    from nandlab.progress import rich_console

    return Progress(
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[facts]}", table_column=Column(no_wrap=True, overflow="ellipsis")),
        console=rich_console(),
        transient=True,
    )


def _share(state: State) -> float:
    return (state.kept + state.done + sum(run.share for run in state.running.values())) / max(state.total, 1)


def _slowest(state: State, now: float) -> Running | None:
    """The run that has been under way for the longest time."""
    return max(
        (run for run in state.running.values() if run.has_begun), key=lambda run: now - run.begin_s, default=None
    )


def _run_facts(run: Running, now: float) -> str:
    what = DOING.get(run.phase) or f"{run.share:.0%}"
    left_s = run.left_s(now)
    left = f", {duration(left_s)} left" if left_s is not None else ""
    return f"{run.label}: {what}, {duration(now - run.begin_s)} so far{left}"
