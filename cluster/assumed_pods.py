"""Pods that are assumed to be bound to a node before the watch says so.

    waiting --assume--> assumed --watch: bound, here or elsewhere--> bound
                           |
                           +--watch: still waiting--> assumed, as it is now
                           +--expired, forgotten----> waiting, as the watch last had it
                           +--watch: deleted--------> gone

As in kube-scheduler's own cache (pkg/scheduler/backend/cache/interface.go) an assumed pod is in all tables like one
that is bound. Here is only kept what the watch said, so that it can be taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

from kube.objects.bulk_records import bulk_records
from kube.objects.counted_pods import waits
from kube.objects.objects import PodInfo
from kube.objects.pod_shape import on_node, on_nodes


@dataclass(frozen=True, slots=True)
class _Assumed:
    """since, until: unix seconds; pod: as the watch last had it, None = it has not come yet."""

    node: str
    since: float
    until: float
    pod: PodInfo | None


class AssumedPods:
    """Assumed pods by UID. Decides; the owner of the tables puts pods in and out."""

    def __init__(self) -> None:
        self._assumed: dict[str, _Assumed] = {}

    def __len__(self) -> int:
        """Pods assumed at the moment."""
        return len(self._assumed)

    def __contains__(self, uid: str) -> bool:
        """Whether a pod is assumed to be where it is, rather than known."""
        return uid in self._assumed

    def assume(self, pod: PodInfo, known: PodInfo | None, node: str, until: float, *, now: float) -> PodInfo | None:
        """The pod as it is to be put into the tables; None = it sits somewhere already.

        known      : as the tables have it, None = not at all
        until, now : unix seconds
        """
        earlier = self._assumed.get(pod.uid)
        if earlier is not None:
            known = earlier.pod
        elif known is not None and not waits(known):
            return None
        self._assumed[pod.uid] = _Assumed(node, now, until, known)
        return on_node(known or pod, node)

    def assume_all(
        self, like: PodInfo, pods: Sequence[PodInfo], nodes: Sequence[str], until: float, *, now: float
    ) -> list[PodInfo]:
        """The same for pods as the tables have them, which wait and are alike, each on its node.

        like : what is to be in the tables of all of them, but for UID, name, age and node
        """
        times = {"since": repeat(now), "until": repeat(until)}
        assumed = bulk_records(_Assumed, len(pods), node=nodes, pod=pods, **times)
        self._assumed.update(zip([pod.uid for pod in pods], assumed, strict=True))
        return on_nodes(like, pods, nodes)

    def seen(self, pod: PodInfo) -> tuple[PodInfo, bool]:
        """What the watch says of a pod -> the pod as it is to be put into the tables, and whether the wait is over.

        When it is, the pod stays assumed until `gone`.
        """
        assumed = self._assumed.get(pod.uid)
        if assumed is None:
            return pod, False
        if not waits(pod):
            return pod, True
        self._assumed[pod.uid] = _Assumed(assumed.node, assumed.since, assumed.until, pod)
        return on_node(pod, assumed.node), False

    def gone(self, uid: str) -> None:
        """The pod was deleted, or the wait for its binding is over."""
        self._assumed.pop(uid, None)

    def forget(self, uid: str) -> PodInfo | None:
        """Take the assumption back: the pod as the watch had it, None = it is not to be in the tables at all.

        Raises KeyError for a pod that is not assumed.
        """
        return self._assumed.pop(uid).pod

    def keep(self, uid: str, until: float, *, now: float) -> None:
        """It is to last until then; nothing if the pod is not assumed. until, now: unix seconds."""
        assumed = self._assumed.get(uid)
        if assumed is not None:
            self._assumed[uid] = _Assumed(assumed.node, now, until, assumed.pod)

    def over(self, now: float) -> list[str]:
        """Return UIDs of pods that were assumed for long enough, or before the clock was set back to `now`: the age of
        these is unknown.
        """
        return [uid for uid, one in self._assumed.items() if not one.since <= now < one.until]

    def uids(self) -> list[str]:
        return list(self._assumed)
