"""Plugin DecidedAlone: what a replica decided as the leader is not bound once another one may lead.

The next leader counts quotas, zones and loans over what it has read: what is bound after that would not be in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from kube.objects.objects import PodInfo
from placement.status import SUCCESS, Code, Status


class DecidedAlone:
    """Implements Reserve and Bind; the latter is to be asked before the plugin that binds. leads: the Lease says so."""

    name: Final = "DecidedAlone"

    def __init__(self, leads: Callable[[], bool]) -> None:
        self._leads = leads
        self._pods: set[str] = set()

    def add(self, uids: Iterable[str]) -> None:
        """These were placed by rules that count over the nodes of all."""
        self._pods.update(uids)

    def reserve(self, pod: PodInfo, node: str) -> Status:
        """Keep it: whether it is the leader's is known once its whole unit was looked at."""
        return SUCCESS

    def unreserve(self, pod: PodInfo, node: str) -> None:
        """It is not bound after all."""
        self._pods.discard(pod.uid)

    async def bind(self, pod: PodInfo, node: str) -> Status:
        """SKIP = it may be bound."""
        if pod.uid not in self._pods:
            return Status(Code.SKIP, self.name)
        self._pods.discard(pod.uid)
        if self._leads():
            return Status(Code.SKIP, self.name)
        return Status(Code.UNSCHEDULABLE, self.name, "it was placed as the leader, which this replica is no more")
