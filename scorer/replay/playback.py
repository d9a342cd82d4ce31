"""Plays a recording back under a rule: pods come as they came, the rule says where they go.

The pods that are there at the start are placed on an empty cluster in a seeded random order; those born later are
placed when they are born. Within a slot pods leave first. The rule sees usage up to the slot before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forecast.arrays import Floats, Ints
from forecast.history import Placements
from forecast.progress import Progress, silent
from scorer.replay.cluster_state import ClusterState, PendingPod
from scorer.replay.recording import Recording
from scorer.replay.rules import Rule

_REPORT_EVERY = 100


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
        np.add.at(load, self.node, recording.load)
        return load


def play(
    recording: Recording, rule: Rule, *, seed: int, progress: Progress = silent, stage: str = "replay"
) -> Playback:
    """Let `rule` place every pod of the recording. The order of pods depends on `seed` alone."""
    node = np.full(len(recording.service), -1, dtype=np.int64)
    known = recording.known_capacity
    placed: dict[int, PendingPod] = {}
    state = ClusterState(known, recording.allocatable, recording.live_base, recording.service_requests)
    births = _by_slot(recording.birth, recording.n_slots)
    deaths = _by_slot(recording.death, recording.n_slots)
    done = 0
    for slot in range(recording.n_slots):
        for pod in deaths.get(slot, ()):
            gone = placed.pop(int(pod))
            state.remove(gone.service, gone.requests, int(node[pod]))
            rule.removed(gone, int(node[pod]))
        born = births.get(slot)
        if born is None:
            continue
        # An order of its own for every slot: what is born tomorrow must not change today's order.
        born = np.random.default_rng((seed, slot)).permutation(born)
        live = recording.live[born] if slot == 0 else _live_of_services(recording, slot)[recording.service[born]]
        if slot > 0:
            state.measure(*_measured(recording, node, slot - 1))
        state.arriving = np.bincount(recording.service[born], minlength=recording.n_services).astype(np.float64)
        rule.observe(slot, state)
        for pod, uses in zip(born, live, strict=True):
            pending = PendingPod(int(recording.service[pod]), recording.requests[pod], uses, int(pod))
            chosen = rule.choose(pending, state.feasible(pending), state)
            node[pod] = chosen
            placed[pending.index] = pending
            state.add(pending, chosen)
            rule.added(pending, chosen)
            done += 1
            if done % _REPORT_EVERY == 0:
                progress(stage, done, len(node))
    progress(stage, len(node), len(node))
    return Playback(node, state.overcommitted)


def _by_slot(slots: Ints, n_slots: int) -> dict[int, Ints]:
    """Pods by the slot they come or go in; those beyond the end are left out."""
    order = np.argsort(slots, kind="stable")
    values, starts = np.unique(slots[order], return_index=True)
    groups = np.split(order, starts[1:])
    return {int(value): group for value, group in zip(values, groups, strict=True) if value < n_slots}


def _measured(recording: Recording, node: Ints, slot: int) -> tuple[Floats, Floats]:
    """Usage of the nodes in a slot that is over, (n_nodes, n_resources), and the pods there, (n_nodes, n_services)."""
    usage = recording.base[:, :, slot].copy()
    placed = node >= 0
    np.add.at(usage, node[placed], recording.load[placed, :, slot])
    counts = np.zeros((recording.n_nodes, recording.n_services))
    np.add.at(counts, (node[placed], recording.service[placed]), recording.present[placed, slot])
    return usage, counts


def _live_of_services(recording: Recording, slot: int) -> Floats:
    """Usage of a pod of each service in the slot before, 0 where it had none: (n_services, n_resources)."""
    total = np.zeros((recording.n_services, recording.load.shape[1]))
    present = np.zeros(recording.n_services)
    np.add.at(total, recording.service, recording.load[:, :, slot - 1])
    np.add.at(present, recording.service, recording.present[:, slot - 1])
    return np.asarray(total / np.maximum(present, 1e-9)[:, None])
