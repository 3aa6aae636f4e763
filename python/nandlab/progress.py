"""The progress of a run on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from nandlab.ends import Stop
from nandlab.errors import visible
from nandlab.simulate import DOING
from nandlab.simulate import Progress as Report
from nandlab.units import count, duration

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

#: Wall time after which a progress bar appears.
_BAR_AFTER_S = 2.0
#: Wall time between two progress lines on a stderr that is no terminal.
_LINE_S = 10.0


class RunProgress:
    """Progress of one run: on a terminal a bar after two seconds, else a line every ten seconds."""

    def __init__(self, name: str, stop: Stop, *, bar: bool) -> None:
        self._stop = stop
        self._name = name
        self._bar: Progress | None = None
        self._want_bar = bar and sys.stderr.isatty()
        self._last_line_s = 0.0
        self._rate = _Rate()
        #: Whether requests have ended.
        self.has_begun = False
        self._note: str | None = None

    def __enter__(self) -> RunProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, report: Report) -> bool:
        self._rate.add(report)
        self.has_begun |= report.requests > 0
        if report.note is not None and report.note != self._note:
            self._note = report.note
            print(visible(f"note: {report.note}"), file=sys.stderr, flush=True)
        if self._want_bar:
            if self._bar is None and report.wall_s >= _BAR_AFTER_S:
                self._bar = _make_bar()
                self._task = self._bar.add_task(self._name, total=1.0)
                self._bar.start()
            if self._bar is not None:
                waiting = report.phase in DOING and (report.phase != "precondition" or report.share <= 0)
                self._bar.update(
                    self._task,
                    total=None if waiting else 1.0,
                    completed=report.share,
                    facts=self._facts(report),
                )
        elif report.wall_s - self._last_line_s >= _LINE_S:
            self._last_line_s = report.wall_s
            done = f"{report.share:.0%}, " if report.phase in ("precondition", "run", "done") else ""
            print(visible(f"{self._name}: {done}{self._facts(report)}"), file=sys.stderr, flush=True)
        return not self._stop

    def _facts(self, report: Report) -> str:
        if report.phase in DOING:
            return f"{DOING[report.phase]}, {duration(report.wall_s)}"
        facts = [f"{count(report.requests)} requests", f"{duration(report.sim_time_s)} simulated"]
        if self._rate.requests_per_s > 0:
            facts.append(f"{count(self._rate.requests_per_s)} requests/s")
        if report.share >= 1:
            facts.append("all submitted")
        elif self._rate.share_per_s > 0:
            facts.append(f"{duration((1 - report.share) / self._rate.share_per_s)} left")
        return ", ".join(facts)


class _Rate:
    """Rates over the last ten seconds."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int, float]] = []
        self.requests_per_s = 0.0
        self.share_per_s = 0.0

    def add(self, report: Report) -> None:
        if report.phase in DOING:
            return
        self._seen.append((time.perf_counter(), report.requests, report.share))
        while self._seen[-1][0] - self._seen[0][0] > 10:
            del self._seen[0]
        (begin_s, requests, share), (end_s, requests_end, share_end) = self._seen[0], self._seen[-1]
        if end_s > begin_s:
            self.requests_per_s = (requests_end - requests) / (end_s - begin_s)
            self.share_per_s = (share_end - share) / (end_s - begin_s)


def rich_console(*, stderr: bool = True) -> Console:
    """A console of rich, for what moves on the screen, that prints every text through `visible`."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class VisibleConsole(Console):
        """Prints every text through `visible`; the styles of the console itself are kept."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(visible(segment.text), segment.style)

    return VisibleConsole(stderr=stderr, highlight=False)


def _make_bar() -> Progress:
    """A progress bar on stderr; short runs need no import of it."""
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.table import Column
    from rich.text import Text

    class Facts(ProgressColumn):
        def render(self, task: Task) -> Text:
            percent = f"{task.percentage:3.0f} %  " if task.total else ""
            facts = percent + str(task.fields.get("facts", ""))
            return Text(facts, style="progress.remaining", no_wrap=True, overflow="ellipsis")

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        Facts(table_column=Column(no_wrap=True, overflow="ellipsis")),
        console=rich_console(),
        transient=True,
    )


class CountProgress:
    """Progress of counted work: on a terminal a bar after two seconds, else a line every ten seconds."""

    def __init__(self, name: str, stop: Stop, *, bar: bool) -> None:
        self._name, self._stop = name, stop
        self._bar: Progress | None = None
        self._want_bar = bar and sys.stderr.isatty()
        self._begin_s = self._last_line_s = time.monotonic()

    def __enter__(self) -> CountProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, number: int, facts: str) -> None:
        if self._stop:
            raise KeyboardInterrupt
        now = time.monotonic()
        if self._want_bar:
            if self._bar is None and now - self._begin_s >= _BAR_AFTER_S:
                self._bar = _make_bar()
                self._task = self._bar.add_task(self._name, total=1.0)
                self._bar.start()
            if self._bar is not None:
                self._bar.update(self._task, completed=done / max(number, 1), facts=facts)
        elif now - self._last_line_s >= _LINE_S:
            self._last_line_s = now
            print(visible(f"{self._name}: {facts}"), file=sys.stderr, flush=True)
