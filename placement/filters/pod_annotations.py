"""What a pod says to the extra filters in annotations of ours, and which pods these filters leave alone."""

from __future__ import annotations

from typing import Final

from kube.objects.objects import ANNOTATION_PREFIX, PodInfo

GPU_TYPE: Final = ANNOTATION_PREFIX + "gpu-type"
MACHINE_GROUP: Final = ANNOTATION_PREFIX + "machine-group"
"""Annotation of pods and label of nodes."""

_MOST_NAMES: Final = 64
"""Each is compared with every distinct label of the nodes, and a client may write thousands."""


def names_in(pod: PodInfo, annotation: str) -> tuple[str, ...]:
    """The names that an annotation lists, separated by commas, the first 64; an empty one lists none."""
    text = pod.annotations.get(annotation, "")
    return tuple(dict.fromkeys(name for name in map(str.strip, text.split(",")) if name))[:_MOST_NAMES] if text else ()


def comes_with_node(pod: PodInfo) -> bool:
    """Whether it is a DaemonSet's: wherever the node is, the pod belongs."""
    return pod.owner.kind == "DaemonSet"
