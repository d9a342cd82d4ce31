"""Rebalancers with the account, rights and policies that are shipped, on an API server whose tenants do as they like.

2 rebalancers --their account--> API server <--namespace admins-- tenants
      |                              ^
   /healthz, memory                  +-- controllers, kube-scheduler, kubelets

Plans are written by the rebalancer's account, so that a test says whom they move and when they end.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final

import msgspec

from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from rebalancer.execution.plan_wire import MoveSpec, PlanMode, PlanSpec, Trigger
from rebalancer.plan_book import night_name
from testing.clusters.large_cluster import large_cluster
from testing.clusters.own_nodes import QUICK_LEASE
from testing.processes.process_figures import resident_bytes
from testing.processes.scorer_process import ScorerProcess, settings_of
from testing.rebalancing.live_two_peaks import PLANS, deployment
from testing.servers.applying import Applier, NotApplied
from testing.servers.cluster_objects import ClusterWriter, Manifest, node
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.control_plane.pool import control_plane
from testing.servers.controller_manager.controller_manager import ControllerManager
from testing.servers.kustomize import built
from testing.servers.prometheus import free_port
from testing.servers.shipped_rights import Account, ShippedRights
from testing.servers.watching import PODS, Watching
from testing.servers.workload_kubelets import WorkloadKubelets
from testing.waiting import eventually

SURGE: Final = "forecast-scheduler.io/move-by-surge"
MARK: Final = "forecast-scheduler.io/surged-for"
OLD_NODE, NEW_NODE = "node-old", "node-new"

_JSON, _MERGE, _APPLY = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"
_TENANT: Final = "tenant"
_SETTINGS: Final[dict[str, Any]] = {
    "leader_election": QUICK_LEASE,
    "cost": {"least_age": 0, "young": 0},
    # Any load counts as flat, so that now is one of its lowest hours: a night without a plan would get one.
    "window": {"flat_share": 0.99, "flat_hours": 24, "freeze": 0, "peak_hours": []},
    "execution": {"pin": "200ms", "retry": "1s", "refusal_deadline": "20s", "ready_deadline": "20s"},
}


@dataclass
class Watched:
    """What the processes were seen to need: seconds of probes on new connections, most resident bytes."""

    probes: list[float] = field(default_factory=list)
    most_bytes: int = 0

    def p99(self) -> float:
        """Return the time within which 99 % of the probes were answered."""
        return sorted(self.probes)[int(0.99 * (len(self.probes) - 1))]


class Night:
    """One cluster for several attacks. gone: unix seconds by UID at which the API server was told that a pod goes."""

    def __init__(self, plane: ControlPlane, stack: ExitStack, directory: Path) -> None:
        self.plane, self._directory = plane, directory
        self.admin = stack.enter_context(Applier(plane))
        self.writer = stack.enter_context(ClusterWriter(plane, patience_seconds=60))
        self.kubelets = stack.enter_context(WorkloadKubelets(plane))
        self._shipped = ShippedRights(plane, self.admin, [*built("crds/reservations"), *built("overlays/rebalancer")])
        made = large_cluster(6, 60, 3, first_day=datetime.now(UTC).date())
        self._models = directory / "models"
        Registry(str(self._models)).publish(artefact_of(made.model, datetime.now(UTC)))
        self.writer.create(node(OLD_NODE, cpu="64", pods=500))
        account = Account(plane.url, self._shipped.token("forecast-scheduler-rebalancer"), plane.ca_file)
        self._rebalancer = stack.enter_context(Applier(account))
        self.gone: dict[str, float] = {}
        self._pods: dict[str, Manifest] = {}
        stack.enter_context(Watching(plane, PODS, self._see, patience_seconds=120))
        stack.enter_context(ControllerManager(plane))
        stack.enter_context(KubeScheduler(plane))
        self._stack, self._n_processes = stack, 0

    def _see(self, kind: str, pod: Manifest) -> None:
        metadata = pod["metadata"]
        self._pods[metadata["uid"]] = pod
        if "deletionTimestamp" in metadata:
            at = datetime.fromisoformat(metadata["deletionTimestamp"]).timestamp()
            self.gone.setdefault(metadata["uid"], at - metadata.get("deletionGracePeriodSeconds", 0))

    # What tenants do

    def tenant(self, namespace: str) -> Applier:
        """Make a namespace, and return one who may do everything in it."""
        self.writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        inside = {"name": _TENANT, "namespace": namespace}
        rbac = "rbac.authorization.k8s.io"
        rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
        subject = {"kind": "ServiceAccount"} | inside
        reference = {"apiGroup": rbac, "kind": "Role", "name": _TENANT}
        for made in (
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": inside},
            {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": inside, "rules": rules},
            {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "metadata": inside, "roleRef": reference,
             "subjects": [subject]},
        ):  # fmt: skip
            self.admin.apply(made)
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{_TENANT}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        token = str(self.admin.send("POST", path, asked, kind=_JSON)["status"]["token"])
        return self._stack.enter_context(Applier(Account(self.plane.url, token, self.plane.ca_file), manager=_TENANT))

    def deploy(self, namespace: str, app: str, replicas: int, *, surge: bool = False) -> list[Manifest]:
        """A Deployment whose pods all run on the old node; returns them."""
        annotations = {SURGE: "true"} if surge else {}
        requests = {"cpu": "10m"}
        made = deployment(app, replicas, requests, namespace=namespace, annotations=annotations)
        made["spec"]["template"]["metadata"]["annotations"] = annotations
        self.writer.create(made)
        assert eventually(lambda: len(self.ready(namespace, app)) == replicas), self.pods(namespace, app)
        return self.ready(namespace, app)

    def open_new_node(self) -> None:
        """From now on new pods go to the new node, and to no other."""
        if not any(one["metadata"]["name"] == NEW_NODE for one in self.writer.list_all("nodes")):
            self.writer.create(node(NEW_NODE, cpu="64", pods=500))
        self._cordon(OLD_NODE, True)

    def close_new_node(self) -> None:
        """New pods go to the old node again, for what the next attack needs."""
        self._cordon(OLD_NODE, False)
        self._cordon(NEW_NODE, True)

    def _cordon(self, name: str, is_closed: bool) -> None:
        for other in (OLD_NODE, NEW_NODE):
            if other != name and is_closed:
                self.writer.patch({"kind": "Node", "metadata": {"name": other}}, {"spec": {"unschedulable": False}})
        self.writer.patch({"kind": "Node", "metadata": {"name": name}}, {"spec": {"unschedulable": is_closed}})

    # What there is

    def pods(self, namespace: str, app: str) -> list[Manifest]:
        return [
            one
            for one in self.writer.list_all("pods")
            if one["metadata"]["namespace"] == namespace
            and one["metadata"].get("labels", {}).get("app") == app
            and "deletionTimestamp" not in one["metadata"]
        ]

    def ready(self, namespace: str, app: str) -> list[Manifest]:
        return [one for one in self.pods(namespace, app) if one["status"].get("phase") == "Running"]

    def deployment(self, namespace: str, app: str) -> Manifest:
        """Return it; {} = it is gone."""
        found = self.writer.list_all("deployments")
        mine = (one for one in found if (one["metadata"]["namespace"], one["metadata"]["name"]) == (namespace, app))
        return next(mine, {})

    def mark(self, namespace: str, app: str) -> str:
        """Return the mark of a surge; '' = none."""
        found = self.deployment(namespace, app)
        return str(found.get("metadata", {}).get("annotations", {}).get(MARK, ""))

    def went(self, namespaces: Sequence[str]) -> Counter[tuple[str, str]]:
        """Return how many pods of each Deployment were made to go so far, by namespace and name."""
        of = (self._pods[uid]["metadata"] for uid in list(self.gone))
        return Counter((one["namespace"], one["labels"]["app"]) for one in of if one["namespace"] in namespaces)

    # Plans

    def plan(self, pods: Sequence[Manifest], *, seconds: float, number: int = 1, surge: bool = False) -> str:
        """Record a plan of tonight that moves these pods and ends so soon; returns its name."""
        now = datetime.now(UTC)
        moves = tuple(
            MoveSpec(
                one["metadata"]["namespace"],
                one["metadata"]["name"],
                one["metadata"]["uid"],
                f"Deployment/{one['metadata']['labels']['app']}",
                source=OLD_NODE,
                to=NEW_NODE,
                surge=surge,
            )
            for one in pods
        )
        spec = PlanSpec(
            created_at=now,
            trigger=Trigger.NIGHT,
            mode=PlanMode.ON,
            moves=moves,
            start_before=now + timedelta(seconds=seconds),
        )
        name = night_name(now.date(), number)
        self._rebalancer.send("POST", PLANS, _plan_object(name, spec), kind=_JSON)
        return name

    def plans(self) -> list[Manifest]:
        return list(self.admin.send("GET", PLANS)["items"])

    def records(self, name: str) -> dict[str, dict[str, Any]]:
        """Return what is on record of each move, by name of its Deployment."""
        found = self.admin.send("GET", f"{PLANS}/{name}")
        service = {one["uid"]: one["service"].partition("/")[2] for one in found["spec"]["moves"]}
        return {service[one["uid"]]: one for one in found.get("status", {}).get("moves", [])}

    def is_over(self, name: str) -> bool:
        status = self.admin.send("GET", f"{PLANS}/{name}").get("status", {})
        return status.get("phase") in ("Completed", "Stopped")

    def delete_plans(self) -> None:
        """As an administrator may."""
        for one in self.plans():
            self.admin.send("DELETE", f"{PLANS}/{one['metadata']['name']}", {}, kind=_JSON)

    def refused(self, who: Applier, method: str, path: str, body: Any, kind: str = _MERGE) -> bool:
        """Return whether the API server refuses somebody a request."""
        try:
            who.send(method, path, body, kind=kind)
        except NotApplied as error:
            return error.status in (403, 422)
        return False

    # Rebalancers

    @contextmanager
    def rebalancers(self, n: int, **execution: Any) -> Iterator[Rebalancers]:
        """So many, watched: the first of them leads."""
        settings = settings_of() | {"rebalance": _SETTINGS | {"mode": "on"}}
        settings["rebalance"]["execution"] = _SETTINGS["execution"] | execution
        made = Rebalancers(self, settings)
        try:
            for _ in range(n):
                made.start()
            yield made
        finally:
            made.close()

    def process(self, settings: Mapping[str, Any], probe_port: int) -> ScorerProcess:
        self._n_processes += 1
        place = self._directory / f"rebalancer-{self._n_processes}"
        serving = {"probe_port": probe_port}
        with_port = dict(settings) | {"rebalance": settings["rebalance"] | {"serving": serving}}
        arguments = ("--kubeconfig", self._shipped.kubeconfig("rebalancer"), "--models", self._models)
        return ScorerProcess(place, *arguments, settings=with_port, command="rebalance", forked=True)


class Rebalancers:
    """Processes, those that were killed included. watched: of all of them."""

    def __init__(self, night: Night, settings: Mapping[str, Any]) -> None:
        self._night, self._settings = night, settings
        self.all: list[ScorerProcess] = []
        self._ports: dict[ScorerProcess, int] = {}
        self._silent: set[ScorerProcess] = set()
        self.watched, self._ended = Watched(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def start(self) -> ScorerProcess:
        """Start one more, and wait until it is ready."""
        port = free_port()
        made = self._night.process(self._settings, port)
        made.__enter__()
        self.all.append(made)
        self._ports[made] = port
        return made

    def leader(self) -> ScorerProcess:
        """Wait for one that leads."""
        found: list[ScorerProcess] = []

        def leads() -> bool:
            found[:] = [one for one in self._awake() if one.metric("forecast_rebalance_leading") == 1]
            return bool(found)

        assert eventually(leads), self.logs()
        return found[0]

    def kill(self, one: ScorerProcess) -> None:
        self._silent.add(one)
        one.kill()

    def pause(self, one: ScorerProcess) -> None:
        self._silent.add(one)
        assert one.process is not None
        one.process.send_signal(signal.SIGSTOP)

    def resume(self, one: ScorerProcess) -> None:
        assert one.process is not None
        one.process.send_signal(signal.SIGCONT)
        time.sleep(1.0)
        self._silent.discard(one)

    def logs(self) -> str:
        return "\n".join(one.log[-3000:] for one in self.all)

    def close(self) -> None:
        self._ended.set()
        self._thread.join(20)
        for one in self.all:
            if one.process is not None and not one.process_ended():
                one.process.send_signal(signal.SIGCONT)
            one.close()

    def _awake(self) -> list[ScorerProcess]:
        return [one for one in self.all if one not in self._silent]

    def _watch(self) -> None:
        while not self._ended.wait(0.1):
            for one in self._awake():
                begin = time.monotonic()
                try:
                    _probe(self._ports[one])
                    assert one.process is not None
                    self.watched.most_bytes = max(self.watched.most_bytes, resident_bytes(one.process.pid))
                except (HTTPException, OSError, LookupError):
                    if one in self._silent or self._ended.is_set():
                        continue  # it was killed or stopped meanwhile
                    raise
                if one not in self._silent:
                    self.watched.probes.append(time.monotonic() - begin)


@contextmanager
def night(directory: Path) -> Iterator[Night]:
    """Yield a cluster with the shipped rights and policies, and nothing that moves pods yet."""
    with control_plane() as plane, ExitStack() as stack:
        yield Night(plane, stack, directory)


def _probe(port: int) -> None:
    """Ask on a new connection, as a kubelet does, without what a client of more needs."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/healthz")
        if (status := connection.getresponse().status) != 200:
            raise HTTPException(f"/healthz answered {status}")
    finally:
        connection.close()


def _plan_object(name: str, spec: PlanSpec) -> dict[str, Any]:
    head = {"apiVersion": "forecast-scheduler.io/v1alpha1", "kind": "RebalancePlan", "metadata": {"name": name}}
    return head | {"spec": msgspec.json.decode(msgspec.json.encode(spec))}
