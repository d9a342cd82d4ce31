"""`status`: of an installation on a real API server, by the shipped rights of people on call, while parts fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from forecast.hot_share import HOT_SHARE
from forecast_scheduler.cli import run
from kube.client.kubernetes_client import api_client
from kube.leader_election.record import lease_body
from placement.gate_exemptions import ADVICE
from scorer.service.app import create_app
from serving.kubernetes_access import KubernetesAccess
from serving.token_reviews import api_server_ask
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api
from testing.servers.applying import Applier
from testing.servers.cluster_objects import ClusterWriter, Manifest, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.servers.prometheus import PrometheusServer
from testing.waiting import eventually
from tests.live_cluster.proxy_hop import passing_on
from tests.scorer.service.fake_scorer import FakeScorer
from tests.serving.served import served

OURS = "forecast-scheduler"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{OURS}/deployments"
JOBS = f"/apis/batch/v1/namespaces/{OURS}/jobs"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{OURS}/leases"
NIGHT, ITS_POD = "forecast-scheduler-trainer-1", "forecast-scheduler-trainer-1-x"
WHY = "no node has been scraped for two days: mend the scraping"
SETTINGS = {"settings.yaml": "prometheus: {url: 'http://prometheus-k8s.monitoring:9090'}"}
PROMETHEUS = {"metadata": {"name": "prometheus-k8s"}, "spec": {"ports": [{"name": "web", "port": 9090}]}}
FILES = (
    "base/common/namespace.yaml",
    "base/common/readers.yaml",
    "base/scorer/rbac.yaml",
    "base/scorer/scorer.yaml",
    "base/advisor/advisor.yaml",
    "base/trainer/trainer.yaml",
    "components/reports-through-api-server/rbac.yaml",
)


class OnCall:
    """Asks by a kubeconfig of its own."""

    def __init__(self, plane: ControlPlane, api: Api, address: str, name: str) -> None:
        path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
        token = api.request("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
        self._kubeconfig = plane.write_kubeconfig(name, token, url=address)

    def status(self, capfd: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
        """Return the exit status and the figures."""
        capfd.readouterr()
        status = run(["status", "-o", "json", "--kubeconfig", str(self._kubeconfig)])
        said = capfd.readouterr()
        assert said.out, said.err
        return status, json.loads(said.out)


def have_ready(api: Api, part: str, number: int) -> None:
    api.request(
        "PATCH",
        f"{DEPLOYMENTS}/forecast-scheduler-{part}/status",
        {"status": {"replicas": 2, "readyReplicas": number, "availableReplicas": number}},
    )


def have_lease(api: Api, *, ago: float) -> None:
    """Of an advisor that renewed it this many seconds ago."""
    name = "forecast-scheduler-advisor"
    body = json.loads(lease_body(OURS, name, holder="a_1", seconds=4, now=datetime.now(UTC).timestamp() - ago))
    if any(one["metadata"]["name"] == name for one in api.request("GET", LEASES)["items"]):
        api.request("PATCH", f"{LEASES}/{name}", {"spec": body["spec"]})
    else:
        api.request("POST", LEASES, body)


def have_night(api: Api, *, succeeded: bool) -> None:
    """Create the Job of a night that has ended, with a pod."""
    labels = {"app.kubernetes.io/name": "forecast-scheduler-trainer"}
    spec = {"containers": [{"name": "trainer", "image": "i"}], "restartPolicy": "Never"}
    job = {"metadata": {"name": NIGHT, "labels": labels}, "spec": {"template": {"spec": spec}}}
    api.request("POST", JOBS, job)
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    before, after = ("SuccessCriteriaMet", "Complete") if succeeded else ("FailureTarget", "Failed")
    ended = {"status": "True", "lastTransitionTime": now, "lastProbeTime": now}
    status: dict[str, Any] = {
        "startTime": now,
        "conditions": [{"type": before} | ended, {"type": after} | ended],
        "succeeded" if succeeded else "failed": 1,
    }
    status |= {"completionTime": now} if succeeded else {}
    api.request("PATCH", f"{JOBS}/{NIGHT}/status", {"status": status})


def trainer_pod() -> Manifest:
    """The pod of the night, as the namespace admits it."""
    made = pod(ITS_POD, namespace=OURS, node="n", labels={"batch.kubernetes.io/job-name": NIGHT})
    confined = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    made["spec"]["containers"][0]["securityContext"] = confined
    made["spec"]["securityContext"] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return made


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as running, Api(running) as api, Applier(running) as applier:
        applier.apply_all(one for _, one in shipped(*FILES) if one["kind"] != "PodDisruptionBudget")
        core = "/api/v1/namespaces"
        api.request("POST", core, {"metadata": {"name": "monitoring"}})
        api.request("POST", f"{core}/monitoring/services", PROMETHEUS)
        settings = {"metadata": {"name": "forecast-scheduler-settings"}, "data": SETTINGS}
        api.request("POST", f"{core}/{OURS}/configmaps", settings)
        for name in ("on-call", "stranger"):
            api.request("POST", f"{core}/default/serviceaccounts", {"metadata": {"name": name}})
        rbac, group = "/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
        # As docs/operate/security.md has it.
        rule = {"apiGroups": [""], "resources": ["services/proxy"], "resourceNames": ["http:prometheus-k8s:9090"]}
        ask = {"metadata": {"name": "ask-prometheus"}, "rules": [rule | {"verbs": ["get"]}]}
        api.request("POST", f"{rbac}/namespaces/monitoring/roles", ask)
        subjects = [{"kind": "ServiceAccount", "namespace": "default", "name": "on-call"}]
        for path, kind, role in (
            (f"namespaces/{OURS}/rolebindings", "Role", "forecast-scheduler-reports"),
            ("clusterrolebindings", "ClusterRole", "forecast-scheduler-status"),
            ("namespaces/monitoring/rolebindings", "Role", "ask-prometheus"),
        ):
            reference = {"apiGroup": group, "kind": kind, "name": role}
            binding = {"metadata": {"name": "on-call"}, "roleRef": reference, "subjects": subjects}
            api.request("POST", f"{rbac}/{path}", binding)
        yield running


def test_a_kubeconfig_says_what_is_degraded_and_what_to_do(
    plane: ControlPlane, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rule = {"alert": "ForecastNotReady", "expr": "vector(1)", "labels": {"severity": "warning"}}
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"groups": [{"name": "g", "interval": "1s", "rules": [rule]}]}))
    logs = {ITS_POD: f"forecast-scheduler: {WHY}\n"}
    with ExitStack() as stack:
        api, writer = stack.enter_context(Api(plane)), stack.enter_context(ClusterWriter(plane))
        account = f"/api/v1/namespaces/{OURS}/serviceaccounts/forecast-scheduler-scorer/token"
        token = api.request("POST", account, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
        access = KubernetesAccess(api_server_ask(api_client(plane.write_kubeconfig("scorer", token)), 3.0))
        scorer = stack.enter_context(served(create_app(FakeScorer(5), access=access, hot=HOT_SHARE)))
        prometheus = stack.enter_context(PrometheusServer(tmp_path / "blocks", rule_files=[rules]))
        services = {"forecast-scheduler-scorer": scorer, "prometheus-k8s": prometheus.url}
        address = stack.enter_context(passing_on(plane, services, logs))
        on_call, stranger = (OnCall(plane, api, address, name) for name in ("on-call", "stranger"))
        have_ready(api, "scorer", 2)
        have_ready(api, "advisor", 2)
        have_night(api, succeeded=True)

        def of_on_call() -> tuple[int, dict[str, Any]]:
            have_lease(api, ago=0)
            return on_call.status(capfd)

        # The advisor is not behind the hop: it is one line, and no fault.
        assert eventually(lambda: of_on_call()[1]["alerts"]), "the alert fires"
        status, found = of_on_call()
        assert status == 1
        assert [one["what"] for one in found["degraded"]] == ["ForecastNotReady (warning): "]
        states = {one["name"]: one["state"] for one in found["parts"]}
        assert states.pop("scorer") == states.pop("advisor") == "runs"
        assert set(states.values()) == {"not installed"}
        assert found["model"]["version"] == FakeScorer(5).status().model.version  # type: ignore[union-attr]
        assert found["store"]["answers"] and found["held"]["pods"] == []
        assert [one["what"] for one in found["not_known"]][:1] == ["advisor"]

        # The advisor is dead, Prometheus gone, and the night failed: in this order. A pod is held for a moment.
        api.request("DELETE", f"{JOBS}/{NIGHT}", {"propagationPolicy": "Background"})
        assert eventually(lambda: not api.request("GET", JOBS)["items"])
        have_night(api, succeeded=False)
        writer.create(trainer_pod())
        held = pod("held")
        held["spec"]["schedulingGates"] = [{"name": ADVICE}]
        writer.create(held)
        have_lease(api, ago=60)
        prometheus.stop()
        status, found = on_call.status(capfd)
        assert status == 1
        assert found["held"]["pods"] == ["default/held"]
        leader, store, night = [one["what"] for one in found["degraded"]]
        assert leader.startswith("advisor has no leader (a has not renewed its Lease for 6")
        assert store.startswith("usage is not measured, and tonight's run will fail: Prometheus")
        assert "503 no endpoints available" in store
        assert night.endswith(f"ago: {WHY}")
        assert found["do_first"].endswith("logs deployment/forecast-scheduler-advisor --tail 20")

        # No replica of the scorer is ready any more.
        have_ready(api, "scorer", 0)
        status, found = of_on_call()
        assert (status, found["degraded"][0]["what"].partition(" (")[0]) == (1, "scorer is down")

        # Without rights nothing is called healthy.
        status, found = stranger.status(capfd)
        assert status == 1 and {one["state"] for one in found["parts"]} == {"not known"}
        assert any("deployments.apps is forbidden" in one["why"] for one in found["not_known"])
