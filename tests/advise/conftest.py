"""A real API server with nodes and a model of their services; a kube-scheduler and advisors that tests start."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from placement.advice_gate import ADVICE
from testing.clusters.large_cluster import large_cluster
from testing.processes.scorer_process import ScorerProcess
from testing.processes.webhook_process import Api, WebhookProcess, configuration
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod, replica_set
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.waiting import eventually

N_NODES, N_SERVICES = 6, 3


@dataclass
class Site:
    """sets: a ReplicaSet of each service; models: directory of the registry that knows them."""

    plane: ControlPlane
    writer: ClusterWriter
    sets: Sequence[Manifest]
    models: Path

    def pods(self, prefix: str, n: int, *, gates: Sequence[str] = (ADVICE,), **spec: Any) -> list[Manifest]:
        """Create pods of all services in turn, held by these gates. spec: further fields of it."""
        return self.writer.create_many(
            _pod(f"{prefix}-{i:04d}", self.sets[i % len(self.sets)], gates, spec) for i in range(n)
        )

    def stored(self, prefix: str = "") -> list[Manifest]:
        """All pods whose names begin so."""
        return [one for one in self.writer.list_all("pods") if one["metadata"]["name"].startswith(prefix)]

    def held(self) -> list[str]:
        """Names of pods that our gate holds."""
        return [
            one["metadata"]["name"]
            for one in self.stored()
            if any(gate["name"] == ADVICE for gate in one["spec"].get("schedulingGates", []))
        ]

    def n_bound(self, prefix: str = "") -> int:
        """Pods that have a node."""
        return sum(1 for one in self.stored(prefix) if one["spec"].get("nodeName"))

    def await_bound(self, n: int, prefix: str = "", *, log: Callable[[], str] = lambda: "") -> None:
        """Wait until as many pods have a node."""
        assert eventually(lambda: self.n_bound(prefix) == n), f"{self.n_bound(prefix)} of {n}: {log()[-3000:]}"


def _pod(name: str, owner: Manifest, gates: Sequence[str], spec: Mapping[str, Any]) -> Manifest:
    made = pod(
        name,
        namespace=owner["metadata"]["namespace"],
        owner=owner,
        labels=owner["spec"]["selector"]["matchLabels"],
    )
    made["spec"] |= {"schedulingGates": [{"name": gate} for gate in gates]} | dict(spec)
    return made


def note_of(stored: Manifest) -> dict[str, Any]:
    """What the advisor wrote on a pod; {} = nothing."""
    return dict(json.loads(stored["metadata"].get("annotations", {}).get(ADVICE, "{}")))


@contextmanager
def webhook_in_front(api: Api, plane: ControlPlane, directory: Path, namespace: str) -> Iterator[WebhookProcess]:
    """The webhook as it is shipped, in a process of its own, and a namespace whose pods ask for advice."""
    settings = {"webhook": {"advice": {"alive_for": "2s"}}}
    with WebhookProcess(directory, plane.kubeconfig, settings=settings, forked=True) as webhook:
        api.create(configuration(webhook, failurePolicy="Fail"))
        api.patch({"kind": "Namespace", "metadata": {"name": namespace}}, {"metadata": {"labels": {ADVICE: "advise"}}})
        yield webhook


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = large_cluster(N_NODES, 60, N_SERVICES, first_day=datetime.now(UTC).date())
    Registry(str(tmp_path / "models")).publish(artefact_of(made.model, datetime.now(UTC)))
    with control_plane() as plane, ClusterWriter(plane) as writer:
        for name in ("forecast-scheduler", *sorted({service.namespace for service in made.model.services})):
            writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        writer.create_many(node(one.name, cpu="64", memory="256Gi", pods=1000) for one in made.nodes)
        sets = writer.create_many(
            replica_set(f"{one.name}-5d9c7b6f4d", namespace=one.namespace, deployment=one.name, desired_replicas=100)
            for one in made.model.services
        )
        yield Site(plane, writer, sets, tmp_path / "models")


Started = Callable[..., ScorerProcess]


@pytest.fixture
def start(site: Site, tmp_path: Path) -> Iterator[Started]:
    """start(url=of a proxy, models=another registry, **settings of `advise`) -> an advisor that is ready."""
    with ExitStack() as running:
        number = iter(range(100))

        def start(
            *arguments: str, url: str = "", models: Path | None = None, kubeconfig: Path | None = None, **advise: Any
        ) -> ScorerProcess:
            process = ScorerProcess(
                tmp_path / f"advise-{next(number)}",
                "--kubeconfig",
                kubeconfig or site.plane.write_kubeconfig("admin", site.plane.token, url=url),
                "--models",
                models or site.models,
                *arguments,
                settings={
                    "scorer": {"model_every": "1s", "overview_every": "1s"},
                    # With the default of two seconds a busy machine would let pods go without advice.
                    "advise": {"lease": {"enabled": False}, "gate_timeout": "60s"} | advise,
                },
                command="advise",
                forked=True,
            )
            running.enter_context(process)
            # A model is looked for once the cluster is read: until then there is no forecast, and no advice.
            assert models is not None or eventually(lambda: process.metric("forecast_degradation_level") < 3), (
                process.log
            )
            return process

        yield start
