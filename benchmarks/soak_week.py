"""A week of simulated days: does the memory of our processes grow, do they get slower?

    python -m benchmarks.soak_week [--days 9] [--seconds 80] [--warm-up 2]

Plays the days of tests/soak (testing/soak/day.py has what happens in one) and checks at the end of each that
nothing was lost. Shown are, by day and process, the memory in use (median over the day) and the time for a pod (median;
see testing/soak/ledger.py), then what a week adds to either, by least squares over the days after the warm-up, with its
standard error. Ends with status 1 where memory grows by more than 5 % a week.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.harness import command_line, finish, outcome
from testing.soak.day import play_day
from testing.soak.figures import growth
from testing.soak.ledger import Ledger
from testing.soak.world import World

_MOST_GROWTH: Final = 0.05


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = command_line(__doc__)
    parser.add_argument("--days", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=80.0, help="of a day; it takes longer where events do")
    parser.add_argument("--warm-up", type=int, default=2, help="days that do not count")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch, World(Path(scratch)) as world:
        ledger, n_bound = Ledger(world), 0
        print(f"  {'day':>3} {'took':>7} {'pods bound':>11}   memory in MiB, ms for a pod")
        for day in range(asked.days):
            began = time.monotonic()
            world.day = day
            play_day(world, asked.seconds)
            ledger.close(day)
            bound = len(world.history.bound)
            line = f"  {day:3} {time.monotonic() - began:5.0f} s {bound - n_bound:11}   "
            n_bound = bound
            print(line + "   ".join(f"{name} {_figures(ledger, name, day)}" for name in world.ours), flush=True)
        holds = [_show(ledger, name, range(asked.warm_up, asked.days)) for name in world.ours]
        print(f"  the cluster was looked at {world.watchman.looks} times; nothing was ever wrong")
    finish(all(holds))


def _figures(ledger: Ledger, name: str, day: int) -> str:
    (memory,) = ledger.memory(name, [day])
    took = ledger.latency(name, [day])
    return f"{memory / 2**20:6.1f}" + (f" {1000 * took[0]:5.2f}" if took else "")


def _show(ledger: Ledger, name: str, days: range) -> bool:
    """Print what a week adds; whether the limit holds."""
    memory = growth(ledger.memory(name, days))
    line = f"  {name:12} memory {_per_week(memory.a_week, memory.error)}"
    if took := ledger.latency(name, days):
        latency = growth(took)
        line += f", time for a pod {_per_week(latency.a_week, latency.error)}"
    holds = memory.a_week <= _MOST_GROWTH
    print(f"{line}; at most {_MOST_GROWTH:.0%} of memory is wanted: {outcome(holds)}")
    return holds


def _per_week(share: float, error: float) -> str:
    return f"{share:+.1%} a week (± {error:.1%})"


if __name__ == "__main__":
    main()
