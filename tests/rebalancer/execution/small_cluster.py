"""A cluster in memory that answers the executor's requests, with controllers, a scheduler and kubelets.

Requests may be made to fail: the answer gets lost, or the process that sends them is killed before or after one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from kube.client.api_answer import NO_ANSWER, ApiAnswer
from rebalancer.execution.plan_wire import MoveSpec, PlanMode, PlanSpec, Trigger, moment

Manifest = dict[str, Any]


class Killed(BaseException):
    """The process that sent the request is gone."""


@dataclass
class SmallCluster:
    """Implements Requests.

    now           : unix seconds
    disruptions   : evictions that the budget of each app still allows; without an entry any number
    node_of       : where the scheduler puts a pod: its nomination or name -> node; '' = it waits
    is_ready      : whether a pod that runs gets ready
    reservations  : by name; None = their definition is not installed
    forbidden     : part of "METHOD path" of requests that are answered with 403; '' = none are
    fault         : called before and after each request with its number; raises Killed, or returns True = it is lost
    evicted       : UIDs of pods in the order of their evictions
    """

    now: float = 1_800_000_000.0
    replicas: dict[str, int] = field(default_factory=dict)
    disruptions: dict[str, int] = field(default_factory=dict)
    node_of: Callable[[Manifest], str] = lambda pod: "b"
    is_ready: Callable[[Manifest], bool] = lambda pod: True
    forbidden: str = ""
    fault: Callable[[int, str], bool] = lambda number, moment: False
    pods: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    plans: dict[str, Manifest] = field(default_factory=dict)
    deployments: dict[str, Manifest] = field(default_factory=dict)
    autoscalers: list[Manifest] = field(default_factory=list)
    reservations: dict[str, Manifest] | None = None
    nodes: dict[str, Manifest] = field(default_factory=dict)
    evicted: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    copied: dict[str, Manifest] = field(default_factory=dict)
    version: int = 0
    made: int = 0

    # What the executor asks

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float = 0.0
    ) -> ApiAnswer:
        number = len(self.requests)
        self.requests.append(f"{method} {path}")
        if self.fault(number, "before"):
            return ApiAnswer(NO_ANSWER, text="lost before it was carried out")
        if self.forbidden and self.forbidden in self.requests[-1]:
            return ApiAnswer(403, b'{"message":"not allowed"}', "403 not allowed")
        answer = self._answer(method, path, {} if not body else json.loads(body))
        if self.fault(number, "after"):
            return ApiAnswer(NO_ANSWER, text="lost after it was carried out")
        return answer

    def _answer(self, method: str, path: str, body: Manifest) -> ApiAnswer:
        split = urlsplit(path)
        parts = [unquote(part) for part in split.path.strip("/").split("/")]
        match [method, *parts]:
            case ["GET", "api", "v1", "nodes", name]:
                return _found(self.nodes.get(name))
            case ["GET", "api", "v1", "namespaces", _, "pods"]:
                selector = parse_qs(split.query).get("labelSelector", [""])[0]
                wanted = dict(one.split("=") for one in selector.split(",") if one)
                items = [one for one in self.pods.values() if wanted.items() <= one["metadata"]["labels"].items()]
                return _found({"items": items})
            case ["GET", "api", "v1", "namespaces", namespace, "pods", name]:
                return _found(self.pods.get((namespace, name)))
            case ["POST", "api", "v1", "namespaces", namespace, "pods", name, "eviction"]:
                return self._evict(self.pods.get((namespace, name)), body)
            case ["PATCH", "api", "v1", "namespaces", namespace, "pods", name, *_]:
                return self._patched(self.pods.get((namespace, name)), body)
            case ["GET", "apis", "apps", "v1", "namespaces", _, "deployments", name]:
                return _found(self._deployment(name))
            case ["PATCH", "apis", "apps", "v1", "namespaces", _, "deployments", name]:
                answer = self._patched(self._deployment(name), body)
                if answer.is_success:
                    self.replicas[name] = self.deployments[name]["spec"]["replicas"]
                return answer
            case ["GET", "apis", "apps", "v1", "replicasets"]:
                return _found({"items": [self._replica_set(one) for one in self.deployments.values()]})
            case ["GET", "apis", "autoscaling", *_]:
                return _found({"items": self.autoscalers})
            case ["GET", "apis", _, _, "rebalanceplans"]:
                return _found({"items": list(self.plans.values())})
            case ["POST", "apis", _, _, "rebalanceplans"]:
                name = body["metadata"]["name"]
                if name in self.plans:
                    return ApiAnswer(409, b'{"message":"already exists"}')
                self.plans[name] = body
                body["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": self._next()}
                return _found(body)
            case ["GET", "apis", _, _, "rebalanceplans", name]:
                return _found(self.plans.get(name))
            case ["PATCH", "apis", _, _, "rebalanceplans", name, "status"]:
                return self._patched(self.plans.get(name), body)
            case ["DELETE", "apis", _, _, "rebalanceplans", name]:
                return _found(self.plans.pop(name, None))
            case ["POST" | "GET" | "PATCH" | "DELETE", "apis", _, _, "namespaces", _, "reservations", *named]:
                return self._reserved(method, named, split.query, body)
            case ["GET", "apis", "lifecycle.k8s.io", "v1alpha1"]:
                return _found(None)  # not served
        raise AssertionError(f"unexpected request: {method} {path}")

    def _reserved(self, method: str, named: list[str], query: str, body: Manifest) -> ApiAnswer:
        """Reservations, if the definition is installed."""
        if self.reservations is None:
            return ApiAnswer(404, b"{}")
        if method == "POST":
            name = body["metadata"]["name"]
            if name in self.reservations:
                return ApiAnswer(409, b'{"message":"already exists"}', "409 exists")
            self.reservations[name] = body
            body["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": self._next()}
            return _found(body)
        if method == "GET":
            name = parse_qs(query)["fieldSelector"][0].removeprefix("metadata.name=")
            return _found({"items": [self.reservations[name]] if name in self.reservations else []})
        if method == "DELETE":
            return _found(self.reservations.pop(named[0], None))
        return self._patched(self.reservations.get(named[0]), body)

    def _deployment(self, name: str) -> Manifest | None:
        if (found := self.deployments.get(name)) is not None:
            found["spec"]["replicas"] = self.replicas[name]
        return found

    def _replica_set(self, deployment: Manifest) -> Manifest:
        """With the annotations of its Deployment, and those that this one had before."""
        known = self.copied.setdefault(deployment["metadata"]["name"], {})
        known |= deployment["metadata"].get("annotations") or {}
        owner = {"kind": "Deployment", "name": deployment["metadata"]["name"], "controller": True}
        return {
            "metadata": {"name": "set", "namespace": "shop", "annotations": dict(known), "ownerReferences": [owner]}
        }

    def _evict(self, pod: Manifest | None, body: Manifest) -> ApiAnswer:
        if pod is None:
            return ApiAnswer(404, b"{}")
        if pod["metadata"]["uid"] != body["deleteOptions"]["preconditions"]["uid"]:
            return ApiAnswer(409, b'{"message":"Precondition failed: UID in precondition"}')
        if "deletionTimestamp" in pod["metadata"]:
            return ApiAnswer(201, b"{}")
        app = pod["metadata"]["labels"]["app"]
        if self.disruptions.get(app, 1) <= 0:
            said = {"message": "no", "details": {"causes": [{"reason": "DisruptionBudget", "message": "needs it"}]}}
            return ApiAnswer(429, json.dumps(said).encode(), "429 no")
        if "dryRun" not in body["deleteOptions"]:
            if app in self.disruptions:
                self.disruptions[app] -= 1
            self.evicted.append(pod["metadata"]["uid"])
            pod["metadata"]["deletionTimestamp"] = _time(self.now)
        return ApiAnswer(201, b"{}")

    def _patched(self, target: Manifest | None, change: Manifest) -> ApiAnswer:
        if target is None:
            return ApiAnswer(404, b"{}")
        metadata, known = change.get("metadata", {}), target["metadata"]
        if metadata.get("resourceVersion", known["resourceVersion"]) != known["resourceVersion"]:
            return ApiAnswer(409, b'{"message":"the object has been modified"}', "409 modified")
        if metadata.get("uid", known["uid"]) != known["uid"]:
            return ApiAnswer(422, b'{"details":{"causes":[{"field":"metadata.uid"}]}}')
        _merge(target, change)
        target["metadata"]["resourceVersion"] = self._next()
        return _found(target)

    def _next(self) -> str:
        self.version += 1
        return str(self.version)

    # What the cluster does

    def add_node(self, name: str, *, ready: bool = True) -> None:
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        self.nodes[name] = {"metadata": {"name": name}, "spec": {}, "status": {"conditions": conditions}}

    def add_app(self, app: str, n: int, node: str = "a", *, deployment: bool = False) -> list[Manifest]:
        """An app of that many pods, which run on a node."""
        self.replicas[app] = n
        if deployment:
            self.deployments[app] = {
                "metadata": {
                    "name": app,
                    "uid": f"uid-{app}",
                    "resourceVersion": self._next(),
                    "annotations": {"forecast-scheduler.io/move-by-surge": "true"},
                },
                "spec": {"replicas": n},
            }
        made = [self._new_pod(app) for _ in range(n)]
        for pod in made:
            pod["spec"]["nodeName"] = node
            _set_ready(pod, True)
        return made

    def tick(self, seconds: float = 1.0) -> None:
        """Time passes: pods that terminate go, controllers create pods, which are bound and get ready."""
        self.now += seconds
        for key, pod in list(self.pods.items()):
            if "deletionTimestamp" in pod["metadata"]:
                del self.pods[key]
        for app, n in self.replicas.items():
            alive = [one for one in self.pods.values() if one["metadata"]["labels"]["app"] == app]
            for _ in range(n - len(alive)):
                self._new_pod(app)
            for pod in sorted(alive, key=_deletion_rank)[: max(0, len(alive) - n)]:
                pod["metadata"]["deletionTimestamp"] = _time(self.now)
        for pod in self.pods.values():
            if not pod["spec"].get("nodeName"):
                pod["spec"]["nodeName"] = self.node_of(pod)
            elif not _is_ready(pod):
                _set_ready(pod, self.is_ready(pod))

    def _new_pod(self, app: str) -> Manifest:
        self.made += 1
        name = f"{app}-6b7c9d8f5-{self.made:05d}"
        pod: Manifest = {
            "metadata": {
                "name": name,
                "namespace": "shop",
                "uid": f"uid-{name}",
                "resourceVersion": self._next(),
                "creationTimestamp": _time(self.now),
                "labels": {"app": app, "pod-template-hash": "6b7c9d8f5"},
                "ownerReferences": [{"kind": "ReplicaSet", "name": f"{app}-6b7c9d8f5", "controller": True}],
            },
            "spec": {},
            "status": {"phase": "Pending"},
        }
        self.pods["shop", name] = pod
        return pod

    def of_app(self, app: str) -> list[Manifest]:
        return [
            one
            for one in self.pods.values()
            if one["metadata"]["labels"]["app"] == app and "deletionTimestamp" not in one["metadata"]
        ]


def _deletion_rank(pod: Manifest) -> tuple[bool, bool, int]:
    cost = (pod["metadata"].get("annotations") or {}).get("controller.kubernetes.io/pod-deletion-cost") or 0
    return bool(pod["spec"].get("nodeName")), _is_ready(pod), int(cost)


def _is_ready(pod: Manifest) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))


def _set_ready(pod: Manifest, ready: bool) -> None:
    pod["status"] |= {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}


def _merge(target: Manifest, change: Manifest) -> None:
    """RFC 7396."""
    for key, value in change.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            _merge(target.setdefault(key, {}), value)
        else:
            target[key] = value


def _found(manifest: Manifest | None) -> ApiAnswer:
    return ApiAnswer(404, b"{}") if manifest is None else ApiAnswer(200, json.dumps(manifest).encode())


def _time(unix: float) -> str:
    return f"{datetime.fromtimestamp(unix, UTC):%Y-%m-%dT%H:%M:%SZ}"


def move_of(pod: Manifest, to: str = "b", **fields: Any) -> MoveSpec:
    """A move of a pod to another node."""
    metadata = pod["metadata"]
    return MoveSpec(
        metadata["namespace"],
        metadata["name"],
        metadata["uid"],
        f"Deployment/{metadata['labels']['app']}",
        source=pod["spec"]["nodeName"],
        to=to,
        **fields,
    )


def spec_of(cluster: SmallCluster, *moves: MoveSpec, **fields: Any) -> PlanSpec:
    return PlanSpec(
        created_at=moment(cluster.now),
        trigger=Trigger.NIGHT,
        mode=fields.pop("mode", PlanMode.ON),
        moves=moves,
        **fields,
    )


def states(cluster: SmallCluster, plan: str = "p") -> dict[str, str]:
    """State of each move that has begun or ended, by name of the pod."""
    found = cluster.plans[plan]
    names = {one["uid"]: one["pod"] for one in found["spec"]["moves"]}
    return {names[one["uid"]]: one["state"] for one in found.get("status", {}).get("moves", [])}
