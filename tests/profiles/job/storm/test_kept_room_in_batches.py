"""Kept room and many pods at once: who may use it is told apart, and the others are placed together beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from forecast.service_key import Owner
from kube.objects.objects import PodInfo
from placement.filters.catalogue import standard_filters
from placement.filters.filter import ClusterView
from placement.policies.policy import OnePolicyForAll, Policy
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.cycle.batch_plan import BatchPlan
from scheduler.cycle.like_pods import Likeness
from scheduler.cycle.placing import Placed, UnitPlacer
from scheduler.profile import SchedulingProfile
from scorer.scoring_policy import scoring_policy
from tests.profiles.job.storm.storm_scene import Scene, cron_job, of_storm, other


def policy(scene: Scene) -> Policy:
    return Policy(scoring_policy(scene.live.scorer.options))


def runs(scene: Scene, pods: Sequence[PodInfo]) -> list[slice]:
    filters = (*standard_filters(), scene.watch.filter)
    profile = SchedulingProfile(
        "job", "job-scheduler", OnePolicyForAll(policy(scene)), BindingPlugins(bind=()), filters
    )
    return list(Likeness(ClusterView(scene.cluster, scene.index), {"job-scheduler": profile}).runs(pods))


def place(scene: Scene, pods: Sequence[PodInfo], *, one_by_one: bool = False) -> Placed:
    for pod in pods:
        scene.live.put(pod)
    with scene.live.scorer.tables.changing() as cluster:
        placer = UnitPlacer(
            ClusterView(cluster, scene.index),
            cluster,
            scene.live.scorer.tables.level()[0],
            until=scene.live.clock.now + 600,
            one_by_one=one_by_one,
        )
        return placer.place(pods, (*standard_filters(), scene.watch.filter), policy(scene))


def pods(n: int, name: str = "x", **more: Any) -> list[PodInfo]:
    made = replace(other(cpu=1.0), scheduler_name="job-scheduler", owner=Owner("Job", name), owner_uid=name)
    return [replace(made, uid=f"{name}-{i}", name=f"{name}-{i}", **more) for i in range(n)]


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    made: list[BatchPlan] = []
    begin = BatchPlan.__init__

    def counted(plan: BatchPlan, *arguments: Any, **others: Any) -> None:
        made.append(plan)
        begin(plan, *arguments, **others)

    monkeypatch.setattr(BatchPlan, "__init__", counted)
    return lambda: len(made)


def test_jobs_whose_room_is_kept_do_not_go_with_those_it_is_kept_from() -> None:
    scene = Scene(cron_job())
    now = scene.live.clock.now
    strangers = [replace(of_storm(f"other-{i}", now, "other")) for i in range(3)]
    mixed = [*strangers, *(of_storm(f"storm-{i}", now) for i in range(3)), *strangers[:1]]
    assert runs(scene, mixed) == [slice(0, 7)], "while nothing is kept"
    scene.at(-1)
    assert runs(scene, mixed) == [slice(0, 3), slice(3, 6), slice(6, 7)]


@pytest.mark.parametrize("kept_for", [60, 100, 150])
def test_others_are_placed_together_in_what_is_left_as_one_by_one(kept_for: int, plans: Callable[[], int]) -> None:
    found = []
    for one_by_one in (False, True):
        scene = Scene(cron_job(pods=kept_for, cpu=1.0))
        scene.at(-1)
        assert scene.kept == kept_for
        placed = place(scene, pods(180), one_by_one=one_by_one)
        found.append(placed.rows)
        assert len(placed.rows) == 160 - kept_for
        assert placed.why_not is not None
        assert "StormHeadroom" in [name for name, _ in placed.why_not.rejections]
    assert found[0] == found[1]
    assert 1 <= plans() <= 8
