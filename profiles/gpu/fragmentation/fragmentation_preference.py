"""NodePreference Fragmentation: of the nodes that fit, those where the pod costs the cards of the cluster least.

What is left after it is as good as equal to the cards, within `slack`; there kube-scheduler's scores and the predicted
peak decide.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from base.arrays import Ints
from cluster.tables.state import ClusterState
from kube.objects.objects import PodInfo
from placement.devices.device_demand import GpuDemand
from placement.devices.device_table import DeviceTable
from placement.filters.filter import ClusterView
from placement.plugins import NodePreference, Preferred
from profiles.gpu.fragmentation.cost_table import CostTable, Judge, states_of_rows
from profiles.gpu.fragmentation.idle_of_nodes import NodeStates
from profiles.gpu.fragmentation.live_mix import LiveMix
from profiles.gpu.fragmentation.pod_shapes import PodShapes, ShapeMix

MakeJudge = Callable[[ShapeMix, Sequence[str], NodeStates], Judge]
"""From the mix of shapes that is expected, the card models by index, and all nodes."""


@dataclass(slots=True)
class Fragmentation(NodePreference):
    """Under the lock of the tables.

    make_judge : what nodes cost by; asked again when the mix has moved
    slack      : costs that differ by no more are equal: thousandths of a card, or points of balance
    """

    name = "Fragmentation"

    state: ClusterState
    devices: DeviceTable
    shapes: PodShapes
    live_mix: LiveMix
    costs: CostTable
    make_judge: MakeJudge
    slack: float = 1.0
    judge: Judge | None = None
    _made_for: ShapeMix | None = None
    _of_nodes: tuple[int, int, int] | None = None
    _summed_at: tuple[int, int] | None = None

    def prefer(self, pod: PodInfo, n_pods: int, view: ClusterView, rows: Ints) -> Preferred:
        """See NodePreference. Every pod that lands on a node with cards changes what the next one costs there."""
        if not self._keep_up() or not len(rows):
            return Preferred(rows, n_pods)
        cost = self.costs.of(self.shapes.of(pod)).cost[rows]
        least = cost.min()
        if not np.isfinite(least):  # another filter knows better why it fits
            return Preferred(rows, n_pods)
        chosen = rows[cost <= least + self.slack]
        is_moved = bool(self.devices.n_cards[chosen].any())
        return Preferred(chosen, 1 if is_moved else n_pods)

    def tells_apart(self, pod: PodInfo) -> Hashable:
        return None

    def device_for(self, row: int, demand: GpuDemand, pod: PodInfo) -> tuple[int, ...] | None:
        """For DeviceTable.choose: the card of a shared pod that costs least; None = any will do.

        The pod may sit on the node already, as far as cores and memory are concerned.
        """
        if demand.is_whole or not self._keep_up() or self.judge is None:
            return None
        shape = self.shapes.of(pod)
        if shape.milli == demand.milli:
            found = self.costs.device_before(shape, row)
            if found is not None:
                return None if found < 0 else (found,)
        shape = replace(shape, milli=demand.milli)
        nodes = states_of_rows(self.state, self.devices, np.array([row]))
        seat = self.state.seat_of.get(pod.uid)
        if seat is not None and seat.node == row:
            nodes.cpu_free = nodes.cpu_free + shape.cpu_milli
            nodes.memory_free = nodes.memory_free + shape.memory_mib
        device = int(self.judge.cost(shape, nodes)[1][0])
        return None if device < 0 else (device,)

    def _keep_up(self) -> bool:
        """Whether there is a judge; made anew where the mix has moved."""
        mix = self.live_mix.mix()
        if mix is None:
            return False
        devices = self.devices
        summed_at = devices.cards_version, self.state.n_rows
        if self.judge is not None and self._made_for is mix and self._summed_at == summed_at:
            self.costs.use(self.judge)
            return True
        n_cards = devices.n_cards
        of_nodes = len(devices.models), len(n_cards), int(n_cards.sum())
        if self.judge is None or self._made_for is not mix:
            self._made_for = mix
            self.judge = self.make_judge(mix, devices.models, self._all_nodes())
        elif self._of_nodes != of_nodes:
            self.judge = self.judge.following(self._all_nodes())
        self._of_nodes, self._summed_at = of_nodes, summed_at
        self.costs.use(self.judge)
        return True

    def _all_nodes(self) -> NodeStates:
        return states_of_rows(self.state, self.devices, np.arange(self.state.n_rows))
