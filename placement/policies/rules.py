"""A rule of a policy document: which policy pods get for which all its conditions hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kube.objects.constraints import LabelSelector
from kube.objects.labels import selector_matches
from kube.objects.objects import PodInfo

LabelsOf = Callable[[str], Mapping[str, str] | None]
"""Labels of a namespace, None = not known. The answer must not be changed afterwards. Quick; waits for nothing."""


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """None = this is no condition.

    number             : place in the document, from 1
    policy             : that it chooses, by name
    namespaces         : the pod is in one of these
    namespace_selector : its namespace has these labels; it does not hold where they are not known
    selector           : the pod has these labels
    """

    number: int
    policy: str
    namespaces: frozenset[str] | None = None
    namespace_selector: LabelSelector | None = None
    selector: LabelSelector | None = None
    description: str = ""

    def holds(self, pod: PodInfo, labels_of: LabelsOf) -> bool:
        if self.namespaces is not None and pod.namespace not in self.namespaces:
            return False
        if self.namespace_selector is not None:
            labels = labels_of(pod.namespace)
            if labels is None or not selector_matches(self.namespace_selector, labels):
                return False
        return self.selector is None or selector_matches(self.selector, pod.labels)

    @property
    def because(self) -> str:
        """rule 2: batch namespaces"""
        return f"rule {self.number}{': ' if self.description else ''}{self.description}"


def unread_namespaces(rules: Iterable[PolicyRule], namespaces: Iterable[str], labels_of: LabelsOf) -> tuple[str, ...]:
    """Return by name those of the namespaces whose labels a rule asks for but which are unknown: it does not hold
    there.
    """
    asking = [rule.namespaces for rule in rules if rule.namespace_selector is not None]
    return tuple(
        name
        for name in sorted(set(namespaces))
        if any(of is None or name in of for of in asking) and labels_of(name) is None
    )
