"""Each part as a process that has all its work to do: with that done it has made use of every right it is granted.

`work` is given a process that has started, perhaps without one of its rights. It waits for nothing for long.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx
import yaml

from cluster.degradation import Level
from placement.gate_exemptions import ADVICE
from placement.pod_groups.group_of_pod import CREATED_FOR, MIN_MEMBER
from testing.clusters.large_cluster import large_cluster
from testing.clusters.own_nodes import QUICK_LEASE, group, member, our_node, our_pod, settings_of_schedule
from testing.processes.scenery import publish
from testing.processes.scorer_process import ScorerProcess, settings_of
from testing.processes.webhook_process import manifests
from testing.servers.applying import NotApplied
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod, replica_set, running
from testing.servers.control_plane.binaries import kubernetes_version
from testing.servers.kustomize import DEPLOY
from testing.servers.shipped_rights import NAMESPACE
from testing.waiting import eventually
from tests.deploy import rebalancer_at_work
from tests.deploy.rights import Installed, command_of
from tests.live_cluster.test_schedule_volumes import claim, storage_class, using, volume
from tests.schedule.test_native_gangs import GROUPS as NATIVE_GROUPS
from tests.schedule.test_native_gangs import native_group, native_member

_LITTLE: Final = 5.0
"""Seconds until what one step of the work needs of an earlier one is there, where the rights for it are."""

_ASKED: Final = {"kubernetes_auth": True, "metrics_open": True}
"""Group `serving` of a part that asks the API server who its clients are, but for /metrics."""

Work = Callable[[Installed, ClusterWriter, ScorerProcess], None]
Prepare = Callable[[Installed, ClusterWriter], None]


@dataclass(frozen=True, slots=True)
class Part:
    """
    arguments : of the command, beside the kubeconfig
    predicts  : has nothing to do without a model: it finds one of another cluster, made today
    prepare   : what has to be there when it starts
    """

    name: str
    settings: dict[str, Any]
    work: Work
    arguments: tuple[str, ...] = ()
    predicts: bool = False
    prepare: Prepare = lambda installed, writer: None

    def process(self, installed: Installed, directory: Path) -> ScorerProcess:
        """With the rights of its account; not started yet."""
        arguments: list[str | Path] = ["--kubeconfig", installed.kubeconfig(self.name), *self.arguments]
        if self.predicts:
            models = directory / "models"
            publish(models, large_cluster(2, 8, 2, first_day=datetime.now(UTC).date()))
            arguments += ["--models", models]
        return ScorerProcess(directory, *arguments, settings=self.settings, ready=False, command=command_of(self.name))


def _ask_with_a_token(installed: Installed, process: ScorerProcess) -> None:
    """Somebody without any rights: the API server is asked who that is, and what he may."""
    token = installed.token("forecast-scheduler-trainer")
    httpx.get(f"{process.url}/v1/status", headers={"Authorization": f"Bearer {token}"}, timeout=20)


def _work_of_scorer(installed: Installed, writer: ClusterWriter, process: ScorerProcess) -> None:
    _ask_with_a_token(installed, process)


def _work_of_extender(installed: Installed, writer: ClusterWriter, process: ScorerProcess) -> None:
    """One decision, which it tells about."""
    made = writer.create(pod("decided"))
    names = ["at-work-1", "at-work-2"]
    writer.create_many(node(name) for name in names)
    eventually(lambda: process.http.get("/readyz").status_code == 200, _LITTLE)
    process.http.post("/prioritize", json={"pod": made, "nodenames": names})
    writer.bind("decided", names[0])


def _work_of_schedule(installed: Installed, writer: ClusterWriter, process: ScorerProcess) -> None:
    """Nodes with room, a full one, an overcommitted one; pods, a gang, volumes, a binding whose answer is an error."""
    installed.applier.apply(_NO_ANSWERS)
    writer.create_many([our_node("roomy", cpu=16), our_node("full", cpu=2, labels={"only": "full"})])
    writer.create(node("shared", cpu="2", reserved_cpu="0m"))
    owner = writer.create(replica_set("web-1", deployment="web"))
    unanswered = {"name": "no-answers", "labels": {"no": "answers"}}
    installed.applier.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": unanswered})
    for priority in (10, 100):
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        installed.applier.apply(kind | {"metadata": {"name": f"priority-{priority}"}, "value": priority})
    writer.create(_on(our_pod("low", cpu="2", priority=10), "full"))
    writer.create(_on(our_pod("newest", cpu="1500m", owner=owner), "shared"))
    writer.create(_on(pod("theirs", cpu="1500m"), "shared"))
    high = our_pod("high", cpu="2", priority=100)
    high["spec"]["nodeSelector"] = {"only": "full"}
    writer.create_many(
        [our_pod("plain"), our_pod("large", cpu="64"), high, our_pod("unanswered", namespace="no-answers")]
    )
    with_group = group("gang", members=2)
    installed.applier.send("POST", _GROUPS, with_group, kind="application/json")
    writer.create_many(member("gang", i, cpu="100m") for i in range(2))
    _have_groups_written(installed, writer, owner)
    installed.applier.apply(_RESERVATION)
    writer.create_many(
        [storage_class("made", "example.com/made"), storage_class("local", "kubernetes.io/no-provisioner")]
    )
    writer.create(volume("local-roomy", "local", "roomy"))
    writer.create_many([claim("made", "made"), claim("local", "local")])
    writer.create_many([using("waits-for-made", "made"), using("waits-for-local", "local")])
    _ask_with_a_token(installed, process)


def _have_groups_written(installed: Installed, writer: ClusterWriter, owner: Manifest) -> None:
    """One PodGroup to create, for a Deployment; one that asks for more than its owner does; a native one."""
    installed.applier.send("POST", _GROUPS, _STALE, kind="application/json")
    states: dict[str, Any] = {"owner": owner, "cpu": "100m", "annotations": {MIN_MEMBER: "1"}}
    writer.create_many([our_pod("of-web", labels={"pod-template-hash": "1"}, **states), our_pod("of-web-1", **states)])
    if SERVES_NATIVE_GROUPS:
        native = native_group("native", members=1)
        installed.applier.send("POST", NATIVE_GROUPS, native, kind="application/json")
        writer.create(native_member("native", 0, cpu="100m"))


def _work_of_advisor(installed: Installed, writer: ClusterWriter, process: ScorerProcess) -> None:
    """A pod that is advised and bound, and one for which kube-scheduler finds no place."""
    writer.create_many(node(f"at-work-{i}") for i in (1, 2))
    eventually(lambda: process.metric("forecast_degradation_level") < Level.REQUESTS, _LITTLE)
    writer.create_many(gated_pod(name) for name in (ADVISED, FOLLOWED))
    eventually(lambda: not is_held(writer, FOLLOWED), _LITTLE)
    if not is_held(writer, FOLLOWED):
        writer.bind(FOLLOWED, nominated(writer, FOLLOWED) or "at-work-1")
    _ask_with_a_token(installed, process)


ADVISED: Final = "advised"
FOLLOWED: Final = "followed"


def gated_pod(name: str) -> Manifest:
    """As the webhook makes one of a pod that asks for advice."""
    made = pod(name)
    return made | {"spec": made["spec"] | {"schedulingGates": [{"name": ADVICE}]}}


def is_held(writer: ClusterWriter, name: str) -> bool:
    """Whether our gate holds the pod."""
    return {"name": ADVICE} in _one(writer, name)["spec"].get("schedulingGates", [])


def nominated(writer: ClusterWriter, name: str) -> str:
    """The pod's nominated node; '' = none."""
    return str(_one(writer, name)["status"].get("nominatedNodeName", ""))


