"""Which pods that sit somewhere were shaped by which binding, or kept out of its trial, followed pod by pod; and what
bindings do to predicted peaks, for /metrics.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from admission.templates.effects import EffectGroup, SeatedPods, group_effect
from admission.templates.shaping_annotations import pod_record
from base.arrays import Floats
from cluster.overview import NEXT
from cluster.tables.changes import Change, PodChange, PodsSeated
from cluster.tables.state import ClusterState
from kube.decoding.decoding import ApiObject, Kind
from kube.objects.objects import PodInfo
from scorer.scorer import Scorer

MOST_BINDINGS: Final = 5_000
"""Bindings that are kept at once; pods that name further ones are not counted under those."""

MOST_EXPORTED: Final = 200
"""Bindings, those with the most pods: each has up to twelve series."""


def groups_of(pod: PodInfo) -> dict[str, EffectGroup]:
    """The bindings that a pod records, and what it is to each."""
    record = pod_record(pod.annotations)
    groups = dict.fromkeys(record.control, EffectGroup.CONTROL)
    groups.update((one.binding, EffectGroup.CANARY if one.canary else EffectGroup.SHAPED) for one in record.applied)
    return groups


class ShapedPods:
    """Implements cluster.follower.Follower. Called, and to be read, under the lock of the scorer's tables."""

    def __init__(self, state: ClusterState) -> None:
        """Starts from what the state holds now."""
        self._state = state
        self.rebuild()

    def rebuild(self) -> None:
        """Count all pods anew."""
        self._counted: dict[str, tuple[int, Mapping[str, EffectGroup]]] = {}
        self._pods: dict[str, dict[EffectGroup, dict[int, int]]] = {}
        for uid, seat in self._state.seat_of.items():
            self._pod_changed(self._state.pods[uid], seat.node)

    def apply(self, changes: Sequence[Change]) -> None:
        """Follow what happened to pods."""
        for change in changes:
            if isinstance(change, PodChange):
                self._pod_changed(change.pod, None if change.after is None else change.after.node)
            elif isinstance(change, PodsSeated) and groups_of(change.pods[0]):  # they are alike
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

    def pods_of(self, binding: str) -> Mapping[EffectGroup, Mapping[int, int]]:
        """Pods by group and row of their node."""
        return self._pods.get(binding, {})

    def largest(self, most: int) -> list[str]:
        """Return the `most` bindings with the most pods, the largest first; by name among equals."""

        def rank(binding: str) -> tuple[int, str]:
            return -sum(sum(rows.values()) for rows in self._pods[binding].values()), binding

        return heapq.nsmallest(most, self._pods, key=rank)

    # Inside

    def _pod_changed(self, pod: PodInfo, row: int | None) -> None:
        before = self._counted.pop(pod.uid, None)
        if before is not None:
            self._count(before[0], before[1], -1)
        groups = {} if row is None else groups_of(pod)
        if row is None or not groups:
            return
        room = MOST_BINDINGS - len(self._pods)
        new = set([name for name in groups if name not in self._pods][:room])
        kept = {name: of for name, of in groups.items() if name in self._pods or name in new}
        if kept:
            self._counted[pod.uid] = (row, kept)
            self._count(row, kept, 1)

    def _count(self, row: int, groups: Mapping[str, EffectGroup], sign: int) -> None:
        for binding, group in groups.items():
            by_group = self._pods.setdefault(binding, {})
            by_row = by_group.setdefault(group, {})
            by_row[row] = by_row.get(row, 0) + sign
            if not by_row[row]:
                del by_row[row]
            if not by_row:
                del by_group[group]
            if not by_group:
                del self._pods[binding]


def shaped_pods(scorer: Scorer) -> ShapedPods:
    """Those of a scorer, followed from now on."""
    with scorer.tables.reading() as cluster:
        shaped = ShapedPods(cluster.state)
        scorer.tables.attach((), shaped)
    return shaped


def seated_pods(scorer: Scorer, shaped: ShapedPods, bindings: Sequence[str] | None, *, most: int) -> list[SeatedPods]:
    """Return pods and expected peaks as they are now, of these bindings or of the largest ones (None); `most`
    of them.
    """
    with scorer.tables.reading():
        names = shaped.largest(most) if bindings is None else list(bindings)[:most]
        pods = {name: {group: dict(by_row) for group, by_row in shaped.pods_of(name).items()} for name in names}
    used = sorted({row for groups in pods.values() for by_row in groups.values() for row in by_row})
    peaks = _peaks(scorer, used)
    position = {row: at for at, row in enumerate(used)}
    found = []
    for name, groups in pods.items():
        mine = sorted({row for by_row in groups.values() for row in by_row})
        counts = {
            group: np.array([by_row.get(row, 0) for row in mine], dtype=np.int64) for group, by_row in groups.items()
        }
        found.append(SeatedPods(name, peaks[[position[row] for row in mine]], counts))
    return found


def _peaks(scorer: Scorer, rows: Sequence[int]) -> Floats:
    """Expected peak of the next 24 hours, a share of capacity, as of the overview: (n_rows,), NaN = not known."""
    with scorer.tables.reading() as cluster:
        names = [cluster.state.names[row] for row in rows]
    if (overview := scorer.tables.overview) is None:
        return np.full(len(rows), np.nan)
    share_of = dict(zip(overview.names, overview.peaks(NEXT).share.tolist(), strict=True))
    return np.array([share_of.get(name, np.nan) for name in names], dtype=np.float64)


class EffectCollector(Collector):
    """Reads the figures at each scrape."""

    def __init__(self, scorer: Scorer, shaped: ShapedPods) -> None:
        """shaped: attached to the scorer."""
        self._scorer, self._shaped = scorer, shaped

    def collect(self) -> Iterator[Metric]:
        """Pods and peaks by binding and group."""
        pods = GaugeMetricFamily(
            "forecast_binding_pods",
            "Pods on nodes that a SchedulerConfigBinding shaped (group shaped; canary while it is on trial), or left "
            f"alone for comparison (control). The {MOST_EXPORTED} bindings with the most pods.",
            labels=["binding", "group"],
        )
        peaks = GaugeMetricFamily(
            "forecast_binding_predicted_peak",
            "Expected peak, in the next 24 hours, of the nodes that these pods sit on, as a share of capacity: mean "
            "over pods, and the highest.",
            labels=["binding", "group", "statistic"],
        )
        for seated in seated_pods(self._scorer, self._shaped, None, most=MOST_EXPORTED):
            for group, counts in seated.pods.items():
                effect = group_effect(seated.peaks, counts, hot=1.0)  # the share of pods above it is not exported
                labels = [seated.binding, group.value]
                pods.add_metric(labels, float(effect.pods))
                for statistic, value in (("mean", effect.mean_peak), ("highest", effect.highest_peak)):
                    if math.isfinite(value):
                        peaks.add_metric([*labels, statistic], value)
        yield pods
        yield peaks
