"""Nodes and pods that are our own scheduling loops' business, and whether all is as it must be when they are done."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from kube.objects.quantity import parse_quantity
from placement.pod_groups.group_of_pod import GROUP_LABEL, ROLE
from testing.processes.scorer_process import ScorerProcess
from testing.processes.webhook_process import Api, Refused
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually

OURS: Final = "forecast-scheduler"
DOMAIN: Final = "forecast-scheduler.io/domain"
LONG: Final = 120.0
"""Seconds until what must happen has happened on a machine that is busy with other things."""

QUICK_LEASE: Final = {"duration": "3s", "renew_deadline": "2s", "retry_period": "250ms"}
_GROUPS: Final = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"


def settings_of_schedule(**schedule: Any) -> dict[str, Any]:
    """Without a Lease unless `leader_election` says otherwise: a test that is about something else needs none."""
    return {
        "scorer": {"usage_every": "1s", "model_every": "1s", "overview_every": "1s"},
        "schedule": {"leader_election": {"enabled": False}} | schedule,
    }


def our_node(name: str, *, cpu: int = 4, pods: int = 110, labels: Mapping[str, str] | None = None) -> Manifest:
    """A node of our domain with whole cores."""
    return node(name, cpu=str(cpu), pods=pods, reserved_cpu="0m", labels={DOMAIN: OURS} | dict(labels or {}))


def our_pod(name: str, *, cpu: str = "500m", priority: int | None = None, **rest: Any) -> Manifest:
    """A pod that names us."""
    made = pod(name, cpu=cpu, scheduler_name=OURS, **rest)
    if priority is not None:
        made["spec"] |= {"priorityClassName": f"priority-{priority}"}
    return made


def group(name: str, *, members: int, roles: Mapping[str, int] | None = None, timeout: int = 600) -> Manifest:
    """A PodGroup. roles: minimum of each."""
    annotations = {"forecast-scheduler.io/min-per-role": json.dumps(dict(roles))} if roles else {}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"minMember": members, "scheduleTimeoutSeconds": timeout},
    }


def member(of: str, number: int, *, role: str = "", cpu: str = "1", priority: int | None = None) -> Manifest:
    """A pod of a PodGroup."""
    labels = {GROUP_LABEL: of} | ({ROLE: role} if role else {})
    return our_pod(f"{of}-{role or 'member'}-{number}", cpu=cpu, labels=labels, priority=priority)


class Groups:
    """PodGroups of the namespace `default`."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def create(self, manifest: Manifest) -> Manifest:
        return dict(self._api.request("POST", _GROUPS, manifest))

    def status(self, name: str) -> Manifest:
        return dict(self._api.request("GET", f"{_GROUPS}/{name}").get("status", {}))

    def delete_all(self) -> None:
        """Waits until the API server, which may just have been started, serves them again."""
        there: list[Manifest] = []

        def listed() -> bool:
            try:
                there[:] = self._api.request("GET", _GROUPS)["items"]
            except Refused:
                return False
            return True

        assert eventually(listed)
        for one in there:
            self._api.request("DELETE", f"{_GROUPS}/{one['metadata']['name']}")


@contextmanager
def groups(plane: ControlPlane) -> Iterator[Groups]:
    """To make and look at them."""
    with Api(plane) as api:
        yield Groups(api)


def nodes_of(writer: ClusterWriter, prefix: str = "") -> dict[str, str]:
    """Node by name of the pod, '' = none, of pods whose names begin so."""
    pods = writer.list_all("pods")
    found = {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in pods}
    return {name: node for name, node in found.items() if name.startswith(prefix)}


def bound(writer: ClusterWriter, prefix: str = "") -> int:
    """How many of them have a node."""
    return sum(1 for node in nodes_of(writer, prefix).values() if node)


