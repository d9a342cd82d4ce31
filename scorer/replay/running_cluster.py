"""The pods of a recording on their nodes, half hour by half hour, while a rule or the rebalancer says where they go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from base.arrays import AnyFloats, Floats, Ints
from base.progress import Progress, silent
from forecast.history import Placements
from scorer.replay.recording import Recording
from scorer.replay.replay_rules import ReplayedPod, ReplayRule, ReplayState

_REPORT_EVERY = 100


class RunningCluster:
    """Empty at first.

    node  : (n_pods,) row of the node each pod is on, or was on last; -1 = not placed yet
    state : what rules see
    """

    def __init__(self, recording: Recording, rule: ReplayRule) -> None:
        self._recording, self._rule = recording, rule
        self.node = np.full(len(recording.service), -1, dtype=np.int64)
        self.state = ReplayState(
            recording.known_capacity, recording.allocatable, recording.live_base, recording.service_requests
        )
        self._running: dict[int, ReplayedPod] = {}
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
        state.expect(np.bincount(recording.service[pods], minlength=recording.n_services).astype(np.float64))
        self._rule.observe(slot, state)
        for pod, uses in zip(pods.tolist(), live, strict=True):
            pending = self._pending(pod, uses)
            self._add(pending, self._rule.choose(pending, state.feasible(pending), state))
            on_placed()

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

    def _pending(self, pod: int, live: Floats) -> ReplayedPod:
        return ReplayedPod(int(self._recording.service[pod]), self._recording.requests[pod], live, pod)

    def _add(self, pod: ReplayedPod, node: int) -> None:
        self.node[pod.index] = node
        self._running[pod.index] = pod
        self.state.add(pod, node)
        self._rule.added(pod, node)

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


# Plays a recording back under a rule: pods come as they came, the rule says where they go.
#
# The pods that are there at the start are placed on an empty cluster in a seeded random order; those born later are
# placed when they are born. Within a slot pods leave first. The rule sees usage up to the slot before.


@dataclass(frozen=True, slots=True)
class Playback:
    """Where everything went.

    node     : (n_pods,) node of each pod of the recording
    unplaced : pods whose requests fitted on no node; they went to one of the least overcommitted
    """

    node: Ints
    unplaced: int

    def placements(self, recording: Recording) -> Placements:
        """The same as runs of pods on nodes, in slots from the start of the replay."""
        return Placements(
            pod=np.arange(len(self.node)),
            service=recording.service,
            node=self.node,
            first=recording.birth,
            end=recording.death,
        )

    def node_load(self, recording: Recording) -> Floats:
        """What the nodes would have used: (n_nodes, n_resources, n_slots), base units."""
        load = recording.base.copy()
        for node, used in zip(self.node.tolist(), recording.load, strict=True):
            load[node] += used  # 10,000 pods: 40 ms; np.add.at takes 2 s
        return load


def play(
    recording: Recording,
    rule: ReplayRule,
    *,
    seed: int,
    order: Callable[[Ints], Ints] = lambda pods: pods,
    progress: Progress = silent,
    stage: str = "replay",
    running: type[RunningCluster] = RunningCluster,
) -> Playback:
    """Let `rule` place every pod of the recording. The order of pods depends on `seed` alone.

    order   : from the pods of a half hour, shuffled, to the same in the order in which they are placed
    running : what places the pods of a half hour; a subclass may do so in another way
    """
    cluster, n_pods = running(recording, rule), len(recording.service)
    done = 0

    def on_placed() -> None:
        nonlocal done
        done += 1
        if done % _REPORT_EVERY == 0:
            progress(stage, done, n_pods)

    for slot in range(recording.n_slots):
        cluster.end_pods(slot)
        if not len(born := cluster.born(slot)):
            continue
        if slot > 0:
            cluster.measure(slot - 1)
        # An order of its own for every slot: what is born tomorrow must not change today's order.
        cluster.place(order(np.random.default_rng((seed, slot)).permutation(born)), slot, on_placed)
    progress(stage, n_pods, n_pods)
    return Playback(cluster.node, cluster.state.overcommitted)
