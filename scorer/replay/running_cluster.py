"""The pods of a recording on their nodes while a replay runs, half hour by half hour; `playback` and the rebalancer's
trajectories drive it.

What a rule may see is in `state`: usage up to the half hour that was measured last, and the pods that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from scorer.replay.cluster_state import ClusterState, PendingPod
from scorer.replay.placed_together import PlacesTogether
from scorer.replay.recording import Recording
from scorer.replay.rules import Rule


class RunningCluster:
    """Empty at first.

    node  : (n_pods,) row of the node each pod is on, or was on last; -1 = not placed yet
    state : what rules see
    """

    def __init__(self, recording: Recording, rule: Rule) -> None:
        self._recording, self._rule = recording, rule
        self.node = np.full(len(recording.service), -1, dtype=np.int64)
        self.state = ClusterState(
            recording.known_capacity, recording.allocatable, recording.live_base, recording.service_requests
        )
        self._running: dict[int, PendingPod] = {}
        self._live: tuple[int, Floats] | None = None  # of the slot that pods were placed in last
        self._births = _by_slot(recording.birth, recording.n_slots)
        self._deaths = _by_slot(recording.death, recording.n_slots)

    @property
    def running(self) -> Ints:
        """Pods that are there now, in their order in the recording: (n_running,)."""
        return np.sort(np.fromiter(self._running, dtype=np.int64, count=len(self._running)))

    def born(self, slot: int) -> Ints:
        """Pods that are born in this slot."""
        return self._births.get(slot, np.empty(0, dtype=np.int64))

    def end_pods(self, slot: int) -> None:
        """Take the pods away whose time is over when this slot begins."""
        for pod in self._deaths.get(slot, ()):
            self.take(int(pod))

    def measure(self, slot: int) -> Floats:
        """Show the rules the usage of a slot that is over: (n_nodes, n_resources)."""
        usage, counts = self._measured(slot)
        self.state.measure(usage, counts)
        return usage

    def place(self, pods: Ints, slot: int, on_placed: Callable[[], None] = lambda: None) -> None:
        """Let the rule choose a node for each of the pods, in this order."""
        recording, state = self._recording, self.state
        live = recording.live[pods] if slot == 0 else self._live_of_services(slot)[recording.service[pods]]
        state.arriving = np.bincount(recording.service[pods], minlength=recording.n_services).astype(np.float64)
        self._rule.observe(slot, state)
        together = self._rule if isinstance(self._rule, PlacesTogether) else None
        placed: list[PendingPod] = []
        for pod, uses in zip(pods.tolist(), live, strict=True):
            pending = self._pending(pod, uses)
            self._add(pending, self._rule.choose(pending, state.feasible(pending), state))
            placed.append(pending)
            on_placed()
            if together is not None and len(placed) == together.batch:
                self._rearrange(placed[-together.most :], together)
                placed = []
        if placed and together is not None:
            self._rearrange(placed[-together.most :], together)

    def put(self, pod: int, node: int, slot: int) -> None:
        """Run the pod on this node, whatever the rule would choose."""
        live = self._recording.live[pod] if slot == 0 else self._recording.load[pod, :, slot - 1].astype(np.float64)
        self._add(self._pending(pod, live), node)

    def take(self, pod: int) -> int:
        """Take the pod away; returns the row of the node that it was on."""
        gone, node = self._running.pop(pod), int(self.node[pod])
        self.state.remove(gone.service, gone.requests, node)
        self._rule.removed(gone, node)
        return node

    def _pending(self, pod: int, live: Floats) -> PendingPod:
        return PendingPod(int(self._recording.service[pod]), self._recording.requests[pod], live, pod)

    def _add(self, pod: PendingPod, node: int) -> None:
        self.node[pod.index] = node
        self._running[pod.index] = pod
        self.state.add(pod, node)
        self._rule.added(pod, node)

    def _rearrange(self, placed: Sequence[PendingPod], rule: PlacesTogether) -> None:
        """Seat pods that have just been placed where the rule wants them once it has seen all of them."""
        nodes = self.node[[pod.index for pod in placed]]
        for pod, before, node in zip(placed, nodes.tolist(), rule.rearrange(placed, nodes, self.state), strict=True):
            if node != before:
                self.state.live_usage[before] -= pod.live
                self.take(pod.index)
                self._add(pod, int(node))

    def _measured(self, slot: int) -> tuple[Floats, Floats]:
        """Usage of the nodes in a slot that is over, (n_nodes, n_resources), and the pods there, (n_nodes, n_services).

        Pods that have ended are on their last node still: they used nothing since.
        """
        recording, placed = self._recording, np.flatnonzero(self.node >= 0)
        node, n_nodes, n_services = self.node[placed], recording.n_nodes, recording.n_services
        usage = recording.base[:, :, slot] + _sums(node, recording.load[placed, :, slot], n_nodes)
        pair = node * n_services + recording.service[placed]
        counts = np.bincount(pair, weights=recording.present[placed, slot], minlength=n_nodes * n_services)
        return usage, np.asarray(counts.reshape(n_nodes, n_services), dtype=np.float64)

    def _live_of_services(self, slot: int) -> Floats:
        """Usage of a pod of each service in the slot before, 0 where it had none: (n_services, n_resources)."""
        if self._live is None or self._live[0] != slot:
            recording, n_services = self._recording, self._recording.n_services
            total = _sums(recording.service, recording.load[:, :, slot - 1], n_services)
            present = np.bincount(recording.service, weights=recording.present[:, slot - 1], minlength=n_services)
            self._live = slot, np.asarray(total / np.maximum(present, 1e-9)[:, None])
        return self._live[1]


def _sums(group: Ints, values: AnyFloats, n_groups: int) -> Floats:
    """Sums of (n, n_resources) by group: (n_groups, n_resources). Many times faster than np.add.at."""
    return np.stack([np.bincount(group, weights=column, minlength=n_groups) for column in values.T], axis=1)


def _by_slot(slots: Ints, n_slots: int) -> dict[int, Ints]:
    """Pods by the slot they come or go in; those beyond the end are left out."""
    order = np.argsort(slots, kind="stable")
    values, starts = np.unique(slots[order], return_index=True)
    groups = np.split(order, starts[1:])
    return {int(value): group for value, group in zip(values, groups, strict=True) if value < n_slots}
