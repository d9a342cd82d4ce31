"""How days are played: the start, moves, evictions, releases, and what counts as a return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from forecast.calendar import SLOTS_PER_DAY
from forecast.resources import CPU
from rebalancer.trajectory.play import NIGHT_SLOT, NoMover, PlayedMove, Relocation, play_days
from scorer.replay.replay_rules import Native
from scorer.replay.running_cluster import RunningCluster
from tests.rebalancer.trajectory.tiny_recording import tiny_recording


class Script:
    """Moves by a script: {slot: relocations}. Keeps what it was shown of past moves."""

    def __init__(self, by_slot: Mapping[int, Sequence[Relocation]]) -> None:
        self._by_slot = by_slot
        self.past: dict[int, dict[int, list[PlayedMove]]] = {}

    def relocate(
        self, slot: int, cluster: RunningCluster, past: Mapping[int, Sequence[PlayedMove]]
    ) -> Sequence[Relocation]:
        self.past[slot] = {pod: list(moves) for pod, moves in past.items()}
        return self._by_slot.get(slot, ())


def native() -> Native:
    return Native(np.random.default_rng(0))


def test_pods_of_unknown_nodes_are_placed_by_the_rule() -> None:
    recording = tiny_recording([1.0, 2.0], [-1, 0], n_nodes=2, requests=2.0)
    played = play_days(recording, native(), NoMover(), {}, seed=0)
    np.testing.assert_allclose(played.share[:, CPU, 0], [0.2, 0.1], err_msg="node 0 has requests already")


def test_a_moved_pod_loads_its_target_from_that_half_hour_on() -> None:
    recording = tiny_recording([1.0, 2.0], [0, 0], n_nodes=2)
    played = play_days(recording, native(), Script({2: [Relocation(1, 1)]}), {}, seed=0)
    np.testing.assert_allclose(played.share[0, CPU], [0.3, 0.3, 0.1, 0.1])
    np.testing.assert_allclose(played.share[1, CPU], [0.0, 0.0, 0.2, 0.2])
    assert [(m.slot, m.pod, m.source, m.target, m.is_return) for m in played.moves] == [(2, 1, 0, 1, False)]


def test_a_pod_that_comes_to_a_node_it_left_has_returned() -> None:
    recording = tiny_recording([1.0, 2.0], [0, 0], n_nodes=3)
    script = Script({1: [Relocation(1, 1)], 2: [Relocation(1, 2)], 3: [Relocation(1, 0)]})
    played = play_days(recording, native(), script, {}, seed=0)
    assert [move.is_return for move in played.moves] == [False, False, True]
    assert script.past[3] == {1: [PlayedMove(0, 0, slot=1), PlayedMove(0, 1, slot=2)]}


def test_an_evicted_pod_is_placed_by_the_rule_and_may_return_where_it_was() -> None:
    recording = tiny_recording([1.0, 2.0], [0, 0], n_nodes=2, requests=2.0)
    played = play_days(recording, native(), Script({1: [Relocation(1)]}), {}, seed=0)
    assert played.moves[0].target == 1, "kube-scheduler's default takes the node with fewer requests"
    played = play_days(tiny_recording([1.0], [0], n_nodes=1), native(), Script({1: [Relocation(0)]}), {}, seed=0)
    assert [(move.source, move.target, move.is_return) for move in played.moves] == [(0, 0, True)]


def test_a_released_service_is_placed_anew_and_its_moves_are_forgotten() -> None:
    recording = tiny_recording([1.0, 2.0], [0, 0], n_nodes=2, n_slots=SLOTS_PER_DAY)
    script = Script({1: [Relocation(1, 1)]})
    played = play_days(recording, native(), script, {0: np.array([1])}, seed=0)
    assert played.released == 1
    assert script.past[NIGHT_SLOT - 1] == {1: [PlayedMove(0, 0, slot=1)]}
    assert script.past[NIGHT_SLOT] == {}
    assert len(played.moves) == 1, "a release is no move"
