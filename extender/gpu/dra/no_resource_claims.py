"""Filter NoResourceClaims, of profiles that do not allocate devices: pods that wait for some are not placed blindly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from extender.filters.filter import ClusterView, Rejection
from extender.filters.found import every_node
from scorer.cluster.objects import PodInfo

__all__ = ["NoResourceClaims"]

_REASON: Final = "pods with ResourceClaims are placed by the gpu profile"


class NoResourceClaims:
    """Unresolvable: it does not depend on the cluster."""

    name = "NoResourceClaims"

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """All nodes or none."""
        return every_node(view, _REASON) if pod.resource_claims else ()