def _one(writer: ClusterWriter, name: str) -> Manifest:
    return next(one for one in writer.list_all("pods") if one["metadata"]["name"] == name)


def _work_of_rebalancer(installed: Installed, writer: ClusterWriter, process: ScorerProcess) -> None:
    """A plan that was there when it started, and a replacement that waits for a node."""
    eventually(lambda: process.metric("forecast_degradation_level") < Level.REQUESTS, _LITTLE)
    _ask_with_a_token(installed, process)
    rebalancer_at_work.replace_one(writer, 3 * _LITTLE)


def _work_of_webhook(installed: Installed, writer: ClusterWriter, process: ScorerProcess) -> None:
    """A pod that no advisor releases, templates and bindings, a configuration without caBundle, and a certificate that
    somebody has broken."""
    applier = installed.applier
    writer.create(gated_pod("held-for-nobody"))
    applier.apply_all(_templates())
    applier.apply(_configuration())

    def break_it() -> bool:
        try:
            broken = {"data": {"tls.crt": base64.b64encode(b"broken").decode()}}
            applier.send("GET", _SECRET)
            applier.send("PATCH", _SECRET, broken, kind="application/merge-patch+json")
        except NotApplied:
            return False
        return True

    eventually(break_it, _LITTLE)
    eventually(lambda: not is_held(writer, "held-for-nobody"), 3 * _LITTLE)


