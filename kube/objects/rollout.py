"""Which ReplicaSets of a Deployment are being replaced: their pods are about to go and count for nothing.

A ReplicaSet is superseded while a higher revision of its Deployment is younger than ROLLOUT_SECONDS. A rollout that
takes longer is stuck, or a split on purpose: the old pods evidently serve, and count again. Going back to an old
revision renumbers an old ReplicaSet, which is not young, so that such a rollout goes unnoticed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from forecast.service_key import ServiceKey
from kube.objects.objects import ReplicaSetInfo

ROLLOUT_SECONDS: Final = 3600.0

_MOST_TIMES: Final = 32
"""What a Deployment wants counts up to so many times the pods that are there: its owner may want, or write, any number
without making a pod, and each of his pods would seem to use nothing. Controllers double the pods that they make."""


def deployment_of(replica_set: ReplicaSetInfo) -> ServiceKey | None:
    """The Deployment it belongs to, if any."""
    if replica_set.owner.kind != "Deployment":
        return None
    return ServiceKey(replica_set.namespace, "Deployment", replica_set.owner.name)


def newest_revision(replica_sets: Iterable[ReplicaSetInfo]) -> ReplicaSetInfo | None:
    """The one with the highest revision, among those of one Deployment."""
    return max(
        (r for r in replica_sets if r.revision is not None),
        key=lambda r: (r.revision, r.created, r.uid),
        default=None,
    )


def is_superseded(replica_set: ReplicaSetInfo, newest: ReplicaSetInfo | None, now: float) -> bool:
    """Whether its pods are being replaced at `now` (unix seconds)."""
    return (
        newest is not None
        and newest.revision is not None
        and replica_set.revision is not None
        and replica_set.revision < newest.revision
        and now < newest.created + ROLLOUT_SECONDS
    )


def replicas_wanted(replica_sets: Collection[ReplicaSetInfo], there: int, now: float) -> int | None:
    """How many pods a Deployment wants, where counting them would mislead; None = count them.

    While its newest ReplicaSet is young, pods are still being made: counted one by one as they come, the first would
    seem to carry the whole service. Old ones may be there as well.
    there : all its pods, old ones included
    """
    newest = newest_revision(replica_sets)
    if newest is None or now >= newest.created + ROLLOUT_SECONDS:
        return None
    wanted = newest.desired_replicas
    return None if wanted is None else min(wanted, _MOST_TIMES * max(there, 1))


class Rollouts:
    """All ReplicaSets, by Deployment."""

    def __init__(self) -> None:
        self.replica_sets: dict[str, ReplicaSetInfo] = {}
        self._deployment: dict[str, ServiceKey] = {}  # by UID
        self._of: dict[ServiceKey, dict[str, ReplicaSetInfo]] = {}
        self._newest: dict[ServiceKey, ReplicaSetInfo] = {}
        self._next_end = math.inf

    def put(self, replica_set: ReplicaSetInfo) -> list[ServiceKey]:
        """Add or replace one; the Deployments it touches."""
        touched = self.delete(replica_set.uid)
        self.replica_sets[replica_set.uid] = replica_set
        deployment = deployment_of(replica_set)
        if deployment is not None:
            self._deployment[replica_set.uid] = deployment
            self._of.setdefault(deployment, {})[replica_set.uid] = replica_set
            self._find_newest(deployment)
            if deployment not in touched:
                touched.append(deployment)
            self._next_end = min(self._next_end, replica_set.created + ROLLOUT_SECONDS)
        return touched

    def delete(self, uid: str) -> list[ServiceKey]:
        """Remove one, if it is there; the Deployments it touches."""
        self.replica_sets.pop(uid, None)
        deployment = self._deployment.pop(uid, None)
        if deployment is None:
            return []
        del self._of[deployment][uid]
        if not self._of[deployment]:
            del self._of[deployment]
        self._find_newest(deployment)
        return [deployment]

    def replace(self, wanted: Mapping[str, ReplicaSetInfo]) -> tuple[list[str], list[ServiceKey]]:
        """From now on there are these, by UID; which ones changed, and the Deployments that touches."""
        changed = [uid for uid in self.replica_sets if uid not in wanted]
        touched = [deployment for uid in changed for deployment in self.delete(uid)]
        for uid, replica_set in wanted.items():
            if self.replica_sets.get(uid) != replica_set:
                changed.append(uid)
                touched += self.put(replica_set)
        return changed, touched

    def of(self, deployment: ServiceKey) -> Collection[ReplicaSetInfo]:
        """ReplicaSets of a Deployment."""
        return self._of.get(deployment, {}).values()

    def is_superseded(self, uid: str, now: float) -> bool:
        """Whether the pods of a ReplicaSet are being replaced; False if it is not known."""
        deployment = self._deployment.get(uid)
        return deployment is not None and is_superseded(self.replica_sets[uid], self._newest.get(deployment), now)

    def turned(self, before: float, now: float) -> list[ServiceKey]:
        """Deployments whose rollout begins or ends by the clock going from `before` to `now`; it may go backwards."""
        if before <= now < self._next_end:
            return []
        ends = {deployment: newest.created + ROLLOUT_SECONDS for deployment, newest in self._newest.items()}
        self._next_end = min((end for end in ends.values() if end > now), default=math.inf)
        low, high = min(before, now), max(before, now)
        return [deployment for deployment, end in ends.items() if low < end <= high]

    def _find_newest(self, deployment: ServiceKey) -> None:
        newest = newest_revision(self.of(deployment))
        if newest is None:
            self._newest.pop(deployment, None)
        else:
            self._newest[deployment] = newest
