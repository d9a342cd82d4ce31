"""Policies by name, and which pod gets which: its annotation, else the first rule that holds, else the default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from placement.policies.choosing import RuleIndex
from placement.policies.policy import POLICY_ANNOTATION, Choosable, Chosen, Policy, shortened_name
from placement.policies.rules import LabelsOf, Rule
from scorer.policy import ChosenScoring

BY_ANNOTATION: Final = "its annotation"
BY_DEFAULT: Final = "the default"
BY_NOTHING: Final = "no rule holds"


@dataclass(frozen=True, slots=True)
class Choice:
    """The policy of a pod as both interfaces want it. unknown: what its annotation says where that is no policy."""

    chosen: Chosen
    scoring: ChosenScoring
    unknown: str = ""


class PolicySet:
    """Immutable; what it says depends on the pod and the labels of its namespace alone."""

    def __init__(
        self, settings: Policy, policies: Sequence[Policy] = (), rules: Sequence[Rule] = (), default: str | None = None
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

    def choose(self, pod: Choosable, labels_of: LabelsOf) -> Chosen:
        """The policy of a pod."""
        return self.choice(pod, labels_of).chosen

    def choice(self, pod: Choosable, labels_of: LabelsOf) -> Choice:
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
        return Choice(Chosen(chosen.policy, because), ChosenScoring(chosen.policy.scoring, because), named)


def _choice(policy: Policy, because: str) -> Choice:
    return Choice(Chosen(policy, because), ChosenScoring(policy.scoring, because))
