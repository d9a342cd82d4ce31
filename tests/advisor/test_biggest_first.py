"""Of one priority the pods with the highest predicted peak come first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from advisor.biggest_first import BiggestFirst
from forecast.resources import CPU, DISK
from kube.objects.objects import PodInfo
from placement.status import SUCCESS
from scheduler.queue.options import QueueOptions
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue.sorting import PrioritySort
from scheduler.queue.unit import unit_by_owner
from tests.scorer.live_cluster import assuming, loaded, pod_of
from tests.scorer.scorer_at import LiveScorer, tables

SMALL, BIG = pod_of(0, "small"), pod_of(5, "big")


def order_of(scorer: LiveScorer) -> BiggestFirst:
    with scorer.scorer.tables.reading() as cluster:
        return BiggestFirst(cluster)


def since(order: BiggestFirst, pod: PodInfo) -> float:
    value = order.unit_of(pod).since
    assert value is not None
    return value


def popped(order: BiggestFirst, *pods: PodInfo) -> list[str]:
    """Names in the order in which the queue gives them out."""
    queue = SchedulingQueue(
        sort=PrioritySort(), gate=lambda pod: SUCCESS, hints=lambda pod: {}, units=order, options=QueueOptions(),
        clock=lambda: 0.0,
    )  # fmt: skip
    for pod in pods:
        queue.put(pod)
    names: list[str] = []
    while found := queue.pop(most=100, wait_seconds=0):
        names += [queued.pod.name for queued in found.pods]
    return names


def test_the_bigger_comes_first_whoever_came_first() -> None:
    pods = [pod_of(number, f"s{number}") for number in (2, 0, 5, 3)]
    assert popped(order_of(LiveScorer()), *pods) == ["s5", "s3", "s2", "s0"]


def test_priority_goes_before_size() -> None:
    urgent, lazy = replace(SMALL, name="urgent", uid="u", priority=7, owner_uid="rs-u"), replace(BIG, priority=-1)
    assert popped(order_of(LiveScorer()), lazy, SMALL, pod_of(5, "b5"), urgent) == ["urgent", "b5", "small", "big"]


def test_the_units_are_those_of_owners_as_they_would_be_anyway() -> None:
    order = order_of(LiveScorer())
    for pod in (SMALL, BIG, pod_of(None, "bare")):
        usual = unit_by_owner(pod)
        assert replace(order.unit_of(pod), since=usual.since) == usual
    assert order.unit_of(BIG) == order.unit_of(pod_of(5, "another"))


def test_the_peak_counts_as_a_share_of_what_the_cluster_has() -> None:
    scorer = LiveScorer()
    load, profile = tables(scorer).load, scorer.scorer.tables._cluster.profile(BIG)
    peaks = [float(load.peak_of_pod(profile, resource)) for resource in range(5)]
    assert since(order_of(scorer), BIG) == pytest.approx(-max(peaks) / 160)
    few_cores = order_of(LiveScorer(sizes=(10.0, 10.0, 10.0, 10.0)))
    assert since(few_cores, BIG) == pytest.approx(-peaks[CPU] / 40), "of the resource where it is highest"


def test_without_a_forecast_all_are_equal() -> None:
    order = order_of(LiveScorer(without_model=True))
    assert since(order, BIG) == since(order, SMALL) == 0.0


@pytest.mark.parametrize(
    ("assumed", "known", "counts"),
    [
        ({}, {}, False),
        ({0: 1.0}, {}, False),
        ({}, {0: 1.0}, True),
    ],
)
def test_only_a_capacity_that_is_known_makes_a_pod_big(
    assumed: Mapping[int, float], known: Mapping[int, float], counts: bool
) -> None:
    """Of disk there would be little."""
    scorer = LiveScorer(model=loaded(assuming(assumed, known)))
    assert tables(scorer).capacity_assumed[:, DISK].any() == bool(assumed)
    without = since(order_of(LiveScorer(model=loaded(assuming({})))), BIG)
    found = since(order_of(scorer), BIG)
    assert found < 2 * without if counts else found == pytest.approx(without)


def test_where_no_capacity_is_known_all_are_equal() -> None:
    order = order_of(LiveScorer(sizes=()))
    assert since(order, BIG) == since(order, SMALL) == 0.0


def test_what_was_found_is_kept_for_some_seconds_and_no_longer() -> None:
    scorer = LiveScorer(without_model=True)
    order = order_of(scorer)
    assert since(order, BIG) == 0.0
    scorer.scorer.tables.install(loaded())
    scorer.later(9.0)
    assert since(order, BIG) == 0.0
    scorer.later(2.0)
    assert since(order, BIG) < since(order, SMALL) < 0.0
    scorer.clock.now -= 3600  # the clock is set back
    scorer.later(0.0)
    assert since(order, BIG) < 0.0
