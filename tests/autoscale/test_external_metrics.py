"""The real horizontal pod autoscaler scales a Deployment ahead of its load, by our external metrics API."""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from testing.authority import Authority
from testing.processes.scorer_process import ROOT, ScorerProcess
from testing.rebalancing.live_two_peaks import deployment
from testing.servers.cluster_objects import ClusterWriter, Manifest, node
from testing.servers.control_plane.aggregation import aggregation_flags, port_of, service_on_loopback
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.controller_manager.controller_manager import WORKLOADS, ControllerManager
from testing.servers.exporter import Exporter
from testing.servers.prometheus import PrometheusServer
from testing.servers.workload_kubelets import WorkloadKubelets
from testing.waiting import eventually
from tests.autoscale.conftest import BUSY, CORES, QUIET
from tests.live_cluster.custom_resources import CustomResources

OURS = "forecast-scheduler"
SERVICE = "forecast-scheduler-external-metrics"
EXAMPLE = ROOT / "deploy" / "examples" / "autoscaling" / "hpa.yaml"
API_SERVICE = ROOT / "deploy" / "components" / "external-metrics" / "api-service.yaml"
API = "/apis/external.metrics.k8s.io/v1beta1"
METRIC = (
    f"{API}/namespaces/shop/forecast_service_expected_load?labelSelector=kind%3DDeployment,name%3Dweb,resource%3Dcpu"
)
HPAS = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"


@dataclass
class World:
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

    def page(self) -> str:
        """CPU seconds of each pod so far, as cAdvisor counts them."""
        now = time.monotonic()
        pods = [one["metadata"]["name"] for one in self.pods() if one["spec"].get("nodeName")]
        for pod in pods:
            self._used[pod] = self._used.get(pod, 0.0) + self.cores * (now - self._at) / len(pods)
        self._at = now
        lines = [
            f'container_cpu_usage_seconds_total{{namespace="shop",pod="{pod}",container="main"}} {self._used[pod]:.6f}'
            for pod in pods
        ]
        return "# TYPE container_cpu_usage_seconds_total counter\n" + "\n".join(lines) + "\n"

    def replicas(self) -> int:
        (found,) = self.writer.list_all("deployments")
        return int(found["spec"]["replicas"])

    def autoscale(self, directory: Path, models: Path) -> ScorerProcess:
        """A process of ours."""
        certificate, key = self.authority.issue("external-metrics", dns=[f"{SERVICE}.{OURS}.svc"])
        serving = {"port": 0, "tls_cert": str(certificate), "tls_key": str(key)}
        external = {"enabled": True, "serving": serving}
        replicas = {"lead": "3h", "window": "30s", "fresh": "5s"}
        settings = {
            "scorer": {"usage_every": "1s", "model_every": "1s", "overview_every": "1s"},
            "autoscale": {"every": "1s", "replicas": replicas, "external_metrics": external},
        }
        arguments = ("--kubeconfig", self.plane.kubeconfig, "--models", models, "--prometheus", self.prometheus.url)
        return ScorerProcess(directory, *arguments, settings=settings, command="autoscale", forked=True)

    def publish(self, process: ScorerProcess) -> None:
        """Register the API, at the port on which it is served here."""
        (found,) = yaml.safe_load_all(API_SERVICE.read_text())
        found["spec"]["service"] = {"name": SERVICE, "namespace": OURS, "port": port_of(_url(process))}
        found["spec"]["caBundle"] = base64.b64encode(self.authority.ca.read_bytes()).decode()
        path = "/apis/apiregistration.k8s.io/v1/apiservices"
        self.resources.request("DELETE", f"{path}/{found['metadata']['name']}")
        answer = self.resources.request("POST", path, found)
        assert answer.status == 201, answer.body
        assert eventually(lambda: self.resources.request("GET", API).status == 200)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    authority = Authority(tmp_path, "authority")
    with ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(api_server_arguments=aggregation_flags(tmp_path, authority)))
        writer = stack.enter_context(ClusterWriter(plane, patience_seconds=30))
        resources = stack.enter_context(CustomResources(plane))
        stack.enter_context(WorkloadKubelets(plane))
        controllers = (*WORKLOADS, "horizontal-pod-autoscaler-controller")
        stack.enter_context(ControllerManager(plane, controllers, ["--horizontal-pod-autoscaler-sync-period=1s"]))
        stack.enter_context(KubeScheduler(plane))
        made = World(plane, writer, resources, authority, None)  # type: ignore[arg-type]
        exporter = stack.enter_context(Exporter(made.page))
        scrapes = [
            {"job_name": "cadvisor", "scrape_interval": "1s", "static_configs": [{"targets": [exporter.address]}]}
        ]
        made.prometheus = stack.enter_context(PrometheusServer(tmp_path / "prometheus", scrapes=scrapes))
        for name in ("shop", OURS):
            writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        writer.create(node("a", cpu="64"))
        resources.request("POST", f"/api/v1/namespaces/{OURS}/services", service_on_loopback(OURS, SERVICE))
        writer.create(deployment("web", QUIET, {"cpu": "1"}, namespace="shop"))
        assert eventually(lambda: sum(one["status"].get("phase") == "Running" for one in made.pods()) == 2)
        yield made


