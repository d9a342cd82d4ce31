"""Paths and bodies of writes to one pod. The UID goes along: a later pod of the same name is left alone."""

from __future__ import annotations

from typing import Final, Protocol
from urllib.parse import quote

import msgspec

MERGE: Final = "application/merge-patch+json"


class PodIdentity(Protocol):
    """What names one pod and no other: kube.objects.objects.PodInfo, a move of the rebalancer."""

    @property
    def namespace(self) -> str:
        """Return the namespace of the pod."""

    @property
    def name(self) -> str:
        """Its name, which a later pod may have, too."""

    @property
    def uid(self) -> str:
        """Of no other pod, ever."""


def pod_path(pod: PodIdentity) -> str:
    """Return the path of the pod itself."""
    return f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}"


def nomination_body(pod: PodIdentity, node: str) -> bytes:
    """Return a merge patch of the status. node: '' = nominated nowhere."""
    return msgspec.json.encode({"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node or None}})
