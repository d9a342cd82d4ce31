"""Nodes whose peak falls into the run are kept for later: against the curves, point by point."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cluster.degradation import Level
from forecast.resources import CPU
from kube.decoding.decoding import Kind
from kube.objects.constraints import NodeSelectorTerm, Operator, PreferredNodeTerm, Requirement
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView, rejected
from placement.index.index import PlacementIndex
from placement.policies.policy import Policy
from profiles.job.job_settings import ValleyOptions
from profiles.job.valley.off_peak import OffPeak
from scheduler.cycle.batch_plan import BatchPlan
from scheduler.cycle.placing import UnitPlacer
from scorer.scoring_policy import scoring_policy
from testing.constants import with_constants
from tests.profiles.job.valley.waiting_pods import due_of, job_pod, run_seconds, view_of_live
from tests.scorer.live_cluster import at, node, pod_of
from tests.scorer.scorer_at import LiveScorer, tables

CEILING = 0.5
CROWD = [pod_of(n % 6, f"online-{n}", "node-0") for n in range(60)] + [
    pod_of(n % 6, f"few-{n}", f"node-{n % 3 + 1}") for n in range(12)
]


def scene(hour: float, *, ceiling: float = CEILING, **options: Any) -> tuple[LiveScorer, OffPeak]:
    """node-0 is crowded: past the ceiling in its evening."""
    live = LiveScorer(hour, pods=CROWD)
    return live, OffPeak(ceiling, with_constants(ValleyOptions(), **options), due_of, run_seconds)


def over(live: LiveScorer, minutes: float, cpu: float) -> set[int]:
    """Rows that pass the ceiling, by the definition."""
    predicted = tables(live)
    load, first = predicted.load, predicted.horizon.slot
    end = math.ceil(predicted.horizon.position(live.clock.now + 60 * minutes))
    pod = job_pod(cpu=cpu, run=f"{minutes}m")
    own = load.usage_of(live.scorer.tables._cluster.profile(pod))[CPU, first:end].max()
    share = load.share(slice(0, 4))[:, CPU, first:end].max(axis=1) + own / 40
    return set(np.flatnonzero(share > CEILING).tolist())


def test_who_may_wait_is_rejected_there_and_who_may_not_is_not() -> None:
    hour = next(h for h in np.arange(0, 24, 0.5) if over(scene(h)[0], 30, 2.0))
    live, tested = scene(hour)
    view = view_of_live(live)
    patient = job_pod("patient", created=live.clock.now, latest_start="4h")
    found = tested.filter(patient, view)
    assert set(np.flatnonzero(rejected(found, view.n_rows)).tolist()) == over(live, 30, 2.0)
    assert "predicted load of cpu would pass 50 % of capacity during the expected run" in found[0].reason
    assert not found[0].preemptible
    assert tested.ignores_like_pods(patient, view)
    for pressed in (job_pod(), job_pod(created=live.clock.now, latest_start="5m")):
        assert tested.filter(pressed, view) == ()
        assert tested.ignores_like_pods(pressed, view)


@pytest.mark.parametrize("level", [Level.FRESH, Level.NEUTRAL])
@pytest.mark.parametrize("slack", ["4h", ""])
def test_many_like_pods_go_together_and_no_node_comes_to_be_over(
    slack: str, level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    """node-0 is nearly full by the forecast from the beginning: that is no reason to take them one by one.
    All would rather go to node-1, to which they do where the forecast does not count: until that is full."""
    made: list[int] = []
    begin = BatchPlan.__init__

    def counted(plan: BatchPlan, *arguments: Any, **others: Any) -> None:
        made.append(1)
        begin(plan, *arguments, **others)

    monkeypatch.setattr(BatchPlan, "__init__", counted)
    found = []
    for one_by_one in (False, True):
        live, tested = scene(22.0)
        said = {"latest_start": slack} if slack else {}
        live.scorer.tables.put(Kind.NODES, replace(node("node-1"), labels={"disk": "ssd"}))
        first = job_pod(cpu=1.0, created=live.clock.now, **said)
        ssd = NodeSelectorTerm((Requirement("disk", Operator.IN, ("ssd",)),))
        liked = replace(first.constraints, preferred_node_terms=(PreferredNodeTerm(100, ssd),))
        pods = [replace(first, uid=f"job-{i}", name=f"job-{i}", constraints=liked) for i in range(80)]
        for pod in pods:
            live.put(pod)
        with live.scorer.tables.changing() as cluster:
            view = ClusterView(cluster, PlacementIndex(cluster.state))
            cluster.listeners.append(view.index.apply)
            room = tested.room(pods[0], view, np.arange(4))
            assert room.min() == 0 and 0 < room.sum() < 80
            placer = UnitPlacer(view, cluster, level, until=live.clock.now + 600, one_by_one=one_by_one)
            placer.preferences = (tested,)
            filters = (*standard_filters(), tested)
            placed = placer.place(pods, filters, Policy(scoring_policy(live.scorer.options)))
        times = np.bincount(placed.rows, minlength=4)
        found.append(times)
        assert (np.bincount(placed.rows[: int(room.sum())], minlength=4) <= room).all()
        if slack:
            assert len(placed.rows) < 80
            assert placed.why_not is not None
            assert "OffPeak" in [name for name, _ in placed.why_not.rejections]
        else:
            assert len(placed.rows) == 80
    assert 1 <= len(made) <= 12
    assert np.abs(found[0] - found[1]).max() <= 1


def test_without_a_forecast_it_says_nothing() -> None:
    live = LiveScorer(20.0, pods=CROWD, without_model=True)
    view = view_of_live(live)
    patient = job_pod(created=live.clock.now, latest_start="4h")
    tested = OffPeak(CEILING, ValleyOptions(), due_of, run_seconds)
    assert tested.filter(patient, view) == ()
    assert len(tested.prefer(patient, 5, view, np.arange(4)).rows) == 4
    assert (tested.room(patient, view, np.arange(4)) > 1000).all()


def test_which_pods_are_told_apart_and_what_wakes() -> None:
    _, tested = scene(20.0)
    assert tested.tells_apart(job_pod()) is None
    early, late = (job_pod(created=at(hour), latest_start="4h") for hour in (1, 9))
    assert tested.tells_apart(early) != tested.tells_apart(late)
    assert tested.hint(early, ClusterEvent(EventKind.POD_LEFT)) is Hint.QUEUE
    assert tested.hint(early, ClusterEvent(EventKind.GROUP_CHANGED)) is Hint.SKIP
