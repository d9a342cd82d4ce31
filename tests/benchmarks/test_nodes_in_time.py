"""The replayed cluster of benchmarks/nodes_in_time.py: waits, buffers, marks and removals follow their rules."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.nodes_in_time import ramp_hours
from benchmarks.nodes_in_time_cluster import SCAN_SECONDS, Autoscaler, Outcome, Replay
from benchmarks.nodes_in_time_services import SAMPLE, Services, history_in, services_of
from forecast.arrays import Ints
from forecast.resources import CPU

CHUNK = np.array([1.0, 1.0])
MINUTES = 180


@pytest.fixture(scope="module")
def sample() -> Services:
    return services_of(history_in(SAMPLE), 2)


def one_service(sample: Services, replicas: Ints) -> Services:
    """A service of one core a pod on nodes of four."""
    return Services(
        keys=sample.keys[:1],
        begins=0.0,
        replicas=replicas[None],
        requests=np.array([[1.0, 1.0]]),
        allocatable=np.array([4.0, 8.0]),
        known=sample.known,
    )


def step(low: int, high: int, *, since: int = 60, until: int = MINUTES) -> Ints:
    minutes = np.arange(MINUTES)
    return np.where((minutes >= since) & (minutes < until), high, low)


def waits(played: Outcome) -> list[float]:
    return sorted(wait for at, wait in played.waits if at >= 3600)


def test_pods_without_room_wait_for_the_scan_and_the_start_of_a_node(sample: Services) -> None:
    played = Replay(one_service(sample, step(2, 12)), Autoscaler.CLUSTER_AUTOSCALER, chunk=CHUNK).run()
    assert set(waits(played)) == {0.0, SCAN_SECONDS + 180.0}
    assert len(played.added) == 2


def test_placeholders_give_way_and_nobody_waits(sample: Services) -> None:
    services = one_service(sample, step(2, 12))
    played = Replay(services, Autoscaler.CLUSTER_AUTOSCALER, chunk=CHUNK, chunks_at=lambda minute: 10).run()
    assert set(waits(played)) == {0.0}
    bare = Replay(services, Autoscaler.CLUSTER_AUTOSCALER, chunk=CHUNK).run()
    assert played.node_hours > bare.node_hours


def test_a_buffer_before_the_ramp_alone_is_cheaper_and_as_good(sample: Services) -> None:
    services = one_service(sample, step(2, 12))
    always, in_time = (
        Replay(services, Autoscaler.CLUSTER_AUTOSCALER, chunk=CHUNK, chunks_at=chunks).run()
        for chunks in (lambda minute: 10, lambda minute: 10 if 50 <= minute < 60 else 0)
    )
    assert set(waits(in_time)) == {0.0}
    assert in_time.node_hours < always.node_hours


@pytest.mark.parametrize("autoscaler", Autoscaler)
def test_nodes_go_in_the_valley_but_not_while_they_are_marked(sample: Services, autoscaler: Autoscaler) -> None:
    services = one_service(sample, step(12, 2))
    free = Replay(services, autoscaler, chunk=CHUNK)
    played = free.run()
    assert played.removed and free.alive.sum() == 1
    held = Replay(services, autoscaler, chunk=CHUNK, marked_at=lambda minute, replay: range(400))
    assert held.run().removed == []


def test_no_pod_is_lost_when_its_node_goes(sample: Services) -> None:
    replay = Replay(one_service(sample, step(12, 5)), Autoscaler.KARPENTER, chunk=CHUNK)
    assert replay.run().removed
    assert replay.used[replay.alive].sum(axis=0).tolist() == [5.0, 5.0]


def test_each_order_answers_for_one_removal() -> None:
    assert Outcome(removed=[0, 100], added=[200]).needed_again(3600) == 1
    assert Outcome(removed=[0, 100], added=[200, 300]).needed_again(3600) == 2
    assert Outcome(removed=[0], added=[5000]).needed_again(3600) == 0
    assert Outcome(removed=[300], added=[200]).needed_again(3600) == 0


def test_ramps_are_hours_in_which_the_pods_request_more() -> None:
    requested = np.repeat([10.0, 10.0, 20.0, 20.0, 5.0, 5.0], 60)
    assert ramp_hours(requested).tolist() == [False, True, False, False, False, False]


def test_what_a_model_learns_from_ends_before_the_days_that_are_played(sample: Services) -> None:
    history = history_in(SAMPLE)
    assert sample.known.days == history.days[-30:-2]
    # Load is as in the history, and only its share of each pod has changed.
    rows = [history.services.index(key) for key in sample.keys]
    load, original = (
        np.nan_to_num(one.usage_per_pod[rows, CPU] * one.replicas[rows])[:, -1]
        for one in (sample.known, history.before(history.n_days - 2))
    )
    assert np.allclose(load, original, rtol=1e-4)
