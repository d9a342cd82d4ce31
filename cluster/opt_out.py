"""Pods whose owners want no forecast to decide where they go."""

from __future__ import annotations

from typing import Final

from kube.objects.objects import ANNOTATION_PREFIX, PodInfo

OPT_OUT_ANNOTATION: Final = ANNOTATION_PREFIX + "opt-out"
"""A pod with this set to "true" gets the same score on every node: the other schedulers' scores decide alone."""


def opts_out(pod: PodInfo) -> bool:
    """Whether the pod has the annotation, in any case."""
    return pod.annotations.get(OPT_OUT_ANNOTATION, "").lower() == "true"
