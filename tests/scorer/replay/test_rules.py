"""What a rule by curves takes into account, on two nodes: pods that left, pods still to come, hours that are over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from base.arrays import Floats
from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU, MEMORY, RESOURCES
from scorer.replay.curves import CurveForecast, true_future
from scorer.replay.recording import Recording, record
from scorer.replay.replay_rules import ByCurves, Live, ReplayedPod, ReplayState, replicas_to_come
from scorer.replay.running_cluster import play
from scorer.replay.window import replay_window
from tests.scorer.replay.small_cluster import N_SERVICES, small_cluster

N_RESOURCES = len(RESOURCES)
EVENING = slice(32, 40)
FIXED, AUTOSCALED = 0, 1


def two_nodes(allocatable: Sequence[Sequence[float]], capacity: Sequence[float] = (10.0, 10.0)) -> ReplayState:
    """Nodes with CPU only; a pod of each service requests one core."""
    limits = np.full((2, N_RESOURCES), np.nan)
    limits[:, CPU] = capacity
    requests = np.array([[1.0, 0.0], [1.0, 0.0]])
    return ReplayState(limits, np.asarray(allocatable, dtype=np.float64), np.zeros((2, N_RESOURCES)), requests)


def evening_forecast(expected: float) -> CurveForecast:
    """Two services that use two cores a pod in the evening; of the autoscaled one `expected` pods come then."""
    mean = np.zeros((2, N_RESOURCES, 48))
    mean[:, CPU, EVENING] = 2.0
    replicas = np.zeros((2, 48))
    replicas[AUTOSCALED, EVENING] = expected
    return CurveForecast(
        mean=mean,
        curves=mean[:, :, None],
        curve_weights=np.ones(1),
        replicas=replicas,
        autoscaled=np.array([False, True]),
        base=np.zeros((2, N_RESOURCES, 48)),
        run_seconds=np.full(2, np.nan),
    )


def chosen(rule: ByCurves, state: ReplayState) -> int:
    return rule.choose(ReplayedPod(FIXED, np.array([1.0, 0.0]), np.zeros(N_RESOURCES)), np.ones(2, dtype=bool), state)


@pytest.mark.parametrize(("expected", "node"), [(0.0, 0), (3.0, 1)])
def test_room_is_kept_for_the_evening_where_the_evening_can_land(expected: float, node: int) -> None:
    """Node 0 is the larger one, but only there is room for the pods still to come."""
    state = two_nodes([[12.0, 9.0], [0.5, 9.0]], (12.0, 10.0))
    rule = ByCurves(evening_forecast(expected), state.capacity)
    rule.observe(0, state)
    assert chosen(rule, state) == node


def test_pods_that_are_being_placed_take_room_and_are_no_soft_load() -> None:
    state = two_nodes([[10.0, 9.0], [10.0, 9.0]])
    load = replicas_to_come(evening_forecast(3.0), state)
    np.testing.assert_allclose(load[:, CPU, EVENING], 3.0)  # 3 pods x 2 cores on two equal nodes
    state.arriving = np.array([0.0, 2.0])
    np.testing.assert_allclose(replicas_to_come(evening_forecast(3.0), state)[:, CPU, EVENING], 1.0)
    state.arriving = np.array([0.0, 3.0])
    assert not replicas_to_come(evening_forecast(3.0), state).any()
    state = two_nodes([[10.0, 9.0], [2.0, 9.0]])
    assert (replicas_to_come(evening_forecast(3.0), state)[:, CPU, 35] > 0).all()
    state.arriving = np.array([8.0, 0.0])  # 8 cores, 1.33 of them on the small node: 0.67 are left
    np.testing.assert_allclose(replicas_to_come(evening_forecast(3.0), state)[:, CPU, 35], [6.0, 0.0])


def test_hours_that_are_over_do_not_count() -> None:
    """Node 0 was busy in the morning, node 1 will be a little in the evening."""
    forecast = evening_forecast(0.0)
    mean, base = forecast.mean.copy(), forecast.base.copy()
    mean[:, CPU] = 1.0
    base[0, CPU, :16] = 8.0
    base[1, CPU, EVENING] = 4.0
    forecast = replace(forecast, mean=mean, curves=mean[:, :, None], base=base)
    state = two_nodes([[10.0, 9.0], [10.0, 9.0]])
    picks = []
    for slot in (0, 20):
        rule = ByCurves(forecast, state.capacity, live_correction=False)
        rule.observe(slot, state)
        picks.append(chosen(rule, state))
    assert picks == [1, 0]


def test_neither_a_full_memory_that_is_over_nor_an_unknown_size_decides() -> None:
    forecast = evening_forecast(0.0)
    forecast.base[0, MEMORY, :16] = 99.0
    forecast.base[1, CPU] = 1.0
    state = two_nodes([[10.0, 9.0], [10.0, 9.0]])
    state.capacity[:, MEMORY] = 100.0
    forecast.mean[:, MEMORY] = 2.0
    rule = ByCurves(forecast, state.capacity, live_correction=False)
    rule.observe(0, state)
    assert chosen(rule, state) == 1
    rule.observe(16, state)
    assert chosen(rule, state) == 0
    state = two_nodes([[10.0, 9.0], [10.0, 9.0]], (10.0, np.nan))
    state.capacity = np.vstack([state.capacity, state.capacity[:1]])
    state.live_usage = np.zeros((3, N_RESOURCES))
    state.live_usage[0, CPU] = 4.0
    pod = ReplayedPod(FIXED, np.array([1.0, 0.0]), np.ones(N_RESOURCES))
    assert Live().choose(pod, np.ones(3, dtype=bool), state) == 2


class Watched(ByCurves):
    """Keeps the live error of every slot, as share of capacity."""

    errors: dict[int, Floats]

    def live_error(self, slot: int, state: ReplayState) -> Floats:
        error = super().live_error(slot, state)
        self.errors[slot] = np.nan_to_num(error / state.capacity)
        return error


def with_a_pod_born_when_others_die(recording: Recording) -> Recording:
    """Pod 0 comes in the half hour in which the first evening's pods leave."""
    slot = int(np.unique(recording.death)[0])
    birth, load, present = recording.birth.copy(), recording.load.copy(), recording.present.copy()
    birth[0] = slot
    load[0, :, :slot] = 0.0
    present[0, :slot] = 0.0
    return replace(recording, birth=birth, load=load, present=present)


def test_the_true_future_has_no_live_error_when_pods_come_and_go() -> None:
    history, pods = small_cluster()
    recording = with_a_pod_born_when_others_die(record(history, pods, replay_window(history), hot=HOT_SHARE))
    both = set(recording.birth[recording.birth > 0]) & set(recording.death)
    assert both
    rule = Watched(true_future(recording, np.zeros(N_SERVICES, dtype=bool)), recording.capacity)
    rule.errors = {}
    play(recording, rule, seed=0)
    assert both < set(rule.errors)
    for slot, error in rule.errors.items():
        np.testing.assert_allclose(error, 0.0, atol=1e-6, err_msg=str(slot))
