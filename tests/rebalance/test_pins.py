"""The rebalancer as it is started, beside each part that places pods: replacements come to the planned nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from testing.clusters.own_nodes import DOMAIN, LONG, OURS, reported
from testing.processes.scorer_process import ScorerProcess
from testing.rebalancing.live_two_peaks import LiveTwoPeaks
from testing.rebalancing.two_peaks import (
    TwoPeaks,
)
from testing.servers.cluster_objects import Manifest
from testing.servers.control_plane.pool import control_plane
from testing.waiting import eventually
from tests.rebalance.placing_parts import PLACED_BY

pytestmark = pytest.mark.long  # training, and three control planes one after the other

N_MOVES = 6
REBALANCE = {
    "budget": {"share": N_MOVES / 100},
    "cost": {"least_age": 0, "young": 0},  # the pods are as old as the test
}


@pytest.mark.parametrize("placed_by", sorted(PLACED_BY))
def test_replacements_come_to_the_planned_nodes(placed_by: str, world: TwoPeaks, models: Path, tmp_path: Path) -> None:
    ours = placed_by == "schedule"
    scheduler, labels = (OURS, {DOMAIN: OURS}) if ours else ("default-scheduler", {})
    with (
        control_plane() as plane,
        LiveTwoPeaks(plane, world, scheduler_name=scheduler, node_labels=labels) as live,
        PLACED_BY[placed_by](live, tmp_path, models) as placing,
    ):
        assert eventually(lambda: placing.metric("forecast_degradation_level") < 3), placing.log
        before = {one["metadata"]["uid"] for one in live.pods()}
        started = {"--models": str(models), "--mode": "on"}
        arguments = [word for pair in started.items() for word in pair]
        with live.process("rebalance", tmp_path / "rebalance", *arguments, settings={"rebalance": REBALANCE}) as moving:
            assert eventually(lambda: _is_over(live), 3 * LONG), _what_there_is(live, moving, placing)
            assert eventually(live.is_settled)
            (plan,) = live.plans()
            _assert_carried_out(plan, live, before)
            n_accepted = reported(moving, "forecast_rebalance_evictions_total", outcome="accepted")
            assert n_accepted == len(plan["spec"]["moves"]), moving.log
            assert not [line for line in moving.complaints if "a move waits" not in line], moving.complaints


def _is_over(live: LiveTwoPeaks) -> bool:
    return [one.get("status", {}).get("phase") for one in live.plans()] == ["Completed"]


def _assert_carried_out(plan: Manifest, live: LiveTwoPeaks, before: set[str]) -> None:
    moves = {one["uid"]: one for one in plan["spec"]["moves"]}
    records = {one["uid"]: one for one in plan["status"]["moves"]}
    assert len(moves) == N_MOVES and plan["spec"]["mode"] == "on"
    assert {one["state"] for one in records.values()} == {"done"}, plan["status"]
    pods = {one["metadata"]["uid"]: one for one in live.pods()}
    for uid, move in moves.items():
        replacement = pods[records[uid]["replacementUid"]]
        assert replacement["spec"]["nodeName"] == records[uid]["node"] == move["to"]
        assert replacement["metadata"]["labels"]["app"] == move["service"].removeprefix("Deployment/")
    assert set(live.kubelets.gone) == set(moves), "other pods went, or one went twice"
    assert set(pods) - before == {one["replacementUid"] for one in records.values()}
    assert live.violations() == {}


def _what_there_is(live: LiveTwoPeaks, moving: ScorerProcess, placing: ScorerProcess) -> str:
    status = [one.get("status") for one in live.plans()]
    return f"{status} {moving.get('/v1/rebalance')} {moving.log[-3000:]} {placing.log[-3000:]}"
