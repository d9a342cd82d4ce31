"""What a score is: kube-scheduler's Score and NormalizeScore in one step, over the nodes that passed.

Source: framework/plugins/helper/normalize_score.go.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Final

import numpy as np

from base.arrays import Ints
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView, Filter

MAX_NODE_SCORE: Final = 100


class NodeScore(ABC):
    """A score, stateless. The defaults are slow and right, whatever it does.

    name : that of the plugin upstream, as in a KubeSchedulerConfiguration
    """

    name: str

    @abstractmethod
    def score(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        """Normalised scores 0..100, whole numbers as upstream truncates them.

        rows : (n_nodes,) rows of the nodes that passed all filters; normalisation is over these
        Returns (n_nodes,), higher is better.
        """

    def skips(self, pod: PodInfo, view: ClusterView, rows: Ints) -> bool:
        """Whether it has nothing to say about this pod: Skip of PreScore upstream."""
        return False

    def trouble(self) -> str:
        """Return why pods went on without it lately, in a sentence; '' = they did not."""
        return ""

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        """Whether like pods that land change its scores only by the nodes that they fill. See Filter."""
        return False


def default_normalize(raw: Ints, *, reverse: bool) -> Ints:
    """The highest becomes 100, whole numbers cut off; reverse: the highest becomes 0, and 0 becomes 100.

        score = 100 * raw / max(raw)

    raw : (n_nodes,) >= 0; all 0 stays 0, or becomes 100 in reverse
    """
    highest = int(raw.max(initial=0))
    scaled = MAX_NODE_SCORE * raw // highest if highest else np.zeros_like(raw)
    return np.asarray(MAX_NODE_SCORE - scaled if reverse else scaled)


def troubles(filters: Iterable[Filter], scores: Iterable[NodeScore]) -> tuple[str, ...]:
    """Return what pods went on without lately, each in a sentence."""
    said = (*(one.trouble() for one in filters), *(one.trouble() for one in scores))
    return tuple(dict.fromkeys(filter(None, said)))
