"""What the extender goes by: the settings' policy, rules about nodes, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from extender.answer_settings import AnswerOptions
from placement.card_types.listed_cards import ListedCards
from placement.filters.filter import Filter
from placement.node_rule_settings import NodeRuleOptions
from placement.policies.policy import Policy
from placement.scores.node_score import NodeScore
from scorer.scoring_policy import ScoringPolicy


@dataclass(frozen=True, slots=True)
class ExtenderOptions:
    """
    filters : run on /filter, in this order; kube-scheduler has run its own already. These and `cards` are the settings'
              policy; others may say otherwise (policies/)
    cards   : what nodes with cards, and rare ones, are to pods
    rules   : about nodes
    answers : see points.py for the points
    scores  : of other packages, with their weights beside kube-scheduler's; policies may say otherwise
    """

    filters: tuple[Filter, ...] = ()
    cards: ListedCards = field(default_factory=ListedCards)
    rules: NodeRuleOptions = field(default_factory=NodeRuleOptions)
    answers: AnswerOptions = field(default_factory=AnswerOptions)
    scores: tuple[tuple[NodeScore, int], ...] = ()

    def policy(self, scoring: ScoringPolicy) -> Policy:
        """That of the settings: of all pods for which nothing else chooses one."""
        return Policy(scoring, self.filters, self.cards)
