"""Affinity terms of the pod being placed, as kube-scheduler 1.36 reads them, which is not quite as they are written."""

from __future__ import annotations

from dataclasses import replace

from extender.selectors import selector_matches
from scorer.cluster.constraints import LabelSelector, PodAffinityTerm

__all__ = ["as_read"]

_ANY = LabelSelector()


def as_read(term: PodAffinityTerm) -> PodAffinityTerm:
    """A namespace selector that fits a namespace without labels (NotIn, DoesNotExist alone) means every namespace.

    framework/plugins/interpodaffinity/plugin.go, mergeAffinityTermNamespacesIfNotEmpty, finds the namespaces meant, but
    drops the selector in a copy of the term; it is then held against no labels at all
    (https://github.com/kubernetes/kubernetes/issues/141526). Terms of pods that sit are read as written. Whoever places
    pods beside kube-scheduler has to pass the nodes that it passes, so this is followed until it is mended there.
    """
    selector = term.namespace_selector
    if selector is None or not selector.requirements or not selector_matches(selector, {}):
        return term
    return replace(term, namespace_selector=_ANY)
