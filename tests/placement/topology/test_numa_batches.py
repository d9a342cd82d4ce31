"""Batches over nodes with zones: like pods go where they go one by one, and nowhere where they do not fit."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kube.objects.objects import ContainerRequests, PodInfo, QosClass
from placement.topology.node_zones import CpuManager, NodeZones, Scope, TopologyManagerPolicy
from tests.placement.topology.gang_world import GangWorld, gang, gpu_node, worker
from tests.placement.topology.zones_world import zones

CPUS = st.sampled_from(
    [
        CpuManager(),
        CpuManager(threads_per_core=2),
        CpuManager(threads_per_core=2, full_cores=True),
        CpuManager(threads_per_core=2, spreads_threads=True),
    ]
)
NODE = st.tuples(
    st.sampled_from(list(TopologyManagerPolicy)),
    st.sampled_from(list(Scope)),
    st.lists(st.integers(0, 9), min_size=1, max_size=3),
    CPUS,
)
PODS = st.tuples(st.lists(st.sampled_from([1.0, 1.0, 2.0, 3.0, 4.0, 0.5]), min_size=1, max_size=2), st.integers(1, 6))


def published(at: int, what: tuple[TopologyManagerPolicy, Scope, list[int], CpuManager]) -> NodeZones:
    policy, scope, left, cpus = what
    available = ({"cpu": float(one)} for one in left)
    return zones(f"n-{at}", *available, policy=policy, scope=scope, total={"cpu": 10.0}, cpus=cpus)


def like(at: int, cores: list[float], count: int) -> list[PodInfo]:
    one = worker("p", cpu=sum(cores))
    containers = ContainerRequests((), tuple({"cpu": core} for core in cores)) if len(cores) > 1 else None
    made = replace(one, qos=QosClass.GUARANTEED, containers=containers)
    return [replace(made, name=f"{at}-{n}", uid=f"{at}-{n}") for n in range(count)]


def world_of(nodes: list[tuple[TopologyManagerPolicy, Scope, list[int], CpuManager]], silent: int) -> GangWorld:
    made = GangWorld([gpu_node(f"n-{at}", 0, cpu=30.0) for at in range(len(nodes) + silent)])
    for at, one in enumerate(nodes):
        made.zones.news.put(published(at, one))
    return made


@settings(max_examples=60, deadline=None)
@given(st.lists(NODE, min_size=1, max_size=4), st.integers(0, 1), st.lists(PODS, min_size=1, max_size=4))
@example([(TopologyManagerPolicy.SINGLE_NUMA_NODE, Scope.CONTAINER, [3, 3], CpuManager())] * 2, 0, [([3.0, 3.0], 4)])
@example(
    [(TopologyManagerPolicy.BEST_EFFORT, Scope.POD, [5, 9], CpuManager(threads_per_core=2))] * 3,
    1,
    [([4.0], 6), ([1.0], 6)],
)
def test_a_batch_goes_where_its_pods_go_one_by_one(
    nodes: list[tuple[TopologyManagerPolicy, Scope, list[int], CpuManager]],
    silent: int,
    batches: list[tuple[list[float], int]],
) -> None:
    at_once, one_by_one = world_of(nodes, silent), world_of(nodes, silent)
    for at, (cores, count) in enumerate(batches):
        pods = like(at, cores, count)
        placed = at_once.place(gang(1), pods)
        assert placed == one_by_one.place(gang(1), pods, one_by_one=True)
