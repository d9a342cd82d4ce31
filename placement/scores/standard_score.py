"""What a standard score is: kube-scheduler's Score and NormalizeScore in one step, over the nodes that passed."""

from __future__ import annotations

from typing import Protocol

from base.arrays import Ints
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView


class StandardScore(Protocol):
    """One score plugin. `name` is that of the plugin upstream."""

    @property
    def name(self) -> str:
        """As in a KubeSchedulerConfiguration."""

    def score(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        """Normalised scores 0..100, whole numbers as upstream truncates them.

        rows : (n_nodes,) rows of the nodes that passed all filters; normalisation is over these
        Returns (n_nodes,), higher is better.
        """
