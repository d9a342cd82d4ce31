"""Score ImageLocality: nodes that have the pod's images already, the larger the better.

Source: framework/plugins/imagelocality/image_locality.go.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from base.arrays import Ints
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.scores.node_score import MAX_NODE_SCORE, NodeScore

_MIB: Final = 1024 * 1024
_MIN_THRESHOLD: Final = 23 * _MIB
_MAX_CONTAINER_THRESHOLD: Final = 1000 * _MIB


class ImageLocality(NodeScore):
    """An image counts in proportion to the share of nodes that have it, so that not all pods gather on one node.

    sum   = sum over images of int(size * nodes with the image / nodes)
    score = 100 * (clip(sum, 23 MiB, max) - 23 MiB) / (max - 23 MiB),  max = 1000 MiB * containers

    From 1.37 image volumes count as containers do; in 1.36 they count in the sum alone, and before not at all.
    """

    name = "ImageLocality"

    def score(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        """See NodeScore; not normalised over the nodes."""
        n_containers = len(pod.images)
        if not view.state.version.counts_image_volumes:
            n_containers -= pod.image_volumes
        if n_containers <= 0:
            return np.zeros(len(rows), dtype=np.int64)
        highest = _MAX_CONTAINER_THRESHOLD * n_containers
        sums = np.clip(_image_bytes(pod, view, highest)[rows], _MIN_THRESHOLD, highest)
        return np.asarray(MAX_NODE_SCORE * (sums - _MIN_THRESHOLD) // (highest - _MIN_THRESHOLD))


def normalized_image_name(name: str) -> str:
    """With the tag that it has when it names none."""
    return f"{name}:latest" if name.rfind(":") <= name.rfind("/") else name


def _image_bytes(pod: PodInfo, view: ClusterView, highest: int) -> Ints:
    """(n_rows,) bytes of the pod's images on each node, each scaled by how many nodes have it and cut at `highest`."""
    n_nodes = int(np.count_nonzero(view.state.alive))
    sums = np.zeros(view.n_rows, dtype=np.int64)
    times: dict[str, int] = {}
    images = pod.images
    if pod.image_volumes and not view.state.version.sums_image_volumes:
        images = images[: -pod.image_volumes]
    for name in map(normalized_image_name, images):
        times[name] = times.get(name, 0) + 1
    for name, n_times in times.items():
        image = view.index.images.find(name)
        if image is not None:
            rows = np.fromiter(image.rows, dtype=np.int64, count=len(image.rows))
            scaled = int(image.size * (len(rows) / n_nodes))
            sums[rows] += n_times * min(max(scaled, 0), highest)
    return sums
