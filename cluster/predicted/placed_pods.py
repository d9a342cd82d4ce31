"""A pod as the predicted load counts it, and copies of what is kept in addition to the curves."""

from __future__ import annotations

from dataclasses import dataclass

from base.arrays import Bools, Floats


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod on a node.

    weight  : 1 = counts in what is predicted, 0 = does not (terminating, superseded, part of the node's base)
    present : it uses something now, whether or not it will be there in the evening; False = part of the base
    shadow  : row of the node on which its curve counts instead; what it uses now it uses on `node`. None = no other
    """

    node: int
    profile: int
    weight: float
    present: bool
    qos: int
    shadow: int | None = None

    @property
    def counts_on(self) -> int:
        """Row of the node whose predicted load it adds to."""
        return self.node if self.shadow is None else self.shadow


@dataclass(frozen=True, slots=True)
class Sums:
    """Copies for a check of what is kept in addition to the curves, and of its sources.

    now          : (n_nodes, n_resources); qos_memory: (n_nodes, 3); unknown_pods: of the whole cluster
    use_now      : (n_profiles, n_resources) of one pod; memory_peak: (n_profiles,) bytes
    known        : (n_profiles,) whether the model knows the service
    """

    now: Floats
    qos_memory: Floats
    unknown_pods: int
    use_now: Floats
    memory_peak: Floats
    known: Bools
