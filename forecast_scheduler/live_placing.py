"""A scorer with everything that kube-scheduler's filters need to know of the cluster, to tell where a pod could go."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

from extender.feasibility import Feasibility, feasibility
from extender.filters.catalogue import kinds_read, standard_filters
from extender.filters.filter import ClusterView
from extender.index.index import INDEXED_KINDS, PlacementIndex
from forecast_scheduler.extender_options import extender_options
from forecast_scheduler.live_scorer import Inputs, open_scorer
from forecast_scheduler.settings import Settings
from scorer.background import Background
from scorer.cluster.decoding import Kind
from scorer.cluster.objects import PodInfo
from scorer.scorer import Scorer

__all__ = ["Placing", "open_placing"]


class Placing:
    """kube-scheduler's filters, and those that the settings of the extender switch on."""

    def __init__(self, scorer: Scorer, settings: Settings) -> None:
        self._scorer = scorer
        standard = standard_filters()
        names = {one.name for one in standard}
        ours = [one for one in extender_options(settings.extender).filters if one.name not in names]
        self.filters = (*standard, *ours)
        with scorer.reading() as cluster:
            self._view = ClusterView(cluster, PlacementIndex(cluster.state))
            scorer.attach(INDEXED_KINDS, self._view.index)

    def feasibility(self, pod: PodInfo) -> Feasibility:
        """Where the pod could go if it had to be placed now. One that sits somewhere is taken away first, for good."""
        self._scorer.delete(Kind.PODS, pod)
        with self._scorer.reading():
            return feasibility(replace(pod, node=""), self._view, self.filters)


@contextmanager
def open_placing(settings: Settings, inputs: Inputs) -> Iterator[tuple[Scorer, Background, Placing]]:
    """See open_scorer."""
    made: list[Placing] = []

    def attach(scorer: Scorer) -> Collection[Kind]:
        made.append(Placing(scorer, settings))
        return kinds_read(made[0].filters)

    with open_scorer(settings, inputs, attach) as (scorer, background):
        yield scorer, background, made[0]
