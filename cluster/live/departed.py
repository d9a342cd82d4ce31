"""Pods that have left, as long as the window of the metrics still holds some of their usage.

Without them what they used until a minute ago would look like an error of the forecast on their old nodes, and keep
the pods of the very rollout that replaces them away.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Floats


@dataclass(frozen=True, slots=True)
class _Pod:
    node: int
    use: Floats
    started: float
    at: float


class Departed:
    """A queue in the order of departure."""

    def __init__(self, window_seconds: float) -> None:
        self._window = window_seconds
        self._pods: deque[_Pod] = deque()

    def add(self, node: int, use: AnyFloats, started: float, at: float) -> None:
        """A pod that ran from `started` to `at` (unix seconds) left its node. use: (n_resources,) expected of it."""
        self._pods.append(_Pod(node, np.asarray(use, dtype=np.float64), started, at))

    def in_metrics(self, sampled: AnyFloats, n_resources: int) -> Floats:
        """Expected usage of departed pods that samples still hold: (n_nodes, n_resources).

        sampled : (n_nodes,) unix seconds of each node's last sample
        """
        held = np.zeros((len(sampled), n_resources))
        for pod in self._pods:
            if pod.node < len(sampled):
                end, begin = min(sampled[pod.node], pod.at), max(sampled[pod.node] - self._window, pod.started)
                if end > begin:  # NaN = not measured
                    held[pod.node] += (end - begin) / self._window * pod.use
        return held

    def forget(self, now: float) -> None:
        """Drop pods that no sample holds any more."""
        while self._pods and abs(now - self._pods[0].at) > 2 * self._window:  # the clock may have been set back
            self._pods.popleft()
