"""Plays a recording back under a rule: pods come as they came, the rule says where they go.

The pods that are there at the start are placed on an empty cluster in a seeded random order; those born later are
placed when they are born. Within a slot pods leave first. The rule sees usage up to the slot before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from base.arrays import Floats, Ints
from base.progress import Progress, silent
from forecast.history import Placements
from scorer.replay.recording import Recording
from scorer.replay.rules import Rule
from scorer.replay.running_cluster import RunningCluster

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
        for node, used in zip(self.node.tolist(), recording.load, strict=True):
            load[node] += used  # 10,000 pods: 40 ms; np.add.at takes 2 s
        return load


def play(
    recording: Recording,
    rule: Rule,
    *,
    seed: int,
    order: Callable[[Ints], Ints] = lambda pods: pods,
    progress: Progress = silent,
    stage: str = "replay",
) -> Playback:
    """Let `rule` place every pod of the recording. The order of pods depends on `seed` alone.

    order : from the pods of a half hour, shuffled, to the same in the order in which they are placed
    """
    cluster, n_pods = RunningCluster(recording, rule), len(recording.service)
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
