"""Progress bars for people who wait; the pure code reports through a plain callback and knows nothing of them.

Bars go to stderr, so that stdout stays clean for pipes, and only to a terminal. In a log file a line per stage is worth
more than a thousand redrawn bars, so that is what comes out there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

import base.progress
from forecast_scheduler.reports.table_format import short_duration

_FIRST_ESTIMATE: Final = 0.1
"""Share of a stage before which its pace says nothing."""


@contextmanager
def show_progress(console: Console, *, clock: Callable[[], float] = time.monotonic) -> Iterator[base.progress.Progress]:
    """A progress callback: bars while the block runs on a terminal, else one line when a stage ends."""
    if not console.is_terminal:
        yield _Lines(console, clock)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), _TimeLeft())
    with Progress(*columns, console=console, transient=True, get_time=clock) as bars:
        yield _Bars(bars)


class _TimeLeft(ProgressColumn):
    """How long a stage will take, if the rest goes as fast as what is done."""

    def render(self, task: Task) -> Text:
        if not task.total or task.completed < _FIRST_ESTIMATE * task.total or not task.elapsed:
            return Text()
        return Text(f"about {short_duration(task.elapsed * (task.total / task.completed - 1))} left")


class _Bars:
    """One bar per stage."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=total)
        task = self._tasks[stage]
        self._bars.update(task, completed=done, total=total)
        if done >= total:  # a stage may come again, for instance once per backtest origin
            self._bars.stop_task(task)
            self._tasks.pop(stage)
            self._bars.update(task, visible=False)


class _Lines:
    """One line per finished stage that took two seconds or more; shorter ones would only be noise."""

    SECONDS = 2.0

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console, self._clock = console, clock
        self._started: dict[str, float] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = self._clock()
        started = self._started.setdefault(stage, now)
        if done >= total:
            del self._started[stage]
            if now - started >= self.SECONDS:
                self._console.print(f"{stage}: {total} done in {now - started:.0f} s", highlight=False, markup=False)
