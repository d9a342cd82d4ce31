"""Filter NodeDeclaredFeatures: nodes whose kubelet declares all features that the pod needs (KEP-5328).

Source: framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go. Which features a pod needs is decided as it is
decoded (kube/decoding/pod_needs.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView, NodeFilter, Rejection
from placement.filters.rejections import found

_REASON: Final = "node(s) didn't match Pod's required features"


class NodeDeclaredFeatures(NodeFilter):
    """Unresolvable."""

    name = "NodeDeclaredFeatures"

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Few pods need any feature: the others cost nothing."""
        if not pod.needed_features or not view.state.version.asks_declared_features:
            return ()
        return found(~view.index.features.declaring(pod.needed_features), view, _REASON, preemptible=False)
