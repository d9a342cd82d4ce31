"""Who holds which GPUs: the same sums whatever the order, and as if counted anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.tables.state import ClusterState
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo, PodPhase
from placement.devices.declared_devices import node_gpus, pod_gpus
from placement.node_rule_settings import DeviceOptions
from profiles.gpu.tide.gpu_holders import TideTable, pool_of
from tests.profiles.gpu.tide.tide_world import gpu_node, inference, trainer

CARDS = DeviceOptions()


def table_of(state: ClusterState, pool_label: str = "") -> TideTable:
    return TideTable(
        state,
        pod_gpus=pod_gpus(CARDS),
        node_gpus=node_gpus(CARDS),
        pool_of=pool_of(CARDS, pool_label, lambda node: "foreign" not in node.labels),
    )


def test_pools_capacity_and_who_holds_what() -> None:
    state = ClusterState()
    table = table_of(state)
    shared = inference(7, "node-1", gpus=0.0)
    shared = replace(shared, annotations={**shared.annotations, "forecast-scheduler.io/gpu-milli": "250"})
    foreign = gpu_node("node-9")
    nodes = [
        gpu_node("node-0"),
        gpu_node("node-1", product="T4"),
        gpu_node("node-2", unschedulable=True),
        replace(foreign, labels={**foreign.labels, "foreign": ""}),
        replace(gpu_node("node-3"), labels={}),
    ]
    for one in nodes:
        table.apply(state.put_node(one))
    pods = [inference(0, "node-0"), trainer(0, "node-0", gpus=4.0), trainer(1, "node-2"), shared, inference(8)]
    for pod in pods:
        table.apply(state.put_pod(pod))
    assert table.pools == ["A100", "T4", "unknown"]
    assert table.capacity().tolist() == [10, 8, 8], "of a cordoned node what is held there"
    assert table.largest().tolist() == [8, 8, 8]
    assert table.training().tolist() == [6, 0, 0] and table.others().tolist() == [1, 0.25, 0]
    assert table.pods[inference(8).uid].row == -1
    assert table.pods[trainer(0).uid].workload == ServiceKey("lab", "StatefulSet", "train")

    table.apply(state.put_pod(replace(pods[1], phase=PodPhase.SUCCEEDED)))
    table.apply(state.delete_pod(pods[0].uid))
    assert table.training().tolist() == [2, 0, 0] and table.others().tolist() == [0, 0.25, 0]
    table.apply(state.delete_node("node-1"))
    assert table.largest().tolist() == [8, 0, 8]
    assert table.capacity().tolist() == [10, 0, 8] and table.others().tolist() == [0, 0, 0]


def some_pod(number: int, is_training: bool, on: str, ended: bool) -> PodInfo:
    pod = trainer(number, on) if is_training else inference(number, on)
    return replace(pod, phase=PodPhase.FAILED) if ended else pod


steps = st.lists(
    st.one_of(
        st.builds(some_pod, st.integers(0, 5), st.booleans(), st.sampled_from(["", "node-0", "node-1"]), st.booleans()),
        st.builds(
            lambda n, product, cordoned: gpu_node(f"node-{n}", product=product, unschedulable=cordoned),
            st.integers(0, 2),
            st.sampled_from(["A100", "T4"]),
            st.booleans(),
        ),
        st.sampled_from(["uid-train-0", "uid-train-1", "node-0", "node-1"]),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_following_is_the_same_as_counting_anew(happens: list[object]) -> None:
    state = ClusterState()
    table = table_of(state)
    for one in happens:
        match one:
            case PodInfo():
                changes = state.put_pod(one)
            case str():
                changes = state.delete_node(one) if one.startswith("node") else state.delete_pod(one)
            case _:
                changes = state.put_node(one)  # type: ignore[arg-type]
        table.apply(changes)
    anew = table_of(state)
    anew.rebuild()
    for mine, theirs in ((table.capacity(), anew.capacity()), (table.training(), anew.training())):
        of_pool = dict(zip(anew.pools, theirs.tolist(), strict=True))
        assert {p: x for p, x in zip(table.pools, mine.tolist(), strict=True) if x} == {
            p: x for p, x in of_pool.items() if x
        }
    assert np.isclose(table.others().sum(), anew.others().sum())
    assert {uid: (one.row, one.gpus) for uid, one in table.pods.items()} == {
        uid: (one.row, one.gpus) for uid, one in anew.pods.items()
    }
