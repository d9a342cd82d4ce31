"""Cards and groups together: a batch goes where its pods go one by one, and nobody where it may not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.objects.objects import NodeInfo, PodInfo
from placement.node_rule_settings import Borrow, CardOptions, GroupOwner, MachineGroupOptions
from tests.placement.card_types.card_world import PREFERRED, TYPE
from tests.placement.machine_groups.group_world import KEY, GroupWorld, group_node, of_team

MODELS = ("A100", "T4", "V100")
KEPT = 0.25
LENDS = MachineGroupOptions(
    name="g", owners=(GroupOwner(namespaces=("own",)),), only=False, borrow=Borrow.IDLE, keep_free=KEPT
)

NODES = st.lists(
    st.tuples(st.sampled_from([None, "g", "h"]), st.sampled_from(MODELS), st.integers(0, 4)), min_size=1, max_size=8
)
BATCHES = st.lists(
    st.tuples(
        st.sampled_from(["own", "shop"]),
        st.sampled_from([None, "g", "h", "g,h"]),
        st.booleans(),
        st.integers(0, 2),
        st.sampled_from(["", "A100", "A100,T4"]),
        st.sampled_from(["", "V100,A100"]),
        st.integers(1, 8),
    ),
    max_size=5,
)


def node(at: int, group: str | None, model: str, n: int) -> NodeInfo:
    made = group_node(f"n-{at}", group, n=n, cpu=8.0)
    return replace(made, labels={**made.labels, "nvidia.com/gpu.product": model}) if n else made


def like(at: int, what: tuple[str, str | None, bool, int, str, str, int]) -> list[PodInfo]:
    team, groups, borrows, n, required, preferred, count = what
    made = of_team("p", team, groups, borrows=borrows, n=n, cpu=1.0, priority=-1 if borrows else 0)
    said = {
        **made.annotations,
        **({TYPE: required} if required else {}),
        **({PREFERRED: preferred} if preferred else {}),
    }
    return [replace(made, name=f"{at}-{i}", uid=f"{at}-{i}", annotations=said) for i in range(count)]


def world_of(nodes: Sequence[tuple[str | None, str, int]]) -> GroupWorld:
    world = GroupWorld([node(at, *one) for at, one in enumerate(nodes)], (), LENDS)
    world.filters = (*world.filters, world.plugin)
    world.preferences = (world.order, world.plugin)
    return world


@settings(max_examples=50, deadline=None)
@given(nodes=NODES, batches=BATCHES)
def test_a_batch_goes_where_its_pods_go_one_by_one(
    nodes: list[tuple[str | None, str, int]], batches: list[tuple[str, str | None, bool, int, str, str, int]]
) -> None:
    at_once, one_by_one = world_of(nodes), world_of(nodes)
    assert at_once.card_options == CardOptions()
    for at, what in enumerate(batches):
        pods = like(at, what)
        placed = at_once.place(pods)
        assert placed == one_by_one.place(pods, one_by_one=True)
        for world in (at_once, one_by_one):
            world.look()
        lent = [name for name in placed if what[2] and labelled(at_once, name) == "g" and not is_own(what)]
        if lent:
            assert_kept(at_once, n_cards=what[3])


def is_own(what: tuple[str, str | None, bool, int, str, str, int]) -> bool:
    return what[0] == "own" and "g" in (what[1] or "")


def labelled(world: GroupWorld, name: str) -> str:
    found = world.state.nodes[world.state.row_of[name]]
    assert found is not None
    return found.labels.get(KEY, "")


def assert_kept(world: GroupWorld, *, n_cards: int) -> None:
    """After somebody borrowed: a share of the cores of the group is free, and of its cards if it took any."""
    rows = np.array([row for name, row in world.state.row_of.items() if labelled(world, name) == "g"])
    cpu = world.state.kinds["cpu"]
    free = (world.state.allocatable_units - world.state.requested_units)[rows, cpu].sum()
    assert free >= KEPT * world.state.allocatable_units[rows, cpu].sum()
    if n_cards:
        thousandths = np.maximum(world.table.free_milli[rows], 0).sum()
        assert thousandths >= KEPT * 1000 * world.table.n_devices[rows].sum()
