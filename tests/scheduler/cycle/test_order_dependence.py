"""What is asked once for a batch does not change while its pods land; and the online profile does place in batches."""

from __future__ import annotations

import numpy as np
import pytest

from placement.filters.filter import Filter, rejected
from placement.filters.predicted_peak import PredictedPeak
from placement.policies.policy import OnePolicyForAll
from profiles.online.colocation_loop import Colocation
from profiles.online.profile import ONLINE
from scheduler.assembly import standard_profile
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.cycle.batch_plan import BatchPlan
from scheduler.cycle.placing import UnitPlacer
from scheduler.preemption.nominated import NominatedPods
from tests.scheduler.cycle.varied_cluster import FILTERS, NOW, varied_cluster


@pytest.mark.parametrize("seed", range(8))
def test_a_filter_that_is_asked_once_says_the_same_after_like_pods_have_landed_but_for_room(seed: int) -> None:
    world = varied_cluster(seed, n_pods=60)
    others: list[Filter] = [PredictedPeak({"cpu": 0.5}), NominatedPods(world.view.state)]
    asked_once = 0
    with world.scorer.tables.reading() as cluster:
        for run in list(world.runs()):
            pod = world.pods[run][-1]
            filters = [one for one in (*FILTERS, *others) if one.ignores_like_pods(pod, world.view)]
            asked_once += len(filters)
            before = [rejected(one.filter(pod, world.view), world.view.n_rows) for one in filters]
            placer = UnitPlacer(world.view, cluster, world.scorer.tables.level()[0], NOW + 100)
            placer.place(world.pods[run][:-1], FILTERS, world.policy)
            for one, was in zip(filters, before, strict=True):
                now = rejected(one.filter(pod, world.view), world.view.n_rows)
                if one.name == "NodeResourcesFit":
                    assert not (was & ~now).any()
                else:
                    np.testing.assert_array_equal(now, was, one.name)
    assert asked_once > 20


def test_the_online_profile_places_like_pods_from_one_reading_of_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    world = varied_cluster(1)
    pods = max((world.pods[run] for run in world.runs()), key=len)
    plain = [one for one in pods if not one.constraints.spread and not one.constraints.affects_others]
    plans = []
    made = BatchPlan.__init__

    def counted(plan: BatchPlan, *arguments: object, **others: object) -> None:
        plans.append(plan)
        made(plan, *arguments, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(BatchPlan, "__init__", counted)
    with world.scorer.tables.reading() as cluster:
        nominated = NominatedPods(cluster.state)
        profile = standard_profile(
            ONLINE,
            "forecast-scheduler",
            OnePolicyForAll(world.policy),
            BindingPlugins(bind=()),
            fit=next(one for one in FILTERS if one.name == "NodeResourcesFit"),  # type: ignore[arg-type]
            further_filters=(nominated, Colocation(world.scorer.tables).filter),
        )
        placer = UnitPlacer(world.view, cluster, world.scorer.tables.level()[0], NOW + 100)
        placed = placer.place(plain, profile.filters_for(world.policy), world.policy)
    assert len(placed.rows) > 5
    assert len(plans) == 1
