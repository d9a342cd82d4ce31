"""What the loop reports about pods, as the advisor understands it: a pod without a node is released without advice."""

from __future__ import annotations

from advisor.releases import Releases
from kube.objects.objects import PodInfo


class AdviceReports:
    """Implements LoopReports. kube-scheduler writes conditions and events of its own."""

    def __init__(self, releases: Releases) -> None:
        self._releases = releases

    def start(self) -> None:
        """Nothing has to begin."""

    def stop(self) -> None:
        """Nothing has to end."""

    def failed(self, pod: PodInfo, message: str, *, reason: str = "Unschedulable") -> None:
        """No node is to be had by what we know: kube-scheduler decides, which may make room."""
        self._releases.without_advice(pod, message)

    def paused(self, pod: PodInfo, message: str, *, by: str) -> None:
        """Nothing: a pod waits for gates of others only."""

    def scheduled(self, pod: PodInfo, node: str) -> None:
        """Nothing: that its advice is written does not mean that it is bound (bound_pods.py)."""

    def preempted(self, pod: PodInfo, note: str) -> None:
        """Nothing: the advisor evicts no pods."""

    def forget(self, uid: str) -> None:
        """Nothing: no report about a pod is kept."""