def condition(manifest: Manifest) -> tuple[str, str]:
    """Reason and message of PodScheduled=False; empty without."""
    for one in manifest.get("status", {}).get("conditions", []):
        if one["type"] == "PodScheduled" and one["status"] == "False":
            return one.get("reason", ""), one.get("message", "")
    return "", ""


def end_terminating(writer: ClusterWriter) -> bool:
    """What kubelets do. True: it is done."""
    writer.delete_many(one for one in writer.list_all("pods") if "deletionTimestamp" in one["metadata"])
    return True


def overcommitted(pods: Iterable[Manifest], nodes: Iterable[Manifest]) -> dict[str, str]:
    """Resource by node on which pods request more of it than there is, reckoned from the API objects alone."""
    requested: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for one in pods:
        if (at := one["spec"].get("nodeName")) and one["status"].get("phase") not in ("Succeeded", "Failed"):
            requested[at]["pods"] += 1000
            for container in one["spec"]["containers"]:
                for kind, amount in container["resources"].get("requests", {}).items():
                    requested[at][kind] += _thousandths(amount)
    found = {}
    for one in nodes:
        name = one["metadata"]["name"]
        allocatable = {kind: _thousandths(amount) for kind, amount in one["status"]["allocatable"].items()}
        for kind, amount in requested.get(name, {}).items():
            if amount > allocatable.get(kind, 0):
                found[name] = f"{amount / 1000:g} of {allocatable.get(kind, 0) / 1000:g} {kind}"
    return found


def _thousandths(amount: str) -> int:
    return round(1000 * parse_quantity(amount))


def assert_settled(
    writer: ClusterWriter,
    processes: Sequence[ScorerProcess],
    *,
    shared: Collection[str] = (),
    seconds: float = LONG,
    scheduler: str = OURS,
) -> dict[str, str]:
    """Comes to rest with each pod of ours on a node of ours, or waiting with a reason that users can read; no node past
    allocatable; nothing left that is merely assumed. Returns the node of each pod of ours, '' = it waits.

    shared    : names of nodes beyond our domain where pods of ours may be, too
    scheduler : name of the profile whose pods are looked at
    """
    logs = "\n".join(process.log[-3000:] for process in processes)
    for process in processes:
        rests = eventually(lambda of=process: _at_rest(of), seconds)  # type: ignore[misc]
        left = {name: process.metric(name) for name in _AT_REST}
        assert rests, f"left over: {left} {process.get('/v1/status')['scheduling']} {process.log[-3000:]}"
    unclear: list[str] = []

    def all_clear() -> bool:
        unclear[:] = [
            one["metadata"]["name"]
            for one in writer.list_all("pods", field_selector="spec.nodeName=")
            if one["spec"]["schedulerName"] == scheduler and not all(condition(one))
        ]
        return not unclear

    assert eventually(all_clear, seconds), f"neither bound nor told why: {unclear[:10]} of {len(unclear)}; {logs}"
    pods, nodes = writer.list_all("pods"), writer.list_all("nodes")
    assert overcommitted(pods, nodes) == {}
    ours = {
        one["metadata"]["name"]: one["spec"].get("nodeName", "")
        for one in pods
        if one["spec"]["schedulerName"] == scheduler
    }
    allowed = {one["metadata"]["name"] for one in nodes if one["metadata"].get("labels", {}).get(DOMAIN) == OURS}
    astray = {name: at for name, at in ours.items() if at and at not in allowed | set(shared)}
    assert not astray, f"on nodes that are not ours, or gone: {astray}"
    return ours


_AT_REST: Final = ("forecast_assumed_pods", "forecast_bindings_in_flight")


def _at_rest(process: ScorerProcess) -> bool:
    return all(process.metric(name) == 0 for name in _AT_REST)


def reported(process: ScorerProcess, name: str, **labels: str) -> float:
    """A metric with these labels; 0 where it is not there yet."""
    inside = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    lines = process.http.get("/metrics").raise_for_status().text.splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith(f"{name}{{{inside}}} ")), 0.0)
