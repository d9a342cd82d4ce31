"""The rebalancer in a trajectory: a plan each night, within the budget and the rules against returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from base.arrays import Bools, Floats, Ints
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY
from rebalancer.cooldown import may_move, nodes_left
from rebalancer.planning.planner import plan
from rebalancer.planning.problem import Budget, PlannedPods, Problem
from rebalancer.rebalance_settings import PlanningOptions, RebalanceOptions
from rebalancer.trajectory.daily_outlook import LooksAhead
from rebalancer.trajectory.play import NIGHT_SLOT, PlayedMove, Relocation
from scorer.replay.recording import Recording
from scorer.replay.running_cluster import RunningCluster


class NightMover:
    """Implements Mover with the planner of rebalancer.planning."""

    def __init__(
        self,
        looks_ahead: LooksAhead,
        recording: Recording,
        namespace: Ints,
        options: RebalanceOptions,
        planning: PlanningOptions,
    ) -> None:
        """
        namespace : (n_services,) number of the namespace of each service
        options   : horizon, budget, cooldown and the cost of every move count here
        """
        self._looks_ahead, self._recording, self._namespace = looks_ahead, recording, namespace
        self._options, self._planning = options, planning

    def relocate(
        self, slot: int, cluster: RunningCluster, past: Mapping[int, Sequence[PlayedMove]]
    ) -> Sequence[Relocation]:
        pods = cluster.running
        if slot % SLOTS_PER_DAY != NIGHT_SLOT or not len(pods):
            return ()
        problem = self.problem(slot, cluster, pods, past)
        return [Relocation(int(pods[move.pod]), move.target) for move in plan(problem, self._planning).moves]

    def problem(
        self, slot: int, cluster: RunningCluster, pods: Ints, past: Mapping[int, Sequence[PlayedMove]]
    ) -> Problem:
        """What the planner is asked in this night. pods : (n_pods,) all that run now."""
        recording, state, options = self._recording, cluster.state, self._options
        n_slots = round(options.horizon / (60 * SLOT_MINUTES))
        outlook = self._looks_ahead.ahead(slot, n_slots, cluster, pods)
        service = recording.service[pods]
        shape, allowed = self._allowed(slot // SLOTS_PER_DAY, pods, past)
        return Problem(
            load=outlook.load,
            margin=outlook.margin,
            capacity=recording.known_capacity,
            free=state.allocatable - state.requested,
            usage=outlook.usage,
            pods=PlannedPods(
                node=cluster.node[pods],
                profile=outlook.profile,
                requests=recording.requests[pods],
                service=service,
                namespace=self._namespace[service],
                shape=shape,
                cost=self._costs(slot // SLOTS_PER_DAY, pods, past),
            ),
            allowed=allowed,
            budget=self._budget(np.bincount(service, minlength=recording.n_services)),
            hot=recording.hot,
        )

    def _allowed(self, night: int, pods: Ints, past: Mapping[int, Sequence[PlayedMove]]) -> tuple[Ints, Bools]:
        """Shape of each pod, (n_pods,), and the nodes that each shape may go to, (n_shapes, n_nodes)."""
        shape, rows = np.zeros(len(pods), dtype=np.int64), [np.ones(self._recording.n_nodes, dtype=np.bool_)]
        for row, pod in enumerate(pods.tolist()):
            if left := nodes_left(past.get(pod, ()), night, self._options.cooldown):
                shape[row] = len(rows)
                rows.append(~np.isin(np.arange(self._recording.n_nodes), [int(node) for node in left]))
        return shape, np.stack(rows)

    def _costs(self, night: int, pods: Ints, past: Mapping[int, Sequence[PlayedMove]]) -> Floats:
        """Cost of each move: (n_pods,). Pods that rest, and runs of Jobs, which would begin anew, do not move."""
        stays = self._recording.ending[self._recording.service[pods]]
        rests = [not may_move(past.get(pod, ()), night, self._options.cooldown) for pod in pods.tolist()]
        return np.where(stays | rests, np.inf, self._options.cost.move)

    def _budget(self, replicas: Ints) -> Budget:
        budget = self._options.budget
        return Budget(
            total=budget.total(int(replicas.sum())),
            per_service=np.array([budget.of_service(n) for n in replicas.tolist()]),
            per_namespace=np.full(int(self._namespace.max(initial=0)) + 1, budget.per_namespace),
            per_node=budget.per_node,
        )
