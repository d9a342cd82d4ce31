"""Alignment for all nodes at once, against upstream's loops over one node's zones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.topology.alignment import (
    NOWHERE,
    AlignedNeeds,
    ZonesLeft,
    aligned_needs,
    container_fits,
    pod_fits,
    pods_in_one_zone,
)
from scorer.cluster.objects import QosClass
from tests.extender.topology.zones_world import GPU, pod

KINDS = {"cpu": 0, GPU: 1}


def left(*nodes: list[list[int]]) -> ZonesLeft:
    """By node and zone: CPU in milli-cores, cards."""
    most = max(map(len, nodes))
    padded = [[*zones, *[[0, 0]] * (most - len(zones))] for zones in nodes]
    there = [[at < len(zones) for at in range(most)] for zones in nodes]
    return ZonesLeft(np.array(padded, dtype=np.int64), np.array(there, dtype=bool), KINDS)


def test_what_is_aligned_of_a_pod() -> None:
    one = pod("a", cpu=2.5, n=2)
    assert aligned_needs(one) == AlignedNeeds({"cpu": 2500, GPU: 2}, (), ({"cpu": 2500, GPU: 2},))
    burstable = aligned_needs(pod("a", cpu=2.5, n=2, qos=QosClass.BURSTABLE))
    assert burstable is not None and burstable.pod == {GPU: 2}
    assert aligned_needs(pod("a", cpu=2.5, qos=QosClass.BURSTABLE)) is None
    assert aligned_needs(pod("a", n=0, qos=QosClass.BEST_EFFORT)) is None
    several = aligned_needs(pod("a", containers=[{GPU: 1, "cpu": 1}, {"cpu": 2}], starting=[{"cpu": 4}]))
    assert several == AlignedNeeds({"cpu": 4000, GPU: 1}, ({"cpu": 4000},), ({GPU: 1, "cpu": 1000}, {"cpu": 2000}))
    devices_only = aligned_needs(pod("a", containers=[{GPU: 1, "cpu": 1}, {"cpu": 2}], qos=QosClass.BURSTABLE))
    assert devices_only is not None and devices_only.running == ({GPU: 1},)


def needs(*running: Mapping[str, int], starting: tuple[Mapping[str, int], ...] = ()) -> AlignedNeeds:
    whole = {kind: sum(one.get(kind, 0) for one in running) for kind in KINDS}
    for one in starting:
        whole = {kind: max(amount, one.get(kind, 0)) for kind, amount in whole.items()}
    return AlignedNeeds({kind: amount for kind, amount in whole.items() if amount}, starting, running)


@pytest.mark.parametrize(
    ("asked", "zones", "as_pod", "by_container"),
    [
        (needs({"cpu": 4000, GPU: 2}), [[4000, 2], [8000, 1]], True, True),
        (needs({"cpu": 4000, GPU: 2}), [[3000, 2], [8000, 1]], False, False),  # not of one zone
        (needs({GPU: 1}, {GPU: 1}), [[0, 1], [0, 1]], False, True),
        (needs({GPU: 1}, {GPU: 2}), [[0, 1], [0, 1]], False, False),
        (needs({GPU: 1}, {GPU: 2}), [[0, 2], [0, 2]], False, True),
        (needs({GPU: 2}, {GPU: 1}, starting=({GPU: 3},)), [[0, 2], [0, 2]], False, False),
        (needs({GPU: 1}, starting=({GPU: 2}, {GPU: 2})), [[0, 2]], True, True),  # one after the other
        (needs({GPU: 9}), [[0, NOWHERE]], True, True),  # no zone reports it
        (needs({"example.com/other": 9}), [[0, 0]], True, True),
    ],
)
def test_one_node(asked: AlignedNeeds, zones: list[list[int]], as_pod: bool, by_container: bool) -> None:
    of = left(zones)
    before = of.units.copy()
    assert pod_fits(asked, of).tolist() == [as_pod]
    assert container_fits(asked, of).tolist() == [by_container]
    np.testing.assert_array_equal(of.units, before)


def slow_zone(wanted: Mapping[str, int], zones: list[list[int]]) -> int | None:
    """resourcesAvailableInAnyNUMANodes: the lowest zone with all of it."""
    for at, zone in enumerate(zones):
        if all(zone[KINDS[kind]] >= amount for kind, amount in wanted.items() if amount):
            return at
    return None


def slow_container(asked: AlignedNeeds, zones: list[list[int]]) -> bool:
    """singleNUMAContainerLevelHandler."""
    if any(slow_zone(one, zones) is None for one in asked.starting):
        return False
    zones = [list(zone) for zone in zones]
    for one in asked.running:
        at = slow_zone(one, zones)
        if at is None:
            return False
        for kind, amount in one.items():
            zones[at][KINDS[kind]] -= amount
    return True


amounts = st.fixed_dictionaries({"cpu": st.integers(0, 4), GPU: st.integers(0, 3)})
some_zones = st.lists(st.lists(st.integers(-1, 5), min_size=2, max_size=2), min_size=1, max_size=3)


@settings(max_examples=50)
@given(
    st.lists(amounts, min_size=1, max_size=3),
    st.lists(amounts, max_size=1),
    st.lists(some_zones, min_size=1, max_size=4),
)
def test_it_is_what_upstream_finds(
    running: list[dict[str, int]], starting: list[dict[str, int]], nodes: list[list[list[int]]]
) -> None:
    asked, of = needs(*running, starting=tuple(starting)), left(*nodes)
    assert pod_fits(asked, of).tolist() == [slow_zone(asked.pod, zones) is not None for zones in nodes]
    assert container_fits(asked, of).tolist() == [slow_container(asked, zones) for zones in nodes]


@settings(max_examples=50)
@given(amounts, st.lists(some_zones, min_size=1, max_size=4), st.booleans())
def test_room_is_how_many_times_it_fits_if_each_counts_in_every_zone(
    one: dict[str, int], nodes: list[list[list[int]]], is_pod_scope: bool
) -> None:
    asked = needs(one)
    room = pods_in_one_zone(asked, left(*nodes), np.full(len(nodes), is_pod_scope))
    for found, zones in zip(room.tolist(), nodes, strict=True):
        if not asked.pod:
            assert found == NOWHERE
            continue
        n, rest = 0, [list(zone) for zone in zones]
        while slow_zone(asked.pod, rest) is not None:
            n += 1
            rest = [[zone[at] - asked.pod.get(kind, 0) for kind, at in KINDS.items()] for zone in rest]
        assert max(found, 0) == n


def test_room_of_pods_of_several_containers() -> None:
    asked = needs({GPU: 1}, {GPU: 1})
    of = left([[0, 8], [0, 8]], [[0, 8], [0, 8]])
    assert pods_in_one_zone(asked, of, np.array([True, False])).tolist() == [4, 1]
