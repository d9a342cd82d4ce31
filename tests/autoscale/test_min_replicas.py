"""The real horizontal pod autoscaler scales a Deployment ahead of its load by minReplicas, without any metrics adapter,
and the process `autoscale` raises it with the rights and under the policies that are shipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from autoscaling.replicas.horizontal_autoscalers import ASKS_LABEL, LEFT_UNTIL, ORIGINAL, RAISED
from forecast_scheduler.cli import run
from kube.client.pod_writes import MERGE
from testing.processes.scorer_process import ROOT, ScorerProcess
from testing.servers.applying import Applier
from testing.servers.audit import Audit
from testing.servers.kustomize import built, built_from
from testing.servers.metrics_server import GROUP, MetricsServer
from testing.waiting import eventually
from tests.autoscale.conftest import BUSY, QUIET
from tests.autoscale.scaled_service import HPAS, OURS, ScaledService, scaled_service
from tests.deploy.rights import OF_EVERYBODY, Installed, account_of, granted

pytestmark = pytest.mark.long

PART: Final = "autoscaler"
SERVICE: Final = "metrics-server"
EXAMPLE: Final = ROOT / "deploy" / "examples" / "autoscaling" / "hpa.yaml"
EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/shop/events"
AHEAD, PAST = "3h", "60s"
"""Lead times: one that reaches into the ramp of an hour from now, and one that does not."""
HELD: Final = "20s"


@dataclass
class World:
    service: ScaledService
    installed: Installed
    models: Path
    directory: Path
    _n: int = 0

    def process(self, lead: str) -> ScorerProcess:
        """A process with the rights of the account."""
        self._n += 1
        settings: dict[str, Any] = {
            "scorer": {"usage_every": "1s", "model_every": "1s", "overview_every": "1s"},
            "autoscale": {
                "every": "1s",
                "act_every": "1s",
                "replicas": {"lead": lead, "window": "30s"},
                "min_replicas": {"enabled": True, "most_share": 1, "hold": HELD},
                "leader_election": {"duration": "3s", "renew_deadline": "2s", "retry_period": "0.5s"},
            },
        }
        arguments = (
            *("--kubeconfig", self.installed.kubeconfig(PART), "--models", self.models),
            *("--prometheus", self.service.prometheus.url),
        )
        directory = self.directory / f"autoscale-{self._n}"
        return ScorerProcess(directory, *arguments, settings=settings, command="autoscale", forked=True)

    def minimum(self) -> int:
        """Value and record never disagree."""
        found = self.service.hpa()
        there = found["metadata"].get("annotations", {})
        minimum = int(found["spec"]["minReplicas"])
        assert (ORIGINAL in there) == (RAISED in there) and there.get(RAISED, str(minimum)) == str(minimum)
        return minimum

    def patch(self, **body: Any) -> None:
        """Change the autoscaler as its owner."""
        self.installed.applier.send("PATCH", f"{HPAS}/web", body, kind=MERGE)

    def ask(self, label: str | None) -> None:
        self.patch(metadata={"labels": {ASKS_LABEL: label}})

    def is_raised(self) -> bool:
        return self.minimum() == BUSY and self.service.replicas() == BUSY

    def is_back(self) -> bool:
        found = self.service.hpa()["metadata"].get("annotations", {})
        return self.minimum() == QUIET and not {ORIGINAL, RAISED} & set(found)

    def reasons(self) -> set[str]:
        """Of the events that we posted."""
        items = self.service.resources.request("GET", EVENTS).body["items"]
        return {one["reason"] for one in items if one.get("reportingController") == "forecast-scheduler/autoscaler"}


@pytest.fixture
def world(tmp_path: Path, ramp_models: Path) -> Iterator[World]:
    audit = Audit(tmp_path, [account_of(PART)])
    components = ["components/autoscaler", "components/autoscaler-writes"]
    manifests = built_from(tmp_path / "built", resources=["overlays/observe"], components=components)
    with ExitStack() as stack:
        service = stack.enter_context(scaled_service(tmp_path, SERVICE, audit.arguments))
        applier = stack.enter_context(Applier(service.plane))
        applier.apply_all(one for one in manifests if one["kind"] == "PriorityClass")
        applier.apply_all(built("crds/reservations"))
        installed = Installed(service.plane, applier, audit, manifests)
        certificate = service.authority.issue(SERVICE, dns=[f"{SERVICE}.{OURS}.svc"])
        metrics = stack.enter_context(MetricsServer(service.each, certificate))
        registered = {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"v1beta1.{GROUP}"},
            "spec": {
                "group": GROUP,
                "version": "v1beta1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {"namespace": OURS, "name": SERVICE},
            },
        }
        service.register(registered, metrics.port)
        (hpa,) = yaml.safe_load_all(EXAMPLE.read_text())
        hpa["spec"]["metrics"].pop()  # the external one
        hpa["spec"]["behavior"] = {"scaleDown": {"stabilizationWindowSeconds": 0}}
        assert service.resources.request("POST", HPAS, hpa).status == 201
        # The controller rounds what each pod uses up to thousandths: a little less than two pods' target needs two.
        service.cores = 0.96
        audit.forget()
        yield World(service, installed, ramp_models, tmp_path)


def test_replicas_come_before_the_load_and_go_after_it_whatever_is_killed(world: World) -> None:
    service = world.service
    with world.process(AHEAD) as process:
        assert eventually(lambda: process.metric("forecast_autoscale_acting") == 1), process.log[-3000:]
        assert world.minimum() == QUIET, "its owner has not asked"
        world.ask("true")
        assert eventually(lambda: world.minimum() > QUIET), (service.hpa(), process.log[-3000:])
        process.kill()
    # Killed in the middle, and there is no metrics adapter: the controller grows to what is written.
    minimum = world.minimum()
    assert eventually(lambda: service.replicas() >= minimum), service.hpa()
    with world.process(AHEAD) as process:
        assert eventually(world.is_raised), (service.hpa(), process.log[-3000:])
        assert service.hpa()["metadata"]["annotations"][ORIGINAL] == str(QUIET)
        process.kill()

    # The ramp is over: another process lowers it, and the controller goes back by its own metric.
    with world.process(PAST) as process:
        assert eventually(world.is_back), (service.hpa(), process.log[-3000:])
        assert eventually(lambda: service.replicas() == QUIET), service.hpa()
        process.kill()
    with world.process(AHEAD) as process:
        assert eventually(world.is_raised), (service.hpa(), process.log[-3000:])
        assert process.terminate() == 0
    assert world.is_back(), service.hpa()

    with world.process(AHEAD) as process:
        assert eventually(world.is_raised), (service.hpa(), process.log[-3000:])
        process.kill()
    assert run(["autoscale", "--release", "--kubeconfig", str(world.installed.kubeconfig(PART))]) == 0
    assert world.is_back(), service.hpa()

    # What a person or a GitOps tool sets meanwhile is theirs.
    with world.process(AHEAD) as process:
        assert eventually(world.is_raised), (service.hpa(), process.log[-3000:])
        world.patch(spec={"minReplicas": 3})
        assert eventually(lambda: LEFT_UNTIL in service.hpa()["metadata"]["annotations"]), process.log[-3000:]
        assert service.hpa()["spec"]["minReplicas"] == 3
        assert eventually(lambda: "MinReplicasTakenOver" in world.reasons())
        world.ask(None)
        assert eventually(lambda: LEFT_UNTIL not in service.hpa()["metadata"].get("annotations", {}))
        assert process.terminate() == 0
    assert service.hpa()["spec"]["minReplicas"] == 3
    assert world.reasons() >= {"MinReplicasRaised", "MinReplicasRestored"}
    used, refused = (getattr(world.installed.audit, what)(account_of(PART)) for what in ("used", "refused"))
    rights = granted(world.installed.manifests, PART)
    assert (refused, used - rights - OF_EVERYBODY) == (set(), set())
    of_hpas = {(verb, "autoscaling", "horizontalpodautoscalers") for verb in ("list", "patch")}
    assert used >= of_hpas | {("list", "", "resourcequotas"), ("create", "events.k8s.io", "events")}
