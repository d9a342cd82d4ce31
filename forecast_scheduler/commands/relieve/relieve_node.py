"""A cluster in which one hot node is looked at: where its pods would land, and the relief that follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from base.arrays import Floats
from forecast_scheduler.commands.explain.placing_component import component_of
from forecast_scheduler.commands.rebalance.open_planning import Planning, open_planning
from forecast_scheduler.commands.scorer.scorer_setup import Inputs
from forecast_scheduler.settings.document import Settings
from kube.objects.objects import PodInfo
from rebalancer.hot_node import HotNodeRelief, ReliefCosts, ReliefMaker


class Relieving:
    """Answers for one node, again and again while it is relieved. placed_by: components by which pods were judged"""

    def __init__(self, planning: Planning, settings: Settings, most: int) -> None:
        self.planning, self._settings, self._most = planning, settings, most
        self.placed_by: dict[str, None] = {}

    def look(self, node: str, gone: Floats | None = None) -> HotNodeRelief:
        """Return how to relieve the node as things are now. See ReliefMaker.relieve."""

        def lands(pod: PodInfo) -> str:
            return self._lands(pod, node)

        planning = self.planning
        maker = ReliefMaker(planning.scorer.tables, planning.maker, self._settings.hot_share, lands, self._most)
        return maker.relieve(node, gone)

    def _lands(self, pod: PodInfo, hot: str) -> str:
        """The node that `explain` names for the pod, the hot one left out."""
        component = component_of(pod.scheduler_name, self._settings)
        self.placed_by.setdefault(component.words)
        placing = self.planning.placing
        with placing.unbound(pod) as waiting:
            judged = placing.judge(waiting, self.planning.policies.choose(waiting), component.words)
        return next((name for name in judged.ranking if name != hot), "")


@contextmanager
def open_relieving(settings: Settings, inputs: Inputs, most: int) -> Iterator[Relieving]:
    """Follow the cluster while the context lasts. most: pods of a relief. Raises InputError, see open_planning."""
    ours = settings.rebalance
    ours = ours.model_copy(update={"cost": ReliefCosts.of(ours.cost)})
    with open_planning(settings.model_copy(update={"rebalance": ours}), inputs) as planning:
        yield Relieving(planning, settings, most)
