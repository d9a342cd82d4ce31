"""What can be set about the extender, apart from where it listens."""

from __future__ import annotations

from dataclasses import dataclass

from extender.card_types.rare_devices import RareDevices
from extender.filters.filter import Filter
from extender.policies.policy import Policy
from scorer.policy import ScoringPolicy

__all__ = ["ExtenderOptions"]


@dataclass(frozen=True, slots=True)
class ExtenderOptions:
    """
    filters         : run on /filter, in this order; kube-scheduler has run its own already. These and what nodes with
                      rare devices lose are the settings' policy; others may say otherwise (policies/)
    avoided         : nodes with rare devices get fewer points for pods that do not ask for them; None = they do not
    avoided_points  : so many fewer
    score_per_point : see points.py
    weight          : of the extender in the KubeSchedulerConfiguration, to tell which node will be taken
    longest_reply   : nodes named in a reply to /prioritize; 0 = all that do not get 0 points
    charge_seconds  : how long the node expected to be taken is charged for a pod unless its binding is seen
    is_shadow       : scores are computed and noted, kube-scheduler gets neutral answers
    """

    filters: tuple[Filter, ...] = ()
    avoided: RareDevices | None = None
    avoided_points: int = 50
    score_per_point: float = 0.2
    weight: int = 1
    longest_reply: int = 500
    charge_seconds: float = 2.0
    is_shadow: bool = False

    def policy(self, scoring: ScoringPolicy) -> Policy:
        """That of the settings: of all pods for which nothing else chooses one."""
        return Policy(scoring, self.filters, self.avoided, self.avoided_points)
