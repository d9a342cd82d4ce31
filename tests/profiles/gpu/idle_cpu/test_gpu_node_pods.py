"""What pods with GPUs request, and where offline pods sit: the same whatever happened on the way."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.tracking import TrackedCluster
from kube.objects.objects import PodInfo
from profiles.gpu.idle_cpu.gpu_node_pods import GpuNodePods
from profiles.gpu.idle_cpu.offline_pods import OfflinePods
from scorer.options import ScorerOptions
from tests.profiles.gpu.idle_cpu.gpu_nodes import GPU, PROFILE, gpu_node, gpu_pod, offline_pod, plain_pod

MAKE = (gpu_pod, offline_pod, plain_pod)

steps = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(MAKE), st.sampled_from(("", "node-0", "node-1")), st.integers(0, 3)),
    max_size=30,
)


def tables() -> tuple[TrackedCluster, GpuNodePods]:
    cluster = TrackedCluster(ScorerOptions(), now=0.0)
    pods = GpuNodePods(cluster, OfflinePods(lambda pod: GPU in pod.requests, PROFILE))
    cluster.listeners.append(pods.apply)
    for name in ("node-0", "node-1"):
        cluster.apply(cluster.state.put_node(gpu_node(name)))
    return cluster, pods


@given(steps)
@settings(deadline=None)
def test_as_from_the_pods_that_sit(of_steps: list[tuple[int, object, str, int]]) -> None:
    cluster, tested = tables()
    now: dict[int, PodInfo] = {}
    for number, make, on, cpu in of_steps:
        assert callable(make)
        if number in now and not on:
            cluster.apply(cluster.state.delete_pod(now.pop(number).uid))
        else:
            now[number] = make(f"p{number}", on, cpu=float(cpu))
            cluster.apply(cluster.state.put_pod(now[number]))
    fresh = GpuNodePods(cluster, OfflinePods(lambda pod: GPU in pod.requests, PROFILE))
    for name, row in cluster.state.row_of.items():
        there = [pod for pod in now.values() if pod.node == name]
        cores = sum(pod.requests["cpu"] for pod in there if GPU in pod.requests)
        offline = {pod.uid for pod in there if pod.annotations}
        for one in (tested, fresh):
            assert one.requested_with_gpus()[row, 0] == 1000 * cores
            assert set(one.offline_on(row)) == offline and (row in one.rows_with_offline) == bool(offline)
    tested.rebuild()
    assert (tested.requested_with_gpus() == fresh.requested_with_gpus()).all()
