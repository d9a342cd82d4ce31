"""Consistent lists of some pods, for what a replica has not followed: those of a node, or those that wait."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import quote

import msgspec
import urllib3
from kubernetes import client

from cluster.live_tables import LiveTables
from kube.client.kubernetes_client import send
from kube.decoding.decoding import Kind, watched
from kube.decoding.watched_kinds import UndecodableObject, decode_page
from kube.objects.objects import PodInfo
from kube.objects.pod_accounting import waits
from scheduler.shards.foreign_pods import ForeignPods

logger = logging.getLogger(__name__)

_SECONDS: Final = 5.0
_STEP_SECONDS: Final = 2.0
"""After which the nodes that are left wait for the next call: the same thread takes and gives up shards."""


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str
    resource_version: str


class _Item(msgspec.Struct):
    metadata: _Metadata


class _List(msgspec.Struct):
    items: list[_Item]


_LIST: Final = msgspec.json.Decoder(_List)


class PodLists:
    """For one thread, which must not hold the lock of the tables.

    wanted : of the waiting pods; asked under the lock
    """

    def __init__(
        self,
        api: client.ApiClient,
        tables: LiveTables,
        *,
        foreign: ForeignPods,
        wanted: Callable[[PodInfo], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._tables, self._foreign, self._wanted, self._clock = api, tables, foreign, wanted, clock

    def read_nodes(self, nodes: Sequence[str]) -> list[str]:
        """Let the tables know all pods of these nodes; returns the nodes of which they do. The first is read in any
        case, the others while there is time."""
        read, began = list[str](), self._clock()
        for node in nodes:
            if not self._read(f"spec.nodeName={node}", lambda pod: True):
                break
            read.append(node)
            if self._clock() - began > _STEP_SECONDS:
                break
        return read

    def read_waiting(self) -> bool:
        """Let the tables know the pods that wait and are wanted; returns whether they do."""
        return self._read("spec.nodeName=", self._wanted)

    def _read(self, selector: str, wanted: Callable[[PodInfo], bool]) -> bool:
        """What the tables know already the watch keeps up to date, and it may know better than the list. But no binding
        is undone: one that the list shows, and the tables do not, the watch has still to say."""
        listed = self._list(selector)
        if listed is None:
            return False
        pods, versions = listed
        with self._tables.changing() as cluster:
            gone, left_out = self._foreign.deleted(), self._foreign.bound_elsewhere()
            new = [
                pod
                for pod in pods
                if pod.uid not in gone
                and (pod.node or pod.uid not in left_out)
                and _is_news(pod, cluster.state.pods.get(pod.uid))
                and wanted(pod)
            ]
            self._foreign.listed({pod.uid: versions.get(pod.uid, 0) for pod in new})
            for pod in new:
                cluster.put_pod(pod)
            # What the watch left out before it could see them in the tables.
            gone, left_out = self._foreign.deleted(), self._foreign.bound_elsewhere()
            for pod in new:
                if pod.uid in gone or (not pod.node and pod.uid in left_out):
                    cluster.delete_pod(pod.uid)
        return True

    def _list(self, selector: str) -> tuple[list[PodInfo], dict[str, int]] | None:
        """Return pods, and their resourceVersions by UID."""
        path = f"/api/v1/pods?fieldSelector={quote(selector, safe='')}"
        try:
            answer = send(self._api, "GET", path, seconds=_SECONDS)
            if answer.status != 200:
                raise OSError(f"{answer.status} {answer.data[:200]!r}")
            with self._tables.reading() as cluster:
                of_version = watched(Kind.PODS, cluster.state.version)
            page = decode_page(of_version, answer.data)
            versions = {one.metadata.uid: int(one.metadata.resource_version) for one in _LIST.decode(answer.data).items}
        except (urllib3.exceptions.HTTPError, OSError, UndecodableObject, msgspec.DecodeError, ValueError) as error:
            logger.warning("pods cannot be listed", extra={"selector": selector, "why": str(error)[:300]})
            return None
        return [pod for pod in page.objects if isinstance(pod, PodInfo)], versions


def _is_news(pod: PodInfo, known: PodInfo | None) -> bool:
    return known is None or (bool(pod.node) and waits(known))
