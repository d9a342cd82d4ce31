"""Everything that runs in the soak: a control plane, who plays kubelets and controllers, Prometheus, and our processes.

    with World(directory) as world:
        for event in DAY: ...                       # testing/soak/day.py

Nodes `node-0` to `node-5` and `spare-web` are kube-scheduler's, which asks our extender; `node-6` to `node-9`,
`node-gpu-*` and `spare-own` are of the domain of our own loops. Spare nodes fail: their kubelets are a process of
their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from forecast.resources import RESOURCES
from testing.clusters.gpu_nodes import gpu_node
from testing.clusters.job_world import PodHistory
from testing.clusters.own_nodes import LONG, OURS, our_node, settings_of_schedule
from testing.measured_cluster.cluster import Truth, build_truth
from testing.processes.command import command
from testing.processes.scorer_process import Asker, ScorerProcess, settings_of
from testing.processes.webhook_process import Api, manifests
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.exporter import Exporter
from testing.servers.job_controller import JobController
from testing.servers.prometheus import PrometheusServer
from testing.servers.provider_process import ProviderProcess
from testing.servers.shipped_extender import shipped_extender
from testing.soak.deployments import Deployments, Service
from testing.soak.watchman import Watchman
from testing.waiting import eventually

PATIENCE: Final = 60.0
"""Seconds for which those who play other parts wait for an API server that is being restarted."""

KUBE_NODES: Final = tuple(f"node-{i}" for i in range(6))
OUR_NODES: Final = tuple(f"node-{i}" for i in range(6, 10))
GPU_NODES: Final = ("node-gpu-0", "node-gpu-1")
SPARES: Final = {"spare-web": node("spare-web"), "spare-own": our_node("spare-own", cpu=16)}
_N_HISTORY_DAYS: Final = 8
_N_SERVICES, _FIRST_OF_OURS = 18, 12
_ROOT: Final = Path(__file__).parents[2]
_OF_A_CORE: Final = {"cpu": 1.0, "memory": 2e9, "disk": 2e6, "network": 1e7, "log": 2e4}
"""Base units that a pod uses of each resource beside a core."""
_BASE_CORES: Final = 0.4
# What is done every half minute or hour in production is done every few seconds: as many rounds in a shorter day.
_QUICK: Final = settings_of(self_check_every="5s", scale_out_every="5s", ladder={"fresh_usage": "15s"})["scorer"]


class World:
    """Context manager; on entry the first model has been trained and everything is ready.

    day, hour : the simulated ones
    grown     : services that were scaled up today
    ours      : our processes by name: scorer, extender, schedule-0, schedule-1
    """

    def __init__(self, directory: Path, *, seed: int = 0) -> None:
        self.directory, self.models = directory, directory / "models"
        self.rng = np.random.default_rng(seed)
        self.day, self.hour = 0, 0.0
        self.grown: list[str] = []
        self.ours: dict[str, ScorerProcess] = {}
        self._targets = directory / "targets.json"

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._open(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def _open(self, stack: ExitStack) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        truth = _truth(self.directory / "truth")
        self.plane = stack.enter_context(ControlPlane())
        self.writer = stack.enter_context(ClusterWriter(self.plane, in_flight=8, patience_seconds=PATIENCE))
        self.api = stack.enter_context(Api(self.plane))
        _furnish(self.api, self.writer)
        exporter = stack.enter_context(Exporter(self._usage))
        self._write_targets(exporter.address)
        self._exporter = exporter.address
        found = [{"files": [str(self._targets)], "refresh_interval": "1s"}]
        scrapes = [{"job_name": "soak", "honor_labels": True, "scrape_interval": "2s", "file_sd_configs": found}]
        self.history = stack.enter_context(PodHistory(self.plane, patience_seconds=PATIENCE))
        self.prometheus = stack.enter_context(PrometheusServer(truth.blocks, scrapes=scrapes))
        self.train()
        played = {"start_seconds": 0.3, "patience_seconds": PATIENCE}
        stack.enter_context(ProviderProcess(self.plane, "node-", **played))
        self.spare_kubelets = stack.enter_context(ProviderProcess(self.plane, "spare-", **played))
        self.jobs = stack.enter_context(JobController(self.plane, patience_seconds=PATIENCE))
        for name, (which, settings) in _PROCESSES.items():
            self.ours[name] = stack.enter_context(self._process(name, which, settings))
        self._write_targets(exporter.address)
        entry = shipped_extender(self.ours["extender"].url, httpTimeout="10s")
        brief = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 2}
        self.kube_scheduler = stack.enter_context(KubeScheduler(self.plane, [entry], settings=brief))
        self.deployments = stack.enter_context(Deployments(self.plane, _services(), patience_seconds=PATIENCE))
        body = {"pod": pod("asked", namespace="shop", cpu="500m"), "nodes": [*KUBE_NODES, *OUR_NODES]}
        self.asker = stack.enter_context(Asker(self.ours["scorer"].url, body, every=0.25))
        self.watchman = stack.enter_context(Watchman(self))
        self.awaits(lambda: not self.deployments.unsettled(), self.deployments.unsettled)

    def awaits(self, condition: Callable[[], bool], what: Callable[[], object], seconds: float = LONG) -> None:
        """Raises AssertionError with what there is instead."""
        assert eventually(condition, seconds), f"day {self.day}, {self.hour:04.1f} h: {what()}"

    def train(self) -> None:
        """The nightly run, as the command does it; it learns from the history that was back-filled."""
        place = ("--history", self.directory / "history", "--models", self.models)
        trained = command("train", "--prometheus", self.prometheus.url, *place, "--force", seconds=600)
        assert trained.returncode == 0, trained.stderr

    def metrics(self, name: str) -> str:
        """Text of the metrics of one of ours."""
        return self.ours[name].http.get("/metrics").raise_for_status().text

    def all_report(self, metric: str, value: float) -> bool:
        """Whether all of our processes say so."""
        return all(one.metric(metric) == value for one in self.ours.values())

    def reports(self, metric: str) -> dict[str, float]:
        """What they say."""
        return {name: one.metric(metric) for name, one in self.ours.items()}

    def restarted(self, name: str) -> None:
        """Start one of ours again that was killed; scraping goes on at its new address."""
        self.ours[name].start()
        self.ours[name].wait_ready(LONG)
        self._write_targets(self._exporter)

    def pods(self) -> list[Manifest]:
        """All."""
        return self.writer.list_all("pods")

    @contextmanager
    def _process(self, name: str, which: str, settings: Mapping[str, Any]) -> Iterator[ScorerProcess]:
        arguments = ("--kubeconfig", self.plane.kubeconfig, "--models", self.models)
        with ScorerProcess(
            self.directory / name, *arguments, "--prometheus", self.prometheus.url, settings=settings, command=which
        ) as process:
            yield process

    def _write_targets(self, exporter: str) -> None:
        ours = [{"targets": [one.url.partition("//")[2]], "labels": {"job": name}} for name, one in self.ours.items()]
        unfinished = self._targets.with_suffix(".new")
        unfinished.write_text(json.dumps([{"targets": [exporter]}, *ours]))
        unfinished.replace(self._targets)

    def _usage(self) -> str:
        """forecast:node_usage with an evening peak: pods use between a fifth and all of what they request."""
        cores: dict[str, float] = dict.fromkeys((*KUBE_NODES, *OUR_NODES, *GPU_NODES, *SPARES), 0.0)
        for at, n_pods in self.history.sitting().items():
            if at in cores:
                cores[at] = 0.5 * n_pods
        away = min(abs(self.hour - 20), 24 - abs(self.hour - 20))
        share = 0.2 + 0.8 * float(np.exp(-(away**2) / 8))
        lines = ["# TYPE forecast:node_usage gauge"]
        for at, requested in sorted(cores.items()):
            for resource in RESOURCES:
                amount = (_BASE_CORES + requested * share) * _OF_A_CORE[resource.name]
                lines.append(f'forecast:node_usage{{node="{at}",resource="{resource.name}"}} {amount!r}')
        return "\n".join(lines) + "\n"


_SCHEDULE: Final = settings_of_schedule(
    profiles=["online", "job", "gpu"],
    # Twice as patient as those of the tests: this machine has much else to do.
    leader_election={"duration": "6s", "renew_deadline": "4s", "retry_period": "500ms"},
    unschedulable_flush="10s",
    # A job that may wait 90 s does so half the time, and starts in time on a machine that is busy.
    job={"valley": {"margin": "45s"}},
) | {"scorer": _QUICK}
_PROCESSES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "scorer": ("scorer", {"scorer": _QUICK}),
    "extender": ("extender", {"scorer": _QUICK, "extender": {"deadline": "5s"}}),
    "schedule-0": ("schedule", _SCHEDULE),
    "schedule-1": ("schedule", _SCHEDULE),
}


def _truth(directory: Path) -> Truth:
    start = datetime.now(UTC).date() - timedelta(days=_N_HISTORY_DAYS)
    return build_truth(directory, n_days=_N_HISTORY_DAYS, start=start)


def _services() -> list[Service]:
    """Of the history that the model is trained on: a third are placed by our own loops."""
    return [
        Service(
            namespace=("shop", "pay", "media")[i % 3],
            name=f"app-{i:02d}",
            scheduler_name=OURS if i >= _FIRST_OF_OURS else "default-scheduler",
            replicas=3 + i % 3,
        )
        for i in range(_N_SERVICES)
    ]


def _furnish(api: Api, writer: ClusterWriter) -> None:
    for manifest in manifests(_ROOT / "deploy/crds/podgroups/podgroups.yaml"):
        api.create(manifest)
    for name in ("forecast-scheduler", "shop", "pay", "media"):
        writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    writer.create_many(node(name) for name in KUBE_NODES)
    writer.create_many(our_node(name, cpu=16) for name in OUR_NODES)
    writer.create_many(gpu_node(name) for name in GPU_NODES)
    writer.create_many(SPARES.values())
