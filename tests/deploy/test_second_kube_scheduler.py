"""The component second-kube-scheduler, run for real: its configuration and its rights, the extender beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from testing.processes.scorer_process import ScorerProcess, settings_of
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import ClusterWriter, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.control_plane.pool import control_plane
from testing.servers.kustomize import DEPLOY, built_from
from testing.waiting import eventually

COMPONENT: Final = "components/second-kube-scheduler"
LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/forecast-scheduler/leases/forecast-scheduler-kube-scheduler"
NAME: Final = "forecast-kube-scheduler"


def _configuration(extender: str, kubeconfig: Path) -> dict[str, Any]:
    """As shipped, but for addresses, and without TLS, which test_extender_in_cluster.py has."""
    configuration: dict[str, Any] = yaml.safe_load((DEPLOY / COMPONENT / "scheduler-config.yaml").read_text())
    (entry,) = configuration["extenders"]
    del entry["tlsConfig"]
    entry |= {"urlPrefix": extender, "enableHTTPS": False, "httpTimeout": "10s"}
    return configuration | {"clientConnection": {"kubeconfig": str(kubeconfig)}}


def _kubeconfig(plane: ControlPlane, api: Api) -> Path:
    path = "/api/v1/namespaces/forecast-scheduler/serviceaccounts/forecast-scheduler-kube-scheduler/token"
    token = api.request("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    return plane.write_kubeconfig("second", token)


def test_it_places_the_pods_that_name_it_by_the_extender_and_leaves_the_others(tmp_path: Path) -> None:
    with control_plane() as plane, ClusterWriter(plane) as writer, Api(plane) as api:
        for path, manifest in shipped("base/common/namespace.yaml", f"{COMPONENT}/rbac.yaml"):
            api.request("POST", path, manifest)
        writer.create_many(node(f"node-{number}") for number in range(3))
        settings = settings_of() | {"extender": {"deadline": "9s"}}
        beside = ScorerProcess(tmp_path, "--kubeconfig", plane.kubeconfig, settings=settings, command="extender")
        with beside as extender:
            configuration = _configuration(extender.url, _kubeconfig(plane, api))
            with KubeScheduler(plane, settings=configuration) as scheduler:
                writer.create_many([pod("ours", scheduler_name=NAME), pod("theirs")])

                def node_of(name: str) -> str:
                    found = api.request("GET", f"/api/v1/namespaces/default/pods/{name}")
                    return str(found["spec"].get("nodeName", ""))

                assert eventually(lambda: bool(node_of("ours"))), scheduler.log.read_text()[-3000:]
                assert node_of("theirs") == ""
                # It leads by a Lease of its own: that of the control plane's scheduler stays free.
                assert api.request("GET", LEASE)["spec"]["holderIdentity"]
                leases = api.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")["items"]
                assert "kube-scheduler" not in {one["metadata"]["name"] for one in leases}
                metrics = extender.http.get("/metrics").text
                assert 'verb="prioritize"' in metrics and "forecast_ready 1.0" in metrics
                refused = [line for line in scheduler.log.read_text().splitlines() if "orbidden" in line]
                assert not refused, refused[:5]


def test_it_joins_an_overlay_and_the_image_is_named_once(tmp_path: Path) -> None:
    image = {"images": [{"name": "kube-scheduler", "newName": "registry.example/kube-scheduler", "newTag": "v1.37.2"}]}
    made = built_from(tmp_path / "both", resources=["overlays/extender"], components=[COMPONENT], **image)
    (deployment,) = [one for one in made if one["metadata"]["name"] == "forecast-scheduler-kube-scheduler"
                     and one["kind"] == "Deployment"]  # fmt: skip
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/kube-scheduler:v1.37.2"
