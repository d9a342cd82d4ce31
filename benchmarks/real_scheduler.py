"""The real kube-scheduler on a real API server, with or without the extender, for benchmarks and tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from base.arrays import Ints
from benchmarks.evening_rollout import EveningRollout
from benchmarks.night_jobs import NAMESPACE, NightJobs
from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from forecast.resources import RESOURCES
from testing.processes.scorer_process import ScorerProcess
from testing.servers.cluster_objects import ClusterWriter, Manifest
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.prometheus import PrometheusServer

ROOT = Path(__file__).parents[1]


def node_usage_rules(path: Path, usage: Mapping[str, Sequence[float]], *, every: str = "1s") -> Path:
    """Recording rules that give every node a usage of all resources: as fresh as if it were scraped so often."""
    rules = [
        {
            "record": "forecast:node_usage",
            "labels": {"node": node, "resource": resource.name},
            "expr": f"vector({float(amount)!r})",
        }
        for node, amounts in usage.items()
        for resource, amount in zip(RESOURCES, amounts, strict=True)
    ]
    path.write_text(yaml.safe_dump({"groups": [{"name": "usage", "interval": every, "rules": rules}]}))
    return path


def wait_until_bound(
    writer: ClusterWriter, n_pods: int, seconds: float, end_of_log: Callable[[], str]
) -> dict[str, str]:
    """Node by pod name, once `n_pods` are bound. Raises TimeoutError with what the scheduler said last."""
    deadline = time.monotonic() + seconds
    while True:
        listed = writer.list_all("pods")
        bound = {one["metadata"]["name"]: one["spec"]["nodeName"] for one in listed if one["spec"].get("nodeName")}
        if len(bound) >= n_pods:
            return bound
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(bound)} of {n_pods} pods were bound in {seconds:.0f} s: {end_of_log()}")
        time.sleep(0.2)


@dataclass
class Cluster:
    """A control plane with the nodes of a rollout, and a Prometheus that measures them; use as a context manager.

    directory : for models, rules, logs
    """

    rollout: EveningRollout
    directory: Path

    def __enter__(self) -> Cluster:
        self._stack = ExitStack()
        self.plane = self._stack.enter_context(ControlPlane())
        self.writer = self._stack.enter_context(ClusterWriter(self.plane))
        self.directory.mkdir(parents=True, exist_ok=True)
        self.models = self.directory / "models"
        Registry(str(self.models)).publish(artefact_of(self.rollout.model, datetime.now(UTC)))
        leases = "forecast-scheduler"
        for namespace in sorted({leases, *(key.namespace for key in self.rollout.keys)} - {"default"}):
            self.writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        self.writer.create_many(self.rollout.nodes())
        self.sets: list[Manifest] = self.writer.create_many(self.rollout.replica_sets())
        usage = 0.02 * self.rollout.capacity
        self.running_jobs: list[Manifest] = []
        if (jobs := self.rollout.jobs) is not None:
            usage = usage + jobs.usage(*usage.shape)
            self.running_jobs = self._start(jobs)
        now = dict(zip(self.rollout.node_names, usage.tolist(), strict=True))
        rules = node_usage_rules(self.directory / "usage.yaml", now)
        self.prometheus = self._stack.enter_context(PrometheusServer(self.directory / "data", rule_files=[rules]))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def extender(self, name: str, *arguments: str, url: str = "", **settings: Any) -> ScorerProcess:
        """The command `extender` for this cluster, not started yet.

        url      : of a proxy to the API server; "" = it talks to the API server itself
        settings : of the group `extender`
        """
        return self._process("extender", name, *arguments, url=url, settings={"extender": settings})

    def advisor(self, name: str, **settings: Any) -> ScorerProcess:
        """The command `advise` for this cluster, not started yet. settings: of the group `advise`"""
        return self._process("advise", name, settings={"advise": settings})

    def loops(self, name: str, **settings: Any) -> ScorerProcess:
        """The command `schedule` for this cluster, on all its nodes, not started yet.

        settings : of the group `schedule`
        """
        return self._process("schedule", name, settings={"schedule": {"domain": ""} | settings})

    def _process(
        self, command: str, name: str, *arguments: str, url: str = "", settings: Mapping[str, Any]
    ) -> ScorerProcess:
        kubeconfig = self.plane.write_kubeconfig("admin", self.plane.token, url=url)
        quick = {"usage_every": "1s", "model_every": "1s", "overview_every": "60s"}
        return ScorerProcess(
            self.directory / name,
            "--kubeconfig", kubeconfig, "--models", self.models, "--prometheus", self.prometheus.url,
            *arguments,
            settings={"scorer": quick, **settings},
            command=command,
        )  # fmt: skip

    def place(self, extenders: Sequence[Mapping[str, Any]], seconds: float = 120, **fields: Any) -> Ints:
        """Schedule all pods of the rollout, (n_pods,) row of the node of each; they are gone afterwards.

        fields : of the specification of each pod, such as its schedulerName
        """
        with KubeScheduler(self.plane, extenders) as scheduler:
            made = self.writer.create_many(self.rollout.pods(self.sets, **fields))
            bound = wait_until_bound(self.writer, len(made) + len(self.running_jobs), seconds, scheduler.end_of_log)
        self.writer.delete_many(made)
        return self.rollout.placement(bound)

    def _start(self, jobs: NightJobs) -> list[Manifest]:
        """CronJob pods as they run when the services are released; returns the pods."""
        now = datetime.now(UTC)
        self.writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        made = self.writer.create_many(jobs.jobs(now))
        return self.writer.create_many(jobs.pods(made, self.rollout.node_names, now))
