"""A control plane with the sample's cluster on it, a metrics store with its history, and a kube-scheduler that asks us.

    etcd, kube-apiserver    50 nodes and the pods that the sample has at this time of day
    kube-scheduler          asks an extender, and goes on without it while there is none (deploy/kube-scheduler/)
    kubelets                played: pods that are bound run a second later; they say what the sample's pods use
    webhook configuration   as shipped, for a webhook on this machine: until it listens, pods are created unshaped
    metrics store           the last days, then what the sample has next, half hour by half hour (stores.py)
    second cluster          if asked for: every third node of the sample and its pods, behind the same store

There are no controllers: pods of the sample stay, and a ReplicaSet makes no others.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx
import yaml

from placement.gate_exemptions import ADVICE
from testing.authority import Authority
from testing.local_cluster.kubelet_pages import kubelet_pages
from testing.local_cluster.metrics import page, past
from testing.local_cluster.objects import node_object, one_more, pod_object, replica_set_objects
from testing.local_cluster.sample import SAMPLE, PodCourse, Sample, read_sample
from testing.local_cluster.stores import CLUSTER_LABEL, TOKEN, Fed, Store, offer_store, start_store
from testing.processes.webhook_process import manifests
from testing.servers.applying import Applier
from testing.servers.cluster_objects import ClusterWriter, Manifest
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.exporter import Exporter
from testing.servers.prometheus import free_port
from testing.servers.provider_process import ProviderProcess
from testing.servers.resource_kubelets import ResourceKubelets, reachable
from testing.servers.shipped_extender import shipped_extender
from testing.servers.shipped_webhook import shipped_webhook
from testing.waiting import eventually

ADDED_PODS: Final = {
    "first.yaml": ("first", "default-scheduler"),
    "advised.yaml": ("advised", "default-scheduler"),
    "second.yaml": ("second", "default-scheduler"),
    "third.yaml": ("third", "default-scheduler"),
    "fourth.yaml": ("fourth", "forecast-scheduler"),
}
"""Manifests for the user of the cluster: name of the pod, and the scheduler that is to place it. The one that is to
be advised has the gate that the webhook would add."""

CLUSTERS: Final = ("east", "west")
"""Contexts and values of the label `cluster` where there are two."""

_TO_KUBELETS = ["--kubelet-preferred-address-types=ExternalIP"]
_SECOND_EVERY: Final = 3
_SERVICE = ("shop", "checkout")
_OUR_NAMESPACE = "forecast-scheduler"  # of the Lease of our own loops
_SCRAPE_SECONDS = 15
_RULES = Path(__file__).resolve().parents[2] / "dashboards" / "prometheus"
_DEPLOY = SAMPLE.parents[1] / "deploy"
_BESIDE_OWN_LOOPS = _DEPLOY / "kube-scheduler" / "beside-own-loops.yaml"
_DEFINITIONS = [
    _DEPLOY / "crds",
    *(_DEPLOY / "crds" / name for name in ("podgroups", "elasticquotas", "rebalanceplans", "reservations")),
]


@dataclass(frozen=True, slots=True)
class Ports:
    """On loopback: of Prometheus, and where our own services are going to listen."""

    prometheus: int = 9090
    scorer: int = 8080
    extender: int = 8888
    schedule: int = 8889
    advise: int = 8890
    rebalance: int = 8891
    webhook: int = 8443

    def free(self) -> Ports:
        """The same, with others in place of those that are in use."""
        return Ports(**{name: port if _is_free(port) else free_port() for name, port in asdict(self).items()})

    def url(self, name: str) -> str:
        """Where the service of this name is going to listen."""
        return f"{'https' if name == 'webhook' else 'http'}://127.0.0.1:{asdict(self)[name]}"

    def moved(self) -> list[str]:
        """What differs from the default ports, one sentence each."""
        usual = asdict(Ports())
        return [
            f"port {usual[name]} of {name} is in use: it gets {port} instead"
            for name, port in asdict(self).items()
            if port != usual[name]
        ]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port that was in use a moment ago is free
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class LocalCluster:
    """Context manager; up when it is entered, gone afterwards but for what others wrote into `directory`.

    days       : of history; store: which one there is; second: whether there is a second cluster
    copies     : of the sample, which together are the cluster
    kubeconfig : of an administrator; with a second cluster the contexts CLUSTERS, the current one first
    found_at   : namespace/name:port of the store's Service, "" = there is none
    settings   : for all commands of forecast-scheduler
    environment : what a shell needs to follow the pages in docs/: addresses of all services, whether or not they run
    n_pods, n_nodes : what is there at the start
    """

    def __init__(
        self,
        directory: Path,
        *,
        days: int,
        ports: Ports,
        store: Store = Store.PROMETHEUS,
        second: bool = False,
        copies: int = 1,
    ) -> None:
        self.directory, self._days, self.ports, self._store = directory, days, ports, store
        self._copies = copies
        self.kubeconfig, self.settings = directory / "kubeconfig", directory / "settings.yaml"
        self.clusters = CLUSTERS if second else ("",)
        self.prometheus_url, self.found_at = ports.url("prometheus"), ""
        self.n_nodes = self.n_pods = 0
        self._stack = ExitStack()

    @property
    def environment(self) -> dict[str, str]:
        return {
            "KUBECONFIG": str(self.kubeconfig),
            "FORECAST_SCHEDULER_CONFIG": str(self.settings),
            "PROMETHEUS": self.prometheus_url,
            "SCORER": self.ports.url("scorer"),
            "EXTENDER": self.ports.url("extender"),
            "SCHEDULER": self.ports.url("schedule"),
            "ADVISOR": self.ports.url("advise"),
            "REBALANCER": self.ports.url("rebalance"),
            "TOKEN": "",  # nothing asks for one here
        }

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self, stack: ExitStack) -> None:
        now = time.time()
        sample = read_sample(datetime.fromtimestamp(now, UTC).date(), self._days).times(self._copies)
        samples = dict(zip(self.clusters, (sample, sample.part(_SECOND_EVERY)), strict=False))
        fed = [self._fed(name, of, now, stack) for name, of in samples.items()]
        rules = [_RULES / name for name in ("peaks.yaml", "alerts.yaml")]
        self.prometheus_url = start_store(
            self._store, fed, self.directory, rules=rules, port=self.ports.prometheus, stack=stack
        )
        planes = {
            name: stack.enter_context(ControlPlane(below=self.directory, api_server_arguments=_TO_KUBELETS))
            for name in self.clusters
        }
        for name, plane in list(planes.items())[1:]:
            self._fill(plane, samples[name], now, name, stack)
            stack.enter_context(ProviderProcess(plane, "", start_seconds=1.0))
        plane = planes[self.clusters[0]]
        there, sets = self._fill(plane, sample, now, self.clusters[0], stack)
        self.n_nodes, self.n_pods = len(sample.nodes), len(there)
        stack.enter_context(ProviderProcess(plane, "", start_seconds=1.0))
        extender = shipped_extender(self.ports.url("extender"))
        profiles = yaml.safe_load(_BESIDE_OWN_LOOPS.read_text())["profiles"]
        stack.enter_context(KubeScheduler(plane, [extender], profiles))
        self._write_kubeconfig(planes)
        certificates = Authority(self.directory, "webhook-authority")
        with Applier(plane) as applier:
            applier.apply_all(manifests(*_DEFINITIONS))
            # Last: nothing of the above has to wait for a webhook that does not listen.
            applier.apply(shipped_webhook(self.ports.url("webhook"), certificates.ca))
        self.settings.write_text(self.settings_text(*certificates.issue("webhook")))
        self._leave_manifests(there, sets)
        # The history has a sample each half hour, and Prometheus looks back five minutes: who asked before the first
        # scrape would find nothing there but shortly after a full or half hour.
        if self._store is not Store.NONE and not eventually(self._is_scraped, 4 * _SCRAPE_SECONDS):
            raise RuntimeError(f"the store at {self.prometheus_url} does not scrape the sample: see its log")

    def _fed(self, cluster: str, sample: Sample, now: float, stack: ExitStack) -> Fed:
        exporter = stack.enter_context(Exporter(lambda: page(sample, time.time(), cluster)))
        ours = self._our_services() if cluster == self.clusters[0] else []
        scrapes = [_scrape("sample", exporter.address), *(_scrape(*one) for one in ours)]
        return Fed(cluster, list(past(sample, now, cluster)), scrapes)

    def _fill(
        self, plane: ControlPlane, sample: Sample, now: float, cluster: str, stack: ExitStack
    ) -> tuple[list[PodCourse], dict[tuple[str, str], Manifest]]:
        """Create what the sample has now, and the store's Service; returns the pods, and the ReplicaSets by name."""
        moment = sample.moment(now)
        there = [pod for pod in sample.pods if pod.course.at(moment) is not None]
        with ClusterWriter(plane) as writer:
            namespaces = sorted({pod.namespace for pod in there} | {_OUR_NAMESPACE})
            writer.create_many(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in namespaces
            )
            played = ResourceKubelets(self.directory, [node.name for node in sample.nodes], kubelet_pages(sample))
            kubelets = stack.enter_context(played)
            writer.create_many(reachable(node_object(node, cluster), kubelets) for node in sample.nodes)
            made = writer.create_many(replica_set_objects(there))
            sets = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in made}
            writer.create_many(pod_object(pod, sets) for pod in there)
            if self._store is not Store.NONE:
                node = sample.nodes[0].name
                self.found_at = offer_store(self._store, self.prometheus_url, writer, node=node, stack=stack)
        return there, sets

    def _write_kubeconfig(self, planes: Mapping[str, ControlPlane]) -> None:
        """Of one plane as it is, of several with a context for each."""
        documents = {name: yaml.safe_load(plane.kubeconfig.read_text()) for name, plane in planes.items()}
        written = next(iter(documents.values()))
        if len(documents) > 1:
            lists = ("contexts", "clusters", "users")
            written |= {key: [{**of[key][0], "name": name} for name, of in documents.items()] for key in lists}
            for context in written["contexts"]:
                context["context"] = {"cluster": context["name"], "user": context["name"]}
            written["current-context"] = self.clusters[0]
        self.kubeconfig.write_text(yaml.safe_dump(written, sort_keys=False))
        self.kubeconfig.chmod(0o600)

    def _is_scraped(self) -> bool:
        query = {"query": 'up{job=~"sample.*"} == 1'}
        headers = {"Authorization": f"Bearer {TOKEN}"} if self._store is Store.TOKEN else {}
        answer = httpx.get(f"{self.prometheus_url}/api/v1/query", params=query, headers=headers)
        return len(answer.json()["data"]["result"]) == len(self.clusters)

    def _our_services(self) -> list[tuple[str, str]]:
        ports = {
            "scorer": self.ports.scorer,
            "extender": self.ports.extender,
            "schedule": self.ports.schedule,
            "advisor": self.ports.advise,
            "rebalancer": self.ports.rebalance,
            "webhook": self.ports.webhook,
        }
        return [(f"forecast-scheduler-{name}", f"127.0.0.1:{port}") for name, port in ports.items()]

    def settings_text(self, certificate: Path, key: Path) -> str:
        """The sample has half hours; the rest is where everything is. certificate, key: of the webhook."""
        ports = asdict(self.ports)
        del ports["prometheus"]
        sections: dict[str, Any] = {name: {"serving": {"port": port}} for name, port in ports.items()}
        sections["webhook"]["serving"] |= {"tls_cert": str(certificate), "tls_key": str(key)}
        read: dict[str, Any] = {"prometheus": {"step": "30m", "url": self.prometheus_url or None}}
        if self._store is Store.TOKEN:
            token = self.directory / "store-token"
            token.write_text(TOKEN)
            read["prometheus"]["bearer_token_file"] = str(token)
        if self.clusters[0]:
            read["prometheus"]["cluster"] = {CLUSTER_LABEL: self.clusters[0]}
        return yaml.safe_dump(
            read | {"models": {"location": str(self.directory / "models")}} | sections, sort_keys=False
        )

    def _leave_manifests(self, there: list[PodCourse], sets: Mapping[tuple[str, str], Manifest]) -> None:
        sibling = next(pod for pod in there if (pod.namespace, pod.owner[1]) == _SERVICE)
        of = sets[sibling.namespace, sibling.controller[1]]
        for file, (name, scheduler_name) in ADDED_PODS.items():
            gates = [ADVICE] if name == "advised" else []
            manifest = one_more(sibling, of, f"{_SERVICE[1]}-{name}", scheduler_name, gates)
            (self.directory / file).write_text(yaml.safe_dump(manifest, sort_keys=False))


def _scrape(job: str, address: str) -> dict[str, Any]:
    """Of the sample no series says where it was scraped, as its history does not."""
    entry: dict[str, Any] = {
        "job_name": job,
        "scrape_interval": f"{_SCRAPE_SECONDS}s",
        "static_configs": [{"targets": [address]}],
    }
    if job == "sample":
        entry |= {"honor_labels": True, "metric_relabel_configs": [{"action": "labeldrop", "regex": "instance|job"}]}
    if job.endswith("-webhook"):
        entry |= {"scheme": "https", "tls_config": {"insecure_skip_verify": True}}
    return entry
