"""A forecast that has become wrong: after two nights the rebalancer stands down, and reports it. Real processes.

The clock of the rebalancer is one night further in each act, while the kube-scheduler and the extender live on.
Prometheus is given what was served on the days between, by the true curves on the nodes where the pods then were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from testing.clusters.own_nodes import LONG, reported
from testing.processes.scorer_process import ScorerProcess, eventually
from testing.rebalancing.live_two_peaks import LiveTwoPeaks, by_extender
from testing.rebalancing.two_peaks import Recorder, Seat, TwoPeaks
from testing.servers.cluster_objects import Manifest
from testing.servers.control_plane.pool import control_plane
from testing.servers.own_clock import DAY, HOUR, OwnClock
from testing.servers.prometheus import PrometheusServer

pytestmark = pytest.mark.long

REBALANCE = {"budget": {"share": 0.06}, "cost": {"least_age": 0, "young": 0}}


def _served(recorder: Recorder, day: date, before: list[Seat], after: list[Seat], begin: int, end: int) -> None:
    """Half hours of a day; pods had moved by four o'clock."""
    recorder.serve(day, [before if slot < 8 else after for slot in range(48)], range(begin, end))


def test_it_stands_down_within_two_nights(world: TwoPeaks, models: Path, tmp_path: Path) -> None:
    today = world.calendar.day_and_slot(datetime.now(UTC))[0]
    days = [today + timedelta(days=ahead) for ahead in range(3)]
    recorder = Recorder(replace(world, shift_hours=12.0, shifted_from=today), tmp_path / "truth")
    clock = OwnClock(tmp_path / "clock")
    prometheus = PrometheusServer(recorder.blocks)

    def rebalancer(act: int) -> ScorerProcess:
        arguments = ("--models", models, "--mode", "on", "--prometheus", prometheus.url)
        settings: Mapping[str, Any] = {"rebalance": REBALANCE}
        place = tmp_path / f"rebalance-{act}"
        return live.process("rebalance", place, *arguments, settings=settings, environment=clock.environment)

    with (
        control_plane() as plane,
        LiveTwoPeaks(plane, world) as live,
        by_extender(live, tmp_path, models),
        prometheus,
    ):
        at_first = live.seats()
        first = _night(live, rebalancer(1), 1)
        seats = live.seats()
        _served(recorder, days[0], at_first, seats, 0, 48)
        _served(recorder, days[1], seats, seats, 0, 10)
        prometheus.stop()
        prometheus.start()

        clock.set_to(DAY + 2 * HOUR)  # past the hour in which the first night can be graded
        second = _night(live, rebalancer(2), 2)
        assert _grade(live, first) == "bad", live.plans()
        after = live.seats()
        _served(recorder, days[1], seats, after, 10, 48)
        _served(recorder, days[2], after, after, 0, 30)
        prometheus.stop()
        prometheus.start()

        clock.set_to(2 * DAY + 12 * HOUR)  # in the valley of the afternoon
        n_gone = len(live.kubelets.gone)
        with rebalancer(3) as process:
            assert eventually(lambda: len(live.plans()) == 3, LONG), process.log
            assert _grade(live, second) == "bad", live.plans()
            assert process.metric("forecast_rebalance_stood_down") == 1
            assert reported(process, "forecast_rebalance_mode", mode="shadow") == 1
            assert process.metric("forecast_rebalance_bad_nights") == 2
            found = process.get("/v1/rebalance")
            assert found["mode"] == "shadow" and found["because"].startswith("stood down after 2 bad nights")
            assert "the rebalancer only plans now" in process.log
            third = live.plans()[-1]
            assert (third["spec"]["mode"], third["spec"]["configured"]) == ("shadow", "on")
        assert len(live.kubelets.gone) == n_gone and live.violations() == {}


def _night(live: LiveTwoPeaks, rebalancer: ScorerProcess, number: int) -> str:
    """Let a rebalancer plan and move; returns the name of its plan."""
    with rebalancer as process:

        def is_over() -> bool:
            phases = [one.get("status", {}).get("phase") for one in live.plans()]
            return len(phases) == number and phases[-1] == "Completed"

        assert eventually(is_over, 2 * LONG), f"{live.plans()} {process.log[-3000:]}"
        assert eventually(live.is_settled, LONG)
    plan: Manifest = live.plans()[-1]
    assert plan["spec"]["mode"] == "on"
    assert [one["state"] for one in plan["status"]["moves"]] == ["done"] * 6, plan["status"]
    return str(plan["metadata"]["name"])


def _grade(live: LiveTwoPeaks, name: str) -> str:
    (plan,) = (one for one in live.plans() if one["metadata"]["name"] == name)
    return str(plan["status"].get("grade", {}).get("verdict"))
