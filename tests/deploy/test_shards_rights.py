"""Loops that share nodes use what the component shards grants their account, and are refused nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from scheduler.shards.node_shards import SHARD_LABEL
from scheduler.shards.passing_on import PASSED_ON
from testing.clusters.own_nodes import QUICK_LEASE, bound, our_node, our_pod, settings_of_schedule
from testing.processes.scorer_process import ScorerProcess
from testing.servers.applying import Applier
from testing.servers.audit import Audit
from testing.servers.cluster_objects import ClusterWriter, replica_set
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.kustomize import built_from
from testing.waiting import eventually
from tests.deploy.rights import Installed, account_of, granted

SHARDS: Final[dict[str, Any]] = {"enabled": True, "count": 4, "balance_every": "1s"}
N_NODES: Final = 9
"""All in one shard at first: most of them move to another."""

N_PODS: Final = 20 * N_NODES
"""As many as fill all nodes: those of one controller are too many for one replica."""


def test_two_replicas_use_what_the_component_grants_and_are_refused_nothing(tmp_path: Path) -> None:
    account = account_of("schedule")
    audit = Audit(tmp_path / "audit", [account])
    plain = built_from(tmp_path / "plain", resources=["overlays/own-loops"])
    manifests = built_from(tmp_path / "all", resources=["overlays/own-loops"], components=["components/shards"])
    added = granted(manifests, "schedule") - granted(plain, "schedule")
    assert added
    with (
        ControlPlane(api_server_arguments=audit.arguments) as plane,
        Applier(plane) as applier,
        ClusterWriter(plane) as writer,
    ):
        installed = Installed(plane, applier, audit, manifests)
        settings = settings_of_schedule(leader_election=QUICK_LEASE, shards=SHARDS)
        kubeconfig = installed.kubeconfig("schedule")
        replicas = [
            ScorerProcess(
                tmp_path / f"replica-{i}",
                "--kubeconfig",
                kubeconfig,
                settings=settings,
                ready=False,
                command="schedule",
            )
            for i in range(2)
        ]
        with replicas[0], replicas[1]:
            assert eventually(lambda: sum(one.metric("forecast_shards_owned") for one in replicas) == 4), _logs(
                replicas
            )
            writer.create_many(our_node(f"node-{i}", cpu=4, labels={SHARD_LABEL: "0"}) for i in range(N_NODES))
            assert eventually(lambda: ("patch", "", "nodes") in audit.used(account)), _logs(replicas)
            owner = writer.create(replica_set("large-7d9f", deployment="large"))
            writer.create_many(our_pod(f"pod-{i}", cpu="200m", owner=owner) for i in range(N_PODS))
            assert eventually(lambda: bound(writer) == N_PODS), _logs(replicas)
            assert any(PASSED_ON in one["metadata"].get("annotations", {}) for one in writer.list_all("pods"))
            assert all(one.terminate() == 0 for one in replicas)
        assert (added - audit.used(account), audit.refused(account)) == (set(), set()), _logs(replicas)
        assert all("ValidatingAdmissionPolicy" not in one.log for one in replicas), _logs(replicas)


def _logs(replicas: list[ScorerProcess]) -> str:
    return "\n\n".join(one.log[-3000:] for one in replicas)