def _url(process: ScorerProcess) -> str:
    """Where the API is served."""
    return process.said()[0].split()[-1]


def _value(world: World) -> float | None:
    answer = world.resources.request("GET", METRIC)
    items = answer.body.get("items", [])
    return float(items[0]["value"].removesuffix("m")) / 1000 if items else None


def _hpa(world: World) -> dict[str, Any]:
    (found,) = world.resources.request("GET", HPAS).body["items"]
    return dict(found)


def _is_active(world: World) -> bool:
    """Whether the autoscaler has a metric to scale by."""
    found = {one["type"]: one["status"] for one in _hpa(world)["status"]["conditions"]}
    return bool(found["ScalingActive"] == "True")


def test_the_autoscaler_adds_replicas_before_the_load_comes(world: World, ramp_models: Path, tmp_path: Path) -> None:
    with world.autoscale(tmp_path / "autoscale", ramp_models) as process:
        world.publish(process)
        expected = BUSY * CORES
        assert eventually(lambda: abs((_value(world) or 0) - expected) < 0.2 * expected), process.log
        shown = process.metric("forecast_service_expected_load")
        assert shown == pytest.approx(expected, rel=0.2)

        (hpa,) = yaml.safe_load_all(EXAMPLE.read_text())
        answer = world.resources.request("POST", HPAS, hpa)
        assert (answer.status, answer.warnings) == (201, ()), answer.body
        assert eventually(lambda: world.replicas() == 6), _hpa(world)

        # Without Prometheus nothing is said, and the autoscaler keeps what there is.
        world.prometheus.stop()
        assert eventually(lambda: _value(world) is None)
        assert eventually(lambda: not _is_active(world)), _hpa(world)
        assert world.replicas() == 6
        world.prometheus.start()
        assert eventually(lambda: _value(world) is not None)
    # Nor does it do anything while no process of ours runs.
    assert eventually(lambda: world.resources.request("GET", API).status == 503)
    assert world.replicas() == 6
    with world.autoscale(tmp_path / "again", ramp_models) as process:
        world.publish(process)
        assert eventually(lambda: _value(world) is not None), process.log
        assert world.replicas() == 6
        _refuses_others(world, process, tmp_path)


def _refuses_others(world: World, process: ScorerProcess, directory: Path) -> None:
    """Only the aggregation layer may ask, by its certificate."""
    url = _url(process)
    trusting = ssl.create_default_context(cafile=str(world.authority.ca))
    trusting.check_hostname = False
    with pytest.raises(httpx.TransportError):
        httpx.get(url + API, verify=trusting)
    trusting.load_cert_chain(*world.authority.issue("somebody-else"))
    with pytest.raises(httpx.TransportError):
        httpx.get(url + API, verify=trusting)
    trusting.load_cert_chain(*world.authority.issue("front-proxy-client"))
    assert httpx.get(url + API, verify=trusting).status_code == 200
    assert world.resources.request("GET", f"{API}/namespaces/shop/other").status == 404
    assert world.resources.request("GET", METRIC.replace("%3D", "%3E")).status == 400
