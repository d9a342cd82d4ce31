"""Taints, images and ports of nodes: whatever happens in whatever order, the tables are those of a rebuild."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cluster.tables.state import ClusterState
from kube.objects.constraints import HostPort
from kube.objects.objects import NodeImage, Taint
from placement.index.index import PlacementIndex
from placement.index.node_facts import HostPorts, NodeImages, NodeTaints
from testing.placement.views import node_named, pod_with

TAINTS = [Taint("a", "1", "NoSchedule"), Taint("a", "2", "NoSchedule"), Taint("b", "", "PreferNoSchedule")]
IMAGES = [NodeImage(("x:1", "x:latest"), 10), NodeImage(("y:1",), 20), NodeImage(("x:1", "x:1", "z:1"), 10)]
PORTS = [HostPort(ip, "TCP", port) for ip in ("0.0.0.0", "10.0.0.1") for port in (80, 443)]

names = st.sampled_from(["n0", "n1", "n2"])
nodes = st.builds(
    lambda name, taints, images, unschedulable: node_named(
        name, taints=taints, images=images, unschedulable=unschedulable
    ),
    names,
    st.lists(st.sampled_from(TAINTS), max_size=2),
    st.lists(st.sampled_from(IMAGES), max_size=3),
    st.booleans(),
)
pods = st.builds(
    lambda uid, node, ports: replace(pod_with(name=uid, node=node), host_ports=tuple(ports)),
    st.sampled_from(["p0", "p1", "p2", "p3"]),
    st.sampled_from(["", "n0", "n1", "n2"]),
    st.sets(st.sampled_from(PORTS), max_size=2),
)


def taints_of(table: NodeTaints) -> list[tuple[Taint, ...]]:
    return [table.sets[number] for number in table.set_of]


def images_of(table: NodeImages) -> dict[str, tuple[int, set[int]]]:
    names = {name for image in IMAGES for name in image.names}
    found = {name: table.find(name) for name in names}
    return {name: (image.size, image.rows) for name, image in found.items() if image is not None}


def ports_of(table: HostPorts, n_rows: int) -> list[list[bool]]:
    return [table.taken([port], n_rows).tolist() for port in PORTS]


@given(steps=st.lists(st.one_of(nodes, pods, names, st.sampled_from(["p0", "p1", "p2", "p3"])), max_size=25))
def test_followed_is_rebuilt(steps: list[object]) -> None:
    state = ClusterState()
    followed = PlacementIndex(state)
    for step in steps:
        if isinstance(step, str):
            changes = state.delete_pod(step) if step.startswith("p") else state.delete_node(step)
        elif hasattr(step, "taints"):
            changes = state.put_node(step)  # type: ignore[arg-type]
        else:
            changes = state.put_pod(step)  # type: ignore[arg-type]
        followed.apply(changes)

        rebuilt = PlacementIndex(state)
        assert taints_of(followed.taints) == taints_of(rebuilt.taints)
        assert followed.taints.unschedulable.tolist() == rebuilt.taints.unschedulable.tolist()
        assert len(followed.taints.set_of) == state.n_rows
        assert images_of(followed.images) == images_of(rebuilt.images)
        assert ports_of(followed.ports, state.n_rows) == ports_of(rebuilt.ports, state.n_rows)


@given(rows=st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 50), max_size=2)), max_size=60))
def test_sets_of_taints_that_nobody_has_are_forgotten(rows: list[tuple[int, list[int]]]) -> None:
    table = NodeTaints()
    for row, values in rows:
        table.node_changed(row, node_named("n", taints=[Taint("a", str(value), "NoSchedule") for value in values]))

    in_use = {tuple(one) for one in taints_of(table)}
    assert {one for one in table.sets if one} == in_use - {()}
    assert len(table.sets) <= 4 + 2, "a number for each row, that of no taints, and one while a row changes"
