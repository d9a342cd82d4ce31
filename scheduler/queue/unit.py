"""Which unit a pod is of: the pods of one controller and priority, a bare pod, or a gang. The queue pops it as one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from kube.objects.objects import PodInfo


@dataclass(frozen=True, slots=True)
class UnitOf:
    """Which unit a pod is of.

    key     : pods of the same key are one unit; of a gang "namespace/name" of its PodGroup, as events name it
    since   : unix seconds, what the unit is sorted by within its priority; None = when its oldest active pod arrived
    is_gang : all or none of it
    flow    : that the unit is of; units of one key are of one flow. Of a gang, that of its first pod
    due     : unix seconds, the latest moment it may start; of a gang, the first of its pods' moments
    """

    key: str
    since: float | None
    is_gang: bool
    flow: str = ""
    due: float = math.inf


class Units(Protocol):
    """Asked once per pod, and again when the pod or its group has changed."""

    def unit_of(self, pod: PodInfo) -> UnitOf:
        """Quick, and no exceptions: asked under the lock of the tables."""


def unit_by_owner(pod: PodInfo) -> UnitOf:
    """That of a pod that is in no gang: the pods of its controller, or the pod alone.

    Any client may name any controller: only pods of one namespace share. No namespace has a colon in its name.
    """
    key = f"owner:{pod.namespace}/{pod.owner_uid}" if pod.owner_uid else f"pod:{pod.uid}"
    return UnitOf(key, None, False)
