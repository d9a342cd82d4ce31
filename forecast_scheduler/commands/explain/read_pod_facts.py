"""What the API server knows of one pod and of those that may hold it, in a few GETs. What may not be read is said, and
counts as not known."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

import msgspec
from kubernetes import client

from forecast_scheduler.commands.explain.pod_state import SeenLease, WaitingClaim, WaitingFacts
from forecast_scheduler.settings.document import Settings
from kube.client.api_answer import ApiAnswer
from kube.client.kubernetes_client import send
from kube.decoding.decoding import Kind, decode_object
from kube.decoding.watched_kinds import UndecodableObject, decode_page
from kube.leader_election.lease import leases_path
from kube.leader_election.lease_options import LeaseOptions
from kube.leader_election.record import read_lease
from kube.objects.objects import NamespaceInfo, PodInfo
from kube.objects.storage_objects import VolumeClaimInfo
from tenants.elastic_quota import WATCHED_QUOTAS, ElasticQuota

_SECONDS: Final = 5.0
_MISSING: Final = 404

_MOST_CLAIMS: Final = 16
"""Of one pod that are read: each costs a request."""


def read_facts(api: client.ApiClient, pod: PodInfo, body: bytes, settings: Settings) -> WaitingFacts:
    """body: the pod as the API server answered it. Never raises for an API server that refuses or fails."""
    seen = msgspec.json.decode(body)
    condition = _condition(seen)
    return WaitingFacts(
        pod=pod,
        now=time.time(),
        reason=str(condition.get("reason") or ""),
        message=str(condition.get("message") or ""),
        gate_setters=_gate_setters(seen),
        namespace_labels=_namespace_labels(api, pod.namespace),
        advisor=_lease(api, settings.advise.leader_election),
        loops=_lease(api, settings.schedule.leader_election),
        our_names=frozenset(settings.schedule.all_scheduler_names.values()),
        quotas=_quotas(api, pod.namespace),
        claims=() if pod.node else _claims(api, pod, seen),
    )


def _get(api: client.ApiClient, path: str) -> ApiAnswer:
    return send(api, "GET", path, seconds=_SECONDS)


def _namespace_labels(api: client.ApiClient, namespace: str) -> Mapping[str, str] | None:
    answer = _get(api, f"/api/v1/namespaces/{namespace}")
    read = decode_object(Kind.NAMESPACES, answer.body)[0] if answer.is_success else None
    return read.labels if isinstance(read, NamespaceInfo) else None


def _condition(seen: dict[str, Any]) -> dict[str, Any]:
    conditions = seen.get("status", {}).get("conditions") or ()
    of_placing = (one for one in conditions if one.get("type") == "PodScheduled" and one.get("status") == "False")
    return next(of_placing, {})


def _gate_setters(seen: dict[str, Any]) -> dict[str, str]:
    """Which client set a gate, by its name."""
    setters = {}
    for entry in seen["metadata"].get("managedFields") or ():
        gates = entry.get("fieldsV1", {}).get("f:spec", {}).get("f:schedulingGates", {})
        for key in gates:
            if key.startswith("k:"):
                setters[str(msgspec.json.decode(key.removeprefix("k:")).get("name", ""))] = str(entry["manager"])
    return setters


def _lease(api: client.ApiClient, options: LeaseOptions) -> SeenLease:
    name = f"{options.namespace}/{options.name}"
    answer = _get(api, f"{leases_path(options.namespace)}/{options.name}")
    if answer.status == _MISSING:
        return SeenLease(name)
    record = read_lease(answer.body) if answer.is_success else None
    if record is None:
        return SeenLease(name, unread=f"Lease {name} cannot be read ({answer.why_none or answer.status})")
    try:
        age = max(0.0, time.time() - datetime.fromisoformat(record.renewed).timestamp())
    except ValueError:
        age = None
    return SeenLease(name, record, age)


def _quotas(api: client.ApiClient, namespace: str) -> tuple[ElasticQuota, ...]:
    """Those that count pods of the namespace; none where the API is not served."""
    answer = _get(api, WATCHED_QUOTAS.path)
    if not answer.is_success:
        return ()
    try:
        found = decode_page(WATCHED_QUOTAS, answer.body).objects
    except UndecodableObject:
        return ()
    return tuple(one for one in found if namespace in (one.namespace, *one.namespaces))


def _claims(api: client.ApiClient, pod: PodInfo, seen: dict[str, Any]) -> tuple[WaitingClaim, ...]:
    """Volume claims that are not bound, and claims for devices that are reserved for the pod."""
    found = []
    inside = f"namespaces/{pod.namespace}"
    for volume in pod.volumes[:_MOST_CLAIMS]:
        answer = _get(api, f"/api/v1/{inside}/persistentvolumeclaims/{quote(volume.claim)}") if volume.claim else None
        claim = decode_object(Kind.CLAIMS, answer.body)[0] if answer is not None and answer.is_success else None
        if isinstance(claim, VolumeClaimInfo) and not claim.is_bound:
            found.append(WaitingClaim("PersistentVolumeClaim", volume.claim, node=claim.selected_node or ""))
    for one in pod.resource_claims[:_MOST_CLAIMS]:
        answer = (
            _get(api, f"/apis/resource.k8s.io/v1/{inside}/resourceclaims/{quote(one.claim)}") if one.claim else None
        )
        if answer is not None and answer.is_success:
            users = msgspec.json.decode(answer.body).get("status", {}).get("reservedFor") or ()
            if any(user.get("uid") == pod.uid for user in users):
                found.append(WaitingClaim("ResourceClaim", str(one.claim), is_reserved=True))
    return tuple(found)
