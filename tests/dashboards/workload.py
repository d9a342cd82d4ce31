"""What is placed in the world's cluster: something for every scheduler, each on nodes of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from testing.clusters.gpu_nodes import gpu_node, gpu_pod
from testing.clusters.job_world import JOBS, job_pod, our_virtual_node
from testing.clusters.own_nodes import group, groups, member, our_node, our_pod
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter, Manifest, owned_by, pod, replica_set
from testing.servers.control_plane.control_plane import ControlPlane

LAB: Final = "lab"
PROVIDER: Final = "alpha"
_OURS: Final = "forecast-scheduler.io/"

SCHEDULE: Final[dict[str, Any]] = {
    "profiles": ["online", "job", "gpu"],
    "job": {
        "storm": {"threshold": 5, "lead": "40m"},
        "valley": {"first_wait": "0s"},
        "serverless": {
            "providers": [{"name": PROVIDER, "most_pods": 100, "price_cpu_hour": 0.04, "start_timeout": "1h"}]
        },
    },
    "gpu": {"tide": {"every": "1s"}},
}
"""Settings of `schedule` under which all of it happens soon."""


@dataclass(frozen=True, slots=True)
class Workload:
    """
    placed   : names of pods that get a node
    again    : some more of each kind, for later: what is counted for the first time has grown from nothing, which no
               rate shows
    released : a job that is held until it is told to be wanted sooner
    """

    placed: Sequence[str]
    again: Sequence[Manifest]
    released: Manifest

    def release(self, writer: ClusterWriter) -> None:
        """Wanted within a minute."""
        writer.patch(self.released, {"metadata": {"annotations": {f"{_OURS}latest-start": "50s"}}})


def fill(plane: ControlPlane, writer: ClusterWriter, owner: Manifest) -> Workload:
    """Pods of this owner for kube-scheduler, and for each of our profiles what it is for."""
    for name in ("forecast-scheduler", LAB):
        writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    writer.create_many(
        [
            *(our_node(f"own-{number}", cpu=16) for number in range(2)),
            *(gpu_node(f"gpu-{number}") for number in range(2)),
            our_virtual_node("virtual-0", PROVIDER),
        ]
    )
    with Api(plane) as api:
        training = api.request("POST", f"/apis/apps/v1/namespaces/{LAB}/statefulsets", _training())
    with groups(plane) as those:
        those.create(group("gang", members=3))
    namespace = owner["metadata"]["namespace"]
    inference = writer.create(replica_set("rank-7d9f5c6b8d", namespace=LAB, deployment="rank"))
    said = {f"{_OURS}tide": "training"}
    pods = [
        *(pod(f"released-{number}", namespace=namespace, owner=owner, cpu="50m") for number in range(4)),
        *(our_pod(f"online-{number}") for number in range(4)),
        *(member("gang", number) for number in range(3)),
        *(gpu_pod(f"rank-7d9f5c6b8d-{number}", gpus=1, namespace=LAB, owner=inference) for number in range(2)),
        *(gpu_pod(f"shared-{number}", milli=300, says={"gpu-type": "A100"}) for number in range(2)),
        *(_training_pod(training, number, said) for number in range(2)),
        *(job_pod(f"load-{number}", annotations={"place": "cluster"}) for number in range(2)),
        job_pod("punctual", annotations={"deadline": "2h", "latest-start": "1m", "place": "cluster"}),
        job_pod("elsewhere", annotations={"place": "serverless"}),
    ]
    writer.create(_cron_job("report", pods=6))
    writer.create_many(pods)
    for number in range(3):  # in the small hours the valley is now, and one of them does not wait for it
        writer.create(job_pod(f"patient-{number}", annotations={"latest-start": "20h", "expected-run": "30m"}))
    released = writer.create(job_pod("sooner", annotations={"latest-start": "20h", "expected-run": "30m"}))
    again = [
        pod("released-again", namespace=namespace, owner=owner, cpu="50m"),
        our_pod("online-again"),
        gpu_pod("shared-again", milli=300, says={"gpu-type": "A100"}),
        job_pod("load-again", annotations={"place": "cluster"}),
    ]
    return Workload([one["metadata"]["name"] for one in pods], again, released)


def _training() -> Manifest:
    """A StatefulSet of two replicas with a GPU each that may have four."""
    template = gpu_pod("template", gpus=1)
    labels = {"app": "train"}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "train", "annotations": {f"{_OURS}min-replicas": "1", f"{_OURS}max-replicas": "2"}},
        "spec": {
            "replicas": 2,
            "serviceName": "train",
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {f"{_OURS}tide": "training"}},
                "spec": template["spec"],
            },
        },
    }


def _training_pod(training: Manifest, number: int, said: dict[str, str]) -> Manifest:
    made = gpu_pod(f"train-{number}", gpus=1, namespace=LAB, owner=training)
    made["metadata"]["annotations"] = said
    made["metadata"]["ownerReferences"] = [owned_by(training)]
    return made


def _cron_job(name: str, *, pods: int) -> Manifest:
    job = {"parallelism": pods, "completions": pods, "template": {"spec": job_pod("template")["spec"]}}
    assert job["template"]["spec"]["schedulerName"] == JOBS  # type: ignore[index]
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedule": "*/10 * * * *", "timeZone": "Etc/UTC", "jobTemplate": {"spec": job}},
    }
