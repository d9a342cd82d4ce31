"""Consistent lists of some pods, for what a replica has not followed: those of a node, or those that wait."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import Final
from urllib.parse import quote

import urllib3
from kubernetes import client

from kube.client.kubernetes_client import send
from kube.decoding.decoding import Kind, watched
from kube.decoding.watched_kinds import UndecodableObject, decode_page
from kube.objects.objects import PodInfo
from scorer.live_tables import LiveTables

logger = logging.getLogger(__name__)

_SECONDS: Final = 10.0


class PodLists:
    """For one thread, which must not hold the lock of the tables.

    wanted  : of the waiting pods; asked under the lock
    deleted : UIDs of pods of which the watch has said that they are gone
    """

    def __init__(
        self,
        api: client.ApiClient,
        tables: LiveTables,
        *,
        wanted: Callable[[PodInfo], bool],
        deleted: Callable[[], Collection[str]],
    ) -> None:
        self._api, self._tables, self._wanted, self._deleted = api, tables, wanted, deleted

    def read_nodes(self, nodes: Sequence[str]) -> list[str]:
        """Let the tables know all pods of these nodes; returns the nodes of which they do."""
        return [node for node in nodes if self._read(f"spec.nodeName={node}", lambda pod: True)]

    def read_waiting(self) -> bool:
        """Let the tables know the pods that wait and are wanted; returns whether they do."""
        return self._read("spec.nodeName=", self._wanted)

    def _read(self, selector: str, wanted: Callable[[PodInfo], bool]) -> bool:
        """What the tables know already the watch keeps up to date, and it may know better than the list."""
        pods = self._listed(selector)
        if pods is None:
            return False
        with self._tables.changing() as cluster:
            gone = self._deleted()
            for pod in pods:
                if pod.uid not in cluster.state.pods and pod.uid not in gone and wanted(pod):
                    cluster.put_pod(pod)
        return True

    def _listed(self, selector: str) -> list[PodInfo] | None:
        path = f"/api/v1/pods?fieldSelector={quote(selector, safe='')}"
        try:
            answer = send(self._api, "GET", path, seconds=_SECONDS)
            if answer.status != 200:
                raise OSError(f"{answer.status} {answer.data[:200]!r}")
            with self._tables.reading() as cluster:
                of_version = watched(Kind.PODS, cluster.state.version)
            page = decode_page(of_version, answer.data)
        except (urllib3.exceptions.HTTPError, OSError, UndecodableObject) as error:
            logger.warning("pods cannot be listed", extra={"selector": selector, "why": str(error)[:300]})
            return None
        return [pod for pod in page.objects if isinstance(pod, PodInfo)]
