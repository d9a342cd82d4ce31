"""Nights with the rebalancer beside days with the real descheduler: same cluster, same traces, real servers.

    python -m benchmarks.rebalanced_nights [--days 3] [--moves 12] [--seed 0]

A hundred pods on ten nodes (testing/rebalancing/two_peaks.py), on a real etcd, kube-apiserver, kube-scheduler and
kube-controller-manager, with a real Prometheus. Kubelets are simulated. Two rules, one after the other:

- rebalancer: `forecast-scheduler rebalance --mode on` with our extender, and a training each night.
- descheduler: v0.36, LowNodeUtilization by measured usage (metricsUtilization with the source Prometheus), nodes above
  80 % lose pods and nodes below 50 % take some; kube-scheduler is untouched. It looks once an hour.

Shown for each day: node half hours over 80 % of CPU without any move and as they were lived, pods evicted, those of
them from 17:00 to 23:00, pods that returned to a node that a pod of their service had been moved away from, evictions
that a disruption budget refused, and services that ever had fewer ready pods than their budget keeps. Usage is played
back: it is what the true curves make of the placement that the API server has. Ends with status 1 if the rebalancer
moves a pod in the peak window or back, violates a budget, or leaves more hot half hours than the descheduler.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.harness import command_line, finish, machine_load, outcome
from benchmarks.lived_nights import Day, days_with_descheduler, nights_with_rebalancer
from forecast.calendar import Calendar
from testing.rebalancing.two_peaks import TwoPeaks, zone_in_the_small_hours

_COLUMNS: Final = ("untouched_hot", "hot", "evicted", "peak_window", "returns", "refused", "violations")


def total(days: Sequence[Day], figure: str) -> int:
    """Return the sum of a figure over days."""
    return sum(int(getattr(one, figure)) for one in days)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what both rules made of the same days; ends with status 1 if an aim is missed."""
    parser = command_line(__doc__)
    parser.add_argument("--days", type=int, default=3)
    parser.add_argument("--moves", type=int, default=12, help="of the rebalancer, at most, each night")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    world = TwoPeaks(Calendar(str(zone_in_the_small_hours(datetime.now(UTC)))), seed=asked.seed)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        found = {
            "rebalancer": nights_with_rebalancer(world, asked.days, place / "ours", moves_a_night=asked.moves),
            "descheduler": days_with_descheduler(world, asked.days, place / "theirs"),
        }
    print(f"{'':14}{'day':>5}" + "".join(f"{name.replace('_', ' '):>15}" for name in _COLUMNS))
    for rule, days in found.items():
        for number, day in enumerate(days, start=1):
            print(f"{rule:14}{number:>5}" + "".join(f"{getattr(day, name):>15}" for name in _COLUMNS))
        print(f"{rule:14}{'all':>5}" + "".join(f"{total(days, name):>15}" for name in _COLUMNS))
    ours, theirs = found["rebalancer"], found["descheduler"]
    holds = not any(total(ours, name) for name in ("peak_window", "returns", "violations"))
    holds &= total(ours, "hot") <= total(theirs, "hot")
    print(f"{outcome(holds)}; {machine_load()}")
    finish(holds)


if __name__ == "__main__":
    main()
