"""When minReplicas is raised, by how much, and when it is given back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from autoscaling.autoscale_settings import MinReplicasOptions
from autoscaling.replicas.horizontal_autoscalers import LEFT_UNTIL, ORIGINAL, RAISED, HorizontalAutoscaler
from autoscaling.replicas.loads_ahead import LoadsAhead, ServiceLoadAhead
from autoscaling.replicas.raising import MinimumChange, MinimumDecision, MinimumOutcome, Raising
from autoscaling.replicas.replicas_needed import external_replicas
from autoscaling.replicas.room import Room, read_quotas
from base.excluded import ExcludedOptions
from tests.autoscaling.nodes.made_up import GIB, nodes_with, services_ahead
from tests.autoscaling.replicas.made_up_autoscalers import autoscaler, metric

AHEAD = services_ahead([2, 2, 20], [2, 2, 20])
NOW = 1_772_438_400.0
OURS: dict[str, Any] = {
    "annotations": {ORIGINAL: "2", RAISED: "6"},
    "spec": {"minReplicas": 6},
    "status": {"currentReplicas": 6},
}


def loads(*of_each: tuple[float, float], resource: str = "cpu") -> LoadsAhead:
    """(now, ahead) of s0, s1, ..."""
    found = tuple(
        ServiceLoadAhead("shop", {"kind": "Deployment", "name": f"s{i}", "resource": resource}, ahead, now)
        for i, (now, ahead) in enumerate(of_each)
    )
    return LoadsAhead(NOW, {"shop": found})


def room(free: float = 100.0, *quotas: dict[str, Any]) -> Room:
    """Ten nodes that have so many cores left together."""
    items = [{"metadata": {"namespace": "shop"}, "status": one} for one in quotas]
    return Room(nodes_with([10 - free / 10] * 10), read_quotas(json.dumps({"items": items}).encode()))


def decide(
    raising: Raising, *of: HorizontalAutoscaler, said: LoadsAhead, at: float = 0.0, free: Room | None = None
) -> MinimumDecision:
    """at: seconds since NOW"""
    return raising.decide(of, AHEAD, said, free or room(), NOW + at)


def made(most_share: float = 1.0, **excluded: Any) -> Raising:
    return Raising(MinReplicasOptions(enabled=True, most_share=most_share), ExcludedOptions(**excluded))


def written(decision: MinimumDecision) -> list[tuple[str, str, int]]:
    return [(one.of.name, one.outcome.value, one.minimum) for one in decision.changes]


@pytest.mark.parametrize(
    ("needed", "current", "wish"),
    [
        (2.0, 2, 2),
        (2.2, 2, 2),  # within the tolerance
        (2.21, 2, 3),
        (1.8, 2, 2),
        (1.79, 2, 2),
        (7.0, 2, 7),
        (7.01, 2, 8),
        (1.0, 10, 1),
        (float("nan"), 2, 0),
    ],
)
def test_the_arithmetic_of_the_controller(needed: float, current: int, wish: int) -> None:
    assert external_replicas(np.array([needed]), np.array([current]), up=0.1, down=0.1).tolist() == [wish]


RISING: dict[str, tuple[dict[str, Any], LoadsAhead, int]] = {
    "as the external metric": ({}, loads((1.0, 1.75)), 4),
    "half of a request of one core": ({"spec": {"metrics": [metric(50)]}}, loads((1.0, 2.5)), 5),
    "memory": ({"spec": {"metrics": [metric("1Gi", "memory")]}}, loads((GIB, 5 * GIB), resource="memory"), 5),
    "no more than the policies allow": ({}, loads((1.0, 8.0)), 6),
    "no more than maxReplicas": ({"spec": {"maxReplicas": 3}}, loads((1.0, 2.5)), 3),
    "originally none set": ({"spec": {"minReplicas": None}}, loads((1.0, 1.75)), 4),
}


@pytest.mark.parametrize("case", RISING)
def test_it_rises_before_the_load(case: str) -> None:
    fields, said, minimum = RISING[case]
    assert written(decide(made(), autoscaler(**fields), said=said)) == [("s0", "raised", minimum)]


STAYING: dict[str, tuple[dict[str, Any], LoadsAhead, str]] = {
    "steady": ({}, loads((4.0, 4.0)), ""),  # the load of now is the autoscaler's own business
    "within the tolerance": ({}, loads((1.0, 1.1)), ""),
    "below its minimum": ({}, loads((0.2, 0.6)), ""),
    "unknown": ({"spec": {"scaleTargetRef": {"kind": "Rollout", "name": "s0"}}}, loads((1, 2)), "its service has no"),
    "unmeasured": ({}, loads(), "nothing is measured of its service"),
    "blind": ({"status": {"conditions": []}}, loads((1.0, 2.0)), "it does not scale at present"),
    "asleep": ({"status": {"currentReplicas": 0}}, loads((1.0, 2.0)), "its target has no replicas"),
    "left": ({"annotations": {LEFT_UNTIL: "2027-01-01T00:00:00Z"}}, loads((1.0, 2.0)), "others changed"),
}


@pytest.mark.parametrize("case", STAYING)
def test_it_stays_and_the_reason_is_said(case: str) -> None:
    fields, said, why = STAYING[case]
    decision = decide(made(), autoscaler(**fields), said=said)
    assert decision.changes == ()
    assert [text.startswith(why) for text in decision.counted()] == ([True] if why else [])


def test_excluded_services_and_those_that_do_not_ask_stay() -> None:
    excluded = made(services=("shop/s0",))
    assert decide(excluded, autoscaler(), said=loads((1.0, 2.0))).changes == ()
    assert decide(made(), autoscaler(metadata={"labels": {}}), said=loads((1.0, 2.0))).changes == ()


def test_it_is_lowered_to_the_highest_wish_of_ten_minutes_and_then_restored() -> None:
    raising, at = made(), dict[float, list[tuple[str, str, int]]]()
    one = autoscaler(**OURS)
    course = {0: (2.5, 3.0), 60: (2.5, 3.0), 300: (2.0, 2.5), 601: (2.5, 2.5), 700: (2.5, 2.5), 901: (2.5, 2.5)}
    for second, (now, ahead) in course.items():
        at[second] = written(decide(raising, one, said=loads((now, ahead)), at=second))
    # Six stay for ten minutes after they were last wanted.
    assert at == {0: [], 60: [], 300: [], 601: [], 700: [("s0", "lowered", 5)], 901: [("s0", "restored", 2)]}


def test_another_process_holds_what_it_finds() -> None:
    raising = made()
    assert written(decide(raising, autoscaler(**OURS), said=loads())) == []
    assert written(decide(raising, autoscaler(**OURS), said=loads(), at=601)) == [("s0", "restored", 2)]


RESTORED: dict[str, dict[str, Any]] = {
    "asks no more": {"metadata": {"labels": {}}},
    "scaled to zero": {"status": {"currentReplicas": 0}},
    "now with KEDA": {"metadata": {"ownerReferences": [{"kind": "ScaledObject", "name": "s", "controller": True}]}},
}


@pytest.mark.parametrize("case", RESTORED)
def test_it_is_restored_at_once(case: str) -> None:
    decision = decide(made(), autoscaler(**(OURS | RESTORED[case])), said=loads((2.5, 3.0)))
    assert written(decision) == [("s0", "restored", 2)]


def test_what_others_set_is_theirs_and_left_alone_for_a_day() -> None:
    raising = made()
    theirs = autoscaler(**(OURS | {"spec": {"minReplicas": 4}}))
    (change,) = decide(raising, theirs, said=loads((2.5, 5.0))).changes
    assert (change.outcome, change.minimum, change.until) == (MinimumOutcome.LEFT, 4, NOW + 24 * 3600)
    assert "was 6 by us" in change.why
    raising.wrote(change, NOW)
    later = autoscaler(spec={"minReplicas": 4})  # even if they removed our annotations
    assert decide(raising, later, said=loads((2.5, 5.0)), at=3600).changes == ()
    (again,) = decide(raising, later, said=loads((1.0, 3.0)), at=24 * 3601).changes
    assert (again.outcome, again.minimum) == (MinimumOutcome.RAISED, 6)


def test_a_record_that_others_wiped_is_noticed_and_one_that_another_leader_took_back_is_none() -> None:
    raising = made()
    (change,) = decide(raising, autoscaler(), said=loads((1.0, 2.5))).changes
    raising.wrote(change, NOW)
    ours = [{"manager": "forecast-scheduler-autoscaler", "fieldsV1": {"f:spec": {"f:minReplicas": {}}}}]
    back = autoscaler(metadata={"managedFields": ours})
    assert written(decide(raising, back, said=loads((1.0, 1.0)), at=60)) == []
    assert written(decide(raising, autoscaler(), said=loads((1.0, 2.5)), at=120)) == [("s0", "left", 2)]


def test_the_largest_lack_comes_first_within_the_budget() -> None:
    # 24 cores are requested: a quarter of them is six pods more.
    said = loads((1.0, 2.5), (1.0, 3.0))
    decision = decide(made(0.25), autoscaler("s0"), autoscaler("s1"), said=said)
    assert written(decision) == [("s1", "raised", 6), ("s0", "raised", 4)]
    assert list(decision.counted()) == ["autoscale.min_replicas.most_share is spent"]
    held = [autoscaler("s1", **OURS), autoscaler("s0")]
    assert written(decide(made(0.25), *held, said=said)) == [("s0", "raised", 4)], "what is raised already counts"


def test_nodes_and_quotas_have_room_for_so_many() -> None:
    # Of twenty cores in ten nodes, two in each.
    assert written(decide(made(), autoscaler(), said=loads((1.0, 2.5)), free=room(20))) == [("s0", "raised", 5)]
    assert written(decide(made(), autoscaler(), said=loads((1.0, 2.5)), free=room(9))) == [], "each pod needs a core"
    quota = {"hard": {"pods": "5", "requests.cpu": "3500m"}, "used": {"pods": "2", "requests.cpu": "2"}}
    decision = decide(made(), autoscaler(), said=loads((1.0, 2.5)), free=room(100, quota))
    assert written(decision) == [("s0", "raised", 3)]
    ((_, why, note),) = decision.kept
    assert why == "there is no room for more pods" and "ResourceQuota" in note and "2 run" in note


def test_policies_with_a_longer_period_let_it_grow_again_later() -> None:
    slow: dict[str, Any] = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 300}]}}
    raising, said = made(), loads((1.0, 2.5))
    (change,) = decide(raising, autoscaler(spec={"behavior": slow}), said=said).changes
    raising.wrote(change, NOW)
    assert change.minimum == 3
    grown: dict[str, Any] = {"annotations": {ORIGINAL: "2", RAISED: "3"}, "spec": {"minReplicas": 3, "behavior": slow}}
    one = autoscaler(**grown, status={"currentReplicas": 3})
    assert decide(raising, one, said=said, at=60).changes == ()
    assert written(decide(raising, one, said=said, at=300)) == [("s0", "raised", 4)]


def test_so_many_writes_in_one_turn() -> None:
    many = [autoscaler(f"x{i}", **(OURS | {"metadata": {"labels": {}, "uid": f"x{i}"}})) for i in range(100)]
    decision = decide(made(), *many, said=loads())
    assert len(decision.changes) == MinReplicasOptions.at_once == 60
    assert isinstance(decision.changes[0], MinimumChange)
