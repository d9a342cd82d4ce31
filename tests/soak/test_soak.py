"""Simulated days with everything that happens in one, on real servers: nothing is lost, and nothing grows."""

from __future__ import annotations

from pathlib import Path

import pytest

from testing.soak.day import play_day
from testing.soak.figures import growth, thirds
from testing.soak.ledger import Ledger
from testing.soak.world import World

N_DAYS, DAY_SECONDS = 5, 80.0
_WARM_UP_DAYS = 2
_MOST_GROWTH = 0.05


@pytest.mark.long
def test_days_pass_and_all_holds(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        ledger = Ledger(world)
        for day in range(N_DAYS):
            world.day = day
            play_day(world, DAY_SECONDS)
            ledger.close(day)
        assert world.watchman.looks > N_DAYS * 10
        days = range(_WARM_UP_DAYS, N_DAYS)
        for name in world.ours:
            memory = ledger.memory(name, days)
            # How long it takes is shown, not judged: that depends on what else the machine does. benchmarks.soak_week
            # has more days of it.
            print(f"{name}: {growth(memory)} bytes, {[f'{1000 * one:.2f} ms' for one in ledger.latency(name, days)]}")
            first, last = thirds(memory)
            assert last <= first * (1 + _MOST_GROWTH), f"{name} has grown from {first:.0f} to {last:.0f} bytes"
