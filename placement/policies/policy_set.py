"""Policies by name, and which pod gets which: its annotation, else the first rule that holds, else the default. A
thousand rules cost a few microseconds.

What rules say of namespaces is found out once per namespace and set of its labels, as a set of rules; what they say
of the pod's labels is looked up in one index of all rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from placement.policies.policy import POLICY_ANNOTATION, Choosable, ChosenPolicy, Policy, shortened_name
from placement.policies.rules import LabelsOf, PolicyRule
from placement.policies.selector_index import SelectorIndex
from scorer.scoring_policy import ChosenScoring

_MOST_NAMESPACES: Final = 4096

BY_ANNOTATION: Final = "its annotation"
BY_DEFAULT: Final = "the default"
BY_NOTHING: Final = "no rule holds"


@dataclass(frozen=True, slots=True)
class _There:
    """The set of rules that a namespace with these labels may use; None = the labels are not known."""

    labels: Mapping[str, str] | None
    rules: int


class RuleIndex:
    """For any thread: what is found out about namespaces is kept in a dict that is written one entry at a time."""

    def __init__(self, rules: Sequence[PolicyRule]) -> None:
        """rules: in the order in which they are asked"""
        self._pods = SelectorIndex([rule.selector for rule in rules])
        self._namespaces = SelectorIndex([rule.namespace_selector for rule in rules])
        self._of_any_name = _set(n for n, rule in enumerate(rules) if rule.namespaces is None)
        self._by_name: dict[str, int] = {}
        for position, rule in enumerate(rules):
            for name in rule.namespaces or ():
                self._by_name[name] = self._by_name.get(name, 0) | 1 << position
        self._without_labels = _set(n for n, rule in enumerate(rules) if rule.namespace_selector is None)
        self._reads_labels = self._without_labels != (1 << len(rules)) - 1
        self._known: dict[str, _There] = {}

    def first(self, pod: Choosable, labels_of: LabelsOf) -> int | None:
        """Position of the first rule that holds; None = none does."""
        rules = self._of_any_name | self._by_name.get(pod.namespace, 0)
        if self._reads_labels:
            rules &= self._allowed_by_labels(pod.namespace, labels_of(pod.namespace))
        return self._pods.first(pod.labels, rules)

    def _allowed_by_labels(self, namespace: str, labels: Mapping[str, str] | None) -> int:
        known = self._known.get(namespace)
        if known is not None and (known.labels is labels or known.labels == labels):
            return known.rules
        rules = self._without_labels if labels is None else self._namespaces.matching(labels)
        if len(self._known) >= _MOST_NAMESPACES:  # namespaces come and go
            self._known = {}
        self._known[namespace] = _There(labels, rules)
        return rules


def _set(positions: Iterable[int]) -> int:
    return sum(1 << position for position in positions)


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """The policy of a pod as both interfaces want it. unknown: what its annotation says where that is no policy."""

    chosen: ChosenPolicy
    scoring: ChosenScoring
    unknown: str = ""


class PolicySet:
    """Immutable; what it says depends on the pod and the labels of its namespace alone."""

    def __init__(
        self,
        settings: Policy,
        policies: Sequence[Policy] = (),
        rules: Sequence[PolicyRule] = (),
        default: str | None = None,
    ) -> None:
        """
        settings : what the settings describe; it has a name, too
        rules    : name policies of the set
        default  : policy of pods that nothing else chooses for; None = that of the settings
        """
        self.policies: Mapping[str, Policy] = MappingProxyType(
            {settings.name: settings} | {policy.name: policy for policy in policies}
        )
        self.rules, self.default = tuple(rules), default
        self._by_annotation = {name: _choice(policy, BY_ANNOTATION) for name, policy in self.policies.items()}
        self._by_rule = [_choice(self.policies[rule.policy], rule.because) for rule in rules]
        if default is not None:
            self._else = _choice(self.policies[default], BY_DEFAULT)
        else:
            self._else = _choice(settings, BY_NOTHING if policies or rules else "")
        self._index = RuleIndex(self.rules)

    def choose(self, pod: Choosable, labels_of: LabelsOf) -> ChosenPolicy:
        """The policy of a pod."""
        return self.choice(pod, labels_of).chosen

    def choice(self, pod: Choosable, labels_of: LabelsOf) -> PolicyChoice:
        """The same, with the name in the annotation where that is no policy."""
        named = pod.annotations.get(POLICY_ANNOTATION) if pod.annotations else None
        if named and (choice := self._by_annotation.get(named)) is not None:
            return choice
        position = self._index.first(pod, labels_of)
        choice = self._else if position is None else self._by_rule[position]
        if not named:
            return choice
        chosen = choice.chosen
        because = f"{chosen.because or BY_NOTHING}; its annotation names no policy: {shortened_name(named)!r}"
        return PolicyChoice(ChosenPolicy(chosen.policy, because), ChosenScoring(chosen.policy.scoring, because), named)


def _choice(policy: Policy, because: str) -> PolicyChoice:
    return PolicyChoice(ChosenPolicy(policy, because), ChosenScoring(policy.scoring, because))
