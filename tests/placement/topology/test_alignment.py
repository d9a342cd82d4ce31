"""Alignment for all nodes at once, against the kubelet's algorithm over one node's CPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kube.objects.objects import QosClass
from placement.topology.aligned_needs import AlignedNeeds, aligned_needs
from placement.topology.alignment import (
    NOWHERE,
    Masks,
    ZonesLeft,
    container_fits,
    loose_threads,
    masks,
    pods_in_full_cores,
    pods_until_known,
    sets_for,
    walk,
)
from placement.topology.node_zones import Scope, TopologyManagerPolicy
from tests.placement.devices.device_world import GPU
from tests.placement.topology.slow_kubelet import Cpu, Rejected, SlowKubelet
from tests.placement.topology.zones_world import pod

KINDS = {"cpu": 0, GPU: 1}
Asked = Sequence[Mapping[str, int]]


def left(
    *nodes: list[list[int]],
    total: list[int] | None = None,
    pending: list[int] | None = None,
    socket: Sequence[int] = (),
) -> ZonesLeft:
    """By node and zone: CPU in milli-cores, cards; total: of each empty zone, pending: of each node."""
    most = max(map(len, nodes))
    padded = [[*zones, *[[NOWHERE, NOWHERE]] * (most - len(zones))] for zones in nodes]
    there = [[at < len(zones) for at in range(most)] for zones in nodes]
    units = np.array(padded, dtype=np.int64)
    return ZonesLeft(
        units,
        np.array(there, dtype=bool),
        KINDS,
        np.maximum(units, np.array(total or [0, 0])),
        np.array([pending or [0, 0]] * len(nodes), dtype=np.int64),
        np.array([socket or [-1] * most] * len(nodes), dtype=np.int64),
    )


def single(of: ZonesLeft) -> Masks:
    return masks(of.there.shape[1], 1)


def every(of: ZonesLeft) -> Masks:
    return masks(of.there.shape[1], of.there.shape[1])


def test_what_is_aligned_of_a_pod() -> None:
    one = pod("a", cpu=2, n=2)
    assert aligned_needs(one) == AlignedNeeds({"cpu": 2000, GPU: 2}, (), ({"cpu": 2000, GPU: 2},))
    fraction = aligned_needs(pod("a", cpu=2.5, n=2))
    assert fraction is not None and fraction.pod == {GPU: 2} and not fraction.cores
    assert aligned_needs(pod("a", cpu=2.5)) is None
    burstable = aligned_needs(pod("a", cpu=2, n=2, qos=QosClass.BURSTABLE))
    assert burstable is not None and burstable.pod == {GPU: 2}
    assert aligned_needs(pod("a", cpu=2, qos=QosClass.BURSTABLE)) is None
    assert aligned_needs(pod("a", n=0, qos=QosClass.BEST_EFFORT)) is None
    several = aligned_needs(pod("a", containers=[{GPU: 1, "cpu": 1}, {"cpu": 2}, {"cpu": 0.5}], starting=[{"cpu": 4}]))
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
        (needs({GPU: 1}, {GPU: 1}), [[0, 1], [0, 1]], False, True),
        (needs({GPU: 2}, {GPU: 1}, starting=({GPU: 3},)), [[0, 2], [0, 2]], False, False),
        (needs({GPU: 1}, starting=({GPU: 2}, {GPU: 2})), [[0, 2]], True, True),  # one after the other
        (needs({GPU: 9}), [[0, NOWHERE]], True, True),  # no zone reports it
        (needs({"example.com/other": 9}), [[0, 0]], True, True),
    ],
)
def test_one_node_of_single_zones(
    asked: AlignedNeeds, zones: list[list[int]], as_pod: bool, by_container: bool
) -> None:
    of = left(zones)
    before = of.units.copy()
    assert walk((asked.pod,), of, single(of)).is_aligned.tolist() == [as_pod]
    assert container_fits(asked, of, single(of)).tolist() == [by_container]
    np.testing.assert_array_equal(of.units, before)


@dataclass(frozen=True)
class Machine:
    """A node before its first pod."""

    n_zones: int
    cores: int
    threads: int
    cards: tuple[int, ...]
    lone: bool = False
    by_socket: bool = False

    def kubelet(self, policy: TopologyManagerPolicy, scope: Scope, *, full_cores: bool = False) -> SlowKubelet:
        every_cpu = frozenset(
            Cpu(zone, core, thread)
            for zone in range(self.n_zones)
            for core in range(self.cores)
            for thread in range(self.threads)
        )
        reserved = frozenset({Cpu(0, 0, 0)}) if self.lone else frozenset[Cpu]()
        having = [{GPU: cards} for cards in self.cards[: self.n_zones]]
        return SlowKubelet(
            every_cpu,
            set(every_cpu - reserved),
            [dict(of) for of in having],
            having,
            policy,
            scope,
            full_cores,
            self.by_socket,
            self.sockets,
            reserved,
        )

    @property
    def sockets(self) -> list[int]:
        return [zone // 2 for zone in range(self.n_zones)]

    def left(self, kubelet: SlowKubelet) -> ZonesLeft:
        """As an exporter publishes it."""
        zones = range(self.n_zones)
        cpus = [sum(cpu.zone == zone for cpu in kubelet.free) for zone in zones]
        devices = any(self.cards[: self.n_zones])
        of = left([[1000 * cpus[zone], kubelet.devices[zone][GPU] if devices else NOWHERE] for zone in zones])
        of.total[0] = [[1000 * self.cores * self.threads, self.cards[zone] if devices else NOWHERE] for zone in zones]
        if self.by_socket:
            of.socket[0] = [2 * socket for socket in self.sockets]
        return of


machines = st.builds(
    Machine,
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 2),
    st.tuples(*[st.integers(0, 2)] * 4),
    st.booleans(),
)
containers = st.fixed_dictionaries({"cpu": st.integers(0, 7), GPU: st.sampled_from([0, 0, 1, 2])})
some_pods = st.lists(st.lists(containers, min_size=1, max_size=2), max_size=6)


def lived(kubelet: SlowKubelet, history: Sequence[Asked], gone: Sequence[int]) -> SlowKubelet:
    """After these pods came, and some CPUs were given back by others."""
    for asked in history:
        try:
            kubelet.admit((), asked)
        except Rejected:
            continue
    taken = sorted(kubelet.every - kubelet.free - kubelet.reserved)
    kubelet.free |= {taken[at % len(taken)] for at in gone if taken}
    return kubelet


def units(asked: Asked) -> tuple[dict[str, int], ...]:
    return tuple(
        {kind: amount * (1000 if kind == "cpu" else 1) for kind, amount in one.items() if amount} for one in asked
    )


def on(machine: Machine, asked: Asked) -> Asked:
    """Cards are asked for only where there are some: what no zone reports is for other filters."""
    return asked if any(machine.cards[: machine.n_zones]) else [{**one, GPU: 0} for one in asked]


def is_admitted(kubelet: SlowKubelet, asked: Asked, starting: Asked = ()) -> bool:
    try:
        kubelet.admit(starting, asked)
    except Rejected:
        return False
    return True


@settings(max_examples=150, deadline=None)
@given(machines, some_pods, st.lists(st.integers(0, 31), max_size=4), st.lists(containers, min_size=1, max_size=3))
@example(Machine(2, 2, 2, (1, 1, 0, 0)), [[{"cpu": 3, GPU: 1}]], [], [{"cpu": 1, GPU: 1}, {"cpu": 1}])
@pytest.mark.parametrize("scope", list(Scope))
def test_single_zones_are_those_that_the_kubelet_admits(
    scope: Scope, machine: Machine, history: Sequence[Asked], gone: list[int], asked: Asked
) -> None:
    kubelet = lived(machine.kubelet(TopologyManagerPolicy.SINGLE_NUMA_NODE, scope), history, gone)
    asked = on(machine, asked)
    of, wanted = machine.left(kubelet), needs(*units(asked))
    fits = (
        walk((wanted.pod,), of, single(of)).is_aligned if scope is Scope.POD else container_fits(wanted, of, single(of))
    )
    assert bool(fits[0]) == is_admitted(kubelet, asked)


starters = st.lists(st.fixed_dictionaries({"cpu": st.integers(1, 6)}), max_size=2)


@settings(max_examples=200, deadline=None)
@given(machines, some_pods, st.lists(st.integers(0, 31), max_size=4), starters, containers)
@example(Machine(2, 4, 1, (0, 0, 0, 0)), [[{"cpu": 2}]], [], [{"cpu": 1}], {"cpu": 4, GPU: 0})
def test_init_containers_bind_the_next_one_to_their_zone(
    machine: Machine, history: Sequence[Asked], gone: list[int], starting: Asked, asked: Mapping[str, int]
) -> None:
    kubelet = lived(machine.kubelet(TopologyManagerPolicy.SINGLE_NUMA_NODE, Scope.CONTAINER), history, gone)
    of, running = machine.left(kubelet), on(machine, [asked])
    wanted = needs(*units(running), starting=units(starting))
    assert bool(container_fits(wanted, of, single(of))[0]) == is_admitted(kubelet, running, starting)


@settings(max_examples=200, deadline=None)
@given(machines, st.booleans(), some_pods, st.lists(st.integers(0, 31), max_size=4), containers)
@example(Machine(4, 2, 2, (0, 0, 0, 0)), True, [[{"cpu": 3}], [{"cpu": 3}]], [], {"cpu": 4, GPU: 0})
def test_restricted_is_what_the_kubelet_admits(
    machine: Machine, by_socket: bool, history: Sequence[Asked], gone: list[int], asked: Mapping[str, int]
) -> None:
    machine = Machine(machine.n_zones, machine.cores, machine.threads, machine.cards, machine.lone, by_socket)
    kubelet = lived(machine.kubelet(TopologyManagerPolicy.RESTRICTED, Scope.POD), history, gone)
    of, (one,) = machine.left(kubelet), units(on(machine, [asked]))
    if one:
        by_all, by_few = (walk((one,), of, sets).is_aligned[0] for sets in (every(of), sets_for(one, of)))
        assert by_all == by_few == is_admitted(kubelet, on(machine, [asked]))


@settings(max_examples=150, deadline=None)
@given(machines, some_pods, st.lists(containers, min_size=1, max_size=2))
@example(Machine(1, 2, 2, (0, 0, 0, 0), lone=True), [], [{"cpu": 2, GPU: 0}])
@example(Machine(1, 2, 2, (0, 0, 0, 0), lone=True), [[{"cpu": 2, GPU: 0}]], [{"cpu": 2, GPU: 0}])
def test_full_cores_are_those_that_the_kubelet_gives(machine: Machine, history: Sequence[Asked], asked: Asked) -> None:
    kubelet = lived(machine.kubelet(TopologyManagerPolicy.NONE, Scope.CONTAINER, full_cores=True), history, [])
    wanted = needs(*units([{**one, GPU: 0} for one in asked]))
    if not wanted.pod:
        return
    room = pods_in_full_cores(wanted, machine.left(kubelet), np.array([machine.threads]))[0]
    n = 0
    while is_admitted(kubelet, [{**one, GPU: 0} for one in asked]):
        n += 1
    assert room == n


@settings(max_examples=100, deadline=None)
@given(machines, some_pods)
def test_loose_threads_are_those_of_cores_in_use(machine: Machine, history: Sequence[Asked]) -> None:
    """While pods only come, and reserved CPUs are whole cores."""
    machine = Machine(machine.n_zones, machine.cores, machine.threads, machine.cards)
    kubelet = lived(machine.kubelet(TopologyManagerPolicy.SINGLE_NUMA_NODE, Scope.CONTAINER), history, [])
    of = machine.left(kubelet)
    used = {(cpu.zone, cpu.core) for cpu in kubelet.every - kubelet.free}
    expected = sum((cpu.zone, cpu.core) in used for cpu in kubelet.free)
    assert loose_threads(of.units, of, np.array([machine.threads])).tolist() == [expected]


amounts = st.fixed_dictionaries({"cpu": st.integers(0, 4), GPU: st.integers(0, 3)})
some_zones = st.lists(st.lists(st.integers(-1, 5), min_size=2, max_size=2), min_size=1, max_size=3)


@settings(max_examples=60, deadline=None)
@given(amounts, st.lists(some_zones, min_size=1, max_size=4), st.booleans())
def test_room_is_how_many_times_it_fits_if_each_may_be_in_any_zone(
    one: dict[str, int], nodes: list[list[list[int]]], is_single: bool
) -> None:
    asked = needs(one)
    if not asked.pod:
        return
    of = left(*nodes, total=[5, 5])
    sets = single(of) if is_single else every(of)
    room = pods_until_known(asked, of, sets)
    for at, found in enumerate(room.tolist()):
        for n in range(found + 1):
            now = ZonesLeft(of.units.copy(), of.there, of.kinds, of.total, of.pending.copy(), of.socket)
            for kind, amount in asked.pod.items():
                now.units[at, of.there[at], KINDS[kind]] -= n * amount
                now.pending[at, KINDS[kind]] += n * amount
            assert walk((asked.pod,), now, sets).is_aligned[at] == (n < found)
