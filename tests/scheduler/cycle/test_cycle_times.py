"""A cycle says how long its extension points took, and each plugin if it is sampled; the decisions are the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import count

from prometheus_client import CollectorRegistry, generate_latest

from kube.objects.objects import PodInfo
from placement.scores.plugin_weights import BALANCED, FIT, OURS, SPREAD
from scheduler.cycle.cycle_times import CycleTimes, Point
from scheduler.cycle.placing import UnitPlacer
from scheduler.scheduling_metrics import SchedulingMetrics
from tests.scheduler.cycle.varied_cluster import FILTERS, VariedCluster, varied_cluster


def placed(cluster: VariedCluster, pods: Sequence[PodInfo], times: CycleTimes, *, one_by_one: bool) -> tuple[int, ...]:
    with cluster.scorer.tables.reading() as tables:
        level, _ = cluster.scorer.tables.level()
        placer = UnitPlacer(cluster.view, tables, level, until=1e12, one_by_one=one_by_one, times=times)
        return placer.place(pods, FILTERS, cluster.policy).rows


def ticking() -> CycleTimes:
    """Times of a sampled cycle by a stopwatch that goes on by a second at each look."""
    seconds = count()
    return CycleTimes(is_sampled=True, stopwatch=lambda: float(next(seconds)))


def test_each_filter_and_score_has_its_time_in_a_sampled_cycle_only() -> None:
    alone, sampled, plain = ticking(), ticking(), CycleTimes()
    (run, *_) = [
        cluster.pods[one] for cluster in [varied_cluster(3)] for one in cluster.runs() if one.stop - one.start > 3
    ]
    rows = {placed(varied_cluster(3), run, times, one_by_one=False) for times in (sampled, plain)}
    assert rows == {placed(varied_cluster(3), run, alone, one_by_one=True)}
    assert not plain.plugins
    assert set(plain.points) == {Point.FILTER, Point.PREFER, Point.SCORE}
    for times in (alone, sampled):
        assert {name for point, name in times.plugins if point is Point.FILTER} == {one.name for one in FILTERS}
        assert {FIT, OURS, "ImageLocality"} <= {name for point, name in times.plugins if point is Point.SCORE}
        assert all(seconds > 0 for seconds in (*times.points.values(), *times.plugins.values()))
    assert {BALANCED, SPREAD} <= {name for _, name in alone.plugins}  # a batch makes it with NodeResourcesFit


def test_one_cycle_in_ten_is_sampled_and_what_it_took_is_exported() -> None:
    metrics = SchedulingMetrics(rng=random.Random(7))
    n_sampled = sum(metrics.cycle_times()._is_sampled for _ in range(1000))
    assert 70 < n_sampled < 130
    times = ticking()
    with times.at(Point.FILTER), times.of(Point.FILTER, "NodeName"):
        pass
    metrics.observe_cycle(times)
    registry = CollectorRegistry()
    for collector in metrics.collectors:
        registry.register(collector)
    text = generate_latest(registry).decode().splitlines()
    assert 'forecast_extension_point_duration_seconds_sum{extension_point="filter"} 3.0' in text
    assert 'forecast_extension_point_duration_seconds_count{extension_point="score"} 0.0' in text
    assert 'forecast_plugin_execution_duration_seconds_sum{extension_point="filter",plugin="NodeName"} 1.0' in text
