"""The pod of each service that was seen last: what the next one will request while the service has none.

Nothing is written down: a service that has had no pod since this process began is not known here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, PodChange
from cluster.tables.state import ClusterState
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo

_LASTING_SERVICES: Final = 8192
_PASSING_SERVICES: Final = 1024
_PASSING_KINDS: Final = frozenset({"Job", "Pod"})
"""Services that come under ever new names. They are not to push out those that come back every day."""


class SeenPods(NodesAndPodsOnly):
    """Implements Follower; called under the lock of the tables. Beyond the limits the service that was seen or asked
    for longest ago is forgotten.

    lasting, passing : number of services that are remembered; passing are those of bare Jobs and pods
    """

    def __init__(
        self,
        state: ClusterState,
        has_tenant: Callable[[str], bool],
        *,
        lasting: int = _LASTING_SERVICES,
        passing: int = _PASSING_SERVICES,
    ) -> None:
        """has_tenant: whether pods of a namespace count in any quota; others are not remembered."""
        self._state, self._has_tenant = state, has_tenant
        self._lasting, self._passing = (OrderedDict[ServiceKey, PodInfo]() for _ in range(2))
        self._most = {id(self._lasting): lasting, id(self._passing): passing}

    def apply(self, changes: Sequence[Change]) -> None:
        """Remember pods that come or end. Pods that are seated many at once (PodsSeated) came before."""
        for change in changes:
            if isinstance(change, PodChange) and change.before is None and self._has_tenant(change.pod.namespace):
                self.note(self._state.service_key(change.pod), change.pod)

    def rebuild(self) -> None:
        """Remember all pods that are there."""
        for pod in self._state.pods.values():
            if self._has_tenant(pod.namespace):
                self.note(self._state.service_key(pod), pod)

    def note(self, service: ServiceKey, pod: PodInfo) -> None:
        """Remember a pod as the last one of its service."""
        pods = self._table(service)
        pods[service] = pod
        pods.move_to_end(service)
        if len(pods) > self._most[id(pods)]:
            pods.popitem(last=False)

    def last(self, service: ServiceKey) -> PodInfo | None:
        """Return the pod that was seen last; None = none is remembered."""
        pods = self._table(service)
        pod = pods.get(service)
        if pod is not None:
            pods.move_to_end(service)
        return pod

    def __len__(self) -> int:
        """Return the number of services that are remembered."""
        return len(self._lasting) + len(self._passing)

    def _table(self, service: ServiceKey) -> OrderedDict[ServiceKey, PodInfo]:
        return self._passing if service.kind in _PASSING_KINDS else self._lasting
