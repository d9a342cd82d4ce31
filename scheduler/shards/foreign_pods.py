"""Pods that are another replica's business: a replica that does not lead need not decode their events, and lists them
when it takes their nodes over.

What is left out are plain pods that another replica is to place, or that sit on another one's nodes. When that changes,
these are listed: the pods of a node that is handed over, all pods when a shard is taken, the waiting ones when units go
to another replica than before. The leader follows the waiting pods that have come to it, and those that it may have to
decide about; from the first of them on, everything, for a while. All replicas follow everything where queues are shared
among owners, which count what runs in the cluster, or nodes with another scheduler.

Not plain, and never left out: pods whose rules or volumes reach beyond their node, and members of gangs.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final
from urllib.parse import quote

import msgspec
from kubernetes import client
from msgspec import Raw

from cluster.live_tables import LiveTables
from cluster.tables.state import ClusterState
from kube.client.kubernetes_client import send
from kube.decoding.decoding import Kind, watched
from kube.decoding.watched_kinds import REFUSED, UndecodableObject, decode_page
from kube.objects.counted_pods import waits
from kube.objects.objects import PodInfo
from kube.objects.watched_objects import version_number
from placement.pod_groups.group_of_pod import MIN_MEMBER
from scheduler.shards.passing_on import PASSED_ON, read_passed_on

_DELETED: Final = b'{"type":"DELETED"'
_MOST_REMEMBERED: Final = 20_000
_MOST_LISTED: Final = 5_000
_NOTHING: Final = Raw()

logger = logging.getLogger(__name__)
_SECONDS: Final = 5.0

_STEP_SECONDS: Final = 2.0
"""After which the nodes that are left wait for the next call: the same thread takes and gives up shards."""


class _Owner(msgspec.Struct):
    uid: str
    controller: bool | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str
    namespace: str
    resource_version: str = ""
    labels: Raw = _NOTHING
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    """What is Raw is only looked at, not decoded."""

    node_name: str = ""
    scheduler_name: str = ""
    affinity: Raw = _NOTHING
    topology_spread_constraints: Raw = _NOTHING
    resource_claims: Raw = _NOTHING
    scheduling_group: Raw = _NOTHING
    scheduling_gates: Raw = _NOTHING
    volumes: Raw = _NOTHING


class _Status(msgspec.Struct, rename="camel"):
    nominated_node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    status: _Status | None = None


class _Event(msgspec.Struct):
    object: _Pod


_EVENT: Final = msgspec.json.Decoder(_Event)


class ForeignPods:
    """`is_foreign` is called by the thread of the watch, without the lock of the tables.

    scheduler_names : whose pods replicas place
    follows_all     : whether this replica has to know all pods now
    owns            : whether pods of a node, by name, are or may soon be this replica's
    places          : whether this replica is to try a plain pod: of a unit, after so many others, or of a shard
    decides         : whether this replica may have to decide about a waiting pod as the leader, by its namespace, the
                      name of its scheduler and its annotations
    holds_rooms     : whether room is held for pods to come, one of which a waiting pod may be
    """

    def __init__(
        self,
        state: ClusterState,
        scheduler_names: Collection[str],
        *,
        follows_all: Callable[[], bool],
        owns: Callable[[str], bool],
        places: Callable[[str, int, int], bool],
        decides: Callable[[str, str, Mapping[str, str]], bool],
        holds_rooms: Callable[[], bool],
    ) -> None:
        self._state, self._names = state, scheduler_names
        self._follows_all, self._owns, self._places, self._holds_rooms = follows_all, owns, places, holds_rooms
        self._decides = decides
        self._deleted: deque[str] = deque(maxlen=_MOST_REMEMBERED)
        self._bound: deque[str] = deque(maxlen=_MOST_REMEMBERED)
        self._listed: dict[str, int] = {}

    def deleted(self) -> frozenset[str]:
        """Return UIDs of the pods that were deleted last: a list that was made before that may still name them."""
        return frozenset(self._deleted.copy())

    def bound_elsewhere(self) -> frozenset[str]:
        """Return UIDs of the pods whose binding to another replica's node was left out last: a list that was made
        before that may still show them waiting."""
        return frozenset(self._bound.copy())

    def listed(self, versions: Mapping[str, int]) -> None:
        """The tables know these pods from a list, by UID at these resourceVersions: what the watch says of them may be
        older, and would undo it. Every change of the dict is one step: the thread of the watch may look meanwhile."""
        for uid in [*self._listed][: max(0, len(self._listed) - _MOST_LISTED)]:
            self._listed.pop(uid, None)
        self._listed.update(versions)

    def is_foreign(self, line: bytes) -> bool:
        """Return whether an event of the watch need not be decoded, by its line."""
        follows_all, is_deleted = self._follows_all(), line.startswith(_DELETED)
        if follows_all and not is_deleted and not self._listed:
            return False
        try:
            pod = _EVENT.decode(line).object
        except REFUSED:
            return False  # a bookmark, an error, or what the real decoder is to complain about
        metadata = pod.metadata
        if is_deleted:
            self._deleted.append(metadata.uid)
            return metadata.uid not in self._state.pods
        if (version := self._listed.get(metadata.uid)) is not None:
            if (version_number(metadata.resource_version) or 0) <= version:
                return True
            self._listed.pop(metadata.uid, None)
        if follows_all or metadata.uid in self._state.pods or pod.spec.scheduler_name not in self._names:
            return False
        if not _is_plain(pod) or self._is_ours(metadata, pod.spec):
            return False
        if pod.spec.node_name:
            self._bound.append(metadata.uid)
        return True

    def _is_ours(self, metadata: _Metadata, spec: _Spec) -> bool:
        if spec.node_name:
            return self._owns(spec.node_name)
        annotations = metadata.annotations or {}
        if self._holds_rooms() or self._decides(metadata.namespace, spec.scheduler_name, annotations):
            return True  # one of the rooms may be for it
        said = read_passed_on(annotations.get(PASSED_ON, ""))
        owner = next((one.uid for one in metadata.owner_references or () if one.controller), "")
        unit = f"owner:{metadata.namespace}/{owner}" if owner else f"pod:{metadata.uid}"
        return self._places(unit, said.tries, said.shard)


def _is_plain(pod: _Pod) -> bool:
    spec, metadata = pod.spec, pod.metadata
    if (
        spec.affinity is not _NOTHING
        or spec.topology_spread_constraints is not _NOTHING
        or spec.resource_claims is not _NOTHING
        or spec.scheduling_group is not _NOTHING
        or spec.scheduling_gates is not _NOTHING
        or (pod.status is not None and pod.status.nominated_node_name)
        or (metadata.annotations is not None and MIN_MEMBER in metadata.annotations)
        or b"pod-group" in bytes(metadata.labels)
    ):
        return False
    if spec.volumes is _NOTHING:
        return True
    volumes = bytes(spec.volumes)
    return b'"persistentVolumeClaim"' not in volumes and b'"ephemeral"' not in volumes


class _ListedMetadata(msgspec.Struct, rename="camel"):
    uid: str
    resource_version: str


class _Item(msgspec.Struct):
    metadata: _ListedMetadata


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
        answer = send(self._api, "GET", path, seconds=_SECONDS)
        try:
            if not answer.is_success:
                raise OSError(answer.text)
            with self._tables.reading() as cluster:
                of_version = watched(Kind.PODS, cluster.state.version)
            page = decode_page(of_version, answer.body)
            versions = {one.metadata.uid: int(one.metadata.resource_version) for one in _LIST.decode(answer.body).items}
        except (OSError, UndecodableObject, msgspec.DecodeError, ValueError) as error:
            logger.warning("pods cannot be listed", extra={"selector": selector, "why": str(error)[:300]})
            return None
        return [pod for pod in page.objects if isinstance(pod, PodInfo)], versions


def _is_news(pod: PodInfo, known: PodInfo | None) -> bool:
    return known is None or (bool(pod.node) and waits(known))
