"""What can be set about the extender, apart from where it listens."""

from __future__ import annotations

from dataclasses import dataclass, field

from placement.card_types.listed_cards import ListedCards
from placement.filters.filter import Filter
from placement.node_rule_options import NodeRuleOptions
from placement.policies.policy import Policy
from scorer.policy import ScoringPolicy

__all__ = ["ExtenderOptions"]


@dataclass(frozen=True, slots=True)
class ExtenderOptions:
    """
    filters         : run on /filter, in this order; kube-scheduler has run its own already. These and `cards` are the
                      settings' policy; others may say otherwise (policies/)
    cards           : what nodes with cards, and rare ones, are to pods
    rules           : about nodes
    score_per_point : see points.py
    weight          : of the extender in the KubeSchedulerConfiguration, to tell which node will be taken
    longest_reply   : nodes named in a reply to /prioritize; 0 = all that do not get 0 points
    charge_seconds  : how long the node expected to be taken is charged for a pod unless its binding is seen
    is_shadow       : scores are computed and noted, kube-scheduler gets neutral answers
    """

    filters: tuple[Filter, ...] = ()
    cards: ListedCards = field(default_factory=ListedCards)
    rules: NodeRuleOptions = field(default_factory=NodeRuleOptions)
    score_per_point: float = 0.2
    weight: int = 1
    longest_reply: int = 500
    charge_seconds: float = 2.0
    is_shadow: bool = False

    def policy(self, scoring: ScoringPolicy) -> Policy:
        """That of the settings: of all pods for which nothing else chooses one."""
        return Policy(scoring, self.filters, self.cards)
