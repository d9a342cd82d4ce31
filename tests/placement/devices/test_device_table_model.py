"""The table is what a new one would be, whatever happened before: in any order, with pods of anybody."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kube.objects.objects import PodPhase
from placement.devices.declared_devices import card_memory, indices_of
from placement.devices.device_demand import gpu_demand
from placement.devices.device_table import DeviceTable
from placement.what_if import WithoutPods
from tests.placement.devices.device_world import INDEX, DeviceWorld, card_node, card_pod

NAMES = st.integers(0, 9).map(lambda i: f"p{i}")
NODES = st.sampled_from(("a", "b", "c"))
ASKED: tuple[dict[str, Any], ...] = (
    {"n": 1},
    {"n": 2},
    {"milli": 400},
    {"milli": 600},
    {"memory": 2},
    {"memory": 5},
    {},
    {"milli": "x"},
)
ASKS = st.sampled_from(ASKED)
SAID = st.sampled_from(({}, {INDEX: "0"}, {INDEX: "1"}, {INDEX: "0,2"}, {INDEX: "7"}, {INDEX: "?"}))


def shown(table: DeviceTable, world: DeviceWorld) -> list[object]:
    """All that others can see, by name of the node."""
    lines: list[object] = [table.conflicts(), table.devices_by_model()]
    for name, row in sorted(world.state.row_of.items()):
        model = int(table.model[row])
        devices = (table.n_devices, table.free_whole, table.most_free, table.device_memory)
        columns = (*devices, table.most_free_memory, table.pods_by_index, table.pods_by_name)
        n = int(table.n_devices[row])
        free = table.free_milli[row].tolist()
        assert set(free[n:]) <= {-1}
        lines.append((name, free[:n], table.models[model] if model >= 0 else "", [int(one[row]) for one in columns]))
        node = table.node(row)
        lines.append([] if node is None else sorted((uid, one.devices) for uid, one in node.holders.items()))
    return lines


def made_anew(world: DeviceWorld) -> DeviceTable:
    """From nothing but the objects and the choices that are remembered."""
    table = world.new_table()
    table._choices._made = dict(world.table._choices._made)
    table.rebuild()
    return table


class AnythingGoes(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = DeviceWorld([card_node("a", 3, model="T4"), card_node("b", shared=2, memory=8)])
        self.read = (0, np.zeros((0, 8), dtype=np.int64))  # at which version, and what it was
        self.cards: tuple[int, int, list[object]] = (0, 0, [])  # the same of what nodes have, and the rows

    @rule(name=NAMES, on=st.sampled_from(("", "a", "b", "c")), asks=ASKS, said=SAID, created=st.integers(0, 2))
    def put(self, name: str, on: str, asks: dict[str, Any], said: dict[str, str], created: int) -> None:
        self.world.put(card_pod(name, on, said=said, created=created, **asks))

    @rule(name=NAMES)
    def finish(self, name: str) -> None:
        pod = self.world.state.pods.get(f"default/{name}")
        if pod is not None:
            self.world.put(replace(pod, phase=PodPhase.FAILED))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self.world.delete(name)

    @rule(name=NAMES, on=NODES, asks=ASKS)
    def assume(self, name: str, on: str, asks: dict[str, Any]) -> None:
        self.world.cluster.assume(card_pod(name, **asks), on, until=1e9)

    @rule(name=NAMES)
    def forget(self, name: str) -> None:
        self.world.forget(name)

    @rule(name=NAMES, in_a_list=st.booleans(), says_so=st.booleans())
    def bind(self, name: str, in_a_list: bool, says_so: bool) -> None:
        uid, world = f"default/{name}", self.world
        if uid not in world.cluster.assumed:
            return
        before = world.devices(name)
        pod = world.bound(name) if says_so else replace(world.state.pods[uid], phase=PodPhase.RUNNING)
        if in_a_list:
            others = [one for one in world.state.pods.values() if one.uid not in world.cluster.assumed]
            world.cluster.replace_pods([*others, pod])
        else:
            world.put(pod)
        if says_so and INDEX in pod.annotations and world.table.annotations_of(pod, pod.node):
            assert world.devices(name) == before

    @rule(name=NODES, n=st.integers(0, 4), shared=st.integers(0, 3), memory=st.sampled_from((0, 6, 8)))
    def put_node(self, name: str, n: int, shared: int, memory: int) -> None:
        self.world.put(card_node(name, n, shared=shared, memory=memory, model="A10" if memory else ""))

    @rule(name=NODES)
    def delete_node(self, name: str) -> None:
        self.world.cluster.apply(self.world.state.delete_node(name))

    @rule(taken=st.lists(NAMES, unique=True), back=st.randoms(use_true_random=False))
    def what_if(self, taken: list[str], back: Any) -> None:
        before = shown(self.world.table, self.world), dict(self.world.table._choices._made)
        names = set(self.world.state.row_of)
        with WithoutPods(self.world.view) as what_if:
            for name in taken:
                what_if.take(f"default/{name}")
            if set(self.world.state.row_of) == names:
                assert shown(self.world.table, self.world) == shown(made_anew(self.world), self.world)
            back.shuffle(taken)
            for name in taken:
                what_if.put_back(f"default/{name}")
        assert (shown(self.world.table, self.world), dict(self.world.table._choices._made)) == before

    @rule()
    def rebuild(self) -> None:
        before = shown(self.world.table, self.world)
        self.world.table.rebuild()
        assert shown(self.world.table, self.world) == before

    @rule()
    def look_at_what_has_changed(self) -> None:
        table = self.world.table
        version, before = self.read
        rows = table.changed_since(version)
        now = np.column_stack([table.free_milli, table.model, table.device_memory])
        if rows is not None and now.shape[1] == before.shape[1]:
            same = np.ones(len(now), dtype=bool)
            same[rows] = same[len(before) :] = False
            assert (now[same] == before[same[: len(before)]]).all()
        self.read = (table.version, now)

    @invariant()
    def cards_of_one_version_are_the_same(self) -> None:
        table, (version, n_rows, before) = self.world.table, self.cards
        columns = (table.n_cards, table.n_devices, table.model, table.device_memory)
        now = [list(table.models), *(column.tolist() for column in columns)]
        if (table.cards_version, len(table.model)) == (version, n_rows):
            assert now == before
        self.cards = (table.cards_version, len(table.model), now)

    @invariant()
    def it_is_what_a_new_one_would_be(self) -> None:
        assert shown(self.world.table, self.world) == shown(made_anew(self.world), self.world)

    @invariant()
    def every_pod_has_what_it_says(self) -> None:
        world, table = self.world, self.world.table
        held: dict[str, list[Fraction]] = {}
        for uid, seat in world.state.seat_of.items():
            pod = world.state.pods[uid]
            demand = gpu_demand(pod, table.options)
            devices = table.devices_of(uid)
            if demand is None:
                assert devices == ()
                continue
            if uid not in world.cluster.assumed and (said := indices_of(pod, demand)) is not None:
                assert devices == said
            n, memory = int(table.n_devices[seat.node]), int(table.device_memory[seat.node])
            share = Fraction(demand.milli, 1000)
            if demand.memory_units:
                units = memory or card_memory(pod) or 1  # nodes that say nothing: what the annotation of the pod says
                share = min(Fraction(1), max(share, Fraction(demand.memory_units, units)))
            used = held.setdefault(pod.node, [Fraction(0)] * n)
            for device in devices:
                if device < n:
                    used[device] += share
        over = 0
        for name, used in held.items():
            assert self.world.free(name) == [max(0, floor(1000 * (1 - one))) for one in used]
            over += sum(one > 1 for one in used) if world.state.nodes[world.state.row_of[name]] else 0
        assert table.conflicts() >= over

    @invariant()
    def choices_are_those_of_pods_that_sit(self) -> None:
        world = self.world
        assert world.table._choices._made.keys() <= world.state.seat_of.keys()
        assert world.table._row_of.keys() <= world.state.seat_of.keys()

    def teardown(self) -> None:
        for i in range(10):
            self.world.delete(f"p{i}")
        table = self.world.table
        assert not table._choices and not table._row_of and not table.conflicts()
        assert all(not node.holders and node.free == [1000] * node.cards.n for node in table._nodes.values())


AnythingGoes.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
TestAnythingGoes = AnythingGoes.TestCase
