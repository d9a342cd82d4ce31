"""Filter NodePorts: a port of the node that the pod wants is in use.

Source: framework/plugins/nodeports/node_ports.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kube.objects.objects import PodInfo
from placement.cluster_events import ROOM_EVENTS, ClusterEvent, EventKind, Hint
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.rejections import found

_REASON: Final = "node(s) didn't have free ports for the requested pod ports"


class NodePorts(PlainFilter):
    """Evicting the pod that has the port helps."""

    name = "NodePorts"
    woken_by = ROOM_EVENTS

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Looks only at pods that have one of the ports; the pod's own ports do not conflict with each other."""
        if not pod.host_ports:
            return ()
        return found(view.index.ports.taken(pod.host_ports, view.n_rows), view, _REASON, preemptible=True)

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        return Hint.of(event.kind is not EventKind.POD_LEFT or event.pod is None or bool(event.pod.host_ports))

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return not pod.host_ports
