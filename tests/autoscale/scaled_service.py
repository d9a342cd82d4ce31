"""A Deployment `web` that really runs and is scaled, with a load that a test sets, and all that this needs: control
plane, controllers, kubelets, kube-scheduler, Prometheus.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from testing.authority import Authority
from testing.rebalancing.live_two_peaks import deployment
from testing.servers.cluster_objects import ClusterWriter, Manifest, node
from testing.servers.control_plane.aggregation import aggregation_flags, service_on_loopback
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.controller_manager.controller_manager import WORKLOADS, ControllerManager
from testing.servers.exporter import Exporter
from testing.servers.prometheus import PrometheusServer
from testing.servers.workload_kubelets import WorkloadKubelets
from testing.waiting import eventually
from tests.autoscale.conftest import CORES, QUIET
from tests.live_cluster.custom_resources import CustomResources

OURS: Final = "forecast-scheduler"
HPAS: Final = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"
_CONTROLLER: Final = (
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=0s",
)


@dataclass
class ScaledService:
    """cores: that all pods of the Deployment use together"""

    plane: ControlPlane
    writer: ClusterWriter
    resources: CustomResources
    authority: Authority
    prometheus: PrometheusServer
    cores: float = QUIET * CORES
    _used: dict[str, float] = field(default_factory=dict)
    _at: float = field(default_factory=time.monotonic)

    def pods(self) -> list[Manifest]:
        found = [one for one in self.writer.list_all("pods") if one["metadata"].get("labels", {}).get("app") == "web"]
        return [one for one in found if "deletionTimestamp" not in one["metadata"]]

    def each(self) -> Mapping[str, float]:
        """Cores of each pod that runs."""
        pods = [one["metadata"]["name"] for one in self.pods() if one["spec"].get("nodeName")]
        return {pod: self.cores / len(pods) for pod in pods}

    def page(self) -> str:
        """CPU seconds of each pod so far, as cAdvisor counts them."""
        now, each = time.monotonic(), self.each()
        for pod, cores in each.items():
            self._used[pod] = self._used.get(pod, 0.0) + cores * (now - self._at)
        self._at = now
        lines = [
            f'container_cpu_usage_seconds_total{{namespace="shop",pod="{pod}",container="main"}} {self._used[pod]:.6f}'
            for pod in each
        ]
        return "# TYPE container_cpu_usage_seconds_total counter\n" + "\n".join(lines) + "\n"

    def replicas(self) -> int:
        (found,) = (one for one in self.writer.list_all("deployments") if one["metadata"]["name"] == "web")
        return int(found["spec"]["replicas"])

    def hpa(self) -> dict[str, Any]:
        (found,) = self.resources.request("GET", HPAS).body["items"]
        return dict(found)

    def register(self, api_service: Manifest, port: int) -> None:
        """Register an API that is served on loopback at a port. Its Service is there."""
        api_service["spec"]["service"] |= {"port": port}
        api_service["spec"]["caBundle"] = base64.b64encode(self.authority.ca.read_bytes()).decode()
        path = "/apis/apiregistration.k8s.io/v1/apiservices"
        self.resources.request("DELETE", f"{path}/{api_service['metadata']['name']}")
        answer = self.resources.request("POST", path, api_service)
        assert answer.status == 201, answer.body
        api = f"/apis/{api_service['spec']['group']}/{api_service['spec']['version']}"
        assert eventually(lambda: self.resources.request("GET", api).status == 200)


@contextmanager
def scaled_service(directory: Path, service: str, flags: Sequence[str] = ()) -> Iterator[ScaledService]:
    """Start all of it. service: of an API on loopback, in our namespace; flags: of the API server in addition"""
    authority = Authority(directory, "authority")
    with ExitStack() as stack:
        arguments = (*aggregation_flags(directory, authority), *flags)
        plane = stack.enter_context(ControlPlane(api_server_arguments=arguments))
        writer = stack.enter_context(ClusterWriter(plane, patience_seconds=30))
        resources = stack.enter_context(CustomResources(plane))
        stack.enter_context(WorkloadKubelets(plane))
        controllers = (*WORKLOADS, "horizontal-pod-autoscaler-controller")
        stack.enter_context(ControllerManager(plane, controllers, _CONTROLLER))
        stack.enter_context(KubeScheduler(plane))
        made = ScaledService(plane, writer, resources, authority, None)  # type: ignore[arg-type]
        exporter = stack.enter_context(Exporter(made.page))
        scrapes = [
            {"job_name": "cadvisor", "scrape_interval": "1s", "static_configs": [{"targets": [exporter.address]}]}
        ]
        made.prometheus = stack.enter_context(PrometheusServer(directory / "prometheus", scrapes=scrapes))
        for name in ("shop", OURS):
            writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        writer.create(node("a", cpu="64"))
        resources.request("POST", f"/api/v1/namespaces/{OURS}/services", service_on_loopback(OURS, service))
        writer.create(deployment("web", QUIET, {"cpu": "1"}, namespace="shop"))
        assert eventually(lambda: sum(one["status"].get("phase") == "Running" for one in made.pods()) == 2)
        yield made
