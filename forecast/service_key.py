"""Which service a pod belongs to: one answer for every caller, whatever it knows about the pod.

A *service* is the top owner of a pod: shop/Deployment/cart. `service_of_pod` derives it from the pod's controller;
`owner_from_labels` reads that controller from kube-state-metrics labels, `owner_from_references` from an API object.
Both roads must end at the same key, or the model trained on the one is never found through the other.

    pod's controller   service                       known from
    ReplicaSet         Deployment/x or Rollout/x     the ReplicaSet's owner, else pod-template-hash, else its name
    Job                CronJob/x, else Job/x         the Job's owner, else the time at the end of the name
    Node               StaticPod/x                   a mirror pod is named <static pod>-<node>
    none               Pod/<its own name>            a bare pod is a service of one
    anything else      that controller               StatefulSet, DaemonSet, custom resources

Owners that ran once and share all of their name but a generated part are counted as one (forecast.one_off_owners).

An owner of the Deployment or StatefulSet itself (an operator's custom resource) is not followed: one such resource
often owns several workloads that do different things.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from base.errors import InputError

GENERATED = "*"
"""Stands for the generated part in the name of a group of owners; no name in Kubernetes has it."""


@dataclass(frozen=True, slots=True, order=True)
class ServiceKey:
    """Namespace, kind and name of a top owner; sorts in that order. Written shop/Deployment/cart."""

    namespace: str
    kind: str
    name: str

    def __post_init__(self) -> None:
        for part in (self.namespace, self.kind, self.name):
            if not part or "/" in part:
                raise InputError(
                    f"service key has the parts {self.namespace!r}, {self.kind!r}, {self.name!r}: each must be a "
                    "non-empty name without '/', as in shop/Deployment/cart"
                )

    def __str__(self) -> str:
        return f"{self.namespace}/{self.kind}/{self.name}"

    @property
    def service(self) -> str:
        """Kind/name, as the `service` column of the history files has it."""
        return f"{self.kind}/{self.name}"

    @property
    def belongs_to_node(self) -> bool:
        """Whether its pods come with the node rather than being placed: they are part of the node's base load."""
        return self.kind in ("DaemonSet", "StaticPod")

    @property
    def runs_to_completion(self) -> bool:
        """Whether each of its pods runs for a while and ends for good: a *Job owner*, in the words of the docs."""
        return self.kind in ("Job", "CronJob") or self.is_group

    @property
    def is_group(self) -> bool:
        """Whether it stands for owners that run once under generated names (forecast.one_off_owners)."""
        return GENERATED in self.name

    @classmethod
    def parse(cls, text: str) -> ServiceKey:
        """The inverse of `str`."""
        parts = text.split("/")
        if len(parts) != 3:
            raise InputError(f"service key {text!r} has {len(parts)} parts: write namespace/Kind/name")
        return cls(*parts)

    @classmethod
    def from_columns(cls, namespace: str, service: str) -> ServiceKey:
        """From the columns `namespace` and `service` (Kind/name) of the history files."""
        return cls.parse(f"{namespace}/{service}")


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller of an object."""

    kind: str
    name: str


NO_OWNER = Owner("", "")
"""It was looked up and there is none, which is not the same as None: not looked up."""

# Kubernetes writes hashes in this alphabet, without vowels and look-alikes, so that they form no words:
# https://github.com/kubernetes/apimachinery/blob/master/pkg/util/rand/rand.go (SafeEncodeString of a uint32).
HASH_SUFFIX = "-[bcdfghjklmnpqrstvwxz2456789]{1,10}"
# Before Kubernetes 1.9 the hash was a number of 32 bits in decimals.
_HASH = re.compile(rf"(?:{HASH_SUFFIX}|-\d{{8,10}})$")
_DIGITS = re.compile(r"-(\d{8}|\d{10})$")

# A CronJob names its Jobs by the time they were due: minutes since the epoch from Kubernetes 1.21 on (getJobName in
# pkg/controller/cronjob/utils.go), seconds before. The bounds keep dates apart that people write at the end of a name:
# 20261121 is below the first, 2026112104 above the second.
_CRON_MINUTES = range(26_000_000, 100_000_000)
_CRON_SECONDS = range(1_400_000_000, 2_000_000_000)

DEPLOYMENT_HASH_LABEL = "pod-template-hash"
ROLLOUT_HASH_LABEL = "rollouts-pod-template-hash"


def service_of_pod(
    namespace: str,
    pod: str,
    owner: Owner | None,
    *,
    owner_of_owner: Owner | None = None,
    pod_labels: Mapping[str, str] | None = None,
) -> ServiceKey:
    """Return the service of a pod.

    owner          : the pod's controller; None or NO_OWNER for a bare pod
    owner_of_owner : controller of the ReplicaSet or Job, where it was looked up (kube_replicaset_owner, kube_job_owner
                     or the API object); NO_OWNER if it has none, None if it was not looked up
    pod_labels     : labels of the pod, where they are known (kube-state-metrics does not export them by default)
    """
    if owner is None or owner == NO_OWNER:
        return ServiceKey(namespace, "Pod", pod)
    if owner.kind == "Node":
        return ServiceKey(namespace, "StaticPod", pod.removesuffix(f"-{owner.name}") or pod)
    if owner.kind in ("ReplicaSet", "ReplicationController", "Job"):
        if owner_of_owner == NO_OWNER:
            return ServiceKey(namespace, owner.kind, owner.name)
        if owner_of_owner is not None:
            return ServiceKey(namespace, owner_of_owner.kind, owner_of_owner.name)
    if owner.kind == "ReplicaSet":
        owner = owner_of_replica_set(owner, pod_labels)
    elif owner.kind == "Job":
        owner = _owner_of_job(owner)
    return ServiceKey(namespace, owner.kind, owner.name)


def owner_from_labels(labels: Mapping[str, str]) -> Owner | None:
    """Controller named by a kube-state-metrics series, or NO_OWNER, or None if the labels do not speak of owners.

    kube_pod_info has created_by_kind and created_by_name; kube_pod_owner, kube_replicaset_owner and kube_job_owner have
    owner_kind and owner_name. An object without owner carries "<none>" (older versions: an empty string). Of an object
    with several owners kube_*_owner has one series each: pass the one with owner_is_controller="true".
    """
    for prefix in ("created_by", "owner"):
        if f"{prefix}_kind" in labels:
            kind, name = labels[f"{prefix}_kind"], labels.get(f"{prefix}_name", "")
            return Owner(kind, name) if _is_set(kind) and _is_set(name) else NO_OWNER
    return None


def owner_from_references(references: Iterable[Mapping[str, Any]] | None) -> Owner:
    """Controller among metadata.ownerReferences; NO_OWNER if there is none.

    Only the reference with `controller: true` manages the object, others merely tie its lifetime to theirs
    (https://kubernetes.io/docs/concepts/architecture/garbage-collection/).
    """
    for reference in references or ():
        if reference.get("controller"):
            return Owner(str(reference["kind"]), str(reference["name"]))
    return NO_OWNER


def owner_of_replica_set(replica_set: Owner, pod_labels: Mapping[str, str] | None) -> Owner:
    """Deployment or Rollout of a ReplicaSet named <deployment>-<hash>; itself if it does not look owned."""
    if pod_labels is not None:
        # Both controllers put the hash into the name and on the pod, so the labels settle it either way.
        for kind, label in (("Rollout", ROLLOUT_HASH_LABEL), ("Deployment", DEPLOYMENT_HASH_LABEL)):
            template_hash = pod_labels.get(label)
            if template_hash and replica_set.name.endswith(f"-{template_hash}"):
                return Owner(kind, replica_set.name.removesuffix(f"-{template_hash}"))
        return replica_set
    # The name alone does not distinguish a Rollout from a Deployment; Deployments are far more common.
    name = _HASH.sub("", replica_set.name)
    return Owner("Deployment", name) if name and name != replica_set.name else replica_set


def _owner_of_job(job: Owner) -> Owner:
    """CronJob of a Job named <cronjob>-<time>; itself if no such time is at the end."""
    match = _DIGITS.search(job.name)
    if match is None or match.start() == 0:
        return job
    due = _CRON_MINUTES if len(match[1]) == 8 else _CRON_SECONDS
    return Owner("CronJob", job.name[: match.start()]) if int(match[1]) in due else job


def _is_set(value: str) -> bool:
    return value not in ("", "<none>")
