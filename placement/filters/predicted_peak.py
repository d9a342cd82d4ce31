"""Filter PredictedPeak: nodes that would come to run too full in the days ahead.

A node is rejected if its placing load with the pod (cluster/predicted/load.py) passes the threshold of a resource at
its peak. Off unless a threshold is given: a score moves pods away from such nodes without ever leaving
one unplaced.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from base.errors import InputError
from forecast.resources import resource_index
from kube.objects.objects import PodInfo
from placement.cluster_events import ROOM_EVENTS, EventKind
from placement.filters.filter import ClusterView, PlainFilter, Rejection
from placement.filters.pod_annotations import comes_with_node
from placement.filters.rejections import found
from scorer.scoring_policy import opts_out


class PredictedPeak(PlainFilter):
    """Evicting pods helps. Pods of a DaemonSet are let through, and those with `forecast-scheduler.io/opt-out: "true"`.

    Without a model nothing is rejected, nor is a node whose capacity is not known or only assumed. The peak is an upper
    limit: that of the node plus that of the pod, which need not come at the same hour (PredictedLoad.peak_with).
    """

    name = "PredictedPeak"
    woken_by = ROOM_EVENTS | {EventKind.FORECAST_CHANGED}

    def __init__(self, thresholds: Mapping[str, float]) -> None:
        """
        thresholds : by resource name (forecast.resources), share of physical capacity > 0, such as 0.9

        Raises UnknownName for a resource that is not predicted, InputError for a share that is none.
        """
        for resource, threshold in thresholds.items():
            resource_index(resource)
            if not (math.isfinite(threshold) and threshold > 0):
                raise InputError(
                    f"the threshold {threshold!r} of the predicted peak of {resource} is no share of capacity: "
                    "give a number above 0, such as 0.9 for 90 %, or leave the resource out"
                )
        self.thresholds = dict(thresholds)

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """One rejection per resource."""
        predicted = view.cluster.predicted
        if not self.thresholds or predicted is None or comes_with_node(pod) or opts_out(pod):
            return ()
        profile = view.cluster.profile(pod)
        rejections: list[Rejection] = []
        for resource, threshold in self.thresholds.items():
            peak = predicted.load.peak_with(profile, resource_index(resource))
            nodes = np.zeros(view.n_rows, dtype=bool)
            # A node may be so new that the forecast has no row for it, and rows that were given up may linger there.
            nodes[: len(peak)] = peak[: view.n_rows] > threshold
            nodes &= ~view.cluster.capacity_assumed[:, resource_index(resource)]
            reason = f"placing load of {resource} would pass {100 * threshold:g} % of capacity"
            rejections += found(nodes, view, reason, preemptible=True)
        return rejections

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        return not self.thresholds
