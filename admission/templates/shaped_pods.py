"""Which pods that sit somewhere were shaped by which binding, followed pod by pod; and the expected peaks of their
nodes, for /metrics.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from admission.templates.shaping_annotations import pod_record
from base.arrays import Floats, Ints
from cluster.overview import NEXT
from cluster.tables.changes import Change, PodChange, PodsSeated
from cluster.tables.state import ClusterState
from kube.decoding.decoding import ApiObject, Kind
from kube.objects.objects import PodInfo
from scorer.scorer import Scorer

MOST_BINDINGS: Final = 5_000
"""Bindings that are kept at once; pods that name further ones are not counted under those."""

MOST_EXPORTED: Final = 200
"""Bindings, those with the most pods: each has three series."""


@dataclass(frozen=True, slots=True)
class SeatedPods:
    """Pods that one binding shaped, by node.

    peaks : (n_nodes,) expected peak of the next 24 hours as a share of capacity; NaN = not known
    pods  : (n_nodes,)
    """

    binding: str
    peaks: Floats
    pods: Ints

    def statistics(self) -> dict[str, float]:
        """Mean of the known peaks over pods, and the highest; {} = no peak is known."""
        known = np.isfinite(self.peaks)
        peaks, pods = self.peaks[known], self.pods[known]
        return {"mean": float(pods @ peaks / pods.sum()), "highest": float(peaks.max())} if len(peaks) else {}


def bindings_of(pod: PodInfo) -> tuple[str, ...]:
    """Return the bindings that shaped a pod, as its record says."""
    return tuple(one.binding for one in pod_record(pod.annotations))


class ShapedPods:
    """Implements cluster.follower.Follower. Called, and to be read, under the lock of the scorer's tables."""

    def __init__(self, state: ClusterState) -> None:
        """Starts from what the state holds now."""
        self._state = state
        self.rebuild()

    def rebuild(self) -> None:
        """Count all pods anew."""
        self._counted: dict[str, tuple[int, Sequence[str]]] = {}
        self._pods: dict[str, dict[int, int]] = {}
        for uid, seat in self._state.seat_of.items():
            self._pod_changed(self._state.pods[uid], seat.node)

    def apply(self, changes: Sequence[Change]) -> None:
        """Follow what happened to pods."""
        for change in changes:
            if isinstance(change, PodChange):
                self._pod_changed(change.pod, None if change.after is None else change.after.node)
            elif isinstance(change, PodsSeated) and bindings_of(change.pods[0]):  # they are alike
                for pod, seat in zip(change.pods, change.seats, strict=True):
                    self._pod_changed(pod, seat.node)

    def replace(self, kind: Kind, objects: Sequence[ApiObject]) -> None:
        """Nothing: it is attached for no further kinds."""

    def put(self, kind: Kind, item: ApiObject) -> None:
        """Nothing, see replace."""

    def delete(self, kind: Kind, item: ApiObject) -> None:
        """Nothing, see replace."""

    def __len__(self) -> int:
        """Bindings that have pods."""
        return len(self._pods)

    def pods_of(self, binding: str) -> Mapping[int, int]:
        """Pods by row of their node."""
        return self._pods.get(binding, {})

    def largest(self, most: int) -> list[str]:
        """Return the `most` bindings with the most pods, the largest first; by name among equals."""

        def rank(binding: str) -> tuple[int, str]:
            return -sum(self._pods[binding].values()), binding

        return heapq.nsmallest(most, self._pods, key=rank)

    # Inside

    def _pod_changed(self, pod: PodInfo, row: int | None) -> None:
        before = self._counted.pop(pod.uid, None)
        if before is not None:
            self._count(before[0], before[1], -1)
        bindings = () if row is None else bindings_of(pod)
        if row is None or not bindings:
            return
        room = MOST_BINDINGS - len(self._pods)
        new = set([name for name in bindings if name not in self._pods][:room])
        kept = [name for name in bindings if name in self._pods or name in new]
        if kept:
            self._counted[pod.uid] = (row, kept)
            self._count(row, kept, 1)

    def _count(self, row: int, bindings: Sequence[str], sign: int) -> None:
        for binding in bindings:
            by_row = self._pods.setdefault(binding, {})
            by_row[row] = by_row.get(row, 0) + sign
            if not by_row[row]:
                del by_row[row]
            if not by_row:
                del self._pods[binding]


def shaped_pods(scorer: Scorer) -> ShapedPods:
    """Those of a scorer, followed from now on."""
    with scorer.tables.reading() as cluster:
        shaped = ShapedPods(cluster.state)
        scorer.tables.attach((), shaped)
    return shaped


def seated_pods(scorer: Scorer, shaped: ShapedPods, *, most: int) -> list[SeatedPods]:
    """Return pods and expected peaks as they are now, of the `most` largest bindings."""
    with scorer.tables.reading():
        pods = {name: dict(shaped.pods_of(name)) for name in shaped.largest(most)}
    used = sorted({row for by_row in pods.values() for row in by_row})
    peak_of = dict(zip(used, _peaks(scorer, used).tolist(), strict=True))
    return [
        SeatedPods(name, np.array([peak_of[row] for row in by_row]), np.array([*by_row.values()], dtype=np.int64))
        for name, by_row in pods.items()
    ]


def _peaks(scorer: Scorer, rows: Sequence[int]) -> Floats:
    """Expected peak of the next 24 hours, a share of capacity, as of the overview: (n_rows,), NaN = not known."""
    with scorer.tables.reading() as cluster:
        names = [cluster.state.names[row] for row in rows]
    if (overview := scorer.tables.overview) is None:
        return np.full(len(rows), np.nan)
    share_of = dict(zip(overview.names, overview.peaks(NEXT).share.tolist(), strict=True))
    return np.array([share_of.get(name, np.nan) for name in names], dtype=np.float64)


class ShapedPodsCollector(Collector):
    """Reads the figures at each scrape."""

    def __init__(self, scorer: Scorer, shaped: ShapedPods) -> None:
        """shaped: attached to the scorer."""
        self._scorer, self._shaped = scorer, shaped

    def collect(self) -> Iterator[Metric]:
        """Pods and peaks by binding."""
        pods = GaugeMetricFamily(
            "forecast_binding_pods",
            f"Pods on nodes that a SchedulerConfigBinding shaped. The {MOST_EXPORTED} bindings with the most pods.",
            labels=["binding"],
        )
        peaks = GaugeMetricFamily(
            "forecast_binding_predicted_peak",
            "Expected peak, in the next 24 hours, of the nodes that these pods sit on, as a share of capacity: mean "
            "over pods, and the highest.",
            labels=["binding", "statistic"],
        )
        for seated in seated_pods(self._scorer, self._shaped, most=MOST_EXPORTED):
            pods.add_metric([seated.binding], float(seated.pods.sum()))
            for statistic, value in seated.statistics().items():
                peaks.add_metric([seated.binding, statistic], value)
        yield pods
        yield peaks
