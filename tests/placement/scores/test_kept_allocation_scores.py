"""Scores of requests that are kept: whatever happens to nodes and pods, they are those that are worked out anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cluster.tables.state import ClusterState
from kube.objects.objects import NodeInfo, PodInfo
from placement.scores.default_scores import allocation_scores, kept_allocation_scores
from placement.scores.plugin_weights import PLUGIN_WEIGHTS
from tests.placement.small_cluster import node_of, pod_of, view_of_state

NAMES = [f"n{number}" for number in range(6)]


def node(name: str, cores: float) -> NodeInfo:
    return replace(node_of(name), allocatable={"cpu": cores, "memory": 8e9, "pods": 110.0})


def pod(name: str, node: str, cpu: float, memory: float = 1e9) -> PodInfo:
    requests = {"cpu": cpu, "memory": memory}
    return replace(pod_of(name, node=node), uid=name, requests=requests, nonzero_requests=(cpu, memory))


SIZES = [pod("small", "", 0.5), pod("large", "", 2.0, 3e9)]
nodes = st.builds(node, st.sampled_from(NAMES), st.sampled_from([0.0, 4.0, 16.0]))
pods = st.builds(pod, st.sampled_from(["p0", "p1", "p2"]), st.sampled_from(["", *NAMES]), st.sampled_from([0.25, 1.0]))
seated = st.lists(st.sampled_from(NAMES[:3]), min_size=1, max_size=3)


@given(steps=st.lists(st.one_of(nodes, pods, seated, st.sampled_from([*NAMES, "p0", "p1", "p2"])), max_size=20))
def test_what_is_kept_is_what_is_worked_out_anew(steps: list[object]) -> None:
    state = ClusterState()
    for name in NAMES[:3]:
        state.put_node(node(name, 8.0))
    view = view_of_state(state)
    for number, step in enumerate(steps):
        match step:
            case NodeInfo():
                state.put_node(step)
            case PodInfo():
                state.put_pod(step)
            case list() if all(name in state.row_of for name in step):
                waiting = [pod(f"s{number}-{place}", "", 1.0) for place in range(len(step))]
                for one in waiting:
                    state.put_pod(one)
                there = [replace(one, node=name) for one, name in zip(waiting, step, strict=True)]
                state.seat_all(there, [state.row_of[name] for name in step])
            case str() if step in NAMES:
                state.delete_node(step)
            case str():
                state.delete_pod(step)
            case _:
                pass
        every = np.arange(view.n_rows)
        for size in SIZES:
            for landed in (0, 1):
                expected = allocation_scores(size, view, every, PLUGIN_WEIGHTS, landed=landed)
                kept = kept_allocation_scores(size, view, PLUGIN_WEIGHTS, landed=landed)
                np.testing.assert_array_equal(kept, expected)
