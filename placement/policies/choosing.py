"""The first rule that holds for a pod, among a thousand, in a few microseconds.

What rules say of namespaces is found out once per namespace and set of its labels, as a set of rules; what they say of
the pod's labels is looked up in one index of all rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from placement.policies.policy import Choosable
from placement.policies.rules import LabelsOf, Rule
from placement.policies.selector_index import SelectorIndex

_MOST_NAMESPACES: Final = 4096


@dataclass(frozen=True, slots=True)
class _There:
    """The set of rules that a namespace with these labels may use; None = the labels are not known."""

    labels: Mapping[str, str] | None
    rules: int


class RuleIndex:
    """For any thread: what is found out about namespaces is kept in a dict that is written one entry at a time."""

    def __init__(self, rules: Sequence[Rule]) -> None:
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
