"""Rules about nodes on a real API server, for profiles that share the nodes."""

from __future__ import annotations

from testing.clusters.gpu_nodes import gpu_node, gpu_pod
from testing.clusters.job_world import job_pod
from testing.clusters.own_nodes import LONG, bound, nodes_of, our_node, our_pod
from testing.processes.scorer_process import eventually
from testing.servers.cluster_objects import ClusterWriter
from tests.schedule.conftest import Started

H100 = "NVIDIA-H100-80GB-HBM3"


def test_pods_of_no_profile_take_the_cards_that_they_do_not_name(writer: ClusterWriter, start: Started) -> None:
    """The H100 node is the largest by far: whoever goes by requests alone goes there."""
    writer.create_many([gpu_node("h100", 4, model=H100, cpu=200), gpu_node("a100", 4, cpu=8), our_node("plain", cpu=4)])
    hard = {"cards": {"protection": "hard", "rare_types": ["H100"]}}
    process = start(profiles=["online", "gpu", "job"], node_rules=hard)
    writer.create_many([our_pod(f"online-{i}", cpu="500m") for i in range(6)])
    writer.create_many([job_pod(f"job-{i}", cpu="500m") for i in range(6)])
    writer.create_many([gpu_pod(f"any-{i}", gpus=1) for i in range(4)])
    writer.create_many([gpu_pod("named", gpus=4, says={"gpu-type": "H100"}), gpu_pod("five", gpus=1)])
    assert eventually(lambda: bound(writer) == 17, LONG), (nodes_of(writer), process.log[-3000:])
    at = nodes_of(writer)
    assert {name for name, node in at.items() if node == "h100"} == {"named"}
    light = [at[name] for name in at if name.startswith(("online", "job"))]
    assert light.count("plain") >= 7 and set(light) == {"plain", "a100"}  # nodes without cards are full first
