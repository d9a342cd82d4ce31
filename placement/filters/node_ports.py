"""Filter NodePorts: a port of the node that the pod wants is in use.

Source: framework/plugins/nodeports/node_ports.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView, Rejection
from placement.filters.rejections import found

_REASON: Final = "node(s) didn't have free ports for the requested pod ports"


class NodePorts:
    """Evicting the pod that has the port helps."""

    name = "NodePorts"

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Looks only at pods that have one of the ports; the pod's own ports do not conflict with each other."""
        if not pod.host_ports:
            return ()
        return found(view.index.ports.taken(pod.host_ports, view.n_rows), view, _REASON, preemptible=True)
