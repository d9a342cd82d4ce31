"""Which pods are to go: by examples, and on thousands of random nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects.objects import PodInfo
from scheduler.overcommit.overcommit import units_of
from scheduler.overcommit.repair_victims import is_evictable, plan_repair
from tests.scheduler.overcommit.nodes import OURS, overcommit, pod


def ours(one: PodInfo) -> bool:
    return is_evictable(one, {OURS})


def victims(pods: list[PodInfo], milli_cores: int) -> list[str]:
    return [one.name for one in plan_repair(overcommit(pods, {"cpu": milli_cores}), ours).victims]


@pytest.mark.parametrize(
    ("stays", "why"),
    [
        (pod("p", scheduler="default-scheduler"), "another scheduler's"),
        (pod("p", owner=""), "nobody makes it anew"),
        (pod("p", owner="DaemonSet"), "it would come back"),
        (pod("p", owner="Node"), "the kubelet's own"),
        (pod("p", terminating=True), "it goes anyway"),
    ],
)
def test_who_never_goes(stays: PodInfo, why: str) -> None:
    assert not ours(stays), why
    assert ours(pod("p", owner="StatefulSet")) and ours(pod("p", owner="Job"))


def test_those_that_turn_out_not_to_be_needed_stay() -> None:
    # No one is enough for both resources; the newest gives little, and the next two give all.
    small = pod("small", requests={"cpu": 0.1}, created=9)
    cores = pod("cores", requests={"cpu": 2.0}, created=8)
    cards = pod("cards", requests={"example.com/gpu": 2.0}, created=7)
    found = plan_repair(overcommit([small, cores, cards], {"cpu": 500, "example.com/gpu": 0}), ours)
    assert [one.name for one in found.victims] == ["cores", "cards"]


KINDS = ("cpu", "memory", "pods", "example.com/gpu")


@st.composite
def random_pod(draw: st.DrawFn, number: int) -> PodInfo:
    amounts = st.integers(0, 4)
    return pod(
        f"p{number}",
        requests={"cpu": draw(amounts) / 1000, "memory": float(draw(amounts)), "example.com/gpu": float(draw(amounts))},
        scheduler=draw(st.sampled_from([OURS, OURS, "default-scheduler"])),
        owner=draw(st.sampled_from(["ReplicaSet", "ReplicaSet", "Job", "", "DaemonSet", "Node"])),
        created=float(draw(st.integers(0, 3))),
        started=draw(st.none() | st.floats(0, 5)),
        terminating=draw(st.sampled_from([False, False, True])),
    )


@given(st.data())
def test_whatever_is_on_the_node(data: st.DataObject) -> None:
    pods = [data.draw(random_pod(i)) for i in range(data.draw(st.integers(0, 9)))]
    has = {kind: data.draw(st.integers(0, 12)) for kind in KINDS}
    uids = st.sets(st.sampled_from([one.uid for one in pods])) if pods else st.just(set())
    leaving, refused = data.draw(uids), data.draw(uids)

    found = plan_repair(overcommit(pods, has), ours, leaving=leaving, refused=refused)

    gone = {one.uid for one in found.victims}
    assert len(gone) == len(found.victims)
    for one in found.victims:
        assert ours(one) and one.uid not in leaving | refused
    left_before = [one for one in pods if not one.terminating and one.uid not in leaving]

    def beyond(stay: list[PodInfo]) -> dict[str, int]:
        return {kind: units_of(stay, kind) - units for kind, units in has.items() if units_of(stay, kind) > units}

    after = beyond([one for one in left_before if one.uid not in gone])
    assert after.keys() == found.unrepaired.keys(), "what is not reported fits"
    could_go = [one for one in left_before if ours(one) and one.uid not in refused]
    for kind in found.unrepaired:
        assert kind in beyond([one for one in left_before if one not in could_go]), "all of ours would not be enough"
    for one in found.victims:
        spared = [other for other in left_before if other.uid not in gone - {one.uid}]
        assert beyond(spared).keys() != found.unrepaired.keys(), f"{one.name} went in vain"
