"""Pods placed by our HTTP extender's own calls without HTTP: filter, prioritize, and the best node assumed."""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.schedule_answered import Round, fill, still_scorer
from extender.extender import Extender
from extender.extender_options import ExtenderOptions
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from placement.filters.catalogue import standard_filters
from testing.clusters.large_cluster import LargeCluster


class ExtenderLoop:
    """What kube-scheduler would ask it, pod by pod; kube-scheduler's own scores are not reckoned."""

    def __init__(self, made: LargeCluster) -> None:
        self._scorer = still_scorer()
        self._extender = Extender(self._scorer, ExtenderOptions(filters=standard_filters()))
        fill(self._scorer, made)
        self._names = [node.name for node in made.nodes]

    def schedule(self, pods: Sequence[PodInfo]) -> Round:
        """Place pods one by one; they are gone afterwards."""
        for pod in pods:
            self._scorer.tables.put(Kind.PODS, pod)
        nodes: dict[str, str] = {}
        began, cpu = time.perf_counter(), time.process_time()
        for pod in pods:
            passing = self._extender.filter(pod, self._names).nodes
            points = self._extender.prioritize(pod, passing)
            nodes[pod.uid] = max(points, key=points.__getitem__) if points else passing[0]
            with self._scorer.tables.reading() as cluster:
                cluster.assume(pod, nodes[pod.uid], float("inf"))
        self._extender.settle()
        seconds, used = time.perf_counter() - began, time.process_time() - cpu
        for pod in pods:
            self._scorer.tables.delete(Kind.PODS, pod)
        return Round(len(pods), seconds, used, {"MainThread": used}, nodes)
