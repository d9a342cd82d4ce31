"""The real horizontal pod autoscaler scales a Deployment ahead of its load, by our external metrics API."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import yaml

from testing.processes.scorer_process import ROOT, ScorerProcess
from testing.servers.control_plane.aggregation import port_of
from testing.waiting import eventually
from tests.autoscale.conftest import BUSY, CORES
from tests.autoscale.scaled_service import HPAS, OURS, ScaledService, scaled_service

SERVICE = "forecast-scheduler-external-metrics"
EXAMPLE = ROOT / "deploy" / "examples" / "autoscaling" / "hpa.yaml"
API_SERVICE = ROOT / "deploy" / "components" / "external-metrics" / "api-service.yaml"
API = "/apis/external.metrics.k8s.io/v1beta1"
METRIC = (
    f"{API}/namespaces/shop/forecast_service_expected_load?labelSelector=kind%3DDeployment,name%3Dweb,resource%3Dcpu"
)


@dataclass
class World:
    """Processes of ours beside the service that they scale."""

    service: ScaledService

    def autoscale(self, directory: Path, models: Path) -> ScorerProcess:
        """A process of ours."""
        service = self.service
        certificate, key = service.authority.issue("external-metrics", dns=[f"{SERVICE}.{OURS}.svc"])
        serving = {"port": 0, "tls_cert": str(certificate), "tls_key": str(key)}
        external = {"enabled": True, "serving": serving}
        replicas = {"lead": "3h", "window": "30s", "fresh": "5s"}
        settings = {
            "scorer": {"usage_every": "1s", "model_every": "1s", "overview_every": "1s"},
            "autoscale": {"every": "1s", "replicas": replicas, "external_metrics": external},
        }
        arguments = (
            *("--kubeconfig", service.plane.kubeconfig, "--models", models),
            *("--prometheus", service.prometheus.url),
        )
        return ScorerProcess(directory, *arguments, settings=settings, command="autoscale", forked=True)

    def publish(self, process: ScorerProcess) -> None:
        """Register the API, at the port on which it is served here."""
        (found,) = yaml.safe_load_all(API_SERVICE.read_text())
        self.service.register(found, port_of(_url(process)))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with scaled_service(tmp_path, SERVICE) as made:
        yield World(made)


def _url(process: ScorerProcess) -> str:
    """Where the API is served."""
    return process.said()[-1].split()[-1]


def _value(world: World) -> float | None:
    answer = world.service.resources.request("GET", METRIC)
    items = answer.body.get("items", [])
    return float(items[0]["value"].removesuffix("m")) / 1000 if items else None


def _is_active(world: World) -> bool:
    """Whether the autoscaler has a metric to scale by."""
    found = {one["type"]: one["status"] for one in world.service.hpa()["status"]["conditions"]}
    return bool(found["ScalingActive"] == "True")


def test_the_autoscaler_adds_replicas_before_the_load_comes(world: World, ramp_models: Path, tmp_path: Path) -> None:
    with world.autoscale(tmp_path / "autoscale", ramp_models) as process:
        world.publish(process)
        expected = BUSY * CORES
        assert eventually(lambda: abs((_value(world) or 0) - expected) < 0.2 * expected), process.log
        shown = process.metric("forecast_service_expected_load")
        assert shown == pytest.approx(expected, rel=0.2)

        (hpa,) = yaml.safe_load_all(EXAMPLE.read_text())
        answer = world.service.resources.request("POST", HPAS, hpa)
        assert (answer.status, answer.warnings) == (201, ()), answer.body
        assert eventually(lambda: world.service.replicas() == 6), world.service.hpa()

        # Without Prometheus nothing is said, and the autoscaler keeps what there is.
        world.service.prometheus.stop()
        assert eventually(lambda: _value(world) is None)
        assert eventually(lambda: not _is_active(world)), world.service.hpa()
        assert world.service.replicas() == 6
        world.service.prometheus.start()
        assert eventually(lambda: _value(world) is not None)
    # Nor does it do anything while no process of ours runs.
    assert eventually(lambda: world.service.resources.request("GET", API).status == 503)
    assert world.service.replicas() == 6
    with world.autoscale(tmp_path / "again", ramp_models) as process:
        world.publish(process)
        assert eventually(lambda: _value(world) is not None), process.log
        assert world.service.replicas() == 6
        _refuses_others(world, process, tmp_path)


def _refuses_others(world: World, process: ScorerProcess, directory: Path) -> None:
    """Only the aggregation layer may ask, by its certificate."""
    url = _url(process)
    trusting = ssl.create_default_context(cafile=str(world.service.authority.ca))
    trusting.check_hostname = False
    with pytest.raises(httpx.TransportError):
        httpx.get(url + API, verify=trusting)
    trusting.load_cert_chain(*world.service.authority.issue("somebody-else"))
    with pytest.raises(httpx.TransportError):
        httpx.get(url + API, verify=trusting)
    trusting.load_cert_chain(*world.service.authority.issue("front-proxy-client"))
    assert httpx.get(url + API, verify=trusting).status_code == 200
    assert world.service.resources.request("GET", f"{API}/namespaces/shop/other").status == 404
    assert world.service.resources.request("GET", METRIC.replace("%3D", "%3E")).status == 400
