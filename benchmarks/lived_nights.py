"""Days of the cluster of two_peaks.py as they are lived with the rebalancer, and with the real descheduler.

Usage is what the true curves make of the nodes on which the API server has the pods. A day of the rebalancer takes the
time of its moves: its clock, and that of the nightly training, are set to each night. The descheduler has the clock of
the machine; Prometheus shows it the usage of one simulated hour after the other, and it looks once in each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np

from benchmarks.descheduler.descheduler import Descheduler
from forecast.calendar import SLOTS_PER_DAY
from forecast.resources import CPU
from testing.clusters.own_nodes import LONG
from testing.processes.command import command
from testing.rebalancing.live_two_peaks import LiveTwoPeaks, by_extender
from testing.rebalancing.two_peaks import (
    CORES,
    N_NODES,
    Placements,
    Recorder,
    Seat,
    TwoPeaks,
    days_before,
    node_name,
    seats_at_first,
)
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.control_plane.pool import control_plane
from testing.servers.exporter import Exporter
from testing.servers.own_clock import DAY, OwnClock
from testing.servers.prometheus import PrometheusServer
from testing.waiting import eventually

PEAK_HOURS: Final = range(17, 23)
"""Local hours in which nothing should move."""

_N_HISTORY: Final = 14
_MOVED_BY: Final = 8
"""Half hour of the day by which the moves of a night have been made."""

_SHARE, _HALF_HOUR = "test_node_cpu_share", "test_half_hour"


@dataclass(frozen=True, slots=True)
class Day:
    """
    hot, untouched_hot : half hours of nodes that were hot, and that would have been with no move since the first day
    evicted    : pods that went; peak_window: those of them that went from 17:00 to 23:00
    returns    : pods that came to a node which a pod of their service had been moved away from
    refused    : evictions that a disruption budget did not allow
    violations : services of which fewer pods than their budget keeps were ready at some time
    """

    hot: int
    untouched_hot: int
    evicted: int
    peak_window: int
    returns: int
    refused: int
    violations: int


@dataclass(slots=True)
class _Returns:
    """Counts pods that come back, from the nodes of each service before and after moves."""

    left: set[tuple[str, str]] = field(default_factory=set)

    def count(self, before: Collection[Seat], after: Collection[Seat]) -> int:
        old, new = (Counter((seat.service, seat.node) for seat in seats) for seats in (before, after))
        n_returns = sum(n for place, n in (new - old).items() if place in self.left)
        self.left |= set(old - new)
        return n_returns


def nights_with_rebalancer(world: TwoPeaks, n_days: int, directory: Path, *, moves_a_night: int) -> list[Day]:
    """Live some days from the night that is now, with the rebalancer, our extender and a training each night."""
    models = directory / "models"
    today = world.calendar.day_and_slot(datetime.now(UTC))[0]
    recorder, clock = Recorder(world, directory / "recorded"), OwnClock(directory / "clock")
    for day in days_before(today, _N_HISTORY):
        recorder.add(day, [seats_at_first(world)] * SLOTS_PER_DAY)
    recorder.serve(today - timedelta(days=1), [seats_at_first(world)] * SLOTS_PER_DAY)
    _train(recorder, models, clock)
    budget = {"share": moves_a_night / (len(world.services) * world.replicas)}
    settings: dict[str, Any] = {"budget": budget, "cost": {"least_age": 0, "young": 0}}
    found, returns = [], _Returns()
    with ExitStack() as stack:
        prometheus = stack.enter_context(PrometheusServer(recorder.blocks))
        plane = stack.enter_context(control_plane())
        live = stack.enter_context(LiveTwoPeaks(plane, world))
        stack.enter_context(by_extender(live, directory, models))
        at_first = live.seats()
        for number in range(n_days):
            if number:
                clock.set_to(number * DAY)
            day, before = today + timedelta(days=number), live.seats()
            live.kubelets.count_from_now()
            arguments = ("--models", models, "--mode", "on", "--prometheus", prometheus.url)
            with live.process(
                "rebalance",
                directory / f"rebalance-{number}",
                *arguments,
                settings={"rebalance": settings},
                environment=clock.environment,
            ) as process:
                wanted = number + 1
                if not eventually(lambda n=wanted: _is_over(live, n), 2 * LONG):  # type: ignore[misc]
                    raise AssertionError(f"{live.plans()} {process.log[-3000:]}")
                assert eventually(live.is_settled)
                refused = process.metric("forecast_rebalance_evictions_total") - len(live.kubelets.gone)
            after = live.seats()
            placements = _two(before, after, _MOVED_BY)
            evictions = [_local(world, one["evictedAt"]) for one in _records(live.plans()[-1]) if "evictedAt" in one]
            found.append(
                Day(
                    hot=world.hot_half_hours(day, placements),
                    untouched_hot=world.hot_half_hours(day, [at_first] * SLOTS_PER_DAY),
                    evicted=len(live.kubelets.gone),
                    peak_window=sum(at.hour in PEAK_HOURS for at in evictions),
                    returns=returns.count(before, after),
                    refused=round(refused),
                    violations=len(live.violations()),
                )
            )
            if number + 1 < n_days:
                recorder.add(day, placements)
                recorder.serve(day, placements)
                prometheus.stop()
                prometheus.start()
                clock.set_to((number + 1) * DAY)
                _train(recorder, models, clock)
    return found


def days_with_descheduler(
    world: TwoPeaks, n_days: int, directory: Path, *, hours: Iterable[int] = range(24)
) -> list[Day]:
    """Live the same days with LowNodeUtilization by measured usage, and an untouched kube-scheduler.

    hours : local ones in which it looks; a day of the others passes as it is
    """
    today = world.calendar.day_and_slot(datetime.now(UTC))[0]
    found, returns, looks = [], _Returns(), set(hours)
    with ExitStack() as stack:
        plane = stack.enter_context(control_plane())
        live = stack.enter_context(LiveTwoPeaks(plane, world))
        shown = _Shown(world, today, live.seats())
        exporter = stack.enter_context(Exporter(shown.page))
        scrapes = [
            {
                "job_name": "usage",
                "honor_labels": True,
                "scrape_interval": "1s",
                "static_configs": [{"targets": [exporter.address]}],
            }
        ]
        prometheus = stack.enter_context(PrometheusServer(directory / "prometheus", scrapes=scrapes))
        stack.enter_context(KubeScheduler(plane))
        descheduler = Descheduler(plane, prometheus.url, _SHARE, directory / "descheduler")
        at_first = live.seats()
        for number in range(n_days):
            day = today + timedelta(days=number)
            placements: list[Collection[Seat]] = []
            evicted = peak_window = refused = n_returns = 0
            live.kubelets.count_from_now()
            for hour in range(24):
                before = after = live.seats()
                if hour in looks:
                    shown.set_to(day, 2 * hour, before)
                    assert eventually(lambda: _shows(prometheus.url, shown.turn))
                    looked = descheduler.round()
                    assert eventually(live.is_settled), looked.log[-3000:]
                    after = live.seats()
                    evicted += len(looked.evicted)
                    refused += looked.refused
                    peak_window += len(looked.evicted) if hour in PEAK_HOURS else 0
                    n_returns += returns.count(before, after)
                placements += [before, after]
            hot = world.hot_half_hours(day, placements)
            untouched = world.hot_half_hours(day, [at_first] * SLOTS_PER_DAY)
            found.append(Day(hot, untouched, evicted, peak_window, n_returns, refused, len(live.violations())))
    return found


class _Shown:
    """What the nodes use in one half hour, as a page of metrics. turn: of the half hour, in the order of time."""

    def __init__(self, world: TwoPeaks, day: date, seats: Collection[Seat]) -> None:
        self._world, self._first = world, day
        self.set_to(day, 0, seats)

    def set_to(self, day: date, slot: int, seats: Collection[Seat]) -> None:
        usage = self._world.node_usage(day, [seats] * SLOTS_PER_DAY)[:, CPU, slot]
        self.turn = (day - self._first).days * SLOTS_PER_DAY + slot
        shares = np.minimum(usage / CORES, 1.0)  # no node uses more than it has
        lines = [f'{_SHARE}{{instance="{node_name(number)}"}} {float(shares[number])!r}' for number in range(N_NODES)]
        self._page = "\n".join([*lines, f"{_HALF_HOUR} {self.turn}", ""])

    def page(self) -> str:
        """Return the text that Prometheus scrapes."""
        return self._page


def _shows(url: str, turn: int) -> bool:
    result = httpx.get(f"{url}/api/v1/query", params={"query": _HALF_HOUR}).json()["data"]["result"]
    return [float(one["value"][1]) for one in result] == [float(turn)]


def _train(recorder: Recorder, models: Path, clock: OwnClock) -> None:
    place = ("--history", recorder.history, "--models", models, "--force")
    trained = command("train", *place, seconds=600, environment=clock.environment)
    assert trained.returncode == 0, trained.stderr


def _two(before: Collection[Seat], after: Collection[Seat], slot: int) -> Placements:
    return [before] * slot + [after] * (SLOTS_PER_DAY - slot)


def _is_over(live: LiveTwoPeaks, n_plans: int) -> bool:
    phases = [one.get("status", {}).get("phase") for one in live.plans()]
    return len(phases) == n_plans and phases[-1] in ("Completed", "Stopped")


def _records(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return list(plan.get("status", {}).get("moves", []))


def _local(world: TwoPeaks, text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(world.calendar.zone)
