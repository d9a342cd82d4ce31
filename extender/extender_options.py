"""What the extender goes by: the settings' policy, rules about nodes, and what it answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from base.arrays import Ints
from extender.answer_settings import AnswerOptions
from kube.objects.objects import PodInfo
from placement.card_types.listed_cards import ListedCards
from placement.filters.filter import ClusterView, Filter
from placement.guarded_plugin import plugin_points
from placement.node_order import order_points
from placement.node_rule_settings import NodeRuleOptions
from placement.node_rules import NodeRules
from placement.policies.policy import Policy
from placement.scores.node_score import NodeScore, troubles
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

    def plugin_points(
        self, pod: PodInfo, view: ClusterView, rows: Ints, policy: Policy
    ) -> Iterator[tuple[str, int, Ints]]:
        """Return name, weight and points, (n_nodes,), of each score of other packages. rows: -1 = not known."""
        return plugin_points(self.scores, pod, view, rows, policy, self.answers.weight)

    def further_points(self, pod: PodInfo, view: ClusterView, rows: Ints, policy: Policy, rules: NodeRules) -> Ints:
        """(n_nodes,) points beside those of our own scores: of other packages, and of nodes that come before others.

        rows  : (n_nodes,) of nodes that passed all filters; -1 = not known, which gets no points
        rules : under the lock of the tables
        """
        points = np.zeros(len(rows), dtype=np.int64)
        for _, _, of_plugin in self.plugin_points(pod, view, rows, policy):
            points += of_plugin
        if policy.pools is not None or rules.has_order(view):
            points += order_points(pod, view, rows, policy, rules.order_beside(policy.filters))
        return points

    def troubles(self) -> tuple[str, ...]:
        """Return what filters and scores pods went on without lately, each in a sentence."""
        return troubles(self.filters, (score for score, _ in self.scores))

    def policy(self, scoring: ScoringPolicy) -> Policy:
        """That of the settings: of all pods for which nothing else chooses one."""
        return Policy(scoring, self.filters, self.cards)