SERVES_NATIVE_GROUPS: Final = kubernetes_version() >= "1.37"
"""Version v1beta1 of scheduling.k8s.io, which we read."""
_STALE: Final = group("web-1.replicaset", members=7)
_STALE["metadata"]["annotations"] = {CREATED_FOR: "ReplicaSet/web-1"}
_GROUPS: Final = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
_RESERVATION: Final[Manifest] = {
    "apiVersion": "forecast-scheduler.io/v1alpha1",
    "kind": "Reservation",
    "metadata": {"name": "at-work", "namespace": "default"},
    "spec": {"owners": {"matchLabels": {"app": "to-come"}}, "resources": {"cpu": "100m"}},
}
_SECRET: Final = f"/api/v1/namespaces/{NAMESPACE}/secrets/forecast-scheduler-webhook-certificates"
_TEMPLATES: Final = ("NodeSchedulerConfig", "PodSchedulerConfig", "SchedulerConfigBinding")
_NO_ANSWERS: Final[Manifest] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "no-answers"},
    "webhooks": [
        {
            "name": "nobody.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
            ],
            "namespaceSelector": {"matchLabels": {"no": "answers"}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ],
}
"""Bindings in that namespace end with 500: what became of them has to be looked at."""


def _templates() -> list[Manifest]:
    """The shipped examples, and what binds them to pods."""
    return [one for one in manifests(DEPLOY / "crds" / "examples") if one["kind"] in _TEMPLATES]


def _configuration() -> Manifest:
    shipped = yaml.safe_load((DEPLOY / "base" / "webhook" / "configuration.yaml").read_text())
    shipped["webhooks"][0]["objectSelector"] = {"matchLabels": {"asked": "about"}}  # no pod of a test
    return dict(shipped)


def _on(made: Manifest, name: str) -> Manifest:
    return made | {"spec": made["spec"] | {"nodeName": name}, "status": running()}


def clear(installed: Installed, writer: ClusterWriter) -> None:
    """Takes away all that work has made."""
    rebalancer_at_work.clear(installed, writer)
    plurals = ("jobs", "pods", "nodes", "replicasets", "persistentvolumeclaims", "persistentvolumes", "storageclasses")
    for plural in plurals:
        for one in writer.list_all(plural):
            version = {"jobs": "batch/v1", "replicasets": "apps/v1", "storageclasses": "storage.k8s.io/v1"}.get(
                plural, "v1"
            )
            installed.applier.delete(one | {"apiVersion": version})
    for one in (group("gang", members=2), group("web.deployment", members=1), _STALE):
        installed.applier.delete(one)
    if SERVES_NATIVE_GROUPS:
        installed.applier.delete(native_group("native", members=1))
    installed.applier.delete(_NO_ANSWERS)
    installed.applier.delete(_RESERVATION)
    for one in (*_templates(), _configuration()):
        installed.applier.delete(one)
    secret = {"apiVersion": "v1", "kind": "Secret"}
    installed.applier.delete(secret | {"metadata": {"namespace": NAMESPACE, "name": _SECRET.rpartition("/")[2]}})
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    for name in ("forecast-scheduler", "forecast-scheduler-advisor", "forecast-scheduler-rebalancer"):
        installed.applier.delete(lease | {"metadata": {"namespace": NAMESPACE, "name": name}})


PARTS: Final = {
    one.name: one
    for one in (
        Part("scorer", settings_of(serving=_ASKED), _work_of_scorer),
        Part("extender", settings_of(), _work_of_extender),
        Part(
            "schedule",
            settings_of_schedule(
                serving=_ASKED, leader_election=QUICK_LEASE, share_nodes=[""], binding_timeout="2s",
                assume_timeout="4s", preemption={"protect_started": "0s"},
            ),
            _work_of_schedule,
            ("--profile", "online,job"),
        ),
        Part(
            "advisor",
            settings_of() | {
                "advise": {"serving": _ASKED, "leader_election": QUICK_LEASE, "follow_timeout": "2s"},
            },
            _work_of_advisor,
            predicts=True,
        ),
        Part(
            "rebalancer",
            rebalancer_at_work.SETTINGS,
            _work_of_rebalancer,
            predicts=True,
            prepare=rebalancer_at_work.prepare,
        ),
        Part("webhook", {"webhook": {"certificates": {"managed": True, "every": "1s"}}}, _work_of_webhook),
    )
}  # fmt: skip
