"""Whether a pod may leave the cluster for a virtual node, decided from the pod alone. What its node selector and
affinity say of virtual nodes the filters find out."""

from __future__ import annotations

from typing import Final

from kube.objects.objects import PodInfo
from scheduler.profiles.job.job_annotations import JobTerms, Place

_OF_NODES: Final = frozenset({"DaemonSet", "Node"})
"""Kinds of owners whose pods are there for the sake of a node."""


def may_leave(pod: PodInfo, terms: JobTerms) -> str:
    """Return why the pod has to stay, to be read after "the pod"; '' = it may leave.

    Volumes: config maps, secrets, empty directories, projections and images come along; claims, disks, paths of the
    host and all others do not. If it needs data nearby, its owner says so with the annotation place: cluster.
    """
    if terms.place is Place.CLUSTER:
        return "is to stay in the cluster"
    if pod.owner.kind in _OF_NODES:
        return "belongs to a node"
    if pod.host_ports:
        return "takes ports of its node"
    if pod.volumes:
        return "has volumes that stay"
    if pod.uses_host:
        return "uses its node or volumes that stay"
    return ""
