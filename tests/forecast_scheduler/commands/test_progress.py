"""Progress on a terminal is bars, in a log a line per slow stage."""

from __future__ import annotations

import io

from rich.console import Console

from forecast_scheduler.commands.progress import show_progress
from testing.settable_clock import SettableClock


def test_a_log_gets_lines_for_slow_stages_and_a_terminal_bars() -> None:
    file, clock = io.StringIO(), SettableClock(0.0)
    with show_progress(Console(file=file, width=100), clock=clock) as progress:
        progress("quick", 0, 10)
        progress("slow [5]", 0, 3)
        clock.now = 1.0
        progress("quick", 10, 10)
        progress("slow [5]", 2, 3)
        clock.now = 3.0
        progress("slow [5]", 3, 3)
    assert file.getvalue() == "slow [5]: 3 done in 3 s\n"
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=100, color_system=None)
    with show_progress(console) as progress:
        progress("fit", 0, 2)
        progress("fit", 1, 2)
        progress("fit", 2, 2)
        progress("fit", 0, 2)
        progress("fit", 2, 2)
    assert "fit" in file.getvalue()


def test_a_terminal_says_how_long_a_stage_will_take() -> None:
    file, clock = io.StringIO(), SettableClock(0.0)
    console = Console(file=file, force_terminal=True, width=120, color_system=None)
    with show_progress(console, clock=clock) as progress:
        progress("read", 0, 10)
        clock.now = 20.0
        progress("read", 2, 10)
    assert "about 80 s left" in file.getvalue()
