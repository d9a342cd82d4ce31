"""Pods that sit, by controller: what kube-scheduler spreads by default, without any constraint in the pod."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kube.objects.objects import PodInfo
from placement.index.topology import NO_PODS, PodsByRow, pods_by_row

_KINDS: Final = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController"})
"""Controllers whose selectors are looked up (DefaultSelector in pkg/scheduler/framework/plugins/helper/spread.go)."""


def is_spread_by_default(pod: PodInfo) -> bool:
    """Whether a pod without spread constraints of its own has those of the scheduler."""
    return bool(pod.owner_uid) and pod.owner.kind in _KINDS


class OwnedPods:
    """By UID of the controller and row; pods that terminate do not count."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[int, int]] = {}

    def __len__(self) -> int:
        """Controllers that have pods."""
        return len(self._pods)

    def count(self, row: int, pod: PodInfo, sign: int) -> None:
        """A pod sits on the node of a row (1), or no longer does, exactly as it was counted (-1)."""
        if pod.terminating or not is_spread_by_default(pod):
            return
        by_row = self._pods.setdefault(pod.owner_uid, {})
        n_pods = by_row.get(row, 0) + sign
        if n_pods:
            by_row[row] = n_pods
        else:
            del by_row[row]
            if not by_row:
                del self._pods[pod.owner_uid]

    def count_all(self, rows: Sequence[int], pod: PodInfo) -> None:
        """Such a pod sits on the node of each row from now on."""
        if pod.terminating or not is_spread_by_default(pod):
            return
        by_row = self._pods.setdefault(pod.owner_uid, {})
        for row in rows:
            by_row[row] = by_row.get(row, 0) + 1

    def pods_of(self, owner_uid: str) -> PodsByRow:
        """Pods of one controller."""
        by_row = self._pods.get(owner_uid)
        return NO_PODS if by_row is None else pods_by_row(by_row)
