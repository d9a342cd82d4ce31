"""Affinity terms of the pod being placed as kube-scheduler reads them: not as they are written, before 1.37."""

from __future__ import annotations

from dataclasses import replace

from kube.objects.constraints import LabelSelector, PodAffinityTerm
from kube.objects.kubernetes_version import KubernetesVersion
from kube.objects.selectors import selector_matches

_ANY = LabelSelector()


def as_read(term: PodAffinityTerm, version: KubernetesVersion) -> PodAffinityTerm:
    """Until 1.36, a namespace selector that fits no labels at all (NotIn, DoesNotExist) means every namespace.

    framework/plugins/interpodaffinity/plugin.go, mergeAffinityTermNamespacesIfNotEmpty, finds the namespaces meant, but
    drops the selector in a copy of the term; it is then held against no labels at all
    (https://github.com/kubernetes/kubernetes/issues/141526, mended in 1.37). Terms of pods that sit are read as
    written. A scheduler next to kube-scheduler has to pass the nodes that it passes.
    """
    selector = term.namespace_selector
    if version.keeps_namespace_selectors or selector is None or not selector.requirements:
        return term
    return replace(term, namespace_selector=_ANY) if selector_matches(selector, {}) else term
