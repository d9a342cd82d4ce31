"""What a policy is, once it is read and checked, and who says which pod is of which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from kube.objects.objects import ANNOTATION_PREFIX, PodInfo
from placement.card_types.listed_cards import ListedCards
from placement.filters.filter import Filter
from placement.gate_exemptions import AdviceMode
from placement.policies.pool_order import PoolOrder
from placement.scores.plugin_weights import PLUGIN_WEIGHTS, PluginWeights
from scorer.scoring_policy import ScoringPolicy

POLICY_ANNOTATION: Final = ANNOTATION_PREFIX + "policy"
"""A pod chooses its policy by name; it wins over every rule."""

_LONGEST_NAME: Final = 63


def shortened_name(name: str) -> str:
    """As much as a name of a policy may have: what an annotation names may be 256 KiB long."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."


@dataclass(frozen=True, slots=True)
class Policy:
    """How pods of one policy are placed: by the extender, and by every loop of our own.

    scoring          : which scores count, with which weights and parameters; its name is the policy's
    filters          : run in this order
    cards            : what nodes with cards, and rare ones, are to its pods
    deadline_seconds : an answer about such a pod is neutral past it; None = the service's own deadline
    pools            : which nodes come first; None = no pool does
    advice           : what the webhook does with new pods that have no such label; None = as its settings say
    plugin_weights   : by which a scheduling loop of our own adds scores up, of every plugin that has a default weight
    """

    scoring: ScoringPolicy
    filters: tuple[Filter, ...] = ()
    cards: ListedCards = field(default_factory=ListedCards)
    deadline_seconds: float | None = None
    plugin_weights: PluginWeights = field(default_factory=lambda: PLUGIN_WEIGHTS)
    pools: PoolOrder | None = None
    advice: AdviceMode | None = None

    @property
    def name(self) -> str:
        """As in the file, or SETTINGS_POLICY."""
        return self.scoring.name


@dataclass(frozen=True, slots=True)
class ChosenPolicy:
    """The policy of a pod, and what chose it, for people: "its annotation", "rule 2: batch namespaces"."""

    policy: Policy
    because: str = ""


class Choosable(Protocol):
    """What of a pod chooses its policy: PodInfo has it, and a new pod that is only JSON."""

    @property
    def namespace(self) -> str: ...

    @property
    def labels(self) -> Mapping[str, str]: ...

    @property
    def annotations(self) -> Mapping[str, str]: ...


class Policies(Protocol):
    """Which policy a pod is placed by. For any thread; quick, and waits for nothing."""

    def choose(self, pod: PodInfo) -> ChosenPolicy:
        """By the set of policies in effect now. One pod may meet two sets in its /filter and its /prioritize."""

    def count(self, policy: str) -> None:
        """A pod was placed by the policy of this name."""


class OnePolicyForAll:
    """The same for every pod. Implements Policies."""

    def __init__(self, policy: Policy) -> None:
        self._chosen = ChosenPolicy(policy)

    def choose(self, pod: PodInfo) -> ChosenPolicy:
        return self._chosen

    def count(self, policy: str) -> None:
        """Does nothing: there is only one policy."""
